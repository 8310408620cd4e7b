/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interning combinations, in the fetcher. Owns its table and two chunk buffers. Invariant: the
 * number a list gets depends only on the stream, never on addresses or chance.
 */
#include "feeds/set/domset_lists.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

#define LISTS_MAX   ((size_t)1 << 18)
#define ENTRIES_MAX ((size_t)3 << 20) /* 12 MiB */
#define SLOTS	    (LISTS_MAX * 2)

struct list {
	uint32_t first; /* in entries */
	uint32_t count;
	uint32_t id;
	uint64_t uses;
};

struct domset_lists {
	struct list *lists;
	size_t count;
	struct domset_entry *entries;
	size_t entry_count;
	uint32_t *slots; /* list + 1 */
	uint32_t next_id;
	struct domset_chunks chunks;
	struct domset_chunks places;
};

struct domset_lists *domset_lists_new(void)
{
	struct domset_lists *l = calloc(1, sizeof *l);
	if (!l)
		return NULL;
	/* Untouched parts of these cost no memory. */
	l->lists = malloc(LISTS_MAX * sizeof *l->lists);
	l->entries = malloc(ENTRIES_MAX * sizeof *l->entries);
	l->slots = calloc(SLOTS, sizeof *l->slots);
	if (l->lists && l->entries && l->slots)
		return l;
	domset_lists_free(l);
	return NULL;
}

void domset_lists_free(struct domset_lists *l)
{
	if (!l)
		return;
	domset_chunks_fini(&l->chunks);
	domset_chunks_fini(&l->places);
	free(l->lists);
	free(l->entries);
	free(l->slots);
	free(l);
}

/* The slot that holds the list, or the empty one where it would stand. */
static uint32_t *find(struct domset_lists *l, const struct domset_entry *entries, size_t count)
{
	size_t slot = hash_bytes(0, entries, count * sizeof *entries) & (SLOTS - 1);
	for (; l->slots[slot]; slot = (slot + 1) & (SLOTS - 1)) {
		const struct list *known = &l->lists[l->slots[slot] - 1];
		if (known->count == count &&
		    !memcmp(l->entries + known->first, entries, count * sizeof *entries))
			break;
	}
	return &l->slots[slot];
}

int domset_lists_count(struct domset_lists *l, const struct domset_entry *entries, size_t count)
{
	uint32_t *slot = find(l, entries, count);
	if (!*slot) {
		if (l->count == LISTS_MAX || count > ENTRIES_MAX - l->entry_count)
			return 0;
		l->lists[l->count] = (struct list){
			.first = (uint32_t)l->entry_count,
			.count = (uint32_t)count,
		};
		memcpy(l->entries + l->entry_count, entries, count * sizeof *entries);
		l->entry_count += count;
		*slot = (uint32_t)++l->count;
	}
	l->lists[*slot - 1].uses++;
	return 0;
}

static int write_list(struct domset_lists *l, const struct domset_entry *entries, size_t count,
		      uint32_t *id)
{
	uint8_t *to;
	uint32_t at, unused, octets = (uint32_t)count;
	int rc = domset_chunks_reserve(&l->chunks, 4 + count * sizeof *entries, &to, &at);
	if (rc)
		return rc;
	memcpy(to, &octets, 4);
	memcpy(to + 4, entries, count * sizeof *entries);
	rc = domset_chunks_reserve(&l->places, 4, &to, &unused);
	if (rc)
		return rc;
	memcpy(to, &at, 4);
	if (l->next_id == INT32_MAX) /* ids have 31 bits */
		return -EFBIG;
	*id = l->next_id++;
	return 0;
}

struct rank {
	uint64_t uses;
	uint32_t list;
};

static int by_uses(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;
	if (x->uses != y->uses)
		return x->uses < y->uses ? 1 : -1;
	return x->list < y->list ? -1 : x->list > y->list;
}

int domset_lists_rank(struct domset_lists *l, struct domset_file *file)
{
	int rc = domset_chunks_init(&l->chunks, file, DOMSET_LISTS, DOMSET_CHUNK_OCTETS);
	if (!rc)
		rc = domset_chunks_init(&l->places, file, DOMSET_LIST_AT,
					DOMSET_LIST_AT_PER_CHUNK * sizeof(uint32_t));
	struct rank *ranks = malloc((l->count + 1) * sizeof *ranks);
	if (!ranks)
		rc = -ENOMEM;
	for (size_t i = 0; !rc && i < l->count; i++)
		ranks[i] = (struct rank){l->lists[i].uses, (uint32_t)i};
	if (!rc)
		qsort(ranks, l->count, sizeof *ranks, by_uses);
	for (size_t i = 0; !rc && i < l->count; i++) {
		struct list *list = &l->lists[ranks[i].list];
		rc = write_list(l, l->entries + list->first, list->count, &list->id);
	}
	free(ranks);
	return rc;
}

int domset_lists_id(struct domset_lists *l, const struct domset_entry *entries, size_t count,
		    uint32_t *id)
{
	uint32_t *slot = find(l, entries, count);
	if (!*slot)
		return write_list(l, entries, count, id);
	*id = l->lists[*slot - 1].id;
	return 0;
}

int domset_lists_finish(struct domset_lists *l, uint32_t *combinations)
{
	*combinations = l->next_id;
	int rc = domset_chunks_flush(&l->chunks);
	return rc ? rc : domset_chunks_flush(&l->places);
}
