/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The k-way merge. Runs in the fetcher and in `feeds compile`; owns its open feed files. Invariant:
 * readers lie in one array in feed order, so equal keys come out with their feeds ascending.
 */
#include "feeds/merge.h"

#include "feeds/feedfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MERGE_BUFFERS ((size_t)8 << 20)
#define MERGE_BUFFER  ((size_t)512 << 10)

struct merge {
	struct feedfile *files;
	struct record_reader **heap;
	size_t count;
	struct record_merge merge;
	bool begun;
	uint8_t key[KEY_MAX];
	struct domset_entry entries[FEEDS_MAX];
};

int merge_new(const char *const *paths, size_t count, struct merge **out, size_t *bad)
{
	if (count > FEEDS_MAX)
		return -E2BIG;
	struct merge *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	int result = -ENOMEM;
	m->files = calloc(count + 1, sizeof(*m->files));
	m->heap = calloc(count + 1, sizeof(struct record_reader *));
	if (!m->files || !m->heap)
		goto fail;
	size_t buffer = count ? MERGE_BUFFERS / count : 0;
	if (buffer > MERGE_BUFFER)
		buffer = MERGE_BUFFER;
	for (; m->count < count; m->count++) {
		result = feedfile_open(paths[m->count], buffer, &m->files[m->count]);
		if (result < 0) {
			if (bad)
				*bad = m->count;
			goto fail;
		}
	}
	*out = m;
	return 0;
fail:
	merge_free(m);
	return result;
}

void merge_free(struct merge *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++)
		feedfile_close(&m->files[i]);
	free(m->files);
	free(m->heap);
	free(m);
}

static int merge_rewind(void *context)
{
	struct merge *m = context;
	for (size_t i = 0; i < m->count; i++) {
		record_reader_rewind(&m->files[i].records);
		m->heap[i] = &m->files[i].records;
	}
	m->begun = true;
	return record_merge_init(&m->merge, m->heap, m->count);
}

/* Which of the files a reader belongs to: readers lie inside the files' structs. */
static uint16_t merge_feed_of(const struct merge *m, const struct record_reader *r)
{
	size_t distance = (size_t)((const char *)r - (const char *)&m->files[0].records);
	return (uint16_t)(distance / sizeof(m->files[0]));
}

static int merge_next(void *context, struct domset_record *out)
{
	struct merge *m = context;
	int result = m->begun ? 0 : merge_rewind(m);
	if (result < 0)
		return result;
	struct record_reader *top = record_merge_top(&m->merge);
	if (!top)
		return 0;
	size_t length = top->now.key_length;
	memcpy(m->key, top->now.key, length);
	*out = (struct domset_record){.key = m->key, .key_length = length, .entries = m->entries};
	do {
		m->entries[out->count++] = (struct domset_entry){
			.feed = merge_feed_of(m, top),
			.flags = top->now.flags,
		};
		result = record_merge_step(&m->merge);
		if (result < 0)
			return result;
		top = record_merge_top(&m->merge);
	} while (top && top->now.key_length == length && memcmp(top->now.key, m->key, length) == 0);
	return 1;
}

struct domset_stream merge_stream(struct merge *m)
{
	return (struct domset_stream){.next = merge_next, .rewind = merge_rewind, .context = m};
}
