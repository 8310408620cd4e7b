/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorted, front-coded records on disk: what feed files and the sorter's runs are made of.
 *
 *   varint shared | varint length | key octets behind `shared` | varint flags | varint extra
 *
 * `shared` counts the octets in common with the key before. Numbers are LEB128. Reader and writer
 * each hold one buffer; both keep a CRC32C of all octets. A reader believes nothing: every length
 * is checked, keys must ascend.
 */
#ifndef BALEEN_FEEDS_RECORD_H
#define BALEEN_FEEDS_RECORD_H

#include "base/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct record {
	uint8_t key[KEY_MAX];
	uint16_t key_length;
	uint16_t flags;
	uint64_t extra; /* the caller's: an age, a second set of flags */
};

struct record_writer {
	int fd;
	off_t at; /* where the next flush goes */
	uint8_t *buffer;
	size_t used, room;
	uint32_t crc;
	uint64_t count;
	uint8_t last[KEY_MAX];
	uint16_t last_length;
};

/* Write from `at` on. The descriptor stays the caller's. 0 or -ENOMEM. */
int record_writer_init(struct record_writer *w, int fd, off_t at, size_t buffer_bytes);
void record_writer_fini(struct record_writer *w);
/* Begin a new run where the last ended: the next record shares nothing. */
void record_writer_restart(struct record_writer *w);
/* Keys ascend strictly inside a run (-EILSEQ). */
int record_write(struct record_writer *w, const uint8_t *key, size_t key_length, uint16_t flags,
		 uint64_t extra);
int record_writer_flush(struct record_writer *w);

struct record_reader {
	int fd;
	off_t begin, end, at;
	uint8_t *buffer;
	size_t used, taken, room;
	bool first;
	struct record now; /* the record that record_next read */
};

/* Read the octets from `begin` to `end`. 0 or -ENOMEM. */
int record_reader_init(struct record_reader *r, int fd, off_t begin, off_t end,
		       size_t buffer_bytes);
void record_reader_fini(struct record_reader *r);
void record_reader_rewind(struct record_reader *r);
/* 1 and r->now, 0 at the end, -EBADMSG, -errno. */
int record_next(struct record_reader *r);

/* The smallest of many readers' records: a heap of readers, equal keys in the order of `readers`.
 */
struct record_merge {
	struct record_reader **heap; /* the caller's array, reordered; address order breaks ties */
	size_t count;
};

/* Reads each one's first record. `readers` must point into one array, in order. */
int record_merge_init(struct record_merge *m, struct record_reader **readers, size_t count);
/* NULL at the end. */
static inline struct record_reader *record_merge_top(const struct record_merge *m)
{
	return m->count ? m->heap[0] : NULL;
}
/* Step over the top. 0 or -errno. */
int record_merge_step(struct record_merge *m);

#endif
