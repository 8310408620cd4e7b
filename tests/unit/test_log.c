/* SPDX-License-Identifier: Apache-2.0 */
/* base/log.c: one message, one line, nothing foreign in it. */
#include "base/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* What the next log call writes, read from a packet pipe: each write(2) is one packet. */
static int pipe_fds[2];
static int saved_stderr;

static int setup(void **state)
{
	(void)state;
	saved_stderr = dup(2);
	if (pipe2(pipe_fds, O_DIRECT | O_NONBLOCK) < 0)
		return -1;
	return dup2(pipe_fds[1], 2) < 0;
}

static int teardown(void **state)
{
	(void)state;
	return dup2(saved_stderr, 2) < 0;
}

static const char *next_line(void)
{
	static char line[8192];
	ssize_t n = read(pipe_fds[0], line, sizeof(line) - 1);
	if (n < 0)
		return NULL;
	line[n] = '\0';
	return line;
}

static void one_line_one_write(void **state)
{
	(void)state;
	log_set_process("worker 1");
	log_info("hello %d", 7);
	assert_string_equal(next_line(), "info worker 1: hello 7\n");
	assert_null(next_line());
}

static void control_octets_are_escaped(void **state)
{
	(void)state;
	log_warn("%s", "a\nerror x: b\x1b[31m\x7f\t\xc2\x9b \xc3\xbc");
	assert_string_equal(
		next_line(),
		"warn worker 1: a\\010error x: b\\027[31m\\127\\009\\194\\155 \xc3\xbc\n");
	assert_null(next_line());
}

static void long_messages_are_cut(void **state)
{
	(void)state;
	char text[6000];
	memset(text, '\n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_error("%s", text);
	/* Every octet of 2 KiB escaped: more than one page, so read what is there. */
	size_t length = 0;
	const char *line;
	char last[8192];
	while ((line = next_line())) {
		length += strlen(line);
		strcpy(last, line);
	}
	assert_in_range(length, 8000, 8400);
	assert_string_equal(last + strlen(last) - 4, "...\n");
}

static void level_holds_back(void **state)
{
	(void)state;
	log_debug("no");
	assert_null(next_line());
	log_set_level(LOG_DEBUG_);
	log_debug("yes");
	assert_string_equal(next_line(), "debug worker 1: yes\n");
	log_set_level(LOG_INFO_);
}

static void limit_counts_what_it_held(void **state)
{
	(void)state;
	struct log_limit limit = {0};
	uint64_t held = 99;
	assert_true(log_limit(&limit, 5000, &held));
	assert_int_equal(held, 0);
	assert_false(log_limit(&limit, 5001, &held));
	assert_false(log_limit(&limit, 5999, &held));
	assert_true(log_limit(&limit, 6000, &held));
	assert_int_equal(held, 2);
	assert_true(log_limit(&limit, 7000, &held));
	assert_int_equal(held, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_line_one_write, setup, teardown),
		cmocka_unit_test_setup_teardown(control_octets_are_escaped, setup, teardown),
		cmocka_unit_test_setup_teardown(long_messages_are_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(level_holds_back, setup, teardown),
		cmocka_unit_test_setup_teardown(limit_counts_what_it_held, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
