/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STIX 2.0 and 2.1: the indicators of a bundle, or of a TAXII envelope; of their patterns
 * (stix_pattern.h) those that a name alone fulfils. A name stands for itself alone, as `=` says,
 * unless the feed says `match: subtree`. What is revoked, or not valid at the time of reading, is
 * rejected. State: the records. Runs in the fetcher and in `feeds compile`.
 */
#include "feeds/formats/json_body.h"
#include "feeds/formats/stix_pattern.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STIX_TYPE, STIX_PATTERN, STIX_PATTERN_TYPE, STIX_REVOKED, STIX_FROM, STIX_UNTIL };
static const char *const stix_names[] = {"type",    "pattern",	  "pattern_type",
					 "revoked", "valid_from", "valid_until",
					 NULL};

/* RFC 3339 in UTC, fractions cut: what STIX has. False if it is none. */
static bool stix_time(struct entry_text t, int64_t *out)
{
	struct tm tm = {0};
	char copy[32];
	int n = 0;
	size_t length = t.length < sizeof(copy) - 1 ? t.length : sizeof(copy) - 1;
	memcpy(copy, t.at, length);
	copy[length] = '\0';
	if (sscanf(copy, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &n) != 6 ||
	    (copy[n] != 'Z' && copy[n] != '.'))
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	*out = (int64_t)timegm(&tm);
	return true;
}

static int stix_record(struct feed_body *body, const struct json_records *r,
		       const struct json_field fields[JSON_FIELDS_MAX])
{
	const struct json_field *pattern = &fields[STIX_PATTERN],
				*kind = &fields[STIX_PATTERN_TYPE], *from = &fields[STIX_FROM],
				*until = &fields[STIX_UNTIL];
	struct entry_text text = json_field_text(r, pattern);
	const struct feed_line line = {text.at, text.length, r->json.line + 1};
	int64_t begin = INT64_MIN, end = INT64_MAX;
	if (!json_field_is(r, &fields[STIX_TYPE], "indicator") || !pattern->present)
		return 0;
	if (pattern->overlong)
		entry_reject(body->sink, &line, FEED_REJECT_LONG);
	else if (kind->present && !json_field_is(r, kind, "stix"))
		entry_reject(body->sink, &line, FEED_REJECT_UNSUPPORTED);
	else if ((from->present && !stix_time(json_field_text(r, from), &begin)) ||
		 (until->present && !stix_time(json_field_text(r, until), &end)))
		entry_reject(body->sink, &line, FEED_REJECT_SYNTAX);
	else if (json_field_is(r, &fields[STIX_REVOKED], "true") || body->now_s < begin ||
		 body->now_s >= end)
		entry_reject(body->sink, &line, FEED_REJECT_EXPIRED);
	else
		return stix_pattern(body, &line);
	return 0;
}

static int stix_text(struct feed_body *body, const char *text, size_t size)
{
	struct json_records *r = body->state;
	r->names = stix_names;
	r->record = stix_record;
	return json_records_push(body, text, size);
}

static int stix_end(struct feed_body *body)
{
	struct json_records *r = body->state;
	return json_body_end(body, &r->json);
}

static int stix_recognise(const char *head, size_t size)
{
	static const char *const marks[] = {"\"bundle\"", "\"bundle--", "\"indicator--",
					    "\"spec_version\""};
	struct entry_text t = entry_trim(head, size);
	if (t.length == 0 || (t.at[0] != '{' && t.at[0] != '['))
		return 0;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (memmem(t.at, t.length, marks[i], strlen(marks[i])))
			return 90;
	return 0;
}

const struct feed_format feed_format_stix = {
	.name = "stix",
	.help = "indicators of a STIX 2.1 bundle (JSON)",
	.default_match = FEED_MATCH_EXACT,
	.state_size = sizeof(struct json_records),
	.text = stix_text,
	.end = stix_end,
	.recognise = stix_recognise,
};
