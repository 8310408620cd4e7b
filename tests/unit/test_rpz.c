/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/formats/rpz.c: zone files as people and servers write them; one wrong record is one. */
#include "feed_rows.h"

#define LONG_LABEL "a23456789012345678901234567890123456789012345678901234567890123"

static void actions(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"bad.test CNAME .", "bad.test. exact;"},
		{"*.bad.test CNAME .", "bad.test. below;"},
		{"Bad.test 300 IN CNAME *.", "bad.test. exact;"},
		{"bad.test IN 5m cname rpz-drop.", "bad.test. exact;"},
		{"good.test CNAME rpz-passthru.", "good.test. except-exact;"},
		{"*.good.test CNAME rpz-passthru.", "good.test. except-below;"},
		{"good.test CNAME GOOD.test.", "good.test. except-exact;"},
		{"*.good.test CNAME *.good.test.", "good.test. except-below;"},
		{"x.test CNAME rpz-tcp-only.", "!unsupported;"},
		{"x.test CNAME rpz-passthru", "!redirect;"},
		{"x.test CNAME walled.test.", "!redirect;"},
		{"x.test CNAME *.walled.test.", "!redirect;"},
		{"x.test A 0.0.0.0", "x.test. exact;"},
		{"x.test AAAA ::1", "x.test. exact;"},
		{"x.test A 192.0.2.1", "!redirect;"},
		{"x.test A ten", "!syntax;"},
		{"x.test TXT \"a ; b ( c\"", "!redirect;"},
		{"x.test TXT \"a\\\" ; b ( c\"\ny.test CNAME .", "!redirect;y.test. exact;"},
		{"x.test CNAME", "!syntax;"},
		{"x.test", "!syntax;"},
		{"x.test 60 IN", "!syntax;"},
		{"x.test NOSUCH .", "!syntax;"},
		{"24.0.2.0.192.rpz-ip CNAME .", "!unsupported;"},
		{"32.1.2.0.192.rpz-client-ip CNAME rpz-drop.", "!unsupported;"},
		{"ns.bad.test.rpz-nsdname CNAME .", "!unsupported;"},
		{"24.0.2.0.192.RPZ-NSIP CNAME .", "!unsupported;"},
		{"x.test RRSIG CNAME 8 2 300 x", ""},
		{"; bad.test CNAME .", ""},
		{"", ""},
		{"bad.test CNAME . ; Malware download (2026), see https://x/", "bad.test. exact;"},
		{"bad..test CNAME .\nok.test CNAME .", "!name;ok.test. exact;"},
		{"* CNAME .", "!name;"},
		{"*.com CNAME .", "com. below;"}, /* the hard list's business, for all formats */
		{"localhost CNAME .", "!local;"},
		{"\\101bad.test CNAME .", "ebad.test. exact;"},
		{LONG_LABEL "4.test CNAME .\nok.test CNAME .", "!name;ok.test. exact;"},
		{LONG_LABEL "." LONG_LABEL "." LONG_LABEL "." LONG_LABEL ".x CNAME .", "!name;"},
		{"$TTL 60", ""},
		{"$INCLUDE /etc/passwd", "!unsupported;"},
		{"$GENERATE 1-9 x$ CNAME .", "!unsupported;"},
		{"$ORIGIN", "!unsupported;"},
	};
	FEED_ROWS_CHECK(&feed_format_rpz, FEED_MATCH_FORMAT, table);
}

static void zones(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		/* Nobody says how it is called. */
		{"@ IN SOA localhost. x. (2 3H 1H 1W 1H)\nlist. IN NS localhost.\n"
		 "bad.test CNAME .\n*.bad.test CNAME .\nbad.test. CNAME .",
		 "bad.test. exact;bad.test. below;!zone;"},
		{"$ORIGIN rpz.test.\n@ SOA a. b. 1 2 3 4 5\n NS ns.\nbad.test CNAME .\n"
		 "other.test.RPZ.test. CNAME .\nout.test. CNAME .\nnotrpz.test. CNAME .",
		 "bad.test. exact;other.test. exact;!zone;!zone;"},
		/* As dig prints a transfer. */
		{"rpz.test.\t60\tIN\tSOA\ta. b. 1 2 3 4 5\nrpz.test. 60 IN NS ns.\n"
		 "*.bad.test.rpz.test. 60 IN CNAME .\nrpz.test. 60 IN TXT \"x\"",
		 "bad.test. below;"},
		/* As named-compilezone writes. */
		{"$ORIGIN .\n$TTL 60\nrpz.test IN SOA a. b. (\n\t1 ; serial\n\t2\n\t3\n\t4\n\t5 )\n"
		 "\t\tNS\tns.\n$ORIGIN rpz.test.\nbad.test\tCNAME\t.\n$ORIGIN test.rpz.test.\n"
		 "*.bad\tCNAME\t.\n$ORIGIN deep\nx CNAME .",
		 "bad.test. exact;bad.test. below;x.deep.test. exact;"},
		/* The origin alone. */
		{"$ORIGIN rpz.test.\nbad.test CNAME .\nout. CNAME .", "bad.test. exact;!zone;"},
		/* No owner: the one before. */
		{"bad.test A 0.0.0.0\n\tAAAA ::\n", "bad.test. exact;bad.test. exact;"},
		{" CNAME .", ""},
		{"a\\.rpz.test. CNAME .", "!zone;"},
		{"rpz.test. SOA a. b. 1 2 3 4 5\na\\.rpz.test. CNAME .", "!zone;"},
	};
	FEED_ROWS_CHECK(&feed_format_rpz, FEED_MATCH_FORMAT, table);
}

static void parentheses(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"bad.test ( IN\n CNAME ; a comment (\n . )\nmore.test CNAME .",
		 "bad.test. exact;more.test. exact;"},
		{"bad.test CNAME . )\nmore.test CNAME .", "bad.test. exact;more.test. exact;"},
		{"bad.test ( CNAME .", "!syntax;"},
	};
	FEED_ROWS_CHECK(&feed_format_rpz, FEED_MATCH_FORMAT, table);

	/* One that is never closed does not take the rest with it. */
	char body[4000] = "bad.test ( CNAME .\n";
	for (int i = 0; i < 100; i++)
		strcat(body, "x.test CNAME .\n");
	struct feed_row row = {body, NULL};
	char expected[2000] = "!long;";
	for (int i = 0; i < 100 - 63; i++)
		strcat(expected, "x.test. exact;");
	row.expected = expected;
	feed_rows_check_hints(&feed_format_rpz, FEED_MATCH_FORMAT, NULL, &row, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(actions),
		cmocka_unit_test(zones),
		cmocka_unit_test(parentheses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
