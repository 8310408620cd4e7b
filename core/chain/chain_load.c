/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building the chain: every entry of the configuration loaded, its options filled and configured,
 * once for the base and once for each group that differs, and then flattened into one packed row of
 * hooks per group and phase. Template and offline commands. Everything lives in the generation's
 * arena. Invariant: an instance that is in the chain has passed loader, options and configure.
 */
#include "core/chain/chain.h"

#include "base/arena.h"
#include "base/node.h"
#include "core/chain/chain_internal.h"
#include "core/chain/loader.h"
#include "core/chain/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What a group may say about a plugin besides the plugin's own options. */
static const char *const group_keys[] = {"mode", NULL};
static const char *const modes[] = {"enforce", "monitor", NULL};

/* Per group and instance, while loading. */
struct choice {
	const void *config; /* NULL: off */
	bool monitor;
};

struct load {
	struct chain *chain;
	struct generation *g;
	struct diags *d;
	void **raw; /* per instance: base options before configure, what groups begin with */
	struct choice *choices; /* group_count * count */
};

static int blame(const struct load *l, const struct chain_instance *i, const char *text)
{
	diag_error(l->d, l->g->config.path, i->entry->line, i->entry->column, "%s: %s",
		   i->entry->instance, text);
	return -EINVAL;
}

static struct options_context context_of(const struct load *l, const struct chain_instance *i)
{
	return (struct options_context){
		.source = l->g->source,
		.arena = &l->g->arena,
		.d = l->d,
		.config_file = l->g->config.path,
		.state = l->g->config.state,
		.instance = i->entry->instance,
		.line = i->entry->line,
		.column = i->entry->column,
	};
}

/* Let the plugin check what spans options. */
static int configure(const struct load *l, struct chain_instance *i, void *config,
		     const struct node *at)
{
	char error[512] = "";

	if (!i->plugin.configure ||
	    i->plugin.configure(&i->host.table, config, error, sizeof(error)) == 0)
		return 0;
	error[sizeof(error) - 1] = '\0';
	if (!error[0])
		snprintf(error, sizeof(error), "its options do not go together");
	if (!at)
		return blame(l, i, error);
	node_error(at, l->d, "%s: %s", i->entry->instance, error);
	return -EINVAL;
}

static int check_instance_name(const struct load *l, const struct chain_instance *i)
{
	const char *s = i->entry->instance;
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.");

	if (n == 0 || n > 31 || s[n])
		return blame(l, i, "a plugin's name is of a-z, 0-9, -, _ and ., at most 31");
	for (const struct chain_instance *other = l->chain->at; other < i; other++)
		if (strcmp(other->entry->instance, s) == 0)
			return blame(l, i, "is in the chain twice (give one of them a `name:`)");
	return 0;
}

static int load_instance(struct load *l, size_t index, size_t *slots)
{
	struct chain_instance *i = &l->chain->at[index];
	const struct config *config = &l->g->config;
	const struct loader_request request = {
		.source = l->g->source,
		.arena = &l->g->arena,
		.word = i->entry->plugin,
		.folder = config->plugin_folder,
		.config_file = config->path,
		.line = i->entry->line,
		.column = i->entry->column,
	};

	host_init(&i->host, l->chain, index);
	i->host.loading = true;
	int r = check_instance_name(l, i);
	if (r == 0)
		r = loader_load(&request, &i->host.table, l->d, &i->plugin, &i->path);
	if (r < 0)
		return r;
	while (i->plugin.metrics && i->plugin.metrics[i->metric_count].name)
		i->metric_count++;
	i->metrics = arena_alloc(&l->g->arena, (i->metric_count + 1) * sizeof(*i->metrics));

	size_t slot = (i->plugin.slot_size + 15) & ~(size_t)15;
	if (slot > QUERY_SLOT_BYTES - *slots)
		return blame(l, i, "there is no room left for its per-query memory");
	i->slot = (uint16_t)*slots;
	*slots += slot;

	struct options_context context = context_of(l, i);
	l->raw[index] = arena_alloc(&l->g->arena, i->plugin.config_size + 1);
	r = options_fill(&context, &i->plugin, i->entry->options, config_plugin_keys,
			 l->raw[index]);
	if (r < 0)
		return r;
	i->config = arena_memdup(&l->g->arena, l->raw[index], i->plugin.config_size + 1);
	return configure(l, i, i->config, NULL);
}

static int refuse_off(const struct load *l, const struct chain_instance *i, uint32_t group,
		      const struct node *at, const char *why)
{
	if (at)
		node_error(at, l->d, "%s: %s", i->entry->instance, why);
	else
		diag_error(l->d, policy_group_file(l->g->policy, group), 0, 0, "group %s: %s: %s",
			   policy_group_name(l->g->policy, group), i->entry->instance, why);
	return -EINVAL;
}

static int override_mode(const struct load *l, const struct node *given, bool *monitor)
{
	const struct node *mode = given->kind == NODE_MAP ? node_get(given, "mode") : NULL;
	int word;

	if (!mode)
		return 0;
	if (!node_choice(mode, l->d, modes, &word))
		return -EINVAL;
	*monitor = word == 1;
	return 0;
}

/* What one group makes of one instance. */
static int choose(struct load *l, uint32_t group, size_t index)
{
	struct chain_instance *i = &l->chain->at[index];
	struct choice *choice = &l->choices[group * l->chain->count + index];
	bool off = false;
	const struct node *given =
		policy_group_options(l->g->policy, group, i->entry->instance, &off);

	*choice = (struct choice){.config = i->config, .monitor = i->entry->monitor};
	if (off && i->plugin.kind == BALEEN_GUARD)
		return refuse_off(l, i, group, given,
				  "is a guard, and guards run for every group (expected options)");
	if ((off || given) && i->plugin.kind == BALEEN_SINK)
		return refuse_off(
			l, i, group, given,
			"is a sink and sees the queries of all groups (set its options in "
			"the configuration)");
	if (off) {
		choice->config = NULL;
		return 0;
	}
	if (!given || node_is_null(given))
		return 0;
	struct options_context context = context_of(l, i);
	void *config = arena_alloc(&l->g->arena, i->plugin.config_size + 1);
	int r = options_override(&context, &i->plugin, l->raw[index], given, group_keys, config);
	if (r == 0)
		r = override_mode(l, given, &choice->monitor);
	if (r == 0)
		r = configure(l, i, config, given);
	choice->config = config;
	return r;
}

static baleen_hook *hook_of(const struct baleen_plugin *p, unsigned phase)
{
	baleen_hook *const hooks[CHAIN_PHASES] = {p->on_client, p->on_query, p->on_answer};
	return hooks[phase];
}

/* Flatten: what a phase of a group costs afterwards is exactly its hooks. */
static void flatten(struct load *l, uint32_t group, unsigned phase)
{
	struct chain *c = l->chain;
	struct chain_rows *rows = &c->groups[group].phases[phase];
	const struct choice *choices = &l->choices[group * c->count];
	struct chain_row packed[CONFIG_CHAIN_MAX];

	for (size_t i = 0; i < c->count; i++) {
		const struct chain_instance *p = &c->at[i];
		baleen_hook *hook = hook_of(&p->plugin, phase);
		if (!hook || !choices[i].config)
			continue;
		packed[rows->count++] = (struct chain_row){
			.hook = hook,
			.config = choices[i].config,
			.slot = p->slot,
			.index = (uint8_t)i,
			.flags =
				(uint8_t)((p->plugin.kind == BALEEN_FILTER ? CHAIN_ROW_FILTER : 0) |
					  (choices[i].monitor ? CHAIN_ROW_MONITOR : 0) |
					  (p->entry->on_failure == ON_FAILURE_CLOSED
						   ? CHAIN_ROW_CLOSED
						   : 0)),
		};
	}
	rows->rows = arena_memdup(&l->g->arena, packed, rows->count * sizeof(packed[0]));
	/* The query phase also counts the group and looks at what detectors have blocked. */
	c->groups[group].has[phase] = rows->count || phase == PHASE_QUERY;
}

static void copy_feeds(struct chain *c)
{
	const struct feeds *feeds = &c->generation->config.feeds;

	for (size_t i = 0; i < feeds->count; i++) {
		const struct feed *f = &feeds->items[i];
		c->feeds[i] = (struct baleen_feed){
			.size = sizeof(struct baleen_feed),
			.name = f->name,
			.category = f->category ? f->category : "",
			.threat_type = f->threat_type ? f->threat_type : "",
			.kind = f->kind == FEED_KIND_THREAT ? BALEEN_FEED_THREAT
							    : BALEEN_FEED_BLOCKLIST,
			.shadow = f->mode == FEED_MODE_SHADOW,
			.confidence = (uint8_t)f->confidence,
		};
	}
}

int chain_load(struct generation *g, struct diags *d, struct chain **out)
{
	struct arena *a = &g->arena;
	struct chain *c = arena_alloc(a, sizeof(*c));
	struct load l = {.chain = c, .g = g, .d = d};
	size_t slots = 0;
	int r = 0;

	c->generation = g;
	c->count = g->config.chain_count;
	c->at = arena_alloc(a, (c->count + 1) * sizeof(*c->at));
	c->group_count = g->policy ? policy_group_count(g->policy) : 0;
	c->groups = arena_alloc(a, c->group_count * sizeof(*c->groups));
	c->breakers = g->shm ? shm_breakers(g->shm, g->number)
			     : arena_alloc(a, CONFIG_CHAIN_MAX * sizeof(*c->breakers));
	c->feeds = arena_alloc(a, (g->config.feeds.count + 1) * sizeof(*c->feeds));
	c->metric_feed = arena_alloc(a, (g->config.feeds.count + 1) * sizeof(*c->metric_feed));
	c->metric_group = arena_alloc(a, c->group_count * sizeof(*c->metric_group));
	l.raw = arena_alloc(a, (c->count + 1) * sizeof(*l.raw));
	l.choices = arena_alloc(a, (c->group_count * c->count + 1) * sizeof(*l.choices));
	copy_feeds(c);

	for (size_t i = 0; i < c->count; i++)
		c->at[i].entry = &g->config.chain[i];
	for (size_t i = 0; i < c->count; i++)
		if (load_instance(&l, i, &slots) < 0)
			r = -EINVAL;
	/* Without its plugin a group's options cannot be judged. */
	for (uint32_t group = 0; group < c->group_count; group++)
		for (size_t i = 0; i < c->count; i++)
			if (c->at[i].config && choose(&l, group, i) < 0)
				r = -EINVAL;
	if (r < 0 || !g->policy)
		return -EINVAL;
	for (uint32_t group = 0; group < c->group_count; group++)
		for (unsigned phase = 0; phase < CHAIN_PHASES; phase++)
			flatten(&l, group, phase);
	c->slot_bytes = slots;
	for (size_t i = 0; i < c->count; i++)
		c->at[i].host.loading = false;
	chain_metrics_register(c);
	*out = c;
	return 0;
}

size_t chain_count(const struct chain *c)
{
	return c->count;
}

const char *chain_instance(const struct chain *c, size_t index)
{
	return c->at[index].entry->instance;
}

const struct baleen_plugin *chain_plugin(const struct chain *c, size_t index)
{
	return &c->at[index].plugin;
}

const char *chain_path(const struct chain *c, size_t index)
{
	return c->at[index].path;
}

bool chain_is_monitor(const struct chain *c, size_t index)
{
	return c->at[index].entry->monitor;
}

void chain_outputs(const struct chain *c, chain_output *each, void *context)
{
	for (size_t i = 0; i < c->count; i++)
		options_outputs(&c->at[i].plugin, c->at[i].config, each, context);
}
