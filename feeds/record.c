/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front-coded records, written and read through one buffer each, and the heap that merges them.
 * Runs in the fetcher and in offline commands. Invariant: whatever stands in a file, a reader gives
 * strictly ascending keys of at most KEY_MAX octets, or an error.
 */
#include "feeds/record.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_VARINT_MAX 10
#define RECORD_MAX	  (4 * RECORD_VARINT_MAX + KEY_MAX)

int record_writer_init(struct record_writer *w, int fd, off_t at, size_t buffer_bytes)
{
	*w = (struct record_writer){.fd = fd, .at = at};
	w->room = buffer_bytes > RECORD_MAX ? buffer_bytes : RECORD_MAX;
	w->buffer = malloc(w->room);
	return w->buffer ? 0 : -ENOMEM;
}

void record_writer_fini(struct record_writer *w)
{
	free(w->buffer);
	w->buffer = NULL;
}

void record_writer_restart(struct record_writer *w)
{
	w->last_length = 0;
	w->count = 0;
}

int record_writer_flush(struct record_writer *w)
{
	size_t done = 0;
	while (done < w->used) {
		ssize_t n = pwrite(w->fd, w->buffer + done, w->used - done, w->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
		w->at += n;
	}
	w->crc = hash_crc32c(w->crc, w->buffer, w->used);
	w->used = 0;
	return 0;
}

static uint8_t *record_put(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

int record_write(struct record_writer *w, const uint8_t *key, size_t key_length, uint16_t flags,
		 uint64_t extra)
{
	if (key_length > KEY_MAX ||
	    (w->count > 0 && key_compare(w->last, w->last_length, key, key_length) >= 0))
		return -EILSEQ;
	if (w->room - w->used < RECORD_MAX) {
		int result = record_writer_flush(w);
		if (result < 0)
			return result;
	}
	size_t shared = 0;
	while (shared < key_length && shared < w->last_length && key[shared] == w->last[shared])
		shared++;
	uint8_t *p = w->buffer + w->used;
	p = record_put(p, shared);
	p = record_put(p, key_length - shared);
	memcpy(p, key + shared, key_length - shared);
	p = record_put(p + key_length - shared, flags);
	p = record_put(p, extra);
	w->used = (size_t)(p - w->buffer);
	memcpy(w->last + shared, key + shared, key_length - shared);
	w->last_length = (uint16_t)key_length;
	w->count++;
	return 0;
}

int record_reader_init(struct record_reader *r, int fd, off_t begin, off_t end, size_t buffer_bytes)
{
	*r = (struct record_reader){.fd = fd, .begin = begin, .end = end};
	r->room = buffer_bytes > RECORD_MAX ? buffer_bytes : RECORD_MAX;
	r->buffer = malloc(r->room);
	if (!r->buffer)
		return -ENOMEM;
	record_reader_rewind(r);
	return 0;
}

void record_reader_fini(struct record_reader *r)
{
	free(r->buffer);
	r->buffer = NULL;
}

void record_reader_rewind(struct record_reader *r)
{
	r->at = r->begin;
	r->used = r->taken = 0;
	r->first = true;
	r->now.key_length = 0;
}

/* Have a whole record in the buffer, or all that is left. */
static int record_fill(struct record_reader *r)
{
	if (r->used - r->taken >= RECORD_MAX || r->at == r->end)
		return 0;
	memmove(r->buffer, r->buffer + r->taken, r->used - r->taken);
	r->used -= r->taken;
	r->taken = 0;
	while (r->used < r->room && r->at < r->end) {
		size_t want = r->room - r->used;
		if ((off_t)want > r->end - r->at)
			want = (size_t)(r->end - r->at);
		ssize_t n = pread(r->fd, r->buffer + r->used, want, r->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EBADMSG; /* shorter than its header said */
		r->used += (size_t)n;
		r->at += n;
	}
	return 0;
}

static bool record_get(struct record_reader *r, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 64 && r->taken < r->used; shift += 7) {
		uint8_t octet = r->buffer[r->taken++];
		v |= (uint64_t)(octet & 0x7f) << shift;
		if (!(octet & 0x80)) {
			*out = v;
			return v <= max;
		}
	}
	return false;
}

int record_next(struct record_reader *r)
{
	int result = record_fill(r);
	if (result < 0)
		return result;
	if (r->taken == r->used)
		return 0;
	struct record *now = &r->now;
	uint64_t shared, length, flags, extra;
	if (!record_get(r, now->key_length, &shared) || !record_get(r, KEY_MAX - shared, &length) ||
	    length > r->used - r->taken)
		return -EBADMSG;
	const uint8_t *rest = r->buffer + r->taken;
	/* Ascending: longer than the shared part of the key before, and above it behind that. */
	if (!r->first && (length == 0 || (shared < now->key_length && rest[0] <= now->key[shared])))
		return -EBADMSG;
	memcpy(now->key + shared, rest, length);
	now->key_length = (uint16_t)(shared + length);
	r->taken += length;
	if (!record_get(r, UINT16_MAX, &flags) || !record_get(r, UINT64_MAX, &extra))
		return -EBADMSG;
	now->flags = (uint16_t)flags;
	now->extra = extra;
	r->first = false;
	return 1;
}

static bool record_before(const struct record_reader *a, const struct record_reader *b)
{
	int order = key_compare(a->now.key, a->now.key_length, b->now.key, b->now.key_length);
	return order < 0 || (order == 0 && a < b);
}

static void record_sift(struct record_merge *m, size_t i)
{
	for (;;) {
		size_t least = i;
		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < m->count; child++)
			if (record_before(m->heap[child], m->heap[least]))
				least = child;
		if (least == i)
			return;
		struct record_reader *moved = m->heap[i];
		m->heap[i] = m->heap[least];
		m->heap[least] = moved;
		i = least;
	}
}

int record_merge_init(struct record_merge *m, struct record_reader **readers, size_t count)
{
	m->heap = readers;
	m->count = 0;
	for (size_t i = 0; i < count; i++) {
		int result = record_next(readers[i]);
		if (result < 0)
			return result;
		if (result == 1)
			m->heap[m->count++] = readers[i];
	}
	for (size_t i = m->count / 2; i-- > 0;)
		record_sift(m, i);
	return 0;
}

int record_merge_step(struct record_merge *m)
{
	int result = record_next(m->heap[0]);
	if (result < 0)
		return result;
	if (result == 0)
		m->heap[0] = m->heap[--m->count];
	record_sift(m, 0);
	return 0;
}
