/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's two functions that judge names: the policy's outcome and the look-up of feeds. Worker
 * process, and explain. Owns nothing. Invariant: a set that is damaged, a record that cannot be
 * read: each is FAIL, never "not listed".
 *
 * The question's look-up and outcome are kept in the query. An answer's names are looked up each
 * time they are asked for: they are few, and a look-up of a clean name costs a few memory reads.
 */
#include "core/chain/host.h"

#include "base/cursor.h"
#include "base/message.h"
#include "base/name.h"
#include "core/chain/chain_internal.h"
#include "core/worker.h"

#include <string.h>

#define SVCB_IPV4HINT 4
#define SVCB_IPV6HINT 6

/*
 * What the set lists of a name cannot be told. The query does not pass, whatever `on-failure` says,
 * and the fetcher is asked to look at the file.
 */
static void unjudged(struct baleen_handle *h)
{
	const struct worker *w = h->query->worker;

	h->unjudged = true;
	if (!w || !w->shm)
		return;
	chain_count_metric(h->chain, METRIC_SET_DAMAGED, 1);
	if (w->set)
		atomic_store_explicit(shm_set_suspect(w->shm), w->set_number, memory_order_release);
}

/* One was published and could not be opened: nothing is known of any name. */
static bool set_missing(const struct query *q)
{
	const struct worker *w = q->worker;

	return !q->set && w && w->shm && !w->set &&
	       atomic_load_explicit(shm_set_number(w->shm), memory_order_acquire) != 0;
}

static void count_feeds(struct chain *c, const struct feedmask *feeds)
{
	for (unsigned word = 0; word < FEEDS_MAX / 64; word++)
		for (uint64_t left = feeds->words[word]; left; left &= left - 1) {
			size_t feed = 64 * word + (unsigned)__builtin_ctzll(left);
			if (feed < c->generation->config.feeds.count)
				chain_count_metric(c, c->metric_feed[feed], 1);
		}
}

/* Look the question up, once a query. False: damaged. */
static bool question_lookup(struct baleen_handle *h)
{
	struct query *q = h->query;
	struct chain *c = h->chain;

	if (!q->looked_up) {
		q->looked_up = true;
		if (q->set) {
			domset_lookup_hashed(q->set, q->name, q->view.name_length,
					     q->view.name_labels, &q->hashes, &q->lookup);
		} else {
			memset(&q->lookup.feeds, 0, sizeof(q->lookup.feeds));
			q->lookup.count = 0;
			q->lookup.labels = q->view.name_labels;
			q->lookup.damaged = set_missing(q);
		}
		if (feedmask_any(&q->lookup.feeds))
			count_feeds(c, &q->lookup.feeds);
	}
	if (q->lookup.damaged)
		unjudged(h);
	return !q->lookup.damaged;
}

/* A name and what the set says of it. */
struct judged {
	const uint8_t *name;
	uint8_t length;
	uint8_t labels;
	const struct domset_result *feeds;
};

static struct policy_question question_of(const struct query *q, const struct judged *n)
{
	return (struct policy_question){
		.name = n->name,
		.length = n->length,
		.labels = n->labels,
		.type = q->view.type,
		.wall_s = q->view.wall_us / 1000000,
		.feeds = q->set ? n->feeds : NULL,
		.set = q->set,
	};
}

static void monitored(struct baleen_handle *h, const struct policy_outcome *o)
{
	for (unsigned i = 0; i < o->monitored_count; i++)
		chain_would(h->query, h->index, BALEEN_BLOCK, o->monitored[i]);
}

static enum baleen_hop hop_of(uint16_t type)
{
	return type == TYPE_HTTPS || type == TYPE_SVCB ? BALEEN_HOP_HINT : BALEEN_HOP_CNAME;
}

/* An outcome in the words of plugin.h. */
static enum baleen_verdict verdict_of(struct baleen_call *call, const struct policy_outcome *o,
				      const struct judged *n, enum baleen_hop hop)
{
	static const enum baleen_verdict verdicts[] = {
		[POLICY_PASS] = BALEEN_PASS,	   [POLICY_ALLOW] = BALEEN_ALLOW,
		[POLICY_BLOCK] = BALEEN_BLOCK,	   [POLICY_MONITOR] = BALEEN_PASS,
		[POLICY_REWRITE] = BALEEN_REWRITE,
	};
	static const uint8_t forms[] = {
		[POLICY_FORM_NXDOMAIN] = BALEEN_FORM_NXDOMAIN,
		[POLICY_FORM_NODATA] = BALEEN_FORM_NODATA,
		[POLICY_FORM_ZERO_IP] = BALEEN_FORM_ZERO_IP,
		[POLICY_FORM_REFUSED] = BALEEN_FORM_DEFAULT,
		[POLICY_FORM_DROP] = BALEEN_FORM_DEFAULT,
		[POLICY_FORM_TRUNCATE] = BALEEN_FORM_DEFAULT,
		[POLICY_FORM_CNAME] = BALEEN_FORM_CNAME,
		[POLICY_FORM_ADDRESSES] = BALEEN_FORM_ADDRESSES,
	};
	struct baleen_why *why = call->why;
	enum baleen_verdict verdict = verdicts[o->action];

	/* Who came over TCP has done what `answer: truncate` asks for. */
	if (verdict == BALEEN_BLOCK && o->answer && o->answer->form == POLICY_FORM_TRUNCATE &&
	    call->query->transport == BALEEN_TCP)
		verdict = BALEEN_PASS;
	if (verdict == BALEEN_PASS)
		return verdict;
	why->rule = o->rule;
	why->feed = o->feed == FEED_NONE ? BALEEN_NONE : o->feed;
	why->hop = (uint8_t)hop;
	why->category = o->category;
	why->exact = o->match_exact || o->allow_below;
	if (n && o->match_labels <= n->labels) {
		size_t skip = name_suffix_offset(n->name, n->labels, o->match_labels);
		why->match = n->name + skip;
		why->match_length = (uint8_t)(n->length - skip);
	}
	if (o->answer) {
		why->form = forms[o->answer->form];
		why->ede = o->answer->ede;
		why->ttl = o->answer->ttl_s;
		why->text = o->answer->ede_text;
		if (o->answer->target.length) {
			why->target = o->answer->target.wire;
			why->target_length = o->answer->target.length;
		}
	}
	call->handle->rule = o->rule;
	call->handle->answer = o->answer;
	return verdict;
}

static enum baleen_verdict policy_of_question(struct baleen_call *call)
{
	struct baleen_handle *h = call->handle;
	struct query *q = h->query;
	struct judged n = {.name = q->name,
			   .length = q->view.name_length,
			   .labels = q->view.name_labels,
			   .feeds = &q->lookup};

	if (!question_lookup(h)) {
		call->why->text = "the domain set is damaged";
		return BALEEN_FAIL;
	}
	if (!q->policy_done) {
		struct policy_question question = question_of(q, &n);
		q->policy = (struct policy_outcome){.rule = POLICY_RULE_NONE, .feed = FEED_NONE};
		policy_question(h->chain->generation->policy, q->view.group, &question, &q->policy);
		q->policy_done = true;
		monitored(h, &q->policy);
	}
	return verdict_of(call, &q->policy, &n, BALEEN_HOP_QUESTION);
}

/* One name that the answer leads to. PASS: nothing against it. */
static enum baleen_verdict judge_target(struct baleen_call *call, const struct baleen_record *r)
{
	struct baleen_handle *h = call->handle;
	struct query *q = h->query;
	struct domset_result feeds;
	struct policy_outcome outcome = {.rule = POLICY_RULE_NONE, .feed = FEED_NONE};
	struct judged n = {.name = r->target, .length = r->target_length, .feeds = &feeds};
	unsigned labels;

	if (name_measure(r->target, r->target_length, &labels) != r->target_length)
		return BALEEN_FAIL;
	/* "." in HTTPS and SVCB is the owner itself (RFC 9460 section 2.5). */
	if (labels == 0)
		return BALEEN_PASS;
	n.labels = (uint8_t)labels;
	if (q->set) {
		domset_lookup(q->set, n.name, n.length, n.labels, &feeds);
		if (feeds.damaged) {
			unjudged(h);
			call->why->text = "the domain set is damaged";
			return BALEEN_FAIL;
		}
	}
	struct policy_question question = question_of(q, &n);
	policy_question(h->chain->generation->policy, q->view.group, &question, &outcome);
	monitored(h, &outcome);
	/* An allowed hop says nothing about the next; a rewrite is for questions. */
	if (outcome.action != POLICY_BLOCK)
		return BALEEN_PASS;
	enum baleen_verdict verdict = verdict_of(call, &outcome, &n, hop_of(r->type));
	return verdict;
}

/* All of them: a hop that is not looked at is a way around. Their number is bounded by the view. */
static enum baleen_verdict judge_names(struct baleen_call *call)
{
	const struct baleen_answer *a = call->answer;

	for (unsigned i = 0; i < a->record_count; i++) {
		if (!a->records[i].target_length)
			continue;
		enum baleen_verdict verdict = judge_target(call, &a->records[i]);
		if (verdict != BALEEN_PASS)
			return verdict;
	}
	return BALEEN_PASS;
}

static enum baleen_verdict judge_address(struct baleen_call *call, const uint8_t *octets,
					 size_t size, enum baleen_hop hop)
{
	struct baleen_handle *h = call->handle;
	struct query *q = h->query;
	struct policy_outcome outcome = {.rule = POLICY_RULE_NONE, .feed = FEED_NONE};
	struct judged n = {.name = q->name,
			   .length = q->view.name_length,
			   .labels = q->view.name_labels,
			   .feeds = &q->lookup};
	struct addr address = {{0}};

	if (size == 4) {
		address.octets[10] = address.octets[11] = 0xff;
		memcpy(address.octets + 12, octets, 4);
	} else {
		memcpy(address.octets, octets, 16);
	}
	struct policy_question question = question_of(q, &n);
	policy_address(h->chain->generation->policy, q->view.group, &question, &address, &outcome);
	monitored(h, &outcome);
	if (outcome.action != POLICY_BLOCK)
		return BALEEN_PASS;
	return verdict_of(call, &outcome, NULL, hop);
}

/* ipv4hint and ipv6hint of an HTTPS or SVCB record (RFC 9460 section 2.2). */
static enum baleen_verdict judge_hints(struct baleen_call *call, const struct baleen_record *r)
{
	struct cursor c = cursor_make(r->rdata, r->rdata_length);
	unsigned labels;

	cursor_skip(&c, 2); /* priority */
	size_t name = cursor_ok(&c) ? name_measure(c.data + c.at, cursor_left(&c), &labels) : 0;
	if (!name)
		return BALEEN_FAIL;
	cursor_skip(&c, name);
	while (cursor_left(&c) > 0) {
		uint16_t key = cursor_u16(&c);
		uint16_t length = cursor_u16(&c);
		const uint8_t *value = cursor_take(&c, length);
		size_t size = key == SVCB_IPV4HINT ? 4 : key == SVCB_IPV6HINT ? 16 : 0;
		if (!value || (size && length % size != 0))
			return BALEEN_FAIL;
		for (size_t at = 0; size && at < length; at += size) {
			enum baleen_verdict verdict =
				judge_address(call, value + at, size, BALEEN_HOP_HINT);
			if (verdict != BALEEN_PASS)
				return verdict;
		}
	}
	return cursor_ok(&c) ? BALEEN_PASS : BALEEN_FAIL;
}

static enum baleen_verdict judge_addresses(struct baleen_call *call)
{
	const struct baleen_answer *a = call->answer;
	enum baleen_verdict verdict = BALEEN_PASS;

	if (!policy_has_answer_rules(call->handle->chain->generation->policy, call->query->group))
		return BALEEN_PASS;
	/* Answer rules may ask for feeds as well. */
	if (!question_lookup(call->handle)) {
		call->why->text = "the domain set is damaged";
		return BALEEN_FAIL;
	}
	for (unsigned i = 0; i < a->record_count && verdict == BALEEN_PASS; i++) {
		const struct baleen_record *r = &a->records[i];
		size_t size = r->type == TYPE_A ? 4 : r->type == TYPE_AAAA ? 16 : 0;
		if (size)
			verdict = r->rdata_length == size
					  ? judge_address(call, r->rdata, size, BALEEN_HOP_ADDRESS)
					  : BALEEN_FAIL;
		else if (r->type == TYPE_HTTPS || r->type == TYPE_SVCB)
			verdict = judge_hints(call, r);
		if (verdict == BALEEN_FAIL) {
			call->handle->unjudged = true;
			call->why->text = "a record of the answer cannot be read";
		}
	}
	return verdict;
}

enum baleen_verdict host_policy(struct baleen_call *call)
{
	if (!call->answer)
		return policy_of_question(call);
	enum baleen_verdict verdict = judge_names(call);
	return verdict == BALEEN_PASS ? judge_addresses(call) : verdict;
}

uint32_t host_lookup(struct baleen_call *call, const uint8_t *name, uint8_t length,
		     struct baleen_match *out, uint32_t max)
{
	struct baleen_handle *h = call->handle;
	struct query *q = h->query;
	const struct feeds *feeds = &h->chain->generation->config.feeds;
	const struct domset_result *result = &q->lookup;
	struct domset_result other;
	uint32_t found = 0;
	unsigned labels = 0;

	bool own = name == q->name && length == q->view.name_length;
	if (!own && name_measure(name, length, &labels) != length)
		return BALEEN_NONE;
	if (own || name_equal(name, length, q->name, q->view.name_length)) {
		if (!question_lookup(h))
			return BALEEN_NONE;
	} else {
		if (!q->set)
			return 0;
		domset_lookup(q->set, name, length, labels, &other);
		if (other.damaged) {
			unjudged(h);
			return BALEEN_NONE;
		}
		result = &other;
	}
	if (!feedmask_any(&result->feeds))
		return 0;
	for (unsigned i = 0; i < feeds->count; i++) {
		uint16_t flags = 0;
		if (!feedmask_has(&result->feeds, i))
			continue;
		int depth = domset_match_of(q->set, result, i, &flags);
		if (depth < 0)
			continue;
		if (found < max)
			out[found] = (struct baleen_match){.feed = i,
							   .labels = (uint8_t)depth,
							   .exact = flags == DOMSET_EXACT};
		found++;
	}
	return found;
}
