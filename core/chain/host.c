/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's functions but for policy and lookup. Template (alloc, region), workers, logger.
 * Invariant: nothing that a plugin passes is used as an index before it was compared.
 */
#include "core/chain/host.h"

#include "base/arena.h"
#include "base/name.h"
#include "core/chain/blocks.h"
#include "core/chain/chain_internal.h"
#include "core/chain/keep.h"
#include "core/chain/tickets.h"
#include "core/worker.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct host *host_of(const struct baleen_host *table)
{
	return (const struct host *)table;
}

static struct chain_instance *instance_of(const struct baleen_host *table)
{
	const struct host *h = host_of(table);
	return &h->chain->at[h->index];
}

__attribute__((format(printf, 3, 4))) static void host_log(const struct baleen_host *host,
							   int level, const char *format, ...)
{
	const char *instance = instance_of(host)->entry->instance;
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	switch (level) {
	case BALEEN_LOG_ERROR:
		log_error("plugin %s: %s", instance, text);
		break;
	case BALEEN_LOG_WARN:
		log_warn("plugin %s: %s", instance, text);
		break;
	case BALEEN_LOG_INFO:
		log_info("plugin %s: %s", instance, text);
		break;
	default:
		log_debug("plugin %s: %s", instance, text);
		break;
	}
}

static void *host_alloc(const struct baleen_host *host, size_t size)
{
	const struct host *h = host_of(host);

	/* Afterwards the arena is shared by fork, and what one process adds nobody else sees. */
	if (!h->loading)
		return NULL;
	return arena_alloc(&h->chain->generation->arena, size);
}

static void *host_region(const struct baleen_host *host, const char *name, size_t size)
{
	const struct host *h = host_of(host);
	struct generation *g = h->chain->generation;
	char full[128];

	int n = snprintf(full, sizeof(full), "%s/%s", instance_of(host)->entry->instance, name);
	if (n < 0 || (size_t)n >= sizeof(full) || size == 0 || size > SHM_REGION_BYTES)
		return NULL;
	if (!g->shm) {
		uintptr_t at = (uintptr_t)arena_alloc(&g->arena, size + 63);
		return (void *)((at + 63) & ~(uintptr_t)63);
	}
	return shm_region(g->shm, full, size);
}

static struct event_base *host_loop(const struct baleen_host *host)
{
	return host_of(host)->chain->loop;
}

static void host_count(const struct baleen_host *host, uint32_t metric, uint64_t add)
{
	struct chain_instance *i = instance_of(host);
	if (metric < i->metric_count)
		chain_count_metric(host_of(host)->chain, i->metrics[metric], add);
}

static void host_gauge(const struct baleen_host *host, uint32_t metric, int64_t value)
{
	struct chain_instance *i = instance_of(host);
	_Atomic uint64_t *cells = host_of(host)->chain->cells;

	if (cells && metric < i->metric_count && i->metrics[metric] < SHM_METRICS_MAX)
		atomic_store_explicit(&cells[i->metrics[metric]], (uint64_t)value,
				      memory_order_relaxed);
}

static const struct baleen_feed *host_feed(const struct baleen_host *host, uint32_t number)
{
	const struct chain *c = host_of(host)->chain;
	return number < c->generation->config.feeds.count ? &c->feeds[number] : NULL;
}

static uint32_t host_group_count(const struct baleen_host *host)
{
	return (uint32_t)host_of(host)->chain->group_count;
}

static const char *host_group_name(const struct baleen_host *host, uint32_t group)
{
	const struct chain *c = host_of(host)->chain;
	return group < c->group_count ? policy_group_name(c->generation->policy, group) : NULL;
}

static int host_block_for(struct baleen_call *call, const uint8_t *name, uint8_t length,
			  uint32_t group, uint32_t ttl_s, const char *why)
{
	struct baleen_handle *h = call->handle;
	struct chain *c = h->chain;

	if (h->dry_run)
		return 0;
	if (!c->generation->shm)
		return -ENOSPC;
	int r = blocks_add(c->generation->shm, name, length, group, ttl_s, why,
			   c->at[h->index].entry->instance, h->query->view.monotonic_ms);
	if (r == 0) {
		char text[NAME_TEXT_MAX];
		name_format(name, text);
		log_info("plugin %s blocks %s for %u s: %s", c->at[h->index].entry->instance, text,
			 ttl_s, why ? why : "");
	}
	return r;
}

static uint64_t host_wait(struct baleen_call *call, uint32_t timeout_ms, enum baleen_verdict late)
{
	struct baleen_handle *h = call->handle;
	struct worker *w = h->chain->worker;

	if (h->dry_run || !w || !w->tickets)
		return 0;
	return tickets_take(w->tickets, h->query, timeout_ms, late);
}

static bool host_resume(const struct baleen_host *host, uint64_t ticket,
			enum baleen_verdict verdict, const struct baleen_why *why)
{
	struct worker *w = host_of(host)->chain->worker;
	return w && w->tickets && tickets_resume(w->tickets, ticket, verdict, why);
}

static const void *host_keep(struct baleen_call *call, const void *data, size_t size)
{
	return keep_copy(call->handle->query, data, size);
}

static bool host_name_in(const struct baleen_names *names, const uint8_t *name, uint8_t length)
{
	unsigned labels;

	for (size_t i = 0; i < names->count; i++) {
		size_t n = name_measure(names->items[i], NAME_WIRE_MAX, &labels);
		if (n && name_is_under(name, length, names->items[i], n))
			return true;
	}
	return false;
}

static const char *host_state_folder(const struct baleen_host *host)
{
	return host_of(host)->chain->generation->config.state;
}

static const struct baleen_host functions = {
	.size = sizeof(struct baleen_host),
	.major = BALEEN_PLUGIN_MAJOR,
	.minor = BALEEN_PLUGIN_MINOR,
	.log = host_log,
	.alloc = host_alloc,
	.region = host_region,
	.loop = host_loop,
	.count = host_count,
	.gauge = host_gauge,
	.policy = host_policy,
	.lookup = host_lookup,
	.feed = host_feed,
	.group_count = host_group_count,
	.group_name = host_group_name,
	.block_for = host_block_for,
	.wait = host_wait,
	.resume = host_resume,
	.keep = host_keep,
	.name_in = host_name_in,
	.event_json = event_json,
	.state_folder = host_state_folder,
};

void host_init(struct host *h, struct chain *chain, size_t index)
{
	*h = (struct host){.table = functions, .chain = chain, .index = index};
}
