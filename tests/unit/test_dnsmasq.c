/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/formats/dnsmasq.c: what each line of a dnsmasq.conf means for a domain. */
#include "feed_rows.h"

static void rows(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"address=/bad.test/#", "bad.test. subtree;"},
		{"address=/bad.test/", "bad.test. subtree;"},
		{"address=/bad.test/0.0.0.0", "bad.test. subtree;"},
		{"address=/bad.test/::", "bad.test. subtree;"},
		{"address=/bad.test/127.0.0.1", "bad.test. subtree;"},
		{"address=/a.test/b.test/#", "a.test. subtree;b.test. subtree;"},
		{"local=/Bad.TEST/", "bad.test. subtree;"},
		{"server=/bad.test/", "bad.test. subtree;"},
		{"server=/a.test/b.test/", "a.test. subtree;b.test. subtree;"},
		{"server=/.bad.test/", "bad.test. subtree;"},
		{" server = /bad.test/ ", "bad.test. subtree;"},
		{"server=/*.bad.test/", "bad.test. below;"},
		/* Asked for as usual. */
		{"server=/good.bad.test/#", "good.bad.test. except-subtree;"},
		{"server=/*.good.test/#", "good.test. except-below;"},
		/* Leads elsewhere. */
		{"address=/a.test/b.test/192.0.2.1", "!redirect;!redirect;"},
		{"address=/a.test/x", "!redirect;"},
		{"server=/a.test/192.0.2.1", "!unsupported;"},
		{"server=/a.test/192.0.2.1#5353", "!unsupported;"},
		/* Everything, unqualified names, prefixes. */
		{"address=/#/0.0.0.0", "!unsupported;"},
		{"address=//0.0.0.0", "!unsupported;"},
		{"address=/*ads.test/#", "!unsupported;"},
		{"address=/*/#", "!unsupported;"},
		/* Other options. */
		{"bogus-nxdomain=123.125.81.12", "!unsupported;"},
		{"server=192.0.2.1", "!unsupported;"},
		{"no-resolv", "!unsupported;"},
		{"ipset=/a.test/set", "!unsupported;"},
		{"address=", "!unsupported;"},
		{"", ""},
		{"# address=/bad.test/#", ""},
		{"address=/bad.test/# # why", "bad.test. subtree;"},
		{"address=/bad.test/0.0.0.0 # why", "bad.test. subtree;"},
		{"address=/bad.test", "!syntax;"},
		{"address=/", "!syntax;"},
		{"bad.test", "!syntax;"},
		{"0.0.0.0 bad.test", "!syntax;"},
		{"address=/bad..test/www.ok.test/#", "!name;www.ok.test. subtree;"},
		{"address=/192.0.2.1/#", "!address;"},
		{"address=/m\xc3\xbcnchen.test/#", "xn--mnchen-3ya.test. subtree;"},
		{"address=/localhost/127.0.0.1", "!local;"},
	};
	FEED_ROWS_CHECK(&feed_format_dnsmasq, FEED_MATCH_FORMAT, table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(rows)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
