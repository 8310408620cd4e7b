/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that a detector blocked for a while (host->block_for): one table in shared memory, written
 * and read by every worker.
 */
#ifndef BALEEN_CORE_CHAIN_BLOCKS_H
#define BALEEN_CORE_CHAIN_BLOCKS_H

#include "core/shm.h"

#include <stdbool.h>
#include <stdint.h>

#define BLOCKS_TTL_MAX_S (30u * 86400)

/* A private, checked copy of an entry. */
struct blocks_hit {
	uint32_t group; /* UINT32_MAX: all */
	int64_t until_ms;
	uint8_t labels; /* of the blocked name */
	char why[64];
	char plugin[32];
};

/* Block `name` (lower case) and all below it. 0; -ENOSPC: no room among those like it; -EINVAL. */
int blocks_add(struct shm *s, const uint8_t *name, uint8_t length, uint32_t group, uint32_t ttl_s,
	       const char *why, const char *plugin, int64_t now_ms);

/* One load when nothing is blocked. Deepest blocked ancestor first. */
bool blocks_check(struct shm *s, const uint8_t *name, uint8_t length, uint8_t labels,
		  uint32_t group, int64_t now_ms, struct blocks_hit *out);

#endif
