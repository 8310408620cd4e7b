/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rehearsing one query: a worker without sockets, a query that came from nobody, the daemon's own
 * chain, policy and set. Offline commands, and a throw-away child of the template. Owns its worker
 * and its query. Invariant: nothing here decides; every verdict comes from the code that decides in
 * the daemon, in the order of core/dns/path.c.
 */
#include "base/clock.h"
#include "base/message_text.h"
#include "core/chain/chain.h"
#include "core/dns/answer.h"
#include "core/dns/query_of_death.h"
#include "core/explain_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPLAIN_REWRITES_MAX 4 /* as in the path */
#define EXPLAIN_UDP_SIZE     1232

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
		explain_result_step(e->out, "client", "", "refuse", q->why.text);
		return true;
	}
	if (e->worker.shm && query_of_death_listed(e->worker.shm, q->name, q->view.name_length,
						   q->view.type, q->view.monotonic_ms)) {
		q->verdict = EVENT_ERROR;
		q->why.text = "this query has killed a worker a moment ago";
		explain_result_step(e->out, "client", "", "error", q->why.text);
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
	explain_result_off(e);
	chain_set_trace(e->generation->chain, explain_result_hook, e);
	int r = walk(e, request, error);
	chain_set_trace(e->generation->chain, NULL, NULL);
	if (r < 0)
		return r;
	explain_result_around(e);
	explain_result_conclude(e);
	return 0;
}

void explain_fini(struct explain_result *r)
{
	arena_fini(&r->arena);
}
