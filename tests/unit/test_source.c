/* SPDX-License-Identifier: Apache-2.0 */
/* base/source.c: a snapshot answers exactly what the disk answered when it was sealed. */
#include "base/source.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_source.XXXXXX");
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") == 0 ? system(command) : -1;
}

static void put(const char *path, const char *text, size_t size)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static void assert_reads(struct source *s, const char *path, const char *text, size_t size)
{
	struct source_file file;
	assert_int_equal(source_read(s, path, &file), 0);
	assert_string_equal(file.path, path);
	assert_int_equal(file.size, size);
	assert_memory_equal(file.data, text, size);
	assert_int_equal(file.data[size], 0);
}

static void assert_lists(struct source *s, const char *dir, const char *suffix,
			 const char *expected)
{
	char **names, joined[256] = "";
	size_t count;
	assert_int_equal(source_list(s, dir, suffix, &names, &count), 0);
	for (size_t i = 0; i < count; i++)
		snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s ", names[i]);
	source_list_free(names, count);
	assert_string_equal(joined, expected);
}

/* Everything that is asked of the disk and, later, of the snapshot. */
static void assert_answers(struct source *s)
{
	struct source_file file;
	assert_reads(s, "a.yaml", "alpha", 5);
	assert_reads(s, "empty", "", 0);
	assert_reads(s, "binary", "\0\1\0\2", 4);
	assert_int_equal(source_read(s, "missing", &file), -ENOENT);
	assert_int_equal(source_read(s, "d", &file), -EISDIR);
	assert_int_equal(source_read(s, "pipe", &file), -EINVAL);
	assert_lists(s, "d", ".yaml", "10.yaml 9.yaml B.yaml a.yaml dangling.yaml ");
	assert_lists(s, "d", ".none", "");
	char **names;
	size_t count;
	assert_int_equal(source_list(s, "nowhere", ".yaml", &names, &count), -ENOENT);
}

static void test_snapshot_equals_disk(void **state)
{
	(void)state;
	put("a.yaml", "alpha", 5);
	put("empty", "", 0);
	put("binary", "\0\1\0\2", 4);
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(mkdir("d", 0700), 0);
	put("d/a.yaml", "x", 1);
	put("d/B.yaml", "x", 1);
	put("d/10.yaml", "x", 1);
	put("d/9.yaml", "x", 1);
	put("d/.hidden.yaml", "x", 1);
	put("d/other.txt", "x", 1);
	assert_int_equal(mkdir("d/sub.yaml", 0700), 0);
	assert_int_equal(symlink("gone", "d/dangling.yaml"), 0);

	struct source *disk = source_disk();
	assert_non_null(disk);
	assert_answers(disk);

	int memfd;
	assert_int_equal(source_seal(disk, &memfd), 0);

	/* The world changes; neither source does. */
	put("a.yaml", "changed", 7);
	put("missing", "now here", 8);
	put("d/new.yaml", "x", 1);
	assert_answers(disk);
	struct source *sealed;
	assert_int_equal(source_snapshot(memfd, &sealed), 0);
	close(memfd);
	assert_answers(sealed);

	/* What nobody asked for is not there, even if the disk has it. */
	struct source_file file;
	assert_int_equal(source_read(sealed, "d/a.yaml", &file), -ENOENT);
	source_free(disk);
	assert_answers(sealed);
	source_free(sealed);
}

static void test_not_a_snapshot(void **state)
{
	(void)state;
	struct source *s;
	int fd = open("a.yaml", O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(source_snapshot(fd, &s), -EINVAL);
	close(fd);

	/* Right octets, but somebody could still change them. */
	struct source *disk = source_disk();
	struct source_file file;
	assert_int_equal(source_read(disk, "a.yaml", &file), 0);
	int memfd;
	assert_int_equal(source_seal(disk, &memfd), 0);
	struct stat st;
	assert_int_equal(fstat(memfd, &st), 0);
	size_t size = (size_t)st.st_size;
	uint8_t *octets = malloc(size);
	assert_int_equal(pread(memfd, octets, size, 0), size);
	assert_int_equal(pwrite(memfd, octets, 1, 0), -1);
	close(memfd);
	fd = memfd_create("test", MFD_ALLOW_SEALING);
	assert_int_equal(write(fd, octets, size), size);
	assert_int_equal(source_snapshot(fd, &s), -EINVAL);
	close(fd);

	/* Sealed, but any octet of head or length flipped, or cut off: refused, or read in bounds.
	 */
	for (size_t i = 0; i < size; i++) {
		for (int cut = 0; cut < 2; cut++) {
			fd = memfd_create("test", MFD_ALLOW_SEALING);
			octets[i] ^= 0xff;
			size_t n = cut ? i : size;
			assert_int_equal(write(fd, octets, n), n);
			octets[i] ^= 0xff;
			assert_int_equal(fcntl(fd, F_ADD_SEALS,
					       F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE),
					 0);
			int result = source_snapshot(fd, &s);
			if (cut)
				assert_int_equal(result, -EINVAL);
			if (result == 0) {
				(void)source_read(s, "a.yaml", &file);
				source_free(s);
			}
			close(fd);
		}
	}
	free(octets);
	source_free(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_snapshot_equals_disk),
		cmocka_unit_test(test_not_a_snapshot),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
