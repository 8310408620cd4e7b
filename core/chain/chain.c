/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running the chain: hooks in order, each verdict checked against the table of plugin.h, and what
 * the configuration says about it applied: monitor, on-failure, breakers. Worker process (and the
 * logger, for sinks; and explain). Invariant: what a plugin returned or wrote into `why` is checked
 * here once, and only then does it stand in the query.
 *
 *   q->next      the row that runs next; while waiting, the row that waits
 *   q->allowed   filters are over
 */
#include "core/chain/chain.h"

#include "base/clock.h"
#include "core/chain/blocks.h"
#include "core/chain/chain_internal.h"
#include "core/chain/keep.h"
#include "core/chain/tickets.h"
#include "core/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN_SAMPLE 64 /* one call in so many is timed */

/* The table of plugin.h, a bit per verdict. */
#define BIT(verdict) (1u << (verdict))
static const unsigned legal[CHAIN_PHASES] = {
	[PHASE_CLIENT] = BIT(BALEEN_PASS) | BIT(BALEEN_BLOCK) | BIT(BALEEN_REFUSE) |
			 BIT(BALEEN_DROP) | BIT(BALEEN_TRUNCATE) | BIT(BALEEN_FAIL),
	[PHASE_QUERY] = BIT(BALEEN_PASS) | BIT(BALEEN_ALLOW) | BIT(BALEEN_BLOCK) |
			BIT(BALEEN_ANSWER) | BIT(BALEEN_REWRITE) | BIT(BALEEN_REFUSE) |
			BIT(BALEEN_DROP) | BIT(BALEEN_TRUNCATE) | BIT(BALEEN_WAIT) |
			BIT(BALEEN_FAIL),
	[PHASE_ANSWER] = BIT(BALEEN_PASS) | BIT(BALEEN_ALLOW) | BIT(BALEEN_BLOCK) |
			 BIT(BALEEN_ANSWER) | BIT(BALEEN_REFUSE) | BIT(BALEEN_DROP) |
			 BIT(BALEEN_TRUNCATE) | BIT(BALEEN_WAIT) | BIT(BALEEN_FAIL),
};

static const enum breadcrumb_hook crumb_hooks[CHAIN_PHASES] = {CRUMB_CLIENT, CRUMB_QUERY,
							       CRUMB_ANSWER};

static const uint8_t event_verdicts[BALEEN_VERDICTS] = {
	[BALEEN_PASS] = EVENT_ALLOW,	  [BALEEN_ALLOW] = EVENT_ALLOW,
	[BALEEN_BLOCK] = EVENT_BLOCK,	  [BALEEN_ANSWER] = EVENT_ANSWER,
	[BALEEN_REWRITE] = EVENT_REWRITE, [BALEEN_REFUSE] = EVENT_REFUSE,
	[BALEEN_DROP] = EVENT_DROP,	  [BALEEN_TRUNCATE] = EVENT_TRUNCATE,
	[BALEEN_WAIT] = EVENT_ERROR,	  [BALEEN_FAIL] = EVENT_ERROR,
};

bool chain_legal(enum query_phase phase, enum baleen_verdict verdict)
{
	return phase < CHAIN_PHASES && (unsigned)verdict < BALEEN_VERDICTS &&
	       legal[phase] & BIT(verdict);
}

/* One run of a phase, on chain_run's stack. */
struct run {
	struct chain *chain;
	struct query *query;
	const struct baleen_answer *answer;
	struct baleen_handle handle;
	struct baleen_why why;
	enum query_phase phase;
};

enum outcome { OUTCOME_NEXT, OUTCOME_DECIDED, OUTCOME_WAITING };

static void why_clear(struct baleen_why *why)
{
	*why = (struct baleen_why){.size = sizeof(*why), .rule = BALEEN_NONE, .feed = BALEEN_NONE};
}

void chain_would(struct query *q, uint8_t index, enum baleen_verdict verdict, uint32_t rule)
{
	for (unsigned i = 0; i < q->would_count; i++)
		if (q->would[i].plugin == index && q->would[i].verdict == verdict &&
		    q->would[i].rule == rule)
			return;
	if (q->would_count == EVENT_WOULD_MAX)
		return;
	q->would[q->would_count].plugin = index;
	q->would[q->would_count].verdict = (uint8_t)verdict;
	q->would[q->would_count++].rule = rule;
}

static void trace(const struct run *r, const struct chain_row *row, enum baleen_verdict verdict,
		  bool skipped)
{
	struct chain *c = r->chain;

	if (c->trace)
		c->trace(c->trace_context, c->at[row->index].entry->instance, r->phase, verdict,
			 row->flags & CHAIN_ROW_MONITOR, skipped, &r->why);
}

/* ---- what a plugin said, checked ---- */

/* Copy a wire name that a plugin gave. False: it is none. */
static bool take_name(struct name *out, const uint8_t *wire, uint8_t length)
{
	unsigned labels;

	out->length = 0;
	if (!wire || !length || name_measure(wire, length, &labels) != length)
		return false;
	name_set(out, wire, length, labels);
	return true;
}

/* The reason for why a verdict cannot stand, or NULL. */
static const char *cannot_stand(const struct run *r, enum baleen_verdict verdict)
{
	const struct baleen_why *why = &r->why;
	struct name target;

	if (!chain_legal(r->phase, verdict))
		return "returned a verdict that is not legal there";
	if (verdict == BALEEN_WAIT && !r->query->ticket)
		return "returned WAIT without a ticket";
	if (verdict == BALEEN_ANSWER && (!why->address || !why->address_count))
		return "returned ANSWER without an address";
	if (verdict == BALEEN_BLOCK && why->form == BALEEN_FORM_ADDRESSES &&
	    !(r->handle.answer && r->handle.rule == why->rule) &&
	    (!why->address || !why->address_count))
		return "blocks with addresses and gives none";
	if ((verdict == BALEEN_REWRITE ||
	     (verdict == BALEEN_BLOCK && why->form == BALEEN_FORM_CNAME)) &&
	    !take_name(&target, why->target, why->target_length))
		return "gives a target that is no name";
	return NULL;
}

/* Put the decision into the query: everything in it bounded, copied, or the plugin's to keep. */
static void decide(struct run *r, uint8_t index, enum baleen_verdict verdict)
{
	struct query *q = r->query;
	const struct generation *g = r->chain->generation;

	q->verdict = event_verdicts[verdict];
	q->decided_by = index;
	q->why = r->why;
	q->why.match =
		take_name(&q->match, r->why.match, r->why.match_length) ? q->match.wire : NULL;
	q->why.match_length = q->match.length;
	q->why.target =
		take_name(&q->target, r->why.target, r->why.target_length) ? q->target.wire : NULL;
	q->why.target_length = q->target.length;
	if (q->why.rule >= policy_rule_count(g->policy))
		q->why.rule = BALEEN_NONE;
	if (q->why.feed >= g->config.feeds.count)
		q->why.feed = BALEEN_NONE;
	if (q->why.hop > BALEEN_HOP_PAYLOAD)
		q->why.hop = BALEEN_HOP_QUESTION;
	if (q->why.form > BALEEN_FORM_ADDRESSES)
		q->why.form = BALEEN_FORM_DEFAULT;
	if (!q->why.category && q->why.feed != BALEEN_NONE &&
	    r->chain->feeds[q->why.feed].category[0])
		q->why.category = r->chain->feeds[q->why.feed].category;
	/* A rule's own answer, if the plugin returned that rule's outcome. */
	q->policy_answer = q->why.rule != BALEEN_NONE && q->why.rule == r->handle.rule
				   ? r->handle.answer
				   : NULL;
}

/*
 * on-failure: open goes on, closed is SERVFAIL. A name that the set cannot tell about is no
 * failure of the plugin, and never passes. A monitored plugin never costs an answer.
 */
static enum outcome failed(struct run *r, const struct chain_row *row)
{
	struct query *q = r->query;

	if (row->flags & CHAIN_ROW_MONITOR ||
	    !(row->flags & CHAIN_ROW_CLOSED || r->handle.unjudged))
		return OUTCOME_NEXT;
	decide(r, row->index, BALEEN_FAIL);
	q->failed_closed = true;
	return OUTCOME_DECIDED;
}

static void complain(struct chain_instance *p, struct log_limit *limit, int64_t now_ms,
		     enum query_phase phase, const char *text)
{
	static const char *const hooks[] = {"on_client", "on_query", "on_answer"};
	uint64_t held;

	if (log_limit(limit, now_ms, &held))
		log_warn("plugin %s: %s %s; on-failure applies (%llu more of these held back)",
			 p->entry->instance, hooks[phase], text, (unsigned long long)held);
}

/* A plugin's verdict, or the one that its ticket brought. */
static enum outcome apply(struct run *r, const struct chain_row *row, enum baleen_verdict verdict)
{
	struct chain *c = r->chain;
	struct query *q = r->query;
	struct chain_instance *p = &c->at[row->index];
	const char *wrong = cannot_stand(r, verdict);

	if (q->ticket && (wrong || verdict != BALEEN_WAIT))
		tickets_drop(c->worker->tickets, q);
	if (wrong) {
		complain(p, &p->complaints, q->view.monotonic_ms, r->phase, wrong);
		verdict = BALEEN_FAIL;
	}
	if (verdict == BALEEN_WAIT) {
		if (tickets_park(c->worker->tickets, q))
			return OUTCOME_WAITING;
		/* Resumed before it came to that. */
		q->resumed = false;
		r->why = q->resumed_why;
		verdict = q->resumed_verdict == BALEEN_WAIT ? BALEEN_FAIL : q->resumed_verdict;
		return apply(r, row, verdict);
	}
	/* Who came over TCP has done what TRUNCATE asks for. */
	if (verdict == BALEEN_TRUNCATE && q->view.transport == BALEEN_TCP)
		verdict = BALEEN_PASS;
	trace(r, row, verdict, false);
	if (verdict == BALEEN_PASS)
		return OUTCOME_NEXT;
	chain_count_metric(c, p->metric_verdict[verdict], 1);
	if (verdict == BALEEN_FAIL) {
		chain_count_metric(c, METRIC_CHAIN_FAILURES, 1);
		if (!wrong)
			complain(p, &p->failures, q->view.monotonic_ms, r->phase,
				 r->why.text ? r->why.text : "could not decide");
	}
	if (row->flags & CHAIN_ROW_MONITOR) {
		chain_would(q, row->index, verdict, r->why.rule);
		return OUTCOME_NEXT;
	}
	switch (verdict) {
	case BALEEN_FAIL:
		return failed(r, row);
	case BALEEN_ALLOW:
		q->allowed = true;
		decide(r, row->index, verdict);
		return OUTCOME_NEXT;
	default:
		decide(r, row->index, verdict);
		return OUTCOME_DECIDED;
	}
}

/* ---- calling ---- */

static enum baleen_verdict call_timed(struct chain *c, struct chain_instance *p, baleen_hook *hook,
				      struct baleen_call *call)
{
	/* Counted per plugin: a chain of four would else time the same one for ever. */
	if (p->calls++ % CHAIN_SAMPLE || !c->cells)
		return hook(call);
	struct timespec before, after;
	clock_gettime(CLOCK_MONOTONIC, &before);
	enum baleen_verdict verdict = hook(call);
	clock_gettime(CLOCK_MONOTONIC, &after);
	int64_t ns = (int64_t)(after.tv_sec - before.tv_sec) * 1000000000 +
		     (after.tv_nsec - before.tv_nsec);
	chain_count_metric(c, p->metric_calls, 1);
	chain_count_metric(c, p->metric_nanoseconds, ns > 0 ? (uint64_t)ns : 0);
	return verdict;
}

static enum baleen_verdict call_hook(struct run *r, const struct chain_row *row)
{
	struct chain *c = r->chain;
	struct query *q = r->query;
	struct chain_instance *p = &c->at[row->index];
	struct breadcrumb *crumb = c->worker->crumb;
	struct baleen_call call = {
		.size = sizeof(call),
		.dry_run = r->handle.dry_run,
		.query = &q->view,
		.answer = r->answer,
		.handle = &r->handle,
		.config = row->config,
		.worker = p->worker,
		.slot = q->slots + row->slot,
		.why = &r->why,
		.host = &p->host.table,
	};

	why_clear(&r->why);
	r->handle.index = row->index;
	r->handle.unjudged = false;
	r->handle.rule = BALEEN_NONE;
	r->handle.answer = NULL;

	/* If the hook does not come back, this is what the supervisor reads. */
	uint32_t outside = atomic_load_explicit(&crumb->hook, memory_order_relaxed);
	uint64_t entered = atomic_load_explicit(&crumb->entered, memory_order_relaxed);
	atomic_store_explicit(&crumb->plugin, row->index, memory_order_relaxed);
	atomic_store_explicit(&crumb->entered, entered + 1, memory_order_relaxed);
	atomic_store_explicit(&crumb->hook, crumb_hooks[r->phase], memory_order_release);
	enum baleen_verdict verdict = call_timed(c, p, row->hook, &call);
	atomic_store_explicit(&crumb->hook, outside, memory_order_release);
	return verdict;
}

/* Out of the chain after too many crashes? Comes back by itself, once, when its time has come. */
static bool broken(struct chain *c, uint8_t index, int64_t now_ms)
{
	struct shm_breaker *b = &c->breakers[index];
	uint32_t open = 1;

	if (!atomic_load_explicit(&b->open, memory_order_relaxed))
		return false;
	if (now_ms < atomic_load_explicit(&b->retry_ms, memory_order_relaxed))
		return true;
	if (atomic_compare_exchange_strong(&b->open, &open, 0)) {
		atomic_store(&b->crashes, 0);
		log_info("plugin %s is back in the chain", c->at[index].entry->instance);
	}
	return false;
}

static enum outcome step(struct run *r, const struct chain_row *row)
{
	struct query *q = r->query;

	if (q->allowed && row->flags & CHAIN_ROW_FILTER) {
		if (r->chain->trace) {
			why_clear(&r->why);
			trace(r, row, BALEEN_PASS, true);
		}
		return OUTCOME_NEXT;
	}
	if (broken(r->chain, row->index, q->view.monotonic_ms)) {
		why_clear(&r->why);
		r->why.text = "out of the chain after crashes";
		trace(r, row, BALEEN_FAIL, true);
		return failed(r, row);
	}
	enum baleen_verdict verdict = call_hook(r, row);
	/* Nearly always; the rest of apply() would find nothing to do. */
	if (verdict == BALEEN_PASS && !q->ticket && !r->chain->trace)
		return OUTCOME_NEXT;
	return apply(r, row, verdict);
}

/* ---- block_for ---- */

static const struct chain_row *row_of(const struct chain_rows *rows, const struct chain *c,
				      const char *instance)
{
	for (size_t i = 0; i < rows->count; i++)
		if (strcmp(c->at[rows->rows[i].index].entry->instance, instance) == 0)
			return &rows->rows[i];
	return NULL;
}

/*
 * Names that a detector blocked, in any worker, act as its BLOCK at the end of the query phase: so
 * an ALLOW undoes a filter's, a group that switched the detector off has none of it, and monitor
 * mode holds.
 */
static enum outcome block_for(struct run *r)
{
	struct chain *c = r->chain;
	struct query *q = r->query;
	struct blocks_hit hit;
	const struct chain_row *row = NULL;

	if (!c->generation->shm ||
	    !blocks_check(c->generation->shm, q->name, q->view.name_length, q->view.name_labels,
			  q->view.group, q->view.monotonic_ms, &hit))
		return OUTCOME_NEXT;
	for (unsigned phase = 0; phase < CHAIN_PHASES && !row; phase++)
		row = row_of(&c->groups[q->view.group].phases[phase], c, hit.plugin);
	if (!row || (q->allowed && row->flags & CHAIN_ROW_FILTER))
		return OUTCOME_NEXT;
	why_clear(&r->why);
	r->handle.rule = BALEEN_NONE;
	size_t skip = name_suffix_offset(q->name, q->view.name_labels, hit.labels);
	r->why.match = q->name + skip;
	r->why.match_length = (uint8_t)(q->view.name_length - skip);
	if (hit.why[0])
		r->why.text = keep_copy(q, hit.why, strlen(hit.why) + 1);
	return apply(r, row, BALEEN_BLOCK);
}

/* ---- a phase ---- */

static void begin(struct chain *c, struct query *q, bool dry_run)
{
	q->chain_begun = true;
	memset(q->slots, 0, c->slot_bytes);
	if (!dry_run)
		chain_count_metric(c, c->metric_group[q->view.group], 1);
}

enum chain_next chain_run(struct chain *c, struct query *q, enum query_phase phase,
			  const struct baleen_answer *answer, bool dry_run)
{
	const struct chain_rows *rows = &c->groups[q->view.group].phases[phase];
	struct run r; /* `why` is cleared before each use */
	enum outcome outcome = OUTCOME_NEXT;
	size_t i = q->next;

	r.chain = c;
	r.query = q;
	r.answer = answer;
	r.phase = phase;
	r.handle = (struct baleen_handle){.chain = c,
					  .query = q,
					  .dry_run = dry_run,
					  .rule = BALEEN_NONE};

	if (!q->chain_begun)
		begin(c, q, dry_run);
	q->phase = phase;
	if (q->resumed && i < rows->count) {
		q->resumed = false;
		r.why = q->resumed_why;
		outcome =
			apply(&r, &rows->rows[i],
			      q->resumed_verdict == BALEEN_WAIT ? BALEEN_FAIL : q->resumed_verdict);
		i++;
	}
	while (outcome == OUTCOME_NEXT && i < rows->count)
		outcome = step(&r, &rows->rows[i++]);
	if (outcome == OUTCOME_NEXT && phase == PHASE_QUERY && i == rows->count) {
		outcome = block_for(&r);
		i++;
	}
	switch (outcome) {
	case OUTCOME_WAITING:
		q->next = (uint8_t)(i - 1);
		return CHAIN_WAITING;
	case OUTCOME_DECIDED:
		q->next = (uint8_t)i;
		return CHAIN_DECIDED;
	default:
		q->next = 0;
		return CHAIN_GO_ON;
	}
}

bool chain_has(const struct chain *c, uint32_t group, enum query_phase phase)
{
	return c->groups[group].has[phase];
}

void chain_set_trace(struct chain *c, chain_trace *each, void *context)
{
	c->trace = each;
	c->trace_context = context;
}

/* ---- processes ---- */

static int start(struct chain *c, bool sinks, struct breadcrumb *crumb, char error[256])
{
	char text[200] = "";

	chain_metrics_begin(c);
	for (size_t i = 0; i < c->count; i++) {
		struct chain_instance *p = &c->at[i];
		if ((p->plugin.kind == BALEEN_SINK) != sinks)
			continue;
		p->worker = calloc(1, p->plugin.worker_size + 1);
		if (!p->worker) {
			snprintf(error, 256, "plugin %s: no memory", p->entry->instance);
			return -ENOMEM;
		}
		if (crumb) {
			atomic_store(&crumb->plugin, (uint32_t)i);
			atomic_store(&crumb->hook, CRUMB_START);
		}
		int r = p->plugin.start ? p->plugin.start(&p->host.table, p->config, p->worker,
							  text, sizeof(text))
					: 0;
		if (crumb)
			atomic_store(&crumb->hook, CRUMB_NONE);
		if (r != 0) {
			text[sizeof(text) - 1] = '\0';
			snprintf(error, 256, "plugin %s: %s", p->entry->instance,
				 text[0] ? text : "does not start");
			return -EIO;
		}
		p->started = true;
	}
	return 0;
}

static void stop(struct chain *c)
{
	for (size_t i = c->count; i-- > 0;) {
		struct chain_instance *p = &c->at[i];
		if (p->started && p->plugin.stop)
			p->plugin.stop(&p->host.table, p->config, p->worker);
		p->started = false;
		free(p->worker);
		p->worker = NULL;
	}
}

int chain_start_worker(struct chain *c, struct worker *w, struct event_base *loop, char error[256])
{
	c->worker = w;
	c->loop = loop;
	c->cells = w->cells;
	if (loop && !w->tickets) {
		w->tickets = tickets_new(loop);
		if (!w->tickets) {
			snprintf(error, 256, "no memory for tickets");
			return -ENOMEM;
		}
	}
	int r = start(c, false, w->crumb, error);
	if (r < 0)
		chain_stop_worker(c);
	return r;
}

void chain_stop_worker(struct chain *c)
{
	stop(c);
	if (c->worker) {
		tickets_free(c->worker->tickets);
		c->worker->tickets = NULL;
	}
	c->worker = NULL;
}

int chain_start_logger(struct chain *c, struct event_base *loop, char error[256])
{
	struct generation *g = c->generation;

	c->loop = loop;
	c->cells = g->shm ? shm_logger_cells(g->shm, g->number) : NULL;
	int r = start(c, true, NULL, error);
	if (r < 0)
		stop(c);
	return r;
}

void chain_stop_logger(struct chain *c)
{
	stop(c);
}

void chain_events(struct chain *c, const struct baleen_event *events, size_t count, uint64_t lost)
{
	for (size_t i = 0; i < c->count; i++) {
		struct chain_instance *p = &c->at[i];
		const struct baleen_batch batch = {
			.size = sizeof(batch),
			.count = (uint32_t)count,
			.events = events,
			.lost = lost,
			.config = p->config,
			.worker = p->worker,
		};
		if (!p->started || !p->plugin.on_events ||
		    p->plugin.on_events(&p->host.table, &batch) == 0)
			continue;
		chain_count_metric(c, p->metric_lost, count);
		uint64_t held;
		if (log_limit(&p->failures, clock_monotonic_ms(), &held))
			log_warn("plugin %s could not write %zu events", p->entry->instance, count);
	}
}
