/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the LMDB file that carries a set: values in, then sealed with the directory and footer of
 * domset_layout.h. Used by the builder only. Anonymous memory is bounded: it commits as it goes.
 */
#ifndef BALEEN_FEEDS_SET_DOMSET_FILE_H
#define BALEEN_FEEDS_SET_DOMSET_FILE_H

#include "feeds/set/domset_layout.h"

#include <lmdb.h>

struct domset_file {
	const char *path;
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	size_t pending; /* octets put since the last commit */
	struct domset_extent *extents;
	size_t extent_count;
};

struct domset_key {
	uint8_t octets[8];
};

/* The LMDB key of a value. */
struct domset_key domset_key_of(uint32_t kind, uint32_t number);

/* LMDB's result as -errno. */
int domset_lmdb_error(int rc);

/* `path` must not exist (-EEXIST). map_octets: more than the file can come to. */
int domset_file_begin(struct domset_file *f, const char *path, size_t map_octets);
int domset_file_put(struct domset_file *f, uint32_t kind, uint32_t number, const void *data,
		    size_t octets);

/* Commit, sync, append directory and footer, sync. After it the file is closed; `file_octets` and
 * `crc32c` as in struct domset_stats. */
int domset_file_seal(struct domset_file *f, uint64_t *file_octets, uint32_t *crc32c);

/* Close, and remove the file unless it was sealed. */
void domset_file_end(struct domset_file *f, int outcome);

/* A run of values of one kind, filled record by record. */
struct domset_chunks {
	struct domset_file *file;
	uint32_t kind;
	uint32_t number; /* of the chunk being filled */
	size_t capacity;
	size_t used;
	uint8_t *data;
};

int domset_chunks_init(struct domset_chunks *c, struct domset_file *file, uint32_t kind,
		       size_t capacity);
/* Place for `octets` (at most the capacity), in a new chunk if need be. The caller fills it. */
int domset_chunks_reserve(struct domset_chunks *c, size_t octets, uint8_t **out, uint32_t *at);
int domset_chunks_flush(struct domset_chunks *c);
void domset_chunks_fini(struct domset_chunks *c);

#endif
