/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking all names of a set in key order, for tools and tests. Owns a cursor. Invariant: yields
 * exactly the names that were built in, or -EBADMSG.
 */
#include "feeds/set/domset_reader.h"

#include <errno.h>
#include <stdlib.h>

struct domset_walk {
	const struct domset *set;
	bool root_done;
	bool block_open;
	uint64_t block;
	struct domset_block current;
	struct domset_block_cursor cursor;
};

int domset_walk_new(const struct domset *s, struct domset_walk **out)
{
	struct domset_walk *w = calloc(1, sizeof *w);
	if (!w)
		return -ENOMEM;
	w->set = s;
	*out = w;
	return 0;
}

static int put_name(const struct domset_walk *w, struct name *name)
{
	uint8_t wire[NAME_WIRE_MAX];
	unsigned labels;
	size_t length = key_to_wire(w->cursor.key, w->cursor.octets, wire);
	if (!length || !name_measure(wire, length, &labels))
		return -EBADMSG;
	name_set(name, wire, length, labels);
	return 1;
}

int domset_walk_next(struct domset_walk *w, struct name *name, uint32_t *combination)
{
	const struct domset *s = w->set;
	if (!w->root_done && s->header.root) {
		w->root_done = true;
		*combination = s->header.root - 1;
		name_set(name, (const uint8_t *)"", 1, 0);
		return 1;
	}
	while (w->block < s->header.blocks) {
		if (!w->block_open) {
			int rc = domset_block_get(s, w->block, &w->current);
			if (rc)
				return rc;
			w->cursor.next = 0;
			w->cursor.octets = 0;
			w->block_open = true;
		}
		int rc = domset_block_next(&w->current, s->decoder, &w->cursor, combination);
		if (rc < 0 || (rc && *combination >= s->header.combinations))
			return -EBADMSG;
		if (rc)
			return put_name(w, name);
		w->block_open = false;
		w->block++;
	}
	return 0;
}

void domset_walk_free(struct domset_walk *w)
{
	free(w);
}
