/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event ring in shared memory: one worker writes records, one logger reads them. Records are
 * contiguous octets, length first, 8-aligned. When the ring is three quarters full it takes only
 * records marked important (everything that is not a plain allow); what does not fit is counted by
 * verdict. The reader trusts nothing: it copies out and checks length and checksum.
 * The writer makes no system call; the reader polls.
 */
#ifndef BALEEN_CORE_RING_H
#define BALEEN_CORE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_RECORD_MAX 4096
#define RING_VERDICTS	16

struct ring_writer {
	struct ring *ring;
	uint64_t head; /* private copy: a hostile reader cannot move it */
	uint64_t tail_seen;
	size_t capacity; /* octets of data, a multiple of 8 */
	size_t at;	 /* head modulo capacity */
	size_t pad;	 /* octets that the reserved record skips at the end of the ring */
};

struct ring_reader {
	struct ring *ring;
	uint64_t tail;
	size_t capacity;
	size_t at; /* tail modulo capacity */
};

/* Zeroed memory of `size` octets (power of two times...) becomes a ring; an existing one is kept.
 */
void ring_init(void *memory, size_t size);
void ring_writer_open(void *memory, struct ring_writer *out);
void ring_reader_open(void *memory, struct ring_reader *out);

/* Room for one record, or NULL (counted under `verdict`). Fill it, then ring_commit. */
void *ring_reserve(struct ring_writer *w, size_t size, bool important, unsigned verdict);
void ring_commit(struct ring_writer *w, size_t size);

/* Copy the next record out: its size, 0 if there is none, -EBADMSG after damage (resynchronised:
 * everything up to the head is skipped and counted as lost). */
int ring_read(struct ring_reader *r, void *out, size_t max);

/* Skip what is in the ring: a new owner of a slot must not read its predecessor's records. */
void ring_reader_skip(struct ring_reader *r);

/* Lost so far by verdict, RING_VERDICTS cells. */
const uint64_t *ring_lost(const void *memory);

#endif
