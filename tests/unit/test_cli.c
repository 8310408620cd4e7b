/* SPDX-License-Identifier: Apache-2.0 */
/* core/cli/cli.c: options and exit codes, and numbers as people read them. */
#include "core/cli/cli.h"

#include "core/config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void numbers_for_people(void **state)
{
	(void)state;
	char out[CLI_TEXT_MAX];
	static const struct {
		double n;
		const char *count;
	} counts[] = {{0, "0"},	    {999, "999"},     {1000, "1,000"}, {1234567, "1,234,567"},
		      {-12, "-12"}, {-1234, "-1,234"}};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		assert_string_equal(cli_count(counts[i].n, out), counts[i].count);
	assert_true(strlen(cli_count(1e300, out)) < CLI_TEXT_MAX);
	assert_string_equal(cli_duration(0, out), "0 s");
	assert_string_equal(cli_duration(59.9, out), "59 s");
	assert_string_equal(cli_duration(60, out), "1 min");
	assert_string_equal(cli_duration(3 * 3600 + 12 * 60, out), "3 h 12 min");
	assert_string_equal(cli_duration(2 * 86400 + 4 * 3600, out), "2 d 4 h");
	assert_string_equal(cli_duration(-5, out), "0 s");
	assert_true(strlen(cli_duration(1e300, out)) < CLI_TEXT_MAX);
	assert_string_equal(cli_octets(512, out), "512 octets");
	assert_string_equal(cli_octets(64 << 20, out), "64.0 MiB");
	assert_true(strlen(cli_octets(1e300, out)) < CLI_TEXT_MAX);
}

static int options(struct cli_options *o, const struct cli_option *own, int least, int most,
		   const char *a, const char *b, const char *c)
{
	/* What was read points into the words, and is looked at after this returns. */
	static char word[] = "status", one[32], two[32], three[32];
	char *argv[] = {word, one, two, three, NULL};
	const char *from[] = {a, b, c};
	int argc = 1;
	for (; argc < 4 && from[argc - 1]; argc++)
		snprintf(argv[argc], sizeof(one), "%s", from[argc - 1]);
	argv[argc] = NULL;
	return cli_options(argc, argv, "status", own, least, most, o);
}

static void options_and_wrong_usage(void **state)
{
	(void)state;
	struct cli_options o;
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
	dup2(null, STDERR_FILENO);
	int plain = options(&o, NULL, 0, 0, NULL, NULL, NULL);
	const char *config = o.config;
	int both = options(&o, NULL, 0, 0, "--json", "-c", "x");
	bool json = o.json;
	bool deep = false;
	const char *set = NULL;
	const struct cli_option own[] = {{"deep", &deep, NULL}, {"set", NULL, &set}, {0}};
	int owned = options(&o, own, 0, 0, "--set", "x", "--deep");
	bool owned_read = deep && set && strcmp(set, "x") == 0;
	int no_value = options(&o, own, 0, 0, "--set", NULL, NULL);
	int unknown = options(&o, NULL, 0, 0, "--nosuch", NULL, NULL);
	int lacks = options(&o, NULL, 0, 0, "-c", NULL, NULL);
	int many = options(&o, NULL, 0, 0, "word", NULL, NULL);
	int few = options(&o, NULL, 1, 1, NULL, NULL, NULL);
	int word = options(&o, NULL, 1, 1, "word", NULL, NULL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(null);
	assert_int_equal(plain, -1);
	assert_string_equal(config, CONFIG_DEFAULT_PATH);
	assert_int_equal(both, -1);
	assert_true(json);
	assert_int_equal(owned, -1);
	assert_true(owned_read);
	assert_int_equal(no_value, CLI_USAGE);
	assert_int_equal(unknown, CLI_USAGE);
	assert_int_equal(lacks, CLI_USAGE);
	assert_int_equal(many, CLI_USAGE);
	assert_int_equal(few, CLI_USAGE);
	assert_int_equal(word, -1);
}

static void replies_of_any_shape(void **state)
{
	(void)state;
	cJSON *o = cJSON_Parse("{\"n\":5,\"t\":\"x\",\"o\":{}}");
	assert_string_equal(cli_text(o, "t"), "x");
	assert_string_equal(cli_text(o, "n"), "");
	assert_string_equal(cli_text(o, "none"), "");
	assert_string_equal(cli_text(NULL, "t"), "");
	assert_true(cli_number(o, "n") == 5);
	assert_true(cli_number(o, "t") == 0);
	assert_true(cli_number(NULL, "n") == 0);
	cJSON_Delete(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_for_people),
		cmocka_unit_test(options_and_wrong_usage),
		cmocka_unit_test(replies_of_any_shape),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
