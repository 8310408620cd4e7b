/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `when:` of a rule, and points in time as users write them. Parsed by the loader, asked by workers
 * and explain; the arena owns everything. Invariant: only what the wall clock shows decides, never
 * how long ago midnight was.
 */
#include "policies/policy_when.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define POLICY_DAY_S 86400

static const char *const policy_day_words[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

/* Three letters at the text's begin, any case; -1. */
static int policy_day_of(const char *text)
{
	for (int i = 0; i < 7; i++)
		if (strncasecmp(text, policy_day_words[i], 3) == 0)
			return i;
	return -1;
}

/* "mon", "mon-fri", "fri-mon". */
static bool policy_days_of_word(const char *text, size_t length, uint8_t *days)
{
	int first = length >= 3 ? policy_day_of(text) : -1, last = first;
	if (length == 7 && text[3] == '-')
		last = policy_day_of(text + 4);
	else if (length != 3)
		return false;
	if (first < 0 || last < 0)
		return false;
	for (int i = first;; i = (i + 1) % 7) {
		*days |= (uint8_t)(1 << i);
		if (i == last)
			return true;
	}
}

static bool policy_days_of_text(const struct node *n, struct diags *d, uint8_t *days)
{
	const char *text;
	if (!node_text(n, d, &text))
		return false;
	for (const char *p = text; *p;) {
		size_t length = strcspn(p, ", ");
		if (length > 0 && !policy_days_of_word(p, length, days)) {
			node_error(n, d, "\"%s\" is no day (expected mon, mon-fri, or [sat, sun])",
				   text);
			return false;
		}
		p += length + strspn(p + length, ", ");
	}
	return true;
}

static bool policy_days(const struct node *n, struct diags *d, uint8_t *out)
{
	uint8_t days = 0;
	bool ok = n->kind != NODE_MAP;
	if (n->kind == NODE_LIST)
		for (const struct node *item = n->children; item; item = item->next)
			ok &= policy_days_of_text(item, d, &days);
	else if (n->kind == NODE_SCALAR)
		ok = policy_days_of_text(n, d, &days);
	else
		node_error(n, d, "days must be a list ([mon, wed]) or a range (mon-fri)");
	if (ok && days == 0) {
		node_error(n, d, "no day is named (expected mon, mon-fri, or [sat, sun])");
		ok = false;
	}
	if (ok)
		*out = days;
	return ok;
}

/* "09:00"; 24:00 is the day's end. */
static bool policy_minutes(const struct node *n, struct diags *d, uint16_t *out)
{
	const char *text;
	unsigned hour, minute;
	char rest;
	if (!node_text(n, d, &text))
		return false;
	size_t length = strlen(text);
	if (length < 4 || length > 5 || strspn(text, "0123456789:") != length ||
	    text[length - 3] != ':' || sscanf(text, "%2u:%2u%c", &hour, &minute, &rest) != 2 ||
	    minute > 59 || hour > 24 || (hour == 24 && minute > 0)) {
		node_error(n, d, "\"%s\" is no time of day (expected \"09:00\", quoted)", text);
		return false;
	}
	*out = (uint16_t)(hour * 60 + minute);
	return true;
}

/* "mon-fri 09:00-17:00 Europe/Zurich", for explain. */
static const char *policy_when_text(struct arena *a, const struct policy_when *w)
{
	char days[40] = "";
	for (int i = 0; i < 7; i++) {
		int last = i;
		if (!(w->days >> i & 1))
			continue;
		while (last + 1 < 7 && w->days >> (last + 1) & 1)
			last++;
		size_t n = strlen(days);
		snprintf(days + n, sizeof(days) - n, "%s%s%s%s", n ? "," : "", policy_day_words[i],
			 last > i + 1 ? "-"
			 : last > i   ? ","
				      : "",
			 last > i ? policy_day_words[last] : "");
		i = last;
	}
	return arena_printf(a, "%s %02d:%02d-%02d:%02d%s%s", days, w->from / 60, w->from % 60,
			    w->to / 60, w->to % 60, w->zone->name[0] ? " " : "", w->zone->name);
}

const struct policy_when *policy_when_parse(const struct node *n, struct policy_zones *zones,
					    struct diags *d)
{
	static const char *const keys[] = {"days", "from", "to", "timezone", NULL};
	if (!node_check_keys(n, keys, d) && n->kind != NODE_MAP)
		return NULL;
	const struct node *days = node_get(n, "days"), *from = node_get(n, "from");
	const struct node *to = node_get(n, "to"), *zone = node_get(n, "timezone");
	if (!days && !from && !to) {
		node_error(n, d, "when says nothing (expected days:, or from: and to:)");
		return NULL;
	}
	struct policy_when *w = arena_alloc(zones->arena, sizeof(*w));
	const char *name = NULL;
	bool ok = true;
	w->days = 0x7f;
	w->to = POLICY_DAY_MINUTES;
	if (days)
		ok &= policy_days(days, d, &w->days);
	if (from)
		ok &= policy_minutes(from, d, &w->from);
	if (to)
		ok &= policy_minutes(to, d, &w->to);
	if (ok && w->from == w->to) {
		node_error(to ? to : from, d, "the range is empty (from equals to)");
		ok = false;
	}
	if (ok && w->from == POLICY_DAY_MINUTES) {
		node_error(from, d, "nothing begins at 24:00 (expected 00:00 of the next day)");
		ok = false;
	}
	if (zone && !node_text(zone, d, &name))
		return NULL;
	w->zone = policy_zone_find(zones, name, zone ? zone : n, d);
	if (!ok || !w->zone)
		return NULL;
	w->text = policy_when_text(zones->arena, w);
	return w;
}

bool policy_when_matches(const struct policy_when *w, int64_t wall_s)
{
	int64_t local = wall_s + policy_zone_offset(w->zone, wall_s);
	int64_t day = local / POLICY_DAY_S;
	if (local % POLICY_DAY_S < 0)
		day--;
	unsigned minute = (unsigned)(local - day * POLICY_DAY_S) / 60;
	/* 1970-01-01 was a Thursday. */
	unsigned weekday = (unsigned)(((day + 3) % 7 + 7) % 7);
	bool today = w->days >> weekday & 1;
	if (w->from < w->to)
		return today && minute >= w->from && minute < w->to;
	bool yesterday = w->days >> (weekday + 6) % 7 & 1;
	return (today && minute >= w->from) || (yesterday && minute < w->to);
}

/* ---- points in time ---- */

bool policy_is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int64_t policy_day_number(int year, int month, int day)
{
	int y = month <= 2 ? year - 1 : year;
	int era = y / 400;
	int of_era = y - era * 400;
	int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return (int64_t)era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* `count` digits at *p. */
static int policy_digits(const char **p, int count)
{
	int value = 0;
	for (int i = 0; i < count; i++, ++*p) {
		if (**p < '0' || **p > '9')
			return -1;
		value = value * 10 + (**p - '0');
	}
	return value;
}

static bool policy_time_of_day(const char **p, int *out)
{
	int hour = policy_digits(p, 2);
	if (hour < 0 || hour > 23 || *(*p)++ != ':')
		return false;
	int minute = policy_digits(p, 2), second = 0;
	if (**p == ':') {
		++*p;
		second = policy_digits(p, 2);
	}
	*out = hour * 3600 + minute * 60 + second;
	return minute >= 0 && minute <= 59 && second >= 0 && second <= 60;
}

int policy_time_parse(const char *text, bool end_of_day, int64_t *out)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	const char *p = text;
	int of_day = 0, offset = 0;
	int year = policy_digits(&p, 4);
	if (year < 1 || *p++ != '-')
		return -EINVAL;
	int month = policy_digits(&p, 2);
	if (month < 1 || month > 12 || *p++ != '-')
		return -EINVAL;
	int day = policy_digits(&p, 2);
	if (day < 1 || day > lengths[month - 1] + (month == 2 && policy_is_leap(year)))
		return -EINVAL;
	int64_t begin = policy_day_number(year, month, day) * POLICY_DAY_S;
	if (*p == '\0') {
		*out = begin + (end_of_day ? POLICY_DAY_S : 0);
		return 0;
	}
	if ((*p != 'T' && *p != 't' && *p != ' ') || (++p, !policy_time_of_day(&p, &of_day)))
		return -EINVAL;
	if (*p == '.') {
		p++;
		p += strspn(p, "0123456789");
	}
	if (*p == 'Z' || *p == 'z') {
		p++;
	} else if (*p == '+' || *p == '-') {
		int sign = *p++ == '-' ? -1 : 1;
		int hour = policy_digits(&p, 2);
		if (hour < 0 || hour > 23 || *p++ != ':')
			return -EINVAL;
		int minute = policy_digits(&p, 2);
		if (minute < 0 || minute > 59)
			return -EINVAL;
		offset = sign * (hour * 3600 + minute * 60);
	} else {
		return -EINVAL;
	}
	if (*p != '\0')
		return -EINVAL;
	*out = begin + of_day - offset;
	return 0;
}
