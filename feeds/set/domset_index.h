/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index over blocks: a tree of nodes over separators, layout in domset_layout.h. The builder
 * hands out leaves as they fill up; the levels above stay in memory (288 octets per 65,536 names).
 */
#ifndef BALEEN_FEEDS_SET_DOMSET_INDEX_H
#define BALEEN_FEEDS_SET_DOMSET_INDEX_H

#include "base/key.h"
#include "feeds/set/domset_layout.h"

#include <stdbool.h>

/* ---- reading ---- */

/* Which child of a node leads to a key: `child`, or one of the `unsure` ones behind it, as far as
 * their blocks' first names are not above the key. */
struct domset_search {
	unsigned child;
	unsigned unsure;
};

/* `key` is followed by PREFIX_MAX + 8 zero octets; children is 1..32. */
struct domset_search domset_node_search(const struct domset_node *n, unsigned children,
					const uint8_t *key, size_t octets);

/* ---- building ---- */

struct domset_index_level {
	unsigned count;
	uint16_t octets[DOMSET_FANOUT];
	uint8_t separator[DOMSET_FANOUT][KEY_MAX];
};

struct domset_index {
	struct domset_index_level level[DOMSET_LEVELS_MAX + 1]; /* 0: the leaf being filled */
	uint32_t at[DOMSET_FANOUT];
	struct domset_node *upper[DOMSET_LEVELS_MAX]; /* of level 1.. */
	size_t count[DOMSET_LEVELS_MAX];
	uint64_t leaves;
	/* Takes a full leaf; 0 or -errno. */
	int (*leaf)(void *context, const struct domset_leaf *leaf);
	void *context;
};

void domset_index_init(struct domset_index *x,
		       int (*leaf)(void *context, const struct domset_leaf *leaf), void *context);
void domset_index_fini(struct domset_index *x);
int domset_index_add(struct domset_index *x, const uint8_t *separator, size_t octets, uint32_t at);

/* Close all nodes. `*levels` says how many of `upper` are in use (0: one leaf is the tree). */
int domset_index_finish(struct domset_index *x, unsigned *levels);

#endif
