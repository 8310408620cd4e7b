/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/merge.c: many sorted files, one sorted stream, nothing lost, twice. */
#include "feeds/merge.h"

#include "feeds/feedfile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FEEDS 37
#define SPACE 4096

static char folder[64];
static uint16_t expected[SPACE][FEEDS];

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_merge.XXXXXX");
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") == 0 ? system(command) : -1;
}

static void write_feed(unsigned feed, const char *path)
{
	struct feedfile_writer *w;
	struct feedfile_change change;
	assert_int_equal(feedfile_begin(path, NULL, 1, &w), 0);
	for (unsigned i = 0; i < SPACE; i++) {
		/* Each feed another share of the names; feed 5 is empty. */
		if (feed == 5 || (i * 2654435761u >> 16) % (feed + 1) != 0)
			continue;
		struct name name;
		char text[64];
		int n = sprintf(text, "%x.%x.test", i & 63, i >> 6);
		assert_int_equal(name_parse(text, (size_t)n, &name), 0);
		expected[i][feed] = (uint16_t)(1 << (i + feed) % 12);
		assert_int_equal(feedfile_add(w, &name, expected[i][feed]), 0);
	}
	assert_int_equal(feedfile_finish(w, NULL, NULL, &change), 0);
	assert_int_equal(feedfile_publish(w, path), 0);
}

static size_t check_stream(struct domset_stream *stream)
{
	struct domset_record r;
	uint8_t last[KEY_MAX];
	size_t last_length = 0, seen = 0;
	int result;
	while ((result = stream->next(stream->context, &r)) == 1) {
		uint8_t wire[NAME_WIRE_MAX];
		char text[NAME_TEXT_MAX];
		unsigned low, high, feed = 0;
		assert_true(seen++ == 0 || key_compare(last, last_length, r.key, r.key_length) < 0);
		memcpy(last, r.key, r.key_length);
		last_length = r.key_length;
		key_to_wire(r.key, r.key_length, wire);
		name_format(wire, text);
		assert_int_equal(sscanf(text, "%x.%x.test.", &low, &high), 2);
		const uint16_t *row = expected[high << 6 | low];
		for (size_t i = 0; i < r.count; i++, feed++) {
			while (feed < FEEDS && row[feed] == 0)
				feed++;
			assert_int_equal(r.entries[i].feed, feed);
			assert_int_equal(r.entries[i].flags, row[feed]);
		}
		while (feed < FEEDS)
			assert_int_equal(row[feed++], 0);
	}
	assert_int_equal(result, 0);
	return seen;
}

static void merges_as_brute_force_does(void **state)
{
	(void)state;
	static char names[FEEDS][16];
	const char *paths[FEEDS];
	struct merge *m;
	for (unsigned i = 0; i < FEEDS; i++) {
		sprintf(names[i], "f%u", i);
		paths[i] = names[i];
		write_feed(i, paths[i]);
	}
	assert_int_equal(merge_new(paths, FEEDS, &m, NULL), 0);
	struct domset_stream stream = merge_stream(m);
	assert_int_equal(check_stream(&stream), SPACE); /* feed 0 holds all */
	assert_int_equal(stream.rewind(stream.context), 0);
	assert_int_equal(check_stream(&stream), SPACE);
	struct domset_record r;
	assert_int_equal(stream.rewind(stream.context), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(stream.next(stream.context, &r), 1);
	assert_int_equal(stream.rewind(stream.context), 0);
	assert_int_equal(check_stream(&stream), SPACE);
	merge_free(m);
}

static void nothing_and_what_is_missing(void **state)
{
	(void)state;
	struct merge *m;
	struct domset_record r;
	size_t bad = 99;
	assert_int_equal(merge_new(NULL, 0, &m, NULL), 0);
	struct domset_stream stream = merge_stream(m);
	assert_int_equal(stream.next(stream.context, &r), 0);
	merge_free(m);
	write_feed(0, "f0");
	const char *paths[] = {"f0", "missing"};
	assert_int_equal(merge_new(paths, 2, &m, &bad), -ENOENT);
	assert_int_equal(bad, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merges_as_brute_force_does),
		cmocka_unit_test(nothing_and_what_is_missing),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
