/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why each rule of a group matches a question, or which of its conditions does not hold: for
 * explain, never on the DNS path. Owns nothing. Invariant: "matches" is what policy_question would
 * find if it came to the rule.
 */
#include "policies/policy_internal.h"

#include "base/message_text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define POLICY_WHY_MAX (NAME_TEXT_MAX + 256)

static void policy_put_suffix(const struct policy_question *q, unsigned labels, char *out,
			      size_t size)
{
	char text[NAME_TEXT_MAX];
	name_format(q->name + name_suffix_offset(q->name, q->labels, labels), text);
	size_t n = strlen(text);
	if (n > 1)
		text[n - 1] = '\0';
	snprintf(out, size, "%s", text);
}

/* Names: true and the pattern that covers the question. */
static bool policy_why_names(struct policy_walk *w, const struct policy_group *g,
			     const struct policy_rule *r, char *out, size_t size)
{
	uint8_t covers = 0;
	char name[NAME_TEXT_MAX];
	int labels = policy_name_hit(w, g, r, &covers);
	if (labels < 0) {
		snprintf(out, size, "names: none of %zu covers it", r->name_count);
		return false;
	}
	policy_put_suffix(w->q, (unsigned)labels, name, sizeof(name));
	snprintf(out, size, "names: %s%s",
		 covers == POLICY_SELF	  ? "="
		 : covers == POLICY_BELOW ? "*."
					  : "",
		 name);
	return true;
}

static bool policy_why_feeds(const struct policy *p, const struct policy_rule *r,
			     const struct policy_question *q, char *out, size_t size)
{
	char name[NAME_TEXT_MAX];
	unsigned feed = q->feeds ? feedmask_first(&r->feeds, &q->feeds->feeds) : FEED_NONE;
	if (!feedmask_any(&r->feeds)) {
		snprintf(out, size, "feeds: there is no such feed that enforces");
		return false;
	}
	if (feed == FEED_NONE) {
		snprintf(out, size, "feeds: %s",
			 q->feeds ? "none of this rule's lists it" : "no set");
		return false;
	}
	uint16_t flags = 0;
	int labels = q->set ? domset_match_of(q->set, q->feeds, feed, &flags) : -1;
	policy_put_suffix(q, labels < 0 ? q->labels : (unsigned)labels, name, sizeof(name));
	snprintf(out, size, "feeds: %s (%s %s)", p->feeds->items[feed].name,
		 flags == DOMSET_EXACT ? "exact" : "subtree", name);
	return true;
}

static void policy_when_date(int64_t wall_s, char *out, size_t size)
{
	time_t t = (time_t)wall_s;
	struct tm utc;
	if (!gmtime_r(&t, &utc) || strftime(out, size, "%Y-%m-%dT%H:%MZ", &utc) == 0)
		snprintf(out, size, "long ago");
}

/* The first condition that fails, or all that hold, in one line. */
static bool policy_why(struct policy_walk *w, const struct policy_group *g,
		       const struct policy_rule *r, char *out, size_t size)
{
	const struct policy_question *q = w->q;
	char part[POLICY_WHY_MAX];
	char type[MESSAGE_TYPE_TEXT];
	size_t at = 0;
	out[0] = '\0';
	if (r->has_answers) {
		snprintf(out, size, "answers: looked at once the answer is there");
		return false;
	}
	if (r->until_s != POLICY_NEVER && q->wall_s >= r->until_s) {
		policy_when_date(r->until_s, part, sizeof(part));
		snprintf(out, size, "until: over since %s", part);
		return false;
	}
	if (r->has_names) {
		bool hit = policy_why_names(w, g, r, part, sizeof(part));
		at += (size_t)snprintf(out, size, "%s", part);
		if (!hit)
			return false;
	}
	if (r->has_feeds) {
		bool hit = policy_why_feeds(w->policy, r, q, part, sizeof(part));
		at = hit ? at : 0;
		if (at < size)
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "; " : "", part);
		if (!hit)
			return false;
	}
	if (r->type_count > 0) {
		bool hit = policy_type_matches(r, q->type);
		const char *word = message_type_format(q->type, type);
		at = hit ? at : 0;
		if (at < size)
			at += (size_t)snprintf(out + at, size - at, "%stypes: %s%s", at ? "; " : "",
					       hit ? "" : "not for ", word);
		if (!hit)
			return false;
	}
	if (r->when) {
		bool inside = policy_when_matches(r->when, q->wall_s);
		at = inside ? at : 0;
		if (at < size)
			snprintf(out + at, size - at, "%swhen: %s %s", at ? "; " : "",
				 inside ? "inside" : "outside", r->when->text);
		if (!inside)
			return false;
	}
	if (r->action == POLICY_REWRITE &&
	    name_equal(q->name, q->length, r->answer->target.wire, r->answer->target.length)) {
		snprintf(out, size, "rewrite: it is the target already");
		return false;
	}
	return true;
}

void policy_trace_question(const struct policy *p, uint32_t group, const struct policy_question *q,
			   policy_trace *each, void *context)
{
	const struct policy_group *g = &p->groups[group];
	struct policy_walk w;
	char why[2 * POLICY_WHY_MAX];
	policy_walk_begin(&w, p, q);
	for (size_t i = 0; i < g->order_count; i++)
		for (size_t k = 0; k < g->order[i]->rule_count; k++) {
			const struct policy_rule *r = &g->order[i]->rules[k];
			bool matches = policy_why(&w, g->order[i], r, why, sizeof(why));
			each(context, r->id, matches, why);
		}
}
