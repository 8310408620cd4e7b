/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seqlocked name entries; see the header. Any process. Invariant: the checksum is taken over the
 * writer's private copy, so that a mixture of two writers is never believed.
 */
#include "core/shm_block.h"

#include "base/hash.h"

#include <string.h>

static uint32_t shm_block_check(const struct shm_block *b)
{
	const size_t from = offsetof(struct shm_block, group);
	return hash_crc32c(0, (const uint8_t *)b + from, offsetof(struct shm_block, check) - from);
}

bool shm_block_read(const struct shm_block *slot, struct shm_block *out)
{
	uint32_t before = atomic_load_explicit(&slot->sequence, memory_order_acquire);
	if (before & 1)
		return false;
	memcpy(out, slot, sizeof(*out));
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&slot->sequence, memory_order_relaxed) != before)
		return false;
	return out->length > 0 && out->check == shm_block_check(out);
}

bool shm_block_write(struct shm_block *slot, const struct shm_block *value)
{
	const size_t from = offsetof(struct shm_block, group);
	struct shm_block copy;
	uint32_t before = atomic_load_explicit(&slot->sequence, memory_order_relaxed);

	memcpy(&copy, value, sizeof(copy));
	copy.check = shm_block_check(&copy);
	if (before & 1 || !atomic_compare_exchange_strong(&slot->sequence, &before, before + 1))
		return false;
	atomic_thread_fence(memory_order_release);
	memcpy((uint8_t *)slot + from, (uint8_t *)&copy + from, sizeof(copy) - from);
	atomic_store_explicit(&slot->sequence, before + 2, memory_order_release);
	return true;
}

void shm_block_sweep(struct shm_block *slots, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t sequence = atomic_load(&slots[i].sequence);
		if (sequence & 1)
			atomic_compare_exchange_strong(&slots[i].sequence, &sequence, sequence + 1);
	}
}
