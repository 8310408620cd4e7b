/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the path*.c files and the listeners share: the slots that queries stand in, and the steps.
 * Worker process; one thread.
 */
#ifndef BALEEN_CORE_DNS_PATH_INTERNAL_H
#define BALEEN_CORE_DNS_PATH_INTERNAL_H

#include "core/dns/answer.h"
#include "core/dns/answer_view.h"
#include "core/dns/cache.h"
#include "core/dns/client_memo.h"
#include "core/dns/path.h"
#include "core/dns/upstream.h"

#include <event2/event_struct.h>

#define PATH_SLOTS_MAX	  16384 /* queries that may wait at once, a worker */
#define PATH_CLIENT_MAX	  2048	/* of one client (of all that share its cell) */
#define PATH_CLIENT_CELLS 4096
#define PATH_REWRITES_MAX 4
#define PATH_FINISHED_MAX 64
#define PATH_LATER_MAX	  32

/* A decision that waits while its target is looked up. */
struct path_decision {
	enum event_verdict verdict;
	uint8_t decided_by;
	struct baleen_why why;
	struct name match;
	struct name target;
	const struct policy_answer *policy_answer;
};

/* Content that waits for an answer hook's ticket. */
struct path_held {
	uint8_t *message; /* malloc'd; NULL: none */
	size_t size;
	uint16_t ede;
	bool from_cache, stale, changed;
};

struct path_query {
	struct query q; /* first: a struct query * of ours is one of these */
	struct path_query *next_free;
	struct cache_key key;
	uint16_t client_cell;
	bool parked;
	bool has_stale;
	bool final; /* its decision is a block in CNAME form: no hook sees what the target holds */
	uint8_t rewrites;
	uint32_t rewrite_ttl[PATH_REWRITES_MAX];
	struct name rewritten[PATH_REWRITES_MAX]; /* what was asked for instead, in order */
	struct path_decision decision;		  /* of the last rewrite */
	struct path_held held;
};

struct path {
	struct worker *worker;
	struct chain *chain;
	struct answer_view *view;
	struct client_memo clients;

	struct path_query *free;
	struct path_query **blocks; /* for path_fini */
	size_t block_count;
	size_t slots;
	uint16_t parked_by_client[PATH_CLIENT_CELLS];

	/* A batch's queries look into the cache together, behind all of its query hooks; replies
	 * are sent and events written once a batch. */
	bool in_batch;
	struct path_query *later[PATH_LATER_MAX];
	unsigned later_count;
	struct path_query *finished[PATH_FINISHED_MAX];
	unsigned finished_count;
	struct event settle;
	struct event tick;
	unsigned ticks;

	int64_t monotonic_us; /* of the batch at hand */
	int64_t wall_us;

	/* Draining. */
	struct event drain_timer;
	int64_t drain_until_ms;
	void (*idle)(struct worker *w);

	uint8_t reply[MESSAGE_SIZE_MAX];
	uint8_t combined[MESSAGE_SIZE_MAX];
};

/* ---- path_receive.c ---- */

/* A clock reading for what follows. */
void path_tick(struct path *p);

/*
 * Read a packet. A query that is to go on comes back, its cache lines on their way; NULL: it was
 * refused, malformed or ignored, and any reply is on its way.
 */
struct path_query *path_begin(struct path *p, const uint8_t *data, size_t size,
			      const struct query_origin *origin);

/* ---- path.c ---- */

/* Take it from where it stands as far as it goes without waiting. */
void path_continue(struct path_query *pq);

/* The cache look-ups that path_continue has put off in a batch. */
void path_look_up(struct path *p);

/* Fill in pq->key for the name as it stands, and fetch what the look-up will touch. */
void path_key(struct path_query *pq);

/* What upstreams call for a query that waits: its question has ended; it takes long. */
void path_upstream_done(struct query *q, const struct upstream_result *result);
bool path_upstream_late(struct query *q);

/* ---- path_life.c ---- */

struct path_query *path_slot(struct path *p); /* NULL: all are in use */
void path_slot_free(struct path *p, struct path_query *pq);

/* ---- path_reply.c ---- */

/* Room for a reply to that origin. */
uint8_t *path_reply_room(struct path *p, const struct query_origin *origin, size_t *max);
/* Send what was written there; with `size` 0 the origin is told that nothing will come. */
void path_reply_send(struct path *p, const struct query_origin *origin, const uint8_t *data,
		     size_t size);

/* Reply as q's decision says, or with SERVFAIL, or with content; then the query is over. */
void path_reply_decided(struct path_query *pq);
void path_reply_servfail(struct path_query *pq, uint16_t ede);
void path_reply_content(struct path_query *pq, const struct answer_content *content);

/* Send and write down everything that is finished. */
void path_settle(struct path *p);

/* The names as they were asked, after a rewrite. */
void path_restore_question(struct path_query *pq);

/* Content of a rewritten query: the CNAMEs in front of it. False: it does not fit. */
bool path_combine(struct path_query *pq, struct answer_content *content);

static inline struct path *path_of(const struct path_query *pq)
{
	return pq->q.worker->path;
}

/* Nothing has decided (yet). */
static inline void path_forget_decision(struct query *q)
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

static inline void path_count(const struct path *p, enum metric metric)
{
	shm_count(p->worker->cells, metric, 1);
}

#endif
