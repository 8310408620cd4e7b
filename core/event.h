/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finished query on its way from a worker to the logger: numbers and wire names in the ring
 * (event_write, DNS path), strings in the logger (event_read, through the same generation's
 * tables).
 *
 * The layout is drawn in event.c.
 */
#ifndef BALEEN_CORE_EVENT_H
#define BALEEN_CORE_EVENT_H

#include "baleen/plugin.h"
#include "core/generation.h"
#include "core/ring.h"

#include <stddef.h>
#include <stdint.h>

/* Event verdicts, in the interface's words. */
enum event_verdict {
	EVENT_ALLOW,
	EVENT_BLOCK,
	EVENT_ANSWER,
	EVENT_REWRITE,
	EVENT_REFUSE,
	EVENT_DROP,
	EVENT_TRUNCATE,
	EVENT_ERROR,
	EVENT_VERDICTS
};
extern const char *const event_verdict_words[EVENT_VERDICTS];

enum event_cache { EVENT_CACHE_NONE, EVENT_CACHE_HIT, EVENT_CACHE_MISS, EVENT_CACHE_STALE };

#define EVENT_WOULD_MAX	  4
#define EVENT_NO_PLUGIN	  0xff
#define EVENT_NO_UPSTREAM 0xff

struct query;

/* Encode the finished query into the worker's ring. */
void event_write(struct ring_writer *ring, const struct query *q, unsigned worker);

/* A decoded event with its strings; `storage` backs them. */
struct event_storage;
struct event_storage *event_storage_new(const struct generation *g);
void event_storage_free(struct event_storage *s);
/* Decode one record. Damage: -EBADMSG, nothing is trusted. */
int event_read(struct event_storage *s, const void *record, size_t size, struct baleen_event *out);

/* The JSON object of the interface, keys in its order, strict JSON, without newline. Returns the
 * length; more than `size`: did not fit. */
size_t event_json(const struct baleen_event *event, char *out, size_t size);

#endif
