/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/formats/domains.c */
#include "feed_rows.h"

static void rows(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"bad.test", "bad.test. subtree;"},
		{"  Bad.Test.  ", "bad.test. subtree;"},
		{"*.bad.test", "bad.test. below;"},
		{".bad.test", "bad.test. subtree;"},
		{"", ""},
		{"# comment", ""},
		{"; comment", ""},
		{"bad.test # c", "bad.test. subtree;"},
		{"bad.test\t#c", "bad.test. subtree;"},
		{"bad.test#c", "bad.test. subtree;"},
		{"bad.test ; c", "bad.test. subtree;"},
		{"bad.test other.test", "!syntax;"},
		{"! Title: x", "!syntax;"},
		{"||bad.test^", "!name;"},
		{"@@||bad.test^", "!name;"},
		{"/^(.*\\.)?x\\.xn--aptslabs-6fd\\.net$/", "!name;"}, /* A1-14 */
		{"192.0.2.1 # x", "!address;"},			      /* A1-26 */
		{"198.51.100.0/24", "!address;"},
		{"2001:db8::/32", "!address;"},
		{"\xd0\xb8\xd0\xbc\xd1\x8f.010.xn--p1acf", "xn--h1ai1d.010.xn--p1acf. subtree;"},
		{"*.m\xc3\xbcnchen.test", "xn--mnchen-3ya.test. below;"},
		{"www..bad.test", "!name;"}, /* A1-18 */
		{"102.204..15", "!name;"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.test",
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.test. subtree;"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.test", "!name;"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb. subtree;"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
		 "!name;"},
		{"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a",
		 "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a. subtree;"},
		{"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a",
		 "!name;"},
		{"http://bad.test/x", "!name;"},
		{"bad.test/x", "!name;"},
		{"bad.test:8443", "!name;"},
		{"user@bad.test", "!name;"},
		{"<meta content=\"good.test\"><a href=\"https://good.test/x\">", "!syntax;"},
		{"\"bad.test\",", "!name;"},
		{"a.*.test", "!name;"},
		{"*bad.test", "!name;"},
		{"*", "!name;"},
		{"*.", "!name;"},
		{".", "!local;"},
		{"..", "!local;"},
		{"...", "!name;"},
		{"localhost", "!local;"},
		{"ip6-localhost", "!local;"},
		{"ip6-x.bad.test", "ip6-x.bad.test. subtree;"},
		{"\\101xample.test", "example.test. subtree;"},
		{"a\\.b.test", "a\\.b.test. subtree;"},
		{"a\\999.test", "!name;"},
		{"fe", "fe. subtree;"}, /* the hard list's business, for all formats */
	};
	FEED_ROWS_CHECK(&feed_format_domains, FEED_MATCH_SUBTREE, table);
}

static void match_exact(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"a.test", "a.test. exact;"},
		{"*.a.test", "a.test. below;"},
		{".a.test", "a.test. subtree;"},
	};
	FEED_ROWS_CHECK(&feed_format_domains, FEED_MATCH_EXACT, table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(match_exact),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
