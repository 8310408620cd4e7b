/* SPDX-License-Identifier: Apache-2.0 */
/* base/diag.c: findings are kept in order, counted, and printed safely. */
#include "base/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *printed(const struct diags *d)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	diag_print(d, out);
	fclose(out);
	return text;
}

static void test_place_level_and_order(void **state)
{
	(void)state;
	struct diags d;
	diag_init(&d);
	diag_error(&d, "a.yaml", 3, 7, "bad %s", "thing");
	diag_warning(&d, "a.yaml", 4, 0, "odd");
	diag_error(&d, "b.yaml", 0, 0, "gone");
	diag_error(&d, NULL, 0, 0, "nowhere");
	assert_int_equal(d.count, 4);
	assert_int_equal(d.errors, 3);
	assert_int_equal(d.warnings, 1);
	char *text = printed(&d);
	assert_string_equal(text, "a.yaml:3:7: error: bad thing\n"
				  "a.yaml:4: warning: odd\n"
				  "b.yaml: error: gone\n"
				  "error: nowhere\n");
	free(text);
	diag_fini(&d);
}

/* Options are read after policies, and policies after the rest: nobody wants to jump about. */
static void test_sorted_by_place(void **state)
{
	(void)state;
	struct diags d;
	diag_init(&d);
	diag_sort(&d);
	diag_error(&d, "b.yaml", 9, 1, "one");
	diag_warning(&d, "b.yaml", 10, 5, "two");
	diag_error(&d, "a.yaml", 4, 1, "three");
	diag_error(&d, "b.yaml", 10, 3, "four");
	diag_error(&d, NULL, 0, 0, "five");
	diag_error(&d, "b.yaml", 9, 1, "six");
	diag_sort(&d);
	char *text = printed(&d);
	assert_string_equal(text, "error: five\n"
				  "a.yaml:4:1: error: three\n"
				  "b.yaml:9:1: error: one\n"
				  "b.yaml:9:1: error: six\n"
				  "b.yaml:10:3: error: four\n"
				  "b.yaml:10:5: warning: two\n");
	free(text);
	diag_fini(&d);
}

static void test_many(void **state)
{
	(void)state;
	struct diags d;
	diag_init(&d);
	for (int i = 1; i <= 1000; i++)
		diag_error(&d, "f", i, 1, "number %d", i);
	assert_int_equal(d.count, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(d.items[i].line, i + 1);
	assert_string_equal(d.items[999].text, "number 1000");
	diag_fini(&d);
	assert_int_equal(d.count, 0);
}

static void test_control_characters_cannot_break_a_line(void **state)
{
	(void)state;
	struct diags d;
	diag_init(&d);
	diag_error(&d, "x\n.yaml", 1, 1, "key \"%s\"", "a\nb\033[31m");
	char *text = printed(&d);
	assert_string_equal(text, "x\\010.yaml:1:1: error: key \"a\\010b\\027[31m\"\n");
	free(text);
	diag_fini(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_place_level_and_order),
		cmocka_unit_test(test_sorted_by_place),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_control_characters_cannot_break_a_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
