/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c: known CRC32C values, chaining, that hash_bytes spreads, that a child draws other numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_crc32c_known_values(void **state)
{
	(void)state;
	uint8_t zeros[32] = {0}, ones[32], rising[32];
	memset(ones, 0xff, sizeof ones);
	for (unsigned i = 0; i < 32; i++)
		rising[i] = (uint8_t)i;
	/* RFC 3720 appendix B.4 */
	assert_int_equal(hash_crc32c(0, zeros, 32), 0x8a9136aa);
	assert_int_equal(hash_crc32c(0, ones, 32), 0x62a8ab43);
	assert_int_equal(hash_crc32c(0, rising, 32), 0x46dd794e);
	assert_int_equal(hash_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(hash_crc32c(0, "", 0), 0);
}

/* A plain bit-by-bit CRC, to hold the fast ones against at every length and alignment. */
static uint32_t crc_slow(uint32_t crc, const uint8_t *p, size_t size)
{
	crc = ~crc;
	for (size_t i = 0; i < size; i++) {
		crc ^= p[i];
		for (int b = 0; b < 8; b++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

static void test_crc32c_chains_at_every_split(void **state)
{
	(void)state;
	uint8_t data[71];
	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 37 + 11);
	for (size_t from = 0; from < 9; from++)
		for (size_t split = from; split <= sizeof data; split++) {
			uint32_t crc = hash_crc32c(0, data + from, split - from);
			assert_int_equal(crc, crc_slow(0, data + from, split - from));
			crc = hash_crc32c(crc, data + split, sizeof data - split);
			assert_int_equal(crc, crc_slow(0, data + from, sizeof data - from));
		}
}

static void test_hash_bytes_depends_on_all(void **state)
{
	(void)state;
	uint8_t data[80] = {0};
	for (size_t n = 0; n <= sizeof data; n++) {
		uint64_t h = hash_bytes(1, data, n);
		assert_int_equal(h, hash_bytes(1, data, n));
		assert_true(h != hash_bytes(2, data, n));
		if (n < sizeof data)
			assert_true(h != hash_bytes(1, data, n + 1));
		for (size_t i = 0; i < n; i++) {
			data[i] ^= 0x10;
			assert_true(h != hash_bytes(1, data, n));
			data[i] ^= 0x10;
		}
	}
}

static void test_hash_bytes_spreads(void **state)
{
	(void)state;
	unsigned low[256] = {0}, high[256] = {0};
	for (uint32_t i = 0; i < 256 * 256; i++) {
		uint64_t h = hash_bytes(7, &i, sizeof i);
		low[h & 0xff]++;
		high[h >> 56]++;
	}
	for (unsigned i = 0; i < 256; i++) {
		assert_in_range(low[i], 256 - 96, 256 + 96); /* six standard deviations */
		assert_in_range(high[i], 256 - 96, 256 + 96);
	}
}

static void test_random_differs_over_fork(void **state)
{
	(void)state;
	(void)hash_random(); /* the buffer is full now */
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		uint64_t v = hash_random();
		_exit(write(pipes[1], &v, sizeof v) == sizeof v ? 0 : 1);
	}
	uint64_t theirs = 0;
	assert_int_equal(read(pipes[0], &theirs, sizeof theirs), sizeof theirs);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	close(pipes[0]);
	close(pipes[1]);
	for (unsigned i = 0; i < 2000; i++) /* past several refills */
		assert_true(hash_random() != theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc32c_known_values),
		cmocka_unit_test(test_crc32c_chains_at_every_split),
		cmocka_unit_test(test_hash_bytes_depends_on_all),
		cmocka_unit_test(test_hash_bytes_spreads),
		cmocka_unit_test(test_random_differs_over_fork),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
