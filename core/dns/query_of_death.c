/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking a question up among those that killed workers. Worker process; owns nothing. Invariant:
 * an entry is copied out of shared memory and its checksum verified before anything in it is
 * believed.
 */
#include "core/dns/query_of_death.h"

#include "base/name.h"
#include "core/shm_block.h"

bool query_of_death_listed(struct shm *s, const uint8_t *name, size_t length, uint16_t type,
			   int64_t now_ms)
{
	const struct shm_block *deaths = shm_deaths(s);
	struct shm_block entry;

	if (!atomic_load_explicit(shm_deaths_used(s), memory_order_relaxed))
		return false;
	for (unsigned i = 0; i < SHM_QOD_MAX; i++)
		if (deaths[i].until_ms > now_ms && shm_block_read(&deaths[i], &entry) &&
		    entry.until_ms > now_ms && (!entry.type || entry.type == type) &&
		    name_equal(entry.name, entry.length, name, length))
			return true;
	return false;
}
