/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policies/policy_when.c and policy_zone.c: the wall clock decides. Zones are checked against the C
 * library's own reading of the same files; tests of zones need the package tzdata.
 */
#include "policies/policy_when.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

struct ground {
	struct arena arena;
	struct diags diags;
	struct policy_zones zones;
};

static void begin(struct ground *g)
{
	memset(g, 0, sizeof(*g));
	arena_init(&g->arena);
	diag_init(&g->diags);
	g->zones.arena = &g->arena;
	g->zones.source = source_disk();
}

static void end(struct ground *g)
{
	source_free(g->zones.source);
	arena_fini(&g->arena);
	diag_fini(&g->diags);
}

static const struct policy_when *parse(struct ground *g, const char *text)
{
	struct node *root;
	char *document = arena_printf(&g->arena, "when: %s\n", text);
	assert_int_equal(node_parse("t", document, strlen(document), &g->arena, &g->diags, &root),
			 0);
	return policy_when_parse(node_get(root, "when"), &g->zones, &g->diags);
}

static int64_t at(const char *text)
{
	int64_t t;
	assert_int_equal(policy_time_parse(text, false, &t), 0);
	return t;
}

static void test_ranges(void **state)
{
	(void)state;
	static const struct {
		const char *when, *time;
		bool inside;
	} rows[] = {
		{"{days: mon-fri, from: \"09:00\", to: \"17:00\", timezone: Europe/Zurich}",
		 "2026-03-02T09:00:00+01:00", true},
		{"{days: mon-fri, from: \"09:00\", to: \"17:00\", timezone: Europe/Zurich}",
		 "2026-03-02T08:59:59+01:00", false},
		{"{days: mon-fri, from: \"09:00\", to: \"17:00\", timezone: Europe/Zurich}",
		 "2026-03-02T17:00:00+01:00", false},
		{"{days: mon-fri, from: \"09:00\", to: \"17:00\", timezone: Europe/Zurich}",
		 "2026-03-01T10:00:00+01:00", false},
		/* Summer: the same hours of the wall. */
		{"{days: mon-fri, from: \"09:00\", to: \"17:00\", timezone: Europe/Zurich}",
		 "2026-07-06T07:00:00Z", true},
		{"{days: mon-fri, from: \"09:00\", to: \"17:00\", timezone: Europe/Zurich}",
		 "2026-07-06T06:59:59Z", false},
		/* Over midnight: belongs to the day it begins on. */
		{"{days: fri, from: \"20:00\", to: \"06:00\", timezone: UTC}",
		 "2026-03-06T20:00:00Z", true},
		{"{days: fri, from: \"20:00\", to: \"06:00\", timezone: UTC}",
		 "2026-03-07T05:59:59Z", true},
		{"{days: fri, from: \"20:00\", to: \"06:00\", timezone: UTC}",
		 "2026-03-07T06:00:00Z", false},
		{"{days: fri, from: \"20:00\", to: \"06:00\", timezone: UTC}",
		 "2026-03-06T05:00:00Z", false},
		{"{days: fri, from: \"20:00\", to: \"06:00\", timezone: UTC}",
		 "2026-03-07T20:00:00Z", false},
		{"{days: sun, from: \"20:00\", to: \"06:00\", timezone: UTC}",
		 "2026-03-09T05:00:00Z", true},
		/* The clock changes: America/Denver goes back on 2024-11-03 at 02:00. */
		{"{from: \"18:00\", to: \"21:30\", timezone: America/Denver}",
		 "2024-11-03T20:45:00-07:00", true},
		{"{from: \"18:00\", to: \"21:30\", timezone: America/Denver}",
		 "2024-11-03T21:15:00-07:00", true},
		{"{from: \"18:00\", to: \"21:30\", timezone: America/Denver}",
		 "2024-11-03T21:45:00-07:00", false},
		/* Europe/London goes forward on 2026-03-29 at 01:00. */
		{"{from: \"00:00\", to: \"08:00\", timezone: Europe/London}",
		 "2026-03-29T07:45:00+01:00", true},
		{"{from: \"00:00\", to: \"08:00\", timezone: Europe/London}",
		 "2026-03-29T08:30:00+01:00", false},
		/* Inside the hour that comes twice, both times; the missing hour never shows. */
		{"{from: \"01:00\", to: \"02:00\", timezone: America/Denver}",
		 "2024-11-03T01:30:00-06:00", true},
		{"{from: \"01:00\", to: \"02:00\", timezone: America/Denver}",
		 "2024-11-03T01:30:00-07:00", true},
		{"{from: \"01:00\", to: \"02:00\", timezone: Europe/London}",
		 "2026-03-29T00:59:59Z", false},
		{"{from: \"01:00\", to: \"02:00\", timezone: Europe/London}",
		 "2026-03-29T01:00:00Z", false},
		/* Days alone, lists, wrap-around, the day's end. */
		{"{days: [sat, sun], timezone: UTC}", "2026-03-07T00:00:00Z", true},
		{"{days: \"sat,sun\", timezone: UTC}", "2026-03-08T23:59:59Z", true},
		{"{days: [sat, sun], timezone: UTC}", "2026-03-09T00:00:00Z", false},
		{"{days: fri-mon, timezone: UTC}", "2026-03-08T12:00:00Z", true},
		{"{days: fri-mon, timezone: UTC}", "2026-03-10T12:00:00Z", false},
		{"{days: Mon-Fri, timezone: UTC}", "2026-03-10T12:00:00Z", true},
		{"{from: \"22:00\", to: \"24:00\", timezone: UTC}", "2026-03-10T23:59:59Z", true},
		{"{from: \"22:00\", to: \"24:00\", timezone: UTC}", "2026-03-11T00:00:00Z", false},
		{"{from: \"22:00\", timezone: UTC}", "2026-03-10T23:00:00Z", true},
		{"{to: \"6:00\", timezone: UTC}", "2026-03-10T05:00:00Z", true},
		{"{to: \"6:00\", timezone: UTC}", "2026-03-10T06:00:00Z", false},
		/* Before 1970. */
		{"{days: wed, timezone: UTC}", "1969-12-31T23:00:00Z", true},
	};
	struct ground g;
	begin(&g);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct policy_when *w = parse(&g, rows[i].when);
		if (!w)
			diag_print(&g.diags, stderr);
		assert_non_null(w);
		if (policy_when_matches(w, at(rows[i].time)) != rows[i].inside)
			print_error("%s at %s\n", rows[i].when, rows[i].time);
		assert_int_equal(policy_when_matches(w, at(rows[i].time)), rows[i].inside);
	}
	const struct policy_when *w =
		parse(&g, "{days: [mon, tue, wed, sat, sun], from: \"09:00\", to: \"17:30\", "
			  "timezone: Europe/Zurich}");
	assert_string_equal(w->text, "mon-wed,sat,sun 09:00-17:30 Europe/Zurich");
	end(&g);
}

static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *when, *error;
	} rows[] = {
		{"{}", "when says nothing (expected days:, or from: and to:)"},
		{"{timezone: UTC}", "when says nothing (expected days:, or from: and to:)"},
		{"{days: never}", "\"never\" is no day (expected mon, mon-fri, or [sat, sun])"},
		{"{days: mon-}", "\"mon-\" is no day (expected mon, mon-fri, or [sat, sun])"},
		{"{days: []}", "no day is named (expected mon, mon-fri, or [sat, sun])"},
		{"{from: \"25:00\"}", "\"25:00\" is no time of day (expected \"09:00\", quoted)"},
		{"{from: \"9\"}", "\"9\" is no time of day (expected \"09:00\", quoted)"},
		{"{to: \"24:01\"}", "\"24:01\" is no time of day (expected \"09:00\", quoted)"},
		{"{from: \"9:5\"}", "\"9:5\" is no time of day (expected \"09:00\", quoted)"},
		{"{from: \"08:00\", to: \"08:00\"}", "the range is empty (from equals to)"},
		{"{days: mon, timezone: Europe/Nowhere}",
		 "time zone \"Europe/Nowhere\" cannot be read: No such file or directory (is the "
		 "package tzdata installed?)"},
		{"{days: mon, timezone: ../../etc/passwd}",
		 "\"../../etc/passwd\" is no time zone (expected one such as Europe/Zurich)"},
		{"{day: mon}", "unknown key \"day\" (did you mean \"days\"?)"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ground g;
		begin(&g);
		assert_null(parse(&g, rows[i].when));
		assert_true(g.diags.errors >= 1);
		assert_string_equal(g.diags.items[0].text, rows[i].error);
		end(&g);
	}
}

/* Every zone of a sample, every 11 hours and around each change, 1975 to 2090. */
static void test_zones_equal_the_library(void **state)
{
	(void)state;
	static const char *const names[] = {
		"UTC",
		"Europe/Zurich",
		"Europe/London",
		"Europe/Dublin",
		"America/Denver",
		"America/Sao_Paulo",
		"Asia/Kolkata",
		"Asia/Tokyo",
		"Australia/Lord_Howe",
		"Australia/Sydney",
		"Pacific/Auckland",
		"Africa/Casablanca",
		"America/Santiago",
		"Asia/Gaza",
		"Pacific/Apia",
		"America/Nuuk",
		"Etc/GMT+5",
		"Asia/Kathmandu",
	};
	struct ground g;
	begin(&g);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct policy_zone *z = policy_zone_find(&g.zones, names[i], NULL, &g.diags);
		assert_non_null(z);
		assert_ptr_equal(z, policy_zone_find(&g.zones, names[i], NULL, &g.diags));
		setenv("TZ", names[i], 1);
		tzset();
		for (int64_t t = 157766400; t < 3786912000; t += 11 * 3600) {
			time_t wall = (time_t)t;
			struct tm local;
			localtime_r(&wall, &local);
			if (policy_zone_offset(z, t) != local.tm_gmtoff)
				print_error("%s at %lld\n", names[i], (long long)t);
			assert_int_equal(policy_zone_offset(z, t), local.tm_gmtoff);
		}
		for (size_t k = 0; k < z->count; k++)
			for (int around = -1; around <= 1; around++) {
				time_t wall = (time_t)(z->times[k] + around);
				struct tm local;
				localtime_r(&wall, &local);
				assert_int_equal(policy_zone_offset(z, wall), local.tm_gmtoff);
			}
	}
	unsetenv("TZ");
	end(&g);
}

/* Cut off anywhere, or any octet wrong: refused or read in bounds. */
static void test_damaged_zone_files(void **state)
{
	(void)state;
	struct ground g;
	struct source_file file;
	begin(&g);
	assert_int_equal(source_read(g.zones.source, "/usr/share/zoneinfo/Europe/Zurich", &file),
			 0);
	uint8_t *copy = malloc(file.size);
	for (size_t i = 0; i < file.size; i++) {
		struct policy_zone z = {0};
		struct arena arena;
		arena_init(&arena);
		uint8_t *cut = malloc(i ? i : 1);
		memcpy(cut, file.data, i);
		assert_int_equal(policy_zone_read(cut, i, &arena, &z), -EINVAL);
		free(cut);
		memcpy(copy, file.data, file.size);
		copy[i] ^= 0xff;
		if (policy_zone_read(copy, file.size, &arena, &z) == 0)
			(void)policy_zone_offset(&z, 1772445600);
		arena_fini(&arena);
	}
	free(copy);
	end(&g);
}

static void test_points_in_time(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t begin, end;
		int result;
	} rows[] = {
		{"1970-01-01", 0, 86400, 0},
		{"2026-03-02", 1772409600, 1772496000, 0},
		{"2024-02-29", 1709164800, 1709251200, 0},
		{"2026-03-02T10:00:00Z", 1772445600, 1772445600, 0},
		{"2026-03-02T10:00:00+01:00", 1772442000, 1772442000, 0},
		{"2026-03-02 10:00-03:30", 1772458200, 1772458200, 0},
		{"2026-03-02T10:00:00.5Z", 1772445600, 1772445600, 0},
		{"2023-02-29", 0, 0, -EINVAL},
		{"2026-13-01", 0, 0, -EINVAL},
		{"2026-03-02T10:00:00", 0, 0, -EINVAL},
		{"2026-03-02T24:00:00Z", 0, 0, -EINVAL},
		{"2026-03-02T10:00:00Zx", 0, 0, -EINVAL},
		{"tomorrow", 0, 0, -EINVAL},
		{"", 0, 0, -EINVAL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t t = 0;
		assert_int_equal(policy_time_parse(rows[i].text, false, &t), rows[i].result);
		assert_int_equal(t, rows[i].begin);
		t = 0;
		assert_int_equal(policy_time_parse(rows[i].text, true, &t), rows[i].result);
		assert_int_equal(t, rows[i].end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_zones_equal_the_library),
		cmocka_unit_test(test_damaged_zone_files),
		cmocka_unit_test(test_points_in_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
