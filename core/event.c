/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: written by the worker as numbers and wire names, read by the logger of the same
 * generation, which alone turns numbers into words. The JSON form is in event_json.c.
 *
 *   struct event_head | would[] | feeds (if any) | name | match | answers | category | text
 *
 * Invariant: event_read believes no number before it was compared with the table that it indexes.
 */
#include "core/event.h"

#include "base/addr.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/message.h"
#include "base/message_text.h"
#include "base/name.h"
#include "core/chain/chain.h"
#include "core/query.h"
#include "core/worker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_MAGIC	   0x45564e54U
#define EVENT_TEXT_MAX	   200 /* why->text and category, each */
#define EVENT_ANSWERS_MAX  64
#define EVENT_ANSWER_BYTES 256	/* of query.event_answers */
#define EVENT_POOL	   6144 /* decoded texts of one event */

const char *const event_verdict_words[EVENT_VERDICTS] = {
	[EVENT_ALLOW] = "allow",       [EVENT_BLOCK] = "block",	  [EVENT_ANSWER] = "answer",
	[EVENT_REWRITE] = "rewrite",   [EVENT_REFUSE] = "refuse", [EVENT_DROP] = "drop",
	[EVENT_TRUNCATE] = "truncate", [EVENT_ERROR] = "error",
};

static const char *const event_cache_words[] = {"none", "hit", "miss", "stale"};

struct event_would {
	uint32_t rule;
	uint8_t plugin;
	uint8_t verdict;
	uint16_t reserved;
};

struct event_head {
	uint32_t magic;
	uint32_t generation;
	int64_t wall_us;
	uint32_t latency_us;
	uint32_t group;
	uint32_t rule;
	uint32_t feed;
	uint16_t id, type, rrclass, rcode;
	uint16_t client_port, answer_size, answers_size;
	uint8_t has_feeds, reserved;
	uint8_t client[16];
	uint8_t transport, hop, worker, verdict;
	uint8_t plugin, cache, upstream_group, upstream_server;
	uint8_t name_length, match_length, would_count, answer_count;
	uint8_t category_length, text_length, has_category, has_text;
};

_Static_assert(sizeof(struct event_head) == 80 && sizeof(struct event_would) == 8, "no padding");

/* ---- worker ---- */

static uint8_t event_text_length(const char *text)
{
	return text ? (uint8_t)strnlen(text, EVENT_TEXT_MAX) : 0;
}

static void event_head_fill(struct event_head *h, const struct query *q, unsigned worker)
{
	int64_t finished = q->finished_us ? q->finished_us : clock_monotonic_us();
	int64_t latency = finished - q->received_us;
	/* Without a plugin `why` is whatever zeroed memory says, and 0 is a rule's number. */
	bool decided = q->decided_by != EVENT_NO_PLUGIN;
	bool answers = q->event_answers_size <= sizeof(q->event_answers);

	*h = (struct event_head){
		.magic = EVENT_MAGIC,
		.generation = q->worker->generation->number,
		.wall_us = q->view.wall_us,
		.latency_us = latency < 0	     ? 0
			      : latency > UINT32_MAX ? UINT32_MAX
						     : (uint32_t)latency,
		.group = q->view.group,
		.rule = decided ? q->why.rule : BALEEN_NONE,
		.feed = decided ? q->why.feed : BALEEN_NONE,
		.id = q->view.id,
		.type = q->view.type,
		.rrclass = q->view.rrclass,
		.rcode = q->rcode,
		.client_port = q->view.client_port,
		.answer_size = q->reply_size,
		.answers_size = answers ? q->event_answers_size : 0,
		.has_feeds = q->looked_up && feedmask_any(&q->lookup.feeds),
		.transport = q->view.transport,
		.hop = q->why.hop,
		.worker = (uint8_t)worker,
		.verdict = (uint8_t)q->verdict,
		.plugin = q->decided_by,
		.cache = (uint8_t)q->cache,
		.upstream_group = q->upstream_group,
		.upstream_server = q->upstream_server,
		.name_length = q->view.name_length,
		.match_length = q->match.length,
		.would_count = q->would_count < EVENT_WOULD_MAX ? q->would_count : EVENT_WOULD_MAX,
		.answer_count = answers ? q->event_answer_count : 0,
		.category_length = event_text_length(q->why.category),
		.text_length = event_text_length(q->why.text),
		.has_category = q->why.category != NULL,
		.has_text = q->why.text != NULL,
	};
	memcpy(h->client, q->client, sizeof(h->client));
}

/* What few events have. */
static void event_write_rest(struct writer *w, const struct event_head *h, const struct query *q)
{
	for (unsigned i = 0; i < h->would_count; i++) {
		const struct event_would would = {.rule = q->would[i].rule,
						  .plugin = q->would[i].plugin,
						  .verdict = q->would[i].verdict};
		writer_bytes(w, &would, sizeof(would));
	}
	if (h->has_feeds)
		writer_bytes(w, &q->lookup.feeds, sizeof(q->lookup.feeds));
}

void event_write(struct ring_writer *ring, const struct query *q, unsigned worker)
{
	struct event_head h;
	event_head_fill(&h, q, worker);

	bool important = h.verdict != EVENT_ALLOW || h.would_count > 0;
	size_t size = sizeof(h) + h.would_count * sizeof(struct event_would) +
		      (h.has_feeds ? sizeof(struct feedmask) : 0) + h.name_length + h.match_length +
		      h.answers_size + h.category_length + h.text_length;
	void *record = ring_reserve(ring, size, important, h.verdict);
	if (!record)
		return;
	struct writer w = writer_make(record, size);
	writer_bytes(&w, &h, sizeof(h));
	if (h.would_count || h.has_feeds)
		event_write_rest(&w, &h, q);
	writer_bytes(&w, q->name, h.name_length);
	writer_bytes(&w, q->match.wire, h.match_length);
	writer_bytes(&w, q->event_answers, h.answers_size);
	writer_bytes(&w, q->why.category, h.category_length);
	writer_bytes(&w, q->why.text, h.text_length);
	ring_commit(ring, size);
}

/* ---- logger ---- */

struct event_storage {
	const struct generation *generation;
	struct event_head head;
	struct feedmask feed_bits; /* that hold the name */
	uint8_t name[NAME_WIRE_MAX];
	uint8_t match[NAME_WIRE_MAX];
	const char *feeds[FEEDS_MAX + 1];
	struct baleen_would would[EVENT_WOULD_MAX];
	const char *answers[EVENT_ANSWERS_MAX + 1];
	char pool[EVENT_POOL];
	size_t used;
};

struct event_storage *event_storage_new(const struct generation *g)
{
	struct event_storage *s = calloc(1, sizeof(*s));
	if (s)
		s->generation = g;
	return s;
}

void event_storage_free(struct event_storage *s)
{
	free(s);
}

/* A text in the pool; cut where the pool ends. */
static const char *event_keep(struct event_storage *s, const char *text, size_t length)
{
	size_t room = sizeof(s->pool) - s->used;
	if (room == 0)
		return "";
	if (length > room - 1)
		length = room - 1;
	char *out = s->pool + s->used;
	memcpy(out, text, length);
	out[length] = '\0';
	s->used += length + 1;
	return out;
}

static const char *event_rule(struct event_storage *s, uint32_t rule)
{
	const struct policy *p = s->generation->policy;
	if (rule == BALEEN_NONE || !p || rule >= policy_rule_count(p))
		return NULL;
	const struct policy_rule_place *place = policy_rule_place(p, rule);
	char text[512];
	int n = snprintf(text, sizeof(text), "%s:%d", place->file, place->line);
	return event_keep(s, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static const char *event_plugin(const struct event_storage *s, uint8_t plugin)
{
	const struct chain *c = s->generation->chain;
	return c && plugin < chain_count(c) ? chain_instance(c, plugin) : NULL;
}

static const char *event_upstream(struct event_storage *s)
{
	const struct config *config = &s->generation->config;
	const struct event_head *h = &s->head;

	if (h->upstream_server == EVENT_NO_UPSTREAM || h->upstream_group >= config->upstream_count)
		return NULL;
	const struct config_upstream *u = &config->upstreams[h->upstream_group];
	if (h->upstream_server >= u->server_count)
		return NULL;
	char text[ENDPOINT_TEXT_MAX];
	endpoint_format(&u->servers[h->upstream_server], text);
	return event_keep(s, text, strlen(text));
}

/* One record: "A 192.0.2.1", "CNAME x.example.", else RFC 3597 "TYPE65 \# 2 0001". */
static const char *event_answer(struct event_storage *s, uint16_t type, const uint8_t *data,
				size_t length)
{
	char text[NAME_TEXT_MAX + 64], word[MESSAGE_TYPE_TEXT];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s ", message_type_format(type, word));
	unsigned labels;

	if ((type == TYPE_A && length == 4) || (type == TYPE_AAAA && length == 16)) {
		/* Not addr_format: an AAAA of ::ffff:192.0.2.1 must not look like an A. */
		inet_ntop(type == TYPE_A ? AF_INET : AF_INET6, data, text + n,
			  (socklen_t)(sizeof(text) - n));
		return event_keep(s, text, strlen(text));
	}
	bool is_name =
		type == TYPE_CNAME || type == TYPE_DNAME || type == TYPE_NS || type == TYPE_PTR;
	if (is_name && length > 0 && name_measure(data, length, &labels) == length) {
		name_format(data, text + n);
		return event_keep(s, text, strlen(text));
	}
	n += (size_t)snprintf(text + n, sizeof(text) - n, "\\# %zu%s", length, length ? " " : "");
	for (size_t i = 0; i < length && n + 3 < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%02x", data[i]);
	return event_keep(s, text, n);
}

static int event_answers(struct event_storage *s, const uint8_t *data, struct baleen_event *out)
{
	struct cursor c = cursor_make(data, s->head.answers_size);
	unsigned n = 0;

	for (unsigned i = 0; i < s->head.answer_count && n < EVENT_ANSWERS_MAX; i++) {
		uint16_t field[2];
		const uint8_t *p = cursor_take(&c, sizeof(field));
		if (!p)
			return -EBADMSG;
		memcpy(field, p, sizeof(field));
		p = cursor_take(&c, field[1]);
		if (!p)
			return -EBADMSG;
		s->answers[n++] = event_answer(s, field[0], p, field[1]);
	}
	s->answers[n] = NULL;
	out->answers = s->answers;
	out->answer_count = n;
	return 0;
}

static void event_feeds(struct event_storage *s, struct baleen_event *out)
{
	const struct feeds *feeds = &s->generation->config.feeds;
	unsigned n = 0;

	for (unsigned i = 0; i < feeds->count && i < FEEDS_MAX; i++)
		if (feedmask_has(&s->feed_bits, i))
			s->feeds[n++] = feeds->items[i].name;
	s->feeds[n] = NULL;
	out->feeds = s->feeds;
	if (s->head.feed < feeds->count)
		out->feed = feeds->items[s->head.feed].name;
}

static bool event_head_ok(const struct event_storage *s)
{
	const struct event_head *h = &s->head;
	return h->magic == EVENT_MAGIC && h->generation == s->generation->number &&
	       h->verdict < EVENT_VERDICTS && h->cache <= EVENT_CACHE_STALE &&
	       h->hop <= BALEEN_HOP_PAYLOAD && h->transport <= BALEEN_TCP &&
	       h->would_count <= EVENT_WOULD_MAX && h->answers_size <= EVENT_ANSWER_BYTES &&
	       h->group < policy_group_count(s->generation->policy);
}

static int event_would(struct event_storage *s, struct cursor *c, struct baleen_event *out)
{
	for (unsigned i = 0; i < s->head.would_count; i++) {
		struct event_would w;
		const uint8_t *p = cursor_take(c, sizeof(w));
		if (!p)
			return -EBADMSG;
		memcpy(&w, p, sizeof(w));
		const char *plugin = event_plugin(s, w.plugin);
		s->would[i] = (struct baleen_would){
			.plugin = plugin ? plugin : "",
			.rule = event_rule(s, w.rule),
			.verdict = w.verdict < BALEEN_VERDICTS ? w.verdict : BALEEN_PASS,
		};
	}
	out->would = s->would;
	out->would_count = s->head.would_count;
	out->mode = out->would_count && s->head.verdict == EVENT_ALLOW ? "monitor" : "enforce";
	return 0;
}

static int event_feed_bits(struct event_storage *s, struct cursor *c)
{
	s->feed_bits = (struct feedmask){0};
	if (!s->head.has_feeds)
		return 0;
	const uint8_t *p = cursor_take(c, sizeof(s->feed_bits));
	if (!p)
		return -EBADMSG;
	memcpy(&s->feed_bits, p, sizeof(s->feed_bits));
	return 0;
}

static int event_names(struct event_storage *s, struct cursor *c, struct baleen_event *out)
{
	const struct event_head *h = &s->head;
	unsigned labels;
	const uint8_t *name = cursor_take(c, h->name_length);
	const uint8_t *match = cursor_take(c, h->match_length);

	if (!name || !match || name_measure(name, h->name_length, &labels) != h->name_length)
		return -EBADMSG;
	memcpy(s->name, name, h->name_length);
	out->name = s->name;
	out->name_length = h->name_length;
	if (h->match_length == 0)
		return 0;
	if (name_measure(match, h->match_length, &labels) != h->match_length)
		return -EBADMSG;
	memcpy(s->match, match, h->match_length);
	out->match = s->match;
	return 0;
}

int event_read(struct event_storage *s, const void *record, size_t size, struct baleen_event *out)
{
	struct cursor c = cursor_make(record, size);
	const uint8_t *p = cursor_take(&c, sizeof(s->head));

	memset(out, 0, sizeof(*out));
	s->used = 0;
	if (!p)
		return -EBADMSG;
	memcpy(&s->head, p, sizeof(s->head));
	if (!event_head_ok(s) || event_would(s, &c, out) < 0 || event_feed_bits(s, &c) < 0 ||
	    event_names(s, &c, out) < 0)
		return -EBADMSG;
	const struct event_head *h = &s->head;
	const uint8_t *answers = cursor_take(&c, h->answers_size);
	const uint8_t *category = cursor_take(&c, h->category_length);
	const uint8_t *text = cursor_take(&c, h->text_length);
	if (!cursor_ok(&c))
		return -EBADMSG;

	out->size = sizeof(*out);
	out->id = h->id;
	out->type = h->type;
	out->rrclass = h->rrclass;
	out->rcode = h->rcode;
	out->wall_us = h->wall_us;
	out->latency_us = h->latency_us;
	out->answer_size = h->answer_size;
	out->client_port = h->client_port;
	out->client = h->client;
	out->group = policy_group_name(s->generation->policy, h->group);
	out->transport = h->transport;
	out->hop = h->hop;
	out->worker = h->worker;
	out->verdict = event_verdict_words[h->verdict];
	out->plugin = event_plugin(s, h->plugin);
	out->rule = event_rule(s, h->rule);
	out->cache = event_cache_words[h->cache];
	out->upstream = event_upstream(s);
	if (h->has_category)
		out->category = event_keep(s, (const char *)category, h->category_length);
	if (h->has_text)
		out->text = event_keep(s, (const char *)text, h->text_length);
	event_feeds(s, out);
	return event_answers(s, answers, out);
}
