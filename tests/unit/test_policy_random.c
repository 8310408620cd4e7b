/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled tables equal plain reading: random policies of several files that extend one
 * another, random questions, against an interpreter that goes through the rules one by one and
 * knows no tables. Also prints what a question costs.
 */
#include "policy_fixture.h"

#include "base/message.h"

#include <time.h>

#define FILES	  4
#define RULES	  12
#define NAMES	  5
#define ROUNDS	  250
#define QUESTIONS 300

static uint64_t seed;

static unsigned roll(unsigned sides)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 20) % sides;
}

/* What the interpreter knows of a rule: as written. */
struct plain_name {
	char text[64]; /* without = and *. */
	char kind;     /* '=', '*' or ' ' */
};
struct plain_rule {
	enum policy_action action;
	unsigned name_count, type_count;
	struct plain_name names[NAMES];
	bool has_feeds, has_answers;
	unsigned feeds; /* mask, shadow feeds left out */
	uint16_t types[3];
	const char *prefix;
	int line;
};
struct plain_file {
	struct plain_rule rules[RULES];
	unsigned count;
	int extends; /* -1: none */
};

static const char *const prefixes[] = {"10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24", "2001:db8::/32",
				       "0.0.0.0/0"};
static const char *const feed_words[] = {"ads", "tracking", "ours", "c2", "new"};
static const uint16_t type_numbers[] = {TYPE_A, TYPE_AAAA, TYPE_TXT, 65280};
static const char *const type_words[] = {"A", "AAAA", "TXT", "TYPE65280"};

/* Few labels, so that names meet; up to four of them. */
static void random_name(char out[64])
{
	static const char *const labels[] = {"a", "b", "ab", "c-d", "x_y"};
	unsigned n = 1 + roll(4);
	out[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		if (i)
			strcat(out, ".");
		strcat(out, labels[roll(5)]);
	}
	if (roll(40) == 0)
		strcpy(out, ".");
}

static void random_rule(struct plain_rule *r, FILE *out, int line)
{
	static const char *const words[] = {"", "allow", "block", "monitor", "rewrite"};
	memset(r, 0, sizeof(*r));
	r->line = line;
	r->action = POLICY_ALLOW + roll(4);
	fprintf(out, "  - %s: {", words[r->action]);
	const char *comma = "";
	unsigned what = 1 + roll(15);
	if (what & 1) {
		r->name_count = 1 + roll(NAMES);
		fprintf(out, "names: [");
		for (unsigned i = 0; i < r->name_count; i++) {
			struct plain_name *n = &r->names[i];
			random_name(n->text);
			n->kind = "=* "[roll(3)];
			fprintf(out, "%s\"%s%s\"", i ? ", " : "",
				n->kind == '='	 ? "="
				: n->kind == '*' ? "*."
						 : "",
				n->kind == '*' && strcmp(n->text, ".") == 0 ? "" : n->text);
		}
		fprintf(out, "]");
		comma = ", ";
	}
	if (what & 2) {
		r->has_feeds = true;
		fprintf(out, "%sfeeds: [", comma);
		unsigned count = 1 + roll(3);
		for (unsigned i = 0; i < count; i++) {
			unsigned feed = roll(FIXTURE_FEEDS);
			fprintf(out, "%s%s", i ? ", " : "", feed_words[feed]);
			if (feed != FEED_NEW)
				r->feeds |= 1u << feed;
		}
		fprintf(out, "]");
		comma = ", ";
	}
	if (what & 4) {
		r->type_count = 1 + roll(3);
		fprintf(out, "%stypes: [", comma);
		for (unsigned i = 0; i < r->type_count; i++) {
			unsigned type = roll(4);
			r->types[i] = type_numbers[type];
			fprintf(out, "%s%s", i ? ", " : "", type_words[type]);
		}
		fprintf(out, "]");
		comma = ", ";
	}
	if ((what & 8 && r->action != POLICY_REWRITE && roll(2)) || what == 8) {
		if (r->action == POLICY_REWRITE) {
			fprintf(out, "types: [A]");
			r->type_count = 1;
			r->types[0] = TYPE_A;
		} else {
			r->has_answers = true;
			r->prefix = prefixes[roll(5)];
			fprintf(out, "%sanswers: [\"%s\"]", comma, r->prefix);
		}
		comma = ", ";
	}
	if (r->action == POLICY_REWRITE)
		fprintf(out, "%sto: safe.example", comma);
	fprintf(out, "}\n");
}

/* ---- the interpreter: texts and loops ---- */

static bool plain_covers(const struct plain_name *n, const char *asked)
{
	if (strcmp(n->text, ".") == 0)
		return n->kind == '=' ? strcmp(asked, ".") == 0
				      : n->kind == ' ' || strcmp(asked, ".") != 0;
	size_t a = strlen(asked), b = strlen(n->text);
	bool self = strcmp(asked, n->text) == 0;
	bool below = a > b && strcmp(asked + a - b, n->text) == 0 && asked[a - b - 1] == '.';
	return n->kind == '=' ? self : n->kind == '*' ? below : self || below;
}

static bool plain_matches(const struct plain_rule *r, const char *asked, uint16_t type,
			  unsigned feeds)
{
	bool name = r->name_count == 0, typed = r->type_count == 0;
	for (unsigned i = 0; i < r->name_count; i++)
		name |= plain_covers(&r->names[i], asked);
	for (unsigned i = 0; i < r->type_count; i++)
		typed |= r->types[i] == type;
	return name && typed && (!r->has_feeds || (r->feeds & feeds));
}

/* Is some name that the rule covers strictly below the asked one? */
static bool plain_reaches_below(const struct plain_rule *r, const char *asked)
{
	for (unsigned i = 0; i < r->name_count; i++) {
		const struct plain_name *n = &r->names[i];
		struct plain_name under = {.kind = '*'};
		snprintf(under.text, sizeof(under.text), "%s", asked);
		if (plain_covers(&under, n->text) ||
		    (n->kind != '=' && strcmp(n->text, asked) == 0))
			return true;
	}
	return false;
}

struct plain_outcome {
	const struct plain_rule *rule;
	int file;
	unsigned monitored[POLICY_MONITORED_MAX], monitored_count;
	bool allow_below;
};

static struct plain_outcome plain_decide(const struct plain_file *files, int file,
					 const char *asked, uint16_t type, unsigned feeds,
					 const struct addr *address)
{
	struct plain_outcome out = {.file = -1};
	bool let_below = false;
	for (; file >= 0; file = files[file].extends)
		for (unsigned i = 0; i < files[file].count; i++) {
			const struct plain_rule *r = &files[file].rules[i];
			struct prefix p;
			if (!address && !r->has_answers &&
			    (r->action == POLICY_ALLOW || r->action == POLICY_REWRITE))
				let_below |= plain_reaches_below(r, asked);
			if (r->has_answers != (address != NULL) ||
			    !plain_matches(r, asked, type, feeds))
				continue;
			if (address &&
			    (prefix_parse(r->prefix, &p) < 0 || !prefix_contains(&p, address)))
				continue;
			if (r->action == POLICY_MONITOR) {
				if (out.monitored_count < POLICY_MONITORED_MAX)
					out.monitored[out.monitored_count++] =
						(unsigned)(file * 1000 + r->line);
				continue;
			}
			out.rule = r;
			out.file = file;
			out.allow_below = r->action == POLICY_BLOCK && !address && let_below;
			return out;
		}
	return out;
}

static void assert_same(const struct fixture *f, const struct plain_outcome *plain,
			const struct policy_outcome *o)
{
	char file[32];
	assert_int_equal(o->monitored_count, plain->monitored_count);
	for (unsigned i = 0; i < o->monitored_count; i++) {
		const struct policy_rule_place *place =
			policy_rule_place(f->policy, o->monitored[i]);
		snprintf(file, sizeof(file), "policies/g%u.yaml", plain->monitored[i] / 1000);
		assert_string_equal(place->file, file);
		assert_int_equal(place->line, plain->monitored[i] % 1000);
	}
	assert_int_equal(o->action, plain->rule ? plain->rule->action : POLICY_PASS);
	if (!plain->rule)
		return;
	const struct policy_rule_place *place = policy_rule_place(f->policy, o->rule);
	snprintf(file, sizeof(file), "policies/g%d.yaml", plain->file);
	assert_string_equal(place->file, file);
	assert_int_equal(place->line, plain->rule->line);
	assert_int_equal(o->allow_below, plain->allow_below);
}

static void write_files(struct fixture *f, struct plain_file *files)
{
	for (int i = 0; i < FILES; i++) {
		char name[32], *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);
		files[i].extends = i > 0 && roll(2) ? (int)roll((unsigned)i) : -1;
		files[i].count = roll(RULES + 1);
		fprintf(out, "group: g%d\n", i);
		if (files[i].extends >= 0)
			fprintf(out, "extends: g%d\n", files[i].extends);
		else
			fprintf(out, "\n");
		fprintf(out, files[i].count ? "rules:\n" : "rules: []\n");
		for (unsigned k = 0; k < files[i].count; k++)
			random_rule(&files[i].rules[k], out, (int)k + 4);
		fclose(out);
		snprintf(name, sizeof(name), "g%d.yaml", i);
		fixture_file(f, name, text);
		free(text);
	}
}

static void test_tables_equal_plain_reading(void **state)
{
	(void)state;
	static struct plain_file files[FILES];
	unsigned decided = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct fixture f;
		char path[128];
		seed = 0x9e3779b97f4a7c15u * (round + 1);
		fixture_begin(&f);
		write_files(&f, files);
		snprintf(path, sizeof(path), "%s/policies", f.folder);
		fixture_load(&f, path);
		if (f.result < 0)
			diag_print(&f.diags, stderr);
		assert_int_equal(f.result, 0);
		for (unsigned i = 0; i < QUESTIONS; i++) {
			char asked[64], group[8];
			struct fixture_ask a;
			struct policy_outcome o;
			struct addr address;
			int file = (int)roll(FILES);
			uint16_t type = type_numbers[roll(4)];
			unsigned feeds = roll(3) ? roll(1u << FIXTURE_FEEDS) : 0;
			random_name(asked);
			snprintf(group, sizeof(group), "g%d", file);
			uint32_t number = policy_group_find(f.policy, group);
			fixture_ask(&a, asked, type, feeds, 0);
			policy_question(f.policy, number, &a.q, &o);
			struct plain_outcome plain =
				plain_decide(files, file, asked, type, feeds, NULL);
			assert_same(&f, &plain, &o);
			decided += plain.rule != NULL;
			assert_int_equal(addr_parse(roll(2) ? "10.1.2.3" : "192.0.2.9", &address),
					 0);
			policy_address(f.policy, number, &a.q, &address, &o);
			plain = plain_decide(files, file, asked, type, feeds, &address);
			assert_same(&f, &plain, &o);
		}
		fixture_end(&f);
	}
	/* Neither all nor none: the questions do meet the rules. */
	assert_true(decided > ROUNDS * QUESTIONS / 10);
	assert_true(decided < ROUNDS * QUESTIONS * 9 / 10);
}

/* No time is asserted: the machine that tests may be busy. */
static void cost(const char *what, const char *text, const char *name, unsigned feeds)
{
	enum { TURNS = 1000000 };
	struct fixture f;
	struct fixture_ask a;
	struct policy_outcome o;
	unsigned sum = 0;
	fixture_policy(&f, text);
	fixture_ask(&a, name, TYPE_A, feeds, 1772445600);
	clock_t begin = clock();
	for (int i = 0; i < TURNS; i++) {
		policy_question(f.policy, 0, &a.q, &o);
		sum += o.action;
	}
	double ns = (double)(clock() - begin) * 1e9 / CLOCKS_PER_SEC / TURNS;
	print_message("policy: %s, %.0f ns\n", what, ns);
	assert_true(sum % TURNS == 0);
	fixture_end(&f);
}

static void test_what_it_costs(void **state)
{
	(void)state;
	cost("one rule over feeds, clean name", "rules:\n  - block: {feeds: all}\n",
	     "www.example.com", 0);
	cost("one rule over feeds, listed name", "rules:\n  - block: {feeds: all}\n",
	     "www.example.com", 1);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	fputs("rules:\n  - allow: [", out);
	for (int i = 0; i < 5000; i++)
		fprintf(out, "%sname%d.site%d.example", i ? ", " : "", i, i % 100);
	fputs("]\n", out);
	for (int i = 0; i < 100; i++)
		fprintf(out, "  - block: {names: [shop%d.example], feeds: [ads]}\n", i);
	fputs("  - block: {feeds: all}\n", out);
	fclose(out);
	cost("5,000 names and 100 rules, clean name", text, "a.b.name77777.site5.example", 0);
	cost("5,000 names and 100 rules, allowed name", text, "a.b.name505.site5.example", 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables_equal_plain_reading),
		cmocka_unit_test(test_what_it_costs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
