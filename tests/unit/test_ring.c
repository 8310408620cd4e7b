/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core/ring.c: one writer and one reader in two processes, losses by verdict, the quarter
 * that is kept for important records, and a ring that somebody damaged.
 */
#include "core/ring.h"
#include "core/shm.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TEST_RING 16384

static void *ring_memory(size_t size)
{
	void *m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(m != MAP_FAILED);
	ring_init(m, size);
	return m;
}

/* A record whose every octet follows from its number. */
static size_t record_size(uint32_t n)
{
	return 4 + n * 7919 % 300;
}

static void record_fill(uint8_t *out, uint32_t n)
{
	memcpy(out, &n, 4);
	for (size_t i = 4; i < record_size(n); i++)
		out[i] = (uint8_t)(n * 31 + i);
}

static bool record_good(const uint8_t *data, size_t size)
{
	uint8_t want[512];
	uint32_t n;
	if (size < 4)
		return false;
	memcpy(&n, data, 4);
	if (size != record_size(n))
		return false;
	record_fill(want, n);
	return memcmp(want, data, size) == 0;
}

static bool put(struct ring_writer *w, uint32_t n, bool important, unsigned verdict)
{
	void *p = ring_reserve(w, record_size(n), important, verdict);
	if (!p)
		return false;
	record_fill(p, n);
	ring_commit(w, record_size(n));
	return true;
}

static void records_come_out_as_they_went_in(void **state)
{
	(void)state;
	void *m = ring_memory(TEST_RING);
	struct ring_writer w;
	struct ring_reader r;
	uint8_t out[RING_RECORD_MAX];

	ring_writer_open(m, &w);
	ring_reader_open(m, &r);
	assert_int_equal(ring_read(&r, out, sizeof(out)), 0);
	/* Many times around, so that every way of meeting the end is met. */
	for (uint32_t n = 1; n < 20000; n++) {
		assert_true(put(&w, n, false, 0));
		int size = ring_read(&r, out, sizeof(out));
		assert_int_equal(size, record_size(n));
		assert_true(record_good(out, (size_t)size));
	}
	assert_int_equal(ring_read(&r, out, sizeof(out)), 0);
	munmap(m, TEST_RING);
}

static void last_quarter_is_for_important_records(void **state)
{
	(void)state;
	void *m = ring_memory(TEST_RING);
	struct ring_writer w;
	ring_writer_open(m, &w);
	unsigned plain = 0, important = 0;

	while (put(&w, 7, false, 3))
		plain++;
	assert_int_equal(ring_lost(m)[3], 1);
	while (put(&w, 7, true, 5))
		important++;
	assert_int_equal(ring_lost(m)[5], 1);
	assert_true(important * 2 > plain / 2 && important > 0);
	assert_true(plain > important * 2);
	assert_null(ring_reserve(&w, RING_RECORD_MAX + 1, true, 1));
	assert_int_equal(ring_lost(m)[1], 1);
	munmap(m, TEST_RING);
}

static void a_reader_in_another_process_sees_all_or_counts(void **state)
{
	(void)state;
	void *m = ring_memory(TEST_RING);
	const uint32_t total = 300000;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct ring_writer w;
		ring_writer_open(m, &w);
		for (uint32_t n = 1; n <= total; n++)
			(void)put(&w, n, n % 4 == 0, n % 4 == 0);
		_exit(0);
	}
	struct ring_reader r;
	uint8_t out[RING_RECORD_MAX];
	uint32_t seen = 0, last = 0;
	int status = 0;
	bool gone = false;
	ring_reader_open(m, &r);
	for (;;) {
		int size = ring_read(&r, out, sizeof(out));
		assert_true(size >= 0);
		if (size == 0) {
			if (gone)
				break;
			gone = waitpid(child, &status, WNOHANG) == child;
			continue;
		}
		assert_true(record_good(out, (size_t)size));
		uint32_t n;
		memcpy(&n, out, 4);
		assert_true(n > last);
		last = n;
		seen++;
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(seen + ring_lost(m)[0] + ring_lost(m)[1], total);
	assert_true(seen > 0);
	munmap(m, TEST_RING);
}

static void a_killed_writer_leaves_a_ring_its_successor_can_use(void **state)
{
	(void)state;
	void *m = ring_memory(TEST_RING);
	struct ring_reader r;
	uint8_t out[RING_RECORD_MAX];
	unsigned good = 0;
	ring_reader_open(m, &r);

	for (int round = 0; round < 20; round++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			struct ring_writer w;
			ring_init(m, TEST_RING);
			ring_writer_open(m, &w);
			for (uint32_t n = 1;; n++)
				(void)put(&w, n, true, 0);
		}
		for (unsigned until = good + 500; good < until;) {
			int size = ring_read(&r, out, sizeof(out));
			assert_true(size >= 0);
			if (size > 0) {
				assert_true(record_good(out, (size_t)size));
				good++;
			}
		}
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	assert_int_equal(good, 20 * 500);
	munmap(m, TEST_RING);
}

static void damage_is_noticed_and_reading_goes_on(void **state)
{
	(void)state;
	void *m = ring_memory(TEST_RING);
	struct ring_writer w;
	struct ring_reader r;
	uint8_t out[RING_RECORD_MAX];
	unsigned noticed = 0;

	srand(1);
	for (int round = 0; round < 2000; round++) {
		ring_init(m, TEST_RING);
		ring_writer_open(m, &w);
		ring_reader_open(m, &r);
		ring_reader_skip(&r);
		ring_writer_open(m, &w);
		for (uint32_t n = 1; n < 10; n++)
			(void)put(&w, n + (uint32_t)round, true, 0);
		/* Anywhere: in the counters as well as in the records. */
		size_t at =
			(size_t)rand() % 4 == 0 ? (size_t)rand() % 200 : (size_t)rand() % TEST_RING;
		((uint8_t *)m)[at] ^= (uint8_t)(1 + rand() % 255);
		int size;
		unsigned turns = 0;
		while ((size = ring_read(&r, out, sizeof(out))) != 0) {
			assert_true(++turns < 100);
			if (size == -EBADMSG)
				noticed++;
			else
				assert_true(record_good(out, (size_t)size));
		}
	}
	assert_true(noticed > 50);
	munmap(m, TEST_RING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_out_as_they_went_in),
		cmocka_unit_test(last_quarter_is_for_important_records),
		cmocka_unit_test(a_reader_in_another_process_sees_all_or_counts),
		cmocka_unit_test(a_killed_writer_leaves_a_ring_its_successor_can_use),
		cmocka_unit_test(damage_is_noticed_and_reading_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
