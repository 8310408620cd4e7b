/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /metrics: every row of the shared table in Prometheus' text format, `baleen_` in front. Rows of
 * one name with different labels stand together, under one HELP and TYPE. Admin process.
 */
#include "core/chain/chain.h"
#include "core/event.h"
#include "core/metrics.h"
#include "core/process/admin.h"
#include "core/ring.h"

#include <stdio.h>
#include <string.h>

static size_t base_length(const char *name)
{
	return strcspn(name, "{");
}

static bool same_base(const char *a, const char *b)
{
	size_t n = base_length(a);
	return n == base_length(b) && memcmp(a, b, n) == 0;
}

static bool is_counter(const char *name)
{
	size_t n = base_length(name);
	return n > 6 && memcmp(name + n - 6, "_total", 6) == 0;
}

/* Counters over all slots, for ever; gauges only of workers that live. */
static int64_t metric_value(struct admin *a, unsigned metric, bool counter)
{
	if (counter)
		return (int64_t)shm_metric_sum(a->shm, metric);
	int64_t sum = 0;
	for (unsigned slot = 0; slot < shm_slots(a->shm); slot++)
		if (shm_breadcrumb(a->shm, slot)->pid)
			sum += (int64_t)shm_cells(a->shm, slot)[metric];
	return sum;
}

/* A plugin's own row: PLUGIN_NAME[_total]. */
static const char *plugin_help(const struct generation *g, const char *name)
{
	for (size_t i = 0; i < chain_count(g->chain); i++) {
		const struct baleen_plugin *p = chain_plugin(g->chain, i);
		for (const struct baleen_metric *m = p->metrics; m && m->name; m++) {
			char full[SHM_METRIC_NAME];
			snprintf(full, sizeof(full), "%s_%s%s", p->name, m->name,
				 m->type == BALEEN_COUNTER ? "_total" : "");
			for (char *c = full; *c; c++)
				if (*c == '-')
					*c = '_';
			if (same_base(name, full))
				return m->help;
		}
	}
	return NULL;
}

/* HELP is one line; a backslash in it is escaped. */
static void put_help(struct evbuffer *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\')
			evbuffer_add(out, "\\\\", 2);
		else
			evbuffer_add(out, *text == '\n' ? " " : text, 1);
	}
}

static void put_family(struct admin *a, struct evbuffer *out, unsigned first, unsigned count)
{
	const char *name = shm_metric_name(a->shm, first);
	int length = (int)base_length(name);
	bool counter = is_counter(name);
	const char *help = metrics_help(name);

	if (!help)
		help = plugin_help(a->generation, name);
	if (help && *help) {
		evbuffer_add_printf(out, "# HELP baleen_%.*s ", length, name);
		put_help(out, help);
		evbuffer_add(out, "\n", 1);
	}
	evbuffer_add_printf(out, "# TYPE baleen_%.*s %s\n", length, name,
			    counter ? "counter" : "gauge");
	for (unsigned i = first; i < count; i++) {
		const char *row = shm_metric_name(a->shm, i);
		if (same_base(name, row))
			evbuffer_add_printf(out, "baleen_%s %lld\n", row,
					    (long long)metric_value(a, i, counter));
	}
}

static bool family_seen(struct admin *a, unsigned metric)
{
	const char *name = shm_metric_name(a->shm, metric);
	for (unsigned i = 0; i < metric; i++)
		if (same_base(shm_metric_name(a->shm, i), name))
			return true;
	return false;
}

static void put_gauge(struct evbuffer *out, const char *name, const char *help, uint64_t value)
{
	evbuffer_add_printf(out, "# HELP baleen_%s %s\n# TYPE baleen_%s gauge\nbaleen_%s %llu\n",
			    name, help, name, name, (unsigned long long)value);
}

void admin_metrics(struct admin *a, struct evbuffer *out)
{
	unsigned count = shm_metric_count(a->shm);
	uint64_t restarts = 0, lost[RING_VERDICTS] = {0};

	for (unsigned i = 0; i < count; i++)
		if (!family_seen(a, i))
			put_family(a, out, i, count);
	for (unsigned i = 0; i < SHM_PROCESSES_MAX; i++) {
		const struct shm_process *p = &shm_processes(a->shm)[i];
		if (p->pid && p->role == ROLE_WORKER)
			restarts += p->restarts;
	}
	put_gauge(out, "generation", "Number of the generation that serves", a->generation->number);
	put_gauge(out, "set_number", "Number of the domain set that is published",
		  atomic_load(shm_set_number(a->shm)));
	put_gauge(out, "worker_restarts", "Restarts of the workers of this generation", restarts);
	for (unsigned slot = 0; slot < shm_slots(a->shm); slot++)
		for (unsigned v = 0; v < RING_VERDICTS; v++)
			lost[v] += ring_lost(shm_ring(a->shm, slot))[v];
	evbuffer_add_printf(out, "# HELP baleen_events_lost_total Events that found a full ring\n"
				 "# TYPE baleen_events_lost_total counter\n");
	for (unsigned v = 0; v < EVENT_VERDICTS; v++)
		evbuffer_add_printf(out, "baleen_events_lost_total{verdict=\"%s\"} %llu\n",
				    event_verdict_words[v], (unsigned long long)lost[v]);
}
