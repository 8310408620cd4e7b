/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event ring as a crashed or hostile worker may leave it. The input is laid over a ring that
 * holds good records; then it is read to the end, written to, and read again.
 */
#include "core/ring.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RING_SIZE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct ring_reader *r)
{
	uint8_t out[RING_RECORD_MAX];
	/* Each turn takes a record or skips to the head: more than this cannot be. */
	for (int turn = 0; ring_read(r, out, sizeof(out)) != 0; turn++)
		if (turn > RING_SIZE)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *memory = aligned_alloc(64, RING_SIZE);
	struct ring_writer w;
	struct ring_reader r;
	if (!memory)
		return 0;
	memset(memory, 0, RING_SIZE);
	ring_init(memory, RING_SIZE);
	ring_writer_open(memory, &w);
	ring_reader_open(memory, &r);
	for (unsigned i = 0; i < 8; i++) {
		void *p = ring_reserve(&w, 40 + i, true, i);
		if (p) {
			memset(p, (int)i, 40 + i);
			ring_commit(&w, 40 + i);
		}
	}
	/* Two octets say where the rest goes. The capacity is the segment's, not the ring's own: a
	 * larger one than this memory would be another test's memory, so it is kept. */
	if (size > 2) {
		size_t at = (size_t)(data[0] << 8 | data[1]) % RING_SIZE, n = size - 2;
		uint32_t head[2];
		memcpy(head, memory, sizeof(head));
		memcpy(memory + at, data + 2, n < RING_SIZE - at ? n : RING_SIZE - at);
		memcpy(memory, head, sizeof(head));
	}
	read_all(&r);
	ring_reader_open(memory, &r);
	read_all(&r);
	ring_writer_open(memory, &w);
	for (unsigned i = 0; i < 200; i++) {
		void *p = ring_reserve(&w, 100, i & 1, 0);
		if (p) {
			memset(p, 1, 100);
			ring_commit(&w, 100);
		}
		if (i % 10 == 0)
			read_all(&r);
	}
	read_all(&r);
	free(memory);
	return 0;
}
