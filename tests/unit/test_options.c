/* SPDX-License-Identifier: Apache-2.0 */
/* Option rows: what users write, what plugins get, and what is told when it does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/chain/options.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct values {
	bool flag;
	int64_t whole;
	double part;
	uint64_t pause;
	uint64_t room;
	const char *text;
	int word;
	const char *output;
	struct baleen_file file;
	struct baleen_strings texts;
	struct baleen_prefixes prefixes;
	struct baleen_names names;
	const char *needed;
};

static const char *const words[] = {"red", "green", NULL};

#define AT(member) offsetof(struct values, member)
static const struct baleen_option rows[] = {
	{"flag", BALEEN_BOOL, AT(flag), "yes", 0, 0, NULL, "h"},
	{"whole", BALEEN_INTEGER, AT(whole), "7", -5, 100, NULL, "h"},
	{"part", BALEEN_NUMBER, AT(part), "0.5", 0, 1, NULL, "h"},
	{"pause", BALEEN_DURATION, AT(pause), "2s", 1000, 60000, NULL, "h"},
	{"room", BALEEN_SIZE, AT(room), "64MiB", 0, 0, NULL, "h"},
	{"text", BALEEN_STRING, AT(text), "some text", 0, 0, NULL, "h"},
	{"word", BALEEN_CHOICE, AT(word), "green", 0, 0, words, "h"},
	{"output", BALEEN_OUTPUT, AT(output), "log/x.log", 0, 0, NULL, "h"},
	{"file", BALEEN_FILE, AT(file), NULL, 0, 0, NULL, "h"},
	{"texts", BALEEN_STRINGS, AT(texts), "[a, b]", 0, 0, NULL, "h"},
	{"prefixes", BALEEN_PREFIXES, AT(prefixes), "[127.0.0.0/8, \"::1\"]", 0, 0, NULL, "h"},
	{"names", BALEEN_NAMES, AT(names), NULL, 0, 0, NULL, "h"},
	{"needed", BALEEN_STRING, AT(needed), "!", 0, 0, NULL, "what is needed"},
	{0},
};
static const struct baleen_plugin plugin = {.name = "sample",
					    .options = rows,
					    .config_size = sizeof(struct values)};
static const char *const common[] = {"mode", "name", NULL};

struct fixture {
	struct arena arena;
	struct diags d;
	struct source *source;
	struct options_context context;
	char folder[64];
	char config[128];
	struct values v;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128];

	arena_init(&f->arena);
	diag_init(&f->d);
	f->source = source_disk();
	strcpy(f->folder, "/tmp/baleen-options-XXXXXX");
	if (!mkdtemp(f->folder))
		return -1;
	snprintf(f->config, sizeof(f->config), "%s/baleen.yaml", f->folder);
	snprintf(path, sizeof(path), "%s/data.txt", f->folder);
	FILE *out = fopen(path, "w");
	fputs("contents", out);
	fclose(out);
	f->context = (struct options_context){.source = f->source,
					      .arena = &f->arena,
					      .d = &f->d,
					      .config_file = f->config,
					      .state = "/var/lib/baleen",
					      .instance = "it",
					      .line = 3,
					      .column = 9};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/data.txt", f->folder);
	unlink(path);
	rmdir(f->folder);
	source_free(f->source);
	diag_fini(&f->d);
	arena_fini(&f->arena);
	free(f);
	return 0;
}

static const struct node *yaml(struct fixture *f, const char *text)
{
	struct node *n;

	if (!text)
		return NULL;
	assert_int_equal(node_parse(f->config, text, strlen(text), &f->arena, &f->d, &n), 0);
	return n;
}

static int fill(struct fixture *f, const char *text)
{
	memset(&f->v, 0xee, sizeof(f->v));
	return options_fill(&f->context, &plugin, yaml(f, text), common, &f->v);
}

static bool told(struct fixture *f, const char *text)
{
	for (size_t i = 0; i < f->d.count; i++)
		if (strstr(f->d.items[i].text, text))
			return true;
	diag_print(&f->d, stderr);
	return false;
}

static void test_defaults_are_read_as_written(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fill(f, "{needed: x}"), 0);
	assert_true(f->v.flag);
	assert_int_equal(f->v.whole, 7);
	assert_true(f->v.part == 0.5);
	assert_int_equal(f->v.pause, 2000);
	assert_int_equal(f->v.room, 64 << 20);
	assert_string_equal(f->v.text, "some text");
	assert_int_equal(f->v.word, 1);
	assert_string_equal(f->v.output, "log/x.log");
	assert_null(f->v.file.data);
	assert_int_equal(f->v.texts.count, 2);
	assert_string_equal(f->v.texts.items[1], "b");
	assert_int_equal(f->v.prefixes.count, 2);
	assert_int_equal(f->v.prefixes.items[0].bits, 104);
	assert_int_equal(f->v.prefixes.items[1].bits, 128);
	assert_int_equal(f->v.names.count, 0);
	assert_string_equal(f->v.needed, "x");
}

static void test_every_type_from_yaml(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		fill(f, "{mode: monitor, flag: off, whole: -5, part: 1, pause: 1m, room: 4096,\n"
			" text: \"a b\", word: red, output: /var/lib/baleen/other/y.log,\n"
			" file: data.txt, texts: one, prefixes: [10.0.0.0/8],\n"
			" names: [Example.COM, \"m\xc3\xbcnchen.test.\"], needed: z}"),
		0);
	assert_false(f->v.flag);
	assert_int_equal(f->v.whole, -5);
	assert_int_equal(f->v.pause, 60000);
	assert_int_equal(f->v.room, 4096);
	assert_int_equal(f->v.word, 0);
	assert_string_equal(f->v.output, "other/y.log");
	assert_int_equal(f->v.file.size, 8);
	assert_memory_equal(f->v.file.data, "contents", 8);
	assert_int_equal(f->v.texts.count, 1);
	assert_string_equal(f->v.texts.items[0], "one");
	assert_int_equal(f->v.names.count, 2);
	assert_memory_equal(f->v.names.items[0], "\7example\3com", 13);
	assert_memory_equal(f->v.names.items[1], "\16xn--mnchen-3ya\4test", 21);
}

static void test_what_does_not_fit_is_told(void **state)
{
	static const struct {
		const char *yaml;
		const char *told;
	} wrong[] = {
		{"{}", "needed must be given"},
		{"{needed: x, whole: 101}", "101"},
		{"{needed: x, whole: seven}", "seven"},
		{"{needed: x, pause: 500ms}", "1000 to 60000 milliseconds"},
		{"{needed: x, part: 1.5}", "1.5"},
		{"{needed: x, word: blue}", "blue"},
		{"{needed: x, flag: maybe}", "maybe"},
		{"{needed: x, output: ../x}", "../x"},
		{"{needed: x, output: a/../../x}", "no path to write"},
		{"{needed: x, output: /var/log/../x}", "no path to write"},
		{"{needed: x, file: nothing.txt}", "cannot read"},
		{"{needed: x, prefixes: [10.0.0.1/8]}", "10.0.0.1/8"},
		{"{needed: x, names: [\"a..b\"]}", "a..b"},
		{"{needed: x, text: [a]}", "one value"},
		{"{needed: x, texts: {a: b}}", "is a list"},
		{"{needed: x, wohle: 3}", "did you mean \"whole\"?"},
		{"just text", "map"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		size_t before = f->d.errors;
		assert_int_equal(fill(f, wrong[i].yaml), -EINVAL);
		assert_true(f->d.errors > before);
		if (!told(f, wrong[i].told))
			fail_msg("%s: not told: %s", wrong[i].yaml, wrong[i].told);
	}
	/* A missing one stands where the entry stands. */
	assert_int_equal(f->d.items[0].line, 3);
	assert_int_equal(f->d.items[0].column, 9);
}

static void test_all_errors_at_once(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fill(f, "{whole: 1000, word: blue, nosuch: 1}"), -EINVAL);
	assert_int_equal(f->d.errors, 4); /* and `needed` is missing */
}

static void test_override_begins_with_the_base(void **state)
{
	struct fixture *f = *state;
	struct values group;

	assert_int_equal(fill(f, "{needed: x, whole: 50, texts: [p, q]}"), 0);
	assert_int_equal(options_override(&f->context, &plugin, &f->v,
					  yaml(f, "{pause: 3s, texts: [r]}"), common, &group),
			 0);
	assert_int_equal(group.whole, 50);
	assert_int_equal(group.pause, 3000);
	assert_int_equal(group.texts.count, 1);
	assert_string_equal(group.needed, "x");
	assert_int_equal(f->v.pause, 2000);
	assert_int_equal(f->v.texts.count, 2);
	assert_int_equal(options_override(&f->context, &plugin, &f->v, yaml(f, "{puase: 3s}"),
					  common, &group),
			 -EINVAL);
	assert_true(told(f, "did you mean \"pause\"?"));
}

static void collect(void *context, const char *path)
{
	strcat(strcat(context, path), ";");
}

static void test_outputs_are_listed(void **state)
{
	struct fixture *f = *state;
	char paths[128] = "";

	assert_int_equal(fill(f, "{needed: x}"), 0);
	options_outputs(&plugin, &f->v, collect, paths);
	assert_string_equal(paths, "log/x.log;");
	assert_int_equal(fill(f, "{needed: x, output: /var/log/baleen/y.log}"), 0);
	paths[0] = '\0';
	options_outputs(&plugin, &f->v, collect, paths);
	assert_string_equal(paths, "/var/log/baleen/y.log;");
	assert_int_equal(fill(f, "{needed: x, output: \"-\"}"), 0);
	paths[0] = '\0';
	options_outputs(&plugin, &f->v, collect, paths);
	assert_string_equal(paths, "");
}

static void test_schema_has_every_row(void **state)
{
	(void)state;
	cJSON *schema = options_schema(&plugin);
	size_t n = 0;

	for (const struct baleen_option *o = rows; o->type != BALEEN_END; o++, n++)
		assert_non_null(cJSON_GetObjectItemCaseSensitive(schema, o->name));
	assert_int_equal(cJSON_GetArraySize(schema), n);
	const cJSON *whole = cJSON_GetObjectItemCaseSensitive(schema, "whole");
	assert_true(cJSON_GetObjectItemCaseSensitive(whole, "maximum")->valuedouble == 100);
	cJSON_Delete(schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_defaults_are_read_as_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_type_from_yaml, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_does_not_fit_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_errors_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_override_begins_with_the_base, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_outputs_are_listed, setup, teardown),
		cmocka_unit_test(test_schema_has_every_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
