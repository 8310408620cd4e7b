/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is allowed but probably not meant: rules and names that an earlier rule always decides,
 * rules that are looked at in another order than they are written, words that no feed has,
 * exceptions that are over. Runs in check and before a reload. Invariant: a warning is only given
 * where it is certain; a rule that might be reached is not called unreachable.
 */
#include "policies/policy_internal.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

struct policy_lint {
	const struct policy *p;
	struct diags *d;
};

/* ---- who is in front of whom ---- */

/* Does one of `a`'s names cover all that `n` covers? The tables know. */
static bool policy_covers_name(const struct policy *p, const struct policy_group *g,
			       const struct policy_rule *a, const struct policy_name *n)
{
	struct policy_question q = {.name = n->wire, .length = n->length, .labels = n->labels};
	struct policy_walk w;
	uint8_t covers = 0;
	policy_walk_begin(&w, p, &q);
	/* The name itself, by a SELF or by a BELOW of an ancestor... */
	int labels = policy_name_hit(&w, g, a, &covers);
	bool self = labels >= 0;
	/* ... and what is under it, by a BELOW at it or at an ancestor: ask for a name there. */
	bool below = false;
	if (n->covers & POLICY_BELOW) {
		uint8_t under[NAME_WIRE_MAX + 2] = {1, '*'};
		if (n->length + 2u > NAME_WIRE_MAX || n->labels + 1u > NAME_LABELS_MAX)
			return false;
		memcpy(under + 2, n->wire, n->length);
		struct policy_question below_q = {.name = under,
						  .length = (uint8_t)(n->length + 2),
						  .labels = (uint8_t)(n->labels + 1)};
		policy_walk_begin(&w, p, &below_q);
		/* A label `*` of its own would answer for itself only; patterns cannot hold one. */
		below = policy_name_hit(&w, g, a, &covers) >= 0;
	}
	return (!(n->covers & POLICY_SELF) || self) && (!(n->covers & POLICY_BELOW) || below);
}

static bool policy_covers_types(const struct policy_rule *a, const struct policy_rule *b)
{
	if (a->type_count == 0)
		return true;
	if (b->type_count == 0)
		return false;
	for (size_t i = 0; i < b->type_count; i++)
		if (!policy_type_matches(a, b->types[i]))
			return false;
	return true;
}

static bool policy_covers_feeds(const struct policy_rule *a, const struct policy_rule *b)
{
	if (!a->has_feeds)
		return true;
	if (!b->has_feeds || !feedmask_any(&b->feeds))
		return false;
	for (size_t i = 0; i < FEEDS_MAX / 64; i++)
		if (b->feeds.words[i] & ~a->feeds.words[i])
			return false;
	return true;
}

/* Apart from names: does `a` decide, at all times, whatever `b` could match? */
static bool policy_stands_before(const struct policy_rule *a, const struct policy_rule *b)
{
	return a->action != POLICY_MONITOR && a->action != POLICY_REWRITE && !a->when &&
	       a->until_s == POLICY_NEVER && !a->has_answers && !b->has_answers &&
	       policy_covers_types(a, b) && policy_covers_feeds(a, b);
}

static void policy_lint_reach(const struct policy_lint *l, const struct policy_group *g,
			      const struct policy_rule *b)
{
	const struct policy_rule *by = NULL; /* of the last name that is taken */
	size_t taken = 0;
	for (const struct policy_rule *a = g->rules; a < b; a++) {
		if (!policy_stands_before(a, b))
			continue;
		if (!a->has_names) {
			node_warning(b->node, l->d,
				     "this rule is never reached: the rule of line %d "
				     "decides first",
				     a->node->line);
			return;
		}
	}
	for (size_t i = 0; i < b->name_count; i++)
		for (const struct policy_rule *a = g->rules; a < b; a++)
			if (policy_stands_before(a, b) &&
			    policy_covers_name(l->p, g, a, &b->names[i])) {
				taken++;
				by = a;
				break;
			}
	if (by && taken == b->name_count) {
		node_warning(b->node, l->d,
			     "this rule is never reached: the rule of line %d decides first",
			     by->node->line);
		return;
	}
	for (size_t i = 0; taken > 0 && i < b->name_count; i++)
		for (const struct policy_rule *a = g->rules; a < b; a++)
			if (policy_stands_before(a, b) && a->action != b->action &&
			    policy_covers_name(l->p, g, a, &b->names[i])) {
				node_warning(b->names[i].node, l->d,
					     "\"%s\" is never reached here: the rule of line %d "
					     "decides first",
					     b->names[i].node->text, a->node->line);
				break;
			}
	/* A catch-all in front takes rules without names, too. */
	for (const struct policy_rule *a = g->rules; !b->has_names && a < b; a++) {
		static const uint8_t root[] = {0};
		struct policy_name all = {.wire = root,
					  .length = 1,
					  .labels = 0,
					  .covers = POLICY_BELOW};
		if (policy_stands_before(a, b) && policy_covers_name(l->p, g, a, &all)) {
			node_warning(b->node, l->d,
				     "this rule is never reached: the rule of line %d "
				     "decides first",
				     a->node->line);
			return;
		}
	}
}

/* ---- order, words, ends ---- */

static void policy_lint_order(const struct policy_lint *l, const struct policy_group *g)
{
	const struct policy_rule *last = NULL;
	for (size_t i = 0; i < g->rule_count; i++)
		if (!g->rules[i].has_answers && g->rules[i].action != POLICY_MONITOR)
			last = &g->rules[i];
	for (size_t i = 0; last && i < g->rule_count; i++) {
		const struct policy_rule *r = &g->rules[i];
		if (r->has_answers && r < last && r->action != POLICY_MONITOR)
			node_warning(r->node, l->d,
				     "this rule over answers is looked at after all rules over "
				     "questions (write it below line %d, where it stands in truth)",
				     last->node->line);
	}
}

/* Every text of `condition` that no feed has. */
static void policy_lint_words(const struct policy_lint *l, const struct node *condition,
			      bool category)
{
	const struct feeds *feeds = l->p->feeds;
	const char *words[FEEDS_MAX + 1];
	size_t count = 0;
	if (!condition)
		return;
	for (size_t i = 0; i < feeds->count; i++) {
		const char *word =
			category ? feeds->items[i].category : feeds->items[i].threat_type;
		if (word && word[0])
			words[count++] = word;
	}
	words[count] = NULL;
	const struct node *item = condition->kind == NODE_LIST ? condition->children : condition;
	for (; item; item = condition->kind == NODE_LIST ? item->next : NULL) {
		bool known = item->kind != NODE_SCALAR;
		for (size_t i = 0; !known && i < count; i++)
			known = strcmp(words[i], item->text) == 0;
		if (known)
			continue;
		const char *near = node_nearest(item->text, words);
		node_warning(item, l->d, "no feed has the %s \"%s\"%s%s%s",
			     category ? "category" : "threat type", item->text,
			     near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
	}
}

static void policy_lint_feeds(const struct policy_lint *l, const struct policy_rule *r,
			      const struct node *condition)
{
	const struct node *names = node_get(condition, "feeds");
	policy_lint_words(l, node_get(condition, "categories"), true);
	policy_lint_words(l, node_get(condition, "threat-type"), false);
	for (const struct node *n = names && names->kind == NODE_LIST ? names->children : names; n;
	     n = names->kind == NODE_LIST ? n->next : NULL) {
		const struct feed *f = feeds_find(l->p->feeds, n->text);
		if (f && f->mode == FEED_MODE_SHADOW)
			node_warning(n, l->d,
				     "feed \"%s\" is in shadow: no rule matches it until it "
				     "is promoted",
				     f->name);
	}
	if (!feedmask_any(&r->feeds))
		node_warning(condition, l->d,
			     "no feed that enforces fits this: the rule never "
			     "matches");
}

static void policy_lint_rule(const struct policy_lint *l, const struct policy_rule *r,
			     int64_t now_s)
{
	static const char *const actions[] = {"allow", "block", "monitor", "rewrite"};
	for (size_t i = 0; r->has_feeds && i < sizeof(actions) / sizeof(actions[0]); i++) {
		const struct node *condition = node_get(r->node, actions[i]);
		if (condition)
			policy_lint_feeds(l, r, condition);
	}
	if (now_s >= r->until_s)
		node_warning(node_get(r->node, "until"), l->d,
			     "this rule is over and never matches");
}

void policy_lint(const struct policy *p, struct diags *d)
{
	struct policy_lint l = {.p = p, .d = d};
	int64_t now_s = clock_wall_us() / 1000000;
	for (size_t i = 0; i < p->group_count; i++) {
		const struct policy_group *g = &p->groups[i];
		if (!g->root)
			continue;
		if (g->rule_count == 0 && !g->extends)
			node_warning(g->root, d,
				     "group \"%s\" has no rules: no list blocks anything "
				     "for it",
				     g->name);
		for (size_t k = 0; k < g->rule_count; k++) {
			policy_lint_rule(&l, &g->rules[k], now_s);
			policy_lint_reach(&l, g, &g->rules[k]);
		}
		policy_lint_order(&l, g);
	}
}
