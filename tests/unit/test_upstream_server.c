/* SPDX-License-Identifier: Apache-2.0 */
/* Which server is asked, and how one falls and rises. */
#include "core/dns/upstream_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct config_upstream config;
static struct group g;
static struct flight f;

static int begin(void **state)
{
	(void)state;
	memset(&g, 0, sizeof(g));
	memset(&f, 0, sizeof(f));
	config = (struct config_upstream){.name = "default",
					  .strategy = STRATEGY_FASTEST,
					  .timeout_ms = 2000};
	g.config = &config;
	g.server_count = 3;
	for (unsigned i = 0; i < 3; i++) {
		g.servers[i].group = &g;
		g.servers[i].index = (uint8_t)i;
	}
	f.group = &g;
	return 0;
}

static void answered(unsigned i, int64_t rtt_us, unsigned times)
{
	while (times--)
		server_answered(&g.servers[i], rtt_us, 0);
}

static unsigned chosen(void)
{
	struct server *s = server_choose(&f);
	return s ? s->index : 99;
}

static void test_fastest(void **state)
{
	(void)state;
	assert_int_equal(chosen(), 0);
	answered(0, 30000, 1);
	assert_int_equal(chosen(), 1); /* nobody knows it yet */
	answered(1, 10000, 1);
	answered(2, 20000, 1);
	assert_int_equal(chosen(), 1);
	f.state[1] = SERVER_WAITING;
	assert_int_equal(chosen(), 2);
	f.state[2] = SERVER_FAILED;
	assert_int_equal(chosen(), 0);
	f.state[0] = SERVER_FAILED;
	assert_int_equal(chosen(), 99);
	/* It learns that things have changed. */
	memset(f.state, 0, sizeof(f.state));
	answered(1, 90000, 40);
	assert_int_equal(chosen(), 2);
}

static void test_ordered(void **state)
{
	(void)state;
	config.strategy = STRATEGY_ORDERED;
	answered(0, 90000, 5);
	answered(1, 10, 5);
	assert_int_equal(chosen(), 0);
}

static void test_fall_and_rise(void **state)
{
	(void)state;
	int64_t t = 100000;

	answered(0, 1000, 3);
	answered(1, 5000, 3);
	answered(2, 6000, 3);
	/* Late again and again, but heard in between: slow, not dead. */
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned k = 0; k < 10; k++)
			server_troubled(&g.servers[0], false, t += 10);
		server_answered(&g.servers[0], 1000, t);
	}
	assert_false(g.servers[0].down);
	/* Silence for half a second and four questions. */
	for (unsigned k = 0; k < 6; k++)
		server_troubled(&g.servers[0], false, t += 110);
	assert_true(g.servers[0].down);
	assert_int_equal(chosen(), 1);
	/* Probed once a second, on the back of a question to another. */
	assert_null(server_to_probe(&f, &g.servers[1], t + 500));
	assert_ptr_equal(server_to_probe(&f, &g.servers[1], t + 1000), &g.servers[0]);
	assert_null(server_to_probe(&f, &g.servers[1], t + 1500));
	server_answered(&g.servers[0], 1000, t + 1500);
	assert_true(g.servers[0].down);
	server_answered(&g.servers[0], 1000, t + 2500);
	assert_false(g.servers[0].down);
	assert_int_equal(chosen(), 0);
	/* What the kernel says counts without waiting. */
	for (unsigned k = 0; k < 4; k++)
		server_troubled(&g.servers[0], true, t);
	assert_true(g.servers[0].down);
	/* All down: still better than nobody. */
	for (unsigned i = 1; i < 3; i++)
		for (unsigned k = 0; k < 4; k++)
			server_troubled(&g.servers[i], true, t);
	assert_int_not_equal(chosen(), 99);
}

static void test_wait(void **state)
{
	(void)state;
	assert_int_equal(server_wait_us(&g.servers[0]), 400000);
	config.timeout_ms = 400;
	assert_int_equal(server_wait_us(&g.servers[0]), 100000);
	config.timeout_ms = 2000;
	answered(0, 100, 50);
	assert_int_equal(server_wait_us(&g.servers[0]), 50000);
	answered(1, 5000000, 50);
	assert_int_equal(server_wait_us(&g.servers[1]), 500000);
}

static void test_full_server_is_passed_over(void **state)
{
	(void)state;
	g.servers[0].out = FLIGHTS_SERVER_MAX;
	assert_int_equal(chosen(), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		T(test_fastest),
		T(test_ordered),
		T(test_fall_and_rise),
		T(test_wait),
		T(test_full_server_is_passed_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
