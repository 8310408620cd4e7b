/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes: CRC32C for integrity (hardware where there is any), a fast keyed 64-bit hash for tables,
 * and random numbers an outsider cannot predict. Leaf file. */
#ifndef BALEEN_BASE_HASH_H
#define BALEEN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Castagnoli; chain by passing the last result, start with 0. */
uint32_t hash_crc32c(uint32_t crc, const void *data, size_t size);

/* Not cryptographic; not flood-proof without a secret seed. */
uint64_t hash_bytes(uint64_t seed, const void *data, size_t size);

/* From getrandom(2), buffered: ids, ports, seeds. Safe across fork (the buffer is dropped). */
uint64_t hash_random(void);

#endif
