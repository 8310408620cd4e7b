/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books after a crash; see the header. Invariant: the dead worker's memory is hostile. Every
 * field of the breadcrumb is copied and checked before it is used as an index or a name.
 */
#include "core/process/crash.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/message_text.h"
#include "core/chain/chain.h"
#include "core/dns/cache.h"
#include "core/shm_block.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

struct crash {
	uint32_t hook;
	uint32_t plugin;
	bool in_plugin;
	bool has_query;
	uint16_t type;
	struct name name;
	char query[NAME_TEXT_MAX + MESSAGE_TYPE_TEXT + 1];
};

static const char *const crash_hooks[] = {
	[CRUMB_NONE] = "outside any hook", [CRUMB_CLIENT] = "on_client", [CRUMB_QUERY] = "on_query",
	[CRUMB_ANSWER] = "on_answer",	   [CRUMB_START] = "start",	 [CRUMB_CORE] = "the core",
	[CRUMB_SET] = "the domain set",
};

static void crash_read(const struct breadcrumb *crumb, const struct generation *g,
		       struct crash *out)
{
	struct breadcrumb copy;
	unsigned labels = 0;

	memset(out, 0, sizeof(*out));
	memcpy(&copy, crumb, sizeof(copy));
	out->hook = copy.hook <= CRUMB_SET ? copy.hook : CRUMB_NONE;
	out->plugin = copy.plugin;
	out->in_plugin = out->hook >= CRUMB_CLIENT && out->hook <= CRUMB_START &&
			 out->plugin < chain_count(g->chain);
	/* Neither a plugin nor the query is to blame for a set whose file was cut. */
	if (out->hook == CRUMB_NONE || out->hook == CRUMB_START || out->hook == CRUMB_SET)
		return;
	size_t length = name_measure(copy.name, copy.name_length, &labels);
	if (length == 0 || length != copy.name_length)
		return;
	char word[MESSAGE_TYPE_TEXT], text[NAME_TEXT_MAX];
	name_set(&out->name, copy.name, length, labels);
	out->type = copy.type;
	out->has_query = true;
	name_format(copy.name, text);
	snprintf(out->query, sizeof(out->query), "%s %s", text,
		 message_type_format(copy.type, word));
}

static void crash_log(const struct crash *c, const struct generation *g, unsigned index, pid_t pid,
		      int status, bool hung)
{
	char how[64], where[128];
	if (hung)
		snprintf(how, sizeof(how), "hung for more than %u ms", g->config.hang_timeout_ms);
	else if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "died of SIG%s", sigabbrev_np(WTERMSIG(status)));
	else
		snprintf(how, sizeof(how), "left with status %d", WEXITSTATUS(status));
	if (c->in_plugin)
		snprintf(where, sizeof(where), "in plugin %s, hook %s",
			 chain_instance(g->chain, c->plugin), crash_hooks[c->hook]);
	else
		snprintf(where, sizeof(where), "%s",
			 c->hook == CRUMB_CORE	? "in the core"
			 : c->hook == CRUMB_SET ? "on a domain set whose file was cut"
						: "outside any hook");
	log_error("worker %u (pid %d) %s %s; replaced", index, (int)pid, how, where);
	if (c->has_query)
		log_error("worker %u had in hand: %s", index, c->query);
}

static void crash_break(struct shm *s, const struct generation *g, unsigned plugin, int64_t now)
{
	const struct config_plugin *p = &g->config.chain[plugin];
	struct shm_breaker *b = &shm_breakers(s, g->number)[plugin];

	/* Its time out is over: it is on probation, one more crash within the window is too many.
	 */
	if (b->open && now >= b->retry_ms)
		b->open = 0;
	if (b->crashes == 0 || now - b->window_ms > (int64_t)p->within_ms) {
		b->window_ms = now;
		b->crashes = 0;
	}
	b->crashes++;
	if (b->crashes < p->max_crashes || b->open)
		return;
	b->retry_ms = now + (int64_t)p->retry_after_ms;
	b->open = 1;
	log_error("plugin %s is out of the chain: %u crashes within %llu s; it comes back in %llu "
		  "s, until then its queries %s",
		  chain_instance(g->chain, plugin), (unsigned)b->crashes,
		  (unsigned long long)p->within_ms / 1000,
		  (unsigned long long)p->retry_after_ms / 1000,
		  p->on_failure == ON_FAILURE_CLOSED ? "get SERVFAIL (on-failure: closed)"
						     : "pass it by (on-failure: open)");
}

/* In place of the same query's entry, of one that is over, or of the one that ends first. */
static void crash_remember(struct shm *s, const struct crash *c, int64_t now)
{
	struct shm_block *slots = shm_deaths(s), *best = &slots[0];
	struct shm_block b = {.group = UINT32_MAX,
			      .until_ms = now + CRASH_DEATH_MS,
			      .type = c->type,
			      .length = c->name.length};
	int64_t best_until = INT64_MAX;

	memcpy(b.name, c->name.wire, c->name.length);
	for (unsigned i = 0; i < SHM_QOD_MAX; i++) {
		struct shm_block old;
		int64_t until = shm_block_read(&slots[i], &old) ? old.until_ms : 0;
		if (until && old.type == c->type &&
		    name_equal(old.name, old.length, c->name.wire, c->name.length))
			until = INT64_MIN;
		if (until < best_until) {
			best_until = until;
			best = &slots[i];
		}
	}
	if (shm_block_write(best, &b))
		atomic_store(shm_deaths_used(s), (uint64_t)b.until_ms);
}

void crash_sweep(struct shm *s, unsigned slot)
{
	size_t size;
	void *cache = shm_cache(s, &size);
	struct breadcrumb *crumb = shm_breadcrumb(s, slot);

	(void)cache_sweep(cache, size, slot);
	shm_block_sweep(shm_blocks(s), SHM_BLOCKS_MAX);
	shm_block_sweep(shm_deaths(s), SHM_QOD_MAX);
	atomic_store(&crumb->hook, CRUMB_NONE);
	atomic_store(&crumb->pid, 0);
}

void crash_account(struct shm *s, const struct generation *g, unsigned index, pid_t pid, int status,
		   bool hung)
{
	unsigned slot = shm_slot(s, g->number, index);
	int64_t now = clock_monotonic_ms();
	struct crash c;

	crash_read(shm_breadcrumb(s, slot), g, &c);
	crash_log(&c, g, index, pid, status, hung);
	if (c.in_plugin)
		crash_break(s, g, c.plugin, now);
	if (c.has_query)
		crash_remember(s, &c, now);
	crash_sweep(s, slot);
}
