/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/formats/csv.c: which column, which separator, and quotes that nobody closes. */
#include "feed_rows.h"

static void usual_columns(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"type,indicator,date\ndomain,bad.test,2026\ndomain,bad[.]two[.]test,2026",
		 "bad.test. subtree;bad.two.test. subtree;"},
		{"Type, Indicator\nx, \"bad.test\" ,y", "bad.test. subtree;"},
		/* abuse.ch: the last comment is the header; blanks behind commas. */
		{"#####\n# Terms, and words: x #\n#\n# \"first\",\"ioc_value\",\"ioc_type\"\n"
		 "\"2026\", \"bad.test\", \"domain\"\n\"2026\", \"192.0.2.1:80\", \"ip:port\"\n"
		 "\"2026\", \"http://u.test/x\", \"url\"\n# Number of entries: 3, done\n",
		 "bad.test. subtree;!address;!url;"},
		/* Zeek */
		{"#separator \\x09\n#fields\tindicator\tindicator_type\n"
		 "bad.test\tIntel::DOMAIN\n192.0.2.1\tIntel::ADDR\n",
		 "bad.test. subtree;!address;"},
		{"id;domain\n1;bad.test\n", "bad.test. subtree;"},
		/* The name before the URL, wherever they stand. */
		{"url,domain\nhttp://x.test/,bad.test\n", "bad.test. subtree;"},
		{"domain\nbad.test\n", "bad.test. subtree;"},
		{"a,b,c\n1,2,3\n", "refused: no column of a usual name (give `column`);"},
		{"", ""},
	};
	FEED_ROWS_CHECK(&feed_format_csv, FEED_MATCH_SUBTREE, table);
}

static void fields(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"a,domain\n\"x,y\",bad.test\n", "bad.test. subtree;"},
		{"a,domain\n\"x \"\"y\"\", z\",\"bad.test\"\n", "bad.test. subtree;"},
		{"a,domain\nx\"y,bad.test\n", "bad.test. subtree;"},
		{"a,domain\nx\n", "!syntax;"},
		{"a,domain\nx,\n", "!name;"},
		{"a,domain\nx,bad test\n", "!name;"},
		{"a,domain\n\n  \n# x,evil.test\nx,bad.test\n", "bad.test. subtree;"},
		/* A field over two lines; its second line is no record. */
		{"a,domain\n\"x\ny,evil.test\",bad.test\nz,ok.test\n",
		 "bad.test. subtree;ok.test. subtree;"},
		{"a,domain\n\"x,bad.test\n", "!syntax;"},
		{"a,domain\nx,http://u.test\nx,http://u.test/\nx,https://u.test:8443/\n",
		 "u.test. exact;u.test. exact;u.test. exact;"},
		{"a,domain\nx,http://u.test/a\nx,http://u.test?a\nx,u.test/a\nx,a@u.test\n",
		 "!url;!url;!url;!unsupported;"},
		{"a,domain\nx,http://me@u.test/\nx,http://192.0.2.1/a\nx,192.0.2.0/24\n",
		 "!url;!address;!address;"},
		{"a,domain\nx,http://[2001:db8::1]:80/\nx,2001:db8::1\nx,[2001:db8::1]:80\n",
		 "!address;!address;!address;"},
		{"a,domain\nx,*.u.test\nx,.v.test\nx,w.test:443\n",
		 "u.test. below;v.test. subtree;w.test. subtree;"},
		{"a,domain\nx,hXXp[:]//u[.]test/\nx,hxxps://v(.)test\nx,w{.}test\n",
		 "u.test. exact;v.test. exact;w.test. subtree;"},
		{"a,domain\nx,e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n",
		 "!unsupported;"},
	};
	FEED_ROWS_CHECK(&feed_format_csv, FEED_MATCH_SUBTREE, table);
}

/* A quote that is never closed costs a bounded number of lines. */
static void an_open_quote(void **state)
{
	(void)state;
	char body[2000] = "a,domain\n\"x,bad.test\n", expected[1000] = "!long;";
	for (int i = 0; i < 40; i++)
		strcat(body, "x,ok.test\n");
	for (int i = 0; i < 40 - 31; i++)
		strcat(expected, "ok.test. subtree;");
	const struct feed_row row = {body, expected};
	feed_rows_check_hints(&feed_format_csv, FEED_MATCH_SUBTREE, NULL, &row, 1);
}

static void configured_columns(void **state)
{
	(void)state;
	static const struct feed_row numbered[] = {
		{"x,bad.test\ny,\"worse.test\"\n", "bad.test. exact;worse.test. exact;"},
		{"# a,domain\nx\tbad.test\n", "bad.test. exact;"},
		{"x\n", "!syntax;"},
	};
	static const struct feed_row named[] = {
		{"domain,evil\nx.test,bad.test\n", "bad.test. exact;"},
		{"# domain,Evil\nx.test,bad.test\n", "bad.test. exact;"},
		{"domain,url\nx.test,bad.test\n", "refused: no column \"evil\" in the header;"},
	};
	static const struct feed_row hosts[] = {
		{"url\nhttp://bad.test/a/b\nhttp://u:p@worse.test:81/?x\nhttp://192.0.2.1/a\n",
		 "bad.test. exact;worse.test. exact;!address;"},
	};
	const struct feed_hints number = {.column = "2"}, name = {.column = "evil"},
				host = {.url_host = true};
	FEED_ROWS_CHECK_HINTS(&feed_format_csv, FEED_MATCH_EXACT, &number, numbered);
	FEED_ROWS_CHECK_HINTS(&feed_format_csv, FEED_MATCH_EXACT, &name, named);
	FEED_ROWS_CHECK_HINTS(&feed_format_csv, FEED_MATCH_EXACT, &host, hosts);
}

static void urls(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"http://bad.test/", "bad.test. exact;"},
		{"https://bad.test:8443", "bad.test. exact;"},
		{"bad.test", "bad.test. exact;"},
		{"http://bad.test/login", "!url;"},
		{"http://bad.test/#x", "!url;"},
		{"http://bad.test\\x", "!url;"},
		{"http://192.0.2.1:8080/x", "!address;"},
		{"http:///", "!name;"},
		{"http://bad..test/", "!name;"},
		{"http://m\xc3\xbcnchen.test/", "xn--mnchen-3ya.test. exact;"},
		{"http://bad.test/ x", "!syntax;"},
		{"# http://bad.test/", ""},
		{"", ""},
	};
	FEED_ROWS_CHECK(&feed_format_urls, FEED_MATCH_FORMAT, table);
	static const struct feed_row subtree[] = {{"http://bad.test/", "bad.test. subtree;"}};
	FEED_ROWS_CHECK(&feed_format_urls, FEED_MATCH_SUBTREE, subtree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_columns), cmocka_unit_test(fields),
		cmocka_unit_test(an_open_quote), cmocka_unit_test(configured_columns),
		cmocka_unit_test(urls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
