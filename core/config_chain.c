/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `plugins:` of baleen.yaml: the chain's entries and the keys that every plugin takes. A plugin's
 * own options stay nodes. Part of config.c's work, same processes, same arena. Invariant: every
 * entry has an instance name of its own.
 */
#include "core/config_internal.h"

#include <stdio.h>
#include <string.h>

#define CONFIG_CRASHES	   3
#define CONFIG_CRASHES_MAX 1000
#define CONFIG_BREAKER_MS  ((uint64_t)10 * 60 * 1000)
#define CONFIG_BREAKER_MAX ((uint64_t)7 * 24 * 3600 * 1000)
#define CONFIG_PLUGIN_ENDS ".so"

const char *const config_plugin_keys[] = {"name",   "mode",	   "on-failure", "max-crashes",
					  "within", "retry-after", NULL};

static void config_breaker_time(struct config_loader *l, const struct node *n, uint64_t *out)
{
	uint64_t ms;
	if (!node_duration(n, l->d, &ms))
		return;
	if (ms < 1000 || ms > CONFIG_BREAKER_MAX)
		node_error(n, l->d, "%s is out of range (expected 1s to 7d)", n->key);
	else
		*out = ms;
}

static void config_common_keys(struct config_loader *l, struct config_plugin *p,
			       const struct node *options)
{
	static const char *const modes[] = {"enforce", "monitor", NULL};
	static const char *const failures[] = {"open", "closed", NULL};
	int word;
	int64_t number;
	if (node_choice(node_get(options, "mode"), l->d, modes, &word))
		p->monitor = word == 1;
	if (node_choice(node_get(options, "on-failure"), l->d, failures, &word))
		p->on_failure = word == 0 ? ON_FAILURE_OPEN : ON_FAILURE_CLOSED;
	if (node_integer(node_get(options, "max-crashes"), l->d, 1, CONFIG_CRASHES_MAX, &number))
		p->max_crashes = (uint32_t)number;
	config_breaker_time(l, node_get(options, "within"), &p->within_ms);
	config_breaker_time(l, node_get(options, "retry-after"), &p->retry_after_ms);

	const struct node *name = node_get(options, "name");
	if (node_text(name, l->d, &p->instance) && !config_name_is_valid(p->instance))
		node_error(name, l->d,
			   "\"%s\" is no name for a plugin (expected letters, digits, . _ -)",
			   p->instance);
}

/* "plugins/acme.so" is instance "acme". */
static const char *config_default_instance(struct config_loader *l, const char *plugin)
{
	const char *slash = strrchr(plugin, '/');
	const char *word = slash ? slash + 1 : plugin;
	size_t n = strlen(word), ends = strlen(CONFIG_PLUGIN_ENDS);
	if (n > ends && strcmp(word + n - ends, CONFIG_PLUGIN_ENDS) == 0)
		n -= ends;
	return arena_strndup(l->arena, word, n);
}

/* One entry: a word, or a map of one key whose value is the options. */
static void config_chain_entry(struct config_loader *l, const struct node *item)
{
	struct config *c = l->config;
	const struct node *options = NULL;
	const char *plugin;
	if (item->kind == NODE_MAP && item->count == 1) {
		options = item->children;
		plugin = options->key;
		if (node_is_null(options)) {
			options = NULL;
		} else if (options->kind != NODE_MAP) {
			node_error(options, l->d, "options of %s must be a map (%s: {key: value})",
				   plugin, plugin);
			return;
		}
	} else if (item->kind == NODE_SCALAR) {
		if (!node_text(item, l->d, &plugin))
			return;
	} else {
		node_error(item, l->d,
			   "an entry of the chain is one plugin (expected \"- name\" or \"- name: "
			   "{options}\")");
		return;
	}
	if (c->chain_count == CONFIG_CHAIN_MAX) {
		node_error(item, l->d, "too many plugins (at most %d)", CONFIG_CHAIN_MAX);
		return;
	}
	struct config_plugin *p = &c->chain[c->chain_count];
	*p = (struct config_plugin){.plugin = plugin,
				    .options = options,
				    .max_crashes = CONFIG_CRASHES,
				    .within_ms = CONFIG_BREAKER_MS,
				    .retry_after_ms = CONFIG_BREAKER_MS,
				    .line = item->line,
				    .column = item->column};
	p->instance = config_default_instance(l, plugin);
	if (!config_name_is_valid(p->instance))
		node_error(item, l->d, "\"%s\" is no plugin's name", plugin);
	if (options)
		config_common_keys(l, p, options);
	for (size_t i = 0; i < c->chain_count; i++)
		if (strcmp(c->chain[i].instance, p->instance) == 0) {
			node_error(
				item, l->d,
				"\"%s\" is in the chain already, line %d (give one of them a name: "
				"of its own)",
				p->instance, c->chain[i].line);
			return;
		}
	c->chain_count++;
}

void config_load_chain(struct config_loader *l, const struct node *n)
{
	struct config *c = l->config;
	if (node_is_null(n)) {
		c->chain[0] = (struct config_plugin){.plugin = "blocklist",
						     .instance = "blocklist",
						     .max_crashes = CONFIG_CRASHES,
						     .within_ms = CONFIG_BREAKER_MS,
						     .retry_after_ms = CONFIG_BREAKER_MS};
		c->chain_count = 1;
		return;
	}
	if (n->kind != NODE_LIST) {
		node_error(n, l->d, "plugins must be a list (\"- blocklist\")");
		return;
	}
	if (n->count == 0)
		node_warning(n, l->d,
			     "the chain is empty: nothing is filtered and nothing is logged");
	for (const struct node *item = n->children; item; item = item->next)
		config_chain_entry(l, item);
}
