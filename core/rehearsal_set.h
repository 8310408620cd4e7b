/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set that a rehearsal (offline explain, policies' tests) stands on: one that was named, else
 * the newest in the state folder, else, where there is none or it lacks a feed whose entries are at
 * hand, one compiled for the moment from the feeds' entries in the state folder and the local
 * lists.
 */
#ifndef BALEEN_CORE_REHEARSAL_SET_H
#define BALEEN_CORE_REHEARSAL_SET_H

#include "core/generation.h"
#include "feeds/set/domset.h"

#include <stdint.h>

/* `path`: the set file that was named, or NULL. 0 with a bound set (NULL: no feeds at all) and its
 * number (0: named, or made for the moment). -errno with a sentence. Feeds that cannot be had are
 * told on stderr. */
int rehearsal_set_open(const struct generation *g, const char *path, struct domset **out,
		       uint64_t *number, char error[DOMSET_ERROR_MAX]);

#endif
