/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin that returns what its options say: for the tests of the chain. Verdicts are given by
 * number, so that illegal ones can be. Other kinds include this file.
 */
#include <baleen/plugin.h>

#include <stdio.h>
#include <string.h>

#ifndef SCRIPTED_NAME
#define SCRIPTED_NAME "scripted"
#define SCRIPTED_KIND BALEEN_FILTER
#endif

enum { METRIC_CLIENT, METRIC_QUERY, METRIC_ANSWER, METRIC_LEVEL };

struct options {
	int64_t client, query, answer; /* verdicts */
	int wait;
	uint64_t timeout_ms;
	bool slot;   /* fail when the slot was not zero, or not kept */
	bool bare;   /* no target and no address with the verdict */
	bool policy; /* on_query and on_answer return the policy's outcome */
	const char *text;
	const char *block_for; /* a first label: block the question for a minute when it is seen */
};

static const char *const waits[] = {"no", "hook", "later", "forget", NULL};
enum { WAIT_NO, WAIT_HOOK, WAIT_LATER, WAIT_FORGET };

/* clang-format off */
static const struct baleen_option options[] = {
	{"client", BALEEN_INTEGER, offsetof(struct options, client), "0", -1, 100, NULL, "on_client's verdict"},
	{"query", BALEEN_INTEGER, offsetof(struct options, query), "0", -1, 100, NULL, "on_query's verdict"},
	{"answer", BALEEN_INTEGER, offsetof(struct options, answer), "0", -1, 100, NULL, "on_answer's verdict"},
	{"wait", BALEEN_CHOICE, offsetof(struct options, wait), "no", 0, 0, waits, "take a ticket first"},
	{"timeout", BALEEN_DURATION, offsetof(struct options, timeout_ms), "1s", 0, 0, NULL, "of the ticket"},
	{"slot", BALEEN_BOOL, offsetof(struct options, slot), NULL, 0, 0, NULL, "check the slot"},
	{"bare", BALEEN_BOOL, offsetof(struct options, bare), NULL, 0, 0, NULL, "leave out what the verdict needs"},
	{"policy", BALEEN_BOOL, offsetof(struct options, policy), NULL, 0, 0, NULL, "ask the policy"},
	{"text", BALEEN_STRING, offsetof(struct options, text), NULL, 0, 0, NULL, "why->text"},
	{"block-for", BALEEN_STRING, offsetof(struct options, block_for), NULL, 0, 0, NULL, "a first label"},
	{0},
};
/* clang-format on */

static const struct baleen_metric metrics[] = {
	[METRIC_CLIENT] = {"client", BALEEN_COUNTER, "calls"},
	[METRIC_QUERY] = {"query", BALEEN_COUNTER, "calls"},
	[METRIC_ANSWER] = {"answer", BALEEN_COUNTER, "calls"},
	[METRIC_LEVEL] = {"level", BALEEN_GAUGE, "last verdict"},
	{0},
};

struct slot {
	uint32_t calls;
	uint8_t rest[28];
};

static const uint8_t target[] = "\6target\4test";
static const uint8_t address[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 80};

static void fill(struct baleen_call *call, enum baleen_verdict verdict)
{
	const struct options *o = call->config;

	call->why->text = o->text;
	if (o->bare)
		return;
	if (verdict == BALEEN_REWRITE) {
		call->why->target = target;
		call->why->target_length = sizeof(target);
	}
	if (verdict == BALEEN_ANSWER) {
		call->why->address = address;
		call->why->address_count = 1;
	}
}

static enum baleen_verdict run(struct baleen_call *call, int64_t wanted, uint32_t metric)
{
	const struct options *o = call->config;
	const struct baleen_host *host = call->host;
	struct slot *slot = call->slot;
	enum baleen_verdict verdict = (enum baleen_verdict)wanted;
	uint64_t ticket;

	host->count(host, metric, 1);
	host->count(host, 1000, 1); /* no such metric: must be harmless */
	host->gauge(host, METRIC_LEVEL, wanted);
	if (o->slot && slot->calls++ != (metric == METRIC_CLIENT ? 0 : metric))
		return BALEEN_FAIL;
	if (o->block_for && strlen(o->block_for) == call->query->name[0] &&
	    memcmp(call->query->name + 1, o->block_for, call->query->name[0]) == 0)
		host->block_for(call, call->query->name, call->query->name_length, BALEEN_NONE, 60,
				"seen");
	if (o->policy && metric != METRIC_CLIENT)
		return host->policy(call);
	fill(call, verdict);
	if (o->wait == WAIT_NO || metric == METRIC_CLIENT)
		return verdict;
	ticket = host->wait(call, (uint32_t)o->timeout_ms, verdict);
	if (!ticket)
		return call->dry_run ? BALEEN_PASS : BALEEN_FAIL;
	if (o->wait == WAIT_FORGET)
		return verdict;
	if (o->wait == WAIT_HOOK) {
		host->resume(host, ticket, verdict, call->why);
		if (host->resume(host, ticket, BALEEN_DROP, NULL))
			return BALEEN_FAIL;
	}
	return BALEEN_WAIT;
}

static enum baleen_verdict on_client(struct baleen_call *call)
{
	return run(call, ((const struct options *)call->config)->client, METRIC_CLIENT);
}

static enum baleen_verdict on_query(struct baleen_call *call)
{
	return run(call, ((const struct options *)call->config)->query, METRIC_QUERY);
}

static enum baleen_verdict on_answer(struct baleen_call *call)
{
	return run(call, ((const struct options *)call->config)->answer, METRIC_ANSWER);
}

static const struct baleen_plugin plugin = {
	.size = sizeof(plugin),
	.major = BALEEN_PLUGIN_MAJOR,
	.minor = BALEEN_PLUGIN_MINOR,
	.name = SCRIPTED_NAME,
	.version = "1",
	.summary = "Returns what its options say",
	.kind = SCRIPTED_KIND,
	.options = options,
	.config_size = sizeof(struct options),
	.metrics = metrics,
	.slot_size = sizeof(struct slot),
	.on_client = on_client,
	.on_query = on_query,
	.on_answer = on_answer,
};

const struct baleen_plugin *baleen_plugin_entry(const struct baleen_host *host)
{
	(void)host;
	return &plugin;
}
