/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combinations while a set is built: equal lists of (feed, flags) become one, numbered by how often
 * they occur, so that frequent ones have small numbers. Bounded: beyond a limit new lists are no
 * longer shared, each use gets a number of its own; the file grows, the set stays right.
 */
#ifndef BALEEN_FEEDS_SET_DOMSET_LISTS_H
#define BALEEN_FEEDS_SET_DOMSET_LISTS_H

#include "feeds/set/domset.h"
#include "feeds/set/domset_file.h"

struct domset_lists;

struct domset_lists *domset_lists_new(void); /* NULL: out of memory */
void domset_lists_free(struct domset_lists *l);

/* First reading: count a use. */
int domset_lists_count(struct domset_lists *l, const struct domset_entry *entries, size_t count);

/* Between: number the lists and write them to `file`. */
int domset_lists_rank(struct domset_lists *l, struct domset_file *file);

/* Second reading: the number of a list. */
int domset_lists_id(struct domset_lists *l, const struct domset_entry *entries, size_t count,
		    uint32_t *id);

/* The end: write what is left. */
int domset_lists_finish(struct domset_lists *l, uint32_t *combinations);

#endif
