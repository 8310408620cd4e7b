/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External merge sort. Entries collect in one text area with an array of sort items beside it; when
 * either is full they are sorted and written as a run of front-coded records (record.h), all runs
 * into one unlinked file. The end merges the runs. Runs in the fetcher and in `feeds compile`.
 * Invariant: memory is SORT_TEXT + 2 * SORT_ITEMS + SORT_MERGE octets, whatever comes in.
 */
#include "feeds/sort.h"

#include "feeds/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SORT_TEXT  ((size_t)11 << 20)
#define SORT_ITEMS ((size_t)384 << 10) /* 16 octets each; qsort takes as much again */
#define SORT_MERGE ((size_t)8 << 20)
#define SORT_WRITE ((size_t)256 << 10)
#define SORT_RUNS  512

/* Ahead of each key in the text area. */
struct sort_head {
	uint16_t length, flags, cancel;
};

/* The key's first octets, big-endian: most comparisons end here, without touching the text. */
struct sort_item {
	uint64_t prefix;
	uint32_t prefix2;
	uint32_t at;
};

struct sort {
	char *folder;
	uint8_t *text;
	size_t text_used;
	struct sort_item *items;
	size_t count, next;

	int fd; /* the runs, or -1 */
	struct record_writer writer;
	off_t run_ends[SORT_RUNS];
	size_t run_count;

	struct record_reader *readers;
	struct record_reader **heap;
	struct record_merge merge;
	struct record out;
};

int sort_new(const char *folder, struct sort **out)
{
	struct sort *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->fd = -1;
	s->folder = strdup(folder);
	s->text = malloc(SORT_TEXT);
	s->items = malloc(SORT_ITEMS * sizeof(*s->items));
	if (!s->folder || !s->text || !s->items) {
		sort_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void sort_free(struct sort *s)
{
	if (!s)
		return;
	if (s->readers)
		for (size_t i = 0; i < s->run_count; i++)
			record_reader_fini(&s->readers[i]);
	free(s->readers);
	free(s->heap);
	record_writer_fini(&s->writer);
	if (s->fd >= 0)
		close(s->fd);
	free(s->items);
	free(s->text);
	free(s->folder);
	free(s);
}

static struct sort_head sort_head_of(const struct sort *s, const struct sort_item *item)
{
	struct sort_head head;
	memcpy(&head, s->text + item->at, sizeof(head));
	return head;
}

static const uint8_t *sort_key_of(const struct sort *s, const struct sort_item *item)
{
	return s->text + item->at + sizeof(struct sort_head);
}

static int sort_compare(const void *a, const void *b, void *context)
{
	const struct sort_item *x = a, *y = b;
	if (x->prefix != y->prefix)
		return x->prefix < y->prefix ? -1 : 1;
	if (x->prefix2 != y->prefix2)
		return x->prefix2 < y->prefix2 ? -1 : 1;
	const struct sort *s = context;
	return key_compare(sort_key_of(s, x), sort_head_of(s, x).length, sort_key_of(s, y),
			   sort_head_of(s, y).length);
}

/* The next different key of the sorted items, with what all its items say. False at the end. */
static bool sort_group(struct sort *s, const uint8_t **key, struct sort_head *head)
{
	if (s->next == s->count)
		return false;
	const struct sort_item *first = &s->items[s->next++];
	*key = sort_key_of(s, first);
	*head = sort_head_of(s, first);
	while (s->next < s->count && sort_compare(first, &s->items[s->next], s) == 0) {
		struct sort_head more = sort_head_of(s, &s->items[s->next++]);
		head->flags |= more.flags;
		head->cancel |= more.cancel;
	}
	return true;
}

static void sort_memory(struct sort *s)
{
	qsort_r(s->items, s->count, sizeof(*s->items), sort_compare, s);
	s->next = 0;
}

static int sort_open_runs(struct sort *s)
{
	s->fd = open(s->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (s->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		/* No O_TMPFILE on this file system. */
		char *name;
		if (asprintf(&name, "%s/sort.tmp.XXXXXX", s->folder) < 0)
			return -ENOMEM;
		s->fd = mkostemp(name, O_CLOEXEC);
		int error = errno;
		if (s->fd >= 0)
			unlink(name);
		free(name);
		errno = error;
	}
	if (s->fd < 0)
		return -errno;
	return record_writer_init(&s->writer, s->fd, 0, SORT_WRITE);
}

static int sort_spill(struct sort *s)
{
	int result = 0;
	if (s->run_count == SORT_RUNS)
		return -EFBIG;
	if (s->fd < 0)
		result = sort_open_runs(s);
	if (result < 0)
		return result;
	sort_memory(s);
	record_writer_restart(&s->writer);
	const uint8_t *key;
	struct sort_head head;
	while (result == 0 && sort_group(s, &key, &head))
		result = record_write(&s->writer, key, head.length, head.flags, head.cancel);
	if (result == 0)
		result = record_writer_flush(&s->writer);
	s->run_ends[s->run_count++] = s->writer.at;
	s->count = s->next = s->text_used = 0;
	return result;
}

int sort_add(struct sort *s, const uint8_t *key, size_t key_length, uint16_t flags, uint16_t cancel)
{
	struct sort_head head = {(uint16_t)key_length, flags, cancel};
	if (s->count == SORT_ITEMS || SORT_TEXT - s->text_used < sizeof(head) + key_length) {
		int result = sort_spill(s);
		if (result < 0)
			return result;
	}
	uint8_t prefix[12] = {0};
	memcpy(prefix, key, key_length < sizeof(prefix) ? key_length : sizeof(prefix));
	struct sort_item *item = &s->items[s->count++];
	uint64_t high;
	uint32_t low;
	memcpy(&high, prefix, 8);
	memcpy(&low, prefix + 8, 4);
	item->prefix = __builtin_bswap64(high);
	item->prefix2 = __builtin_bswap32(low);
	item->at = (uint32_t)s->text_used;
	memcpy(s->text + s->text_used, &head, sizeof(head));
	memcpy(s->text + s->text_used + sizeof(head), key, key_length);
	s->text_used += sizeof(head) + key_length;
	return 0;
}

int sort_finish(struct sort *s)
{
	if (s->run_count == 0) {
		sort_memory(s);
		return 0;
	}
	int result = s->count ? sort_spill(s) : 0;
	if (result < 0)
		return result;
	/* The merge needs its buffers where the sort had its items. */
	record_writer_fini(&s->writer);
	free(s->items);
	free(s->text);
	s->items = NULL;
	s->text = NULL;
	s->readers = calloc(s->run_count, sizeof(*s->readers));
	s->heap = calloc(s->run_count, sizeof(*s->heap));
	if (!s->readers || !s->heap)
		return -ENOMEM;
	off_t begin = 0;
	for (size_t i = 0; i < s->run_count; i++) {
		result = record_reader_init(&s->readers[i], s->fd, begin, s->run_ends[i],
					    SORT_MERGE / s->run_count);
		if (result < 0)
			return result;
		s->heap[i] = &s->readers[i];
		begin = s->run_ends[i];
	}
	return record_merge_init(&s->merge, s->heap, s->run_count);
}

/* One key over all sources: 1, 0, -errno. */
static int sort_next_key(struct sort *s, const uint8_t **key, struct sort_head *head)
{
	if (s->run_count == 0)
		return sort_group(s, key, head);
	struct record_reader *top = record_merge_top(&s->merge);
	if (!top)
		return 0;
	memcpy(&s->out, &top->now, sizeof(s->out));
	*key = s->out.key;
	*head = (struct sort_head){s->out.key_length, 0, 0};
	do {
		head->flags |= top->now.flags;
		head->cancel |= (uint16_t)top->now.extra;
		int result = record_merge_step(&s->merge);
		if (result < 0)
			return result;
		top = record_merge_top(&s->merge);
	} while (top && key_compare(top->now.key, top->now.key_length, *key, head->length) == 0);
	return 1;
}

int sort_next(struct sort *s, const uint8_t **key, size_t *key_length, uint16_t *flags)
{
	struct sort_head head;
	int result;
	do {
		result = sort_next_key(s, key, &head);
		if (result <= 0)
			return result;
	} while ((head.flags & ~head.cancel) == 0);
	*key_length = head.length;
	*flags = head.flags & (uint16_t)~head.cancel;
	return 1;
}
