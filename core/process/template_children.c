/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A template's children: forked, reaped, replaced, watched. A worker that dies is replaced at once;
 * one whose successors die young, and the other roles, with a delay that doubles. Invariant: a
 * place has at most one process.
 */
#include "base/clock.h"
#include "base/log.h"
#include "core/process/crash.h"
#include "core/process/template_internal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLACE_YOUNG_MS	   500 /* who dies before that is not replaced at once */
#define PLACE_DELAY_MIN_MS 100
#define PLACE_DELAY_MAX_MS 5000
#define WATCH_KILL_MS	   1000 /* from SIGABRT to SIGKILL */
#define STOPPED_MS	   1000 /* a child that a signal has stopped for so long is replaced */

static void place_close(int fd, bool keep)
{
	if (!keep && fd >= 0)
		close(fd);
}

/* What the role has no use for. (A listener's socket closed here stays open in the supervisor.) */
static void place_close_others(const struct template *t, enum shm_role role)
{
	const struct handover *h = &t->handover;
	const struct child *c = &t->child;
	bool worker = role == ROLE_WORKER, admin = role == ROLE_ADMIN;

	/* The supervisor learns of our template's end by the end of this link: do not hold it. */
	close(h->link);
	close(t->signals);
	close(t->notes);
	close(t->admin);
	close(h->shm);
	place_close(h->control, admin);
	place_close(h->admin, admin);
	place_close(c->admin_to_template, admin);
	place_close(c->admin_to_fetcher, admin);
	place_close(c->admin_to_logger, admin);
	place_close(c->fetcher_to_admin, role == ROLE_FETCHER);
	place_close(c->logger_to_admin, role == ROLE_LOGGER);
	for (size_t i = 0; i < t->folder_count; i++)
		place_close(t->folders[i].fd, role == ROLE_FETCHER);
	for (unsigned l = 0; l < h->facts.listener_count; l++) {
		for (unsigned w = 0; w < h->facts.workers; w++) {
			place_close(h->listeners[l].udp[w], worker);
			place_close(h->listeners[l].udp_send[w], worker);
		}
		place_close(h->listeners[l].tcp, worker);
	}
}

static _Noreturn void place_run(struct template *t, const struct place *p)
{
	struct child c = t->child;

	place_close_others(t, p->role);
	c.index = p->index;
	switch (p->role) {
	case ROLE_WORKER:
		worker_process(&c);
	case ROLE_LOGGER:
		logger_process(&c);
	case ROLE_FETCHER:
		fetcher_process(&c);
	case ROLE_ADMIN:
		admin_process(&c);
	default:
		_exit(1);
	}
}

static void place_start(struct template *t, struct place *p, int64_t now_ms)
{
	pid_t pid = fork();
	if (pid == 0)
		place_run(t, p);
	if (pid < 0) {
		log_error("cannot fork %s %u: %s", process_role_words[p->role], p->index,
			  strerror(errno));
		p->respawn_ms = now_ms + PLACE_DELAY_MAX_MS;
		return;
	}
	p->pid = pid;
	p->ready = p->hung = false;
	p->started_ms = now_ms;
	p->stopped_ms = 0;
	p->respawn_ms = 0;
	p->crumb_since_ms = 0;
	if (p->row)
		process_replace(p->row, pid);
	else
		p->row = process_add(t->shm, p->role, t->handover.generation, p->index, pid);
}

void template_add(struct template *t, enum shm_role role, unsigned index)
{
	if (t->count == TEMPLATE_PLACES_MAX)
		return;
	struct place *p = &t->places[t->count++];
	*p = (struct place){.role = role, .index = index};
	place_start(t, p, clock_monotonic_ms());
}

struct place *template_place_of(struct template *t, pid_t pid)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->places[i].pid == pid)
			return &t->places[i];
	return NULL;
}

bool template_runs(const struct template *t, enum shm_role role)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->places[i].role == role && t->places[i].pid)
			return true;
	return false;
}

unsigned template_running(const struct template *t, bool without_logger)
{
	unsigned n = 0;
	for (unsigned i = 0; i < t->count; i++)
		if (t->places[i].pid && !(without_logger && t->places[i].role == ROLE_LOGGER))
			n++;
	return n;
}

void template_stop(struct place *p)
{
	p->respawn_ms = 0;
	process_state(p->row, PROCESS_DRAINING);
	if (p->pid)
		kill(p->pid, CHILD_LEAVE);
}

void template_stop_role(struct template *t, enum shm_role role)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->places[i].role == role)
			template_stop(&t->places[i]);
}

void template_revive(struct template *t, enum shm_role role)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->places[i].role == role && !t->places[i].pid)
			place_start(t, &t->places[i], clock_monotonic_ms());
}

void template_kill_all(struct template *t, int sig)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->places[i].pid)
			kill(t->places[i].pid, sig);
}

void template_kill_draining(struct template *t)
{
	for (unsigned i = 0; i < t->count; i++) {
		const struct place *p = &t->places[i];
		if (!p->pid || (t->phase == TEMPLATE_DRAINING && p->role == ROLE_LOGGER))
			continue;
		log_warn("%s %u (pid %d) did not drain in time", process_role_words[p->role],
			 p->index, (int)p->pid);
		kill(p->pid, SIGKILL);
	}
}

_Noreturn void template_orphaned(struct template *t)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	template_kill_all(t, CHILD_LEAVE);
	for (int i = 0; i < 30 && template_running(t, false) > 0; i++) {
		nanosleep(&pause, NULL);
		for (unsigned k = 0; k < t->count; k++)
			if (t->places[k].pid && waitpid(t->places[k].pid, NULL, WNOHANG) > 0)
				t->places[k].pid = 0;
	}
	template_kill_all(t, SIGKILL);
	_exit(0);
}

/* ---- death ---- */

static bool place_wanted(const struct template *t, const struct place *p)
{
	if (t->phase >= TEMPLATE_DRAINING && p->role != ROLE_LOGGER)
		return false;
	if (t->phase == TEMPLATE_LAST)
		return false;
	return p->role != ROLE_FETCHER || t->fetcher_wanted;
}

static void place_died(struct template *t, struct place *p, int status, int64_t now_ms)
{
	pid_t pid = p->pid;
	bool young = now_ms - p->started_ms < PLACE_YOUNG_MS;

	p->pid = 0;
	bool told = WIFSIGNALED(status) && WTERMSIG(status) == CHILD_LEAVE; /* before it listened */
	if (p->role == ROLE_WORKER && !told && !p->stopped_ms &&
	    !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
		crash_account(t->shm, t->generation, p->index, pid, status, p->hung);
	else if (p->role == ROLE_WORKER)
		crash_sweep(t->shm, shm_slot(t->shm, t->handover.generation, p->index));
	if (!place_wanted(t, p)) {
		process_remove(p->row);
		p->row = NULL;
		return;
	}
	if (p->role != ROLE_WORKER)
		log_error("%s (pid %d) %s %d; it is started again", process_role_words[p->role],
			  (int)pid, WIFSIGNALED(status) ? "died of signal" : "left with status",
			  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	if (!young)
		p->delay_ms = 0;
	/* The first death of a worker costs it no time; a second one soon after does. */
	if (p->role == ROLE_WORKER && p->delay_ms == 0) {
		p->delay_ms = young ? PLACE_DELAY_MIN_MS : 1;
		place_start(t, p, now_ms);
		return;
	}
	p->delay_ms = p->delay_ms < PLACE_DELAY_MIN_MS	     ? PLACE_DELAY_MIN_MS
		      : p->delay_ms < PLACE_DELAY_MAX_MS / 2 ? p->delay_ms * 2
							     : PLACE_DELAY_MAX_MS;
	p->respawn_ms = now_ms + p->delay_ms;
}

void template_reap(struct template *t)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		struct place *p = template_place_of(t, pid);
		if (p && (WIFSTOPPED(status) || WIFCONTINUED(status)))
			p->stopped_ms = WIFSTOPPED(status) ? clock_monotonic_ms() : 0;
		else if (p)
			place_died(t, p, status, clock_monotonic_ms());
	}
}

void template_respawn(struct template *t, int64_t now_ms)
{
	for (unsigned i = 0; i < t->count; i++) {
		struct place *p = &t->places[i];
		if (!p->pid && p->respawn_ms && p->respawn_ms <= now_ms && place_wanted(t, p))
			place_start(t, p, now_ms);
	}
}

/* ---- watchdog ---- */

static void place_watch(struct template *t, struct place *p, int64_t now_ms)
{
	struct breadcrumb *crumb =
		shm_breadcrumb(t->shm, shm_slot(t->shm, t->handover.generation, p->index));
	uint64_t entered = crumb->entered;

	if (p->hung) {
		if (now_ms - p->crumb_since_ms > WATCH_KILL_MS)
			kill(p->pid, SIGKILL);
		return;
	}
	if (crumb->hook == CRUMB_NONE || crumb->pid != (uint32_t)p->pid || p->crumb_since_ms == 0 ||
	    entered != p->crumb_entered) {
		p->crumb_entered = entered;
		p->crumb_since_ms = now_ms;
		return;
	}
	if (now_ms - p->crumb_since_ms < (int64_t)t->generation->config.hang_timeout_ms)
		return;
	p->hung = true;
	p->crumb_since_ms = now_ms;
	kill(p->pid, SIGABRT);
}

/* SIGSTOP, a terminal, a frozen group: it serves nobody, and what it was asked waits for ever. */
static void place_watch_stopped(struct place *p, int64_t now_ms)
{
	if (!p->pid || !p->stopped_ms || now_ms - p->stopped_ms < STOPPED_MS)
		return;
	log_warn("%s %u (pid %d) is stopped by a signal and serves nobody: replaced",
		 process_role_words[p->role], p->index, (int)p->pid);
	kill(p->pid, SIGKILL);
}

void template_watch(struct template *t, int64_t now_ms)
{
	for (unsigned i = 0; i < t->count; i++)
		place_watch_stopped(&t->places[i], now_ms);
	for (unsigned i = 0; i < t->count; i++)
		if (t->places[i].role == ROLE_WORKER && t->places[i].pid)
			place_watch(t, &t->places[i], now_ms);
}
