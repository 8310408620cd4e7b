/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feed files merged into the sorted stream that domset_build reads. At most 8 MiB of buffers
 * whatever the number of feeds. Owned by its caller.
 */
#ifndef BALEEN_FEEDS_MERGE_H
#define BALEEN_FEEDS_MERGE_H

#include "feeds/set/domset.h"

#include <stddef.h>

struct merge;

/* Feed files in the order of the set's feed names. 0 or -errno of feedfile_open; `*bad` (may be
 * NULL) gets the index of the file at fault. */
int merge_new(const char *const *paths, size_t count, struct merge **out, size_t *bad);
void merge_free(struct merge *m);

/* Valid as long as `m`. */
struct domset_stream merge_stream(struct merge *m);

#endif
