/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain's metrics: names with labels, found or added in shared memory when the chain is loaded.
 * Template. Without shared memory, or once its table is full, a metric has no number and is not
 * counted; that is said once.
 *
 *   plugin_verdicts_total{plugin="INSTANCE",verdict="block"}
 *   plugin_sampled_calls_total{plugin=...}  plugin_sampled_nanoseconds_total{plugin=...}
 *   plugin_lost_events_total{plugin=...}                       sinks
 *   feed_hits_total{feed="NAME"}  group_queries_total{group="NAME"}
 *   PLUGIN_NAME[_total]{instance="INSTANCE"}                   a plugin's own rows
 */
#include "core/chain/chain_internal.h"

#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const verdict_words[BALEEN_VERDICTS] = {
	"pass", "allow", "block", "answer", "rewrite", "refuse", "drop", "truncate", "wait", "fail",
};

const char *chain_verdict_word(enum baleen_verdict verdict)
{
	return (unsigned)verdict < BALEEN_VERDICTS ? verdict_words[verdict] : "illegal";
}

__attribute__((format(printf, 3, 4))) static unsigned add(struct chain *c, bool *full,
							  const char *format, ...)
{
	char name[SHM_METRIC_NAME];
	va_list ap;

	va_start(ap, format);
	int n = vsnprintf(name, sizeof(name), format, ap);
	va_end(ap);
	unsigned metric = n > 0 && (size_t)n < sizeof(name) ? shm_metric(c->generation->shm, name)
							    : CHAIN_NO_METRIC;
	*full |= metric == CHAIN_NO_METRIC;
	return metric;
}

static void add_own(struct chain *c, struct chain_instance *i, bool *full)
{
	const char *instance = i->entry->instance;
	char plugin[32];

	snprintf(plugin, sizeof(plugin), "%s", i->plugin.name);
	for (char *p = plugin; *p; p++)
		if (*p == '-')
			*p = '_';
	for (size_t m = 0; m < i->metric_count; m++) {
		const struct baleen_metric *row = &i->plugin.metrics[m];
		i->metrics[m] = add(c, full, "%s_%s%s{instance=\"%s\"}", plugin, row->name,
				    row->type == BALEEN_COUNTER ? "_total" : "", instance);
	}
}

/* The table of metrics is bounded: none for a verdict that no hook of the plugin may return. */
static bool can_return(const struct baleen_plugin *p, enum baleen_verdict verdict)
{
	return verdict != BALEEN_WAIT && ((p->on_client && chain_legal(PHASE_CLIENT, verdict)) ||
					  (p->on_query && chain_legal(PHASE_QUERY, verdict)) ||
					  (p->on_answer && chain_legal(PHASE_ANSWER, verdict)));
}

static void add_instance(struct chain *c, struct chain_instance *i, bool *full)
{
	const char *instance = i->entry->instance;

	add_own(c, i, full);
	if (i->plugin.kind == BALEEN_SINK) {
		i->metric_lost = add(c, full, "plugin_lost_events_total{plugin=\"%s\"}", instance);
		return;
	}
	for (unsigned v = BALEEN_ALLOW; v < BALEEN_VERDICTS; v++)
		if (can_return(&i->plugin, v))
			i->metric_verdict[v] =
				add(c, full, "plugin_verdicts_total{plugin=\"%s\",verdict=\"%s\"}",
				    instance, verdict_words[v]);
	i->metric_calls = add(c, full, "plugin_sampled_calls_total{plugin=\"%s\"}", instance);
	i->metric_nanoseconds =
		add(c, full, "plugin_sampled_nanoseconds_total{plugin=\"%s\"}", instance);
}

static void none(struct chain_instance *i)
{
	for (unsigned v = 0; v < BALEEN_VERDICTS; v++)
		i->metric_verdict[v] = CHAIN_NO_METRIC;
	i->metric_calls = i->metric_nanoseconds = i->metric_lost = CHAIN_NO_METRIC;
	for (size_t m = 0; m < i->metric_count; m++)
		i->metrics[m] = CHAIN_NO_METRIC;
}

void chain_metrics_register(struct chain *c)
{
	const struct feeds *feeds = &c->generation->config.feeds;
	const struct policy *policy = c->generation->policy;
	bool full = false;

	for (size_t i = 0; i < c->count; i++)
		none(&c->at[i]);
	for (size_t i = 0; i < feeds->count; i++)
		c->metric_feed[i] = CHAIN_NO_METRIC;
	for (size_t i = 0; i < c->group_count; i++)
		c->metric_group[i] = CHAIN_NO_METRIC;
	if (!c->generation->shm)
		return;
	for (size_t i = 0; i < c->count; i++)
		add_instance(c, &c->at[i], &full);
	for (size_t i = 0; i < feeds->count; i++)
		c->metric_feed[i] =
			add(c, &full, "feed_hits_total{feed=\"%s\"}", feeds->items[i].name);
	for (size_t i = 0; i < c->group_count; i++)
		c->metric_group[i] = add(c, &full, "group_queries_total{group=\"%s\"}",
					 policy_group_name(policy, (uint32_t)i));
	if (full)
		log_warn("the table of metrics is full: some groups or feeds are not counted");
}

void chain_metrics_begin(struct chain *c)
{
	for (size_t i = 0; c->cells && i < c->count; i++) {
		struct chain_instance *p = &c->at[i];
		for (size_t m = 0; m < p->metric_count; m++)
			if (p->plugin.metrics[m].type == BALEEN_GAUGE &&
			    p->metrics[m] < SHM_METRICS_MAX)
				atomic_store_explicit(&c->cells[p->metrics[m]], 0,
						      memory_order_relaxed);
	}
}
