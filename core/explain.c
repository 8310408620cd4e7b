/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rehearsing one query: a worker without sockets, a query that came from nobody, the daemon's own
 * chain, policy and set. Offline commands, and a throw-away child of the template. Owns its worker
 * and its query. Invariant: nothing here decides; every verdict comes from the code that decides in
 * the daemon, in the order of core/dns/path.c.
 */
#include "core/explain.h"

#include "base/clock.h"
#include "base/message.h"
#include "base/message_text.h"
#include "core/chain/chain.h"
#include "core/dns/answer.h"
#include "core/dns/answer_view.h"
#include "core/dns/query_of_death.h"
#include "core/query.h"
#include "core/worker.h"
#include "feeds/feedfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPLAIN_REWRITES_MAX 4 /* as in the path */
#define EXPLAIN_STEPS_MAX    (CONFIG_CHAIN_MAX * 8)
#define EXPLAIN_UDP_SIZE     1232

struct explain {
	struct generation *generation;
	const struct domset *set;
	uint64_t set_number;
	const char *state;
	struct worker worker;
	struct breadcrumb crumb;
	struct query *query;
	struct answer_view *view;
	uint8_t message[MESSAGE_SIZE_MAX];
	uint8_t reply[MESSAGE_SIZE_MAX];

	/* While one request is looked at. */
	struct explain_result *out;
};

int explain_new(struct generation *g, const struct domset *set, uint64_t set_number,
		const char *state, struct explain **out, char error[EXPLAIN_ERROR_MAX])
{
	struct explain *e = calloc(1, sizeof(*e));
	int r = -ENOMEM;

	snprintf(error, EXPLAIN_ERROR_MAX, "out of memory");
	if (!e)
		return r;
	e->generation = g;
	e->set = set;
	e->set_number = set_number;
	e->state = state;
	e->worker.generation = g;
	e->worker.shm = g->shm;
	e->worker.crumb = &e->crumb;
	e->worker.base = event_base_new();
	e->query = calloc(1, sizeof(*e->query));
	e->view = answer_view_new();
	if (e->worker.base && e->query && e->view)
		r = chain_start_worker(g->chain, &e->worker, e->worker.base, error);
	if (r < 0) {
		explain_free(e);
		return r;
	}
	*out = e;
	return 0;
}

void explain_free(struct explain *e)
{
	if (!e)
		return;
	chain_set_trace(e->generation->chain, NULL, NULL);
	chain_stop_worker(e->generation->chain);
	if (e->worker.base)
		event_base_free(e->worker.base);
	answer_view_free(e->view);
	free(e->query);
	free(e);
}

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

static struct explain_step *add_step(struct explain_result *out, const char *stage,
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

static void on_hook(void *context, const char *instance, enum query_phase phase,
		    enum baleen_verdict verdict, bool monitor, bool skipped,
		    const struct baleen_why *why)
{
	struct explain *e = context;
	const char *outcome = chain_verdict_word(verdict);

	if (skipped)
		outcome = verdict == BALEEN_PASS ? "after allow" : "out of the chain";
	struct explain_step *s =
		add_step(e->out, stages[phase], instance, outcome, why_text(e, why));
	if (s)
		s->monitor = monitor && !skipped && verdict != BALEEN_PASS;
}

/* Filters that the group has switched off stand in no row: say it. */
static void add_off(struct explain *e)
{
	const struct chain *c = e->generation->chain;

	for (size_t i = 0; i < chain_count(c); i++) {
		bool off = false;
		(void)policy_group_options(e->generation->policy, e->query->view.group,
					   chain_instance(c, i), &off);
		if (off)
			add_step(e->out, "", chain_instance(c, i), "off", "by the group");
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
static void around(struct explain *e)
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

/* ---- the query ---- */

static int listener_of(const struct config *config, const char *name)
{
	if (!name)
		return 0;
	for (size_t i = 0; i < config->listener_count; i++)
		if (config->listeners[i].name && strcmp(config->listeners[i].name, name) == 0)
			return (int)i;
	return -1;
}

static void query_begin(struct explain *e, const struct explain_request *request, int listener)
{
	struct query *q = e->query;
	const struct config *config = &e->generation->config;

	memset(q, 0, sizeof(*q));
	q->worker = &e->worker;
	memcpy(q->name, request->name.wire, request->name.length);
	memcpy(q->name_as_asked, request->name.wire, request->name.length);
	memcpy(q->client, request->client.octets, sizeof(q->client));
	q->header_flags = MESSAGE_RD;
	q->origin.transport = request->transport;
	q->origin.listener = (uint8_t)listener;
	q->origin.client.addr = request->client;
	q->edns.present = true;
	q->edns.udp_size = EXPLAIN_UDP_SIZE;
	q->received_us = clock_monotonic_us();
	q->view = (struct baleen_query){
		.size = sizeof(q->view),
		.type = request->type,
		.rrclass = CLASS_IN,
		.name = q->name,
		.name_length = request->name.length,
		.name_labels = request->name.labels,
		.transport = request->transport,
		.flags = BALEEN_QUERY_RD | BALEEN_QUERY_EDNS,
		.udp_size = EXPLAIN_UDP_SIZE,
		.client = q->client,
		.monotonic_ms = q->received_us / 1000,
		.wall_us = request->has_time ? request->wall_s * 1000000 : clock_wall_us(),
	};
	q->set = e->set;
	q->decided_by = EVENT_NO_PLUGIN;
	q->upstream_server = EVENT_NO_UPSTREAM;
	q->why = (struct baleen_why){.size = sizeof(q->why),
				     .rule = BALEEN_NONE,
				     .feed = BALEEN_NONE};

	const struct policy_client who = {
		.addr = request->client,
		.listener = config->listener_count ? config->listeners[listener].name : NULL,
	};
	char prefix[ADDR_TEXT_MAX];
	q->view.group =
		request->has_group ? request->group : policy_group_of(e->generation->policy, &who);
	const char *why = request->has_group
				  ? "as asked"
				  : policy_group_why(e->generation->policy, &who, prefix);
	e->out->group = policy_group_name(e->generation->policy, q->view.group);
	e->out->group_why =
		arena_strdup(&e->out->arena, why ? why : "no other group has this client");
}

/* What the core answers before any plugin is asked. */
static bool refused_by_core(struct explain *e, const struct explain_request *request)
{
	const struct config *config = &e->generation->config;
	struct query *q = e->query;

	bool allowed = request->has_group || request->any_client;
	for (size_t i = 0; i < config->allow_client_count && !allowed; i++)
		allowed = prefix_contains(&config->allow_clients[i], &request->client);
	if (!allowed) {
		q->verdict = EVENT_REFUSE;
		q->why.ede = EDE_PROHIBITED;
		q->why.text = "the client is not in allow-clients";
		add_step(e->out, "client", "", "refuse", q->why.text);
		return true;
	}
	if (e->worker.shm && query_of_death_listed(e->worker.shm, q->name, q->view.name_length,
						   q->view.type, q->view.monotonic_ms)) {
		q->verdict = EVENT_ERROR;
		q->why.text = "this query has killed a worker a moment ago";
		add_step(e->out, "client", "", "error", q->why.text);
		return true;
	}
	return false;
}

static bool run(struct explain *e, enum query_phase phase, const struct baleen_answer *answer)
{
	struct chain *c = e->generation->chain;
	struct query *q = e->query;

	q->phase = phase;
	q->next = 0;
	while (chain_has(c, q->view.group, phase)) {
		if (chain_run(c, q, phase, answer, true) != CHAIN_DECIDED)
			return false;
		/* TC over TCP would have the client come back for ever: the path goes on. */
		if (q->verdict != EVENT_TRUNCATE || q->origin.transport != BALEEN_TCP)
			return true;
		q->verdict = EVENT_ALLOW;
		q->decided_by = EVENT_NO_PLUGIN;
	}
	return false;
}

/* The decision, set aside while the target of a rewrite is asked for. */
struct decision {
	uint8_t decided_by;
	struct baleen_why why;
	struct name match, target;
	const struct policy_answer *policy_answer;
};

/* The question, and where a rewrite leads. True: decided, and not by a rewrite. */
static bool question(struct explain *e, bool *rewritten, struct decision *kept)
{
	struct query *q = e->query;

	for (unsigned i = 0; i <= EXPLAIN_REWRITES_MAX; i++) {
		if (!run(e, PHASE_QUERY, NULL))
			return false;
		const struct name *target = answer_target(q);
		if (q->verdict != EVENT_REWRITE || !target)
			return true;
		*kept = (struct decision){q->decided_by, q->why, q->match, *target,
					  q->policy_answer};
		*rewritten = true;
		if (name_equal(target->wire, target->length, q->name, q->view.name_length))
			return false;
		memcpy(q->name, kept->target.wire, kept->target.length);
		q->view.name_length = kept->target.length;
		q->view.name_labels = kept->target.labels;
		q->looked_up = false;
		q->policy_done = false;
		q->verdict = EVENT_ALLOW;
		q->decided_by = EVENT_NO_PLUGIN;
		q->policy_answer = NULL;
	}
	return false;
}

static int answer(struct explain *e, const struct explain_request *request,
		  char error[EXPLAIN_ERROR_MAX])
{
	struct query *q = e->query;

	ssize_t size =
		message_from_text(request->answers, q->name, q->view.name_length, q->view.type,
				  e->message, sizeof(e->message), error, EXPLAIN_ERROR_MAX);
	if (size < 0)
		return -EINVAL;
	if (answer_view_make(e->view, e->message, (size_t)size, false, false) < 0) {
		snprintf(error, EXPLAIN_ERROR_MAX, "the answer cannot be read");
		return -EINVAL;
	}
	run(e, PHASE_ANSWER, &e->view->answer);
	return 0;
}

static void restore_question(struct explain *e, const struct explain_request *request)
{
	struct query *q = e->query;

	memcpy(q->name, request->name.wire, request->name.length);
	q->view.name_length = request->name.length;
	q->view.name_labels = request->name.labels;
	q->looked_up = false;
}

static int walk(struct explain *e, const struct explain_request *request,
		char error[EXPLAIN_ERROR_MAX])
{
	struct query *q = e->query;
	struct decision kept = {0};
	bool rewritten = false;
	int r = 0;

	if (refused_by_core(e, request) || run(e, PHASE_CLIENT, NULL))
		return 0;
	bool decided = question(e, &rewritten, &kept);
	restore_question(e, request);
	if (decided)
		return 0;
	if (request->answers && request->answers[0])
		r = answer(e, request, error);
	if (rewritten && q->verdict == EVENT_ALLOW) {
		q->verdict = EVENT_REWRITE;
		q->decided_by = kept.decided_by;
		q->why = kept.why;
		q->match = kept.match;
		q->why.match = q->match.wire;
		q->target = kept.target;
		q->policy_answer = kept.policy_answer;
	}
	return r;
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

static void conclude(struct explain *e)
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

int explain_decide(struct explain *e, const struct explain_request *request,
		   struct explain_result *out, char error[EXPLAIN_ERROR_MAX])
{
	char text[NAME_TEXT_MAX], word[MESSAGE_TYPE_TEXT], address[ADDR_TEXT_MAX];

	memset(out, 0, sizeof(*out));
	arena_init(&out->arena);
	e->out = out;
	int listener = listener_of(&e->generation->config, request->listener);
	if (listener < 0) {
		snprintf(error, EXPLAIN_ERROR_MAX, "there is no listener called \"%s\"",
			 request->listener);
		return -EINVAL;
	}
	name_format(request->name.wire, text);
	out->name = arena_strdup(&out->arena, text);
	out->type = arena_strdup(&out->arena, message_type_format(request->type, word));
	out->client = arena_strdup(&out->arena, addr_format(&request->client, address));
	out->steps = arena_alloc(&out->arena, EXPLAIN_STEPS_MAX * sizeof(*out->steps));

	query_begin(e, request, listener);
	add_off(e);
	chain_set_trace(e->generation->chain, on_hook, e);
	int r = walk(e, request, error);
	chain_set_trace(e->generation->chain, NULL, NULL);
	if (r < 0)
		return r;
	around(e);
	conclude(e);
	return 0;
}

void explain_fini(struct explain_result *r)
{
	arena_fini(&r->arena);
}
