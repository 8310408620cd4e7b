/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a query: chain, cache, upstream, chain again. Worker process. Invariant: every query
 * that path_begin let in is finished exactly once, by one of the path_reply_* functions, and policy
 * has run on it before anything is looked up.
 */
#include "core/dns/path.h"

#include "base/clock.h"
#include "base/hash.h"
#include "core/chain/chain.h"
#include "core/dns/path_internal.h"
#include "core/dns/set_adopt.h"

#include <stdlib.h>
#include <string.h>

enum step { STEP_ON, STEP_AGAIN, STEP_WAIT, STEP_OVER };

static void look_up(struct path_query *pq);

/* ---- where we are, should we crash ---- */

static void crumb_enter(struct path_query *pq)
{
	struct breadcrumb *crumb = path_of(pq)->worker->crumb;

	crumb->type = pq->q.view.type;
	crumb->name_length = pq->q.view.name_length;
	memcpy(crumb->name, pq->q.name, pq->q.view.name_length);
	atomic_store_explicit(&crumb->hook, CRUMB_CORE, memory_order_release);
}

static void crumb_leave(struct path *p)
{
	atomic_store_explicit(&p->worker->crumb->hook, CRUMB_NONE, memory_order_release);
}

/* ---- waiting ---- */

static uint16_t client_cell(const struct query *q)
{
	return (uint16_t)(hash_bytes(0, q->client, 16) % PATH_CLIENT_CELLS);
}

static void park(struct path_query *pq)
{
	struct path *p = path_of(pq);

	if (pq->parked)
		return;
	pq->parked = true;
	pq->client_cell = client_cell(&pq->q);
	p->parked_by_client[pq->client_cell]++;
	p->worker->parked++;
	set_pin(p->worker, pq->q.set);
}

static void unpark(struct path_query *pq)
{
	struct path *p = path_of(pq);

	if (!pq->parked)
		return;
	pq->parked = false;
	p->parked_by_client[pq->client_cell]--;
	p->worker->parked--;
	set_unpin(p->worker, pq->q.set);
}

/* ---- the chain ---- */

static void keep_decision(struct path_query *pq)
{
	struct query *q = &pq->q;

	pq->decision.verdict = q->verdict;
	pq->decision.decided_by = q->decided_by;
	pq->decision.why = q->why;
	pq->decision.match = q->match;
	pq->decision.target = q->target;
	pq->decision.policy_answer = q->policy_answer;
}

static void take_decision_back(struct path_query *pq)
{
	struct query *q = &pq->q;

	q->verdict = pq->decision.verdict;
	q->decided_by = pq->decision.decided_by;
	q->why = pq->decision.why;
	q->match = pq->decision.match;
	q->target = pq->decision.target;
	q->policy_answer = pq->decision.policy_answer;
}

static void ask_instead(struct path_query *pq, const struct name *target)
{
	struct query *q = &pq->q;

	pq->rewritten[pq->rewrites] = *target;
	pq->rewrite_ttl[pq->rewrites++] = answer_ttl(q);
	memcpy(q->name, target->wire, target->length);
	q->view.name_length = target->length;
	q->view.name_labels = target->labels;
	q->hashes.count = 0;
	q->looked_up = false;
	q->policy_done = false;
	path_key(pq);
}

/*
 * Decisions that are none here: TC over TCP would have the client come back for ever, and a rewrite
 * to where we already are, or one too many, leads nowhere. The chain goes on behind them.
 */
static bool decides_nothing(const struct path_query *pq)
{
	const struct query *q = &pq->q;
	const struct name *target = answer_target(q);

	if (q->verdict == EVENT_TRUNCATE)
		return q->origin.transport == BALEEN_TCP;
	return target && (pq->rewrites == PATH_REWRITES_MAX ||
			  name_equal(target->wire, target->length, q->name, q->view.name_length));
}

/* The chain has decided. */
static enum step decided(struct path_query *pq)
{
	struct query *q = &pq->q;
	const struct name *target = answer_target(q);

	if (!target) {
		path_reply_decided(pq);
		return STEP_OVER;
	}
	struct name copy = *target; /* forget_decision wipes where it may stand */
	if (q->verdict == EVENT_BLOCK) {
		/* The CNAME goes straight from what was asked, whatever lay between. */
		path_restore_question(pq);
		pq->rewrites = 0;
		pq->final = true;
	}
	ask_instead(pq, &copy);
	keep_decision(pq);
	path_forget_decision(q);
	if (!pq->final)
		return STEP_AGAIN;
	look_up(pq);
	return STEP_OVER;
}

static enum step run(struct path_query *pq, const struct baleen_answer *answer)
{
	struct query *q = &pq->q;
	struct chain *chain = path_of(pq)->chain;

	for (;;) {
		unsigned before = q->next;
		if (!chain_has(chain, q->view.group, q->phase))
			return STEP_ON;
		switch (chain_run(chain, q, q->phase, answer, false)) {
		case CHAIN_GO_ON:
			return STEP_ON;
		case CHAIN_WAITING:
			park(pq);
			return STEP_WAIT;
		case CHAIN_DECIDED:
			if (!decides_nothing(pq) || q->next <= before)
				return decided(pq);
			path_forget_decision(q);
		}
	}
}

/* ---- content ---- */

static void fail(struct path_query *pq, uint16_t ede)
{
	if (pq->final) {
		/* Blocked with a CNAME whose target cannot be had: it stays blocked. */
		path_restore_question(pq);
		take_decision_back(pq);
		path_reply_decided(pq);
		return;
	}
	path_reply_servfail(pq, ede);
}

/* Keep content while a hook's ticket is out. Without memory for it the query fails afterwards. */
static void hold(struct path_query *pq, const struct answer_content *content, bool from_cache)
{
	uint8_t *copy = malloc(content->size);

	if (!copy)
		return;
	memcpy(copy, content->message, content->size);
	pq->held = (struct path_held){
		.message = copy,
		.size = content->size,
		.ede = content->ede,
		.from_cache = from_cache,
		.stale = content->stale,
		.changed = content->changed,
	};
}

/* Content whose TTLs are up to date, the question's names in place: answer hooks, then the reply.
 */
static void answer_phase(struct path_query *pq, struct answer_content *content, bool from_cache)
{
	struct path *p = path_of(pq);
	struct query *q = &pq->q;

	if (!pq->final && chain_has(p->chain, q->view.group, PHASE_ANSWER)) {
		/* What cannot be read whole cannot be judged, so it does not pass. */
		if (answer_view_make(p->view, content->message, content->size, from_cache,
				     content->stale) < 0) {
			fail(pq, EDE_INVALID_DATA);
			return;
		}
		content->viewed = true;
		switch (run(pq, &p->view->answer)) {
		case STEP_ON:
			break;
		case STEP_WAIT:
			if (!pq->held.message)
				hold(pq, content, from_cache);
			return;
		default:
			return;
		}
	}
	if (pq->rewrites && q->verdict == EVENT_ALLOW)
		take_decision_back(pq);
	if (pq->final)
		content->ede = answer_ede(q, &content->ede_text);
	path_reply_content(pq, content);
}

static void content_ready(struct path_query *pq, struct answer_content *content, bool from_cache)
{
	if (pq->rewrites) {
		path_restore_question(pq);
		if (!path_combine(pq, content)) {
			fail(pq, EDE_INVALID_DATA);
			return;
		}
	}
	pq->q.phase = PHASE_ANSWER;
	pq->q.next = 0;
	answer_phase(pq, content, from_cache);
}

static void content_from_cache(struct path_query *pq, struct cache_entry *entry, bool stale)
{
	struct answer_content content = {
		.message = entry->message,
		.size = entry->size,
		.stale = stale,
		.ede = entry->ede,
	};

	if (entry->age_s || stale)
		answer_age(entry->message, entry->ttls, entry->ttl_count, entry->age_s, stale);
	if (stale)
		content.ede = (entry->message[3] & MESSAGE_RCODE) == RCODE_NXDOMAIN
				      ? EDE_STALE_NXDOMAIN
				      : EDE_STALE;
	pq->q.cache = stale ? EVENT_CACHE_STALE : EVENT_CACHE_HIT;
	path_count(path_of(pq), stale ? METRIC_CACHE_STALE : METRIC_CACHE_HIT);
	content_ready(pq, &content, true);
}

/* Serve what is over its time, if it is still there. */
static bool serve_stale(struct path_query *pq)
{
	struct path *p = path_of(pq);
	struct cache_entry entry;
	enum cache_result found =
		cache_lookup(p->worker->cache, &pq->key, clock_monotonic_ms(), &entry);

	if (found == CACHE_MISS)
		return false;
	unpark(pq);
	/* Another worker may have fetched it meanwhile. */
	content_from_cache(pq, &entry, found == CACHE_STALE);
	return true;
}

void path_key(struct path_query *pq)
{
	struct query *q = &pq->q;
	struct worker *w = q->worker;

	q->upstream_group = upstreams_group(w->upstreams, q->name, q->view.name_length);
	pq->key = (struct cache_key){
		.name = q->name,
		.group = upstreams_group_identity(w->upstreams, q->upstream_group),
		.type = q->view.type,
		.rrclass = q->view.rrclass,
		.length = q->view.name_length,
		.checking_disabled = q->header_flags & MESSAGE_CD,
		.want_dnssec = q->edns.want_dnssec,
	};
	cache_key_finish(w->cache, &pq->key);
}

static void look_up(struct path_query *pq)
{
	struct path *p = path_of(pq);
	struct worker *w = p->worker;
	struct query *q = &pq->q;
	struct cache_entry entry;
	int64_t now_ms = p->monotonic_us / 1000;
	enum cache_result found = cache_lookup(w->cache, &pq->key, now_ms, &entry);

	if (found == CACHE_HIT) {
		content_from_cache(pq, &entry, false);
		return;
	}
	if (cache_failure_get(w->cache, &pq->key, now_ms)) {
		/* RFC 9520: nobody answered a moment ago; do not join the storm. */
		if (found == CACHE_STALE) {
			content_from_cache(pq, &entry, true);
			return;
		}
		q->cache = EVENT_CACHE_MISS;
		path_count(p, METRIC_CACHE_MISS);
		fail(pq, EDE_NO_REACHABLE_AUTHORITY);
		return;
	}
	q->cache = EVENT_CACHE_MISS;
	path_count(p, METRIC_CACHE_MISS);
	pq->has_stale = found == CACHE_STALE;
	if (p->parked_by_client[client_cell(q)] >= PATH_CLIENT_MAX ||
	    upstreams_ask(w->upstreams, &pq->key, q->upstream_group, q, pq->has_stale) < 0) {
		path_count(p, METRIC_PARKED_SHED);
		fail(pq, EDE_NONE);
		return;
	}
	park(pq);
}

void path_upstream_done(struct query *q, const struct upstream_result *result)
{
	struct path_query *pq = (struct path_query *)q;

	path_tick(path_of(pq));
	if (!result->message && pq->has_stale && serve_stale(pq))
		return;
	unpark(pq);
	if (!result->message) {
		fail(pq, result->ede);
		return;
	}
	struct answer_content content = {
		.message = result->message,
		.size = result->size,
		.ede = result->facts->ede,
	};
	q->upstream_server = result->server;
	struct path *p = path_of(pq);
	crumb_enter(pq);
	content_ready(pq, &content, false);
	crumb_leave(p);
}

bool path_upstream_late(struct query *q)
{
	path_tick(q->worker->path);
	return serve_stale((struct path_query *)q);
}

/* In a batch: fetch the slot that the cache's tags point to, and look when it has come. */
static void look_up_later(struct path_query *pq)
{
	struct path *p = path_of(pq);

	if (!p->in_batch || p->later_count == PATH_LATER_MAX) {
		look_up(pq);
		return;
	}
	cache_fetch(p->worker->cache, &pq->key);
	p->later[p->later_count++] = pq;
}

void path_look_up(struct path *p)
{
	for (unsigned i = 0; i < p->later_count; i++) {
		crumb_enter(p->later[i]);
		look_up(p->later[i]);
		crumb_leave(p);
	}
	p->later_count = 0;
}

/* ---- the way ---- */

static void go(struct path_query *pq)
{
	struct query *q = &pq->q;

	for (;;) {
		if (q->phase == PHASE_ANSWER) {
			struct answer_content content = {
				.message = pq->held.message,
				.size = pq->held.size,
				.stale = pq->held.stale,
				.changed = pq->held.changed,
				.ede = pq->held.ede,
			};
			if (content.message)
				answer_phase(pq, &content, pq->held.from_cache);
			else
				fail(pq, EDE_NONE);
			return;
		}
		switch (run(pq, NULL)) {
		case STEP_ON:
			if (q->phase == PHASE_QUERY) {
				look_up_later(pq);
				return;
			}
			break;
		case STEP_AGAIN:
			break;
		default:
			return;
		}
		q->phase = PHASE_QUERY;
		q->next = 0;
	}
}

void path_continue(struct path_query *pq)
{
	struct path *p = path_of(pq);

	crumb_enter(pq);
	go(pq);
	crumb_leave(p);
}

void path_resume(struct query *q)
{
	struct path_query *pq = (struct path_query *)q;

	path_tick(path_of(pq));
	unpark(pq);
	path_continue(pq);
}
