/* SPDX-License-Identifier: Apache-2.0 */
/* The threatfeed plugin, through the chain, on a real set. Feeds as in the rig: ads (blocklist),
 * evil (threat, 90, malware), dark (threat, shadow), weak (threat, confidence 10). */
#include "chain_rig.h"

/* In key order. */
static const struct rig_entry entries[] = {
	{"ads.test", 0, DOMSET_SUBTREE},     {"both.test", 1, DOMSET_SUBTREE},
	{"deep.both.test", 3, DOMSET_EXACT}, {"dark.test", 2, DOMSET_SUBTREE},
	{"evil.test", 1, DOMSET_SUBTREE},    {"exact.test", 1, DOMSET_EXACT},
	{"weak.test", 3, DOMSET_SUBTREE},
};

static struct rig *with(const char *yaml)
{
	struct rig *r = rig_new(true);

	rig_set(r, entries, sizeof(entries) / sizeof(entries[0]));
	rig_add(r, "threatfeed", "threatfeed", yaml);
	rig_start(r);
	return r;
}

static bool blocks(struct rig *r, const char *name)
{
	rig_query(r, name, "192.0.2.1");
	return rig_run(r, PHASE_QUERY, NULL) == CHAIN_DECIDED;
}

static void test_which_feeds_count(void **state)
{
	(void)state;
	struct rig *r = with(NULL);

	assert_true(blocks(r, "x.evil.test"));
	assert_int_equal(r->q.verdict, EVENT_BLOCK);
	assert_int_equal(r->q.why.feed, 1);
	assert_string_equal(r->q.why.category, "malware");
	assert_string_equal(r->q.why.text, "c2");
	assert_memory_equal(r->q.match.wire, "\4evil\4test", 11);
	assert_false(blocks(r, "ads.test"));  /* a blocklist's names are the policy's */
	assert_false(blocks(r, "dark.test")); /* shadow */
	assert_false(blocks(r, "weak.test")); /* below min-confidence */
	assert_false(blocks(r, "clean.test"));
	assert_true(blocks(r, "exact.test"));
	assert_true(r->q.why.exact);
	assert_false(blocks(r, "x.exact.test"));
	assert_int_equal(rig_metric(r, "threatfeed_matches_total{instance=\"threatfeed\"}"), 2);
	assert_int_equal(rig_metric(r, "threatfeed_ignored_total{instance=\"threatfeed\"}"), 3);
	rig_free(r);
}

static void test_confidence_and_depth(void **state)
{
	(void)state;
	struct rig *r = with("{min-confidence: 5}");

	assert_true(blocks(r, "weak.test"));
	assert_int_equal(r->q.why.feed, 3);
	assert_true(blocks(r, "deep.both.test"));
	assert_int_equal(r->q.why.feed, 3); /* the deeper entry, though less sure */
	assert_true(blocks(r, "x.both.test"));
	assert_int_equal(r->q.why.feed, 1);
	rig_free(r);
}

static void test_categories_and_types(void **state)
{
	(void)state;
	struct rig *r = with("{categories: [phishing]}");
	assert_false(blocks(r, "evil.test"));
	rig_free(r);
	r = with("{categories: [phishing, Malware]}");
	assert_true(blocks(r, "evil.test"));
	rig_free(r);
	r = with("{threat-types: [ransomware]}");
	assert_false(blocks(r, "evil.test"));
	rig_free(r);
}

static void test_answers(void **state)
{
	(void)state;
	struct rig *r = with("{answer: zero-ip, ttl: 5m}");
	assert_true(blocks(r, "evil.test"));
	assert_int_equal(r->q.why.form, BALEEN_FORM_ZERO_IP);
	assert_int_equal(r->q.why.ttl, 300);
	rig_free(r);
	r = with("{answer: refused}");
	assert_true(blocks(r, "evil.test"));
	assert_int_equal(r->q.verdict, EVENT_REFUSE);
	rig_free(r);
}

static void test_names_in_the_answer(void **state)
{
	(void)state;
	static const char *const cname[] = {"shop.test CNAME a.test", "a.test CNAME x.evil.test",
					    NULL};
	static const char *const https[] = {"shop.test HTTPS 1 x.evil.test", NULL};
	static const char *const fine[] = {"shop.test CNAME dark.test", NULL};
	struct rig *r = with(NULL);

	assert_false(blocks(r, "shop.test"));
	assert_int_equal(rig_run(r, PHASE_ANSWER, rig_answer(r, cname)), CHAIN_DECIDED);
	assert_int_equal(r->q.why.hop, BALEEN_HOP_CNAME);
	assert_memory_equal(r->q.match.wire, "\4evil\4test", 11);
	assert_false(blocks(r, "shop.test"));
	assert_int_equal(rig_run(r, PHASE_ANSWER, rig_answer(r, https)), CHAIN_DECIDED);
	assert_int_equal(r->q.why.hop, BALEEN_HOP_HINT);
	assert_false(blocks(r, "shop.test"));
	assert_int_equal(rig_run(r, PHASE_ANSWER, rig_answer(r, fine)), CHAIN_GO_ON);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_feeds_count),
		cmocka_unit_test(test_confidence_and_depth),
		cmocka_unit_test(test_categories_and_types),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_names_in_the_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
