/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time zones from the system's TZif files (RFC 8536), for `when:`. Read by the loader, through the
 * source, so that a snapshot holds the zones it needs; the arena owns the tables. Invariant: times
 * ascend and every one has an offset, so that looking one up cannot fail. What the file's last line
 * says of the future (a POSIX TZ rule) is unrolled up to POLICY_ZONE_LAST_YEAR.
 */
#include "policies/policy_when.h"

#include "base/cursor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLICY_ZONE_FOLDER    "/usr/share/zoneinfo/"
#define POLICY_ZONE_LOCAL     "/etc/localtime"
#define POLICY_ZONE_LAST_YEAR 2105
#define POLICY_ZONE_TIMES_MAX 2000
#define POLICY_ZONE_NAME_MAX  64
#define POLICY_ZONE_FILE_MAX  ((size_t)1 << 20)
#define POLICY_DAY_S	      86400

/* ---- the POSIX TZ rule: "CET-1CEST,M3.5.0,M10.5.0/3" ---- */

struct policy_rule_day {
	char form; /* 'M': month, week, weekday; 'J': day 1..365 without 29 February; 'N': day
		      0..365 */
	int month, week, day;
	int32_t time_s; /* of the wall clock before the change */
};

static bool policy_tz_number(const char **p, int max, int *out)
{
	int value = 0;
	const char *start = *p;
	while (**p >= '0' && **p <= '9' && value <= max)
		value = value * 10 + (*(*p)++ - '0');
	*out = value;
	return *p > start && value <= max;
}

/* [+-]hh[:mm[:ss]] */
static bool policy_tz_time(const char **p, int32_t *out)
{
	int sign = 1, h = 0, m = 0, s = 0;
	if (**p == '+' || **p == '-')
		sign = *(*p)++ == '-' ? -1 : 1;
	if (!policy_tz_number(p, 167, &h))
		return false;
	if (**p == ':' && (++*p, !policy_tz_number(p, 59, &m)))
		return false;
	if (**p == ':' && (++*p, !policy_tz_number(p, 59, &s)))
		return false;
	*out = sign * (h * 3600 + m * 60 + s);
	return true;
}

static bool policy_tz_name(const char **p)
{
	const char *start = *p;
	if (**p == '<') {
		*p += strcspn(*p, ">");
		return *(*p)++ == '>';
	}
	*p += strspn(*p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	return *p - start >= 3;
}

static bool policy_tz_day(const char **p, struct policy_rule_day *out)
{
	bool ok;
	*out = (struct policy_rule_day){.form = 'N', .time_s = 7200};
	if (**p == 'M') {
		++*p;
		out->form = 'M';
		ok = policy_tz_number(p, 12, &out->month) && out->month >= 1 && *(*p)++ == '.' &&
		     policy_tz_number(p, 5, &out->week) && out->week >= 1 && *(*p)++ == '.' &&
		     policy_tz_number(p, 6, &out->day);
	} else if (**p == 'J') {
		++*p;
		out->form = 'J';
		ok = policy_tz_number(p, 365, &out->day) && out->day >= 1;
	} else {
		ok = policy_tz_number(p, 365, &out->day);
	}
	if (ok && **p == '/') {
		++*p;
		ok = policy_tz_time(p, &out->time_s);
	}
	return ok;
}

/* Seconds of the wall clock (as if UTC) at which the rule falls in a year. */
static int64_t policy_tz_when(const struct policy_rule_day *r, int year)
{
	int64_t days = policy_day_number(year, 1, 1);
	if (r->form == 'N') {
		days += r->day;
	} else if (r->form == 'J') {
		days += r->day - 1 + (policy_is_leap(year) && r->day >= 60);
	} else {
		int64_t first = policy_day_number(year, r->month, 1);
		int64_t next = r->month == 12 ? policy_day_number(year + 1, 1, 1)
					      : policy_day_number(year, r->month + 1, 1);
		/* 1970-01-01 was a Thursday; Sunday is 0. */
		int64_t weekday = ((first + 4) % 7 + 7) % 7;
		days = first + (r->day - weekday + 7) % 7 + 7 * (r->week - 1);
		while (days >= next)
			days -= 7;
	}
	return days * POLICY_DAY_S + r->time_s;
}

static void policy_zone_add(struct policy_zone *z, int64_t when, int32_t offset)
{
	if (z->count == POLICY_ZONE_TIMES_MAX || (z->count && when <= z->times[z->count - 1]))
		return;
	z->times[z->count++] = when;
	z->offsets[z->count] = offset;
}

/* What holds behind the table, by the rule. -EINVAL: not a rule. */
static int policy_zone_unroll(struct policy_zone *z, const char *rule)
{
	const char *p = rule;
	int32_t standard, summer;
	struct policy_rule_day begin, end;
	if (!policy_tz_name(&p) || !policy_tz_time(&p, &standard))
		return -EINVAL;
	standard = -standard; /* POSIX counts west */
	if (*p == '\0') {
		if (z->count == 0)
			z->offsets[0] = standard;
		return 0;
	}
	summer = standard + 3600;
	if (!policy_tz_name(&p))
		return -EINVAL;
	if (*p != ',') {
		if (!policy_tz_time(&p, &summer))
			return -EINVAL;
		summer = -summer;
	}
	if (*p++ != ',' || !policy_tz_day(&p, &begin) || *p++ != ',' || !policy_tz_day(&p, &end) ||
	    *p != '\0')
		return -EINVAL;
	if (z->count == 0)
		z->offsets[0] = standard;
	int64_t last = z->count ? z->times[z->count - 1] : 0;
	/* A year early: policy_zone_add leaves out what the table has. */
	int year = 1970 + (int)(last / (366 * (int64_t)POLICY_DAY_S)) - 1;
	for (year = year < 1970 ? 1970 : year; year <= POLICY_ZONE_LAST_YEAR; year++) {
		int64_t on = policy_tz_when(&begin, year) - standard;
		int64_t off = policy_tz_when(&end, year) - summer;
		/* South of the equator summer ends first. */
		policy_zone_add(z, on < off ? on : off, on < off ? summer : standard);
		policy_zone_add(z, on < off ? off : on, on < off ? standard : summer);
	}
	return 0;
}

/* ---- TZif ---- */

struct policy_tzif_head {
	uint8_t version;
	uint32_t isut, isstd, leap, times, types, names;
};

static bool policy_tzif_head(struct cursor *c, struct policy_tzif_head *h)
{
	const uint8_t *magic = cursor_take(c, 4);
	if (!magic || memcmp(magic, "TZif", 4) != 0)
		return false;
	h->version = cursor_u8(c);
	cursor_skip(c, 15);
	h->isut = cursor_u32(c);
	h->isstd = cursor_u32(c);
	h->leap = cursor_u32(c);
	h->times = cursor_u32(c);
	h->types = cursor_u32(c);
	h->names = cursor_u32(c);
	return cursor_ok(c) && h->times <= POLICY_ZONE_TIMES_MAX && h->types >= 1 &&
	       h->types <= 256 && h->names <= 1024 && h->leap <= 1024 && h->isut <= 256 &&
	       h->isstd <= 256;
}

static size_t policy_tzif_size(const struct policy_tzif_head *h, size_t time_size)
{
	return h->times * (time_size + 1) + h->types * 6 + h->names + h->leap * (time_size + 4) +
	       h->isstd + h->isut;
}

int policy_zone_read(const uint8_t *data, size_t size, struct arena *a, struct policy_zone *out)
{
	struct cursor c = cursor_make(data, size);
	struct policy_tzif_head h;
	size_t time_size = 4;
	if (size > POLICY_ZONE_FILE_MAX || !policy_tzif_head(&c, &h))
		return -EINVAL;
	if (h.version >= '2') {
		cursor_skip(&c, policy_tzif_size(&h, 4));
		time_size = 8;
		if (!policy_tzif_head(&c, &h))
			return -EINVAL;
	}
	const uint8_t *block = cursor_take(&c, policy_tzif_size(&h, time_size));
	if (!block)
		return -EINVAL;
	struct cursor times = cursor_make(block, h.times * time_size);
	const uint8_t *kinds = block + h.times * time_size;
	struct cursor types = cursor_make(kinds + h.times, h.types * 6);
	int32_t offsets[256];
	for (uint32_t i = 0; i < h.types; i++) {
		offsets[i] = (int32_t)cursor_u32(&types);
		cursor_skip(&types, 2);
	}
	out->times = arena_alloc(a, POLICY_ZONE_TIMES_MAX * sizeof(*out->times));
	out->offsets = arena_alloc(a, (POLICY_ZONE_TIMES_MAX + 1) * sizeof(*out->offsets));
	out->count = 0;
	out->offsets[0] = offsets[0];
	for (uint32_t i = 0; i < h.times; i++) {
		uint64_t high = time_size == 8 ? cursor_u32(&times) : 0;
		uint32_t low = cursor_u32(&times);
		int64_t when = time_size == 8 ? (int64_t)(high << 32 | low) : (int32_t)low;
		if (kinds[i] >= h.types)
			return -EINVAL;
		policy_zone_add(out, when, offsets[kinds[i]]);
	}
	if (time_size == 4)
		return 0;
	/* The last line: newline, rule (may be empty), newline. */
	char rule[128];
	size_t n = cursor_left(&c);
	const uint8_t *line = cursor_take(&c, n);
	if (n < 2 || line[0] != '\n')
		return -EINVAL;
	const uint8_t *end = memchr(line + 1, '\n', n - 1);
	if (!end || (size_t)(end - line - 1) >= sizeof(rule))
		return -EINVAL;
	memcpy(rule, line + 1, (size_t)(end - line - 1));
	rule[end - line - 1] = '\0';
	return rule[0] == '\0' ? 0 : policy_zone_unroll(out, rule);
}

int32_t policy_zone_offset(const struct policy_zone *z, int64_t wall_s)
{
	/* How many of the times lie at or before it. */
	size_t low = 0, high = z->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (z->times[middle] <= wall_s)
			low = middle + 1;
		else
			high = middle;
	}
	return z->offsets[low];
}

/* Letters, digits and _ + - in words with / between: a file below the zones' folder. */
static bool policy_zone_name_is_valid(const char *name)
{
	size_t n = strlen(name);
	return n > 0 && n <= POLICY_ZONE_NAME_MAX && name[0] != '/' && name[n - 1] != '/' &&
	       !strstr(name, "//") &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/") ==
		       n;
}

const struct policy_zone *policy_zone_find(struct policy_zones *zones, const char *name,
					   const struct node *n, struct diags *d)
{
	const char *wanted = name ? name : "";
	for (const struct policy_zone *z = zones->first; z; z = z->next)
		if (strcmp(z->name, wanted) == 0)
			return z;
	struct policy_zone *z = arena_alloc(zones->arena, sizeof(*z));
	z->name = arena_strdup(zones->arena, wanted);
	z->offsets = arena_alloc(zones->arena, sizeof(*z->offsets));

	/* UTC needs no file, and a machine without a clock's zone shows UTC. */
	bool is_utc = strcmp(wanted, "UTC") == 0;
	struct source_file file;
	int result = 0;
	if (!is_utc) {
		if (name && !policy_zone_name_is_valid(name)) {
			node_error(n, d,
				   "\"%s\" is no time zone (expected one such as Europe/Zurich)",
				   name);
			return NULL;
		}
		const char *path = name ? arena_printf(zones->arena, POLICY_ZONE_FOLDER "%s", name)
					: POLICY_ZONE_LOCAL;
		result = source_read(zones->source, path, &file);
		if (result == 0)
			result = policy_zone_read(file.data, file.size, zones->arena, z);
		if (result == -ENOENT && !name)
			result = 0;
		if (result < 0) {
			node_error(n, d, "time zone \"%s\" cannot be read: %s%s",
				   name ? name : path,
				   result == -EINVAL ? "not a time zone" : strerror(-result),
				   result == -ENOENT ? " (is the package tzdata installed?)" : "");
			return NULL;
		}
	}
	z->next = zones->first;
	zones->first = z;
	return z;
}
