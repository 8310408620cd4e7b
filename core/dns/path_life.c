/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path's life: made, started, drained, freed; and the slots that queries stand in, which it owns.
 * Worker process. Invariant: a slot's address never changes, and draining ends, at the latest when
 * its time is up.
 */
#include "base/clock.h"
#include "core/dns/listen_tcp.h"
#include "core/dns/listen_udp.h"
#include "core/dns/path_internal.h"
#include "core/dns/set_adopt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_A_BLOCK 64
#define TICK_MS	      500
#define RETRY_TICKS   20

/* ---- slots ---- */

static bool slots_grow(struct path *p)
{
	if (p->slots >= PATH_SLOTS_MAX)
		return false;
	struct path_query *block = calloc(SLOTS_A_BLOCK, sizeof(*block));
	if (!block)
		return false;
	p->blocks[p->block_count++] = block;
	p->slots += SLOTS_A_BLOCK;
	for (unsigned i = 0; i < SLOTS_A_BLOCK; i++)
		path_slot_free(p, &block[i]);
	return true;
}

struct path_query *path_slot(struct path *p)
{
	struct path_query *pq = p->free;

	if (!pq) {
		if (!slots_grow(p))
			return NULL;
		pq = p->free;
	}
	p->free = pq->next_free;
	return pq;
}

void path_slot_free(struct path *p, struct path_query *pq)
{
	pq->next_free = p->free;
	p->free = pq;
}

/* ---- life ---- */

static void on_settle(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	path_settle(context);
}

/* A worker that nobody asks takes up a new set as well, and lets go of the old one. */
static void on_tick(evutil_socket_t fd, short what, void *context)
{
	struct path *p = context;

	(void)fd;
	(void)what;
	if (++p->ticks % RETRY_TICKS == 0)
		set_retry(p->worker);
	set_adopt(p->worker);
}

int path_init(struct worker *w, char error[256])
{
	struct path *p = calloc(1, sizeof(*p));
	size_t cache_size = 0;
	void *cache_memory = shm_cache(w->shm, &cache_size);
	int r = -ENOMEM;

	if (!p)
		goto fail;
	w->path = p;
	p->worker = w;
	p->chain = w->generation->chain;
	client_memo_init(&p->clients);
	event_assign(&p->settle, w->base, -1, 0, on_settle, p);
	event_assign(&p->tick, w->base, -1, EV_PERSIST, on_tick, p);
	p->view = answer_view_new();
	p->blocks = calloc(PATH_SLOTS_MAX / SLOTS_A_BLOCK, sizeof(*p->blocks));
	w->cache = cache_open(cache_memory, cache_size, w->slot, w->generation->config.stale_s);
	if (!p->view || !p->blocks || !w->cache)
		goto fail;
	r = upstreams_new(w, path_upstream_done, path_upstream_late, &w->upstreams);
	if (r < 0)
		goto fail;
	r = udp_listeners_new(w, &w->udp);
	if (r < 0)
		goto fail;
	r = tcp_listeners_new(w, &w->tcp);
	if (r < 0)
		goto fail;
	return 0;

fail:
	snprintf(error, 256, "DNS path: %s", strerror(-r));
	path_fini(w);
	return r;
}

void path_start(struct worker *w)
{
	struct timeval every = {.tv_usec = TICK_MS * 1000};

	set_adopt(w);
	evtimer_add(&w->path->tick, &every);
	udp_listeners_start(w->udp);
	tcp_listeners_start(w->tcp);
}

static void on_drain(evutil_socket_t fd, short what, void *context)
{
	struct path *p = context;
	struct worker *w = p->worker;
	struct timeval again = {.tv_usec = 5000};

	(void)fd;
	(void)what;
	bool done = !w->parked && !p->finished_count && tcp_listeners_idle(w->tcp);
	if (!done && clock_monotonic_ms() < p->drain_until_ms) {
		evtimer_add(&p->drain_timer, &again);
		return;
	}
	path_settle(p);
	p->idle(w);
}

void path_drain(struct worker *w, unsigned limit_ms, void (*idle)(struct worker *w))
{
	struct path *p = w->path;
	struct timeval soon = {.tv_usec = 0};

	if (p->idle)
		return; /* once is enough */
	w->draining = true;
	p->idle = idle;
	p->drain_until_ms = clock_monotonic_ms() + limit_ms;
	udp_listeners_stop(w->udp);
	tcp_listeners_drain(w->tcp);
	event_assign(&p->drain_timer, w->base, -1, 0, on_drain, p);
	evtimer_add(&p->drain_timer, &soon);
}

void path_fini(struct worker *w)
{
	struct path *p = w->path;

	if (!p)
		return;
	if (p->idle)
		event_del(&p->drain_timer);
	event_del(&p->settle);
	event_del(&p->tick);
	tcp_listeners_free(w->tcp);
	udp_listeners_free(w->udp);
	upstreams_free(w->upstreams);
	cache_close(w->cache);
	set_close_all(w);
	answer_view_free(p->view);
	for (size_t i = 0; i < p->block_count; i++) {
		for (unsigned k = 0; k < SLOTS_A_BLOCK; k++)
			free(p->blocks[i][k].held.message);
		free(p->blocks[i]);
	}
	free(p->blocks);
	free(p);
	w->path = NULL;
	w->tcp = NULL;
	w->udp = NULL;
	w->upstreams = NULL;
	w->cache = NULL;
}
