/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands between a list as it was fetched and the set: single entries that would do harm are
 * dropped (the hard list), whole versions that look wrong are refused or held back. Used by the
 * fetcher; `feeds compile` uses the hard list's public suffixes.
 */
#ifndef BALEEN_FEEDS_ADMISSION_H
#define BALEEN_FEEDS_ADMISSION_H

#include "base/diag.h"
#include "base/name.h"
#include "base/source.h"
#include "feeds/feed.h"
#include "feeds/feedfile.h"
#include "feeds/namelist.h"
#include "feeds/parse.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- the hard list: entries dropped, the rest of the list is loaded ---- */

/* Own zones and the hosts that `feeds` are fetched from (NULL: none) into `out`, sorted. */
int hardlist_init(struct namelist *out, const struct name *zones, size_t zone_count,
		  const struct feeds *feeds);

/*
 * FEED_REJECT_SUFFIX for a name of one label, and for all (below) a public suffix of the ICANN
 * section; FEED_REJECT_PROTECTED for what takes in a name of `protected` (may be NULL); -1: fine.
 * Exceptions are fine always.
 */
int hardlist_check(const struct namelist *protected, const struct name *name, uint16_t flags);

/* ---- the popular list: a threat feed that suddenly adds such names is held back ---- */

/* The shipped names and those of the `protected:` files (lists as `domains`). Errors go to `d`. */
int popular_load(struct source *source, const char *const *files, size_t count, struct diags *d,
		 struct namelist *out);

#define POPULAR_SHOWN 5
struct popular_hits {
	const struct namelist *popular;
	bool *hit; /* calloc'd: popular->count */
	size_t count;
	size_t shown[POPULAR_SHOWN]; /* indexes of the first hits */
};
int popular_hits_init(struct popular_hits *h, const struct namelist *popular);
void popular_hits_fini(struct popular_hits *h);
/* For feedfile_finish's `added`. */
void popular_hits_added(void *hits, const uint8_t *key, size_t key_length, uint16_t flags);

/* ---- the verdict on a version ---- */

enum admission { ADMIT, ADMIT_REFUSE, ADMIT_HOLD };
#define ADMISSION_WHY_MAX 256

/*
 * Refuse: empty, nothing understood, or almost nothing. Hold (a `release` takes it after all):
 * above 1,000 entries shrunk or grown past the feed's limits, or more than 3 popular names added to
 * a threat feed. `why` is one line; "" with ADMIT.
 */
enum admission admission_judge(const struct feed *feed, const struct parse_report *report,
			       const struct feedfile_change *change,
			       const struct popular_hits *hits, char why[ADMISSION_WHY_MAX]);

#endif
