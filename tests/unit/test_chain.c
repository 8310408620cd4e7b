/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain: every verdict in every hook against the table, and what the configuration makes of
 * them. The plugins are tests/abi/scripted.c, which return what their options say.
 */
#include "chain_rig.h"

#include "base/clock.h"

static const enum event_verdict events[BALEEN_VERDICTS] = {
	[BALEEN_PASS] = EVENT_ALLOW,	  [BALEEN_ALLOW] = EVENT_ALLOW,
	[BALEEN_BLOCK] = EVENT_BLOCK,	  [BALEEN_ANSWER] = EVENT_ANSWER,
	[BALEEN_REWRITE] = EVENT_REWRITE, [BALEEN_REFUSE] = EVENT_REFUSE,
	[BALEEN_DROP] = EVENT_DROP,	  [BALEEN_TRUNCATE] = EVENT_TRUNCATE,
	[BALEEN_WAIT] = EVENT_ERROR,	  [BALEEN_FAIL] = EVENT_ERROR,
};

/* The table of plugin.h, written a second time: x legal. */
static const char *const table[BALEEN_VERDICTS] = {
	[BALEEN_PASS] = "xxx",	 [BALEEN_ALLOW] = "-xx",    [BALEEN_BLOCK] = "xxx",
	[BALEEN_ANSWER] = "-xx", [BALEEN_REWRITE] = "-x-",  [BALEEN_REFUSE] = "xxx",
	[BALEEN_DROP] = "xxx",	 [BALEEN_TRUNCATE] = "xxx", [BALEEN_WAIT] = "-xx",
	[BALEEN_FAIL] = "xxx",
};

static const char *const hook_words[] = {"client", "query", "answer"};

/* One plugin that returns `verdict` in `phase`, then one that must or must not be reached. */
static void check_verdict(int verdict, enum query_phase phase, enum config_on_failure on_failure)
{
	struct rig *r = rig_new(true);
	char yaml[64], metric[64];

	snprintf(yaml, sizeof(yaml), "{%s: %d}", hook_words[phase], verdict);
	rig_add(r, "scripted", "first", yaml)->on_failure = on_failure;
	rig_add(r, "scripted", "second", NULL);
	rig_start(r);
	struct query *q = rig_query(r, "a.test", "192.0.2.1");
	enum chain_next next = rig_run(r, phase, NULL);
	snprintf(metric, sizeof(metric), "scripted_%s_total{instance=\"second\"}",
		 hook_words[phase]);
	bool reached = rig_metric(r, metric) == 1;

	bool known = verdict >= 0 && verdict < BALEEN_VERDICTS;
	/* WAIT without a ticket is as wrong as a verdict that is not in the table. */
	bool legal = known && table[verdict][phase] == 'x' && verdict != BALEEN_WAIT;
	assert_int_equal(chain_legal(phase, (enum baleen_verdict)verdict),
			 known && table[verdict][phase] == 'x');
	if (!legal || verdict == BALEEN_FAIL) {
		assert_int_equal(rig_metric(r, "chain_failures_total"), 1);
		if (on_failure == ON_FAILURE_CLOSED) {
			assert_int_equal(next, CHAIN_DECIDED);
			assert_int_equal(q->verdict, EVENT_ERROR);
			assert_true(q->failed_closed);
			assert_int_equal(q->decided_by, 0);
			assert_false(reached);
		} else {
			assert_int_equal(next, CHAIN_GO_ON);
			assert_int_equal(q->verdict, EVENT_ALLOW);
			assert_int_equal(q->decided_by, EVENT_NO_PLUGIN);
			assert_true(reached);
		}
	} else if (verdict == BALEEN_PASS) {
		assert_int_equal(next, CHAIN_GO_ON);
		assert_true(reached);
	} else if (verdict == BALEEN_ALLOW) {
		assert_int_equal(next, CHAIN_GO_ON);
		assert_false(reached); /* a filter */
		assert_true(q->allowed);
		assert_int_equal(q->decided_by, 0);
	} else {
		assert_int_equal(next, CHAIN_DECIDED);
		assert_int_equal(q->verdict, events[verdict]);
		assert_int_equal(q->decided_by, 0);
		assert_false(reached);
	}
	assert_int_equal(r->crumb.hook, CRUMB_NONE);
	rig_free(r);
}

static void test_every_verdict_in_every_hook(void **state)
{
	(void)state;
	for (unsigned phase = 0; phase < CHAIN_PHASES; phase++)
		for (int verdict = -1; verdict <= BALEEN_VERDICTS; verdict++) {
			check_verdict(verdict, phase, ON_FAILURE_OPEN);
			check_verdict(verdict, phase, ON_FAILURE_CLOSED);
		}
	check_verdict(77, PHASE_QUERY, ON_FAILURE_CLOSED);
}

static void test_verdicts_without_what_they_need(void **state)
{
	(void)state;
	for (int verdict = 0; verdict < BALEEN_VERDICTS; verdict++) {
		bool needs = verdict == BALEEN_ANSWER || verdict == BALEEN_REWRITE;
		char yaml[64];
		if (verdict == BALEEN_WAIT)
			continue;
		struct rig *r = rig_new(true);
		snprintf(yaml, sizeof(yaml), "{query: %d, bare: true}", verdict);
		rig_add(r, "scripted", "first", yaml)->on_failure = ON_FAILURE_CLOSED;
		rig_start(r);
		rig_query(r, "a.test", "192.0.2.1");
		rig_run(r, PHASE_QUERY, NULL);
		assert_int_equal(r->q.failed_closed, needs || verdict == BALEEN_FAIL);
		rig_free(r);
	}
}

static void test_order_is_the_configurations(void **state)
{
	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		struct rig *r = rig_new(true);
		rig_add(r, "scripted", turn ? "refuser" : "blocker",
			turn ? "{query: 5}" : "{query: 2}");
		rig_add(r, "scripted", turn ? "blocker" : "refuser",
			turn ? "{query: 2}" : "{query: 5}");
		rig_start(r);
		rig_query(r, "a.test", "192.0.2.1");
		assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_DECIDED);
		assert_int_equal(r->q.verdict, turn ? EVENT_REFUSE : EVENT_BLOCK);
		assert_int_equal(r->q.decided_by, 0);
		rig_free(r);
	}
}

static void test_allow_ends_filters_not_guards(void **state)
{
	(void)state;
	struct rig *r = rig_new(true);

	rig_add(r, "scripted", "allower", "{query: 1}");
	rig_add(r, "scripted", "filter", "{query: 2, answer: 2}");
	rig_add(r, "scripted_guard", "guard", "{answer: 5}");
	rig_start(r);
	struct query *q = rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_GO_ON);
	assert_int_equal(q->verdict, EVENT_ALLOW);
	assert_int_equal(q->decided_by, 0); /* and the log can say who allowed it */
	assert_int_equal(rig_metric(r, "scripted_guard_query_total{instance=\"guard\"}"), 1);
	/* The same holds for the answer. */
	assert_int_equal(rig_run(r, PHASE_ANSWER, NULL), CHAIN_DECIDED);
	assert_int_equal(rig_metric(r, "scripted_answer_total{instance=\"filter\"}"), 0);
	assert_int_equal(q->verdict, EVENT_REFUSE);
	assert_int_equal(q->decided_by, 2);
	rig_free(r);
}

static void test_monitor_only_records(void **state)
{
	(void)state;
	for (int verdict = 1; verdict < BALEEN_VERDICTS; verdict++) {
		char yaml[64];
		if (verdict == BALEEN_WAIT)
			continue;
		struct rig *r = rig_new(true);
		snprintf(yaml, sizeof(yaml), "{query: %d}", verdict);
		struct config_plugin *p = rig_add(r, "scripted", "watched", yaml);
		p->monitor = true;
		p->on_failure = ON_FAILURE_CLOSED; /* a monitored plugin never costs an answer */
		rig_add(r, "scripted", "after", NULL);
		rig_start(r);
		struct query *q = rig_query(r, "a.test", "192.0.2.1");
		assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_GO_ON);
		assert_int_equal(q->verdict, EVENT_ALLOW);
		assert_false(q->allowed);
		assert_int_equal(q->decided_by, EVENT_NO_PLUGIN);
		assert_int_equal(q->would_count, 1);
		assert_int_equal(q->would[0].plugin, 0);
		assert_int_equal(q->would[0].verdict, verdict);
		assert_int_equal(rig_metric(r, "scripted_query_total{instance=\"after\"}"), 1);
		rig_free(r);
	}
}

static void test_would_is_bounded(void **state)
{
	(void)state;
	static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
	struct rig *r = rig_new(false);

	for (unsigned i = 0; i < 6; i++)
		rig_add(r, "scripted", names[i], "{query: 2}")->monitor = true;
	rig_start(r);
	rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_GO_ON);
	assert_int_equal(r->q.would_count, EVENT_WOULD_MAX);
	rig_free(r);
}

static void test_groups_differ(void **state)
{
	(void)state;
	struct rig *r = rig_new(true);

	rig_add(r, "scripted", "one", "{query: 2, text: base}");
	rig_add(r, "scripted", "two", "{query: 5}");
	rig_policy.options[1] = rig_yaml(r, "{one: off, two: {query: 6, mode: monitor}}");
	rig_start(r);
	rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_DECIDED);
	assert_int_equal(r->q.verdict, EVENT_BLOCK);
	assert_string_equal(r->q.why.text, "base");
	rig_query(r, "a.test", "192.0.2.2")->view.group = 1;
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_GO_ON);
	assert_int_equal(r->q.would_count, 1);
	assert_int_equal(r->q.would[0].verdict, BALEEN_DROP);
	assert_int_equal(rig_metric(r, "scripted_query_total{instance=\"one\"}"), 1);
	assert_int_equal(rig_metric(r, "group_queries_total{group=\"default\"}"), 1);
	assert_int_equal(rig_metric(r, "group_queries_total{group=\"other\"}"), 1);
	rig_free(r);
}

static void test_options_of_groups_keep_the_base(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "scripted", "one", "{client: 5, query: 2, text: base}");
	rig_policy.options[1] = rig_yaml(r, "{one: {query: 6}}");
	rig_start(r);
	rig_query(r, "a.test", "192.0.2.2")->view.group = 1;
	assert_int_equal(rig_run(r, PHASE_CLIENT, NULL), CHAIN_DECIDED);
	assert_int_equal(r->q.verdict, EVENT_REFUSE); /* as in the base */
	assert_string_equal(r->q.why.text, "base");
	rig_query(r, "a.test", "192.0.2.2")->view.group = 1;
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_DECIDED);
	assert_int_equal(r->q.verdict, EVENT_DROP);
	rig_free(r);
}

static void test_guards_cannot_be_off(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "scripted_guard", "guard", NULL);
	rig_policy.options[1] = rig_yaml(r, "{guard: off}");
	assert_int_equal(rig_load(r), -EINVAL);
	assert_true(rig_told(r, "guards run for every group"));
	rig_free(r);
}

static void test_group_options_are_checked(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "scripted", "one", NULL);
	rig_policy.options[1] = rig_yaml(r, "{one: {qurey: 1, on-failure: open, mode: sometimes}}");
	assert_int_equal(rig_load(r), -EINVAL);
	assert_true(rig_told(r, "did you mean \"query\"?"));
	assert_true(rig_told(r, "on-failure"));
	rig_free(r);
}

static void test_slots_are_zeroed_once_and_kept(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	/* Fails unless its slot was 0 at first and then counted its calls. */
	rig_add(r, "scripted", "a", "{slot: true}")->on_failure = ON_FAILURE_CLOSED;
	rig_add(r, "scripted", "b", "{slot: true}")->on_failure = ON_FAILURE_CLOSED;
	rig_start(r);
	rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_CLIENT, NULL), CHAIN_GO_ON);
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_GO_ON);
	assert_int_equal(rig_run(r, PHASE_ANSWER, NULL), CHAIN_GO_ON);
	rig_free(r);
}

static void test_breaker_takes_a_plugin_out(void **state)
{
	(void)state;
	for (int closed = 0; closed < 2; closed++) {
		struct rig *r = rig_new(true);
		rig_add(r, "scripted", "broken", "{query: 2}")->on_failure =
			closed ? ON_FAILURE_CLOSED : ON_FAILURE_OPEN;
		rig_start(r);
		struct shm_breaker *b = &shm_breakers(r->g.shm, 1)[0];
		struct query *q = rig_query(r, "a.test", "192.0.2.1");
		b->open = 1;
		b->crashes = 3;
		b->retry_ms = q->view.monotonic_ms + 500;
		assert_int_equal(rig_run(r, PHASE_QUERY, NULL),
				 closed ? CHAIN_DECIDED : CHAIN_GO_ON);
		assert_int_equal(q->verdict, closed ? EVENT_ERROR : EVENT_ALLOW);
		assert_int_equal(q->failed_closed, closed);
		/* Its time has come: back in, with no crashes to its name. */
		q = rig_query(r, "a.test", "192.0.2.1");
		q->view.monotonic_ms += 500;
		assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_DECIDED);
		assert_int_equal(q->verdict, EVENT_BLOCK);
		assert_int_equal(b->open, 0);
		assert_int_equal(b->crashes, 0);
		rig_free(r);
	}
}

static void test_goes_on_behind_a_decision(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	/* TC over TCP decides nothing: the path calls again, and the chain goes on behind it. */
	rig_add(r, "scripted", "a", "{query: 7}");
	rig_add(r, "scripted", "b", "{query: 5}");
	rig_start(r);
	struct query *q = rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_DECIDED);
	assert_int_equal(q->verdict, EVENT_TRUNCATE);
	assert_int_equal(q->next, 1);
	assert_int_equal(chain_run(r->chain, q, PHASE_QUERY, NULL, false), CHAIN_DECIDED);
	assert_int_equal(q->verdict, EVENT_REFUSE);
	assert_int_equal(q->next, 2);
	assert_int_equal(chain_run(r->chain, q, PHASE_QUERY, NULL, false), CHAIN_GO_ON);
	rig_free(r);
}

static void test_empty_phases_cost_a_test(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "blocklist", "blocklist", NULL);
	rig_start(r);
	assert_false(chain_has(r->chain, 0, PHASE_CLIENT));
	assert_true(chain_has(r->chain, 0, PHASE_QUERY));
	assert_true(chain_has(r->chain, 0, PHASE_ANSWER));
	rig_free(r);
}

/* What a detector blocks in one worker, every worker blocks. */
static void test_block_for(void **state)
{
	(void)state;
	struct rig *r = rig_new(true);

	rig_add(r, "scripted", "allower", NULL);
	rig_add(r, "scripted", "detector", "{block-for: bad}");
	rig_policy.options[1] = rig_yaml(r, "{allower: {query: 1}}");
	rig_start(r);
	struct query *q = rig_query(r, "bad.test", "192.0.2.1");
	/* At the end of the phase: also for the query that gave it away. */
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_DECIDED);
	assert_int_equal(q->verdict, EVENT_BLOCK);
	q = rig_query(r, "deep.under.bad.test", "192.0.2.9");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_DECIDED);
	assert_int_equal(q->verdict, EVENT_BLOCK);
	assert_int_equal(q->decided_by, 1);
	assert_string_equal(q->why.text, "seen");
	assert_int_equal(q->match.labels, 2);
	rig_query(r, "notbad.test", "192.0.2.9");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_GO_ON);
	/* An ALLOW undoes it, as everything that a filter does. */
	rig_query(r, "bad.test", "192.0.2.9")->view.group = 1;
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_GO_ON);
	/* It ends. */
	q = rig_query(r, "under.bad.test", "192.0.2.9");
	q->view.monotonic_ms += 60000;
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_GO_ON);
	rig_free(r);
}

static void test_dry_run_touches_nothing(void **state)
{
	(void)state;
	struct rig *r = rig_new(true);

	rig_add(r, "scripted", "detector", "{query: 2, block-for: bad, wait: later}");
	rig_start(r);
	rig_query(r, "bad.test", "192.0.2.1");
	/* No ticket to be had, so the plugin passes; nothing was blocked or counted. */
	assert_int_equal(chain_run(r->chain, &r->q, PHASE_QUERY, NULL, true), CHAIN_GO_ON);
	assert_int_equal(rig_metric(r, "group_queries_total{group=\"default\"}"), 0);
	rig_query(r, "x.bad.test", "192.0.2.1");
	assert_int_equal(chain_run(r->chain, &r->q, PHASE_QUERY, NULL, true), CHAIN_GO_ON);
	rig_free(r);
}

struct traced {
	char text[256];
};

static void on_trace(void *context, const char *instance, enum query_phase phase,
		     enum baleen_verdict verdict, bool monitor, bool skipped,
		     const struct baleen_why *why)
{
	struct traced *t = context;
	size_t n = strlen(t->text);

	(void)phase;
	(void)why;
	snprintf(t->text + n, sizeof(t->text) - n, "%s:%s%s%s ", instance,
		 chain_verdict_word(verdict), monitor ? ":monitor" : "", skipped ? ":skipped" : "");
}

static void test_trace_tells_every_step(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);
	struct traced traced = {""};

	rig_add(r, "scripted", "a", "{query: 2}")->monitor = true;
	rig_add(r, "scripted", "b", "{query: 1}");
	rig_add(r, "scripted", "c", "{query: 2}");
	rig_add(r, "scripted_guard", "d", "{query: 0}");
	rig_start(r);
	chain_set_trace(r->chain, on_trace, &traced);
	rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_GO_ON);
	assert_string_equal(traced.text, "a:block:monitor b:allow c:pass:skipped d:pass ");
	rig_free(r);
}

static void test_metrics_and_timing(void **state)
{
	(void)state;
	struct rig *r = rig_new(true);

	rig_add(r, "scripted", "blocker", "{query: 2}");
	rig_start(r);
	for (int i = 0; i < 128; i++) {
		rig_query(r, "a.test", "192.0.2.1");
		rig_run(r, PHASE_QUERY, NULL);
	}
	assert_int_equal(rig_metric(r,
				    "plugin_verdicts_total{plugin=\"blocker\",verdict=\"block\"}"),
			 128);
	assert_int_equal(rig_metric(r, "plugin_sampled_calls_total{plugin=\"blocker\"}"), 2);
	assert_int_equal(rig_metric(r, "scripted_level{instance=\"blocker\"}"), BALEEN_BLOCK);
	/* A gauge of a worker that is gone says nothing about its successor. */
	char error[256];
	chain_stop_worker(r->chain);
	assert_int_equal(chain_start_worker(r->chain, &r->w, r->w.base, error), 0);
	assert_int_equal(rig_metric(r, "scripted_level{instance=\"blocker\"}"), 0);
	assert_int_equal(rig_metric(r,
				    "plugin_verdicts_total{plugin=\"blocker\",verdict=\"block\"}"),
			 128);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_verdict_in_every_hook),
		cmocka_unit_test(test_verdicts_without_what_they_need),
		cmocka_unit_test(test_order_is_the_configurations),
		cmocka_unit_test(test_allow_ends_filters_not_guards),
		cmocka_unit_test(test_monitor_only_records),
		cmocka_unit_test(test_would_is_bounded),
		cmocka_unit_test(test_groups_differ),
		cmocka_unit_test(test_options_of_groups_keep_the_base),
		cmocka_unit_test(test_guards_cannot_be_off),
		cmocka_unit_test(test_group_options_are_checked),
		cmocka_unit_test(test_slots_are_zeroed_once_and_kept),
		cmocka_unit_test(test_breaker_takes_a_plugin_out),
		cmocka_unit_test(test_goes_on_behind_a_decision),
		cmocka_unit_test(test_empty_phases_cost_a_test),
		cmocka_unit_test(test_block_for),
		cmocka_unit_test(test_dry_run_touches_nothing),
		cmocka_unit_test(test_trace_tells_every_step),
		cmocka_unit_test(test_metrics_and_timing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
