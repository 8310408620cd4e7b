/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain's inside, for core/chain/ alone. Built once in the template, shared by fork; what a
 * process adds at its start (memory, counters, loop) stands under "this process".
 *
 *   groups[group].phases[phase] -> packed rows, one per hook that this group has there
 */
#ifndef BALEEN_CORE_CHAIN_CHAIN_INTERNAL_H
#define BALEEN_CORE_CHAIN_CHAIN_INTERNAL_H

#include "base/log.h"
#include "core/chain/chain.h"
#include "core/chain/host.h"
#include "core/config.h"
#include "core/shm.h"

#define CHAIN_PHASES	3 /* client, query, answer */
#define CHAIN_NO_METRIC SHM_METRICS_MAX

enum {
	CHAIN_ROW_FILTER = 1,  /* skipped after ALLOW */
	CHAIN_ROW_MONITOR = 2, /* verdicts are only recorded */
	CHAIN_ROW_CLOSED = 4,  /* on-failure: closed */
};

struct chain_row {
	baleen_hook *hook;
	const void *config;
	uint16_t slot; /* offset into query.slots */
	uint8_t index; /* of the instance */
	uint8_t flags;
};

struct chain_rows {
	const struct chain_row *rows;
	size_t count;
};

struct chain_group {
	struct chain_rows phases[CHAIN_PHASES];
	bool has[CHAIN_PHASES]; /* is there anything to run? */
};

struct chain_instance {
	struct host host;
	const struct config_plugin *entry;
	struct baleen_plugin plugin;
	const char *path;
	void *config; /* the base options, configured */
	uint16_t slot;

	/* Metric numbers, CHAIN_NO_METRIC without shm or when it is full. */
	unsigned metric_verdict[BALEEN_VERDICTS];
	unsigned metric_calls; /* sampled ones */
	unsigned metric_nanoseconds;
	unsigned metric_lost; /* sinks: events that could not be written */
	unsigned *metrics;    /* the plugin's own, by row */
	size_t metric_count;

	/* This process. */
	void *worker;
	bool started;
	unsigned calls; /* to time one in 64 */
	struct log_limit complaints;
	struct log_limit failures;
};

struct chain {
	struct generation *generation;
	struct chain_instance *at;
	size_t count;
	struct chain_group *groups;
	size_t group_count;
	size_t slot_bytes; /* all slots together */
	struct shm_breaker *breakers;
	struct baleen_feed *feeds; /* by number */
	unsigned *metric_feed;
	unsigned *metric_group;

	/* This process. */
	struct worker *worker;
	struct event_base *loop;
	_Atomic uint64_t *cells; /* NULL: nobody counts */
	chain_trace *trace;
	void *trace_context;
};

/* A query in a phase: what stands behind the opaque handle. Lives on chain_run's stack. */
struct baleen_handle {
	struct chain *chain;
	struct query *query;
	uint8_t index; /* of the instance whose hook runs */
	bool dry_run;
	/* What the hook asked about cannot be read: FAIL, even if open, is SERVFAIL. */
	bool unjudged;
	/* The policy's outcome that host->policy() gave to this hook. */
	uint32_t rule;
	const struct policy_answer *answer;
};

static inline void chain_count_metric(struct chain *c, unsigned metric, uint64_t add)
{
	if (c->cells && metric < SHM_METRICS_MAX)
		shm_count(c->cells, metric, add);
}

/* Record what a monitored plugin or rule would have done; each only once. */
void chain_would(struct query *q, uint8_t index, enum baleen_verdict verdict, uint32_t rule);

/* chain_metrics.c */
void chain_metrics_register(struct chain *c);
void chain_metrics_begin(struct chain *c); /* a process takes over cells: gauges start at 0 */

#endif
