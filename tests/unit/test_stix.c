/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/formats/stix*.c: patterns that a name fulfils, and those where a name would be too little.
 */
#include "feed_rows.h"

static void patterns(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{"[domain-name:value = 'a.test']", "a.test. exact;"},
		{"[domain-name:value='a.test']", "a.test. exact;"},
		{"[ domain-name:value = 'a.test' OR domain-name:value = 'b.test' ]",
		 "a.test. exact;b.test. exact;"},
		{"[domain-name:value IN ('a.test', 'b.test')]", "a.test. exact;b.test. exact;"},
		{"[domain-name:value = 'a.test'] OR [domain-name:value = 'b.test']",
		 "a.test. exact;b.test. exact;"},
		{"([(domain-name:value = 'a.test')])", "a.test. exact;"},
		{"[domain-name:value = 'a.test' OR ipv4-addr:value = '192.0.2.1']",
		 "a.test. exact;!unsupported;"},
		{"[url:value = 'http://a.test/' OR url:value = 'http://a.test/x']",
		 "a.test. exact;!url;"},
		{"[domain-name:value = 'a\\'b.test']", "!name;"},
		{"[domain-name:value = '\\\\097.test']", "a.test. exact;"},
		/* A name would be too little. */
		{"[domain-name:value = 'a.test' AND ipv4-addr:value = '192.0.2.1']",
		 "!unsupported;"},
		{"[domain-name:value = 'a.test'] AND [domain-name:value = 'b.test']",
		 "!unsupported;"},
		{"[domain-name:value = 'a.test'] FOLLOWEDBY [file:name = 'x']", "!unsupported;"},
		{"[domain-name:value = 'a.test'] REPEATS 5 TIMES WITHIN 1800 SECONDS",
		 "!unsupported;"},
		{"([domain-name:value = 'a.test']) START t'2026-01-01T00:00:00Z' STOP t'x'",
		 "!unsupported;"},
		/* Other comparisons. */
		{"[domain-name:value != 'a.test']", "!unsupported;"},
		{"[domain-name:value NOT = 'a.test']", "!unsupported;"},
		{"[domain-name:value NOT IN ('a.test', 'b.test')]", "!unsupported;!unsupported;"},
		{"[domain-name:value LIKE '%.test']", "!unsupported;"},
		{"[domain-name:value MATCHES '^a\\\\.test$']", "!unsupported;"},
		{"[domain-name:value > 'a.test']", "!unsupported;"},
		{"[network-traffic:dst_ref.value = 'a.test']", "!unsupported;"},
		{"[file:hashes.'SHA-256' = 'aec0']", "!unsupported;"},
		{"[domain-name:resolves_to_refs[*].value = 'a.test']", "!unsupported;"},
		{"[file:size = 25536 OR domain-name:value = 'a.test']",
		 "!unsupported;a.test. exact;"},
		{"[ipv4-addr:value ISSUBSET '192.0.2.0/24']", "!unsupported;"},
		{"[EXISTS domain-name:value]", "!unsupported;"},
		/* None. */
		{"", "!syntax;"},
		{"a.test", "!unsupported;"},
		{"[domain-name:value = 'a.test'", "!syntax;"},
		{"[domain-name:value = 'a.test]", "!syntax;"},
		{"[domain-name:value = 'a.test' ; domain-name:value = 'b.test']", "!syntax;"},
		{"[domain-name:value IN 'a.test']", "!syntax;"},
		{"[domain-name:value IN ('a.test' 'b.test')]", "!syntax;"},
		{"[domain-name:value =]", "!syntax;"},
		{"[domain-name:value]", "!syntax;"},
		{"[]", "!syntax;"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char body[1000], *p = body;
		p += sprintf(p, "{\"type\": \"bundle\", \"objects\": [{\"type\": \"indicator\", "
				"\"pattern\": \"");
		for (const char *c = table[i].line; *c; c++) {
			if (*c == '\\')
				*p++ = '\\';
			*p++ = *c;
		}
		strcpy(p, "\"}]}");
		const struct feed_row row = {body, table[i].expected};
		feed_rows_check_hints(&feed_format_stix, FEED_MATCH_FORMAT, NULL, &row, 1);
	}
}

#define INDICATOR(more)                                                                            \
	"{\"type\": \"indicator\", \"pattern\": \"[domain-name:value = 'a.test']\"" more "}"

static void indicators(void **state)
{
	(void)state;
	static const struct feed_row table[] = {
		{INDICATOR(""), "a.test. exact;"},
		{"{\"objects\": [" INDICATOR(
			 "") ", {\"type\": \"domain-name\", \"value\": \"no.test\"}]}",
		 "a.test. exact;"},
		{INDICATOR(", \"pattern_type\": \"stix\""), "a.test. exact;"},
		{INDICATOR(", \"pattern_type\": \"yara\""), "!unsupported;"},
		{INDICATOR(", \"revoked\": true"), "!expired;"},
		{INDICATOR(", \"revoked\": false"), "a.test. exact;"},
		{INDICATOR(", \"kill_chain_phases\": [{\"type\": \"x\"}], "
			   "\"valid_until\": \"2025-12-31T23:59:59.999Z\""),
		 "!expired;"},
		{INDICATOR(", \"valid_until\": \"2026-01-01T00:00:00Z\""), "!expired;"},
		{INDICATOR(", \"valid_until\": \"2026-01-01T00:00:01Z\""), "a.test. exact;"},
		{INDICATOR(", \"valid_from\": \"2026-01-01T00:00:00Z\""), "a.test. exact;"},
		{INDICATOR(", \"valid_from\": \"2026-01-01T00:00:01.5Z\""), "!expired;"},
		{INDICATOR(", \"valid_until\": \"soon\""), "!syntax;"},
		{INDICATOR(", \"valid_until\": \"2036-01-01\""), "!syntax;"},
		{"{\"type\": \"malware\", \"pattern\": \"[domain-name:value = 'a.test']\"}", ""},
		{"{\"type\": \"indicator\"}", ""},
	};
	FEED_ROWS_CHECK(&feed_format_stix, FEED_MATCH_FORMAT, table);
	static const struct feed_row subtree[] = {{INDICATOR(""), "a.test. subtree;"}};
	FEED_ROWS_CHECK(&feed_format_stix, FEED_MATCH_SUBTREE, subtree);
}

/* One pattern that is far too long is one, and says so. */
static void an_endless_pattern(void **state)
{
	(void)state;
	size_t size = 100000;
	char *body = malloc(size + 300);
	char *p = stpcpy(body, "[{\"type\": \"indicator\", \"pattern\": \"");
	memset(p, 'x', size);
	strcpy(p + size, "\"}, " INDICATOR("") "]");
	const struct feed_row row = {body, "!long;a.test. exact;"};
	feed_rows_check_hints(&feed_format_stix, FEED_MATCH_FORMAT, NULL, &row, 1);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns),
		cmocka_unit_test(indicators),
		cmocka_unit_test(an_endless_pattern),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
