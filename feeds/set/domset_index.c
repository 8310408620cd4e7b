/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree over a set's blocks: built in the fetcher, searched in every process. Invariant: a
 * search names a child for certain only when the stored octets decide; what they leave open is
 * settled by the caller with the blocks' first names.
 */
#include "feeds/set/domset_index.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t slice(const uint8_t *key)
{
	return __builtin_bswap64(domset_load64(key));
}

/* Octets behind the key's end are zero and no separator has two zeros in a row, so a key that ends
 * inside the prefix differs from it. */
static bool has_prefix(const struct domset_node *n, unsigned prefix, const uint8_t *key)
{
	uint64_t differ = 0;
	unsigned at = 0;
	for (; at + 8 <= prefix; at += 8)
		differ |= domset_load64(key + at) ^ domset_load64(n->prefix + at);
	uint64_t rest = ((uint64_t)1 << 8 * (prefix & 7)) - 1;
	return !(differ | ((domset_load64(key + at) ^ domset_load64(n->prefix + at)) & rest));
}

struct domset_search domset_node_search(const struct domset_node *n, unsigned children,
					const uint8_t *key, size_t octets)
{
	unsigned prefix =
		n->prefix_octets < DOMSET_PREFIX_MAX ? n->prefix_octets : DOMSET_PREFIX_MAX;
	if (!has_prefix(n, prefix, key)) {
		size_t common = prefix < octets ? prefix : octets;
		int order = memcmp(key, n->prefix, common);
		return (struct domset_search){order > 0 ? children - 1 : 0, 0};
	}
	uint64_t wanted = slice(key + prefix);
	unsigned below = 0;
	for (unsigned step = DOMSET_FANOUT / 2; step; step /= 2)
		below += n->key[below + step - 1] < wanted ? step : 0;
	/* Unused keys are as high as can be, but so may be the wanted one. */
	if (below > children - 1)
		below = children - 1;
	unsigned equal = 0;
	while (below + equal < children - 1 && n->key[below + equal] == wanted)
		equal++;
	/* Of equal ones only the first can be whole; a whole one is at or below the key. */
	if (equal && !(n->cut >> (below + 1) & 1)) {
		below++;
		equal--;
	}
	return (struct domset_search){below, equal};
}

void domset_index_init(struct domset_index *x,
		       int (*leaf)(void *context, const struct domset_leaf *leaf), void *context)
{
	memset(x, 0, sizeof *x);
	x->leaf = leaf;
	x->context = context;
}

void domset_index_fini(struct domset_index *x)
{
	for (unsigned i = 0; i < DOMSET_LEVELS_MAX; i++)
		free(x->upper[i]);
}

static size_t common_octets(const uint8_t *a, size_t a_octets, const uint8_t *b, size_t b_octets)
{
	size_t n = 0;
	while (n < a_octets && n < b_octets && a[n] == b[n])
		n++;
	return n;
}

/* The first separator is not needed: the level above has led to this node by it. */
static void node_of(const struct domset_index_level *l, struct domset_node *out)
{
	memset(out, 0, sizeof *out);
	memset(out->key, 0xff, sizeof out->key);
	if (l->count < 2)
		return;
	unsigned last = l->count - 1;
	size_t prefix =
		common_octets(l->separator[1], l->octets[1], l->separator[last], l->octets[last]);
	if (prefix > DOMSET_PREFIX_MAX)
		prefix = DOMSET_PREFIX_MAX;
	out->prefix_octets = (uint8_t)prefix;
	memcpy(out->prefix, l->separator[1], prefix);
	for (unsigned i = 1; i < l->count; i++) {
		uint8_t padded[8] = {0};
		size_t left = l->octets[i] - prefix;
		memcpy(padded, l->separator[i] + prefix, left < 8 ? left : 8);
		out->key[i - 1] = slice(padded);
		out->cut |= (uint32_t)(left > 8) << i;
	}
}

static int close_node(struct domset_index *x, unsigned level)
{
	struct domset_index_level *l = &x->level[level];
	if (!level) {
		struct domset_leaf leaf = {0};
		node_of(l, &leaf.node);
		memcpy(leaf.at, x->at, sizeof leaf.at);
		memset(x->at, 0, sizeof x->at);
		x->leaves++;
		return x->leaf(x->context, &leaf);
	}
	struct domset_node **nodes = &x->upper[level - 1];
	size_t count = x->count[level - 1];
	if (!(count & (count - 1))) {
		void *grown = realloc(*nodes, (count ? 2 * count : 1) * sizeof **nodes);
		if (!grown)
			return -ENOMEM;
		*nodes = grown;
	}
	node_of(l, &(*nodes)[x->count[level - 1]++]);
	return 0;
}

int domset_index_add(struct domset_index *x, const uint8_t *separator, size_t octets, uint32_t at)
{
	for (unsigned level = 0; level <= DOMSET_LEVELS_MAX; level++) {
		struct domset_index_level *l = &x->level[level];
		bool full = l->count == DOMSET_FANOUT;
		if (full) {
			int rc = close_node(x, level);
			if (rc)
				return rc;
			l->count = 0;
		}
		if (!level)
			x->at[l->count] = at;
		memcpy(l->separator[l->count], separator, octets);
		l->octets[l->count++] = (uint16_t)octets;
		/* A node's first separator stands in the level above as well. */
		if (l->count != 1)
			break;
	}
	return 0;
}

int domset_index_finish(struct domset_index *x, unsigned *levels)
{
	unsigned level = 0;
	for (;; level++) {
		int rc = close_node(x, level);
		if (rc)
			return rc;
		size_t nodes = level ? x->count[level - 1] : x->leaves;
		if (nodes == 1)
			break;
	}
	*levels = level;
	return 0;
}
