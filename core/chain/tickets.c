/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of tickets of one worker.
 *
 *   free -> held (inside the hook) -> parked -> ready -> free, and path_resume
 *                  \-> ready in the hook -> free, and the chain goes on at once
 *
 * A ticket's number is serial << 16 | index; the serial never comes back, so an old number finds
 * nothing. Invariant: path_resume is called exactly once for each tickets_park that returned true
 * and was not dropped.
 */
#include "core/chain/tickets.h"

#include "core/chain/keep.h"
#include "core/dns/path.h"
#include "core/query.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum ticket_state { TICKET_FREE, TICKET_HELD, TICKET_PARKED, TICKET_READY };

struct ticket {
	uint64_t number;
	struct query *query;
	struct event *timer; /* made once, kept */
	struct tickets *table;
	enum ticket_state state;
	uint8_t late;
	uint16_t next_free;
};

struct tickets {
	struct event_base *loop;
	uint64_t serial;
	uint16_t free; /* list; TICKETS_MAX: empty */
	struct ticket at[TICKETS_MAX];
};

_Static_assert(TICKETS_MAX < 0xffff, "the index has sixteen bits");

struct tickets *tickets_new(struct event_base *loop)
{
	struct tickets *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->loop = loop;
	for (unsigned i = 0; i < TICKETS_MAX; i++)
		t->at[i].next_free = (uint16_t)(i + 1);
	return t;
}

void tickets_free(struct tickets *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < TICKETS_MAX; i++)
		if (t->at[i].timer)
			event_free(t->at[i].timer);
	free(t);
}

static void release(struct ticket *k)
{
	struct tickets *t = k->table;

	event_del(k->timer);
	k->query->ticket = 0;
	k->query = NULL;
	k->number = 0;
	k->state = TICKET_FREE;
	k->next_free = t->free;
	t->free = (uint16_t)(k - t->at);
}

/* In the loop: the time is over, or somebody resumed it. */
static void on_ready(evutil_socket_t fd, short what, void *context)
{
	struct ticket *k = context;
	struct query *q = k->query;

	(void)fd;
	(void)what;
	if (k->state == TICKET_PARKED) {
		q->resumed_verdict = k->late;
		q->resumed_why = (struct baleen_why){.size = sizeof(struct baleen_why),
						     .rule = BALEEN_NONE,
						     .feed = BALEEN_NONE};
	} else if (k->state != TICKET_READY) {
		return;
	}
	q->resumed = true;
	release(k);
	path_resume(q);
}

uint64_t tickets_take(struct tickets *t, struct query *q, uint32_t timeout_ms,
		      enum baleen_verdict late)
{
	if (q->ticket || t->free == TICKETS_MAX)
		return 0;
	struct ticket *k = &t->at[t->free];
	if (!k->timer)
		k->timer = event_new(t->loop, -1, 0, on_ready, k);
	if (!k->timer)
		return 0;
	if (timeout_ms > TICKETS_TIMEOUT_MAX_MS)
		timeout_ms = TICKETS_TIMEOUT_MAX_MS;
	const struct timeval after = {.tv_sec = timeout_ms / 1000,
				      .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000};
	if (event_add(k->timer, &after) < 0)
		return 0;
	t->free = k->next_free;
	k->table = t;
	k->number = ++t->serial << 16 | (uint64_t)(k - t->at);
	k->query = q;
	k->state = TICKET_HELD;
	k->late = (uint8_t)late;
	q->ticket = k->number;
	return k->number;
}

static struct ticket *find(struct tickets *t, uint64_t number)
{
	unsigned index = number & 0xffff;
	if (!number || index >= TICKETS_MAX || t->at[index].number != number)
		return NULL;
	return &t->at[index];
}

bool tickets_park(struct tickets *t, struct query *q)
{
	struct ticket *k = find(t, q->ticket);
	if (k->state == TICKET_READY) {
		q->resumed = true;
		release(k);
		return false;
	}
	k->state = TICKET_PARKED;
	return true;
}

void tickets_drop(struct tickets *t, struct query *q)
{
	struct ticket *k = find(t, q->ticket);
	if (k)
		release(k);
}

bool tickets_resume(struct tickets *t, uint64_t ticket, enum baleen_verdict verdict,
		    const struct baleen_why *why)
{
	struct ticket *k = find(t, ticket);

	if (!k || k->state == TICKET_READY)
		return false;
	struct query *q = k->query;
	q->resumed_verdict = (uint8_t)verdict;
	if (!keep_why(q, why, &q->resumed_why))
		q->resumed_verdict = BALEEN_FAIL;
	if (k->state == TICKET_PARKED)
		event_active(k->timer, EV_TIMEOUT, 0);
	k->state = TICKET_READY;
	return true;
}
