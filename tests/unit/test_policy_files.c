/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy files of tests/conf/bad/policies: each begins with what must be said of it, one comment a
 * line, in order. The policies of policies/examples must load without an error. Run from the tree's
 * top.
 */
#include "policy_fixture.h"

#include <dirent.h>

#define BAD	 "tests/conf/bad/policies"
#define EXAMPLES "policies/examples"

static unsigned folders, files, different;

static void load_folder(struct fixture *f, const char *top, const char *folder)
{
	char path[512], text[512];
	fixture_begin(f);
	/* Places are told relative to it. */
	snprintf(path, sizeof(path), "ln -s %s/%s %s/policies", getcwd(text, sizeof(text)), top,
		 f->folder);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s/policies/%s", f->folder, folder);
	fixture_load(f, path);
	if (f->result == 0)
		policy_lint(f->policy, &f->diags);
}

static char *expected_of(const char *path)
{
	char line[512], *text = NULL;
	size_t size;
	FILE *in = fopen(path, "r"), *out = open_memstream(&text, &size);
	assert_non_null(in);
	while (fgets(line, sizeof(line), in) &&
	       (strncmp(line, "# error: ", 9) == 0 || strncmp(line, "# warning: ", 11) == 0))
		fputs(line + 2, out);
	fclose(in);
	fclose(out);
	return text;
}

static char *found_in(const struct fixture *f, const char *folder, const char *name)
{
	char *text = NULL, end[300];
	size_t size;
	FILE *out = open_memstream(&text, &size);
	snprintf(end, sizeof(end), "/%s/%s", folder, name);
	for (size_t i = 0; i < f->diags.count; i++) {
		const struct diag *d = &f->diags.items[i];
		size_t n = strlen(d->file), m = strlen(end);
		if (n >= m && strcmp(d->file + n - m, end) == 0)
			fprintf(out, "%s: %d:%d: %s\n",
				d->level == DIAG_ERROR ? "error" : "warning", d->line, d->column,
				d->text);
	}
	fclose(out);
	return text;
}

static void check_bad(const char *folder)
{
	struct fixture f;
	char path[600];
	size_t told = 0;
	load_folder(&f, BAD, folder);
	snprintf(path, sizeof(path), BAD "/%s", folder);
	DIR *d = opendir(path);
	assert_non_null(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), BAD "/%s/%s", folder, e->d_name);
		char *expected = expected_of(path), *found = found_in(&f, folder, e->d_name);
		if (strcmp(expected, found) != 0) {
			fprintf(stderr, "%s: found\n%sexpected\n%s", path, found, expected);
			different++;
		}
		for (const char *p = found; *p; p++)
			told += *p == '\n';
		free(expected);
		free(found);
		files++;
	}
	closedir(d);
	/* Nothing is said of a file that is not there. */
	assert_int_equal(told, f.diags.count);
	assert_true(told > 0);
	assert_int_equal(f.result<0, f.diags.errors> 0);
	fixture_end(&f);
}

static void check_example(const char *folder)
{
	struct fixture f;
	load_folder(&f, EXAMPLES, folder);
	for (size_t i = 0; i < f.diags.count; i++)
		if (f.diags.items[i].level == DIAG_ERROR) {
			fprintf(stderr, "%s: %s\n", folder, f.diags.items[i].text);
			different++;
		}
	assert_int_equal(f.result, 0);
	assert_true(policy_test_count(f.policy) > 0);
	fixture_end(&f);
}

static void each_folder(const char *top, void (*check)(const char *folder))
{
	DIR *d = opendir(top);
	assert_non_null(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		if (e->d_name[0] != '.' && e->d_type == DT_DIR) {
			check(e->d_name);
			folders++;
		}
	closedir(d);
}

static void test_bad_files_say_why(void **state)
{
	(void)state;
	folders = files = different = 0;
	each_folder(BAD, check_bad);
	assert_true(folders >= 8);
	assert_true(files > folders);
	assert_int_equal(different, 0);
}

static void test_examples_load(void **state)
{
	(void)state;
	folders = different = 0;
	each_folder(EXAMPLES, check_example);
	assert_true(folders >= 4);
	assert_int_equal(different, 0);
}

static void test_rules_need_the_blocklist(void **state)
{
	(void)state;
	struct fixture f;
	char path[128];
	fixture_begin(&f);
	fixture_file(&f, "default.yaml", "rules:\n  - block: [x.example]\n");
	snprintf(path, sizeof(path), "%s/policies", f.folder);
	static const char *const plugins[] = {"logging", NULL};
	struct policy_context context = {.feeds = &f.feeds,
					 .config_folder = f.folder,
					 .plugin_names = plugins};
	assert_true(policy_load(f.source, path, &context, &f.arena, &f.diags, &f.policy) < 0);
	assert_int_equal(f.diags.errors, 1);
	assert_string_equal(f.diags.items[0].text,
			    "rules do nothing while \"blocklist\" is not in the chain (add it to "
			    "plugins: of the configuration)");
	assert_int_equal(f.diags.items[0].line, 2);
	/* Without rules of anybody's, nothing is missed. */
	assert_int_equal(policy_load(f.source, NULL, &context, &f.arena, &f.diags, &f.policy), 0);
	snprintf(path, sizeof(path), "%s/none", f.folder);
	assert_true(policy_load(f.source, path, &context, &f.arena, &f.diags, &f.policy) < 0);
	assert_string_equal(f.diags.items[1].text,
			    "the folder of policies cannot be read: No such file or directory");
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_files_say_why),
		cmocka_unit_test(test_examples_load),
		cmocka_unit_test(test_rules_need_the_blocklist),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
