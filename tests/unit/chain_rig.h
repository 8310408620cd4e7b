/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the chain: a generation made by hand, with plugins from tests/abi or plugins/, a
 * worker without sockets, a set built in a temporary file, and a policy that says what the test
 * says. The policy's functions are defined here, so a test that includes this does not link the
 * real ones.
 */
#ifndef CHAIN_RIG_H
#define CHAIN_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/diag.h"
#include "base/key.h"
#include "base/message_text.h"
#include "base/node.h"
#include "core/chain/chain.h"
#include "core/chain/chain_internal.h"
#include "core/chain/tickets.h"
#include "core/dns/answer_view.h"
#include "core/dns/path.h"
#include "core/generation.h"
#include "core/query.h"
#include "core/worker.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No test needs all of this. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define RIG_GROUPS 2 /* "default" and "other" */
#define RIG_RULES  8

/* One rule of the pretended policy: for names at or under `name`, or for one address. */
struct rig_rule {
	const char *name;
	const char *address;
	int feed; /* -1: none; else only if the name's look-up has it */
	enum policy_action action;
	struct policy_answer answer;
};

struct rig {
	struct generation g;
	struct worker w;
	struct breadcrumb crumb;
	struct diags d;
	struct chain *chain;
	struct feed feeds[4];
	struct domset *set;
	char set_path[64];
	struct query q;
	struct answer_view *view;
	uint8_t message[65535];
	char plugins[4096]; /* folder of the built plugins */
	char abi[4096];
};

static struct {
	struct rig_rule rules[RIG_RULES];
	struct name names[RIG_RULES];
	size_t count;
	const struct node *options[RIG_GROUPS]; /* map: instance -> its map, or "off" */
	unsigned asked;				/* how often policy_question ran */
	struct query *resumed;			/* by path_resume */
	unsigned resumptions;
} rig_policy;

/* ---- the pretended policy ---- */

size_t policy_group_count(const struct policy *p)
{
	(void)p;
	return RIG_GROUPS;
}

const char *policy_group_name(const struct policy *p, uint32_t group)
{
	(void)p;
	return group ? "other" : "default";
}

const char *policy_group_file(const struct policy *p, uint32_t group)
{
	(void)p;
	return group ? "policies/other.yaml" : NULL;
}

const struct node *policy_group_options(const struct policy *p, uint32_t group,
					const char *instance, bool *off)
{
	(void)p;
	const struct node *n = group < RIG_GROUPS && rig_policy.options[group]
				       ? node_get(rig_policy.options[group], instance)
				       : NULL;
	*off = n && n->kind == NODE_SCALAR && strcmp(n->text, "off") == 0;
	return n;
}

size_t policy_rule_count(const struct policy *p)
{
	(void)p;
	return rig_policy.count;
}

bool policy_has_answer_rules(const struct policy *p, uint32_t group)
{
	(void)p;
	(void)group;
	for (size_t i = 0; i < rig_policy.count; i++)
		if (rig_policy.rules[i].address)
			return true;
	return false;
}

static void rig_outcome(size_t i, unsigned labels, struct policy_outcome *out)
{
	struct rig_rule *rule = &rig_policy.rules[i];

	out->action = rule->action;
	out->rule = (uint32_t)i;
	out->match_labels = (uint8_t)labels;
	out->answer = &rule->answer;
	out->feed = rule->feed < 0 ? FEED_NONE : (uint16_t)rule->feed;
}

void policy_question(const struct policy *p, uint32_t group, const struct policy_question *q,
		     struct policy_outcome *out)
{
	(void)p;
	(void)group;
	rig_policy.asked++;
	memset(out, 0, sizeof(*out));
	out->rule = POLICY_RULE_NONE;
	out->feed = FEED_NONE;
	for (size_t i = 0; i < rig_policy.count; i++) {
		struct rig_rule *rule = &rig_policy.rules[i];
		struct name *n = &rig_policy.names[i];
		if (rule->address)
			continue;
		if (rule->name && !name_is_under(q->name, q->length, n->wire, n->length))
			continue;
		if (rule->feed >= 0 &&
		    !(q->feeds && feedmask_has(&q->feeds->feeds, (unsigned)rule->feed)))
			continue;
		if (rule->action == POLICY_MONITOR) {
			out->monitored[out->monitored_count++] = (uint32_t)i;
			continue;
		}
		rig_outcome(i, rule->name ? n->labels : q->labels, out);
		return;
	}
}

void policy_address(const struct policy *p, uint32_t group, const struct policy_question *q,
		    const struct addr *address, struct policy_outcome *out)
{
	(void)p;
	(void)group;
	memset(out, 0, sizeof(*out));
	out->rule = POLICY_RULE_NONE;
	out->feed = FEED_NONE;
	for (size_t i = 0; i < rig_policy.count; i++) {
		struct addr a;
		if (!rig_policy.rules[i].address)
			continue;
		assert_int_equal(addr_parse(rig_policy.rules[i].address, &a), 0);
		if (addr_equal(&a, address)) {
			rig_outcome(i, q->labels, out);
			return;
		}
	}
}

void path_resume(struct query *q)
{
	rig_policy.resumed = q;
	rig_policy.resumptions++;
}

static void rig_rule_add(struct rig_rule rule)
{
	size_t i = rig_policy.count++;

	assert_true(i < RIG_RULES);
	rig_policy.rules[i] = rule;
	if (rule.name)
		assert_int_equal(name_parse(rule.name, strlen(rule.name), &rig_policy.names[i]), 0);
}

/* ---- building ---- */

static const struct node *rig_yaml(struct rig *r, const char *text)
{
	struct node *n = NULL;

	assert_int_equal(node_parse("/etc/baleen/test.yaml", text, strlen(text), &r->g.arena, &r->d,
				    &n),
			 0);
	return n;
}

static void rig_folders(struct rig *r)
{
	char self[2048];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(r->plugins, sizeof(r->plugins), "%s/../plugins", self);
	snprintf(r->abi, sizeof(r->abi), "%s/../abi", self);
}

static struct rig *rig_new(bool with_shm)
{
	static const char *const names[] = {"ads", "evil", "dark", "weak"};
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	memset(&rig_policy, 0, sizeof(rig_policy));
	rig_folders(r);
	arena_init(&r->g.arena);
	diag_init(&r->d);
	log_set_level(LOG_ERROR_);
	r->g.number = 1;
	r->g.source = source_disk();
	r->g.shm = with_shm ? shm_private(1, 0) : NULL;
#define RIG_METRIC(id, name, help) shm_metric(r->g.shm, name);
	if (with_shm) {
		METRICS(RIG_METRIC)
	}
	r->g.config.path = "/etc/baleen/baleen.yaml";
	r->g.config.folder = "/etc/baleen";
	r->g.config.state = "/var/lib/baleen";
	/* ads: blocklist; evil: threat, sure; dark: threat, shadow; weak: threat, unsure. */
	for (unsigned i = 0; i < 4; i++)
		r->feeds[i] = (struct feed){
			.name = names[i],
			.number = i,
			.kind = i ? FEED_KIND_THREAT : FEED_KIND_BLOCKLIST,
			.mode = i == 2 ? FEED_MODE_SHADOW : FEED_MODE_ENFORCE,
			.category = i == 1 ? "malware" : "",
			.threat_type = i == 1 ? "c2" : "",
			.confidence = i == 3 ? 10 : 90,
		};
	r->g.config.feeds.items = r->feeds;
	r->g.config.feeds.count = 4;
	r->g.policy = (struct policy *)&rig_policy; /* only the stand-ins look at it */
	return r;
}

/* An entry: a file name in tests/abi without .so, or a shipped plugin's word. */
static struct config_plugin *rig_add(struct rig *r, const char *plugin, const char *instance,
				     const char *yaml)
{
	struct config_plugin *p = &r->g.config.chain[r->g.config.chain_count++];
	char path[8192];

	snprintf(path, sizeof(path), "%s/%s.so", r->abi, plugin);
	if (access(path, R_OK) < 0)
		snprintf(path, sizeof(path), "%s/%s.so", r->plugins, plugin);
	*p = (struct config_plugin){
		.plugin = arena_strdup(&r->g.arena, path),
		.instance = instance,
		.options = yaml ? rig_yaml(r, yaml) : NULL,
		.line = (int)r->g.config.chain_count,
		.column = 5,
	};
	return p;
}

static int rig_load(struct rig *r)
{
	return chain_load(&r->g, &r->d, &r->chain);
}

static bool rig_told(const struct rig *r, const char *text)
{
	for (size_t i = 0; i < r->d.count; i++)
		if (strstr(r->d.items[i].text, text))
			return true;
	diag_print(&r->d, stderr);
	return false;
}

static void rig_start(struct rig *r)
{
	char error[256];

	if (rig_load(r) < 0) {
		diag_print(&r->d, stderr);
		fail();
	}
	r->g.chain = r->chain;
	r->w.generation = &r->g;
	r->w.shm = r->g.shm;
	r->w.cells = r->g.shm ? shm_cells(r->g.shm, 0) : NULL;
	r->w.crumb = &r->crumb;
	r->w.base = event_base_new();
	r->view = answer_view_new();
	if (chain_start_worker(r->chain, &r->w, r->w.base, error) < 0)
		fail_msg("%s", error);
}

static void rig_free(struct rig *r)
{
	if (r->w.generation)
		chain_stop_worker(r->chain);
	if (r->w.base)
		event_base_free(r->w.base);
	answer_view_free(r->view);
	if (r->set)
		domset_close(r->set);
	if (r->set_path[0])
		unlink(r->set_path);
	shm_unmap(r->g.shm);
	source_free(r->g.source);
	arena_fini(&r->g.arena);
	diag_fini(&r->d);
	free(r);
}

/* ---- a set ---- */

struct rig_entry {
	const char *name;
	uint16_t feed; /* 0..3 as in rig_new */
	uint16_t flags;
};

struct rig_stream {
	struct {
		uint8_t key[KEY_MAX];
		size_t length;
		struct domset_entry entries[4];
		size_t count;
	} records[32];
	size_t count;
	size_t at;
};

static int rig_stream_next(void *context, struct domset_record *out)
{
	struct rig_stream *s = context;

	if (s->at == s->count)
		return 0;
	*out = (struct domset_record){s->records[s->at].key, s->records[s->at].length,
				      s->records[s->at].entries, s->records[s->at].count};
	s->at++;
	return 1;
}

static int rig_stream_rewind(void *context)
{
	((struct rig_stream *)context)->at = 0;
	return 0;
}

/* Entries must come in key order (labels from the root) and, for one name, in feed order. */
static void rig_set(struct rig *r, const struct rig_entry *entries, size_t count)
{
	/* Names in the file are sorted: ads, dark, evil, weak. */
	static const char *const sorted[] = {"ads", "dark", "evil", "weak"};
	static const uint16_t index[] = {0, 2, 1, 3};
	static struct rig_stream stream;
	const struct domset_build build = {.feed_names = sorted, .feed_count = 4};
	struct domset_stream in = {rig_stream_next, rig_stream_rewind, &stream};
	struct domset_stats stats;
	char error[DOMSET_ERROR_MAX];

	memset(&stream, 0, sizeof(stream));
	for (size_t i = 0; i < count; i++) {
		struct name n;
		uint8_t key[KEY_MAX];
		assert_int_equal(name_parse(entries[i].name, strlen(entries[i].name), &n), 0);
		size_t length = key_from_wire(n.wire, n.length, n.labels, key);
		size_t k = stream.count;
		if (!k || stream.records[k - 1].length != length ||
		    memcmp(stream.records[k - 1].key, key, length) != 0) {
			memcpy(stream.records[k].key, key, length);
			stream.records[k].length = length;
			stream.count++;
		} else {
			k--;
		}
		size_t at = stream.records[k].count++;
		stream.records[k].entries[at] =
			(struct domset_entry){index[entries[i].feed], entries[i].flags};
	}
	snprintf(r->set_path, sizeof(r->set_path), "/tmp/baleen-rig-%d.mdb", (int)getpid());
	unlink(r->set_path);
	assert_int_equal(domset_build(r->set_path, &build, &in, &stats), 0);
	assert_int_equal(domset_open(r->set_path, DOMSET_CHECK_ALL, &r->set, error), 0);
	assert_int_equal(domset_bind(r->set, &r->g.config.feeds), 0);
}

/* ---- a query ---- */

static struct query *rig_query(struct rig *r, const char *name, const char *client)
{
	struct query *q = &r->q;
	struct name n;
	struct addr a;

	assert_int_equal(name_parse(name, strlen(name), &n), 0);
	assert_int_equal(addr_parse(client, &a), 0);
	memset(q, 0, sizeof(*q));
	memset(q->slots, 0xa5, sizeof(q->slots));
	q->worker = &r->w;
	memcpy(q->name, n.wire, n.length);
	memcpy(q->client, a.octets, 16);
	q->view = (struct baleen_query){
		.size = sizeof(q->view),
		.type = TYPE_A,
		.rrclass = CLASS_IN,
		.name = q->name,
		.name_length = n.length,
		.name_labels = n.labels,
		.client = q->client,
		.monotonic_ms = 1000000,
		.wall_us = 1700000000000000,
	};
	q->set = r->set;
	q->decided_by = EVENT_NO_PLUGIN;
	q->why = (struct baleen_why){.size = sizeof(q->why),
				     .rule = BALEEN_NONE,
				     .feed = BALEEN_NONE};
	return q;
}

/* Run one phase from its beginning. */
static enum chain_next rig_run(struct rig *r, enum query_phase phase,
			       const struct baleen_answer *answer)
{
	r->q.next = 0;
	return chain_run(r->chain, &r->q, phase, answer, false);
}

/* The answer that upstream would give. */
static const struct baleen_answer *rig_answer(struct rig *r, const char *const *rrs)
{
	char error[256] = "";
	ssize_t size = message_from_text(rrs, r->q.name, r->q.view.name_length, r->q.view.type,
					 r->message, sizeof(r->message), error, sizeof(error));
	if (size < 0)
		fail_msg("%s", error);
	assert_int_equal(answer_view_make(r->view, r->message, (size_t)size, false, false), 0);
	return &r->view->answer;
}

static uint64_t rig_metric(struct rig *r, const char *name)
{
	unsigned before = shm_metric_count(r->g.shm);
	unsigned metric = shm_metric(r->g.shm, name);

	assert_int_equal(shm_metric_count(r->g.shm), before); /* it must have been there */
	return shm_metric_sum(r->g.shm, metric);
}

#endif
