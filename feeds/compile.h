/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole steps that the fetcher and `feeds compile` share: a list file into a feed file, and feed
 * files into a set. Both write beside their target and rename at the end.
 */
#ifndef BALEEN_FEEDS_COMPILE_H
#define BALEEN_FEEDS_COMPILE_H

#include "feeds/parse.h"
#include "feeds/set/domset.h"

#include <stddef.h>
#include <stdint.h>

/* Read a list from `fd` to its end into `p`, which the caller made, finishes and reports from. */
int compile_read_body(int fd, struct parse *p);

struct compile_feed {
	const char *name;
	const char *path; /* its feed file */
};

/* Merge `feeds` (any order; sorted here by name) into a set at `path`. `*bad` (may be NULL) gets
 * the index, in the order sorted, of a feed file that cannot be read. 0 or -errno; on failure
 * nothing is left behind. */
int compile_set(const char *path, struct compile_feed *feeds, size_t count, uint64_t site_key,
		struct domset_stats *out, size_t *bad);

#endif
