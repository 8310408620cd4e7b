/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain: plugins loaded from private copies, configured, and flattened per group and phase into
 * packed rows, so that an empty phase costs one test. Runs hooks, checks verdicts against the
 * legality table, honours monitor mode, `off`, on-failure, ALLOW for filters, breakers, breadcrumbs
 * and sampled timing (1 call in 64). Built in the template; workers share it.
 */
#ifndef BALEEN_CORE_CHAIN_CHAIN_H
#define BALEEN_CORE_CHAIN_CHAIN_H

#include "baleen/plugin.h"
#include "core/generation.h"
#include "core/query.h"

#include <stdbool.h>
#include <stddef.h>

struct chain;
struct event_base;

/* Load and configure every plugin of config.chain. 0, or -EINVAL with every error in `d`. Without
 * policies (`g->policy` NULL: they have errors) the plugins' own options are checked all the same.
 */
int chain_load(struct generation *g, struct diags *d, struct chain **out);

/* Plugins that only sit in the logger, and those that sit in workers: start them. */
int chain_start_worker(struct chain *c, struct worker *w, struct event_base *loop, char error[256]);
void chain_stop_worker(struct chain *c);
int chain_start_logger(struct chain *c, struct event_base *loop, char error[256]);
void chain_stop_logger(struct chain *c);

/* What the path must do after a phase. */
enum chain_next {
	CHAIN_GO_ON,   /* nothing decided: next step */
	CHAIN_DECIDED, /* q->verdict, q->why, ... say what: answer it */
	CHAIN_WAITING, /* parked: chain_resume will call path_resume(q) */
};

/* Run a phase from q->next on. on_client, on_query; `answer` for PHASE_ANSWER only. */
enum chain_next chain_run(struct chain *c, struct query *q, enum query_phase phase,
			  const struct baleen_answer *answer, bool dry_run);

/* Is there anything to run for the group in that phase? One test. */
bool chain_has(const struct chain *c, uint32_t group, enum query_phase phase);

/* Hand a batch to every sink (logger process). */
void chain_events(struct chain *c, const struct baleen_event *events, size_t count, uint64_t lost);

/* The chain's instances, in order. */
size_t chain_count(const struct chain *c);
const char *chain_instance(const struct chain *c, size_t index);
const struct baleen_plugin *chain_plugin(const struct chain *c, size_t index);
bool chain_is_monitor(const struct chain *c, size_t index);
/* The file that it was loaded from. */
const char *chain_path(const struct chain *c, size_t index);

/* Every path that a plugin will write (BALEEN_OUTPUT), absolute or below the state folder: the
 * logger's sandbox must let them through. */
typedef void chain_output(void *context, const char *path);
void chain_outputs(const struct chain *c, chain_output *each, void *context);

/* "pass", "block", ...; "illegal" for what is none. */
const char *chain_verdict_word(enum baleen_verdict verdict);
/* May a hook of that phase return it? The table of plugin.h. */
bool chain_legal(enum query_phase phase, enum baleen_verdict verdict);

/* For explain: called after each hook of the phase with what it returned (before monitor etc.). */
typedef void chain_trace(void *context, const char *instance, enum query_phase phase,
			 enum baleen_verdict verdict, bool monitor, bool skipped,
			 const struct baleen_why *why);
void chain_set_trace(struct chain *c, chain_trace *each, void *context);

#endif
