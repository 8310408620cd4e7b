/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocklist: the place in the chain where the policy's rules act. The core evaluates them; this
 * plugin says when: for the question, and for every name and address that an answer leads to.
 * Worker process; owns nothing. Invariant: it adds nothing to what the policy says.
 */
#include <baleen/plugin.h>

static enum baleen_verdict judge(struct baleen_call *call)
{
	return call->host->policy(call);
}

static const struct baleen_plugin plugin = {
	.size = sizeof(plugin),
	.major = BALEEN_PLUGIN_MAJOR,
	.minor = BALEEN_PLUGIN_MINOR,
	.name = "blocklist",
	.version = "1.0",
	.summary =
		"The policies' rules: allow, block, rewrite and monitor by name, feed, type, time",
	.kind = BALEEN_FILTER,
	.on_query = judge,
	.on_answer = judge,
};

const struct baleen_plugin *baleen_plugin_entry(const struct baleen_host *host)
{
	(void)host;
	return &plugin;
}
