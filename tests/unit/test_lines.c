/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/formats/lines.c: the same lines whatever the chunks and the encoding. */
#include "feeds/formats/lines.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char seen[1 << 16];
static size_t seen_length;

static int on_line(void *context, const struct feed_line *line)
{
	(void)context;
	seen_length += (size_t)snprintf(seen + seen_length, sizeof(seen) - seen_length, "%d:%.*s|",
					(int)line->number, (int)line->length, line->text);
	return 0;
}

static void on_reject(void *context, enum feed_reject reason, uint64_t line, const char *text,
		      size_t length)
{
	(void)context;
	(void)text;
	assert_true(length <= LINES_MAX);
	seen_length += (size_t)snprintf(seen + seen_length, sizeof(seen) - seen_length, "%d!%s|",
					(int)line, feed_reject_words[reason]);
}

static int split(const void *data, size_t size, size_t chunk, bool whole)
{
	struct lines l = {.line = on_line, .reject = on_reject};
	seen_length = 0;
	seen[0] = '\0';
	for (size_t at = 0; at < size; at += chunk) {
		/* A copy of exact size, so that the sanitizer sees any read behind it. */
		size_t n = size - at < chunk ? size - at : chunk;
		char *copy = malloc(n);
		memcpy(copy, (const char *)data + at, n);
		int result = lines_push(&l, copy, n);
		free(copy);
		if (result < 0)
			return result;
	}
	return lines_finish(&l, whole);
}

struct row {
	const char *data;
	size_t size;
	const char *whole, *cut;
};
#define ROW(data, whole, cut)                                                                      \
	{                                                                                          \
		data, sizeof(data) - 1, whole, cut                                                 \
	}

static void rows_in_every_chunking(void **state)
{
	(void)state;
	static const struct row rows[] = {
		ROW("", "", ""),
		ROW("a\nb\n", "1:a|2:b|", "1:a|2:b|"),
		ROW("a\nb", "1:a|2:b|", "1:a|"),
		ROW("a\r\nb\r\n\r\nc", "1:a|2:b|3:|4:c|", "1:a|2:b|3:|"),
		ROW("a\rb\r", "1:a|2:b|", "1:a|2:b|"),
		ROW("a\n\rb", "1:a|2:|3:b|", "1:a|2:|"),
		ROW("\xef\xbb\xbfx\ny\n", "1:x|2:y|", "1:x|2:y|"),
		ROW("\xef\xbb\xbf", "", ""),
		ROW("\xef\xbb", "1:\xef\xbb|", ""),
		ROW("\xff\xfe"
		    "b\0a\0d\0\r\0\n\0\xfc\0\n\0",
		    "1:bad|2:\xc3\xbc|", "1:bad|2:\xc3\xbc|"),
		ROW("\xfe\xff\0b\0a\0d\0\n", "1:bad|", "1:bad|"),
		ROW("b\0a\0d\0\n\0", "1:bad|", "1:bad|"),
		ROW("\0b\0a\0d\0\n", "1:bad|", "1:bad|"),
		ROW("\xff\xfe\x3d\xd8\x00\xde\n\0", "1:\xf0\x9f\x98\x80|", "1:\xf0\x9f\x98\x80|"),
		ROW("\xff\xfe\x3d\xd8\x61\0\n\0\x00\xdc\n\0",
		    "1:\xef\xbf\xbd"
		    "a|2:\xef\xbf\xbd|",
		    "1:\xef\xbf\xbd"
		    "a|2:\xef\xbf\xbd|"),
		ROW("\xff\xfe"
		    "a\0b",
		    "1!encoding|", ""),
		ROW("good\nb\0ad\nalso\n", "1:good|2!encoding|3:also|",
		    "1:good|2!encoding|3:also|"),
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t chunk = 1; chunk <= rows[i].size + 1; chunk++) {
			assert_int_equal(split(rows[i].data, rows[i].size, chunk, true), 0);
			assert_string_equal(seen, rows[i].whole);
			assert_int_equal(split(rows[i].data, rows[i].size, chunk, false), 0);
			assert_string_equal(seen, rows[i].cut);
		}
	}
}

static void utf32_is_refused(void **state)
{
	(void)state;
	assert_int_equal(split("\xff\xfe\0\0a\0\0\0", 8, 3, true), -EILSEQ);
	assert_int_equal(split("\0\0\xfe\xff\0\0\0a", 8, 3, true), -EILSEQ);
}

/* A1-10: one line of a megabyte costs itself only. */
static void a_long_line_costs_itself_only(void **state)
{
	(void)state;
	size_t size = (1 << 20) + 20;
	char *body = malloc(size);
	memset(body, 'x', size);
	memcpy(body, "good.test\n", 10);
	memcpy(body + size - 11, "\ngood2.test", 11);
	assert_int_equal(split(body, size, 777, true), 0);
	assert_string_equal(seen, "1:good.test|2!long|3:good2.test|");
	assert_int_equal(split(body, size - 11, 777, true), 0);
	assert_string_equal(seen, "1:good.test|2!long|");
	free(body);
}

static void the_bound_is_exact(void **state)
{
	(void)state;
	char body[LINES_MAX + 2];
	memset(body, 'x', sizeof(body));
	body[LINES_MAX] = '\n';
	assert_int_equal(split(body, LINES_MAX + 1, 100, true), 0);
	assert_memory_equal(seen, "1:xxx", 5);
	body[LINES_MAX] = 'x';
	body[LINES_MAX + 1] = '\n';
	assert_int_equal(split(body, LINES_MAX + 2, 100, true), 0);
	assert_string_equal(seen, "1!long|");
}

static int stop(void *context, const struct feed_line *line)
{
	(void)context;
	return line->number == 2 ? -ENOSPC : 0;
}

static void an_error_ends_the_body(void **state)
{
	(void)state;
	struct lines l = {.line = stop, .reject = on_reject};
	assert_int_equal(lines_push(&l, "a\nb\nc\n", 6), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_in_every_chunking),
		cmocka_unit_test(utf32_is_refused),
		cmocka_unit_test(a_long_line_costs_itself_only),
		cmocka_unit_test(the_bound_is_exact),
		cmocka_unit_test(an_error_ends_the_body),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
