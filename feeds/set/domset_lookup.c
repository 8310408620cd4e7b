/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking a name up, in every worker, for every query: hash all suffixes, ask the filter, and for
 * the few that pass, one descent through the index into one block. Never allocates, never writes
 * (but for the note that a block's CRC was right). Invariant: exact; "not listed" is only ever said
 * by a filter and blocks whose CRCs were right, everything else is `damaged`.
 */
#include "feeds/set/domset_reader.h"

#include <errno.h>

#define AT_BITS		(DOMSET_EXACT | DOMSET_SUBTREE)
#define BELOW_BITS	(DOMSET_SUBTREE | DOMSET_BELOW)
#define PREFETCH_OCTETS 512 /* of a block; most have 300 to 400 */

/* All lines at once: read one after the other they would cost as many cache misses. Always inline:
 * see domset_filter_prefetch. */
__attribute__((always_inline)) static inline void prefetch(const void *data, size_t octets)
{
	for (size_t line = 0; line < octets; line += 64)
		__builtin_prefetch((const uint8_t *)data + line);
}

static const struct domset_leaf *leaf_of(const struct domset *s, uint64_t leaf)
{
	const uint8_t *chunk = s->leaves.data[leaf / DOMSET_LEAVES_PER_CHUNK];
	return (const struct domset_leaf *)(const void *)chunk + leaf % DOMSET_LEAVES_PER_CHUNK;
}

static uint32_t block_at(const struct domset *s, uint64_t block)
{
	return leaf_of(s, block / DOMSET_FANOUT)->at[block % DOMSET_FANOUT];
}

int domset_block_get(const struct domset *s, uint64_t block, struct domset_block *out)
{
	const uint32_t low = (1u << DOMSET_CHUNK_SHIFT) - 1;
	uint32_t at = block_at(s, block), chunk = at >> DOMSET_CHUNK_SHIFT, first = at & low;
	if (chunk >= s->names.count)
		return -EBADMSG;
	uint32_t end = s->names.octets[chunk] - DOMSET_CHUNK_SLACK;
	if (block + 1 < s->header.blocks) {
		uint32_t next = block_at(s, block + 1);
		if (next >> DOMSET_CHUNK_SHIFT == chunk)
			end = (next & low) < end ? next & low : end;
	}
	if (first + DOMSET_BLOCK_HEADER > end)
		return -EBADMSG;
	const uint8_t *data = s->names.data[chunk] + first;
	prefetch(data, end - first < PREFETCH_OCTETS ? end - first : PREFETCH_OCTETS);
	uint64_t bit = (uint64_t)1 << block % 64;
	if (!(s->checked[block / 64] & bit)) {
		uint16_t crc;
		memcpy(&crc, data, sizeof crc);
		if (domset_block_crc(data, end - first) != crc)
			return -EBADMSG;
		s->checked[block / 64] |= bit;
	}
	return domset_block_open(data, end - first, out);
}

/* Ties between cut separators: the last block whose first name is not above the key. */
static int settle(const struct domset *s, uint64_t first_child, uint64_t blocks_per_child,
		  struct domset_search search, const uint8_t *key, size_t octets, uint64_t *out)
{
	uint64_t child = first_child + search.child;
	for (unsigned i = 1; i <= search.unsure; i++) {
		struct domset_block b;
		int order;
		int rc = domset_block_get(s, (first_child + search.child + i) * blocks_per_child,
					  &b);
		if (!rc)
			rc = domset_block_compare_first(&b, s->decoder, key, octets, &order);
		if (rc)
			return rc;
		if (order < 0)
			break;
		child++;
	}
	*out = child;
	return 0;
}

/* The one block that can hold the key. */
static int descend(const struct domset *s, const uint8_t *key, size_t octets, uint64_t *block)
{
	uint64_t node = 0, per_child = 1;
	for (unsigned i = 0; i < s->header.levels; i++)
		per_child *= DOMSET_FANOUT;
	for (unsigned level = s->header.levels;; level--) {
		const struct domset_node *n =
			level ? &s->upper[level - 1][node] : &leaf_of(s, node)->node;
		if (!level)
			prefetch(n, sizeof(struct domset_leaf));
		uint64_t first = node * DOMSET_FANOUT;
		uint64_t there = (s->header.blocks + per_child - 1) / per_child;
		unsigned children =
			there - first < DOMSET_FANOUT ? (unsigned)(there - first) : DOMSET_FANOUT;
		struct domset_search search = domset_node_search(n, children, key, octets);
		node = first + search.child;
		if (search.unsure) {
			int rc = settle(s, first, per_child, search, key, octets, &node);
			if (rc)
				return rc;
		}
		if (!level)
			break;
		per_child /= DOMSET_FANOUT;
	}
	*block = node;
	return 0;
}

static bool suffix_known(const struct domset *s, uint64_t hash)
{
	size_t low = 0, high = s->header.suffixes;
	while (low < high) {
		size_t middle = (low + high) / 2;
		uint64_t v = s->suffixes[middle];
		if (v == hash)
			return true;
		if (v < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* The asked name with room behind it, and where its labels begin. */
struct asked {
	uint8_t at[NAME_LABELS_MAX];
	uint8_t wire[NAME_WIRE_MAX + 1 + DOMSET_LABEL_PAD];
};

static void asked_init(struct asked *a, const uint8_t *wire, size_t length, unsigned labels)
{
	memcpy(a->wire, wire, length);
	memset(a->wire + length, 0, DOMSET_LABEL_PAD);
	size_t at = 0;
	for (unsigned i = 0; i < labels; i++) {
		a->at[i] = (uint8_t)at;
		at += a->wire[at] + 1u;
	}
}

/* By label count from 1: `labels` hashes. */
static void hash_suffixes(const struct domset *s, const struct asked *a, unsigned labels,
			  uint64_t *out)
{
	uint64_t hash = s->header.hash_seed;
	for (unsigned keep = 1; keep <= labels; keep++) {
		const uint8_t *label = a->wire + a->at[labels - keep];
		hash = domset_hash_label(hash, label + 1, label[0]);
		out[keep - 1] = hash;
	}
}

/* Labels of the longest suffix that may be listed; 0: none. */
static unsigned longest_possible(const struct domset *s, const uint64_t *hashes, unsigned labels)
{
	unsigned longest = 0;
	for (unsigned i = 0; i < labels; i++)
		if (__builtin_expect(domset_filter_has(s->shards, s->header.shards, hashes[i]),
				     0) &&
		    !suffix_known(s, hashes[i]))
			longest = i + 1;
	return longest;
}

static void join(struct feedmask *to, const struct feedmask *from)
{
	for (unsigned i = 0; i < FEEDS_MAX / 64; i++)
		to->words[i] |= from->words[i];
}

/* Which feeds match: what each lists, less what it excepts. */
static void decide(const struct domset *s, struct domset_result *out)
{
	struct feedmask sum[4] = {0}; /* plain, except, important, except_important */
	bool ruled = false;
	for (unsigned i = 0; i < out->count; i++) {
		const struct domset_match *m = &out->at[i];
		bool here = m->labels == out->labels;
		const uint64_t *plain = s->masks + 2 * (size_t)s->mask_words * m->combination +
					(here ? 0 : s->mask_words);
		for (unsigned k = 0; k < s->mask_words; k++)
			sum[0].words[k] |= plain[k];
		if (!(s->ruled[m->combination / 64] >> m->combination % 64 & 1))
			continue;
		const struct domset_rules *r = &s->rules[s->rules_of[m->combination]];
		join(&sum[1], here ? &r->except.at : &r->except.below);
		join(&sum[2], here ? &r->important.at : &r->important.below);
		join(&sum[3], here ? &r->except_important.at : &r->except_important.below);
		ruled = true;
	}
	out->feeds = sum[0];
	for (unsigned i = 0; ruled && i < FEEDS_MAX / 64; i++)
		out->feeds.words[i] =
			((sum[0].words[i] & ~sum[1].words[i]) | sum[2].words[i]) & ~sum[3].words[i];
}

/* The hits of a block, by ascending length, as matches by descending length. */
static void put_matches(const struct domset *s, const uint8_t *key, size_t octets,
			const struct domset_hits *hits, struct domset_result *out)
{
	unsigned labels = 0;
	size_t at = 0;
	for (unsigned i = 0; i < hits->count; i++) {
		const struct domset_hit *h = &hits->at[i];
		if (h->octets > octets || h->octets <= at || key[h->octets - 1] ||
		    h->id >= s->header.combinations) {
			out->damaged = true;
			return;
		}
		for (; at < h->octets; at++)
			labels += !key[at];
		out->at[hits->count - 1 - i] = (struct domset_match){(uint8_t)labels, h->id};
	}
	out->count = hits->count;
}

static void search(const struct domset *s, const struct asked *a, size_t length, unsigned labels,
		   unsigned longest, struct domset_result *out)
{
	uint8_t key[KEY_MAX + DOMSET_KEY_PAD];
	struct domset_hits hits;
	struct domset_block b;
	uint64_t block;
	size_t from = a->at[labels - longest];
	size_t octets = key_from_wire(a->wire + from, length - from, longest, key);
	memset(key + octets, 0, DOMSET_KEY_PAD);
	if (!s->header.blocks)
		return;
	int rc = descend(s, key, octets, &block);
	if (!rc)
		rc = domset_block_get(s, block, &b);
	if (!rc)
		rc = domset_block_scan(&b, s->decoder, key, octets, &hits);
	if (rc)
		out->damaged = true;
	else
		put_matches(s, key, octets, &hits, out);
}

static void finish(const struct domset *s, struct domset_result *out)
{
	if (s->header.root)
		out->at[out->count++] = (struct domset_match){0, s->header.root - 1};
	if (out->count)
		decide(s, out);
}

static void begin(unsigned labels, struct domset_result *out)
{
	out->count = 0;
	out->labels = labels;
	out->feeds = (struct feedmask){0};
	out->damaged = false;
}

void domset_lookup(const struct domset *s, const uint8_t *wire, size_t length, unsigned labels,
		   struct domset_result *out)
{
	uint64_t hashes[NAME_LABELS_MAX];
	struct asked a;
	begin(labels, out);
	asked_init(&a, wire, length, labels);
	hash_suffixes(s, &a, labels, hashes);
	unsigned longest = longest_possible(s, hashes, labels);
	if (longest)
		search(s, &a, length, labels, longest, out);
	finish(s, out);
}

void domset_lookup_hashed(const struct domset *s, const uint8_t *wire, size_t length,
			  unsigned labels, const struct domset_hashes *hashes,
			  struct domset_result *out)
{
	struct asked a;
	if (hashes->count != labels) {
		domset_lookup(s, wire, length, labels, out);
		return;
	}
	begin(labels, out);
	unsigned longest = longest_possible(s, hashes->at, labels);
	if (longest) {
		asked_init(&a, wire, length, labels);
		search(s, &a, length, labels, longest, out);
	}
	finish(s, out);
}

void domset_prefetch(const struct domset *s, const uint8_t *wire, size_t length, unsigned labels,
		     struct domset_hashes *out)
{
	struct asked a;
	out->count = 0;
	if (labels > DOMSET_HASHES_MAX)
		return;
	asked_init(&a, wire, length, labels);
	hash_suffixes(s, &a, labels, out->at);
	out->count = labels;
	for (unsigned i = 0; i < labels; i++)
		domset_filter_prefetch(s->shards, s->header.shards, out->at[i]);
}

/* The lowest of the flags that apply to a name at (or below) the listed one. */
static uint16_t applying(uint16_t flags, unsigned shift, bool here)
{
	unsigned bits = flags >> shift & (here ? AT_BITS : BELOW_BITS);
	return (uint16_t)((bits & -bits) << shift);
}

int domset_match_of(const struct domset *s, const struct domset_result *r, unsigned feed,
		    uint16_t *flags)
{
	int plain = -1, important = -1;
	uint16_t plain_flag = 0, important_flag = 0;
	bool excepted = false;
	if (feed >= FEEDS_MAX || !feedmask_has(&r->feeds, feed))
		return -1;
	for (unsigned i = 0; i < r->count; i++) {
		const struct domset_match *m = &r->at[i];
		bool here = m->labels == r->labels;
		size_t count;
		const struct domset_entry *e = domset_combination(s, m->combination, &count);
		for (size_t k = 0; k < count; k++) {
			if (s->feed_numbers[e[k].feed] != feed)
				continue;
			uint16_t flag = applying(e[k].flags, 0, here);
			if (flag && plain < 0) {
				plain = m->labels;
				plain_flag = flag;
			}
			flag = applying(e[k].flags, 6, here);
			if (flag && important < 0) {
				important = m->labels;
				important_flag = flag;
			}
			excepted = excepted || applying(e[k].flags, 3, here);
		}
	}
	/* An exception leaves only what is important. */
	if (important >= plain || excepted) {
		*flags = important_flag;
		return important;
	}
	*flags = plain_flag;
	return plain;
}
