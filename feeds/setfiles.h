/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled sets in a state folder: sets/domains.N.mdb, numbers ascending for ever. Used by the
 * fetcher and by offline commands.
 */
#ifndef BALEEN_FEEDS_SETFILES_H
#define BALEEN_FEEDS_SETFILES_H

#include <stdint.h>

/* "STATE/sets/domains.N.mdb" (or .json), malloc'd. */
char *setfiles_path(const char *state, uint64_t number, const char *ending);

/* The highest number below `below` (UINT64_MAX: of all), 0: none. -errno is never returned: a
 * folder that cannot be read has no sets. */
uint64_t setfiles_newest(const char *state, uint64_t below);

/* Remove all sets below `keep` but the newest of them, and what dead writers left. */
void setfiles_clean(const char *state, uint64_t keep);

#endif
