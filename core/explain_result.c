/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an explanation says: the steps as the chain takes them, the rules and feeds that have a say,
 * the decision, and the reply that the client gets. Offline commands, and a throw-away child of the
 * template. Texts live in the result's arena. Invariant: nothing here decides; it reads the query
 * after the daemon's code has, and the reply comes from core/dns/answer.c.
 */
#include "base/message_text.h"
#include "core/chain/chain.h"
#include "core/dns/answer.h"
#include "core/explain_internal.h"
#include "feeds/feedfile.h"

#include <stdio.h>
#include <string.h>

/* ---- texts ---- */

static const char *name_text(struct explain_result *out, const uint8_t *wire)
{
	char text[NAME_TEXT_MAX];

	name_format(wire, text);
	return arena_strdup(&out->arena, text);
}

static const char *rule_place(const struct explain *e, struct explain_result *out, uint32_t rule)
{
	if (rule >= policy_rule_count(e->generation->policy))
		return NULL;
	const struct policy_rule_place *place = policy_rule_place(e->generation->policy, rule);
	return arena_printf(&out->arena, "%s:%d", place->file, place->line);
}

static const char *feed_name(const struct explain *e, uint32_t feed)
{
	const struct feeds *feeds = &e->generation->config.feeds;
	return feed < feeds->count ? feeds->items[feed].name : NULL;
}

static const char *const hop_words[] = {"question", "cname", "address", "hint", "payload"};

/* "rule policies/staff.yaml:8, feed ours, matches x.example., hop cname: malware" */
static const char *why_text(struct explain *e, const struct baleen_why *why)
{
	struct explain_result *out = e->out;
	const char *rule = rule_place(e, out, why->rule);
	const char *feed = feed_name(e, why->feed);
	const char *text = "";

	if (rule)
		text = arena_printf(&out->arena, "rule %s", rule);
	if (feed)
		text = arena_printf(&out->arena, "%s%sfeed %s", text, *text ? ", " : "", feed);
	if (why->match_length)
		text = arena_printf(&out->arena, "%s%smatches %s", text, *text ? ", " : "",
				    name_text(out, why->match));
	if (why->hop != BALEEN_HOP_QUESTION && why->hop <= BALEEN_HOP_PAYLOAD)
		text = arena_printf(&out->arena, "%s%sby %s", text, *text ? ", " : "",
				    hop_words[why->hop]);
	if (why->text)
		text = arena_printf(&out->arena, "%s%s%s", text, *text ? ": " : "", why->text);
	return text;
}

/* ---- steps ---- */

struct explain_step *explain_result_step(struct explain_result *out, const char *stage,
					 const char *plugin, const char *outcome, const char *text)
{
	if (out->step_count == EXPLAIN_STEPS_MAX)
		return NULL;
	struct explain_step *s = &out->steps[out->step_count++];
	*s = (struct explain_step){.stage = stage,
				   .plugin = plugin,
				   .outcome = outcome,
				   .text = text};
	return s;
}

static const char *const stages[] = {"client", "question", "answer"};

void explain_result_hook(void *context, const char *instance, enum query_phase phase,
			 enum baleen_verdict verdict, bool monitor, bool skipped,
			 const struct baleen_why *why)
{
	struct explain *e = context;
	const char *outcome = chain_verdict_word(verdict);

	if (skipped)
		outcome = verdict == BALEEN_PASS ? "after allow" : "out of the chain";
	struct explain_step *s =
		explain_result_step(e->out, stages[phase], instance, outcome, why_text(e, why));
	if (s)
		s->monitor = monitor && !skipped && verdict != BALEEN_PASS;
}

/* Filters that the group has switched off stand in no row: say it. */
void explain_result_off(struct explain *e)
{
	const struct chain *c = e->generation->chain;

	for (size_t i = 0; i < chain_count(c); i++) {
		bool off = false;
		(void)policy_group_options(e->generation->policy, e->query->view.group,
					   chain_instance(c, i), &off);
		if (off)
			explain_result_step(e->out, "", chain_instance(c, i), "off",
					    "by the group");
	}
}

/* ---- what stands around the decision ---- */

static void on_rule(void *context, uint32_t rule, bool matches, const char *why)
{
	struct explain *e = context;
	struct explain_result *out = e->out;

	if (out->rule_count == policy_rule_count(e->generation->policy))
		return;
	const struct policy_rule_place *place = policy_rule_place(e->generation->policy, rule);
	out->rules[out->rule_count++] = (struct explain_rule){
		.place = rule_place(e, out, rule),
		.text = arena_strdup(&out->arena, place->text),
		.matches = matches,
		.why = arena_strdup(&out->arena, why ? why : ""),
	};
}

static int64_t first_seen(const struct explain *e, const char *feed, const struct name *entry)
{
	char path[4096];
	uint16_t flags;
	uint64_t seen_s;

	if (!e->state)
		return 0;
	snprintf(path, sizeof(path), "%s/feeds/%s/entries", e->state, feed);
	return feedfile_find(path, entry, &flags, &seen_s) == 1 ? (int64_t)seen_s : 0;
}

static void suffix_of(const struct query *q, unsigned labels, struct name *out)
{
	size_t skip = name_suffix_offset(q->name, q->view.name_labels, labels);
	name_set(out, q->name + skip, q->view.name_length - skip, labels);
}

static void add_feeds(struct explain *e, const struct domset_result *found)
{
	const struct feeds *feeds = &e->generation->config.feeds;
	struct explain_result *out = e->out;

	out->feeds = arena_alloc(&out->arena, (feeds->count + 1) * sizeof(*out->feeds));
	for (unsigned i = 0; e->set && i < feeds->count; i++) {
		uint16_t flags = 0;
		struct name entry;
		int labels = feedmask_has(&found->feeds, i)
				     ? domset_match_of(e->set, found, i, &flags)
				     : -1;
		if (labels < 0)
			continue;
		const struct feed *f = &feeds->items[i];
		suffix_of(e->query, (unsigned)labels, &entry);
		out->feeds[out->feed_count++] = (struct explain_feed){
			.name = f->name,
			.category = f->category,
			.match = name_text(out, entry.wire),
			.how = flags & DOMSET_EXACT	? "exact"
			       : flags & DOMSET_SUBTREE ? "subtree"
							: "below",
			.threat = f->kind == FEED_KIND_THREAT,
			.shadow = f->mode == FEED_MODE_SHADOW,
			.since_s = first_seen(e, f->name, &entry),
		};
	}
}

/* Every rule and feed that has a say about the question, whoever decided. */
void explain_result_around(struct explain *e)
{
	struct query *q = e->query;
	struct domset_result found;

	memset(&found, 0, sizeof(found));
	if (e->set)
		domset_lookup(e->set, q->name, q->view.name_length, q->view.name_labels, &found);
	const struct policy_question question = {
		.name = q->name,
		.length = q->view.name_length,
		.labels = q->view.name_labels,
		.type = q->view.type,
		.wall_s = q->view.wall_us / 1000000,
		.feeds = e->set ? &found : NULL,
		.set = e->set,
	};
	e->out->rules = arena_alloc(&e->out->arena, (policy_rule_count(e->generation->policy) + 1) *
							    sizeof(*e->out->rules));
	policy_trace_question(e->generation->policy, q->view.group, &question, on_rule, e);
	add_feeds(e, &found);
}

/* ---- the result ---- */

static const char *rcode_word(uint16_t rcode)
{
	static const char *const words[] = {"NOERROR",	"FORMERR", "SERVFAIL",
					    "NXDOMAIN", "NOTIMP",  "REFUSED"};
	return rcode < sizeof(words) / sizeof(words[0]) ? words[rcode] : "?";
}

/* The records of the reply that the daemon would make: " A 0.0.0.0". */
static const char *record_texts(struct explain *e, size_t size)
{
	struct arena *a = &e->out->arena;
	struct message_walk walking;
	struct message_record r;
	const char *text = "";

	if (message_walk_start(&walking, e->reply, size) < 0)
		return text;
	while (message_walk_next(&walking, &r) > 0 && r.section == SECTION_ANSWER) {
		char word[MESSAGE_TYPE_TEXT], address[ADDR_TEXT_MAX];
		uint8_t target[NAME_WIRE_MAX];
		struct addr addr = {{[10] = 0xff, [11] = 0xff}};
		if (r.type == TYPE_CNAME &&
		    message_name(e->reply, size, r.rdata_at, target, NULL, NULL)) {
			text = arena_printf(a, "%s, CNAME %s", text, name_text(e->out, target));
			continue;
		}
		if (r.type == TYPE_A && r.rdata_length == 4)
			memcpy(addr.octets + 12, e->reply + r.rdata_at, 4);
		else if (r.type == TYPE_AAAA && r.rdata_length == 16)
			memcpy(addr.octets, e->reply + r.rdata_at, 16);
		else
			continue;
		text = arena_printf(a, "%s, %s %s", text, message_type_format(r.type, word),
				    addr_format(&addr, address));
	}
	return text;
}

/* One phrase: what the client gets. Made by the daemon's own answer code. */
static const char *answer_phrase(struct explain *e)
{
	struct query *q = e->query;
	struct arena *a = &e->out->arena;
	struct message_header header;
	const char *text;

	if (q->verdict == EVENT_ALLOW)
		return "what upstream says";
	size_t size = answer_decided(q, e->reply, sizeof(e->reply));
	if (!message_header(e->reply, size, &header))
		return "no reply at all";
	uint16_t ede = answer_ede(q, &text);
	const char *phrase =
		arena_printf(a, "%s%s%s%s", rcode_word(header.flags & MESSAGE_RCODE),
			     header.flags & MESSAGE_TC ? ", truncated"
			     : header.records[1] && !(header.flags & MESSAGE_RCODE)
				     ? " without data"
				     : "",
			     record_texts(e, size),
			     q->verdict == EVENT_REWRITE ? " and what upstream says of it" : "");
	if (q->verdict == EVENT_BLOCK)
		phrase = arena_printf(a, "%s, TTL %u", phrase, answer_ttl(q));
	if (ede)
		phrase = arena_printf(a, "%s, EDE %u", phrase, ede);
	return ede && text ? arena_printf(a, "%s (%s)", phrase, text) : phrase;
}

static void add_would(struct explain *e)
{
	struct explain_result *out = e->out;
	const struct query *q = e->query;
	size_t n = 0;

	out->would = arena_alloc(&out->arena, (EVENT_WOULD_MAX + 1) * sizeof(*out->would));
	for (unsigned i = 0; i < q->would_count; i++) {
		const char *rule = rule_place(e, out, q->would[i].rule);
		out->would[n++] =
			arena_printf(&out->arena, "%s: %s%s%s",
				     chain_instance(e->generation->chain, q->would[i].plugin),
				     chain_verdict_word(q->would[i].verdict), rule ? ", rule " : "",
				     rule ? rule : "");
	}
}

/* The last step of the plugin that decided. */
static void mark_decided(struct explain_result *out)
{
	for (size_t i = out->step_count; out->plugin && i-- > 0;) {
		struct explain_step *s = &out->steps[i];
		if (strcmp(s->plugin, out->plugin) == 0 && !s->monitor &&
		    strcmp(s->outcome, "pass") != 0 && strcmp(s->outcome, "after allow") != 0) {
			s->decided = true;
			return;
		}
	}
}

void explain_result_conclude(struct explain *e)
{
	struct explain_result *out = e->out;
	const struct query *q = e->query;
	const struct policy *policy = e->generation->policy;

	out->verdict = q->verdict;
	out->word = event_verdict_words[q->verdict];
	out->set_number = e->set_number;
	if (q->decided_by != EVENT_NO_PLUGIN)
		out->plugin = chain_instance(e->generation->chain, q->decided_by);
	out->rule = rule_place(e, out, q->why.rule);
	if (out->rule)
		out->rule_text = policy_rule_place(policy, q->why.rule)->text;
	out->feed = feed_name(e, q->why.feed);
	out->category = q->why.category ? arena_strdup(&out->arena, q->why.category) : NULL;
	out->match_exact = q->why.exact;
	if (q->match.length) {
		out->match = name_text(out, q->match.wire);
		if (out->feed)
			out->since_s = first_seen(e, out->feed, &q->match);
	}
	out->hop = hop_words[q->why.hop];
	out->text = q->why.text ? arena_strdup(&out->arena, q->why.text) : NULL;
	out->answer = answer_phrase(e);
	add_would(e);
	mark_decided(out);
}
