/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a rule holds: days of the week and a range of the wall clock, in a time zone. What the clock
 * on the wall shows decides, so a range is right on the days the clock is changed, and a range over
 * midnight belongs to the day it begins on. Zones come from the system's TZif files, read through
 * the source and unrolled into a table when the policy is loaded; a query only bisects.
 */
#ifndef BALEEN_POLICIES_POLICY_WHEN_H
#define BALEEN_POLICIES_POLICY_WHEN_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/node.h"
#include "base/source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_DAY_MINUTES 1440

struct policy_zone {
	const char *name;
	int64_t *times;	  /* from when an offset holds, ascending */
	int32_t *offsets; /* seconds east of UTC; one more than times, [0] holds before them */
	size_t count;
	struct policy_zone *next;
};

struct policy_when {
	uint8_t days;	   /* bit 0: Monday */
	uint16_t from, to; /* minutes of the day; to <= from: over midnight, into the next day */
	const struct policy_zone *zone;
	const char *text; /* "mon-fri 09:00-17:00 Europe/Zurich" */
};

/* Zones already read. */
struct policy_zones {
	struct source *source;
	struct arena *arena;
	struct policy_zone *first;
};

/* NULL, with an error at `n`. `name` NULL: the machine's own. */
const struct policy_zone *policy_zone_find(struct policy_zones *zones, const char *name,
					   const struct node *n, struct diags *d);
int32_t policy_zone_offset(const struct policy_zone *z, int64_t wall_s);
/* A TZif file (RFC 8536) into `out`; -EINVAL if it is none. */
int policy_zone_read(const uint8_t *data, size_t size, struct arena *a, struct policy_zone *out);

/* `when:` of a rule; NULL with errors told. */
const struct policy_when *policy_when_parse(const struct node *n, struct policy_zones *zones,
					    struct diags *d);
bool policy_when_matches(const struct policy_when *w, int64_t wall_s);

/* Days from 1970-01-01, Gregorian; year > 0. */
int64_t policy_day_number(int year, int month, int day);
bool policy_is_leap(int year);

/* RFC 3339: "2026-03-02T10:00:00+01:00", "2026-03-02T10:00Z"; or a date, which means its end in
 * UTC if `end_of_day`, else its begin. 0 or -EINVAL. */
int policy_time_parse(const char *text, bool end_of_day, int64_t *out);

#endif
