/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/parse.c: a body becomes entries, or is refused with a reason; never half of it. */
#include "feeds/parse.h"

#include "feeds/set/domset.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static char folder[64];
static struct parse_report report;
static char listing[4096];

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_parse.XXXXXX");
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") == 0 ? system(command) : -1;
}

static void list_entries(void)
{
	struct feedfile f;
	assert_int_equal(feedfile_open("f", 0, &f), 0);
	while (feedfile_next(&f) == 1 && strlen(listing) < sizeof(listing) - 1100) {
		uint8_t wire[NAME_WIRE_MAX];
		key_to_wire(f.records.now.key, f.records.now.key_length, wire);
		name_format(wire, listing + strlen(listing));
		sprintf(listing + strlen(listing), "%x ", f.records.now.flags);
	}
	feedfile_close(&f);
}

/* Parse a body in chunks; entries into `listing`, "a.test.2 ". */
static int parse(const void *body, size_t size, size_t chunk, const struct feed_format *format,
		 bool whole)
{
	const struct parse_options options = {.format = format,
					      .match = FEED_MATCH_FORMAT,
					      .max_bytes = 1 << 20};
	struct feedfile_writer *w;
	struct feedfile_change change;
	struct parse *p;
	listing[0] = '\0';
	assert_int_equal(feedfile_begin("f", NULL, 1, &w), 0);
	assert_int_equal(parse_new(&options, w, &p), 0);
	int result = 0;
	for (size_t at = 0; at < size && result == 0; at += chunk)
		result = parse_push(p, (const char *)body + at,
				    size - at < chunk ? size - at : chunk);
	if (result == 0)
		result = parse_finish(p, whole);
	report = *parse_report(p);
	parse_free(p);
	if (result < 0) {
		feedfile_abandon(w);
		return result;
	}
	assert_int_equal(feedfile_finish(w, NULL, NULL, &change), 0);
	assert_int_equal(feedfile_publish(w, "f"), 0);
	list_entries();
	return 0;
}

static size_t gzip(const char *text, size_t size, char *out, size_t room)
{
	z_stream z = {0};
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)text;
	z.avail_in = (uInt)size;
	z.next_out = (Bytef *)out;
	z.avail_out = (uInt)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return room - z.avail_out;
}

static void bodies(void **state)
{
	(void)state;
	static const struct {
		const char *body, *format, *entries;
	} rows[] = {
		{"0.0.0.0 b.test\n0.0.0.0 a.test\n", "hosts", "a.test.1 b.test.1 "},
		{"# x\nb.test\n*.a.test\n", "domains", "a.test.4 b.test.2 "},
		{"! x\n||b.test^\na.test\n", "adblock", "a.test.1 b.test.2 "},
		{"\xef\xbb\xbf"
		 "a.test\nb.test",
		 "domains", "a.test.2 b.test.2 "},
		{"address=/b.test/#\nlocal=/a.test/\n", "dnsmasq", "a.test.2 b.test.2 "},
		{"$TTL 60\nb.test CNAME .\n*.a.test CNAME .\n", "rpz", "a.test.4 b.test.1 "},
		{"type,indicator\nx,b.test\ny,http://a.test/\n", "csv", "a.test.1 b.test.1 "},
		/* What is JSON is told before the first line ends. */
		{"[\"b.test\", \"a.test\"]", "json", "a.test.1 b.test.1 "},
		{" \r\n\t{\"list\": [\"b.test\", \".a.test\"]}\n", "misp", "a.test.2 b.test.1 "},
		{"\xef\xbb\xbf{\"type\": \"indicator\", \"id\": \"indicator--1\","
		 "\"pattern\": \"[domain-name:value = 'a.test']\"}",
		 "stix", "a.test.1 "},
		{"[Adblock Plus 2.0]\n||b.test^\n", "adblock", "b.test.2 "},
		{"||a.test^\n||b.test^\n||b.test^$badfilter\n", "adblock", "a.test.2 "},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t chunk = 1; chunk < 40; chunk += 6) {
			assert_int_equal(parse(rows[i].body, strlen(rows[i].body), chunk, NULL,
					       true),
					 0);
			assert_string_equal(report.format->name, rows[i].format);
			assert_string_equal(listing, rows[i].entries);
		}
	}
}

static void refused_bodies(void **state)
{
	(void)state;
	static const struct {
		const char *body, *error;
	} rows[] = {
		{"<!DOCTYPE html>\n<html></html>\n", "a web page, not a list (line 1)"},
		{"\n  <META content=\"good.test\"><a href=x>\n", "a web page, not a list (line 2)"},
		{"a.test\nb.test\n<html>\n", "a web page, not a list (line 3)"},
		{"some words of prose\nand more of them\n",
		 "looks like none of the known list formats"},
		{"\x1f\x8bnot gzip at all", "damaged gzip"},
		{"{\"a\": \"b.test\"}", "looks like none of the known list formats"},
		{"{", "looks like none of the known list formats"},
		{"[\"a.test\", \"b.te", "not JSON: cut off (line 1)"},
		{"[\"a.test\"\n<html>", "not JSON: no ',' between values (line 2)"},
		{"BZhnot bzip2", "damaged bzip2"},
		{"PK\3\4", "the zip body is cut off"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(parse(rows[i].body, strlen(rows[i].body), 7, NULL, true),
				 -EBADMSG);
		assert_string_equal(report.error, rows[i].error);
	}
	assert_int_equal(parse("\xff\xfe\0\0a\0\0\0", 8, 3, NULL, true), -EBADMSG);
	assert_string_equal(report.error, "an encoding other than UTF-8 and UTF-16");
	assert_int_equal(parse("<html>", 6, 6, &feed_format_domains, true), -EBADMSG);
}

/* A3-18: what nobody vouches for is not taken. */
static void a_cut_last_line_is_dropped(void **state)
{
	(void)state;
	assert_int_equal(parse("ads.test\ngoogle.te", 18, 5, NULL, false), 0);
	assert_string_equal(listing, "ads.test.2 ");
	assert_int_equal(parse("ads.test\ngoogle.te", 18, 5, NULL, true), 0);
	assert_string_equal(listing, "google.te.2 ads.test.2 ");
}

static void compressed(void **state)
{
	(void)state;
	char one[200], all[400];
	size_t n = gzip("a.test\nb.test\n", 14, one, sizeof(one));
	for (size_t chunk = 1; chunk <= n; chunk += 3) {
		assert_int_equal(parse(one, n, chunk, NULL, false), 0);
		assert_string_equal(listing, "a.test.2 b.test.2 ");
	}
	/* Cut anywhere behind the magic: never taken. */
	for (size_t cut = 2; cut < n; cut++) {
		assert_int_equal(parse(one, cut, 5, NULL, true), -EBADMSG);
		assert_string_equal(report.error, "the gzip body is cut off");
	}
	/* Two members are one file. */
	memcpy(all, one, n);
	memcpy(all + n, one, n);
	assert_int_equal(parse(all, 2 * n, 9, NULL, true), 0);
	assert_int_equal(report.lines, 4);
}

static void a_bomb_is_bounded(void **state)
{
	(void)state;
	size_t size = 3 << 20;
	char *text = malloc(size), *packed = malloc(1 << 16);
	memset(text, '\n', size);
	size_t n = gzip(text, size, packed, 1 << 16);
	assert_int_equal(parse(packed, n, 512, &feed_format_domains, true), -EFBIG);
	free(text);
	free(packed);
}

static void rejects_are_counted_with_examples(void **state)
{
	(void)state;
	static const char body[] = "a.test\nb..test\nx y z\nfe\nc..test\nd..test\ne..test\n"
				   "\x1b[31m.test\n192.0.2.1\nb.test\nq.test\nr.test\ns.test\n"
				   "t.test\nu.test\nv.test\nw.test\n";
	assert_int_equal(parse(body, sizeof(body) - 1, 11, NULL, true), 0);
	assert_int_equal(report.accepted, 9);
	assert_int_equal(report.rejected, 8);
	assert_int_equal(report.rejects[FEED_REJECT_NAME].count, 4);
	assert_int_equal(report.rejects[FEED_REJECT_NAME].examples[0].line, 2);
	assert_string_equal(report.rejects[FEED_REJECT_NAME].examples[2].text, "d..test");
	assert_int_equal(report.rejects[FEED_REJECT_SYNTAX].examples[0].line, 3);
	assert_int_equal(report.rejects[FEED_REJECT_SUFFIX].examples[0].line, 4);
	assert_string_equal(report.rejects[FEED_REJECT_ENCODING].examples[0].text,
			    "\\027[31m.test");
	assert_int_equal(report.rejects[FEED_REJECT_ADDRESS].examples[0].line, 9);
}

static void line_numbers_hold_behind_lost_lines(void **state)
{
	(void)state;
	static const char body[] = "a.test\nb\0.test\nc.test\nd..test\n";
	assert_int_equal(parse(body, sizeof(body) - 1, 4, NULL, true), 0);
	assert_int_equal(report.rejects[FEED_REJECT_ENCODING].examples[0].line, 2);
	assert_int_equal(report.rejects[FEED_REJECT_NAME].examples[0].line, 4);
	assert_int_equal(report.lines, 4);
}

static void lines_of_a_text_are_counted(void **state)
{
	(void)state;
	assert_int_equal(parse("[\"a.test\"]", 10, 3, NULL, true), 0);
	assert_int_equal(report.lines, 1);
	assert_int_equal(parse("[\n\"a.test\",\n\"b..test\"]\n", 23, 2, NULL, true), 0);
	assert_int_equal(report.lines, 3);
	assert_int_equal(report.rejects[FEED_REJECT_NAME].examples[0].line, 3);
}

/* More than the head that the guess is made from. */
static void a_long_body(void **state)
{
	(void)state;
	char *body = malloc(400000), *p = body;
	for (int i = 0; i < 20000; i++)
		p += sprintf(p, "n%d.test\n", i);
	assert_int_equal(parse(body, (size_t)(p - body), 1000, NULL, true), 0);
	assert_int_equal(report.accepted, 20000);
	assert_int_equal(report.lines, 20000);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies),
		cmocka_unit_test(refused_bodies),
		cmocka_unit_test(a_cut_last_line_is_dropped),
		cmocka_unit_test(compressed),
		cmocka_unit_test(a_bomb_is_bounded),
		cmocka_unit_test(rejects_are_counted_with_examples),
		cmocka_unit_test(line_numbers_hold_behind_lost_lines),
		cmocka_unit_test(lines_of_a_text_are_counted),
		cmocka_unit_test(a_long_body),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
