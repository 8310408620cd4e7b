/* SPDX-License-Identifier: Apache-2.0 */
/* The block_for table: subtree, groups, ends, a full set, and writers that fight over it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/name.h"
#include "core/chain/blocks.h"
#include "core/shm_block.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct name parse(const char *text)
{
	struct name n;

	assert_int_equal(name_parse(text, strlen(text), &n), 0);
	return n;
}

static int add(struct shm *s, const char *text, uint32_t group, uint32_t ttl_s, int64_t now)
{
	struct name n = parse(text);
	return blocks_add(s, n.wire, n.length, group, ttl_s, "because", "detector", now);
}

static bool blocked(struct shm *s, const char *text, uint32_t group, int64_t now)
{
	struct name n = parse(text);
	struct blocks_hit hit;
	return blocks_check(s, n.wire, n.length, n.labels, group, now, &hit);
}

static void test_subtree_groups_and_end(void **state)
{
	(void)state;
	struct shm *s = shm_private(1, 0);

	assert_false(blocked(s, "bad.test", 0, 1000));
	assert_int_equal(add(s, "bad.test", UINT32_MAX, 10, 1000), 0);
	assert_int_equal(add(s, "worse.test", 3, 10, 1000), 0);
	assert_true(blocked(s, "bad.test", 0, 1000));
	assert_true(blocked(s, "a.b.bad.test", 7, 1000));
	assert_false(blocked(s, "notbad.test", 0, 1000));
	assert_false(blocked(s, "test", 0, 1000));
	assert_true(blocked(s, "x.worse.test", 3, 1000));
	assert_false(blocked(s, "x.worse.test", 4, 1000));
	assert_true(blocked(s, "bad.test", 0, 10999));
	assert_false(blocked(s, "bad.test", 0, 11000));
	/* Said again for less time: the longer one stands. */
	assert_int_equal(add(s, "bad.test", UINT32_MAX, 100, 1000), 0);
	assert_int_equal(add(s, "bad.test", UINT32_MAX, 1, 2000), 0);
	assert_true(blocked(s, "bad.test", 0, 100999));
	shm_unmap(s);
}

static void test_what_is_refused(void **state)
{
	(void)state;
	struct shm *s = shm_private(1, 0);

	assert_int_equal(add(s, ".", UINT32_MAX, 10, 1000), -EINVAL);
	assert_int_equal(add(s, "a.test", UINT32_MAX, 0, 1000), -EINVAL);
	assert_int_equal(blocks_add(s, (const uint8_t *)"\77abc", 5, 0, 1, "", "", 0), -EINVAL);
	shm_unmap(s);
}

static void test_full_table_says_so_and_reuses_what_is_over(void **state)
{
	(void)state;
	struct shm *s = shm_private(1, 0);
	unsigned full = 0, there = 0;
	char text[32];

	for (unsigned i = 0; i < SHM_BLOCKS_MAX * 2; i++) {
		snprintf(text, sizeof(text), "n%u.test", i);
		int r = add(s, text, UINT32_MAX, 10, 1000);
		assert_true(r == 0 || r == -ENOSPC);
		full += r == -ENOSPC;
		if (r == 0) {
			assert_true(blocked(s, text, 0, 1000));
			there++;
		}
	}
	assert_true(full > 0);
	assert_true(there > SHM_BLOCKS_MAX * 3 / 4);
	for (unsigned i = 0; i < SHM_BLOCKS_MAX / 4; i++) {
		snprintf(text, sizeof(text), "later%u.test", i);
		assert_int_equal(add(s, text, UINT32_MAX, 10, 12000), 0);
		assert_true(blocked(s, text, 0, 12000));
	}
	shm_unmap(s);
}

/* Four writers on the same few sets, two of them killed in the middle: what is read is whole. */
static void test_torn_entries_are_not_believed(void **state)
{
	(void)state;
	struct shm *s = shm_private(1, 0);
	pid_t pids[4];

	for (unsigned w = 0; w < 4; w++) {
		pids[w] = fork();
		if (pids[w])
			continue;
		for (unsigned i = 0;; i++) {
			char text[64];
			snprintf(text, sizeof(text), "w%u-%u.test", w, i % 600);
			struct name n = parse(text);
			/* The text goes with the name: a mixture would show. */
			blocks_add(s, n.wire, n.length, UINT32_MAX, 1, text, text, 1000 + i);
		}
	}
	for (unsigned round = 0; round < 200000; round++) {
		struct shm_block copy;
		struct name n;
		struct shm_block *b = &shm_blocks(s)[round % SHM_BLOCKS_MAX];
		if (round == 50000)
			kill(pids[0], SIGKILL);
		if (round == 100000)
			kill(pids[1], SIGKILL);
		if (!shm_block_read(b, &copy))
			continue;
		assert_int_equal(name_parse(copy.why, strlen(copy.why), &n), 0);
		assert_true(name_equal(n.wire, n.length, copy.name, copy.length));
		assert_string_equal(copy.why, copy.plugin);
	}
	kill(pids[2], SIGKILL);
	kill(pids[3], SIGKILL);
	for (unsigned w = 0; w < 4; w++)
		waitpid(pids[w], NULL, 0);
	/* What the dead left costs at most a place. */
	assert_int_equal(add(s, "after.test", UINT32_MAX, 10, 10000000), 0);
	assert_true(blocked(s, "after.test", 0, 10000000));
	shm_unmap(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_subtree_groups_and_end),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_full_table_says_so_and_reuses_what_is_over),
		cmocka_unit_test(test_torn_entries_are_not_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
