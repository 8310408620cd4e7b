/* SPDX-License-Identifier: Apache-2.0 */
/* The core's counters: rows and numbers agree, and each has a help text. */
#include "core/metrics.h"

#include "core/shm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_numbers(void **state)
{
	(void)state;
	struct shm *s = shm_private(1, 0);

	metrics_register(s);
	metrics_register(s); /* a second generation finds what is there */
	assert_int_equal(shm_metric_count(s), METRIC_COUNT);
	assert_string_equal(shm_metric_name(s, METRIC_QUERIES_UDP),
			    "queries_total{transport=\"udp\"}");
	assert_string_equal(shm_metric_name(s, METRIC_SET_DAMAGED), "set_damaged_total");
	shm_count(shm_cells(s, 0), METRIC_JOINED, 3);
	assert_int_equal(shm_metric_sum(s, METRIC_JOINED), 3);
	for (unsigned i = 0; i < METRIC_COUNT; i++) {
		const char *help = metrics_help(shm_metric_name(s, i));
		assert_non_null(help);
		assert_true(strlen(help) > 5);
	}
	assert_null(metrics_help("baleen_ratelimit_limited"));
	assert_null(metrics_help("queries"));
	shm_unmap(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
