/* SPDX-License-Identifier: Apache-2.0 */
/* base/node_value.c: each type takes what it should, and leaves `out` alone when it does not. */
#include "base/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct diags diags;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena);
	diag_init(&diags);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_fini(&arena);
	diag_fini(&diags);
	return 0;
}

/* The node of `v: TEXT`. */
static const struct node *value(const char *text)
{
	struct node *root = NULL;
	char *document = arena_printf(&arena, "v: %s\n", text);
	assert_int_equal(node_parse("t", document, strlen(document), &arena, &diags, &root), 0);
	return node_get(root, "v");
}

static const char *last_error(void)
{
	return diags.count ? diags.items[diags.count - 1].text : "";
}

static void test_sizes_and_durations(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool size, ok;
		uint64_t expected;
	} rows[] = {
		{"64MiB", true, true, (uint64_t)64 << 20},
		{"1KiB", true, true, 1024},
		{"2GiB", true, true, (uint64_t)2 << 30},
		{"4096", true, true, 4096},
		{"0", true, true, 0},
		{"64MB", true, false, 0},
		{"64 MiB", true, true, (uint64_t)64 << 20},
		{"1.5GiB", true, false, 0},
		{"-1", true, false, 0},
		{"99999999999GiB", true, false, 0},
		{"99999999999999999999999", true, false, 0},
		{"MiB", true, false, 0},
		{"500ms", false, true, 500},
		{"2s", false, true, 2000},
		{"10m", false, true, 600000},
		{"1h", false, true, 3600000},
		{"1d", false, true, 86400000},
		{"0", false, true, 0},
		{"0s", false, true, 0},
		{"2", false, false, 0},
		{"2w", false, false, 0},
		{"2S", false, false, 0},
		{"[2s]", false, false, 0},
		{"", false, false, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t out = 77;
		size_t errors = diags.errors;
		const struct node *n = value(rows[i].text);
		bool ok =
			rows[i].size ? node_size(n, &diags, &out) : node_duration(n, &diags, &out);
		assert_int_equal(ok, rows[i].ok);
		assert_int_equal(out, rows[i].ok ? rows[i].expected : 77);
		assert_int_equal(diags.errors, errors + !rows[i].ok);
	}
}

static void test_numbers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool ok;
		int64_t expected;
	} rows[] = {
		{"7", true, 7},	    {"-3", true, -3},
		{"100", true, 100}, {"101", false, 0},
		{"-4", false, 0},   {"0x10", false, 0},
		{"1.0", false, 0},  {"+1", false, 0},
		{"' 1'", false, 0}, {"1 2", false, 0},
		{"", false, 0},	    {"[1]", false, 0},
		{"'-'", false, 0},  {"99999999999999999999", false, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t out = 55;
		assert_int_equal(node_integer(value(rows[i].text), &diags, -3, 100, &out),
				 rows[i].ok);
		assert_int_equal(out, rows[i].ok ? rows[i].expected : 55);
	}
	double number = 0;
	assert_true(node_number(value("0.5"), &diags, 0, 1, &number));
	assert_true(number > 0.49 && number < 0.51);
	assert_false(node_number(value("1.5"), &diags, 0, 1, &number));
	assert_false(node_number(value("nan"), &diags, 0, 1, &number));
	assert_false(node_number(value("0x1"), &diags, 0, 1, &number));
	assert_false(node_number(value("1e999"), &diags, 0, 1, &number));
}

static void test_words(void **state)
{
	(void)state;
	bool yes = false;
	assert_true(node_bool(value("on"), &diags, &yes));
	assert_true(yes);
	assert_true(node_bool(value("no"), &diags, &yes));
	assert_false(yes);
	assert_false(node_bool(value("1"), &diags, &yes));

	static const char *const words[] = {"fastest", "ordered", "race", NULL};
	int choice = 9;
	assert_true(node_choice(value("race"), &diags, words, &choice));
	assert_int_equal(choice, 2);
	assert_false(node_choice(value("orderd"), &diags, words, &choice));
	assert_int_equal(choice, 2);
	assert_string_equal(last_error(),
			    "\"orderd\" is not known here (did you mean \"ordered\"?)");
	assert_false(node_choice(value("best"), &diags, words, &choice));
	assert_string_equal(last_error(),
			    "\"best\" is not known here (expected one of fastest, ordered, race)");

	const char *text = "kept";
	assert_false(node_text(NULL, &diags, &text));
	assert_string_equal(text, "kept");
	assert_false(node_text(value(""), &diags, &text));
	assert_string_equal(last_error(), "v has no value (expected a text)");
	assert_true(node_text(value("''"), &diags, &text));
	assert_string_equal(text, "");
}

static void test_addresses(void **state)
{
	(void)state;
	struct prefix p;
	struct endpoint e;
	struct addr a;
	assert_true(node_address(value("192.0.2.1"), &diags, &a));
	assert_false(node_address(value("192.0.2.1/24"), &diags, &a));
	assert_true(node_prefix(value("10.0.0.0/8"), &diags, &p));
	assert_false(node_prefix(value("10.0.0.1/8"), &diags, &p));
	assert_string_equal(last_error(), "\"10.0.0.1/8\" has bits set behind the prefix length");
	assert_true(node_endpoint(value("'[::1]:5353'"), &diags, 53, &e));
	assert_int_equal(e.port, 5353);
	assert_false(node_endpoint(value("localhost:53"), &diags, 53, &e));
}

static void test_unknown_keys_name_their_neighbour(void **state)
{
	(void)state;
	static const char *const known[] = {"upstreams", "listen", "cache", NULL};
	assert_true(node_check_keys(NULL, known, &diags));
	assert_true(node_check_keys(value("{listen: 1}"), known, &diags));
	assert_int_equal(diags.errors, 0);
	assert_false(node_check_keys(value("{upstream: 1, cahce: 2, zebra: 3}"), known, &diags));
	assert_int_equal(diags.errors, 3);
	assert_string_equal(diags.items[0].text,
			    "unknown key \"upstream\" (did you mean \"upstreams\"?)");
	assert_int_equal(diags.items[0].column, 5);
	assert_string_equal(diags.items[1].text, "unknown key \"cahce\" (did you mean \"cache\"?)");
	assert_string_equal(diags.items[2].text,
			    "unknown key \"zebra\" (expected one of upstreams, listen, cache)");
	assert_false(node_check_keys(value("[a]"), known, &diags));
	assert_string_equal(last_error(), "v must be a map (key: value)");

	assert_null(node_nearest("x", known));
	assert_null(node_nearest("", known));
	assert_string_equal(node_nearest("lsiten", known), "listen");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_sizes_and_durations),
		TEST(test_numbers),
		TEST(test_words),
		TEST(test_addresses),
		TEST(test_unknown_keys_name_their_neighbour),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
