/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's view of generations: starting a template, draining, forgetting, and clearing
 * away what a dead template left. Invariant: a generation's place in shared memory (its number
 * modulo SHM_GENERATIONS) is given to a new one only when nobody of the old one lives.
 */
#include "base/clock.h"
#include "base/log.h"
#include "core/process/child.h"
#include "core/process/crash.h"
#include "core/process/supervisor_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define GENERATION_LOAD_MS  60000
#define GENERATION_DRAIN_MS 9000 /* the template's own bounds, and some */

struct supervised *generation_in(struct supervisor *s, enum supervised_state state)
{
	for (unsigned i = 0; i < SUPERVISED_MAX; i++)
		if (s->generations[i].state == state)
			return &s->generations[i];
	return NULL;
}

struct supervised *generation_numbered(struct supervisor *s, uint32_t number)
{
	for (unsigned i = 0; i < SUPERVISED_MAX; i++)
		if (s->generations[i].state != SUPERVISED_FREE &&
		    s->generations[i].number == number)
			return &s->generations[i];
	return NULL;
}

struct supervised *generation_new(struct supervisor *s)
{
	for (unsigned i = 0; i < SUPERVISED_MAX; i++)
		if (s->generations[i].state >= SUPERVISED_LOADING &&
		    s->generations[i].state <= SUPERVISED_STARTING)
			return &s->generations[i];
	return NULL;
}

static void generation_handover(const struct supervisor *s, const struct supervised *g,
				int template_link, struct handover *h)
{
	memset(h, 0, sizeof(*h));
	h->generation = g->number;
	h->supervisor_uid = geteuid();
	h->shm = s->shm_fd;
	h->snapshot = g->snapshot;
	h->link = template_link;
	h->lifeline = s->lifeline[0];
	h->control = g->control->fd;
	h->admin = g->admin ? g->admin->fd : -1;
	h->privilege = s->privilege;
	h->facts = g->facts;
	strcpy(h->config_path, s->config_path);
	for (unsigned l = 0; l < g->facts.listener_count; l++) {
		const struct listener_sockets *from = &s->sockets[l];
		struct handover_listener *to = &h->listeners[l];
		for (unsigned w = 0; w < g->facts.workers; w++) {
			to->udp[w] = from->udp[w];
			to->udp_send[w] = from->udp_send[w];
		}
		to->tcp = from->tcp;
		to->wildcard = from->wildcard;
		to->v6 = from->v6;
	}
}

int generation_start(struct supervisor *s, const struct facts *facts, int snapshot)
{
	static struct handover h;
	struct supervised *g = generation_in(s, SUPERVISED_FREE);
	int pair[2] = {-1, -1}, r;

	if (!g)
		return -EBUSY;
	*g = (struct supervised){.number = s->last_number + 1, .facts = *facts, .link = -1};
	g->snapshot = fcntl(snapshot, F_DUPFD_CLOEXEC, 3);
	g->control = supervisor_control(s, facts->control);
	if (facts->admin_enabled)
		g->admin = supervisor_admin(s, &facts->admin_listen);
	if (g->snapshot < 0 || !g->control || (facts->admin_enabled && !g->admin)) {
		r = -EADDRINUSE;
		goto fail;
	}
	r = link_pair(pair);
	if (r < 0)
		goto fail;
	generation_handover(s, g, pair[1], &h);
	r = handover_exec(&h);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		goto fail;
	}
	s->last_number = g->number;
	g->pid = r;
	g->link = pair[0];
	g->state = SUPERVISED_LOADING;
	g->deadline_ms = clock_monotonic_ms() + GENERATION_LOAD_MS;
	g->row = process_add(s->shm, ROLE_TEMPLATE, g->number, 0, g->pid);
	return 0;
fail:
	if (g->snapshot >= 0)
		close(g->snapshot);
	supervisor_release(g->control);
	supervisor_release(g->admin);
	g->state = SUPERVISED_FREE;
	return r;
}

void generation_tell(struct supervised *g, enum link_kind kind)
{
	static struct link_message m;
	if (g->link < 0)
		return;
	link_message_init(&m, kind, "%s", "");
	int r = link_send(g->link, &m, -1);
	if (r < 0 && r != -EPIPE)
		log_warn("cannot tell template %u: %s", g->number, strerror(-r));
}

unsigned generation_signal_orphans(struct supervisor *s, uint32_t number, enum shm_role role,
				   int sig)
{
	struct shm_process *rows = shm_processes(s->shm);
	unsigned n = 0;

	for (unsigned i = 0; i < SHM_PROCESSES_MAX; i++) {
		pid_t pid = (pid_t)rows[i].pid;
		/* Anyone may write this table: signal only what is a child of ours. */
		if (pid <= 1 || rows[i].generation != number || rows[i].role < ROLE_WORKER ||
		    !process_is_child(pid))
			continue;
		if (role != ROLE_NONE && rows[i].role != role)
			continue;
		if (sig) {
			process_state(&rows[i], PROCESS_DRAINING);
			kill(pid, sig);
		}
		n++;
	}
	return n;
}

void generation_drain(struct supervisor *s, struct supervised *g)
{
	if (g->state == SUPERVISED_ORPHANED)
		(void)generation_signal_orphans(s, g->number, ROLE_NONE, CHILD_LEAVE);
	else
		generation_tell(g, LINK_DRAIN);
	g->state = SUPERVISED_DRAINING;
	g->deadline_ms = clock_monotonic_ms() + GENERATION_DRAIN_MS;
	process_state(g->row, PROCESS_DRAINING);
}

void generation_forget(struct supervisor *s, struct supervised *g)
{
	for (unsigned w = 0; w < shm_workers(s->shm); w++)
		crash_sweep(s->shm, shm_slot(s->shm, g->number, w));
	if (g->link >= 0)
		close(g->link);
	if (g->snapshot >= 0)
		close(g->snapshot);
	supervisor_release(g->control);
	supervisor_release(g->admin);
	process_remove(g->row);
	g->state = SUPERVISED_FREE;
}

bool generation_place_free(struct supervisor *s, uint32_t number)
{
	bool is_free = true;
	for (unsigned i = 0; i < SUPERVISED_MAX; i++) {
		struct supervised *g = &s->generations[i];
		if (g->state == SUPERVISED_FREE ||
		    g->number % SHM_GENERATIONS != number % SHM_GENERATIONS)
			continue;
		is_free = false;
		if (g->state == SUPERVISED_DRAINING && clock_monotonic_ms() < g->deadline_ms)
			continue; /* it has its time; a reload can wait that long */
		if (g->pid)
			kill(g->pid, SIGKILL);
		else
			(void)generation_signal_orphans(s, g->number, ROLE_NONE, SIGKILL);
	}
	return is_free;
}
