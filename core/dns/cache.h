/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer cache: what upstreams said, in memory that all workers share and that survives
 * reloads and crashes. It holds cleaned messages (base/message_build.h), never a verdict.
 *
 *   head | failures[] | class 0: tags[set][8], slots[set][8] | class 1 ... | class 3
 *
 * A class is a set-associative table of slots of one size (256, 512, 1280, 4096 octets). A set's
 * eight tags fill one cache line and say where to look; they are hints. The slot decides: it is
 * guarded by a sequence (odd: being written) and a hash that the writer computed from its private
 * copy, over key, times, offsets and message. Readers copy out, then check both: a torn, stale or
 * hostile slot is a miss, never a spin. Bounded by its memory; an insertion looks at one set.
 */
#ifndef BALEEN_CORE_DNS_CACHE_H
#define BALEEN_CORE_DNS_CACHE_H

#include "base/message_build.h"
#include "base/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_MESSAGE_MAX 4000 /* a larger answer is not kept */

struct cache; /* a process's handle */

/* What an answer depends on. `name` is lower-cased wire and must outlive the key. */
struct cache_key {
	const uint8_t *name;
	uint64_t hash;
	uint32_t group; /* upstream group, by a number that means the same in every generation */
	uint16_t type;
	uint16_t rrclass;
	uint8_t length;
	bool checking_disabled; /* CD */
	bool want_dnssec;	/* DO */
};

struct cache_entry {
	uint8_t *message; /* in the handle's buffer until the next look-up; may be edited */
	size_t size;
	const uint16_t *ttls;
	unsigned ttl_count;
	uint32_t age_s;
	uint16_t ede; /* upstream's, 0: none */
};

enum cache_result {
	CACHE_MISS,
	CACHE_HIT,
	CACHE_STALE, /* over its time, within `stale_s`: for when upstream fails */
};

/*
 * Open the segment's cache for a writer `owner` (0..65534, a worker's slot). Zeroed memory becomes
 * an empty cache. With too little memory (under 64 KiB) everything is a miss. NULL: no memory.
 */
struct cache *cache_open(void *memory, size_t size, unsigned owner, uint32_t stale_s);
void cache_close(struct cache *c);

/* Fill in the hash, and fetch the lines that cache_lookup will touch first. */
void cache_key_finish(const struct cache *c, struct cache_key *key);

/* Later, when those have come: fetch the slot that they point to. */
void cache_fetch(const struct cache *c, const struct cache_key *key);

enum cache_result cache_lookup(struct cache *c, const struct cache_key *key, int64_t now_ms,
			       struct cache_entry *out);

/*
 * Keep a cleaned message for `ttl_s` seconds (0: not at all). 0; -ENOSPC: too large; -EBUSY: the
 * slot is being written by another; `*evicted` is set if a live entry had to go.
 */
int cache_insert(struct cache *c, const struct cache_key *key, const uint8_t *message, size_t size,
		 const struct message_facts *facts, uint32_t ttl_s, int64_t now_ms, bool *evicted);

/* How long an answer may be kept: RFC 2308 for negative ones, 0 without an SOA. */
uint32_t cache_ttl(const struct message_facts *facts);

/* Failures (RFC 9520): a question that no upstream answered is not asked again for a while. */
void cache_failure_set(struct cache *c, const struct cache_key *key, int64_t now_ms,
		       uint32_t for_ms);
bool cache_failure_get(const struct cache *c, const struct cache_key *key, int64_t now_ms);
void cache_failure_clear(struct cache *c, const struct cache_key *key);

/* Drop a name, a subtree, or (name NULL) everything: from any process. Returns how many went. */
size_t cache_flush(void *memory, size_t size, const uint8_t *name, size_t length, bool subtree);

/* A worker was reaped: free the slots that it was writing. Returns how many. */
size_t cache_sweep(void *memory, size_t size, unsigned owner);

struct cache_stats {
	uint64_t octets; /* of the memory */
	uint64_t slots;
	uint64_t used;	      /* not yet past their time */
	uint64_t used_octets; /* of the slots that hold them */
};
void cache_stats(void *memory, size_t size, int64_t now_ms, struct cache_stats *out);

#endif
