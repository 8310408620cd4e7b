/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/formats/unbound.c: zones and data, and the redirected zone that waits for its data. */
#include "feed_rows.h"

static void rows(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"local-zone: \"bad.test\" always_nxdomain", "bad.test. subtree;"},
		{"local-zone: \"Bad.test.\" always_null", "bad.test. subtree;"},
		{"  local-zone: 'bad.test' static", "bad.test. subtree;"},
		{"local-zone:\tbad.test\trefuse", "bad.test. subtree;"},
		{"local-zone:\"bad.test\" deny # why", "bad.test. subtree;"},
		{"local-zone: \"bad.test\" always_nodata", "bad.test. subtree;"},
		{"local-zone: \"bad.test\" inform_deny", "bad.test. subtree;"},
		{"local-zone: \"good.test\" transparent", "good.test. except-subtree;"},
		{"local-zone: \"good.test\" always_transparent", "good.test. except-subtree;"},
		{"local-zone: \"bad.test\" inform", "!unsupported;"},
		{"local-zone: \"bad.test\" nosuch", "!unsupported;"},
		{"local-zone: \"bad.test\"", "!syntax;"},
		{"local-zone: \"bad.test\" static static", "!syntax;"},
		{"local-zone:", "!syntax;"},
		{"local-zone: \"bad..test\" static", "!name;"},
		{"local-zone: \"\" static", "!name;"},
		{"local-zone: \".\" static", "!local;"},
		{"local-zone: \"192.0.2.1\" static", "!address;"},
		{"local-data: \"bad.test A 0.0.0.0\"", "bad.test. exact;"},
		{"local-data: 'bad.test. 60 IN AAAA ::'", "bad.test. exact;"},
		{"local-data: \"bad.test A 192.0.2.1\"", "!redirect;"},
		{"local-data: \"bad.test TXT x\"", "!unsupported;"},
		{"local-data: \"bad.test A\"", "!unsupported;"},
		{"local-data: \"\"", "!syntax;"},
		{"server:", ""},
		{"server: # x", ""},
		{"# local-zone: \"bad.test\" static", ""},
		{"", ""},
		{"private-domain: \"x.test\"", "!unsupported;"},
		{"local-data-ptr: \"192.0.2.1 x.test\"", "!unsupported;"},
		{"bad.test", "!syntax;"},
		{"address=/bad.test/#", "!syntax;"},
	};
	FEED_ROWS_CHECK(&feed_format_unbound, FEED_MATCH_FORMAT, table);
}

static void redirected(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"local-zone: \"a.test\" redirect\nlocal-data: \"a.test A 0.0.0.0\"\n",
		 "a.test. subtree;"},
		{"local-zone: \"a.test.\" redirect\nlocal-data: \"A.test. A 127.0.0.1\"\n"
		 "local-data: \"a.test AAAA ::1\"\n",
		 "a.test. subtree;a.test. exact;"},
		{"local-zone: \"a.test\" redirect\nlocal-data: \"a.test A 192.0.2.1\"\n",
		 "!redirect;!redirect;"},
		{"local-zone: \"a.test\" redirect\nlocal-zone: \"b.test\" redirect\n"
		 "local-data: \"a.test A 0.0.0.0\"\n",
		 "!redirect;a.test. exact;!redirect;"},
		{"local-zone: \"a.test\" redirect\n", "!redirect;"},
	};
	FEED_ROWS_CHECK(&feed_format_unbound, FEED_MATCH_FORMAT, table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(redirected)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
