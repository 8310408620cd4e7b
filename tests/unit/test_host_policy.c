/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `blocklist` makes of a policy's outcome: for the question, for every name that the answer
 * leads to, for every address and hint; and what is damaged or cannot be read. The plugins are the
 * shipped ones; the policy is the rig's.
 */
#include "chain_rig.h"

static void start(struct rig *r)
{
	rig_add(r, "blocklist", "blocklist", NULL)->on_failure = ON_FAILURE_CLOSED;
	rig_start(r);
}

static void block(const char *name)
{
	rig_rule_add((
		struct rig_rule){.name = name,
				 .feed = -1,
				 .action = POLICY_BLOCK,
				 .answer = {.form = POLICY_FORM_NXDOMAIN, .ttl_s = 60, .ede = 15}});
}

static enum chain_next ask(struct rig *r, const char *name)
{
	rig_query(r, name, "192.0.2.1");
	return rig_run(r, PHASE_QUERY, NULL);
}

static enum chain_next answer(struct rig *r, const char *name, const char *const *rrs)
{
	assert_int_equal(ask(r, name), CHAIN_GO_ON);
	return rig_run(r, PHASE_ANSWER, rig_answer(r, rrs));
}

static void test_question_is_judged_once(void **state)
{
	(void)state;
	struct rig *r = rig_new(true);

	rig_add(r, "blocklist", "one", NULL)->monitor = true;
	rig_add(r, "blocklist", "two", NULL);
	block("bad.test");
	rig_start(r);
	assert_int_equal(ask(r, "www.bad.test"), CHAIN_DECIDED);
	assert_int_equal(rig_policy.asked, 1);
	assert_int_equal(r->q.verdict, EVENT_BLOCK);
	assert_int_equal(r->q.decided_by, 1);
	assert_int_equal(r->q.would_count, 1);
	assert_int_equal(r->q.would[0].rule, 0);
	assert_int_equal(r->q.why.rule, 0);
	assert_int_equal(r->q.why.hop, BALEEN_HOP_QUESTION);
	/* The rule's own answer is what the path builds from. */
	assert_ptr_equal(r->q.policy_answer, &rig_policy.rules[0].answer);
	assert_int_equal(r->q.match.labels, 2);
	assert_memory_equal(r->q.match.wire, "\3bad\4test", 10);
	rig_free(r);
}

static void test_feeds_reach_the_policy(void **state)
{
	(void)state;
	struct rig *r = rig_new(true);
	const struct rig_entry entries[] = {{"evil.test", 1, DOMSET_SUBTREE},
					    {"ads.test", 0, DOMSET_EXACT}};
	const struct rig_entry ordered[] = {entries[1], entries[0]};

	rig_rule_add((struct rig_rule){.feed = 0, .action = POLICY_BLOCK});
	rig_set(r, ordered, 2);
	start(r);
	assert_int_equal(ask(r, "ads.test"), CHAIN_DECIDED);
	assert_int_equal(r->q.why.feed, 0);
	assert_int_equal(ask(r, "x.ads.test"), CHAIN_GO_ON);
	assert_int_equal(ask(r, "x.evil.test"), CHAIN_GO_ON); /* listed, but no rule asks */
	assert_int_equal(rig_metric(r, "feed_hits_total{feed=\"ads\"}"), 1);
	assert_int_equal(rig_metric(r, "feed_hits_total{feed=\"evil\"}"), 1);
	rig_free(r);
}

static void test_no_set_is_nothing_listed(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_rule_add((struct rig_rule){.feed = 0, .action = POLICY_BLOCK});
	start(r);
	assert_int_equal(ask(r, "ads.test"), CHAIN_GO_ON);
	rig_free(r);
}

static void test_every_hop_of_the_answer(void **state)
{
	(void)state;
	static const struct {
		const char *rrs[4];
		enum baleen_hop hop;
		bool blocked;
	} rows[] = {
		{{"shop.test CNAME x.bad.test", "x.bad.test A 192.0.2.9"}, BALEEN_HOP_CNAME, true},
		{{"shop.test CNAME a.test", "a.test CNAME b.test", "b.test CNAME bad.test"},
		 BALEEN_HOP_CNAME,
		 true},
		{{"shop.test CNAME fine.test", "fine.test A 192.0.2.9"}, 0, false},
		{{"shop.test CNAME notbad.test"}, 0, false},
		{{"shop.test CNAME BAD.test"}, BALEEN_HOP_CNAME, true},
		{{"shop.test HTTPS 1 svc.bad.test alpn=h2"}, BALEEN_HOP_HINT, true},
		{{"shop.test HTTPS 1 . alpn=h2"}, 0, false},
		{{"shop.test A 203.0.113.9"}, BALEEN_HOP_ADDRESS, true},
		{{"shop.test A 203.0.113.10"}, 0, false},
		{{"shop.test A 192.0.2.1", "shop.test A 203.0.113.9"}, BALEEN_HOP_ADDRESS, true},
		{{"shop.test AAAA 2001:db8::bad"}, BALEEN_HOP_ADDRESS, true},
		{{"shop.test HTTPS 1 . alpn=h2 ipv4hint=192.0.2.1,203.0.113.9"},
		 BALEEN_HOP_HINT,
		 true},
		{{"shop.test HTTPS 1 . ipv6hint=2001:db8::bad"}, BALEEN_HOP_HINT, true},
	};
	struct rig *r = rig_new(false);

	block("bad.test");
	rig_rule_add(
		(struct rig_rule){.address = "203.0.113.9", .feed = -1, .action = POLICY_BLOCK});
	rig_rule_add(
		(struct rig_rule){.address = "2001:db8::bad", .feed = -1, .action = POLICY_BLOCK});
	start(r);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum chain_next next = answer(r, "shop.test", rows[i].rrs);
		if (next != (rows[i].blocked ? CHAIN_DECIDED : CHAIN_GO_ON))
			fail_msg("%s", rows[i].rrs[0]);
		if (!rows[i].blocked)
			continue;
		assert_int_equal(r->q.verdict, EVENT_BLOCK);
		assert_int_equal(r->q.why.hop, rows[i].hop);
		/* Blocked as the question itself would be (same form, TTL, EDE). */
		assert_non_null(r->q.policy_answer);
	}
	rig_free(r);
}

static void test_allowed_question_keeps_its_answer(void **state)
{
	(void)state;
	static const char *const rrs[] = {"ok.test CNAME bad.test", NULL};
	struct rig *r = rig_new(false);

	rig_rule_add((struct rig_rule){.name = "ok.test", .feed = -1, .action = POLICY_ALLOW});
	block("bad.test");
	start(r);
	assert_int_equal(answer(r, "ok.test", rrs), CHAIN_GO_ON);
	assert_int_equal(r->q.verdict, EVENT_ALLOW);
	assert_int_equal(r->q.why.rule, 0); /* the log says which rule allowed it */
	rig_free(r);
}

static void test_allowed_hop_says_nothing_of_the_next(void **state)
{
	(void)state;
	static const char *const rrs[] = {"shop.test CNAME ok.test", "ok.test CNAME bad.test",
					  NULL};
	struct rig *r = rig_new(false);

	rig_rule_add((struct rig_rule){.name = "ok.test", .feed = -1, .action = POLICY_ALLOW});
	block("bad.test");
	start(r);
	assert_int_equal(answer(r, "shop.test", rrs), CHAIN_DECIDED);
	assert_int_equal(r->q.why.rule, 1);
	rig_free(r);
}

static void test_monitored_rules_are_recorded(void **state)
{
	(void)state;
	static const char *const rrs[] = {"shop.test CNAME x.watched.test", NULL};
	struct rig *r = rig_new(false);

	rig_rule_add(
		(struct rig_rule){.name = "watched.test", .feed = -1, .action = POLICY_MONITOR});
	start(r);
	assert_int_equal(ask(r, "a.watched.test"), CHAIN_GO_ON);
	assert_int_equal(r->q.would_count, 1);
	assert_int_equal(r->q.would[0].verdict, BALEEN_BLOCK);
	assert_int_equal(r->q.would[0].rule, 0);
	assert_int_equal(answer(r, "shop.test", rrs), CHAIN_GO_ON);
	assert_int_equal(r->q.would_count, 1);
	rig_free(r);
}

static void test_rewrite_brings_its_target(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);
	struct rig_rule rule = {.name = "search.test", .feed = -1, .action = POLICY_REWRITE};

	assert_int_equal(name_parse("safe.test", 9, &rule.answer.target), 0);
	rig_rule_add(rule);
	start(r);
	assert_int_equal(ask(r, "search.test"), CHAIN_DECIDED);
	assert_int_equal(r->q.verdict, EVENT_REWRITE);
	assert_memory_equal(r->q.target.wire, "\4safe\4test", 11);
	rig_free(r);
}

/* A2-26: behind however many names, a blocked one is found. */
static void test_the_last_of_many_names_is_blocked(void **state)
{
	enum { HOPS = 200 };
	static char text[HOPS][64];
	static const char *rrs[HOPS + 1];

	(void)state;
	struct rig *r = rig_new(false);
	block("bad.test");
	start(r);
	for (int i = 0; i < HOPS; i++) {
		snprintf(text[i], sizeof(text[i]), "n%d.test CNAME n%d.test", i, i + 1);
		rrs[i] = text[i];
	}
	assert_int_equal(answer(r, "n0.test", rrs), CHAIN_GO_ON);
	snprintf(text[HOPS - 1], sizeof(text[0]), "n%d.test CNAME bad.test", HOPS - 1);
	assert_int_equal(answer(r, "n0.test", rrs), CHAIN_DECIDED);
	assert_int_equal(r->q.verdict, EVENT_BLOCK);
	rig_free(r);
}

static void test_broken_hints_fail(void **state)
{
	(void)state;
	/* ipv4hint of three octets; a parameter that is longer than the record. */
	static const char *const rows[][2] = {
		{"shop.test TYPE65 \\# 10 0001 00 0004 0003 cb0071", NULL},
		{"shop.test TYPE65 \\# 8 0001 00 0004 0009 cb", NULL},
	};
	struct rig *r = rig_new(false);

	rig_rule_add(
		(struct rig_rule){.address = "203.0.113.9", .feed = -1, .action = POLICY_BLOCK});
	start(r);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(answer(r, "shop.test", rows[i]), CHAIN_DECIDED);
		assert_int_equal(r->q.verdict, EVENT_ERROR);
	}
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_question_is_judged_once),
		cmocka_unit_test(test_feeds_reach_the_policy),
		cmocka_unit_test(test_no_set_is_nothing_listed),
		cmocka_unit_test(test_every_hop_of_the_answer),
		cmocka_unit_test(test_allowed_question_keeps_its_answer),
		cmocka_unit_test(test_allowed_hop_says_nothing_of_the_next),
		cmocka_unit_test(test_monitored_rules_are_recorded),
		cmocka_unit_test(test_rewrite_brings_its_target),
		cmocka_unit_test(test_the_last_of_many_names_is_blocked),
		cmocka_unit_test(test_broken_hints_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
