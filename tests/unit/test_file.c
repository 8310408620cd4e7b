/* SPDX-License-Identifier: Apache-2.0 */
/* base/file.c: a file is replaced whole or not at all. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_file.XXXXXX");
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") == 0 ? system(command) : -1;
}

static void assert_contents(const char *path, const char *expected)
{
	char *text;
	size_t size;
	assert_int_equal(file_read(path, 1000, &text, &size), 0);
	assert_int_equal(size, strlen(expected));
	assert_string_equal(text, expected);
	free(text);
}

static void replaces_whole(void **state)
{
	(void)state;
	assert_int_equal(file_replace("a", "one", 3, 0640), 0);
	assert_contents("a", "one");
	assert_int_equal(file_replace("a", "", 0, 0640), 0);
	assert_contents("a", "");
	assert_int_equal(file_replace("missing/a", "x", 1, 0640), -ENOENT);
}

static void a_reader_keeps_the_old_inode(void **state)
{
	(void)state;
	assert_int_equal(file_replace("b", "old", 3, 0640), 0);
	int fd = open("b", O_RDONLY);
	assert_int_equal(file_replace("b", "new", 3, 0640), 0);
	char text[4] = "";
	assert_int_equal(read(fd, text, 3), 3);
	assert_string_equal(text, "old");
	close(fd);
}

static void abandon_leaves_the_old_file_and_no_temporary(void **state)
{
	(void)state;
	assert_int_equal(file_replace("c", "old", 3, 0640), 0);
	char *temporary;
	int fd = file_begin("c", 0640, &temporary);
	assert_true(fd >= 0);
	assert_int_equal(access(temporary, F_OK), 0);
	assert_int_equal(write(fd, "half", 4), 4);
	file_abandon(fd, temporary);
	assert_int_equal(access(temporary, F_OK), -1);
	free(temporary);
	assert_contents("c", "old");
}

static void a_failed_write_leaves_the_old_file(void **state)
{
	(void)state;
	assert_int_equal(file_replace("d", "old", 3, 0640), 0);
	struct rlimit before, small = {.rlim_cur = 100, .rlim_max = RLIM_INFINITY};
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	signal(SIGXFSZ, SIG_IGN);
	static const char big[4096];
	int result = file_replace("d", big, sizeof(big), 0640);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(result, -EFBIG);
	assert_contents("d", "old");
}

static void a_link_at_the_temporary_name_is_not_followed(void **state)
{
	(void)state;
	char name[64];
	assert_int_equal(file_replace("victim", "keep", 4, 0640), 0);
	snprintf(name, sizeof(name), "e.tmp.%ld", (long)getpid());
	assert_int_equal(symlink("victim", name), 0);
	assert_int_equal(file_replace("e", "new", 3, 0640), 0);
	assert_contents("victim", "keep");
	assert_contents("e", "new");
}

static void reading_is_bounded(void **state)
{
	(void)state;
	char *text;
	size_t size;
	assert_int_equal(file_replace("f", "12345", 5, 0640), 0);
	assert_int_equal(file_read("f", 4, &text, &size), -EFBIG);
	assert_null(text);
	assert_int_equal(file_read("f", 5, &text, &size), 0);
	assert_int_equal(text[5], 0);
	free(text);
	assert_int_equal(file_read("none", 5, &text, &size), -ENOENT);
	assert_int_equal(file_read(".", 5, &text, &size), -EISDIR);
	assert_int_equal(file_read("/dev/zero", 200000, &text, &size), -EFBIG);
}

static void folders(void **state)
{
	(void)state;
	assert_int_equal(file_make_folder("x/y/z", 0750), 0);
	assert_int_equal(file_make_folder("x/y/z/", 0750), 0);
	struct stat st;
	assert_int_equal(stat("x/y/z", &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(file_replace("x/file", "", 0, 0640), 0);
	assert_int_equal(file_make_folder("x/file", 0750), -ENOTDIR);
	assert_int_equal(file_make_folder("x/file/y", 0750), -ENOTDIR);
}

static void relative_names(void **state)
{
	(void)state;
	static const char *const rows[][3] = {
		{"/etc/b/b.yaml", "lists/a", "/etc/b/lists/a"},
		{"/etc/b/b.yaml", "/abs", "/abs"},
		{"b.yaml", "a", "a"},
		{"/b.yaml", "a", "/a"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *got = file_relative_to(rows[i][0], rows[i][1]);
		assert_string_equal(got, rows[i][2]);
		free(got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaces_whole),
		cmocka_unit_test(a_reader_keeps_the_old_inode),
		cmocka_unit_test(abandon_leaves_the_old_file_and_no_temporary),
		cmocka_unit_test(a_failed_write_leaves_the_old_file),
		cmocka_unit_test(a_link_at_the_temporary_name_is_not_followed),
		cmocka_unit_test(reading_is_bounded),
		cmocka_unit_test(folders),
		cmocka_unit_test(relative_names),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
