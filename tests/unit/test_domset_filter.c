/* SPDX-License-Identifier: Apache-2.0 */
/* The fuse filter: never a false "not listed", few false alarms, equal hashes, foreign values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "feeds/set/domset_filter.h"

#include <errno.h>
#include <stdlib.h>

static void test_no_false_negatives(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 2, 3, 7, 64, 1000, 30000, 300000, 1 << 20};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		size_t count = sizes[i], octets;
		uint64_t *hashes = malloc((count + 1) * sizeof *hashes);
		void *value;
		struct domset_filter_shard shard;
		for (uint64_t k = 0; k < count; k++)
			hashes[k] = hash_bytes(i, &k, sizeof k);
		assert_int_equal(domset_filter_build(hashes, count, 5, &value, &octets), 0);
		assert_int_equal(domset_filter_open(value, octets, &shard), 0);
		for (size_t k = 0; k < count; k++)
			assert_true(domset_filter_has(&shard, 1, hashes[k]));
		unsigned alarms = 0;
		for (uint64_t k = 0; k < 100000; k++)
			alarms += domset_filter_has(&shard, 1, hash_bytes(~i, &k, sizeof k));
		assert_in_range(alarms, 0, 600); /* 1 in 256 is 390 */
		if (count >= 300000)
			assert_in_range(octets * 1000 / count, 1000, 1110);
		free(value);
		free(hashes);
	}
}

static void test_equal_hashes(void **state)
{
	(void)state;
	uint64_t hashes[300];
	void *value;
	size_t octets;
	struct domset_filter_shard shard;
	for (uint64_t k = 0; k < 300; k++)
		hashes[k] = k % 3 ? 77 : hash_bytes(0, &k, sizeof k);
	assert_int_equal(domset_filter_build(hashes, 300, 1, &value, &octets), 0);
	assert_int_equal(domset_filter_open(value, octets, &shard), 0);
	for (uint64_t k = 0; k < 300; k += 3)
		assert_true(domset_filter_has(&shard, 1, hash_bytes(0, &k, sizeof k)));
	assert_true(domset_filter_has(&shard, 1, 77));
	free(value);
}

static void test_foreign_values_are_refused(void **state)
{
	(void)state;
	uint64_t hashes[50];
	void *value;
	size_t octets;
	struct domset_filter_shard shard;
	for (uint64_t k = 0; k < 50; k++)
		hashes[k] = hash_bytes(0, &k, sizeof k);
	assert_int_equal(domset_filter_build(hashes, 50, 1, &value, &octets), 0);
	struct domset_shard *s = value, saved = *s;
	assert_int_equal(domset_filter_open(value, 3, &shard), -EBADMSG);
	assert_int_equal(domset_filter_open(value, octets - 1, &shard), -EBADMSG);
	s->segment_octets = 0;
	assert_int_equal(domset_filter_open(value, octets, &shard), -EBADMSG);
	*s = saved;
	s->segment_octets *= 3; /* no power of two */
	assert_int_equal(domset_filter_open(value, octets, &shard), -EBADMSG);
	*s = saved;
	s->segments_octets += s->segment_octets; /* the last probe would fall outside */
	assert_int_equal(domset_filter_open(value, octets, &shard), -EBADMSG);
	*s = saved;
	s->segments_octets = 0;
	assert_int_equal(domset_filter_open(value, octets, &shard), -EBADMSG);
	free(value);
}

static void test_label_borders_are_hashed(void **state)
{
	(void)state;
	uint8_t text[63 + 1 + DOMSET_LABEL_PAD] =
		"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789ab";
	/* ab.c is not a.bc, for every cut; and every octet and the length count. */
	for (unsigned all = 2; all <= 63; all++)
		for (unsigned cut = 1; cut < all; cut++) {
			uint64_t h = domset_hash_label(1, text + cut, all - cut);
			h = domset_hash_label(h, text, cut);
			assert_true(h != domset_hash_label(1, text, all));
			if (cut > 1) {
				uint64_t g = domset_hash_label(1, text + cut - 1, all - cut + 1);
				assert_true(h != domset_hash_label(g, text, cut - 1));
			}
		}
	for (unsigned n = 1; n <= 63; n++) {
		uint64_t h = domset_hash_label(1, text, n);
		for (unsigned i = 0; i < n; i++) {
			text[i] ^= 4;
			assert_true(h != domset_hash_label(1, text, n));
			text[i] ^= 4;
		}
		text[n] ^= 4; /* what stands behind does not */
		assert_true(h == domset_hash_label(1, text, n));
		text[n] ^= 4;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_false_negatives),
		cmocka_unit_test(test_equal_hashes),
		cmocka_unit_test(test_foreign_values_are_refused),
		cmocka_unit_test(test_label_borders_are_hashed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
