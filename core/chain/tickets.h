/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets: a query that a plugin makes wait. A ticket is a number that holds nothing alive: it is
 * good for one resumption, by the plugin or by its time-out, and afterwards nobody's. The query
 * goes on from the event loop, never from inside a hook. One table a worker, bounded.
 */
#ifndef BALEEN_CORE_CHAIN_TICKETS_H
#define BALEEN_CORE_CHAIN_TICKETS_H

#include "baleen/plugin.h"

#include <stdbool.h>
#include <stdint.h>

#define TICKETS_MAX	       4096
#define TICKETS_TIMEOUT_MAX_MS 30000

struct event_base;
struct query;
struct tickets;

struct tickets *tickets_new(struct event_base *loop);
void tickets_free(struct tickets *t);

/* For q, whose hook is running: the ticket, also in q->ticket, or 0 (table full, or q has one). */
uint64_t tickets_take(struct tickets *t, struct query *q, uint32_t timeout_ms,
		      enum baleen_verdict late);

/* The hook has returned WAIT. True: parked, path_resume(q) will be called once. False: the plugin
 * has resumed it already, inside its hook; q->resumed is set, go on. */
bool tickets_park(struct tickets *t, struct query *q);

/* The query needs its ticket no more (the hook returned something else, or the query is shed). */
void tickets_drop(struct tickets *t, struct query *q);

/* True if this was the one resumption. */
bool tickets_resume(struct tickets *t, uint64_t ticket, enum baleen_verdict verdict,
		    const struct baleen_why *why);

#endif
