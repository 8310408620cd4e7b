/* SPDX-License-Identifier: Apache-2.0 */
/* What a list format makes of a line, as a text: "name flags;" for entries, "!reason;" for rejects.
 * Shared by the tests of the formats. */
#ifndef BALEEN_TESTS_FEED_ROWS_H
#define BALEEN_TESTS_FEED_ROWS_H

#include "feeds/formats/format.h"
#include "feeds/set/domset.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct feed_row {
	const char *line; /* or several: a body */
	const char *expected;
};

static char feed_rows_text[8192];

static inline int feed_rows_entry(void *context, const struct feed_line *line,
				  const struct name *name, uint16_t flags)
{
	(void)context;
	(void)line;
	static const struct {
		uint16_t bit;
		const char *word;
	} words[] = {
		{DOMSET_EXACT, " exact"},
		{DOMSET_SUBTREE, " subtree"},
		{DOMSET_BELOW, " below"},
		{DOMSET_EXCEPT(DOMSET_EXACT), " except-exact"},
		{DOMSET_EXCEPT(DOMSET_SUBTREE), " except-subtree"},
		{DOMSET_EXCEPT(DOMSET_BELOW), " except-below"},
		{DOMSET_IMPORTANT(DOMSET_EXACT), " important-exact"},
		{DOMSET_IMPORTANT(DOMSET_SUBTREE), " important-subtree"},
		{DOMSET_IMPORTANT(DOMSET_BELOW), " important-below"},
		{DOMSET_EXCEPT_IMPORTANT(DOMSET_EXACT), " except-important-exact"},
		{DOMSET_EXCEPT_IMPORTANT(DOMSET_SUBTREE), " except-important-subtree"},
		{DOMSET_EXCEPT_IMPORTANT(DOMSET_BELOW), " except-important-below"},
		{FEED_ENTRY_CANCEL, " cancel"},
	};
	name_format(name->wire, feed_rows_text + strlen(feed_rows_text));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (flags & words[i].bit)
			strcat(feed_rows_text, words[i].word);
	strcat(feed_rows_text, ";");
	return 0;
}

static inline void feed_rows_reject(void *context, enum feed_reject reason, uint64_t line,
				    const char *text, size_t length)
{
	const struct feed_format *format = context;
	(void)text;
	(void)length;
	if (format->line)
		assert_int_equal(line, 7);
	strcat(feed_rows_text, "!");
	strcat(feed_rows_text, feed_reject_words[reason]);
	strcat(feed_rows_text, ";");
}

static inline int feed_rows_refuse(void *context, const char *why)
{
	(void)context;
	sprintf(feed_rows_text + strlen(feed_rows_text), "refused: %s;", why);
	return -EBADMSG;
}

/* A body into feed_rows_text: by lines, or in pieces of `chunk` octets. Each piece is of exact size
 * on the heap, so that the sanitizer sees any read behind it. */
static inline void feed_rows_body(struct feed_body *b, const char *text, size_t chunk)
{
	int result = 0;
	while (*text && result == 0) {
		size_t length = b->format->line ? strcspn(text, "\n") : strnlen(text, chunk);
		char *copy = malloc(length ? length : 1);
		memcpy(copy, text, length);
		struct feed_line line = {copy, length, 7};
		result = b->format->line ? b->format->line(b, &line)
					 : b->format->text(b, copy, length);
		free(copy);
		text += length;
		text += b->format->line && *text;
	}
	if (result == 0 && b->format->end)
		result = b->format->end(b);
	assert_true(result == 0 || result == -EBADMSG);
}

#define FEED_ROWS_NOW 1767225600 /* 2026-01-01 */

static inline void feed_rows_check_hints(const struct feed_format *format, enum feed_match match,
					 const struct feed_hints *hints,
					 const struct feed_row *rows, size_t count)
{
	const struct feed_sink sink = {(void *)(uintptr_t)format, feed_rows_entry, feed_rows_reject,
				       feed_rows_refuse};
	for (size_t i = 0; i < count; i++) {
		for (size_t chunk = 1; chunk <= 1000; chunk *= 10) {
			struct feed_body b;
			feed_rows_text[0] = '\0';
			assert_int_equal(feed_body_init(&b, format, match, hints, FEED_ROWS_NOW,
							&sink),
					 0);
			feed_rows_body(&b, rows[i].line, chunk);
			feed_body_fini(&b);
			if (strcmp(feed_rows_text, rows[i].expected) != 0)
				print_error("line: %s\n", rows[i].line);
			assert_string_equal(feed_rows_text, rows[i].expected);
		}
	}
}

#define FEED_ROWS_CHECK_HINTS(format, match, hints, rows)                                          \
	feed_rows_check_hints(format, match, hints, rows, sizeof(rows) / sizeof((rows)[0]))
#define FEED_ROWS_CHECK(format, match, rows) FEED_ROWS_CHECK_HINTS(format, match, NULL, rows)

#endif
