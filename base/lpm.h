/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Longest prefix match over many prefixes: built once, read by every worker. An IPv4 address
 * matches prefixes of IPv4 only (base/addr.h). Leaf file; memory is the arena's.
 */
#ifndef BALEEN_BASE_LPM_H
#define BALEEN_BASE_LPM_H

#include "base/addr.h"
#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

#define LPM_NONE UINT32_MAX

struct lpm_entry {
	struct prefix prefix;
	uint32_t value; /* not LPM_NONE */
};

typedef unsigned __int128 lpm_key; /* an address as a number */

/* Addresses of one family, cut into ranges that do not overlap. */
struct lpm_table {
	lpm_key *starts; /* where each begins, ascending */
	uint32_t *values;
	uint32_t *index; /* by `index_bits` bits below the ones that all ranges share; NULL: few */
	size_t count;
	unsigned shift; /* how far those bits stand from the right, of 128 */
	unsigned index_bits;
};

struct lpm {
	struct lpm_table v4, v6;
};

/* Of two entries with the same prefix the later one counts. `entries` is not kept. */
void lpm_build(struct lpm *l, const struct lpm_entry *entries, size_t count, struct arena *a);

/* The value of the longest prefix that contains the address, or LPM_NONE. */
uint32_t lpm_find(const struct lpm *l, const struct addr *a);

#endif
