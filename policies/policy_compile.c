/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules into flat tables: bits by rule number, and one hash table of all names in rules. Run once
 * by the loader; the arena owns the tables. Invariant: the tables say neither more nor less than
 * the rules, tested against reading the rules one after the other
 * (tests/unit/test_policy_random.c).
 *
 * A slot stands for (group that holds the rules, suffix). Its refs say which rules name that suffix
 * and whether they cover it, what is below, or both. Ancestors of names in `allow` and `rewrite`
 * have slots too, so that a block of the ancestor can see that something below must stay reachable.
 */
#include "policies/policy_internal.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

uint64_t policy_hash(uint64_t suffix, const uint8_t *label)
{
	return hash_bytes(suffix, label, (size_t)label[0] + 1);
}

uint64_t policy_hash_group(uint64_t suffix, uint32_t group)
{
	uint64_t h = (suffix ^ group) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

/* Of a whole name: label by label, from the root. */
static uint64_t policy_hash_name(const uint8_t *wire, unsigned labels)
{
	uint8_t offsets[NAME_LABELS_MAX + 1];
	uint64_t h = 0;
	size_t at = 0;
	for (unsigned i = 0; i < labels; i++) {
		offsets[i] = (uint8_t)at;
		at += (size_t)wire[at] + 1;
	}
	for (unsigned i = labels; i > 0; i--)
		h = policy_hash(h, wire + offsets[i - 1]);
	return h;
}

const struct policy_slot *policy_slot_find(const struct policy *p, uint32_t group, uint64_t hash,
					   const uint8_t *wire, uint8_t length)
{
	if (!p->slots)
		return NULL;
	for (size_t i = hash & p->slot_mask;; i = (i + 1) & p->slot_mask) {
		const struct policy_slot *s = &p->slots[i];
		if (!s->wire)
			return NULL;
		if (s->hash == hash && s->group == group && s->length == length &&
		    memcmp(s->wire, wire, length) == 0)
			return s;
	}
}

/* ---- the names ---- */

struct policy_pair {
	uint32_t group;
	uint16_t rule;
	const struct policy_name *name;
};

static int policy_pair_order(const void *a, const void *b)
{
	const struct policy_pair *x = a, *y = b;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->name->length != y->name->length)
		return (int)x->name->length - (int)y->name->length;
	int c = memcmp(x->name->wire, y->name->wire, x->name->length);
	return c ? c : (int)x->rule - (int)y->rule;
}

static struct policy_slot *policy_slot_make(struct policy *p, uint32_t group, const uint8_t *wire,
					    unsigned length, unsigned labels)
{
	uint64_t hash = policy_hash_group(policy_hash_name(wire, labels), group);
	size_t i = hash & p->slot_mask;
	for (; p->slots[i].wire; i = (i + 1) & p->slot_mask) {
		struct policy_slot *s = &p->slots[i];
		if (s->hash == hash && s->group == group && s->length == length &&
		    memcmp(s->wire, wire, length) == 0)
			return s;
	}
	p->slots[i] = (struct policy_slot){.hash = hash,
					   .wire = wire,
					   .group = group,
					   .allow_below = UINT16_MAX,
					   .length = (uint8_t)length,
					   .labels = (uint8_t)labels};
	return &p->slots[i];
}

static bool policy_lets_through(const struct policy_rule *r)
{
	return (r->action == POLICY_ALLOW || r->action == POLICY_REWRITE) && !r->has_answers;
}

/* Tell the ancestors of a name that is let through (and itself, if it means what is below). */
static void policy_mark_ancestors(struct policy *p, const struct policy_pair *pair)
{
	const struct policy_name *n = pair->name;
	size_t at = 0;
	for (unsigned labels = n->labels;; labels--) {
		if (at > 0 || n->covers & POLICY_BELOW) {
			struct policy_slot *s = policy_slot_make(p, pair->group, n->wire + at,
								 n->length - at, labels);
			if (pair->rule < s->allow_below)
				s->allow_below = pair->rule;
		}
		if (labels == 0)
			break;
		at += (size_t)n->wire[at] + 1;
	}
}

static void policy_compile_names(struct policy_loader *l)
{
	struct policy *p = l->policy;
	size_t count = 0, slots = 0;
	for (size_t g = 0; g < p->group_count; g++)
		for (size_t r = 0; r < p->groups[g].rule_count; r++) {
			const struct policy_rule *rule = &p->groups[g].rules[r];
			count += rule->name_count;
			for (size_t i = 0; i < rule->name_count; i++)
				slots += policy_lets_through(rule) ? rule->names[i].labels + 1u : 1;
		}
	if (count == 0)
		return;
	struct policy_pair *pairs = arena_alloc(l->arena, count * sizeof(*pairs));
	size_t at = 0;
	for (size_t g = 0; g < p->group_count; g++)
		for (size_t r = 0; r < p->groups[g].rule_count; r++)
			for (size_t i = 0; i < p->groups[g].rules[r].name_count; i++)
				pairs[at++] = (struct policy_pair){
					.group = (uint32_t)g,
					.rule = (uint16_t)r,
					.name = &p->groups[g].rules[r].names[i]};
	qsort(pairs, count, sizeof(*pairs), policy_pair_order);

	size_t room = 4;
	while (room < 2 * slots)
		room *= 2;
	p->slots = arena_alloc(l->arena, room * sizeof(*p->slots));
	p->slot_mask = room - 1;
	p->refs = arena_alloc(l->arena, count * sizeof(*p->refs));
	uint32_t used = 0;
	for (size_t i = 0; i < count; i++) {
		const struct policy_name *n = pairs[i].name;
		struct policy_slot *s =
			policy_slot_make(p, pairs[i].group, n->wire, n->length, n->labels);
		if (s->count == 0)
			s->first = used;
		if (s->count > 0 && p->refs[used - 1].rule == pairs[i].rule) {
			p->refs[used - 1].covers |= n->covers;
		} else {
			p->refs[used++] = (struct policy_ref){pairs[i].rule, n->covers};
			s->count++;
		}
		if (policy_lets_through(&p->groups[pairs[i].group].rules[pairs[i].rule]))
			policy_mark_ancestors(p, &pairs[i]);
	}
}

/* ---- the bits ---- */

static void policy_set(uint64_t *bits, size_t i)
{
	bits[i / 64] |= (uint64_t)1 << i % 64;
}

static void policy_compile_group(struct policy_loader *l, struct policy_group *g)
{
	g->words = (g->rule_count + 63) / 64;
	uint64_t *bits = arena_alloc(l->arena, 4 * g->words * sizeof(*bits));
	g->question = bits;
	g->answer = bits + g->words;
	g->needs_names = bits + 2 * g->words;
	g->needs_feeds = bits + 3 * g->words;
	for (size_t i = 0; i < g->rule_count; i++) {
		const struct policy_rule *r = &g->rules[i];
		policy_set(r->has_answers ? g->answer : g->question, i);
		if (r->has_names)
			policy_set(g->needs_names, i);
		if (r->has_feeds)
			policy_set(g->needs_feeds, i);
		if (!r->has_names && !r->has_feeds)
			*(r->has_answers ? &g->free_answer : &g->free) = true;
		g->has_answer_rules |= r->has_answers;
		g->lets_through |= r->has_names && policy_lets_through(r);
		for (size_t w = 0; w < FEEDS_MAX / 64; w++)
			g->feeds.words[w] |= r->feeds.words[w];
		for (size_t k = 0; k < r->name_count; k++) {
			unsigned labels = r->names[k].labels;
			g->depths[labels / 64] |= (uint64_t)1 << labels % 64;
			if (labels > g->deepest)
				g->deepest = labels;
		}
	}
}

void policy_compile(struct policy_loader *l)
{
	struct policy *p = l->policy;
	for (size_t g = 0; g < p->group_count; g++)
		policy_compile_group(l, &p->groups[g]);
	policy_compile_names(l);
}
