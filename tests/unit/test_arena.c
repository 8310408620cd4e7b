/* SPDX-License-Identifier: Apache-2.0 */
/* base/arena.c: memory is zeroed, aligned, and never moves or overlaps. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_blocks_are_zeroed_aligned_and_apart(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a);
	enum { COUNT = 3000 };
	static unsigned char *blocks[COUNT];
	static size_t sizes[COUNT];
	for (size_t i = 0; i < COUNT; i++) {
		sizes[i] = i % 97 == 0 ? 40000 + i : i % 53;
		blocks[i] = arena_alloc(&a, sizes[i]);
		assert_int_equal((uintptr_t)blocks[i] % alignof(max_align_t), 0);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(blocks[i][k], 0);
		memset(blocks[i], (int)(i % 251) + 1, sizes[i]);
	}
	for (size_t i = 0; i < COUNT; i++)
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(blocks[i][k], i % 251 + 1);
	arena_fini(&a);
	assert_null(a.chunks);
}

static void test_texts(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a);
	char *copy = arena_strdup(&a, "hello");
	assert_string_equal(copy, "hello");
	assert_string_equal(arena_strndup(&a, "hello", 3), "hel");
	assert_string_equal(arena_strndup(&a, "he", 30), "he");
	assert_string_equal(arena_printf(&a, "%d-%s", 42, "x"), "42-x");
	char *same = arena_memdup(&a, "a\0b", 4);
	assert_memory_equal(same, "a\0b", 4);
	char *longer = arena_printf(&a, "%0200000d", 1);
	assert_int_equal(strlen(longer), 200000);
	assert_string_equal(copy, "hello");
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks_are_zeroed_aligned_and_apart),
		cmocka_unit_test(test_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
