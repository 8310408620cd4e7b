/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few hundred names, sorted, and the question which of them a list entry would take in. What the
 * hard list and the popular list are made of. Owned by its caller; read-only once sorted.
 */
#ifndef BALEEN_FEEDS_NAMELIST_H
#define BALEEN_FEEDS_NAMELIST_H

#include "base/key.h"
#include "base/name.h"

#include <stddef.h>
#include <stdint.h>

struct namelist_item {
	uint8_t key[KEY_MAX];
	uint16_t length;
	bool zone; /* an entry for all below it counts too */
};

struct namelist {
	struct namelist_item *items;
	size_t count, room;
};

void namelist_fini(struct namelist *l);
int namelist_add(struct namelist *l, const struct name *name, bool zone);
void namelist_sort(struct namelist *l); /* and each name once */

/* The names that an entry with this key and these flags (domset.h; exceptions take in nothing)
 * would block: they are items[*first] and on, as many as it returns. */
size_t namelist_taken(const struct namelist *l, const uint8_t *key, size_t key_length,
		      uint16_t flags, size_t *first);

#endif
