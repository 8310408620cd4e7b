/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets: resumed exactly once, by the plugin or by the time-out, behind the plugin that waited;
 * and a chain in which plugins wait decides as one in which they do not.
 */
#include "chain_rig.h"

static void turn(struct rig *r)
{
	event_base_loop(r->w.base, EVLOOP_NONBLOCK);
}

static void test_resumed_once_behind_the_waiter(void **state)
{
	(void)state;
	struct rig *r = rig_new(true);

	rig_add(r, "scripted", "before", NULL);
	rig_add(r, "scripted", "waiter", "{query: 0, wait: later}");
	rig_add(r, "scripted", "after", "{query: 2}");
	rig_start(r);
	struct query *q = rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_WAITING);
	uint64_t ticket = q->ticket;
	assert_true(ticket != 0);
	turn(r);
	assert_int_equal(rig_policy.resumptions, 0);
	assert_true(tickets_resume(r->w.tickets, ticket, BALEEN_PASS, NULL));
	/* Never from inside the caller, who may stand in another query's hook. */
	assert_int_equal(rig_policy.resumptions, 0);
	assert_false(tickets_resume(r->w.tickets, ticket, BALEEN_DROP, NULL));
	turn(r);
	turn(r);
	assert_int_equal(rig_policy.resumptions, 1);
	assert_ptr_equal(rig_policy.resumed, q);
	assert_false(tickets_resume(r->w.tickets, ticket, BALEEN_DROP, NULL));
	assert_int_equal(chain_run(r->chain, q, PHASE_QUERY, NULL, false), CHAIN_DECIDED);
	assert_int_equal(q->verdict, EVENT_BLOCK);
	assert_int_equal(q->decided_by, 2);
	assert_int_equal(rig_metric(r, "scripted_query_total{instance=\"before\"}"), 1);
	assert_int_equal(rig_metric(r, "scripted_query_total{instance=\"waiter\"}"), 1);
	assert_int_equal(rig_metric(r, "scripted_query_total{instance=\"after\"}"), 1);
	rig_free(r);
}

static void test_a_resumption_brings_its_why(void **state)
{
	(void)state;
	static const uint8_t target[] = "\4safe\4test";
	struct rig *r = rig_new(false);
	char text[] = "found out";
	struct baleen_why why = {.size = sizeof(why),
				 .rule = BALEEN_NONE,
				 .feed = 1,
				 .target = target,
				 .target_length = sizeof(target),
				 .text = text};

	rig_add(r, "scripted", "waiter", "{query: 0, wait: later}");
	rig_start(r);
	struct query *q = rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_WAITING);
	assert_true(tickets_resume(r->w.tickets, q->ticket, BALEEN_REWRITE, &why));
	memset(text, 'x', sizeof(text) - 1); /* it was copied */
	turn(r);
	assert_int_equal(chain_run(r->chain, q, PHASE_QUERY, NULL, false), CHAIN_DECIDED);
	assert_int_equal(q->verdict, EVENT_REWRITE);
	assert_string_equal(q->why.text, "found out");
	assert_memory_equal(q->target.wire, target, sizeof(target));
	assert_string_equal(q->why.category, "malware"); /* of feed 1 */
	rig_free(r);
}

static void test_timeout_applies_late(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "scripted", "waiter", "{query: 5, wait: later, timeout: 20ms}");
	rig_start(r);
	struct query *q = rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_WAITING);
	uint64_t ticket = q->ticket;
	event_base_loop(r->w.base, EVLOOP_ONCE);
	assert_int_equal(rig_policy.resumptions, 1);
	assert_false(tickets_resume(r->w.tickets, ticket, BALEEN_DROP, NULL));
	assert_int_equal(chain_run(r->chain, q, PHASE_QUERY, NULL, false), CHAIN_DECIDED);
	assert_int_equal(q->verdict, EVENT_REFUSE);
	rig_free(r);
}

static void test_a_ticket_that_is_not_used_is_dropped(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "scripted", "waiter", "{query: 2, wait: forget, timeout: 1ms}");
	rig_start(r);
	struct query *q = rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_DECIDED);
	assert_int_equal(q->verdict, EVENT_BLOCK);
	assert_int_equal(q->ticket, 0);
	usleep(5000);
	turn(r);
	assert_int_equal(rig_policy.resumptions, 0);
	rig_free(r);
}

static void test_numbers_never_come_back(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);
	uint64_t last = 0;

	rig_add(r, "scripted", "a", NULL);
	rig_start(r);
	struct query *q = rig_query(r, "a.test", "192.0.2.1");
	for (int i = 0; i < 100; i++) {
		uint64_t ticket = tickets_take(r->w.tickets, q, 1000, BALEEN_FAIL);
		assert_true(ticket != 0 && ticket != last);
		assert_int_equal(tickets_take(r->w.tickets, q, 1000, BALEEN_FAIL), 0);
		tickets_drop(r->w.tickets, q);
		assert_false(tickets_resume(r->w.tickets, ticket, BALEEN_DROP, NULL));
		last = ticket;
	}
	assert_false(tickets_resume(r->w.tickets, 0, BALEEN_DROP, NULL));
	assert_false(tickets_resume(r->w.tickets, UINT64_MAX, BALEEN_DROP, NULL));
	rig_free(r);
}

static void test_the_table_is_bounded(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);
	struct query *many = calloc(TICKETS_MAX + 1, sizeof(*many));

	assert_non_null(many);
	rig_add(r, "scripted", "a", NULL);
	rig_start(r);
	for (unsigned i = 0; i < TICKETS_MAX; i++)
		assert_true(tickets_take(r->w.tickets, &many[i], 1000, BALEEN_FAIL) != 0);
	assert_int_equal(tickets_take(r->w.tickets, &many[TICKETS_MAX], 1000, BALEEN_FAIL), 0);
	tickets_drop(r->w.tickets, &many[17]);
	assert_true(tickets_take(r->w.tickets, &many[TICKETS_MAX], 1000, BALEEN_FAIL) != 0);
	for (unsigned i = 0; i <= TICKETS_MAX; i++)
		tickets_drop(r->w.tickets, &many[i]);
	rig_free(r);
	free(many);
}

/* ---- chain with wait == chain without ---- */

#define CHAIN_LENGTH 5

struct ending {
	enum chain_next next;
	enum event_verdict verdict;
	uint8_t decided_by;
	bool allowed, failed_closed;
	uint8_t would_count;
	uint8_t would[EVENT_WOULD_MAX];
	char text[16];
};

struct wanted {
	int verdict;
	bool waits, monitor, guard, closed;
};

static void run_chain(const struct wanted *wanted, const char *wait, struct ending *out)
{
	static const char *const names[CHAIN_LENGTH] = {"a", "b", "c", "d", "e"};
	struct rig *r = rig_new(false);

	for (unsigned i = 0; i < CHAIN_LENGTH; i++) {
		char yaml[128];
		snprintf(yaml, sizeof(yaml), "{query: %d, text: %s, wait: \"%s\"}",
			 wanted[i].verdict, names[i], wanted[i].waits ? wait : "no");
		struct config_plugin *p =
			rig_add(r, wanted[i].guard ? "scripted_guard" : "scripted", names[i], yaml);
		p->monitor = wanted[i].monitor;
		p->on_failure = wanted[i].closed ? ON_FAILURE_CLOSED : ON_FAILURE_OPEN;
	}
	rig_start(r);
	struct query *q = rig_query(r, "a.test", "192.0.2.1");
	enum chain_next next = rig_run(r, PHASE_QUERY, NULL);
	for (unsigned turns = 0; next == CHAIN_WAITING; turns++) {
		const struct wanted *w = &wanted[q->next];
		struct baleen_why why = {.size = sizeof(why),
					 .rule = BALEEN_NONE,
					 .feed = BALEEN_NONE,
					 .text = names[q->next],
					 .target = (const uint8_t *)"\1t",
					 .target_length = 3,
					 .address = q->client,
					 .address_count = 1};
		assert_true(turns < CHAIN_LENGTH);
		assert_true(tickets_resume(r->w.tickets, q->ticket, (enum baleen_verdict)w->verdict,
					   &why));
		turn(r);
		assert_int_equal(rig_policy.resumptions, turns + 1);
		next = chain_run(r->chain, q, PHASE_QUERY, NULL, false);
	}
	memset(out, 0, sizeof(*out));
	out->next = next;
	out->verdict = q->verdict;
	out->decided_by = q->decided_by;
	out->allowed = q->allowed;
	out->failed_closed = q->failed_closed;
	out->would_count = q->would_count;
	for (unsigned i = 0; i < q->would_count; i++)
		out->would[i] = q->would[i].verdict;
	snprintf(out->text, sizeof(out->text), "%s", q->why.text ? q->why.text : "");
	assert_int_equal(q->ticket, 0);
	rig_free(r);
}

static void test_waiting_changes_nothing(void **state)
{
	(void)state;
	/* Mostly PASS, so that chains run long. */
	static const int verdicts[] = {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 9};
	unsigned seed = 20261130;

	for (int round = 0; round < 150; round++) {
		struct wanted wanted[CHAIN_LENGTH];
		struct ending plain, later, hook;
		for (unsigned i = 0; i < CHAIN_LENGTH; i++) {
			seed = seed * 1103515245 + 12345;
			unsigned dice = seed >> 8;
			wanted[i] = (struct wanted){
				.verdict = verdicts[dice % (sizeof(verdicts) / sizeof(int))],
				.waits = dice >> 8 & 1,
				.monitor = (dice >> 9 & 3) == 0,
				.guard = (dice >> 11 & 3) == 0,
				.closed = dice >> 13 & 1,
			};
		}
		run_chain(wanted, "no", &plain);
		run_chain(wanted, "later", &later);
		run_chain(wanted, "hook", &hook);
		assert_memory_equal(&plain, &later, sizeof(plain));
		assert_memory_equal(&plain, &hook, sizeof(plain));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resumed_once_behind_the_waiter),
		cmocka_unit_test(test_a_resumption_brings_its_why),
		cmocka_unit_test(test_timeout_applies_late),
		cmocka_unit_test(test_a_ticket_that_is_not_used_is_dropped),
		cmocka_unit_test(test_numbers_never_come_back),
		cmocka_unit_test(test_the_table_is_bounded),
		cmocka_unit_test(test_waiting_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
