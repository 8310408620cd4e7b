/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a query: chain, cache, upstream, chain again. Worker process; owns the slots that
 * queries stand in. Invariant: every query that path_begin let in is finished exactly once, by one
 * of the path_reply_* functions, and policy has run on it before anything is looked up.
 */
#include "core/dns/path.h"

#include "base/clock.h"
#include "base/hash.h"
#include "core/chain/chain.h"
#include "core/dns/listen_tcp.h"
#include "core/dns/listen_udp.h"
#include "core/dns/path_internal.h"
#include "core/dns/set_adopt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_A_BLOCK 64
#define TICK_MS	      500
#define RETRY_TICKS   20

enum step { STEP_ON, STEP_AGAIN, STEP_WAIT, STEP_OVER };

static void look_up(struct path_query *pq);

/* ---- slots ---- */

static bool slots_grow(struct path *p)
{
	if (p->slots >= PATH_SLOTS_MAX)
		return false;
	struct path_query *block = calloc(SLOTS_A_BLOCK, sizeof(*block));
	if (!block)
		return false;
	p->blocks[p->block_count++] = block;
	p->slots += SLOTS_A_BLOCK;
	for (unsigned i = 0; i < SLOTS_A_BLOCK; i++)
		path_slot_free(p, &block[i]);
	return true;
}

struct path_query *path_slot(struct path *p)
{
	struct path_query *pq = p->free;

	if (!pq) {
		if (!slots_grow(p))
			return NULL;
		pq = p->free;
	}
	p->free = pq->next_free;
	return pq;
}

void path_slot_free(struct path *p, struct path_query *pq)
{
	pq->next_free = p->free;
	p->free = pq;
}

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

static void forget_decision(struct query *q)
{
	q->verdict = EVENT_ALLOW;
	q->decided_by = EVENT_NO_PLUGIN;
	q->why = (struct baleen_why){.size = sizeof(q->why),
				     .rule = BALEEN_NONE,
				     .feed = BALEEN_NONE};
	q->match.length = 0;
	q->target.length = 0;
	q->policy_answer = NULL;
}

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
	forget_decision(q);
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
			forget_decision(q);
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

static void on_upstream(struct query *q, const struct upstream_result *result)
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

static bool on_late(struct query *q)
{
	path_tick(q->worker->path);
	return serve_stale((struct path_query *)q);
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
				look_up(pq);
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

/* ---- life ---- */

static void on_settle(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	path_settle(context);
}

/* A worker that nobody asks takes up a new set as well, and lets go of the old one. */
static void on_tick(evutil_socket_t fd, short what, void *context)
{
	struct path *p = context;

	(void)fd;
	(void)what;
	if (++p->ticks % RETRY_TICKS == 0)
		set_retry(p->worker);
	set_adopt(p->worker);
}

int path_init(struct worker *w, char error[256])
{
	struct path *p = calloc(1, sizeof(*p));
	size_t cache_size = 0;
	void *cache_memory = shm_cache(w->shm, &cache_size);
	int r = -ENOMEM;

	if (!p)
		goto fail;
	w->path = p;
	p->worker = w;
	p->chain = w->generation->chain;
	client_memo_init(&p->clients);
	event_assign(&p->settle, w->base, -1, 0, on_settle, p);
	event_assign(&p->tick, w->base, -1, EV_PERSIST, on_tick, p);
	p->view = answer_view_new();
	p->blocks = calloc(PATH_SLOTS_MAX / SLOTS_A_BLOCK, sizeof(*p->blocks));
	w->cache = cache_open(cache_memory, cache_size, w->slot, w->generation->config.stale_s);
	if (!p->view || !p->blocks || !w->cache)
		goto fail;
	r = upstreams_new(w, on_upstream, on_late, &w->upstreams);
	if (r < 0)
		goto fail;
	r = udp_listeners_new(w, &w->udp);
	if (r < 0)
		goto fail;
	r = tcp_listeners_new(w, &w->tcp);
	if (r < 0)
		goto fail;
	return 0;

fail:
	snprintf(error, 256, "DNS path: %s", strerror(-r));
	path_fini(w);
	return r;
}

void path_start(struct worker *w)
{
	struct timeval every = {.tv_usec = TICK_MS * 1000};

	set_adopt(w);
	evtimer_add(&w->path->tick, &every);
	udp_listeners_start(w->udp);
	tcp_listeners_start(w->tcp);
}

static void on_drain(evutil_socket_t fd, short what, void *context)
{
	struct path *p = context;
	struct worker *w = p->worker;
	struct timeval again = {.tv_usec = 5000};

	(void)fd;
	(void)what;
	bool done = !w->parked && !p->finished_count && tcp_listeners_idle(w->tcp);
	if (!done && clock_monotonic_ms() < p->drain_until_ms) {
		evtimer_add(&p->drain_timer, &again);
		return;
	}
	path_settle(p);
	p->idle(w);
}

void path_drain(struct worker *w, unsigned limit_ms, void (*idle)(struct worker *w))
{
	struct path *p = w->path;
	struct timeval soon = {.tv_usec = 0};

	if (p->idle)
		return; /* once is enough */
	w->draining = true;
	p->idle = idle;
	p->drain_until_ms = clock_monotonic_ms() + limit_ms;
	udp_listeners_stop(w->udp);
	tcp_listeners_drain(w->tcp);
	event_assign(&p->drain_timer, w->base, -1, 0, on_drain, p);
	evtimer_add(&p->drain_timer, &soon);
}

void path_fini(struct worker *w)
{
	struct path *p = w->path;

	if (!p)
		return;
	if (p->idle)
		event_del(&p->drain_timer);
	event_del(&p->settle);
	event_del(&p->tick);
	tcp_listeners_free(w->tcp);
	udp_listeners_free(w->udp);
	upstreams_free(w->upstreams);
	cache_close(w->cache);
	set_close_all(w);
	answer_view_free(p->view);
	for (size_t i = 0; i < p->block_count; i++) {
		for (unsigned k = 0; k < SLOTS_A_BLOCK; k++)
			free(p->blocks[i][k].held.message);
		free(p->blocks[i]);
	}
	free(p->blocks);
	free(p);
	w->path = NULL;
	w->tcp = NULL;
	w->udp = NULL;
	w->upstreams = NULL;
	w->cache = NULL;
}
