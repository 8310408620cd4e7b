/* SPDX-License-Identifier: Apache-2.0 */
/* policies/: what rules mean, one by one. The tables against plain reading: test_policy_random.c.
 */
#include "policy_fixture.h"

#include "base/key.h"
#include "base/message.h"

#define BIT(feed) (1u << (feed))

struct row {
	const char *name;
	uint16_t type;
	unsigned feeds;
	enum policy_action action;
	int line; /* of the rule in the file; 0: none */
};

static void check_rows(const struct fixture *f, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct policy_outcome o =
			fixture_outcome(f, 0, rows[i].name, rows[i].type, rows[i].feeds);
		int line =
			o.rule == POLICY_RULE_NONE ? 0 : policy_rule_place(f->policy, o.rule)->line;
		if (o.action != rows[i].action || line != rows[i].line)
			print_error("row %zu: %s: action %d, line %d\n", i, rows[i].name, o.action,
				    line);
		assert_int_equal(o.action, rows[i].action);
		assert_int_equal(line, rows[i].line);
	}
}
#define CHECK(f, rows) check_rows(f, rows, sizeof(rows) / sizeof((rows)[0]))

static void test_names_match_at_label_borders(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"example.com", 1, 0, POLICY_BLOCK, 3},
		{"www.example.com", 1, 0, POLICY_BLOCK, 3},
		{"EXAMPLE.com.", 1, 0, POLICY_BLOCK, 3},
		{"\\101xample.com", 1, 0, POLICY_BLOCK, 3},
		{"notexample.com", 1, 0, POLICY_PASS, 0},
		{"example.com.evil.example", 1, 0, POLICY_PASS, 0},
		{"com", 1, 0, POLICY_PASS, 0},
		{"exact.example", 1, 0, POLICY_BLOCK, 3},
		{"www.exact.example", 1, 0, POLICY_PASS, 0},
		{"below.example", 1, 0, POLICY_PASS, 0},
		{"a.below.example", 1, 0, POLICY_BLOCK, 3},
		{"b.a.below.example", 1, 0, POLICY_BLOCK, 3},
		{"xn--bcher-kva.example", 1, 0, POLICY_BLOCK, 3},
		{"a.b.c.d.e.f.g.h.example.com", 255, 0, POLICY_BLOCK, 3},
		{".", 1, 0, POLICY_PASS, 0},
	};
	struct fixture f;
	fixture_policy(&f, "group: default\n"
			   "rules:\n"
			   "  - block: [Example.COM., \"=exact.example\", \"*.below.example\", "
			   "bücher.example]\n");
	CHECK(&f, rows);
	fixture_end(&f);
}

static void test_the_first_rule_that_matches_decides(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"ok.ads.example", 1, BIT(FEED_ADS), POLICY_ALLOW, 2},
		{"bad.ok.ads.example", 1, BIT(FEED_ADS), POLICY_ALLOW, 2},
		{"ads.example", 1, BIT(FEED_ADS), POLICY_BLOCK, 4},
		{"both.example", 1, BIT(FEED_ADS) | BIT(FEED_TRACKING), POLICY_BLOCK, 4},
		{"t.example", 1, BIT(FEED_TRACKING), POLICY_BLOCK, 5},
		{"bad.site.example", 1, 0, POLICY_BLOCK, 3},
		{"site.example", 1, 0, POLICY_ALLOW, 6},
		{"x.site.example", 28, BIT(FEED_OURS), POLICY_BLOCK, 5}, /* a blocklist */
		{"unlisted.example", 1, 0, POLICY_PASS, 0},
		{"unlisted.example", 255, 0, POLICY_BLOCK, 7},
		{"unlisted.example", 65280, 0, POLICY_BLOCK, 7},
		{"google.example", 1, 0, POLICY_REWRITE, 8},
		{"safe.google.example", 1, 0, POLICY_PASS, 0},
		{"www.google.example", 1, 0, POLICY_REWRITE, 8},
	};
	struct fixture f;
	fixture_policy(&f, "rules:\n"
			   "  - allow: [ok.ads.example]\n"
			   "  - block: bad.site.example\n"
			   "  - block: {feeds: [ads]}\n"
			   "  - block: {feeds: all}\n"
			   "  - allow: [site.example]\n"
			   "  - block: {types: [ANY, TYPE65280]}\n"
			   "  - rewrite: {names: [google.example], to: safe.google.example}\n");
	CHECK(&f, rows);
	fixture_end(&f);
}

static void test_what_is_asked_of_feeds(void **state)
{
	(void)state;
	static const struct {
		const char *condition;
		unsigned feeds; /* that the rule matches */
	} rows[] = {
		{"{feeds: all}", BIT(FEED_ADS) | BIT(FEED_TRACKING) | BIT(FEED_OURS)},
		{"{feeds: [ours, c2]}", BIT(FEED_OURS) | BIT(FEED_C2)},
		{"{feeds: [all, c2]}",
		 BIT(FEED_ADS) | BIT(FEED_TRACKING) | BIT(FEED_OURS) | BIT(FEED_C2)},
		{"{feeds: c2}", BIT(FEED_C2)},
		{"{feeds: [new]}", 0}, /* in shadow */
		{"{categories: [malware, tracking]}", BIT(FEED_C2) | BIT(FEED_TRACKING)},
		{"{categories: [fresh]}", 0},
		{"{kind: threat}", BIT(FEED_C2)},
		{"{kind: blocklist}", BIT(FEED_ADS) | BIT(FEED_TRACKING) | BIT(FEED_OURS)},
		{"{threat-type: [botnet]}", BIT(FEED_C2)},
		{"{min-confidence: 60}", BIT(FEED_ADS) | BIT(FEED_OURS) | BIT(FEED_C2)},
		{"{kind: blocklist, min-confidence: 60}", BIT(FEED_ADS) | BIT(FEED_OURS)},
		{"{feeds: all, categories: [advertising]}", BIT(FEED_ADS)},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f;
		char text[256];
		snprintf(text, sizeof(text), "rules:\n  - block: %s\n", rows[i].condition);
		fixture_policy(&f, text);
		for (unsigned feed = 0; feed < FIXTURE_FEEDS; feed++) {
			struct policy_outcome o = fixture_outcome(&f, 0, "x.example", 1, BIT(feed));
			bool expected = rows[i].feeds >> feed & 1;
			if ((o.action == POLICY_BLOCK) != expected)
				print_error("%s: feed %u\n", rows[i].condition, feed);
			assert_int_equal(o.action, expected ? POLICY_BLOCK : POLICY_PASS);
			assert_int_equal(o.feed, expected ? feed : FEED_NONE);
		}
		struct policy_outcome o = fixture_outcome(&f, 0, "x.example", 1, 0);
		assert_int_equal(o.action, POLICY_PASS);
		fixture_end(&f);
	}
}

static void test_conditions_are_anded(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"a.example", 1, BIT(FEED_ADS), POLICY_BLOCK, 2},
		{"a.example", 16, BIT(FEED_ADS), POLICY_PASS, 0},
		{"a.example", 1, BIT(FEED_OURS), POLICY_PASS, 0},
		{"b.test", 1, BIT(FEED_ADS), POLICY_PASS, 0},
		{"w.test", 1, 0, POLICY_BLOCK, 3},
		{"w.test", 28, 0, POLICY_PASS, 0},
	};
	struct fixture f;
	fixture_policy(
		&f, "rules:\n"
		    "  - block: {names: [example], feeds: [ads], types: [A, AAAA]}\n"
		    "  - {block: {names: [w.test], types: [A]}, when: {days: mon, timezone: UTC}}\n"
		    "  - {block: {names: [v.test]}, when: {days: tue, timezone: UTC}}\n"
		    "  - {block: [u.test], until: 2026-03-01, owner: me, reason: trial}\n"
		    "  - {block: [t.test], until: \"2026-03-02T10:00:01Z\"}\n");
	CHECK(&f, rows);
	assert_int_equal(fixture_outcome(&f, 0, "v.test", 1, 0).action, POLICY_PASS);
	assert_int_equal(fixture_outcome(&f, 0, "u.test", 1, 0).action, POLICY_PASS);
	assert_int_equal(fixture_outcome(&f, 0, "t.test", 1, 0).action, POLICY_BLOCK);
	fixture_end(&f);
}

static void test_monitor_records_and_goes_on(void **state)
{
	(void)state;
	struct fixture f;
	fixture_policy(&f, "rules:\n"
			   "  - monitor: [m.test]\n"
			   "  - monitor: {feeds: [ours]}\n"
			   "  - block: {feeds: [ads]}\n"
			   "  - monitor: {names: [\".\"]}\n");
	struct policy_outcome o =
		fixture_outcome(&f, 0, "m.test", 1, BIT(FEED_OURS) | BIT(FEED_ADS));
	assert_int_equal(o.action, POLICY_BLOCK);
	assert_int_equal(o.monitored_count, 2);
	assert_int_equal(policy_rule_place(f.policy, o.monitored[0])->line, 2);
	assert_int_equal(policy_rule_place(f.policy, o.monitored[1])->line, 3);
	o = fixture_outcome(&f, 0, "m.test", 1, 0);
	assert_int_equal(o.action, POLICY_PASS);
	assert_int_equal(o.rule, POLICY_RULE_NONE);
	assert_int_equal(o.monitored_count, 2);
	assert_int_equal(policy_rule_place(f.policy, o.monitored[1])->line, 5);
	fixture_end(&f);
}

static void test_answers(void **state)
{
	(void)state;
	struct fixture f;
	fixture_policy(&f, "rules:\n"
			   "  - block: [a.test]\n"
			   "  - {block: [b.test], answer: {a: 192.0.2.80, aaaa: [\"2001:db8::80\", "
			   "\"2001:db8::81\"], ttl: 30s}, ede: 17, ede-text: no}\n"
			   "  - {block: [c.test], answer: {cname: Walled.test}}\n"
			   "  - {block: [d.test], answer: refused, ede: 0}\n"
			   "  - {block: [e.test], answer: zero-ip}\n"
			   "  - {block: {types: [AAAA]}}\n"
			   "  - {block: {types: [TXT]}, answer: nxdomain}\n"
			   "  - {rewrite: {names: [f.test], to: g.test}}\n");
	const struct policy_answer *a = fixture_outcome(&f, 0, "a.test", 1, 0).answer;
	assert_int_equal(a->form, POLICY_FORM_NXDOMAIN);
	assert_int_equal(a->ede, 15);
	assert_int_equal(a->ttl_s, 60);
	assert_null(a->ede_text);
	a = fixture_outcome(&f, 0, "b.test", 1, 0).answer;
	assert_int_equal(a->form, POLICY_FORM_ADDRESSES);
	assert_int_equal(a->a_count, 1);
	assert_int_equal(a->aaaa_count, 2);
	assert_int_equal(a->ttl_s, 30);
	assert_int_equal(a->ede, 17);
	assert_string_equal(a->ede_text, "no");
	char text[ADDR_TEXT_MAX];
	assert_string_equal(addr_format(&a->aaaa[1], text), "2001:db8::81");
	a = fixture_outcome(&f, 0, "c.test", 1, 0).answer;
	assert_int_equal(a->form, POLICY_FORM_CNAME);
	char name[NAME_TEXT_MAX];
	name_format(a->target.wire, name);
	assert_string_equal(name, "walled.test.");
	a = fixture_outcome(&f, 0, "d.test", 1, 0).answer;
	assert_int_equal(a->form, POLICY_FORM_REFUSED);
	assert_int_equal(a->ede, 0);
	assert_int_equal(fixture_outcome(&f, 0, "e.test", 1, 0).answer->form, POLICY_FORM_ZERO_IP);
	/* Other types of the name go on existing. */
	assert_int_equal(fixture_outcome(&f, 0, "x.test", TYPE_AAAA, 0).answer->form,
			 POLICY_FORM_NODATA);
	assert_int_equal(fixture_outcome(&f, 0, "x.test", TYPE_TXT, 0).answer->form,
			 POLICY_FORM_NXDOMAIN);
	struct policy_outcome o = fixture_outcome(&f, 0, "f.test", 1, 0);
	assert_int_equal(o.action, POLICY_REWRITE);
	name_format(o.answer->target.wire, name);
	assert_string_equal(name, "g.test.");
	fixture_end(&f);
}

/* RFC 8020: NXDOMAIN must not take away what is not blocked. */
static void test_exact_and_allowed_below(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		unsigned feeds;
		unsigned labels;
		bool exact, below;
	} rows[] = {
		{"exact.test", 0, 2, true, false},
		{"tree.test", 0, 2, false, false},
		{"a.tree.test", 0, 2, false, false},
		{"parent.test", 0, 2, false, true}, /* api.parent.test is allowed */
		{"deep.parent.test", 0, 2, false, false},
		{"stars.test", 0, 2, false, true}, /* *.stars.test is allowed */
		{"late.test", 0, 2, false, false}, /* allowed only after the block */
		{"moved.test", 0, 2, false, true}, /* www.moved.test is rewritten */
		{"onlyallow.test", BIT(FEED_ADS), 2, false, true},
		{"test", BIT(FEED_ADS), 1, false, true},
	};
	struct fixture f;
	fixture_policy(&f, "rules:\n"
			   "  - allow: [api.parent.test, \"*.stars.test\", \"=x.onlyallow.test\"]\n"
			   "  - rewrite: {names: [\"=www.moved.test\"], to: other.test}\n"
			   "  - block: [\"=exact.test\", tree.test, parent.test, \"=stars.test\", "
			   "stars.test, late.test, moved.test]\n"
			   "  - allow: [ok.late.test]\n"
			   "  - block: {feeds: [ads]}\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy_outcome o = fixture_outcome(&f, 0, rows[i].name, 1, rows[i].feeds);
		if (o.match_exact != rows[i].exact || o.allow_below != rows[i].below)
			print_error("%s: exact %d, below %d\n", rows[i].name, o.match_exact,
				    o.allow_below);
		assert_int_equal(o.action, POLICY_BLOCK);
		assert_int_equal(o.match_labels, rows[i].labels);
		assert_int_equal(o.match_exact, rows[i].exact);
		assert_int_equal(o.allow_below, rows[i].below);
	}
	fixture_end(&f);
}

/* A set of three names: ads lists one alone, tracking the same one and all below another. */
struct listed {
	const char *name;
	struct domset_entry entries[2];
	size_t count;
};
static const struct listed listed[] = {
	{"both.test", {{0, DOMSET_EXACT}, {1, DOMSET_SUBTREE}}, 2},
	{"exact.test", {{0, DOMSET_EXACT}}, 1},
	{"tree.test", {{1, DOMSET_SUBTREE}}, 1},
};
static struct {
	size_t at;
	uint8_t key[KEY_MAX];
} listed_stream;

static int listed_next(void *context, struct domset_record *out)
{
	struct name name;
	(void)context;
	if (listed_stream.at == sizeof(listed) / sizeof(listed[0]))
		return 0;
	const struct listed *l = &listed[listed_stream.at++];
	assert_int_equal(name_parse(l->name, strlen(l->name), &name), 0);
	out->key = listed_stream.key;
	out->key_length = key_from_wire(name.wire, name.length, name.labels, listed_stream.key);
	out->entries = l->entries;
	out->count = l->count;
	return 1;
}

static int listed_rewind(void *context)
{
	(void)context;
	listed_stream.at = 0;
	return 0;
}

static void test_entries_of_a_set(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		unsigned feed, labels;
		bool exact;
	} rows[] = {
		{"exact.test", FEED_ADS, 2, true},
		{"tree.test", FEED_TRACKING, 2, false},
		{"a.b.tree.test", FEED_TRACKING, 2, false},
		/* One list takes the name alone, another all below: the wider one is the reason. */
		{"both.test", FEED_TRACKING, 2, false},
		{"www.both.test", FEED_TRACKING, 2, false},
	};
	static const char *const names[] = {"ads", "tracking"};
	struct domset_build options = {.feed_names = names, .feed_count = 2};
	struct domset_stream stream = {.next = listed_next, .rewind = listed_rewind};
	struct domset *set;
	struct fixture f;
	char path[128], error[DOMSET_ERROR_MAX];
	fixture_policy(&f, "rules:\n  - block: {feeds: all}\n");
	snprintf(path, sizeof(path), "%s/set.mdb", f.folder);
	assert_int_equal(domset_build(path, &options, &stream, NULL), 0);
	assert_int_equal(domset_open(path, DOMSET_CHECK_ALL, &set, error), 0);
	assert_int_equal(domset_bind(set, &f.feeds), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture_ask a;
		struct policy_outcome o;
		fixture_ask(&a, rows[i].name, 1, 0, 0);
		domset_lookup(set, a.name.wire, a.name.length, a.name.labels, &a.feeds);
		a.q.set = set;
		policy_question(f.policy, 0, &a.q, &o);
		assert_int_equal(o.action, POLICY_BLOCK);
		assert_int_equal(o.feed, rows[i].feed);
		assert_int_equal(o.match_labels, rows[i].labels);
		assert_int_equal(o.match_exact, rows[i].exact);
		assert_string_equal(o.category, fixture_feeds[rows[i].feed].category);
	}
	domset_close(set);
	fixture_end(&f);
}

static void test_addresses_of_answers(void **state)
{
	(void)state;
	static const struct {
		const char *name, *address;
		enum policy_action action;
		int line;
	} rows[] = {
		{"x.test", "203.0.113.7", POLICY_BLOCK, 4},
		{"x.test", "203.0.114.7", POLICY_PASS, 0},
		{"lab.test", "203.0.113.7", POLICY_ALLOW, 3},
		{"x.test", "2001:db8:1::5", POLICY_BLOCK, 4},
		{"x.test", "2001:db8:2::5", POLICY_PASS, 0},
		{"w.test", "192.0.2.1", POLICY_BLOCK, 5},
		{"v.test", "192.0.2.1", POLICY_PASS, 0},
	};
	struct fixture f;
	fixture_policy(&f, "rules:\n"
			   "  - block: [q.test]\n"
			   "  - allow: {names: [lab.test], answers: [203.0.113.0/24]}\n"
			   "  - block: {answers: [203.0.113.0/24, \"2001:db8:1::/48\"]}\n"
			   "  - block: {names: [w.test], answers: 192.0.2.1}\n"
			   "  - monitor: {answers: [0.0.0.0/0]}\n");
	assert_true(policy_has_answer_rules(f.policy, 0));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture_ask a;
		struct policy_outcome o;
		struct addr address;
		fixture_ask(&a, rows[i].name, 1, 0, 0);
		assert_int_equal(addr_parse(rows[i].address, &address), 0);
		policy_address(f.policy, 0, &a.q, &address, &o);
		assert_int_equal(o.action, rows[i].action);
		assert_int_equal(o.rule == POLICY_RULE_NONE
					 ? 0
					 : policy_rule_place(f.policy, o.rule)->line,
				 rows[i].line);
		/* Rules over answers say nothing about questions. */
		policy_question(f.policy, 0, &a.q, &o);
		assert_int_equal(o.action, POLICY_PASS);
		assert_int_equal(o.monitored_count, 0);
	}
	fixture_end(&f);
}

static void load_several(struct fixture *f)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/policies", f->folder);
	fixture_load(f, path);
}

static uint32_t group_at(const struct fixture *f, const char *address, const char *mac,
			 const char *listener)
{
	struct policy_client c = {.mac = (const uint8_t *)mac, .listener = listener};
	assert_int_equal(addr_parse(address, &c.addr), 0);
	return policy_group_of(f->policy, &c);
}

static void test_who_belongs_where(void **state)
{
	(void)state;
	struct fixture f;
	fixture_begin(&f);
	fixture_file(&f, "a.yaml", "group: wide\nclients: [10.0.0.0/8, \"2001:db8::/32\"]\n");
	fixture_file(&f, "b.yaml", "group: narrow\nclients: [10.20.0.0/16, 10.20.1.0/24]\n");
	fixture_file(
		&f, "c.yaml",
		"group: one\nclients: [10.20.1.7, \"mac:AA:bb:cc:dd:ee:ff\", \"listener:lab\"]\n");
	load_several(&f);
	assert_int_equal(f.result, 0);
	assert_int_equal(policy_group_count(f.policy), 4);
	uint32_t wide = policy_group_find(f.policy, "wide");
	uint32_t narrow = policy_group_find(f.policy, "narrow");
	uint32_t one = policy_group_find(f.policy, "one");
	assert_int_equal(policy_group_find(f.policy, "none"), UINT32_MAX);
	assert_int_equal(policy_group_find(f.policy, "default"), POLICY_GROUP_DEFAULT);
	assert_string_equal(policy_group_file(f.policy, narrow), "policies/b.yaml");
	assert_null(policy_group_file(f.policy, POLICY_GROUP_DEFAULT));
	assert_int_equal(group_at(&f, "10.1.1.1", NULL, NULL), wide);
	assert_int_equal(group_at(&f, "::ffff:10.1.1.1", NULL, NULL), wide);
	assert_int_equal(group_at(&f, "2001:db8:5::1", NULL, NULL), wide);
	assert_int_equal(group_at(&f, "10.20.9.1", NULL, NULL), narrow);
	assert_int_equal(group_at(&f, "10.20.1.8", NULL, NULL), narrow);
	assert_int_equal(group_at(&f, "10.20.1.7", NULL, NULL), one);
	assert_int_equal(group_at(&f, "192.0.2.1", NULL, NULL), POLICY_GROUP_DEFAULT);
	/* The MAC is asked first, the listener last. */
	assert_int_equal(group_at(&f, "10.1.1.1", "\xaa\xbb\xcc\xdd\xee\xff", NULL), one);
	assert_int_equal(group_at(&f, "10.1.1.1", "\xaa\xbb\xcc\xdd\xee\xfe", NULL), wide);
	assert_int_equal(group_at(&f, "10.1.1.1", NULL, "lab"), wide);
	assert_int_equal(group_at(&f, "192.0.2.1", NULL, "lab"), one);
	assert_int_equal(group_at(&f, "192.0.2.1", NULL, "other"), POLICY_GROUP_DEFAULT);
	char text[ADDR_TEXT_MAX];
	struct policy_client c = {.listener = "lab"};
	assert_int_equal(addr_parse("10.20.1.8", &c.addr), 0);
	assert_string_equal(policy_group_why(f.policy, &c, text), "10.20.1.0/24");
	assert_int_equal(addr_parse("192.0.2.1", &c.addr), 0);
	assert_string_equal(policy_group_why(f.policy, &c, text), "listener:lab");
	c.listener = NULL;
	assert_null(policy_group_why(f.policy, &c, text));
	fixture_end(&f);
}

static void test_extends(void **state)
{
	(void)state;
	struct fixture f;
	fixture_begin(&f);
	fixture_file(&f, "base.yaml",
		     "group: base\nextends: default\nrules:\n"
		     "  - block: [shop.test, game.test]\n"
		     "  - allow: [ok.ads.test]\n");
	fixture_file(&f, "staff.yaml",
		     "group: staff\nextends: base\nrules:\n"
		     "  - allow: [shop.test, \"=api.game.test\"]\n"
		     "plugins:\n"
		     "  ratelimit: {queries-per-second: 20}\n"
		     "  threatfeed: off\n");
	load_several(&f);
	assert_int_equal(f.result, 0);
	uint32_t staff = policy_group_find(f.policy, "staff");
	uint32_t base = policy_group_find(f.policy, "base");
	assert_int_equal(fixture_outcome(&f, staff, "shop.test", 1, 0).action, POLICY_ALLOW);
	assert_int_equal(fixture_outcome(&f, base, "shop.test", 1, 0).action, POLICY_BLOCK);
	struct policy_outcome o = fixture_outcome(&f, staff, "game.test", 1, 0);
	assert_int_equal(o.action, POLICY_BLOCK);
	assert_true(o.allow_below); /* api.game.test, in the file that extends */
	assert_string_equal(policy_rule_place(f.policy, o.rule)->file, "policies/base.yaml");
	assert_false(fixture_outcome(&f, base, "game.test", 1, 0).allow_below);
	/* The last of the line is the built-in rule. */
	o = fixture_outcome(&f, staff, "x.test", 1, BIT(FEED_ADS));
	assert_int_equal(o.action, POLICY_BLOCK);
	assert_string_equal(policy_rule_place(f.policy, o.rule)->text,
			    "built-in: block feeds: all");
	assert_string_equal(policy_rule_place(f.policy, o.rule)->file, "built-in");
	assert_string_equal(o.category, "advertising");
	assert_int_equal(fixture_outcome(&f, staff, "ok.ads.test", 1, BIT(FEED_ADS)).action,
			 POLICY_ALLOW);
	assert_int_equal(fixture_outcome(&f, staff, "x.test", 1, BIT(FEED_C2)).action, POLICY_PASS);
	bool off;
	const struct node *n = policy_group_options(f.policy, staff, "ratelimit", &off);
	assert_non_null(n);
	assert_false(off);
	assert_string_equal(node_get(n, "queries-per-second")->text, "20");
	assert_null(policy_group_options(f.policy, staff, "threatfeed", &off));
	assert_true(off);
	assert_null(policy_group_options(f.policy, base, "threatfeed", &off));
	assert_false(off);
	fixture_end(&f);
}

static void test_without_any_policy(void **state)
{
	(void)state;
	struct fixture f;
	fixture_begin(&f);
	fixture_load(&f, NULL);
	assert_int_equal(f.result, 0);
	assert_int_equal(policy_group_count(f.policy), 1);
	assert_int_equal(fixture_outcome(&f, 0, "x.test", 1, BIT(FEED_OURS)).action, POLICY_BLOCK);
	assert_int_equal(fixture_outcome(&f, 0, "x.test", 1, BIT(FEED_NEW)).action, POLICY_PASS);
	assert_int_equal(fixture_outcome(&f, 0, "x.test", 1, BIT(FEED_C2)).action, POLICY_PASS);
	assert_int_equal(fixture_outcome(&f, 0, "x.test", 1, 0).action, POLICY_PASS);
	assert_false(policy_has_answer_rules(f.policy, 0));
	fixture_end(&f);
}

struct traced {
	char lines[1024];
	const struct policy *policy;
};

static void on_rule(void *context, uint32_t rule, bool matches, const char *why)
{
	struct traced *t = context;
	size_t n = strlen(t->lines);
	snprintf(t->lines + n, sizeof(t->lines) - n, "%d %s %s\n",
		 policy_rule_place(t->policy, rule)->line, matches ? "yes" : "no", why);
}

static void test_trace(void **state)
{
	(void)state;
	struct fixture f;
	struct fixture_ask a;
	fixture_policy(&f, "rules:\n"
			   "  - allow: [\"=other.test\", a.test]\n"
			   "  - block: [\"*.x.test\"]\n"
			   "  - block: {feeds: [ads, ours]}\n"
			   "  - {block: {names: [test], types: [AAAA]}}\n"
			   "  - {block: [test], when: {days: sun, timezone: UTC}}\n"
			   "  - {block: {names: [test], types: [A]}, until: 2026-01-01}\n"
			   "  - block: {answers: [192.0.2.0/24]}\n"
			   "  - block: {feeds: [new]}\n");
	struct traced t = {.policy = f.policy};
	fixture_ask(&a, "b.x.test", 1, BIT(FEED_OURS), 1772445600);
	policy_trace_question(f.policy, 0, &a.q, on_rule, &t);
	assert_string_equal(t.lines, "2 no names: none of 2 covers it\n"
				     "3 yes names: *.x.test\n"
				     "4 yes feeds: ours (subtree b.x.test)\n"
				     "5 no types: not for A\n"
				     "6 no when: outside sun 00:00-24:00 UTC\n"
				     "7 no until: over since 2026-01-02T00:00Z\n"
				     "8 no answers: looked at once the answer is there\n"
				     "9 no feeds: there is no such feed that enforces\n");
	const struct policy_rule_place *place = policy_rule_place(f.policy, 4);
	assert_string_equal(place->text, "block: [test], when: {days: sun, timezone: UTC}");
	assert_int_equal(place->action, POLICY_BLOCK);
	fixture_end(&f);
}

static void test_tests_of_a_file(void **state)
{
	(void)state;
	struct fixture f;
	fixture_begin(&f);
	fixture_file(
		&f, "staff.yaml",
		"group: staff\n"
		"clients: [10.20.0.0/16]\n"
		"tests:\n"
		"  - {query: \"Bad.Example AAAA\", client: 10.20.1.1, expect: block}\n"
		"  - {query: shop.test, answer: [\"shop.test CNAME t.test\"], expect: allow, at: "
		"\"2026-03-02T10:00:00+01:00\"}\n");
	load_several(&f);
	diag_print(&f.diags, stderr);
	assert_int_equal(f.result, 0);
	assert_int_equal(policy_test_count(f.policy), 2);
	const struct policy_test *t = policy_test(f.policy, 0);
	char text[ADDR_TEXT_MAX], name[NAME_TEXT_MAX];
	name_format(t->name.wire, name);
	assert_string_equal(name, "bad.example.");
	assert_int_equal(t->type, TYPE_AAAA);
	assert_string_equal(t->expect, "block");
	assert_string_equal(t->file, "policies/staff.yaml");
	assert_int_equal(t->line, 4);
	assert_int_equal(t->group, policy_group_find(f.policy, "staff"));
	assert_false(t->has_time);
	assert_null(t->answers[0]);
	assert_string_equal(t->text,
			    "{query: \"Bad.Example AAAA\", client: 10.20.1.1, expect: block}");
	t = policy_test(f.policy, 1);
	assert_int_equal(t->type, TYPE_A);
	assert_true(t->has_time);
	assert_int_equal(t->wall_s, 1772442000);
	assert_string_equal(t->answers[0], "shop.test CNAME t.test");
	assert_null(t->answers[1]);
	assert_string_equal(addr_format(&t->client, text), "10.20.0.0");
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_match_at_label_borders),
		cmocka_unit_test(test_the_first_rule_that_matches_decides),
		cmocka_unit_test(test_what_is_asked_of_feeds),
		cmocka_unit_test(test_conditions_are_anded),
		cmocka_unit_test(test_monitor_records_and_goes_on),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_exact_and_allowed_below),
		cmocka_unit_test(test_entries_of_a_set),
		cmocka_unit_test(test_addresses_of_answers),
		cmocka_unit_test(test_who_belongs_where),
		cmocka_unit_test(test_extends),
		cmocka_unit_test(test_without_any_policy),
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_tests_of_a_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
