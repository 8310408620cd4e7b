/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/formats/format.c: the table, and telling formats apart. */
#include "feeds/formats/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void by_name(void **state)
{
	(void)state;
	for (const struct feed_format *const *f = feed_formats; *f; f++)
		assert_ptr_equal(feed_format_find((*f)->name), *f);
	assert_null(feed_format_find("host"));
	assert_null(feed_format_find(""));
}

static void every_reason_has_a_word(void **state)
{
	(void)state;
	for (int i = 0; i < FEED_REJECT_REASONS; i++) {
		assert_non_null(feed_reject_words[i]);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(feed_reject_words[i], feed_reject_words[j]);
	}
}

static void guesses(void **state)
{
	(void)state;
	static const struct {
		const char *head;
		const struct feed_format *format;
	} rows[] = {
		{"# Title\n0.0.0.0 a.test\n0.0.0.0 b.test\n", &feed_format_hosts},
		{"127.0.0.1 localhost\n::1 localhost\n\n# x\n127.0.0.1 a.test\n",
		 &feed_format_hosts},
		{"# Title\na.test\nb.test\n*.c.test\n", &feed_format_domains},
		{"a.test # x\nb.test\n1.2.3.4\n", &feed_format_domains},
		{"! Title\na.test\nb.test\n", &feed_format_adblock},
		{"[Adblock Plus 2.0]\na.test##.x\n||b.test^\n", &feed_format_adblock},
		{"||a.test^\n@@||b.test^\n", &feed_format_adblock},
		{"# x\naddress=/a.test/#\nserver=/b.test/\n", &feed_format_dnsmasq},
		{"bogus-nxdomain=192.0.2.1\n", &feed_format_dnsmasq},
		{"server:\n  local-zone: \"a.test\" static\n", &feed_format_unbound},
		{"local-zone: \"a.test\" redirect\nlocal-data: \"a.test A 0.0.0.0\"\n",
		 &feed_format_unbound},
		{"$TTL 60\n@ IN SOA a. b. (\n 1 ; serial\n 2\n 3\n 4\n 5 )\n NS a.\na.test CNAME .\n",
		 &feed_format_rpz},
		{"; title\nbad.test.rpz. 60 IN CNAME .\n", &feed_format_rpz},
		{"http://a.test/x\nhttps://b.test/\n", &feed_format_urls},
		{"type,indicator\ndomain,a.test\n", &feed_format_csv},
		{"# x\n# \"a\",\"ioc_value\"\n\"1\", \"a.test\"\n", &feed_format_csv},
		{"#fields\tindicator\tmeta\na.test\tx\n", &feed_format_csv},
		{"#fields\tindicator\tmeta\n192.0.2.1\ta.test\n", &feed_format_csv},
		{"#address\tdomain\n0.0.0.0\ta.test\n", &feed_format_hosts},
		{"# domain, host\na.test\nb.test\n", &feed_format_domains},
		{"[\"a.test\", \"b.test\"]", &feed_format_json},
		{"{\"Event\": {\"info\": \"x\"}}", &feed_format_misp},
		{"{\"description\": \"x\", \"list\": [\"a.test\"]}", &feed_format_misp},
		{"{\"type\": \"bundle\", \"objects\": []}", &feed_format_stix},
		{"<!doctype html>\n<html><body>a.test</body>\n", NULL},
		{"some prose about\nnothing at all\n", NULL},
		{"{\"a\": \"b.test\"}", NULL},
		{"# nothing but\n# comments\n", NULL},
		{"", NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct feed_format *got =
			feed_format_guess(rows[i].head, strlen(rows[i].head));
		if (got != rows[i].format)
			print_error("head: %s\n", rows[i].head);
		assert_ptr_equal(got, rows[i].format);
	}
}

/* A list that says nothing of depth: threat feeds name hosts, block lists name domains. */
static void what_a_name_covers_by_default(void **state)
{
	(void)state;
	static const struct {
		const char *format;
		enum feed_match match;
	} table[] = {
		{"hosts", FEED_MATCH_EXACT}, {"csv", FEED_MATCH_EXACT},
		{"json", FEED_MATCH_EXACT},  {"stix", FEED_MATCH_EXACT},
		{"urls", FEED_MATCH_EXACT},  {"domains", FEED_MATCH_SUBTREE},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(feed_format_find(table[i].format)->default_match, table[i].match);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_name_covers_by_default),
		cmocka_unit_test(by_name),
		cmocka_unit_test(every_reason_has_a_word),
		cmocka_unit_test(guesses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
