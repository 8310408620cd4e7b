/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comma-separated values (RFC 4180) with one column of indicators (indicator.h):
 *
 *   # comment                       | # "first_seen","ioc_value",...   | #fields <tab> indicator
 *   type,indicator,detected         the header: the first record, or a comment that names the
 * column domain, "x.test", 2026-01-01    blanks around fields do not count
 *
 * The column comes from the feed's `column`, by name or by number from 1 (then there is no header);
 * else it is the first of the usual names that the header has. The header's separator holds: tab,
 * comma or semicolon. A quoted field may go over several lines. State: the column, and the record
 * that is being joined. Runs in the fetcher and in `feeds compile`.
 */
#include "feeds/formats/indicator.h"

#include "feeds/formats/lines.h"
#include "feeds/set/domset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CSV_RECORD_MAX	(2 * LINES_MAX)
#define CSV_LINES_MAX	32 /* of one record; more is a quote that nobody closes */
#define CSV_COLUMNS_MAX 256

/* Of several in one header the first here counts. */
static const char *const csv_usual[] = {"domain", "hostname",  "fqdn", "host",	"ioc_value",
					"ioc",	  "indicator", "url",  "value", NULL};

struct csv_state {
	unsigned column; /* from 1; 0: not known yet */
	char separator;	 /* 0: not known yet */
	unsigned lines;
	uint64_t line_number;
	size_t length, field_length;
	char record[CSV_RECORD_MAX], field[CSV_RECORD_MAX];
};

enum csv_result { CSV_FIELD, CSV_NO_FIELD, CSV_OPEN };

/* From behind the first quote, `""` being one: the octet behind the last, or NULL. */
static const char *csv_quoted(const char *p, const char *end, char *out, size_t *n)
{
	for (; p < end; p++) {
		if (*p == '"') {
			if (p + 1 == end || p[1] != '"')
				return p + 1;
			p++;
		}
		if (out)
			out[(*n)++] = *p;
	}
	return NULL;
}

/* Field `wanted` (from 1) of a record into s->field. CSV_OPEN: the record ends inside of quotes. */
static enum csv_result csv_field(struct csv_state *s, struct entry_text record, unsigned wanted)
{
	const char *p = record.at, *end = record.at + record.length;
	enum csv_result result = CSV_NO_FIELD;
	for (unsigned i = 1;; i++) {
		char *out = i == wanted ? s->field : NULL;
		size_t n = 0;
		while (p < end && *p == ' ')
			p++;
		if (p < end && *p == '"' && !(p = csv_quoted(p + 1, end, out, &n)))
			return CSV_OPEN;
		for (; p < end && *p != s->separator; p++)
			if (out)
				out[n++] = *p;
		if (out) {
			s->field_length = n;
			result = CSV_FIELD;
		}
		if (p == end)
			return result;
		p++;
	}
}

static char csv_separator(struct entry_text header)
{
	if (memchr(header.at, '\t', header.length))
		return '\t';
	return memchr(header.at, ',', header.length) || !memchr(header.at, ';', header.length)
		       ? ','
		       : ';';
}

/* The number of the column called `name`; 0: there is none. */
static unsigned csv_find(struct csv_state *s, struct entry_text header, const char *name)
{
	for (unsigned i = 1; i <= CSV_COLUMNS_MAX; i++) {
		if (csv_field(s, header, i) != CSV_FIELD)
			return 0;
		struct entry_text field = entry_trim(s->field, s->field_length);
		if (field.length == strlen(name) && strncasecmp(field.at, name, field.length) == 0)
			return i;
	}
	return 0;
}

/* Is this the header? Then the column is known from here on. */
static bool csv_header(struct csv_state *s, struct entry_text header, const char *column)
{
	const char *const one[] = {column, NULL};
	s->separator = csv_separator(header);
	for (const char *const *name = column ? one : csv_usual; *name && !s->column; name++)
		s->column = csv_find(s, header, *name);
	if (!s->column)
		s->separator = 0;
	return s->column > 0;
}

/* A comment that names the column, as abuse.ch and Zeek write them. */
static void csv_comment(struct csv_state *s, struct entry_text line, const char *column)
{
	while (line.length > 0 && line.at[0] == '#')
		line = entry_trim(line.at + 1, line.length - 1);
	if (line.length > 7 && memcmp(line.at, "fields\t", 7) == 0)
		line = entry_trim(line.at + 7, line.length - 7);
	if (memchr(line.at, ',', line.length) || memchr(line.at, ';', line.length) ||
	    memchr(line.at, '\t', line.length))
		csv_header(s, line, column);
}

static int csv_record(struct feed_body *body, struct entry_text record)
{
	struct csv_state *s = body->state;
	const struct feed_line line = {record.at, record.length, s->line_number};
	if (!s->column) {
		char why[160];
		if (csv_header(s, record, body->hints.column))
			return 0;
		snprintf(why, sizeof(why), "no column \"%.64s\" in the header",
			 body->hints.column ? body->hints.column : "domain");
		return body->sink->refuse(body->sink->context,
					  body->hints.column
						  ? why
						  : "no column of a usual name (give `column`)");
	}
	if (csv_field(s, record, s->column) != CSV_FIELD) {
		entry_reject(body->sink, &line, FEED_REJECT_SYNTAX);
		return 0;
	}
	uint16_t flags = body->match == FEED_MATCH_EXACT ? DOMSET_EXACT : DOMSET_SUBTREE;
	return indicator_deliver(body, &line, s->field, s->field_length, flags, DOMSET_EXACT);
}

static void csv_begin(struct csv_state *s, const char *column)
{
	s->column = column && column[0] && strspn(column, "0123456789") == strlen(column)
			    ? (unsigned)strtoul(column, NULL, 10)
			    : 0;
}

static int csv_line(struct feed_body *body, const struct feed_line *line)
{
	struct csv_state *s = body->state;
	struct entry_text t = entry_trim(line->text, line->length);
	if (s->lines == 0) {
		if (!s->column)
			csv_begin(s, body->hints.column);
		if (t.length == 0)
			return 0;
		if (t.at[0] == '#') {
			if (!s->column)
				csv_comment(s, t, body->hints.column);
			return 0;
		}
		s->line_number = line->number;
		s->length = 0;
	} else if (s->length < sizeof(s->record)) {
		s->record[s->length++] = '\n';
	}
	bool overlong = line->length > sizeof(s->record) - s->length;
	size_t n = overlong ? sizeof(s->record) - s->length : line->length;
	memcpy(s->record + s->length, line->text, n);
	s->length += n;
	s->lines++;
	struct entry_text record = {s->record, s->length};
	if (!s->separator && s->column)
		s->separator = csv_separator(record);
	bool open = csv_field(s, record, CSV_COLUMNS_MAX) == CSV_OPEN;
	if (open && !overlong && s->lines < CSV_LINES_MAX)
		return 0;
	s->lines = 0;
	if (!open && !overlong)
		return csv_record(body, record);
	body->sink->reject(body->sink->context, FEED_REJECT_LONG, s->line_number, s->record,
			   s->length);
	return 0;
}

static int csv_end(struct feed_body *body)
{
	const struct csv_state *s = body->state;
	if (s->lines > 0)
		body->sink->reject(body->sink->context, FEED_REJECT_SYNTAX, s->line_number,
				   s->record, s->length);
	return 0;
}

static int csv_recognise(const char *head, size_t size)
{
	struct csv_state *s = calloc(1, sizeof(*s));
	int score = 0, found = 95;
	/* The header is a comment or the first record; behind a comment, one has to follow. */
	while (s && size > 0 && !score) {
		const char *end = memchr(head, '\n', size);
		size_t length = end ? (size_t)(end - head) : size;
		struct entry_text line = entry_trim(head, length);
		length += end != NULL;
		head += length;
		size -= length;
		if (line.length == 0 || line.length > sizeof(s->field))
			continue;
		bool comment = line.at[0] == '#';
		if (s->column && !comment)
			score = csv_field(s, line, s->column > 1 ? s->column : 2) == CSV_FIELD
					? found
					: -1;
		if (!s->column)
			csv_comment(s, line, NULL);
		if (s->column && comment && line.length > 8 && memcmp(line.at, "#fields\t", 8) == 0)
			found = 100; /* Zeek's; addresses in the first column are no hosts file */
		if (!comment && !score)
			score = s->column ? found : -1;
	}
	free(s);
	return score > 0 ? score : 0;
}

const struct feed_format feed_format_csv = {
	.name = "csv",
	.help = "comma-separated values, one column of which has the names or URLs (column)",
	.default_match = FEED_MATCH_EXACT,
	.state_size = sizeof(struct csv_state),
	.line = csv_line,
	.end = csv_end,
	.recognise = csv_recognise,
};
