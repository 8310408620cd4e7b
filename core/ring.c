/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event ring: one worker writes, one logger reads, neither makes a system call.
 *
 *   head | tail | lost[verdict] | data: {u32 length, u32 check, octets, padding to 8}*
 *
 * Head and tail count octets for ever; a record that does not fit before the end of the data is
 * preceded by a padding record. Owned by whoever maps the segment. Invariant: each side works on
 * private copies of its own counter and believes the other's only within the capacity; a record is
 * believed only if its checksum, which the writer took over its contents, length and place, agrees.
 */
#include "core/ring.h"

#include "base/hash.h"
#include "core/shm.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define RING_MAGIC 0x676e6972U
#define RING_PAD   0xffffffffU
#define RING_HEAD  8 /* octets before a record's contents */

struct ring {
	uint32_t magic;
	uint32_t capacity;
	_Alignas(64) _Atomic uint64_t head;
	_Alignas(64) _Atomic uint64_t tail;
	_Alignas(64) uint64_t lost[RING_VERDICTS]; /* the writer's */
	_Alignas(64) uint8_t data[];
};

static size_t ring_round(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

static size_t ring_capacity(const struct ring *ring)
{
	size_t capacity = ring->capacity;
	const size_t most = SHM_RING_BYTES - sizeof(struct ring);

	if (ring->magic != RING_MAGIC || capacity % 8 != 0 || capacity > most)
		return 0;
	return capacity;
}

void ring_init(void *memory, size_t size)
{
	struct ring *ring = memory;
	size_t capacity = (size - sizeof(*ring)) & ~(size_t)7;

	if (ring->magic == RING_MAGIC && ring->capacity == capacity)
		return;
	memset(ring, 0, sizeof(*ring));
	ring->capacity = (uint32_t)capacity;
	ring->magic = RING_MAGIC;
}

void ring_writer_open(void *memory, struct ring_writer *out)
{
	struct ring *ring = memory;

	memset(out, 0, sizeof(*out));
	out->ring = ring;
	out->capacity = ring_capacity(ring);
	out->head = atomic_load_explicit(&ring->head, memory_order_acquire);
	out->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
	/* The predecessor may have died anywhere: begin on a border that both sides can use. */
	out->head = ring_round(out->head);
	atomic_store_explicit(&ring->head, out->head, memory_order_release);
	out->at = out->capacity ? (size_t)(out->head % out->capacity) : 0;
}

void ring_reader_open(void *memory, struct ring_reader *out)
{
	struct ring *ring = memory;

	memset(out, 0, sizeof(*out));
	out->ring = ring;
	out->capacity = ring_capacity(ring);
	out->tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	out->at = out->capacity ? (size_t)(out->tail % out->capacity) : 0;
}

static void ring_reader_move(struct ring_reader *r, uint64_t tail)
{
	r->tail = tail;
	r->at = r->capacity ? (size_t)(r->tail % r->capacity) : 0;
	atomic_store_explicit(&r->ring->tail, r->tail, memory_order_release);
}

void ring_reader_skip(struct ring_reader *r)
{
	ring_reader_move(r, atomic_load_explicit(&r->ring->head, memory_order_acquire));
}

static uint32_t ring_check(const void *data, size_t size, uint64_t place)
{
	uint64_t seed[2] = {size, place};
	return hash_crc32c(hash_crc32c(0, seed, sizeof(seed)), data, size);
}

static bool ring_fits(struct ring_writer *w, size_t need, size_t limit)
{
	uint64_t used = w->head - w->tail_seen;
	if (used <= limit && need <= limit - used)
		return true;
	w->tail_seen = atomic_load_explicit(&w->ring->tail, memory_order_acquire);
	used = w->head - w->tail_seen;
	if (used > w->capacity) {
		/* A tail that cannot be: the reader finds its way by itself, we must not stop. */
		w->tail_seen = w->head;
		used = 0;
	}
	return used <= limit && need <= limit - used;
}

void *ring_reserve(struct ring_writer *w, size_t size, bool important, unsigned verdict)
{
	size_t need = RING_HEAD + ring_round(size);
	size_t limit = important ? w->capacity : w->capacity / 4 * 3;

	w->pad = need > w->capacity - w->at ? w->capacity - w->at : 0;
	if (size > RING_RECORD_MAX || !ring_fits(w, w->pad + need, limit)) {
		w->ring->lost[verdict % RING_VERDICTS]++;
		return NULL;
	}
	return w->ring->data + (w->pad ? 0 : w->at) + RING_HEAD;
}

void ring_commit(struct ring_writer *w, size_t size)
{
	uint8_t *data = w->ring->data;
	if (w->pad) {
		uint32_t mark[2] = {RING_PAD, 0};
		memcpy(data + w->at, mark, sizeof(mark));
		w->head += w->pad;
		w->at = 0;
	}
	uint32_t head[2] = {(uint32_t)size, ring_check(data + w->at + RING_HEAD, size, w->head)};
	memcpy(data + w->at, head, sizeof(head));
	size_t length = RING_HEAD + ring_round(size);
	w->head += length;
	w->at += length;
	if (w->at == w->capacity)
		w->at = 0;
	atomic_store_explicit(&w->ring->head, w->head, memory_order_release);
}

static int ring_damaged(struct ring_reader *r, uint64_t head)
{
	ring_reader_move(r, head);
	return -EBADMSG;
}

int ring_read(struct ring_reader *r, void *out, size_t max)
{
	uint64_t head = atomic_load_explicit(&r->ring->head, memory_order_acquire);
	uint64_t left = head - r->tail;

	if (left == 0)
		return 0;
	if (r->capacity == 0 || left > r->capacity || left % 8 != 0)
		return ring_damaged(r, head);

	uint32_t record[2];
	memcpy(record, r->ring->data + r->at, sizeof(record));
	if (record[0] == RING_PAD) {
		size_t pad = r->capacity - r->at;
		if (pad >= left)
			return ring_damaged(r, head);
		r->tail += pad;
		left -= pad;
		r->at = 0;
		memcpy(record, r->ring->data, sizeof(record));
	}
	size_t size = record[0];
	if (size > max || size > RING_RECORD_MAX || size == 0)
		return ring_damaged(r, head);
	size_t length = RING_HEAD + ring_round(size);
	if (length > left || length > r->capacity - r->at)
		return ring_damaged(r, head);
	/* Copy first, then check the copy: what is in the ring may change under our eyes. */
	memcpy(out, r->ring->data + r->at + RING_HEAD, size);
	if (ring_check(out, size, r->tail) != record[1])
		return ring_damaged(r, head);
	ring_reader_move(r, r->tail + length);
	return (int)size;
}

const uint64_t *ring_lost(const void *memory)
{
	return ((const struct ring *)memory)->lost;
}
