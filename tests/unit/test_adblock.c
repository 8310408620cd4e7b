/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/formats/adblock.c: a rule is applied as its author meant it, or not at all. */
#include "feed_rows.h"

static void rows(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"||bad.test^", "bad.test. subtree;"},
		{"||bad.test", "bad.test. subtree;"},
		{"||bad.test|", "bad.test. subtree;"},
		{"||bad.test^|", "bad.test. subtree;"},
		{"|bad.test^", "bad.test. exact;"},
		{"|bad.test|", "bad.test. exact;"},
		{"bad.test", "bad.test. exact;"},
		{"||*.bad.test^", "bad.test. below;"},
		{"*.bad.test", "bad.test. below;"},
		{"*.bad.test^", "bad.test. below;"},
		{"  ||bad.test^  ", "bad.test. subtree;"},
		{"||B\xc3\xbc"
		 "cher.test^",
		 "xn--bcher-kva.test. subtree;"},
		/* A2-14: suffix text would take in notbad.test. */
		{"bad.test|", "!unsupported;"},
		{"bad.test^", "!unsupported;"},
		{"||ads.", "!unsupported;"},
		{"||ads.^", "!unsupported;"},
		/* Exceptions, importance, and taking back. */
		{"@@||ok.test^", "ok.test. except-subtree;"},
		{"@@|ok.test^", "ok.test. except-exact;"},
		{"@@ok.test", "ok.test. except-exact;"},
		{"||bad.test^$important", "bad.test. important-subtree;"},
		{"@@||ok.test^$important", "ok.test. except-important-subtree;"},
		{"||bad.test^$badfilter", "bad.test. subtree cancel;"},
		{"||bad.test^$important,badfilter", "bad.test. important-subtree cancel;"},
		{"@@||ok.test^$badfilter", "ok.test. except-subtree cancel;"},
		/* A modifier that is not applied takes its rule with it. */
		{"||bad.test^$third-party", "!modifier;"},
		{"||bad.test^$important,third-party", "!modifier;"},
		{"||bad.test^$domain=a.test|b.test", "!modifier;"},
		{"||bad.test^$dnstype=A", "!modifier;"},
		{"||bad.test^$client=10.0.0.1", "!modifier;"},
		{"||bad.test^$dnsrewrite=192.0.2.1", "!modifier;"},
		{"||bad.test^$denyallow=x.test", "!modifier;"},
		{"||bad.test^$", "!modifier;"},
		{"||bad.test^$important,", "!modifier;"},
		{"||bad.test^$,important", "!modifier;"},
		{"||bad.test^$Important", "!modifier;"},
		{"@@||ok.test^$elemhide", "!modifier;"},
		/* Not about names. */
		{"||bad.test/path^", "!unsupported;"},
		{"||bad.test^/path", "!unsupported;"},
		{"||bad.test:8080^", "!unsupported;"},
		{"|https://bad.test^", "!unsupported;"},
		{"https://bad.test/x", "!unsupported;"},
		{"/ads/banner.", "!unsupported;"},
		{"/^ad[0-9]+\\./", "!unsupported;"},
		{"/^(.*\\.)?x\\.xn--aptslabs-6fd\\.net$/", "!unsupported;"}, /* A1-14 */
		{"@@/^ok/", "!unsupported;"},
		{"/re/$important", "!unsupported;"},
		{"||bad.*^", "!unsupported;"},
		{"||b*d.test^", "!unsupported;"},
		{"||*^", "!unsupported;"},
		{"||*.^", "!unsupported;"},
		{"*", "!unsupported;"},
		{"||^", "!unsupported;"},
		{"||", "!unsupported;"},
		{"@@", "!unsupported;"},
		{"||bad.test^other.test^", "!unsupported;"},
		{"||1.2.3.4^", "!address;"},
		{"1.2.3.4", "!address;"},
		{"||2001:db8::1^", "!address;"},
		{"||localhost^", "!local;"},
		{"||a@bad.test^", "!name;"},
		{"&ad_box_=", "!name;"},
		{"||bad..test^", "!name;"},
		/* Element hiding: never a fragment of it. */
		{"bad.test##.ad", "!cosmetic;"},
		{"##.ad", "!cosmetic;"},
		{"bad.test#@#.ad", "!cosmetic;"},
		{"bad.test#?#div:has(.x)", "!cosmetic;"},
		{"bad.test#%#//scriptlet('x')", "!cosmetic;"},
		{"bad.test$$script[tag-content=\"x\"]", "!cosmetic;"},
		{"a.test,b.test##.ad", "!cosmetic;"},
		/* Comments and headers. */
		{"! ||bad.test^", ""},
		{"!#include other.txt", ""},
		{"[Adblock Plus 2.0]", ""},
		{"# comment", ""},
		{"#comment", ""},
		{"", ""},
		/* Lines of other formats that such lists mix in. */
		{"0.0.0.0 bad.test # x", "bad.test. exact;"},
		{"192.0.2.1 bad.test", "!redirect;"},
		{"bad.test # x", "bad.test. exact;"},
		{"bad.test#x", "bad.test. exact;"},
		{"||bad.test^ # x", "!syntax;"},
		{"||bad.test^#x", "!syntax;"},
		{"two words", "!syntax;"},
	};
	FEED_ROWS_CHECK(&feed_format_adblock, FEED_MATCH_FORMAT, table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
