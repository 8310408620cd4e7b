/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the two name tables in shared memory, names blocked for a while by a detector and
 * queries that killed a worker: read and written the way that survives a writer's death.
 */
#ifndef BALEEN_CORE_SHM_BLOCK_H
#define BALEEN_CORE_SHM_BLOCK_H

#include "core/shm.h"

/* Copy out and check: sequence even and unchanged, checksum right. False: nothing to be read. */
bool shm_block_read(const struct shm_block *slot, struct shm_block *out);

/* Fill `value.check`, and write. False: another writes this slot; try the next one. */
bool shm_block_write(struct shm_block *slot, const struct shm_block *value);

/* Slots that a dead writer left odd are free again. */
void shm_block_sweep(struct shm_block *slots, size_t count);

#endif
