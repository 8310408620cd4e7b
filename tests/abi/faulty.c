/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin that goes wrong when it is asked to: the first label of the question says how. Crashes
 * with `crash`, never comes back with `hang`, takes 200 ms with `slow`, returns nonsense with
 * `illegal`. For the tests of what the daemon does about it.
 */
#include <baleen/plugin.h>

#include <string.h>
#include <time.h>
#include <unistd.h>

static bool asked_to(const struct baleen_call *call, const char *word)
{
	const uint8_t *name = call->query->name;
	return name[0] == strlen(word) && memcmp(name + 1, word, name[0]) == 0;
}

static enum baleen_verdict on_query(struct baleen_call *call)
{
	const struct timespec slow = {.tv_nsec = 200000000};

	if (call->dry_run)
		return BALEEN_PASS;
	if (asked_to(call, "crash"))
		*(volatile int *)NULL = 1;
	while (asked_to(call, "hang"))
		pause();
	if (asked_to(call, "slow"))
		nanosleep(&slow, NULL);
	if (asked_to(call, "illegal"))
		return (enum baleen_verdict)77;
	return BALEEN_PASS;
}

static const struct baleen_plugin plugin = {
	.size = sizeof(plugin),
	.major = BALEEN_PLUGIN_MAJOR,
	.minor = BALEEN_PLUGIN_MINOR,
	.name = "faulty",
	.version = "1",
	.summary = "Goes wrong when it is asked to",
	.kind = BALEEN_FILTER,
	.on_query = on_query,
};

const struct baleen_plugin *baleen_plugin_entry(const struct baleen_host *host)
{
	(void)host;
	return &plugin;
}
