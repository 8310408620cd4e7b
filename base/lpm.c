/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Longest prefix match as a sorted table of ranges: prefixes nest, so sweeping over them with a
 * stack cuts the address space into ranges that each have one answer. Built by the loader, read by
 * workers; the arena owns it. Invariant: ranges ascend, do not overlap, and begin at the lowest
 * address of the family, so that every address falls into exactly one.
 *
 *   10.0.0.0/8 = A, 10.1.0.0/16 = B:    0.0.0.0 -   10.0.0.0 A   10.1.0.0 B   10.2.0.0 A   11.0.0.0
 * -
 *
 * A search begins in an index over the bits that tell the ranges apart (those all share are
 * skipped: a site's clients stand close together), and bisects between two of its places.
 */
#include "base/lpm.h"

#include <stdlib.h>
#include <string.h>

#define LPM_INDEX_BITS_MAX 17
#define LPM_INDEX_MIN	   16 /* fewer ranges are bisected without */

static lpm_key lpm_key_of(const struct addr *a)
{
	uint64_t half[2];
	memcpy(half, a->octets, sizeof(half));
	return (lpm_key)__builtin_bswap64(half[0]) << 64 | __builtin_bswap64(half[1]);
}

/* The first key behind the prefix; 0 when it reaches the end of all addresses. */
static lpm_key lpm_end(const struct prefix *p)
{
	if (p->bits == 0)
		return 0;
	return lpm_key_of(&p->addr) + ((lpm_key)1 << (128 - p->bits));
}

/* By address, then shorter first, then as given. */
static int lpm_order(const void *a, const void *b)
{
	const struct lpm_entry *const *x = a, *const *y = b;
	int c = memcmp((*x)->prefix.addr.octets, (*y)->prefix.addr.octets, 16);
	if (c != 0)
		return c;
	if ((*x)->prefix.bits != (*y)->prefix.bits)
		return (*x)->prefix.bits < (*y)->prefix.bits ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

static void lpm_add(struct lpm_table *t, lpm_key start, uint32_t value)
{
	if (t->count > 0 && t->starts[t->count - 1] == start)
		t->count--;
	if (t->count > 0 && t->values[t->count - 1] == value)
		return;
	t->starts[t->count] = start;
	t->values[t->count++] = value;
}

/* Where bit `shift` upwards begins; ranges that differ above it never get into one place. */
static size_t lpm_place(const struct lpm_table *t, lpm_key key)
{
	return (size_t)(key >> t->shift) & (((size_t)1 << t->index_bits) - 1);
}

static void lpm_make_index(struct lpm_table *t, struct arena *a)
{
	if (t->count < LPM_INDEX_MIN)
		return;
	/* The first range begins at the lowest address and says nothing about the others. */
	lpm_key differ = t->starts[1] ^ t->starts[t->count - 1];
	unsigned top = 128;
	while (top > 0 && !(differ >> (top - 1) & 1))
		top--;
	unsigned bits = 0;
	while (bits < LPM_INDEX_BITS_MAX && bits < top && (size_t)1 << bits < 2 * t->count)
		bits++;
	t->index_bits = bits;
	t->shift = top - t->index_bits;
	/* place -> the last range that begins at or before the place's first key. */
	size_t places = (size_t)1 << bits;
	t->index = arena_alloc(a, (places + 1) * sizeof(*t->index));
	size_t at = 0;
	for (size_t place = 0; place < places; place++) {
		while (at + 1 < t->count && (at == 0 || lpm_place(t, t->starts[at]) < place) &&
		       (lpm_place(t, t->starts[at + 1]) < place))
			at++;
		t->index[place] = (uint32_t)at;
	}
	t->index[places] = (uint32_t)(t->count - 1);
}

static void lpm_build_table(struct lpm_table *t, const struct lpm_entry **sorted, size_t count,
			    struct arena *a)
{
	const struct lpm_entry *stack[130];
	size_t depth = 0;
	t->starts = arena_alloc(a, (2 * count + 1) * sizeof(*t->starts));
	t->values = arena_alloc(a, (2 * count + 1) * sizeof(*t->values));
	lpm_add(t, 0, LPM_NONE);
	for (size_t i = 0; i <= count; i++) {
		lpm_key start = i < count ? lpm_key_of(&sorted[i]->prefix.addr) : 0;
		/* Close what ends before this one begins; the one around it goes on. */
		while (depth > 0) {
			lpm_key end = lpm_end(&stack[depth - 1]->prefix);
			if (i < count && (end == 0 || end > start))
				break;
			depth--;
			if (end != 0)
				lpm_add(t, end, depth ? stack[depth - 1]->value : LPM_NONE);
		}
		if (i == count)
			break;
		if (depth > 0 && stack[depth - 1]->prefix.bits == sorted[i]->prefix.bits)
			depth--; /* the same prefix again */
		lpm_add(t, start, sorted[i]->value);
		stack[depth++] = sorted[i];
	}
	lpm_make_index(t, a);
}

void lpm_build(struct lpm *l, const struct lpm_entry *entries, size_t count, struct arena *a)
{
	memset(l, 0, sizeof(*l));
	const struct lpm_entry **sorted =
		arena_alloc(a, (count + 1) * sizeof(const struct lpm_entry *));
	for (int v4 = 0; v4 < 2; v4++) {
		size_t n = 0;
		for (size_t i = 0; i < count; i++)
			if ((addr_is_v4(&entries[i].prefix.addr) && entries[i].prefix.bits >= 96) ==
			    v4)
				sorted[n++] = &entries[i];
		if (n == 0)
			continue;
		qsort(sorted, n, sizeof(const struct lpm_entry *), lpm_order);
		lpm_build_table(v4 ? &l->v4 : &l->v6, sorted, n, a);
	}
}

uint32_t lpm_find(const struct lpm *l, const struct addr *a)
{
	const struct lpm_table *t = addr_is_v4(a) ? &l->v4 : &l->v6;
	if (t->count == 0)
		return LPM_NONE;
	lpm_key key = lpm_key_of(a);
	size_t low = 0, high = t->count - 1;
	if (t->index) {
		/* Outside of what the ranges share: before the second or behind the last. */
		if (key < t->starts[1])
			return t->values[0];
		if (key >= t->starts[high])
			return t->values[high];
		size_t place = lpm_place(t, key);
		low = t->index[place];
		high = t->index[place + 1] + 1 < t->count ? t->index[place + 1] + 1 : high;
	}
	/* The last range that begins at or before the key lies in [low, high]. */
	for (size_t n = high - low + 1; n > 1;) {
		size_t half = n / 2;
		/* Without a branch: which way is as good as random. */
		low += half & -(size_t)(t->starts[low + half] <= key);
		n -= half;
	}
	return t->values[low];
}
