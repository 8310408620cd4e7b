/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rule of a policy file: its action, what it asks for, until when. Part of the loader; the
 * arena owns everything. Invariant: a condition that could not be understood is an error; it never
 * widens a rule by being left out.
 */
#include "policies/policy_internal.h"

#include "base/message_text.h"

#include <stdio.h>
#include <string.h>

#define POLICY_RENDER_MAX	200
#define POLICY_ANSWERS_LIST_MAX 65536

static const char *const policy_action_words[] = {"allow", "block", "monitor", "rewrite", NULL};
static const enum policy_action policy_actions[] = {POLICY_ALLOW, POLICY_BLOCK, POLICY_MONITOR,
						    POLICY_REWRITE};
static const char *const policy_rule_keys[] = {"allow",	 "block", "monitor",  "rewrite",
					       "answer", "ede",	  "ede-text", "when",
					       "until",	 "owner", "reason",   NULL};
static const char *const policy_condition_keys[] = {"names", "feeds",	    "categories",
						    "kind",  "threat-type", "min-confidence",
						    "types", "answers",	    "to",
						    NULL};
static const char *const policy_kind_words[] = {"blocklist", "threat", NULL};

/* ---- a node as one line, for explain and events ---- */

struct policy_text {
	char text[POLICY_RENDER_MAX + 1];
	size_t at;
};

static void policy_put(struct policy_text *t, const char *s)
{
	size_t n = strlen(s);
	if (n > POLICY_RENDER_MAX - t->at)
		n = POLICY_RENDER_MAX - t->at;
	memcpy(t->text + t->at, s, n);
	t->at += n;
}

static void policy_put_scalar(struct policy_text *t, const struct node *n)
{
	bool plain = n->text[0] && !strpbrk(n->text, " ,:[]{}*&!|>'\"%@`#");
	policy_put(t, plain ? "" : "\"");
	for (const char *p = n->text; *p; p++) {
		char c[2] = {*p, '\0'};
		policy_put(t, (unsigned char)*p < 0x20 || *p == 0x7f ? "?" : c);
	}
	policy_put(t, plain ? "" : "\"");
}

const char *policy_render(struct arena *a, const struct node *n, bool braces)
{
	struct policy_text t = {.at = 0};
	const struct node *stack[32];
	size_t depth = 0;
	const struct node *at = n;
	/* Children first, then the brother: a list cut off is cut off for good. */
	while (at) {
		if (at != n && at->key) {
			policy_put(&t, at->key);
			policy_put(&t, ": ");
		}
		if (at->kind == NODE_SCALAR) {
			policy_put_scalar(&t, at);
		} else {
			if (at != n || braces)
				policy_put(&t, at->kind == NODE_LIST ? "[" : "{");
			if (at->children && depth < 32) {
				stack[depth++] = at;
				at = at->children;
				continue;
			}
			if (at != n || braces)
				policy_put(&t, at->kind == NODE_LIST ? "]" : "}");
		}
		while (depth > 0 && !at->next) {
			at = stack[--depth];
			if (at != n || braces)
				policy_put(&t, at->kind == NODE_LIST ? "]" : "}");
		}
		if (depth == 0)
			break;
		at = at->next;
		policy_put(&t, ", ");
	}
	t.text[t.at] = '\0';
	return t.at == POLICY_RENDER_MAX ? arena_printf(a, "%.*s...", POLICY_RENDER_MAX - 3, t.text)
					 : arena_strdup(a, t.text);
}

/* ---- conditions ---- */

/* Items of a list, or the one scalar that stands for it. */
static const struct node *policy_items(struct policy_loader *l, const struct node *n,
				       const char *expected, size_t *count)
{
	*count = 0;
	if (n->kind == NODE_MAP || node_is_null(n) || (n->kind == NODE_LIST && n->count == 0)) {
		node_error(n, l->d, "nothing is listed (expected %s)", expected);
		return NULL;
	}
	*count = n->kind == NODE_LIST ? n->count : 1;
	return n->kind == NODE_LIST ? n->children : n;
}

/* A scalar has no brothers of its kind: it is a value of the map around it. */
static const struct node *policy_next(const struct node *list, const struct node *item)
{
	return list->kind == NODE_LIST ? item->next : NULL;
}

static bool policy_parse_name(struct policy_loader *l, const struct node *n,
			      struct policy_name *out)
{
	const char *text;
	struct name name;
	if (!node_text(n, l->d, &text))
		return false;
	const char *base = text;
	out->covers = POLICY_SELF | POLICY_BELOW;
	if (base[0] == '=') {
		base++;
		out->covers = POLICY_SELF;
	} else if (base[0] == '*' && base[1] == '.') {
		base += 2;
		out->covers = POLICY_BELOW;
		if (base[0] == '\0')
			base = ".";
	}
	if (strchr(base, '*')) {
		node_error(n, l->d,
			   "\"%s\": a * may only stand for the whole first label "
			   "(\"*.example.com\" is what is under example.com)",
			   text);
		return false;
	}
	/* Addresses, URLs and list rules land here by mistake; as labels they would never match. */
	if (strpbrk(base, "/:|^@ ,") || name_from_unicode(base, strlen(base), &name) < 0) {
		node_error(n, l->d,
			   "\"%s\" is not a domain name (expected example.com, "
			   "\"=example.com\" or \"*.example.com\")",
			   text);
		return false;
	}
	out->wire = arena_memdup(l->arena, name.wire, name.length);
	out->length = name.length;
	out->labels = name.labels;
	out->node = n;
	return true;
}

static void policy_names(struct policy_loader *l, const struct node *n, struct policy_rule *rule)
{
	size_t count;
	const struct node *item = policy_items(l, n, "[example.com, ...]", &count);
	rule->has_names = true;
	rule->names = arena_alloc(l->arena, count * sizeof(*rule->names));
	for (; item; item = policy_next(n, item))
		if (policy_parse_name(l, item, &rule->names[rule->name_count]))
			rule->name_count++;
}

static void policy_restrict(struct policy_rule *rule, const struct feedmask *to)
{
	for (size_t i = 0; i < FEEDS_MAX / 64; i++)
		rule->feeds.words[i] &= to->words[i];
}

static void policy_unknown_feed(struct policy_loader *l, const struct node *n, const char *name)
{
	const struct feeds *feeds = l->context->feeds;
	const char **names = arena_alloc(l->arena, (feeds->count + 1) * sizeof(*names));
	for (size_t i = 0; i < feeds->count; i++)
		names[i] = feeds->items[i].name;
	const char *near = node_nearest(name, names);
	if (near)
		node_error(n, l->d, "unknown feed \"%s\" (did you mean \"%s\"?)", name, near);
	else
		node_error(n, l->d,
			   "unknown feed \"%s\" (expected all, or a name from feeds: of the "
			   "configuration)",
			   name);
}

static void policy_feed_names(struct policy_loader *l, const struct node *n,
			      struct policy_rule *rule)
{
	size_t count;
	struct feedmask named = {{0}};
	const struct node *item = policy_items(l, n, "all, or [feed, ...]", &count);
	for (; item; item = policy_next(n, item)) {
		const char *name;
		if (!node_text(item, l->d, &name))
			continue;
		const struct feed *feed = feeds_find(l->context->feeds, name);
		if (strcmp(name, "all") == 0)
			for (size_t i = 0; i < FEEDS_MAX / 64; i++)
				named.words[i] |= l->context->feeds->enforced_blocklists.words[i];
		else if (feed)
			feedmask_add(&named, feed->number);
		else
			policy_unknown_feed(l, item, name);
	}
	policy_restrict(rule, &named);
}

/* `categories` or `threat-type`: feeds whose text is one of the listed. Unknown: see lint. */
static void policy_feed_texts(struct policy_loader *l, const struct node *n, bool category,
			      struct policy_rule *rule)
{
	size_t count;
	struct feedmask mask = {{0}};
	const struct feeds *feeds = l->context->feeds;
	const struct node *item = policy_items(l, n, "[malware, ...]", &count);
	for (; item; item = policy_next(n, item)) {
		const char *text;
		if (!node_text(item, l->d, &text))
			continue;
		for (size_t i = 0; i < feeds->count; i++) {
			const struct feed *f = &feeds->items[i];
			const char *of_feed = category ? f->category : f->threat_type;
			if (of_feed && strcmp(of_feed, text) == 0)
				feedmask_add(&mask, f->number);
		}
	}
	policy_restrict(rule, &mask);
}

static void policy_feed_kind(struct policy_loader *l, const struct node *n,
			     struct policy_rule *rule)
{
	size_t count;
	struct feedmask mask = {{0}};
	const struct feeds *feeds = l->context->feeds;
	const struct node *item = policy_items(l, n, "blocklist or threat", &count);
	for (; item; item = policy_next(n, item)) {
		int word;
		if (!node_choice(item, l->d, policy_kind_words, &word))
			continue;
		enum feed_kind kind = word == 0 ? FEED_KIND_BLOCKLIST : FEED_KIND_THREAT;
		for (size_t i = 0; i < feeds->count; i++)
			if (feeds->items[i].kind == kind)
				feedmask_add(&mask, feeds->items[i].number);
	}
	policy_restrict(rule, &mask);
}

static void policy_feed_confidence(struct policy_loader *l, const struct node *n,
				   struct policy_rule *rule)
{
	int64_t least;
	struct feedmask mask = {{0}};
	const struct feeds *feeds = l->context->feeds;
	if (!node_integer(n, l->d, 0, 100, &least))
		return;
	for (size_t i = 0; i < feeds->count; i++)
		if (feeds->items[i].confidence >= least)
			feedmask_add(&mask, feeds->items[i].number);
	policy_restrict(rule, &mask);
}

/* Everything asked of feeds ends as one mask. A feed in shadow is in none. */
static void policy_feeds(struct policy_loader *l, const struct node *n, struct policy_rule *rule)
{
	const struct node *names = node_get(n, "feeds"), *categories = node_get(n, "categories");
	const struct node *kind = node_get(n, "kind"), *type = node_get(n, "threat-type");
	const struct node *confidence = node_get(n, "min-confidence");
	if (!names && !categories && !kind && !type && !confidence)
		return;
	rule->has_feeds = true;
	rule->feeds = l->context->feeds->enforced;
	if (names)
		policy_feed_names(l, names, rule);
	if (categories)
		policy_feed_texts(l, categories, true, rule);
	if (kind)
		policy_feed_kind(l, kind, rule);
	if (type)
		policy_feed_texts(l, type, false, rule);
	if (confidence)
		policy_feed_confidence(l, confidence, rule);
}

static void policy_types(struct policy_loader *l, const struct node *n, struct policy_rule *rule)
{
	size_t count;
	const struct node *item = policy_items(l, n, "[A, AAAA, TYPE65280, ...]", &count);
	if (count > POLICY_TYPES_MAX) {
		node_error(n, l->d, "too many types (at most %d)", POLICY_TYPES_MAX);
		return;
	}
	uint16_t *types = arena_alloc(l->arena, count * sizeof(*types));
	for (; item; item = policy_next(n, item)) {
		const char *text;
		if (!node_text(item, l->d, &text))
			continue;
		if (message_type_parse(text, strlen(text), &types[rule->type_count]) < 0)
			node_error(item, l->d,
				   "\"%s\" is no record type (expected A, AAAA, HTTPS, "
				   "TYPE65280, ...)",
				   text);
		else
			rule->type_count++;
	}
	rule->types = types;
}

static void policy_answers(struct policy_loader *l, const struct node *n, struct policy_rule *rule)
{
	size_t count, used = 0;
	const struct node *item = policy_items(l, n, "[203.0.113.0/24, ...]", &count);
	rule->has_answers = true;
	if (count > POLICY_ANSWERS_LIST_MAX) {
		node_error(n, l->d, "too many prefixes (at most %d)", POLICY_ANSWERS_LIST_MAX);
		return;
	}
	struct lpm_entry *entries = arena_alloc(l->arena, count * sizeof(*entries));
	for (; item; item = policy_next(n, item))
		if (node_prefix(item, l->d, &entries[used].prefix))
			used++;
	lpm_build(&rule->answers, entries, used, l->arena);
}

static void policy_conditions(struct policy_loader *l, const struct node *n,
			      struct policy_rule *rule)
{
	if (n->kind != NODE_MAP) {
		/* A list of names is short for {names: [...]}. */
		policy_names(l, n, rule);
		return;
	}
	for (const struct node *c = n->children; c; c = c->next)
		for (const char *const *k = policy_rule_keys; *k; k++)
			if (strcmp(c->key, *k) == 0) {
				diag_error(l->d, c->file, c->key_line, c->key_column,
					   "\"%s\" stands beside \"%s\", not in it", c->key,
					   n->key);
				return;
			}
	if (!node_check_keys(n, policy_condition_keys, l->d))
		return;
	const struct node *names = node_get(n, "names"), *types = node_get(n, "types");
	const struct node *answers = node_get(n, "answers");
	if (names)
		policy_names(l, names, rule);
	policy_feeds(l, n, rule);
	if (types)
		policy_types(l, types, rule);
	if (answers)
		policy_answers(l, answers, rule);
	if (!names && !rule->has_feeds && !types && !answers)
		node_error(n, l->d,
			   "%s asks for nothing (expected names, feeds, categories, kind, "
			   "types or answers; names: [\".\"] is everything)",
			   n->key);
	const struct node *to = node_get(n, "to");
	if (to && rule->action != POLICY_REWRITE)
		diag_error(l->d, to->file, to->key_line, to->key_column, "\"to\" is for rewrite");
}

static void policy_rewrite(struct policy_loader *l, const struct node *n, struct policy_rule *rule)
{
	struct policy_answer *answer = arena_alloc(l->arena, sizeof(*answer));
	const struct node *to = node_get(n, "to");
	const char *text;
	answer->form = POLICY_FORM_CNAME;
	answer->ttl_s = POLICY_TTL_S;
	rule->answer = answer;
	if (rule->has_answers)
		node_error(n, l->d,
			   "a question is rewritten before there is an answer (answers: "
			   "is for block and monitor)");
	if (!to)
		node_error(n, l->d,
			   "rewrite needs a target (expected {names: [...], to: "
			   "name.example})");
	else if (node_text(to, l->d, &text) &&
		 (name_from_unicode(text, strlen(text), &answer->target) < 0 ||
		  answer->target.labels == 0))
		node_error(to, l->d, "\"%s\" is not a domain name", text);
}

/* ---- the rule ---- */

static const struct node *policy_action_node(struct policy_loader *l, const struct node *n,
					     struct policy_rule *rule)
{
	const struct node *found = NULL;
	for (size_t i = 0; policy_action_words[i]; i++) {
		const struct node *action = node_get(n, policy_action_words[i]);
		if (!action)
			continue;
		if (found) {
			diag_error(l->d, action->file, action->key_line, action->key_column,
				   "a rule has one action (\"%s\" and \"%s\" are two rules)",
				   found->key, action->key);
			continue;
		}
		found = action;
		rule->action = policy_actions[i];
	}
	if (!found)
		node_error(n, l->d,
			   "a rule needs an action (expected allow:, block:, monitor: or "
			   "rewrite:)");
	return found;
}

static void policy_until(struct policy_loader *l, const struct node *n, struct policy_rule *rule)
{
	const struct node *until = node_get(n, "until");
	const char *text;
	rule->until_s = POLICY_NEVER;
	if (node_text(until, l->d, &text) && policy_time_parse(text, true, &rule->until_s) < 0)
		node_error(until, l->d,
			   "\"%s\" is no time (expected 2026-12-31 or "
			   "\"2026-12-31T18:00:00+01:00\")",
			   text);
	node_text(node_get(n, "owner"), l->d, &text);
	node_text(node_get(n, "reason"), l->d, &text);
}

void policy_parse_rule(struct policy_loader *l, const struct policy_group *g, const struct node *n,
		       struct policy_rule *rule)
{
	static const char *const block_only[] = {"answer", "ede", "ede-text", NULL};
	rule->node = n;
	rule->until_s = POLICY_NEVER;
	rule->id = (uint32_t)l->policy->place_count;
	struct policy_rule_place *place = policy_new_place(l);
	place->file = g->file;
	place->line = n->line;
	place->text = "";
	if (n->kind != NODE_MAP) {
		node_error(n, l->d, "a rule is a map (expected - block: {...})");
		return;
	}
	if (!node_check_keys(n, policy_rule_keys, l->d))
		return;
	place->text = policy_render(l->arena, n, false);
	const struct node *action = policy_action_node(l, n, rule);
	if (!action)
		return;
	place->action = rule->action;
	policy_conditions(l, action, rule);
	if (rule->action == POLICY_BLOCK)
		rule->answer = policy_parse_answer(l, n, rule->type_count > 0);
	for (size_t i = 0; block_only[i]; i++) {
		const struct node *extra = node_get(n, block_only[i]);
		if (extra && rule->action != POLICY_BLOCK)
			diag_error(l->d, extra->file, extra->key_line, extra->key_column,
				   "\"%s\" is for block", extra->key);
	}
	if (rule->action == POLICY_REWRITE)
		policy_rewrite(l, action, rule);
	const struct node *when = node_get(n, "when");
	if (when)
		rule->when = policy_when_parse(when, &l->zones, l->d);
	policy_until(l, n, rule);
}
