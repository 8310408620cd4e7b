/* SPDX-License-Identifier: Apache-2.0 */
/* base/node.c: trees that know where they stand, and errors that say what to write instead. */
#include "base/node.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
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

static struct node *parse(const char *text)
{
	struct node *root = NULL;
	int result = node_parse("t.yaml", text, strlen(text), &arena, &diags, &root);
	if (result < 0)
		diag_print(&diags, stderr);
	assert_int_equal(result, 0);
	return root;
}

static void test_tree_and_places(void **state)
{
	(void)state;
	const struct node *root = parse("a: 1\n"
					"list:\n"
					"  - x\n"
					"  - {k: v, q: 'null'}\n"
					"empty:\n"
					"tilde: ~\n");
	assert_int_equal(root->kind, NODE_MAP);
	assert_int_equal(root->count, 4);
	const struct node *list = node_get(root, "list");
	assert_int_equal(list->kind, NODE_LIST);
	assert_int_equal(list->count, 2);
	assert_int_equal(list->key_line, 2);
	assert_string_equal(list->children->text, "x");
	assert_int_equal(list->children->line, 3);
	assert_int_equal(list->children->column, 5);
	const struct node *map = list->children->next;
	assert_int_equal(map->kind, NODE_MAP);
	assert_string_equal(node_get(map, "k")->text, "v");
	assert_int_equal(node_get(map, "k")->line, 4);
	assert_int_equal(node_get(map, "k")->column, 9);
	assert_int_equal(node_get(map, "k")->key_column, 6);
	assert_true(node_get(map, "q")->quoted);
	assert_false(node_is_null(node_get(map, "q")));
	assert_true(node_is_null(node_get(root, "empty")));
	assert_true(node_is_null(node_get(root, "absent")));
	assert_null(node_get(list, "a"));
	assert_string_equal(root->file, "t.yaml");
}

static void test_empty_documents_are_empty_maps(void **state)
{
	(void)state;
	static const char *const rows[] = {"", "# nothing\n", "---\n", "\n\n"};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct node *root = parse(rows[i]);
		assert_int_equal(root->kind, NODE_MAP);
		assert_int_equal(root->count, 0);
	}
}

struct bad {
	const char *text;
	const char *expected; /* the whole of the first finding */
};

static void test_syntax(void **state)
{
	(void)state;
	static const struct bad rows[] = {
		{"a: *.example.com\n",
		 "t.yaml:1:4: error: *.example.com begins an alias in YAML (quote it: \"*.example.com\")\n"},
		{"a:\n  - [x, *.y]\n",
		 "t.yaml:2:9: error: *.y begins an alias in YAML (quote it: \"*.y\")\n"},
		{"a: *name\n",
		 "t.yaml:1:4: error: *name begins an alias in YAML (quote it: \"*name\")\n"},
		{"a: &n x\n",
		 "t.yaml:1:4: error: &n begins an anchor in YAML (quote it: \"&n\")\n"},
		{"a: &.x y\n",
		 "t.yaml:1:4: error: &.x begins an anchor in YAML (quote it: \"&.x\")\n"},
		{"a: !t x\n", "t.yaml:1:4: error: !t begins a tag in YAML (quote it: \"!t\")\n"},
		{"a: !!map {}\n",
		 "t.yaml:1:4: error: !!map begins a tag in YAML (quote it: \"!!map\")\n"},
		{"a: @x\n",
		 "t.yaml:1:4: error: a value cannot begin like @x in YAML (quote it: \"@x\")\n"},
		{"a: 1\nb: 2\na: 3\n",
		 "t.yaml:3:1: error: duplicate key \"a\" (first given at line 1)\n"},
		{"<<: {a: 1}\n",
		 "t.yaml:1:1: error: merge keys are not supported (write the keys out)\n"},
		{"[a]: b\n", "t.yaml:1:1: error: a key must be a plain text\n"},
		{"a: 1\n---\nb: 2\n",
		 "t.yaml:2:1: error: a second document begins here (one a file)\n"},
		{"a: \"x\\0y\"\n", "t.yaml:1:4: error: a text cannot hold a NUL\n"},
		{"a: 1\nb: \xff\n",
		 "t.yaml:2: error: not a text in UTF-8: invalid leading UTF-8 octet\n"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct diags d;
		struct node *root;
		char *text = NULL;
		size_t size = 0;
		diag_init(&d);
		assert_int_equal(node_parse("t.yaml", rows[i].text, strlen(rows[i].text), &arena,
					    &d, &root),
				 -EINVAL);
		FILE *out = open_memstream(&text, &size);
		diag_print(&d, out);
		fclose(out);
		assert_string_equal(text, rows[i].expected);
		free(text);
		diag_fini(&d);
	}
}

static void test_other_breakage_has_a_place(void **state)
{
	(void)state;
	static const char *const rows[] = {"a: [1, 2\n",    "a: {b: 1\n",   "a: 'x\n",
					   "a: 1\n b: 2\n", "a:\n\tb: 1\n", "- a\nb: 1\n",
					   "a: b: c\n",	    "%x\n"};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct diags d;
		struct node *root;
		diag_init(&d);
		assert_int_equal(node_parse("t", rows[i], strlen(rows[i]), &arena, &d, &root),
				 -EINVAL);
		assert_null(root);
		assert_int_equal(d.errors, 1);
		assert_true(d.items[0].line > 0);
		diag_fini(&d);
	}
}

static void test_a_readable_document_is_returned_with_its_errors(void **state)
{
	(void)state;
	const char *text = "a: *x\nb: &y 1\nc: 2\nc: 3\n";
	struct node *root;
	assert_int_equal(node_parse("t", text, strlen(text), &arena, &diags, &root), -EINVAL);
	assert_int_equal(diags.errors, 3);
	assert_non_null(root);
	assert_string_equal(node_get(root, "b")->text, "1");
}

static void test_bounds(void **state)
{
	(void)state;
	char text[512] = "a: ";
	for (int i = 0; i < 31; i++)
		strcat(text, "[");
	for (int i = 0; i < 31; i++)
		strcat(text, "]");
	parse(text);
	struct node *root;
	memset(text, '[', sizeof(text));
	assert_int_equal(node_parse("t", text, sizeof(text), &arena, &diags, &root), -EINVAL);
	assert_non_null(strstr(diags.items[0].text, "nested too deeply"));

	size_t size = (size_t)5 << 20;
	char *large = malloc(size);
	memset(large, ' ', size);
	assert_int_equal(node_parse("t", large, size, &arena, &diags, &root), -EINVAL);
	assert_non_null(strstr(diags.items[1].text, "too large"));
	free(large);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_tree_and_places),
		TEST(test_empty_documents_are_empty_maps),
		TEST(test_syntax),
		TEST(test_other_breakage_has_a_place),
		TEST(test_a_readable_document_is_returned_with_its_errors),
		TEST(test_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
