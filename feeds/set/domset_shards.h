/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hashes of all names on their way into the filter: sorted by shard through a temporary file,
 * so that only one shard is in memory at a time. Used by the builder only.
 */
#ifndef BALEEN_FEEDS_SET_DOMSET_SHARDS_H
#define BALEEN_FEEDS_SET_DOMSET_SHARDS_H

#include "feeds/set/domset_file.h"

#include <stdbool.h>

struct domset_shards {
	int fd; /* unlinked; a stretch of 2^20 hashes a shard */
	uint32_t count;
	uint32_t *keys;	  /* of each shard */
	uint64_t *buffer; /* SHARD_BUFFER hashes of each shard */
};

/* The temporary file lies beside `path`. */
int domset_shards_init(struct domset_shards *s, const char *path, uint64_t names);
void domset_shards_fini(struct domset_shards *s);

int domset_shards_add(struct domset_shards *s, uint64_t hash);

/*
 * Build and write all shards. `suffixes` are hashes of names that are often asked for, sorted;
 * those that pass the filter although no name has that hash are moved to its front; `*false_count`
 * says how many.
 */
int domset_shards_write(struct domset_shards *s, struct domset_file *file, uint64_t seed,
			uint64_t *suffixes, size_t suffix_count, size_t *false_count);

#endif
