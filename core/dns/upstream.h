/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking upstreams: groups of servers with zones of their own, over UDP with TCP behind it. Equal
 * questions in flight join. A question ends exactly once: with a cleaned message, or failed, within
 * its group's timeout. Worker process.
 */
#ifndef BALEEN_CORE_DNS_UPSTREAM_H
#define BALEEN_CORE_DNS_UPSTREAM_H

#include "base/message_build.h"
#include "core/dns/cache.h"
#include "core/query.h"
#include "core/worker.h"

#include <stdbool.h>
#include <stdint.h>

struct upstreams;

/* How a question ended. Valid during the callback. */
struct upstream_result {
	const uint8_t *message; /* cleaned; NULL: failed */
	size_t size;
	const struct message_facts *facts;
	uint8_t server; /* index in its group, EVENT_NO_UPSTREAM when failed */
	uint16_t ede;	/* why it failed: upstream's own code, or 22, 23 */
};

/* Called for each waiter when its question ends; the waiter is off all lists by then. */
typedef void upstream_done(struct query *q, const struct upstream_result *result);

/* Called for each waiter when RFC 8767's client timer fires and someone had a stale answer in hand.
 * True: it has been answered; false: it waits on. The question goes on for the cache's sake. */
typedef bool upstream_late(struct query *q);

#define UPSTREAM_CLIENT_TIMER_MS 1800 /* RFC 8767 section 5 */

int upstreams_new(struct worker *w, upstream_done *done, upstream_late *late,
		  struct upstreams **out);
void upstreams_free(struct upstreams *u);

/* The group whose zone is the most specific one above `name` (lower-cased wire). */
uint8_t upstreams_group(const struct upstreams *u, const uint8_t *name, size_t length);
/* A number for the group's servers and zones that means the same in every generation and process:
 * part of the cache key. */
uint32_t upstreams_group_identity(const struct upstreams *u, uint8_t group);

/*
 * Ask for key->name; `q` waits (through q->parked_next) for done or late.
 * 0; -ENOBUFS: too much is in flight, nobody will be called.
 */
int upstreams_ask(struct upstreams *u, const struct cache_key *key, uint8_t group, struct query *q,
		  bool has_stale);

#endif
