/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/admission.c and feeds/namelist.c: which entries and which versions are let in. */
#include "feeds/admission.h"

#include "feeds/set/domset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct name name_of(const char *text)
{
	struct name name;
	assert_int_equal(name_parse(text, strlen(text), &name), 0);
	return name;
}

static void hard_list(void **state)
{
	(void)state;
	const char *const urls[] = {"https://user:pw@Lists.example.org:8443/x?y", NULL};
	struct feed feed = {.name = "net", .urls = urls};
	const struct feeds feeds = {.items = &feed, .count = 1};
	const struct name zones[] = {name_of("corp.test"), name_of("10.in-addr.arpa")};
	struct namelist hard;
	assert_int_equal(hardlist_init(&hard, zones, 2, &feeds), 0);
	static const struct {
		const char *name;
		uint16_t flags;
		int expected;
	} rows[] = {
		{"fe", DOMSET_SUBTREE, FEED_REJECT_SUFFIX},
		{"com", DOMSET_EXACT, FEED_REJECT_SUFFIX},
		{"co.uk", DOMSET_SUBTREE, FEED_REJECT_SUFFIX},
		{"co.uk", DOMSET_BELOW, FEED_REJECT_SUFFIX},
		{"co.uk", DOMSET_EXACT, -1},
		{"co.uk", DOMSET_IMPORTANT(DOMSET_SUBTREE), FEED_REJECT_SUFFIX},
		{"co.uk", DOMSET_EXCEPT(DOMSET_SUBTREE), -1},
		{"co.uk", DOMSET_SUBTREE | FEED_ENTRY_CANCEL, FEED_REJECT_SUFFIX},
		{"foo.ck", DOMSET_SUBTREE, FEED_REJECT_SUFFIX}, /* *.ck */
		{"www.ck", DOMSET_SUBTREE, -1},			/* !www.ck */
		{"xn--55qx5d.cn", DOMSET_SUBTREE, FEED_REJECT_SUFFIX},
		{"github.io", DOMSET_SUBTREE, -1}, /* the private section is fair game */
		{"example.com", DOMSET_SUBTREE, -1},
		{"corp.test", DOMSET_SUBTREE, FEED_REJECT_PROTECTED},
		{"corp.test", DOMSET_EXACT, FEED_REJECT_PROTECTED},
		{"corp.test", DOMSET_BELOW, FEED_REJECT_PROTECTED},
		{"host.corp.test", DOMSET_SUBTREE, -1},
		{"notcorp.test", DOMSET_SUBTREE, -1},
		{"in-addr.arpa", DOMSET_SUBTREE, FEED_REJECT_SUFFIX},
		{"lists.example.org", DOMSET_EXACT, FEED_REJECT_PROTECTED},
		{"lists.example.org", DOMSET_BELOW, -1},
		{"example.org", DOMSET_SUBTREE, FEED_REJECT_PROTECTED},
		{"example.org", DOMSET_BELOW, FEED_REJECT_PROTECTED},
		{"example.org", DOMSET_EXACT, -1},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct name name = name_of(rows[i].name);
		int got = hardlist_check(&hard, &name, rows[i].flags);
		if (got != rows[i].expected)
			print_error("%s %x\n", rows[i].name, rows[i].flags);
		assert_int_equal(got, rows[i].expected);
	}
	namelist_fini(&hard);
}

/* namelist_taken against asking each name by itself. */
static void taken_is_what_brute_force_says(void **state)
{
	(void)state;
	static const char *const names[] = {"a.b.c",   "b.c", "x.b.c", "bb.c",	"c",
					    "a.a.b.c", "d",   "b.c",   "a-b.c", "z.d"};
	const size_t count = sizeof(names) / sizeof(names[0]);
	struct namelist l = {0};
	for (size_t i = 0; i < count; i++) {
		struct name name = name_of(names[i]);
		namelist_add(&l, &name, i == 1);
	}
	namelist_sort(&l);
	assert_int_equal(l.count, count - 1);
	for (size_t e = 0; e < count; e++) {
		for (uint16_t flags = 0; flags < 8; flags++) {
			struct name entry = name_of(names[e]);
			uint8_t key[KEY_MAX];
			size_t first, expected = 0;
			size_t length = key_from_wire(entry.wire, entry.length, entry.labels, key);
			for (size_t i = 0; i < l.count; i++) {
				uint8_t wire[NAME_WIRE_MAX];
				size_t n = key_to_wire(l.items[i].key, l.items[i].length, wire);
				bool under = name_is_under(wire, n, entry.wire, entry.length);
				bool same = name_equal(wire, n, entry.wire, entry.length);
				expected += (same && flags & (DOMSET_EXACT | DOMSET_SUBTREE)) ||
					    (under && !same &&
					     flags & (DOMSET_SUBTREE | DOMSET_BELOW)) ||
					    (same && flags & DOMSET_BELOW && l.items[i].zone);
			}
			assert_int_equal(namelist_taken(&l, key, length, flags, &first), expected);
			assert_int_equal(namelist_taken(&l, key, length, DOMSET_IMPORTANT(flags),
							&first),
					 expected);
			assert_int_equal(namelist_taken(&l, key, length, DOMSET_EXCEPT(flags),
							&first),
					 0);
		}
	}
	namelist_fini(&l);
}

static void verdicts(void **state)
{
	(void)state;
	struct feed feed = {.name = "f", .shrink_limit = 0.5, .grow_limit = 3};
	static const struct {
		uint64_t lines, accepted, unsupported, rubbish, before, entries;
		enum admission expected;
		const char *why;
	} rows[] = {
		{10, 10, 0, 0, 0, 10, ADMIT, ""},
		{0, 0, 0, 0, 5, 0, ADMIT_REFUSE, "empty: no entry in 0 lines"},
		{7, 0, 0, 0, 5, 0, ADMIT_REFUSE, "empty: no entry in 7 lines"},
		{9, 0, 0, 9, 5, 0, ADMIT_REFUSE, "0 of 9 accepted"}, /* A1-20 */
		{9, 2, 0, 7, 0, 2, ADMIT, ""},			     /* A1-18: neighbours count */
		{2000, 9, 0, 991, 0, 9, ADMIT_REFUSE, "only 9 of 1000 understood"},
		{2000, 100, 900, 0, 0, 100, ADMIT, ""},
		{1, 1, 0, 0, 1000, 1, ADMIT, ""},
		{1, 1, 0, 0, 1001, 500, ADMIT_HOLD, "shrinks from 1001 to 500 entries"},
		{1, 1, 0, 0, 1001, 501, ADMIT, ""},
		{1, 1, 0, 0, 2000, 6000, ADMIT, ""},
		{1, 1, 0, 0, 2000, 6001, ADMIT_HOLD, "grows from 2000 to 6001 entries"},
		{1, 1, 0, 0, 0, 9000000, ADMIT, ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parse_report report = {.lines = rows[i].lines,
					      .accepted = rows[i].accepted,
					      .rejected = rows[i].unsupported + rows[i].rubbish};
		struct feedfile_change change = {.before = rows[i].before,
						 .entries = rows[i].entries};
		char why[ADMISSION_WHY_MAX];
		report.rejects[FEED_REJECT_UNSUPPORTED].count = rows[i].unsupported;
		report.rejects[FEED_REJECT_NAME].count = rows[i].rubbish;
		assert_int_equal(admission_judge(&feed, &report, &change, NULL, why),
				 rows[i].expected);
		assert_string_equal(why, rows[i].why);
	}
}

static void popular_names(void **state)
{
	(void)state;
	struct namelist popular = {0};
	static const char *const names[] = {"a.test", "www.a.test", "b.test", "c.test", "d.test"};
	for (size_t i = 0; i < 5; i++) {
		struct name name = name_of(names[i]);
		namelist_add(&popular, &name, false);
	}
	namelist_sort(&popular);
	struct popular_hits hits;
	assert_int_equal(popular_hits_init(&hits, &popular), 0);
	static const struct {
		const char *name;
		uint16_t flags;
		size_t hits;
	} rows[] = {
		{"bad.test", DOMSET_SUBTREE, 0}, {"a.test", DOMSET_BELOW, 1},
		{"a.test", DOMSET_SUBTREE, 2},	 {"a.test", DOMSET_SUBTREE, 2},
		{"b.test", DOMSET_EXACT, 3},	 {"x.c.test", DOMSET_SUBTREE, 3},
		{"d.test", DOMSET_EXACT, 4},
	};
	struct feed feed = {.kind = FEED_KIND_THREAT, .shrink_limit = 0.5, .grow_limit = 3};
	struct parse_report report = {.lines = 9, .accepted = 9};
	struct feedfile_change change = {.entries = 9};
	char why[ADMISSION_WHY_MAX];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct name name = name_of(rows[i].name);
		uint8_t key[KEY_MAX];
		size_t length = key_from_wire(name.wire, name.length, name.labels, key);
		popular_hits_added(&hits, key, length, rows[i].flags);
		assert_int_equal(hits.count, rows[i].hits);
		assert_int_equal(admission_judge(&feed, &report, &change, &hits, why),
				 hits.count > 3 ? ADMIT_HOLD : ADMIT);
	}
	assert_string_equal(why, "adds 4 popular names: www.a.test. a.test. b.test. d.test.");
	feed.kind = FEED_KIND_BLOCKLIST;
	assert_int_equal(admission_judge(&feed, &report, &change, &hits, why), ADMIT);
	popular_hits_fini(&hits);
	namelist_fini(&popular);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hard_list),
		cmocka_unit_test(taken_is_what_brute_force_says),
		cmocka_unit_test(verdicts),
		cmocka_unit_test(popular_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
