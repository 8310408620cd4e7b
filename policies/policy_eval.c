/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query against its group's rules: the DNS path's part of this folder, run by workers. Reads only
 * tables, allocates nothing, compares no text. Invariant: the first rule in written order that
 * matches decides; the bits only leave out rules that cannot match.
 */
#include "policies/policy_internal.h"

#include <string.h>

void policy_walk_begin(struct policy_walk *w, const struct policy *p,
		       const struct policy_question *q)
{
	w->policy = p;
	w->q = q;
	w->hashed = 0;
}

/* Make the suffixes of up to `labels` labels known: where they begin, and their hashes. */
static void policy_walk_hash(struct policy_walk *w, unsigned labels)
{
	const struct policy_question *q = w->q;
	if (w->hashed == 0) {
		size_t at = 0;
		for (unsigned keep = q->labels;; keep--) {
			w->offset[keep] = (uint8_t)at;
			if (keep == 0)
				break;
			at += (size_t)q->name[at] + 1;
		}
		w->hash[0] = 0;
		w->hashed = 1;
	}
	for (; w->hashed <= labels; w->hashed++)
		w->hash[w->hashed] =
			policy_hash(w->hash[w->hashed - 1], q->name + w->offset[w->hashed]);
}

static const struct policy_slot *policy_walk_slot(struct policy_walk *w,
						  const struct policy_group *g, unsigned labels)
{
	policy_walk_hash(w, labels);
	return policy_slot_find(w->policy, g->number, policy_hash_group(w->hash[labels], g->number),
				w->q->name + w->offset[labels],
				(uint8_t)(w->q->length - w->offset[labels]));
}

/* Is a suffix of that many labels worth a look, for names in the group's rules? */
static bool policy_depth_used(const struct policy_group *g, unsigned labels)
{
	return g->depths[labels / 64] >> labels % 64 & 1;
}

static bool policy_ref_hits(const struct policy_ref *ref, unsigned labels, unsigned of_question)
{
	return ref->covers & (labels == of_question ? POLICY_SELF : POLICY_BELOW);
}

/* Bits of the rules that name the question; false: none. */
static bool policy_hits(struct policy_walk *w, const struct policy_group *g, uint64_t *hits)
{
	unsigned top = w->q->labels < g->deepest ? w->q->labels : g->deepest;
	bool any = false;
	for (unsigned labels = 0; labels <= top; labels++) {
		if (!policy_depth_used(g, labels))
			continue;
		const struct policy_slot *s = policy_walk_slot(w, g, labels);
		for (uint32_t i = 0; s && i < s->count; i++) {
			const struct policy_ref *ref = &w->policy->refs[s->first + i];
			if (!policy_ref_hits(ref, labels, w->q->labels))
				continue;
			hits[ref->rule / 64] |= (uint64_t)1 << ref->rule % 64;
			any = true;
		}
	}
	return any;
}

int policy_name_hit(struct policy_walk *w, const struct policy_group *g,
		    const struct policy_rule *rule, uint8_t *covers)
{
	uint16_t number = (uint16_t)(rule - g->rules);
	unsigned top = w->q->labels < g->deepest ? w->q->labels : g->deepest;
	for (int labels = (int)top; labels >= 0; labels--) {
		if (!policy_depth_used(g, (unsigned)labels))
			continue;
		const struct policy_slot *s = policy_walk_slot(w, g, (unsigned)labels);
		for (uint32_t i = 0; s && i < s->count; i++) {
			const struct policy_ref *ref = &w->policy->refs[s->first + i];
			if (ref->rule == number &&
			    policy_ref_hits(ref, (unsigned)labels, w->q->labels)) {
				*covers = ref->covers;
				return labels;
			}
		}
	}
	return -1;
}

bool policy_type_matches(const struct policy_rule *rule, uint16_t type)
{
	if (rule->type_count == 0)
		return true;
	for (size_t i = 0; i < rule->type_count; i++)
		if (rule->types[i] == type)
			return true;
	return false;
}

/* What the bits have not decided. */
static bool policy_rule_holds(const struct policy_rule *r, const struct policy_question *q)
{
	if (r->has_feeds && (!q->feeds || !feedmask_meets(&r->feeds, &q->feeds->feeds)))
		return false;
	if (!policy_type_matches(r, q->type))
		return false;
	if (q->wall_s >= r->until_s)
		return false;
	if (r->when && !policy_when_matches(r->when, q->wall_s))
		return false;
	/* The target of a rewrite is not rewritten to itself. */
	return r->action != POLICY_REWRITE ||
	       !name_equal(q->name, q->length, r->answer->target.wire, r->answer->target.length);
}

/* The feed that is named as the reason: one that covers more than the asked name, if there is. */
static void policy_blame_feed(const struct policy *p, const struct policy_rule *r,
			      const struct policy_question *q, struct policy_outcome *out)
{
	struct feedmask both;
	for (size_t i = 0; i < FEEDS_MAX / 64; i++)
		both.words[i] = r->feeds.words[i] & q->feeds->feeds.words[i];
	for (;;) {
		unsigned feed = feedmask_first(&both, &both);
		if (feed == FEED_NONE)
			break;
		uint16_t flags = 0;
		int labels = q->set ? domset_match_of(q->set, q->feeds, feed, &flags) : -1;
		bool exact = flags == DOMSET_EXACT;
		if (out->feed == FEED_NONE || !exact) {
			out->feed = (uint16_t)feed;
			out->match_labels = labels < 0 ? q->labels : (uint8_t)labels;
			out->match_exact = exact;
		}
		if (!exact)
			break;
		both.words[feed / 64] &= ~((uint64_t)1 << feed % 64);
	}
	if (out->feed < p->feeds->count && p->feeds->items[out->feed].category[0])
		out->category = p->feeds->items[out->feed].category;
}

/* Does an earlier rule let something below the asked name through? */
static bool policy_allows_below(struct policy_walk *w, const struct policy_group *g, size_t order,
				size_t rule)
{
	for (size_t i = 0; i <= order; i++) {
		if (!g->order[i]->lets_through)
			continue;
		const struct policy_slot *s = policy_walk_slot(w, g->order[i], w->q->labels);
		if (s && s->allow_below != UINT16_MAX && (i < order || s->allow_below < rule))
			return true;
	}
	return false;
}

static void policy_decide(struct policy_walk *w, const struct policy_group *g, size_t order,
			  const struct policy_rule *r, struct policy_outcome *out)
{
	const struct policy_question *q = w->q;
	const struct policy_group *holder = g->order[order];
	out->action = r->action;
	out->rule = r->id;
	out->answer = r->answer;
	out->match_labels = q->labels;
	if (r->has_names) {
		uint8_t covers = 0;
		int labels = policy_name_hit(w, holder, r, &covers);
		if (labels >= 0)
			out->match_labels = (uint8_t)labels;
		out->match_exact = covers == POLICY_SELF;
	}
	if (r->has_feeds && q->feeds) {
		bool name_exact = out->match_exact;
		policy_blame_feed(w->policy, r, q, out);
		out->match_exact |= name_exact;
	}
	if (r->action == POLICY_BLOCK && !r->has_answers)
		out->allow_below = policy_allows_below(w, g, order, (size_t)(r - holder->rules));
}

/* The rules of one file of the group, of one phase. True: decided. */
static bool policy_eval_file(struct policy_walk *w, const struct policy_group *g, size_t order,
			     const struct addr *address, struct policy_outcome *out)
{
	const struct policy_group *f = g->order[order];
	const struct policy_question *q = w->q;
	const uint64_t *phase = address ? f->answer : f->question;
	bool free = address ? f->free_answer : f->free;
	bool by_feed = q->feeds && feedmask_meets(&f->feeds, &q->feeds->feeds);
	bool names = (f->depths[0] | f->depths[1]) != 0;
	uint64_t hits[POLICY_WORDS_MAX];
	if (!free && !by_feed && !names)
		return false;
	if (names) {
		memset(hits, 0, f->words * sizeof(*hits));
		if (!policy_hits(w, f, hits) && !free && !by_feed)
			return false;
	}
	for (size_t word = 0; word < f->words; word++) {
		uint64_t can = phase[word] & (~f->needs_names[word] | (names ? hits[word] : 0));
		if (!by_feed)
			can &= ~f->needs_feeds[word];
		for (; can; can &= can - 1) {
			const struct policy_rule *r =
				&f->rules[word * 64 + (size_t)__builtin_ctzll(can)];
			if (!policy_rule_holds(r, q))
				continue;
			if (address && lpm_find(&r->answers, address) == LPM_NONE)
				continue;
			if (r->action != POLICY_MONITOR) {
				policy_decide(w, g, order, r, out);
				return true;
			}
			if (out->monitored_count < POLICY_MONITORED_MAX)
				out->monitored[out->monitored_count++] = r->id;
		}
	}
	return false;
}

static void policy_eval(const struct policy *p, uint32_t group, const struct policy_question *q,
			const struct addr *address, struct policy_outcome *out)
{
	const struct policy_group *g = &p->groups[group];
	struct policy_walk w;
	policy_walk_begin(&w, p, q);
	out->action = POLICY_PASS;
	out->rule = POLICY_RULE_NONE;
	out->feed = FEED_NONE;
	out->match_labels = 0;
	out->match_exact = out->allow_below = false;
	out->category = NULL;
	out->answer = NULL;
	out->monitored_count = 0;
	for (size_t i = 0; i < g->order_count; i++)
		if (policy_eval_file(&w, g, i, address, out))
			return;
}

void policy_question(const struct policy *p, uint32_t group, const struct policy_question *q,
		     struct policy_outcome *out)
{
	policy_eval(p, group, q, NULL, out);
}

bool policy_has_answer_rules(const struct policy *p, uint32_t group)
{
	const struct policy_group *g = &p->groups[group];
	for (size_t i = 0; i < g->order_count; i++)
		if (g->order[i]->has_answer_rules)
			return true;
	return false;
}

void policy_address(const struct policy *p, uint32_t group, const struct policy_question *q,
		    const struct addr *address, struct policy_outcome *out)
{
	policy_eval(p, group, q, address, out);
}
