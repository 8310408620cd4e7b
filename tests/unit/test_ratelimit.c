/* SPDX-License-Identifier: Apache-2.0 */
/* The ratelimit plugin, through the chain, with a clock of the test's own. */
#include "chain_rig.h"

#include <errno.h>

static unsigned passed(struct rig *r, const char *client, unsigned queries, int64_t at_ms,
		       uint8_t transport, unsigned verdicts[EVENT_VERDICTS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < queries; i++) {
		struct query *q = rig_query(r, "a.test", client);
		q->view.monotonic_ms = at_ms;
		q->view.transport = transport;
		if (rig_run(r, PHASE_CLIENT, NULL) == CHAIN_GO_ON)
			n++;
		else if (verdicts)
			verdicts[q->verdict]++;
	}
	return n;
}

static struct rig *limited(const char *yaml)
{
	struct rig *r = rig_new(true);

	rig_add(r, "ratelimit", "ratelimit", yaml);
	rig_start(r);
	return r;
}

static void test_burst_then_rate(void **state)
{
	(void)state;
	struct rig *r = limited("{queries-per-second: 10, burst: 20}");

	assert_int_equal(passed(r, "192.0.2.1", 100, 5000, BALEEN_UDP, NULL), 20);
	/* It goes on asking, and still gets its rate: no "quiet period" (A7-04). */
	assert_int_equal(passed(r, "192.0.2.1", 100, 5500, BALEEN_UDP, NULL), 5);
	assert_int_equal(passed(r, "192.0.2.1", 100, 6500, BALEEN_UDP, NULL), 10);
	/* A bucket does not fill beyond its burst. */
	assert_int_equal(passed(r, "192.0.2.1", 100, 600000, BALEEN_UDP, NULL), 20);
	/* The neighbour has its own. */
	assert_int_equal(passed(r, "192.0.2.2", 100, 600000, BALEEN_UDP, NULL), 20);
	rig_free(r);
}

static void test_default_burst_is_twice_the_rate(void **state)
{
	(void)state;
	struct rig *r = limited("{queries-per-second: 7}");

	assert_int_equal(passed(r, "192.0.2.1", 100, 5000, BALEEN_UDP, NULL), 14);
	rig_free(r);
}

static void test_slip_and_refuse(void **state)
{
	(void)state;
	unsigned got[EVENT_VERDICTS] = {0};
	struct rig *r = limited("{queries-per-second: 10, burst: 10, slip: 4}");

	assert_int_equal(passed(r, "192.0.2.1", 50, 5000, BALEEN_UDP, got), 10);
	assert_int_equal(got[EVENT_TRUNCATE], 10);
	assert_int_equal(got[EVENT_DROP], 30);
	assert_int_equal(rig_metric(r, "ratelimit_slipped_total{instance=\"ratelimit\"}"), 10);
	assert_int_equal(rig_metric(r, "ratelimit_dropped_total{instance=\"ratelimit\"}"), 30);
	/* Who returns over TCP has a bucket of its own, and is told when that is empty. */
	memset(got, 0, sizeof(got));
	assert_int_equal(passed(r, "192.0.2.1", 15, 5000, BALEEN_TCP, got), 10);
	assert_int_equal(got[EVENT_REFUSE], 5);
	rig_free(r);

	memset(got, 0, sizeof(got));
	r = limited("{queries-per-second: 10, burst: 10, action: refuse}");
	assert_int_equal(passed(r, "192.0.2.1", 20, 5000, BALEEN_UDP, got), 10);
	assert_int_equal(got[EVENT_REFUSE], 10);
	rig_free(r);

	memset(got, 0, sizeof(got));
	r = limited("{queries-per-second: 10, burst: 10, slip: 0}");
	passed(r, "192.0.2.1", 20, 5000, BALEEN_UDP, got);
	assert_int_equal(got[EVENT_DROP], 10);
	rig_free(r);
}

/* A7-02: by either spelling of the address, and its neighbours are limited. */
static void test_exempt(void **state)
{
	(void)state;
	struct rig *r = limited("{queries-per-second: 10, burst: 10, ipv4-prefix: 24,\n"
				" exempt: [192.0.2.10, \"2001:db8:5::/48\"]}");

	assert_int_equal(passed(r, "192.0.2.10", 100, 5000, BALEEN_UDP, NULL), 100);
	assert_int_equal(passed(r, "::ffff:192.0.2.10", 100, 5000, BALEEN_UDP, NULL), 100);
	assert_int_equal(passed(r, "192.0.2.11", 100, 5000, BALEEN_UDP, NULL), 10);
	assert_int_equal(passed(r, "2001:db8:5:1::1", 100, 5000, BALEEN_UDP, NULL), 100);
	assert_int_equal(passed(r, "2001:db8:6:1::1", 100, 5000, BALEEN_UDP, NULL), 10);
	assert_int_equal(rig_metric(r, "ratelimit_exempt_total{instance=\"ratelimit\"}"), 300);
	rig_free(r);
}

static void test_networks_share_a_limit(void **state)
{
	(void)state;
	struct rig *r = limited("{queries-per-second: 10, burst: 10}");

	assert_int_equal(passed(r, "2001:db8:0:100::1", 6, 5000, BALEEN_UDP, NULL), 6);
	assert_int_equal(passed(r, "2001:db8:0:1ff::2", 6, 5000, BALEEN_UDP, NULL), 4);
	assert_int_equal(passed(r, "2001:db8:0:200::1", 6, 5000, BALEEN_UDP, NULL), 6);
	assert_int_equal(passed(r, "192.0.2.1", 6, 5000, BALEEN_UDP, NULL), 6);
	assert_int_equal(passed(r, "192.0.2.2", 6, 5000, BALEEN_UDP, NULL), 6);
	rig_free(r);
}

/* A7-10: more clients than places; the offender is not forgotten over it. */
static void test_memory_is_fixed_and_offenders_stay(void **state)
{
	(void)state;
	struct rig *r = limited("{queries-per-second: 10, burst: 1000, clients: 1024}");
	char client[32];

	assert_int_equal(passed(r, "192.0.2.1", 2000, 5000, BALEEN_UDP, NULL), 1000);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(client, sizeof(client), "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
		passed(r, client, 1, 5000, BALEEN_UDP, NULL);
	}
	assert_int_equal(passed(r, "192.0.2.1", 100, 5000, BALEEN_UDP, NULL), 0);
	assert_true(rig_metric(r, "ratelimit_evicted_total{instance=\"ratelimit\"}") > 10000);
	rig_free(r);
}

/* Another process of the same generation counts in the same buckets. */
static void test_workers_share(void **state)
{
	(void)state;
	struct rig *r = limited("{queries-per-second: 10, burst: 10}");
	char error[256];

	assert_int_equal(passed(r, "192.0.2.1", 6, 5000, BALEEN_UDP, NULL), 6);
	chain_stop_worker(r->chain);
	assert_int_equal(chain_start_worker(r->chain, &r->w, r->w.base, error), 0);
	assert_int_equal(passed(r, "192.0.2.1", 6, 5000, BALEEN_UDP, NULL), 4);
	rig_free(r);
}

/* What a crash left in the region must not lock a client out for years. */
static void test_nonsense_in_the_region_heals(void **state)
{
	(void)state;
	struct rig *r = limited("{queries-per-second: 10, burst: 10, clients: 1024}");
	const size_t size = 64 + 1024 * 16;
	uint64_t *cells = shm_region(r->g.shm, "ratelimit/buckets", size);

	assert_non_null(cells);
	passed(r, "192.0.2.1", 1, 5000, BALEEN_UDP, NULL);
	/* The moment of every bucket, but no key: 64 octets of header, then {key, moment}. */
	for (size_t i = 9; i < size / 8; i += 2)
		cells[i] = INT64_MAX - 5;
	assert_int_equal(passed(r, "192.0.2.1", 20, 5000, BALEEN_UDP, NULL), 10);
	rig_free(r);
}

static void test_dry_run_spends_nothing(void **state)
{
	(void)state;
	struct rig *r = limited("{queries-per-second: 10, burst: 10}");

	for (int i = 0; i < 50; i++) {
		rig_query(r, "a.test", "192.0.2.1");
		assert_int_equal(chain_run(r->chain, &r->q, PHASE_CLIENT, NULL, true), CHAIN_GO_ON);
	}
	assert_int_equal(passed(r, "192.0.2.1", 20, 1000000, BALEEN_UDP, NULL), 10);
	/* But it says what would happen now. */
	rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(chain_run(r->chain, &r->q, PHASE_CLIENT, NULL, true), CHAIN_DECIDED);
	rig_free(r);
}

static void test_options_that_do_not_go_together(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "ratelimit", "ratelimit", "{queries-per-second: 100, burst: 10}");
	assert_int_equal(rig_load(r), -EINVAL);
	assert_true(rig_told(r, "burst (10) is below queries-per-second (100)"));
	rig_free(r);
}

static void test_groups_have_their_own_rate(void **state)
{
	(void)state;
	struct rig *r = rig_new(true);

	rig_add(r, "ratelimit", "ratelimit", "{queries-per-second: 100}");
	rig_policy.options[1] = rig_yaml(r, "{ratelimit: {queries-per-second: 5}}");
	rig_start(r);
	assert_int_equal(passed(r, "192.0.2.1", 300, 5000, BALEEN_UDP, NULL), 200);
	unsigned n = 0;
	for (int i = 0; i < 50; i++) {
		rig_query(r, "a.test", "192.0.2.2")->view.group = 1;
		n += rig_run(r, PHASE_CLIENT, NULL) == CHAIN_GO_ON;
	}
	assert_int_equal(n, 10);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst_then_rate),
		cmocka_unit_test(test_default_burst_is_twice_the_rate),
		cmocka_unit_test(test_slip_and_refuse),
		cmocka_unit_test(test_exempt),
		cmocka_unit_test(test_networks_share_a_limit),
		cmocka_unit_test(test_memory_is_fixed_and_offenders_stay),
		cmocka_unit_test(test_workers_share),
		cmocka_unit_test(test_nonsense_in_the_region_heals),
		cmocka_unit_test(test_dry_run_spends_nothing),
		cmocka_unit_test(test_options_that_do_not_go_together),
		cmocka_unit_test(test_groups_have_their_own_rate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
