/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block_for table, in entries that survive their writer's death (core/shm_block.h):
 * sets of BLOCKS_WAYS entries; a name's set comes from its hash, so that a query looks at one set
 * per label. Workers write and read.
 *
 * Invariant: an entry is used only from a private copy that was checked.
 */
#include "core/chain/blocks.h"

#include "base/hash.h"
#include "base/name.h"
#include "core/shm_block.h"

#include <errno.h>
#include <string.h>

#define BLOCKS_WAYS 8
#define BLOCKS_SETS (SHM_BLOCKS_MAX / BLOCKS_WAYS)
#define BLOCKS_SEED 0x62616c65656e0001ULL

static bool same_key(const struct shm_block *a, const struct shm_block *b)
{
	return a->group == b->group && a->type == b->type && a->length == b->length &&
	       memcmp(a->name, b->name, a->length) == 0;
}

/* Write `value` over an entry of the same key, else over one that is free or past. Two writers may
 * want the same place: the slower one takes another. */
static int entries_add(struct shm_block *entries, unsigned count, struct shm_block *value,
		       int64_t now_ms)
{
	struct shm_block copy;

	for (unsigned i = 0; i < count; i++) {
		if (!shm_block_read(&entries[i], &copy) || !same_key(&copy, value))
			continue;
		if (copy.until_ms > value->until_ms)
			value->until_ms = copy.until_ms;
		if (shm_block_write(&entries[i], value))
			return 0;
	}
	for (unsigned i = 0; i < count; i++)
		if ((!shm_block_read(&entries[i], &copy) || copy.until_ms <= now_ms) &&
		    shm_block_write(&entries[i], value))
			return 0;
	return -ENOSPC;
}

/* Move the time up to which readers must look. */
static void extend(_Atomic uint64_t *used, int64_t until_ms)
{
	uint64_t was = atomic_load(used);
	while (was < (uint64_t)until_ms &&
	       !atomic_compare_exchange_weak(used, &was, (uint64_t)until_ms))
		;
}

static void entry_fill(struct shm_block *b, const uint8_t *name, uint8_t length, uint32_t ttl_s,
		       int64_t now_ms)
{
	memset(b, 0, sizeof(*b));
	b->group = UINT32_MAX;
	b->until_ms = now_ms + (int64_t)ttl_s * 1000;
	b->length = length;
	memcpy(b->name, name, length);
}

static struct shm_block *set_of(struct shm *s, const uint8_t *name, size_t length)
{
	return shm_blocks(s) + hash_bytes(BLOCKS_SEED, name, length) % BLOCKS_SETS * BLOCKS_WAYS;
}

int blocks_add(struct shm *s, const uint8_t *name, uint8_t length, uint32_t group, uint32_t ttl_s,
	       const char *why, const char *plugin, int64_t now_ms)
{
	struct shm_block value;
	unsigned labels;

	/* Never the root: one mistaken detector would switch off the site's DNS. */
	if (name_measure(name, length, &labels) != length || labels == 0 || ttl_s == 0)
		return -EINVAL;
	entry_fill(&value, name, length, ttl_s < BLOCKS_TTL_MAX_S ? ttl_s : BLOCKS_TTL_MAX_S,
		   now_ms);
	value.group = group;
	strncpy(value.why, why ? why : "", sizeof(value.why) - 1);
	strncpy(value.plugin, plugin, sizeof(value.plugin) - 1);
	int r = entries_add(set_of(s, name, length), BLOCKS_WAYS, &value, now_ms);
	if (r == 0)
		extend(shm_blocks_used(s), value.until_ms);
	return r;
}

bool blocks_check(struct shm *s, const uint8_t *name, uint8_t length, uint8_t labels,
		  uint32_t group, int64_t now_ms, struct blocks_hit *out)
{
	struct shm_block copy;

	if ((uint64_t)now_ms >= atomic_load_explicit(shm_blocks_used(s), memory_order_relaxed))
		return false;
	for (unsigned keep = labels; keep > 0; keep--) {
		size_t skip = name_suffix_offset(name, labels, keep);
		struct shm_block *set = set_of(s, name + skip, length - skip);
		for (unsigned i = 0; i < BLOCKS_WAYS; i++) {
			if (!shm_block_read(&set[i], &copy) || copy.until_ms <= now_ms ||
			    (copy.group != UINT32_MAX && copy.group != group) ||
			    !name_equal(copy.name, copy.length, name + skip, length - skip))
				continue;
			*out = (struct blocks_hit){.group = copy.group,
						   .until_ms = copy.until_ms,
						   .labels = (uint8_t)keep};
			memcpy(out->why, copy.why, sizeof(out->why));
			memcpy(out->plugin, copy.plugin, sizeof(out->plugin));
			return true;
		}
	}
	return false;
}
