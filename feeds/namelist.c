/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorted names. Runs in the fetcher and in `feeds compile`. Invariant: in key order a name's
 * subtree is one run that begins with the name itself, so one binary search answers for a whole
 * subtree.
 */
#include "feeds/namelist.h"

#include "feeds/set/domset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void namelist_fini(struct namelist *l)
{
	free(l->items);
	*l = (struct namelist){0};
}

int namelist_add(struct namelist *l, const struct name *name, bool zone)
{
	if (l->count == l->room) {
		size_t room = l->room ? l->room * 2 : 64;
		struct namelist_item *grown = realloc(l->items, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		l->items = grown;
		l->room = room;
	}
	struct namelist_item *item = &l->items[l->count++];
	item->length = (uint16_t)key_from_wire(name->wire, name->length, name->labels, item->key);
	item->zone = zone;
	return 0;
}

static int namelist_compare(const void *a, const void *b)
{
	const struct namelist_item *x = a, *y = b;
	return key_compare(x->key, x->length, y->key, y->length);
}

void namelist_sort(struct namelist *l)
{
	if (l->count == 0)
		return;
	qsort(l->items, l->count, sizeof(*l->items), namelist_compare);
	size_t kept = 0;
	for (size_t i = 1; i < l->count; i++) {
		if (namelist_compare(&l->items[kept], &l->items[i]) == 0)
			l->items[kept].zone |= l->items[i].zone;
		else
			l->items[++kept] = l->items[i];
	}
	l->count = kept + 1;
}

static bool namelist_is_under(const struct namelist_item *item, const uint8_t *key, size_t length)
{
	return item->length >= length && memcmp(item->key, key, length) == 0;
}

size_t namelist_taken(const struct namelist *l, const uint8_t *key, size_t key_length,
		      uint16_t flags, size_t *first)
{
	size_t low = 0, high = l->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct namelist_item *item = &l->items[middle];
		if (key_compare(item->key, item->length, key, key_length) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	uint16_t blocks = flags | flags >> 6; /* plain and important ones alike */
	bool itself = low < l->count && l->items[low].length == key_length &&
		      memcmp(l->items[low].key, key, key_length) == 0;
	*first = low;
	size_t end = low;
	if (blocks & (DOMSET_SUBTREE | DOMSET_BELOW))
		while (end < l->count && namelist_is_under(&l->items[end], key, key_length))
			end++;
	else if (itself && blocks & DOMSET_EXACT)
		end++;
	if (itself && end > low && !(blocks & (DOMSET_EXACT | DOMSET_SUBTREE)) &&
	    !l->items[low].zone)
		*first = low + 1;
	return end - *first;
}
