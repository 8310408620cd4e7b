/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: one event loop, one thread, the DNS path. Forked by the template with everything
 * loaded; starts plugins, enters its sandbox, reads. Invariant: leaves only after what it had taken
 * in hand was answered, or after CHILD_DRAIN_MS.
 */
#include "base/log.h"
#include "core/chain/chain.h"
#include "core/dns/path.h"
#include "core/dns/set_adopt.h"
#include "core/process/child.h"
#include "core/process/sandbox.h"
#include "core/process/title.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void worker_idle(struct worker *w)
{
	event_base_loopbreak(w->base);
}

static void worker_leave(void *context)
{
	struct worker *w = context;
	if (w->draining)
		return;
	w->draining = true;
	path_drain(w, CHILD_DRAIN_MS, worker_idle);
}

static struct worker *worker_here;

/*
 * SIGBUS in a set's file: somebody cut it, or the disk cannot read it. Leave word of that; with
 * SA_RESETHAND the access then fails once more, and ends us.
 */
static void worker_on_bus(int number, siginfo_t *info, void *context)
{
	const struct worker *w = worker_here;

	(void)number;
	(void)context;
	if (!set_maps(w, info->si_addr))
		return;
	atomic_store(&w->crumb->hook, CRUMB_SET);
	atomic_store(shm_set_suspect(w->shm), w->set_number);
}

static void worker_watch_bus(struct worker *w)
{
	struct sigaction action = {.sa_sigaction = worker_on_bus,
				   .sa_flags = SA_SIGINFO | SA_RESETHAND};

	worker_here = w;
	sigaction(SIGBUS, &action, NULL);
}

static size_t worker_ports(const struct config *config, uint16_t *out, size_t max)
{
	size_t n = 0;
	for (size_t g = 0; g < config->upstream_count; g++)
		for (size_t s = 0; s < config->upstreams[g].server_count && n < max; s++)
			out[n++] = config->upstreams[g].servers[s].port;
	return n;
}

static void worker_sandbox(const struct worker *w)
{
	static uint16_t ports[CONFIG_UPSTREAMS_MAX * CONFIG_SERVERS_MAX];
	const struct chain *chain = w->generation->chain;
	struct sandbox_path paths[] = {{.path = "sets"}, {.path = "."}};
	struct sandbox s = {.role = ROLE_WORKER, .paths = paths, .path_count = 1};
	uint32_t needs = 0;

	for (size_t i = 0; i < chain_count(chain); i++)
		needs |= chain_plugin(chain, i)->needs;
	s.any_tcp = needs & BALEEN_NEEDS_NETWORK;
	if (needs & BALEEN_NEEDS_STATE_READ)
		s.path_count = 2;
	s.tcp_ports = ports;
	s.tcp_port_count =
		worker_ports(&w->generation->config, ports, sizeof(ports) / sizeof(ports[0]));
	sandbox_enter(&s);
}

_Noreturn void worker_process(const struct child *c)
{
	static struct worker w;
	char error[256] = "";

	title_set("worker %u", c->index);
	w.index = c->index;
	w.slot = shm_slot(c->shm, c->generation->number, c->index);
	w.generation = c->generation;
	w.shm = c->shm;
	w.cells = shm_cells(c->shm, w.slot);
	w.crumb = shm_breadcrumb(c->shm, w.slot);
	w.sockets = c->sockets;
	w.base = child_begin(c, worker_leave, &w);
	child_on_leave(w.base, worker_leave, &w);
	ring_init(shm_ring(c->shm, w.slot), SHM_RING_BYTES);
	ring_writer_open(shm_ring(c->shm, w.slot), &w.ring);
	atomic_store(&w.crumb->pid, (uint32_t)getpid());

	if (path_init(&w, error) < 0)
		child_failed(c, "worker %u cannot start: %s", c->index, error);
	if (chain_start_worker(c->generation->chain, &w, w.base, error) < 0)
		child_failed(c, "worker %u cannot start: %s", c->index, error);
	worker_watch_bus(&w);
	worker_sandbox(&w);
	path_start(&w);
	child_ready(c);
	event_base_dispatch(w.base);

	chain_stop_worker(c->generation->chain);
	atomic_store(&w.crumb->hook, CRUMB_NONE);
	atomic_store(&w.crumb->pid, 0);
	/* No tidying of memory that the kernel takes back at once anyway. */
	_exit(0);
}
