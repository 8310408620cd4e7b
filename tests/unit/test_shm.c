/* SPDX-License-Identifier: Apache-2.0 */
/* core/shm.c: layout, mapping by strangers, metrics, regions, and a lock whose owner died.
 */
#include "core/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void a_segment_maps_and_parts_do_not_overlap(void **state)
{
	(void)state;
	int fd = -1;
	struct shm *s = NULL, *t = NULL;
	assert_int_equal(shm_create(3, 1 << 20, &fd), 0);
	assert_int_equal(shm_map(fd, &s), 0);
	assert_int_equal(shm_map(fd, &t), 0);
	assert_int_equal(shm_workers(s), 3);
	assert_int_equal(shm_slots(s), 3 * SHM_GENERATIONS);
	assert_int_equal(shm_slot(s, 4, 2), 4 % SHM_GENERATIONS * 3 + 2);

	size_t cache_size = 0;
	uint8_t *cache = shm_cache(s, &cache_size);
	assert_int_equal(cache_size, 1 << 20);
	memset(cache, 0xaa, cache_size);
	for (unsigned i = 0; i < shm_slots(s); i++)
		memset(shm_ring(s, i), 0xbb, SHM_RING_BYTES);
	for (unsigned i = 0; i < shm_slots(s); i++)
		shm_count(shm_cells(s, i), SHM_METRICS_MAX - 1, i + 1);
	memset(shm_blocks(s), 0xcc, SHM_BLOCKS_MAX * sizeof(struct shm_block));
	memset(shm_deaths(s), 0xdd, SHM_QOD_MAX * sizeof(struct shm_block));
	for (unsigned i = 0; i < shm_slots(s); i++)
		shm_breadcrumb(s, i)->pid = 1000 + i;

	/* Seen through the other mapping, and nothing has written over anything else. */
	assert_int_equal(((uint8_t *)shm_cache(t, &cache_size))[0], 0xaa);
	assert_int_equal(((uint8_t *)shm_ring(t, 8))[SHM_RING_BYTES - 1], 0xbb);
	assert_int_equal(shm_metric_sum(t, SHM_METRICS_MAX - 1), 45);
	assert_int_equal(shm_breadcrumb(t, 8)->pid, 1008);
	assert_int_equal(((uint8_t *)shm_deaths(t))[0], 0xdd);
	assert_int_equal(((uint8_t *)(shm_blocks(t) + SHM_BLOCKS_MAX))[-1], 0xcc);
	shm_unmap(s);
	shm_unmap(t);
	close(fd);
}

static void another_layout_is_refused(void **state)
{
	(void)state;
	int fd = -1;
	struct shm *s = NULL;
	assert_int_equal(shm_create(1, 0, &fd), 0);
	/* The hash stands behind magic, total and cache_bytes. */
	uint32_t hash;
	assert_int_equal(pread(fd, &hash, 4, 24), 4);
	hash ^= 1;
	assert_int_equal(pwrite(fd, &hash, 4, 24), 4);
	assert_int_equal(shm_map(fd, &s), -EPROTO);
	hash ^= 1;
	assert_int_equal(pwrite(fd, &hash, 4, 24), 4);
	assert_int_equal(shm_map(fd, &s), 0);
	shm_unmap(s);
	/* Nobody can pull the floor away. */
	assert_int_equal(ftruncate(fd, 0), -1);
	close(fd);

	fd = memfd_create("other", MFD_CLOEXEC);
	assert_int_equal(shm_map(fd, &s), -EPROTO);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(shm_map(fd, &s), -EPROTO);
	close(fd);
	assert_int_equal(shm_create(0, 0, &fd), -EINVAL);
	assert_int_equal(shm_create(100000, 0, &fd), -EINVAL);
}

static void metrics_are_found_again(void **state)
{
	(void)state;
	struct shm *s = shm_private(2, 0);
	assert_non_null(s);
	unsigned a = shm_metric(s, "queries_total{transport=\"udp\"}");
	unsigned b = shm_metric(s, "queries_total{transport=\"tcp\"}");
	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	assert_int_equal(shm_metric(s, "queries_total{transport=\"udp\"}"), a);
	assert_int_equal(shm_metric_count(s), 2);
	assert_string_equal(shm_metric_name(s, b), "queries_total{transport=\"tcp\"}");
	shm_count(shm_cells(s, 0), a, 2);
	shm_count(shm_cells(s, 5), a, 3);
	assert_int_equal(shm_metric_sum(s, a), 5);
	assert_int_equal(shm_metric_sum(s, b), 0);

	char name[SHM_METRIC_NAME + 8];
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(shm_metric(s, name), SHM_METRICS_MAX);
	for (unsigned i = 2; i < SHM_METRICS_MAX; i++) {
		snprintf(name, sizeof(name), "m%u", i);
		assert_int_equal(shm_metric(s, name), i);
	}
	assert_int_equal(shm_metric(s, "one_too_many"), SHM_METRICS_MAX);
	shm_unmap(s);
}

static void regions_are_shared_by_name_and_size(void **state)
{
	(void)state;
	struct shm *s = shm_private(2, 0);
	assert_non_null(s);
	uint8_t *a = shm_region(s, "ratelimit", 1000);
	uint8_t *b = shm_region(s, "tunnel", 1000);
	assert_non_null(a);
	assert_non_null(b);
	assert_true(b >= a + 1000);
	memset(a, 1, 1000);
	assert_int_equal(b[0], 0);
	assert_ptr_equal(shm_region(s, "ratelimit", 1000), a);
	/* Another size is another region, zeroed. */
	uint8_t *c = shm_region(s, "ratelimit", 2000);
	assert_non_null(c);
	assert_true(c != a);
	assert_int_equal(c[0], 0);
	assert_null(shm_region(s, "huge", SHM_REGION_BYTES + 1));
	assert_null(shm_region(s, "no room", SHM_REGION_BYTES - 1000));
	assert_null(shm_region(s, "", 0));
	shm_unmap(s);
}

static void a_region_is_one_for_all_processes(void **state)
{
	(void)state;
	struct shm *s = shm_private(2, 0);
	assert_non_null(s);
	enum { CHILDREN = 8 };
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			_Atomic uint32_t *count = shm_region(s, "count", sizeof(uint32_t));
			if (count)
				atomic_fetch_add(count, 1);
			_exit(0);
		}
	}
	for (int i = 0; i < CHILDREN; i++)
		wait(NULL);
	_Atomic uint32_t *count = shm_region(s, "count", sizeof(uint32_t));
	assert_non_null(count);
	assert_int_equal(*count, CHILDREN);
	shm_unmap(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_segment_maps_and_parts_do_not_overlap),
		cmocka_unit_test(another_layout_is_refused),
		cmocka_unit_test(metrics_are_found_again),
		cmocka_unit_test(regions_are_shared_by_name_and_size),
		cmocka_unit_test(a_region_is_one_for_all_processes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
