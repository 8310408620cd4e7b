/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter before the names: a sharded 4-wise binary fuse filter (Graf and Lemire, "Binary Fuse
 * Filters", 2022) with 8-bit fingerprints over the hashes of all names. It may only say "certainly
 * not". And the hash: a name's is made from its parent's, so one walk hashes all suffixes.
 */
#ifndef BALEEN_FEEDS_SET_DOMSET_FILTER_H
#define BALEEN_FEEDS_SET_DOMSET_FILTER_H

#include "feeds/set/domset_layout.h"

#include <stdbool.h>

#define DOMSET_LABEL_PAD 8 /* octets that must be readable behind a hashed label */

static inline uint64_t domset_mix(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/*
 * The hash of `label` + parent. `label` points at the first octet, not at the length; octets is
 * 1..63. The length goes in, or label borders would be ambiguous.
 */
static inline uint64_t domset_hash_label(uint64_t parent, const uint8_t *label, unsigned octets)
{
	uint64_t a, b = 0;
	while (octets > 16) {
		parent = domset_mix(parent ^ domset_load64(label),
				    domset_load64(label + 8) ^ 0xe7037ed1a0b428dbu);
		label += 16;
		octets -= 16;
		b = 0x40;
	}
	b += octets;
	a = domset_load64(label);
	if (octets >= 8)
		b ^= domset_load64(label + octets - 8) << 8 |
		     domset_load64(label + octets - 8) >> 56;
	else
		a &= ((uint64_t)1 << 8 * octets) - 1;
	return domset_mix(a ^ parent, b ^ 0x8ebc6af09c88c6e3u);
}

struct domset_filter_shard {
	const uint8_t *fingerprint;
	uint64_t seed;
	uint32_t segment_octets;
	uint32_t segments_octets;
};

static inline uint32_t domset_shard_of(uint64_t hash, uint32_t shards)
{
	return (uint32_t)((uint64_t)(uint32_t)hash * shards >> 32);
}

struct domset_probe {
	uint32_t at[4];
	uint8_t fingerprint;
};

/* `key` is the name's hash mixed with its shard's seed. */
static inline struct domset_probe domset_probe_of(uint64_t key, uint32_t segment_octets,
						  uint32_t segments_octets)
{
	uint32_t mask = segment_octets - 1;
	uint32_t first = (uint32_t)(((__uint128_t)key * segments_octets) >> 64);
	return (struct domset_probe){
		.at = {first, (first + segment_octets) ^ ((uint32_t)key & mask),
		       (first + 2 * segment_octets) ^ ((uint32_t)(key >> 16) & mask),
		       (first + 3 * segment_octets) ^ ((uint32_t)(key >> 32) & mask)},
		.fingerprint = (uint8_t)(key ^ key >> 32),
	};
}

static inline uint64_t domset_filter_key(uint64_t hash, uint64_t seed)
{
	return domset_mix(hash ^ seed, 0x9e3779b97f4a7c15u);
}

static inline bool domset_filter_has(const struct domset_filter_shard *shards, uint32_t count,
				     uint64_t hash)
{
	const struct domset_filter_shard *s = &shards[domset_shard_of(hash, count)];
	struct domset_probe p = domset_probe_of(domset_filter_key(hash, s->seed), s->segment_octets,
						s->segments_octets);
	const uint8_t *f = s->fingerprint;
	return (uint8_t)(f[p.at[0]] ^ f[p.at[1]] ^ f[p.at[2]] ^ f[p.at[3]]) == p.fingerprint;
}

/* Always inline: gcc finds that a function which only prefetches has no effect, and calls to it go
 * before it is inlined. */
__attribute__((always_inline)) static inline void
domset_filter_prefetch(const struct domset_filter_shard *shards, uint32_t count, uint64_t hash)
{
	const struct domset_filter_shard *s = &shards[domset_shard_of(hash, count)];
	struct domset_probe p = domset_probe_of(domset_filter_key(hash, s->seed), s->segment_octets,
						s->segments_octets);
	for (unsigned i = 0; i < 4; i++)
		__builtin_prefetch(s->fingerprint + p.at[i]);
}

/* A shard as stored, made usable. -EBADMSG if a probe could fall outside. */
int domset_filter_open(const void *value, size_t octets, struct domset_filter_shard *out);

/*
 * Build one shard over `count` hashes (at most 2^20; sorted and made unique when they must be).
 * `*value` is malloc'd: struct domset_shard and the fingerprints. 0, -ENOMEM, or -EIO if no seed
 * works (which does not happen).
 */
int domset_filter_build(uint64_t *hashes, size_t count, uint64_t seed, void **value,
			size_t *octets);

#endif
