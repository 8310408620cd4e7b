/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open set: what domset_open, domset_bind, domset_lookup and domset_walk share. Everything but
 * `checked` is read-only after bind; `checked` only saves work, so a fork may copy it.
 */
#ifndef BALEEN_FEEDS_SET_DOMSET_READER_H
#define BALEEN_FEEDS_SET_DOMSET_READER_H

#include "feeds/set/domset.h"
#include "feeds/set/domset_block.h"
#include "feeds/set/domset_filter.h"
#include "feeds/set/domset_index.h"

#include <lmdb.h>

/* A run of values of one kind. */
struct domset_run {
	const uint8_t **data;
	uint32_t *octets;
	uint32_t count;
};

/* Which feeds match, in the two places a listed name can be. */
struct domset_masks {
	struct feedmask at;    /* the asked name is the listed one: exact, subtree */
	struct feedmask below; /* it is below the listed one: subtree, below */
};

/* For the few combinations that have exceptions or important entries. */
struct domset_rules {
	struct domset_masks except, important, except_important;
};

struct domset {
	struct domset_header header;
	struct domset_decoder *decoder;
	struct domset_filter_shard *shards;
	const uint64_t *suffixes; /* that the filter is wrong about, sorted */
	const struct domset_node *upper[DOMSET_LEVELS_MAX];
	struct domset_run leaves, names, list_at, lists, filters, uppers;
	void **copies;	   /* of small values, which LMDB does not align; NULL-terminated */
	uint64_t *checked; /* bit per block: its CRC was right */

	/* By combination: mask_words words for `at`, then as many for `below`. As few words as the
	 * site's feed numbers need: this is read on every match, and there may be many
	 * combinations. */
	uint64_t *masks;
	unsigned mask_words;
	uint64_t *ruled;	    /* bit per combination: it has rules */
	uint32_t *rules_of;	    /* by combination: place in rules, or 0 */
	struct domset_rules *rules; /* [0] is not used */
	const char **feed_names;
	uint16_t *feed_numbers;

	MDB_env *env;
	MDB_txn *txn;	    /* keeps the pages; nothing is read through LMDB after open */
	const uint8_t *map; /* where LMDB has put them */
	size_t map_octets;
	struct domset_stats stats;
};

/* Block number `block`, its CRC checked once. 0 or -EBADMSG. */
int domset_block_get(const struct domset *s, uint64_t block, struct domset_block *out);

#endif
