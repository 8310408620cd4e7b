/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/formats/json*.c, misp.c: documents in pieces of any size, paths, attributes. */
#include "feed_rows.h"

#include "feeds/formats/json.h"

static void lists(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"[\"a.test\", \"b.test\"]", "a.test. subtree;b.test. subtree;"},
		{" [ ] ", ""},
		{"[\"a.test\"]\n[\"b.test\"]\n", "a.test. subtree;b.test. subtree;"},
		{"[[\"no.test\"], {\"a\": \"no.test\"}, \"a.test\", 1, null]",
		 "a.test. subtree;!syntax;!syntax;"},
		{"[\"\\u0061.te\\u0073t\", \"m\\u00fcnchen.test\", \"a\\/b\", \"a\\n.test\"]",
		 "a.test. subtree;xn--mnchen-3ya.test. subtree;!url;!encoding;"},
		{"[\"a\\u0000.test\", \"\\ud83d\\ude00.test\", \"\\ud83d.test\"]",
		 "!encoding;!name;!name;"},
		{"[\"a.test\"", "a.test. subtree;refused: not JSON: cut off (line 1);"},
		{"[\"a.test", "refused: not JSON: cut off (line 1);"},
		{"[\"a.test\"\n\"b.test\"]",
		 "a.test. subtree;refused: not JSON: no ',' between values (line 2);"},
		{"[\"a.test\",]",
		 "a.test. subtree;refused: not JSON: no value where one has to be (line 1);"},
		{"{\"a\" 1}", "refused: not JSON: no ':' behind a key (line 1);"},
		{"{1: 2}", "refused: not JSON: no key where one has to be (line 1);"},
		{"[\"\\x\"]", "refused: not JSON: an escape that JSON does not have (line 1);"},
		{"[\"\\u00g0\"]", "refused: not JSON: an escape that JSON does not have (line 1);"},
		{"]", "refused: not JSON: no value where one has to be (line 1);"},
		{"[}", "refused: not JSON: no value where one has to be (line 1);"},
		{"<html>", "refused: not JSON: no value where one has to be (line 1);"},
	};
	FEED_ROWS_CHECK(&feed_format_json, FEED_MATCH_SUBTREE, table);
}

static void deep(void **state)
{
	(void)state;
	char body[400] = "", expected[] = "refused: not JSON: nested too deeply (line 1);";
	memset(body, '[', JSON_DEPTH_MAX + 1);
	const struct feed_row row = {body, expected};
	feed_rows_check_hints(&feed_format_json, FEED_MATCH_SUBTREE, NULL, &row, 1);
}

static void paths(void **state)
{
	(void)state;
	static const char body[] =
		"{\"items\": [{\"domain\": \"a.test\", \"x\": {\"domain\": \"no.test\"}},"
		" {\"y\": [\"no.test\"], \"domain\": \"b.test\"}], \"domain\": \"c.test\","
		" \"7\": [{\"ioc\": \"d.test\"}], \"8\": [{\"ioc\": \"e.test\"}],"
		" \"long long long long long long long long long long key\": \"no.test\"}";
	static const struct {
		const char *path, *expected;
	} rows[] = {
		{"items[].domain", "a.test. subtree;b.test. subtree;"},
		{"items[].x.domain", "no.test. subtree;"},
		{"domain", "c.test. subtree;"},
		{"*[].ioc", "d.test. subtree;e.test. subtree;"},
		{"items[].y[]", "no.test. subtree;"},
		{"items", ""},
		{"nosuch", ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct feed_hints hints = {.path = rows[i].path};
		const struct feed_row row = {body, rows[i].expected};
		feed_rows_check_hints(&feed_format_json, FEED_MATCH_SUBTREE, &hints, &row, 1);
	}
}

static void path_syntax(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		int last; /* what json_path_next ends with */
	} rows[] = {
		{"a", 0},     {"a.b", 0}, {"[]", 0},   {"[][]", 0},  {"a[].b[]", 0},
		{"*[].c", 0}, {".a", -1}, {"a.", -1},  {"a..b", -1}, {"a[", -1},
		{"a[1]", -1}, {"a]", -1}, {"[]a", -1}, {"[].", -1},  {"a.[]", 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *at = rows[i].path;
		struct entry_text part;
		int kind = 1;
		while (kind > 0)
			kind = json_path_next(&at, &part);
		if (kind != rows[i].last)
			print_error("path: %s\n", rows[i].path);
		assert_int_equal(kind, rows[i].last);
	}
}

static void misp_events(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"{\"Event\": {\"info\": \"x\", \"Attribute\": ["
		 "{\"type\": \"domain\", \"value\": \"a.test\", \"to_ids\": true},"
		 "{\"to_ids\": \"1\", \"Tag\": [{\"name\": \"tlp:white\", \"type\": \"x\"}],"
		 " \"type\": \"hostname\", \"value\": \"b.test\"},"
		 "{\"type\": \"domain|ip\", \"value\": \"c.test|192.0.2.1\", \"to_ids\": true},"
		 "{\"type\": \"hostname|port\", \"value\": \"d.test|443\", \"to_ids\": true},"
		 "{\"type\": \"url\", \"value\": \"http://e.test/\", \"to_ids\": true},"
		 "{\"type\": \"url\", \"value\": \"http://e.test/x\", \"to_ids\": true},"
		 "{\"type\": \"md5\", \"value\": \"f.test\", \"to_ids\": true},"
		 "{\"type\": \"domain\", \"value\": \"g.test\", \"to_ids\": false},"
		 "{\"type\": \"domain\", \"value\": \"h.test\"},"
		 "{\"type\": \"domain\", \"value\": \"i.test\", \"to_ids\": true,"
		 " \"deleted\": true}],"
		 "\"ShadowAttribute\": ["
		 "{\"type\": \"domain\", \"value\": \"j.test\", \"to_ids\": true}],"
		 "\"Object\": [{\"name\": \"o\", \"Attribute\": ["
		 "{\"type\": \"domain\", \"value\": \"k.test\", \"to_ids\": true}]}]}}",
		 "a.test. exact;b.test. exact;c.test. exact;d.test. exact;e.test. exact;!url;"
		 "!unsupported;!unsupported;!unsupported;k.test. exact;"},
		{"{\"response\": [{\"Event\": {\"Attribute\": ["
		 "{\"type\": \"domain\", \"value\": \"a.test\", \"to_ids\": true}]}}]}",
		 "a.test. exact;"},
		{"{\"Event\": {\"Attribute\": [{\"type\": \"domain\", \"value\": \"a.test\"",
		 "refused: not JSON: cut off (line 1);"},
	};
	FEED_ROWS_CHECK(&feed_format_misp, FEED_MATCH_FORMAT, table);
}

static void misp_warninglists(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"{\"description\": \"x\", \"list\": [\"a.test\", \".b.test\", \"192.0.2.1\"],"
		 " \"type\": \"hostname\", \"version\": 2}",
		 "a.test. exact;b.test. subtree;!address;"},
		{"{\"type\": \"string\", \"list\": [\"a.test\"]}", "a.test. exact;"},
		{"{\"list\": [\"^a\\\\.test$\"], \"type\": \"regex\"}",
		 "!name;refused: a warning list of type regex;"},
		{"{\"list\": [7]}", "!syntax;"},
	};
	FEED_ROWS_CHECK(&feed_format_misp, FEED_MATCH_FORMAT, table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),       cmocka_unit_test(deep),
		cmocka_unit_test(paths),       cmocka_unit_test(path_syntax),
		cmocka_unit_test(misp_events), cmocka_unit_test(misp_warninglists),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
