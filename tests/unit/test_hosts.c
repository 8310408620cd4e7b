/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/formats/hosts.c: each line of a hosts file means what hosts(5) says, or is rejected. */
#include "feed_rows.h"

static void rows(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"0.0.0.0 bad.test", "bad.test. exact;"},
		{"127.0.0.1\tBad.TEST.", "bad.test. exact;"},
		{"127.0.0.53 bad.test", "bad.test. exact;"},
		{":: bad.test", "bad.test. exact;"},
		{"::1 bad.test", "bad.test. exact;"},
		{"0 bad.test", "bad.test. exact;"},
		{"::ffff:0.0.0.0 bad.test", "bad.test. exact;"},
		{"", ""},
		{"   \t ", ""},
		{"# 0.0.0.0 bad.test", ""},
		{"\t# words of a comment", ""},
		{"0.0.0.0 a.test b.test\tc.test", "a.test. exact;b.test. exact;c.test. exact;"},
		/* A1-02: comments, with blanks, with a tab, with nothing before them. */
		{"0.0.0.0 bad.test  #[Troj/X][Adware.dll]", "bad.test. exact;"},
		{"0.0.0.0 bad.test\t#[Troj/X][Adware.dll]", "bad.test. exact;"},
		{"0.0.0.0 bad.test#x", "bad.test. exact;"},
		/* A1-04: one name, and it leads elsewhere. */
		{"192.0.2.5 printer # in room blue", "!redirect;"},
		{"192.0.2.5 a.test b.test", "!redirect;!redirect;"},
		{"255.255.255.255 broadcasthost", "!local;"},
		{"fe80::1%lo0 localhost", "!local;"},
		{"ff02::1 ip6-allnodes", "!local;"},
		{"127.0.0.1 localhost LocalHost.localdomain", "!local;!local;"},
		{"0.0.0.0 0.0.0.0", "!address;"},
		{"0.0.0.0 .", "!local;"},
		{"0.0.0.0", "!syntax;"},
		{"bad.test", "!syntax;"},
		{"||bad.test^", "!syntax;"},
		{"<html> <body>", "!syntax;"},
		/* A1-12: Unicode becomes A-labels. */
		{"0.0.0.0 m\xc3\xbcnchen.test", "xn--mnchen-3ya.test. exact;"},
		{"0.0.0.0 M\xc3\x9cNCHEN.test", "xn--mnchen-3ya.test. exact;"},
		{"0.0.0.0 m\xfcnchen.test", "!encoding;"},
		{"0.0.0.0 a\x01.test", "!encoding;"},
		/* A1-16: any octet may be in a label. */
		{"0.0.0.0 ___id___.c.bad.test -043ns.bad.test end-.bad.test a_b.test",
		 "___id___.c.bad.test. exact;-043ns.bad.test. exact;end-.bad.test. exact;"
		 "a_b.test. exact;"},
		{"0.0.0.0 27--m01x.bad.test", "27--m01x.bad.test. exact;"},
		/* A1-18 */
		{"0.0.0.0 www..bad.test", "!name;"},
		/* A1-22, A1-24: URLs and mail addresses are not names. */
		{"127.0.0.1 http://x/cc/sh.js", "!name;"},
		{"127.0.0.1 http://bad.test/cc/sh.js", "!name;"},
		{"0.0.0.0 https://user:pw@bad.test:8443/x?y", "!name;"},
		{"0.0.0.0 exu0@bad.test", "!name;"},
		{"0.0.0.0 *.bad.test", "!name;"},
		{"0.0.0.0 good.test bad..test also.test",
		 "good.test. exact;!name;also.test. exact;"},
		/* A2-16: presentation escapes. */
		{"0.0.0.0 \\101xample.test", "example.test. exact;"},
		{"0.0.0.0 com", "com. exact;"}, /* the hard list's business, for all formats */
	};
	FEED_ROWS_CHECK(&feed_format_hosts, FEED_MATCH_EXACT, table);
}

static void match_subtree(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"0.0.0.0 a.test", "a.test. subtree;"},
	};
	FEED_ROWS_CHECK(&feed_format_hosts, FEED_MATCH_SUBTREE, table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(match_subtree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
