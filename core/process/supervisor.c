/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor: owns sockets, shared memory and the process tree; see design section "Processes".
 * One poll loop over signals, the templates' links and the compile child. Invariant: it loads no
 * plugin and parses nothing foreign; what others send it are structs of a fixed size.
 */
#include "core/process/supervisor.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/process/child.h"
#include "core/process/crash.h"
#include "core/process/supervisor_internal.h"
#include "core/process/title.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define SUPERVISOR_TICK_MS	  100
#define SUPERVISOR_STOP_MS	  6500	/* the templates' bounds, and a little */
#define SUPERVISOR_START_MS	  60000 /* from GO to READY: first pass and workers */
#define SUPERVISOR_RECOVER_MS	  100	/* doubles while templates die young */
#define SUPERVISOR_RECOVER_MAX_MS 10000
#define SUPERVISOR_FETCHER_MS	  3000 /* patience with an older fetcher */
#define SUPERVISOR_STOPPED_MS	  1000 /* with a template that a signal has stopped */

/* ---- the outcome of a reload ---- */

static void outcome_send(struct supervisor *s, const struct waiter *w, int code, const char *text)
{
	static struct link_message m;
	struct supervised *g = generation_numbered(s, w->generation);
	if (!g || g->link < 0)
		return;
	link_message_init(&m, LINK_OUTCOME, "%s", text);
	m.code = code;
	m.serial = w->serial;
	(void)link_send(g->link, &m, -1);
}

/* A text of whole lines, each as a line of its own in the log. */
static void log_lines(const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		log_error("%.*s", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

/* The round is over: say so in the log, and to whoever waits. */
static void outcome(struct supervisor *s, int code, const char *text)
{
	if (code < 0 && !s->stopping) {
		log_error("reload failed, the running generation stays");
		log_lines(text);
	}
	for (unsigned i = 0; i < WAITERS_MAX; i++) {
		struct waiter *w = &s->waiters[i];
		if (w->generation == 0 || w->round > s->round)
			continue;
		outcome_send(s, w, code, text);
		w->generation = 0;
	}
}

/* ---- reload ---- */

static bool reload_busy(struct supervisor *s)
{
	return s->compile_pid || s->wanted || generation_new(s);
}

static void reload_begin(struct supervisor *s)
{
	s->again = false;
	s->round++;
	int r = snapshot_start(s->config_path, s->lifeline[1], &s->compile_pid, &s->compile_fd);
	if (r < 0) {
		s->compile_pid = 0;
		outcome(s, r, "cannot fork");
		return;
	}
	log_info("reading the configuration: %s", s->config_path);
}

static void reload_ask(struct supervisor *s, uint32_t generation, uint64_t serial)
{
	bool busy = reload_busy(s);
	if (generation) {
		struct waiter w = {generation, serial, s->round + 1};
		unsigned i = 0;
		while (i < WAITERS_MAX && s->waiters[i].generation)
			i++;
		if (i == WAITERS_MAX) {
			outcome_send(s, &w, -EBUSY, "too many wait for a reload already");
			return;
		}
		s->waiters[i] = w;
	}
	if (busy)
		s->again = true;
	else
		reload_begin(s);
}

/* What is fixed for the life of the sockets and the segment. */
static int reload_compare(const struct supervisor *s, const struct facts *f, char *text,
			  size_t size)
{
	const char *changed = NULL;
	if (f->listener_count != s->facts.listener_count)
		changed = "listen";
	for (unsigned i = 0; !changed && i < f->listener_count; i++)
		if (!endpoint_equal(&f->listeners[i], &s->facts.listeners[i]))
			changed = "listen";
	if (f->workers != s->facts.workers)
		changed = "workers";
	else if (f->cache_bytes != s->facts.cache_bytes)
		changed = "cache: size";
	else if (strcmp(f->state, s->facts.state) != 0)
		changed = "state";
	else if (strcmp(f->user, s->facts.user) != 0)
		changed = "user";
	if (!changed)
		return 0;
	snprintf(text, size, "%s: a change of \"%s\" needs a restart; nothing was changed\n",
		 s->config_path, changed);
	return -EINVAL;
}

static void want(struct supervisor *s, const struct facts *facts, int snapshot, int64_t when_ms)
{
	s->wanted = true;
	s->wanted_ms = when_ms;
	s->wanted_facts = *facts;
	s->wanted_snapshot = snapshot;
}

static void reload_compiled(struct supervisor *s)
{
	static struct snapshot snapshot;
	char text[PATH_MAX + 128];

	snapshot_finish(s->compile_fd, &snapshot);
	s->compile_pid = 0;
	if (snapshot.status < 0) {
		outcome(s, snapshot.status, snapshot.text);
		return;
	}
	if (snapshot.text[0])
		fputs(snapshot.text, stderr);
	if (reload_compare(s, &snapshot.facts, text, sizeof(text)) < 0) {
		close(snapshot.memfd);
		outcome(s, -EINVAL, text);
		return;
	}
	want(s, &snapshot.facts, snapshot.memfd, 0);
}

/* ---- a generation's way ---- */

static void start_failed(struct supervisor *s, const char *text)
{
	if (!s->announced) {
		fputs(text, stderr);
		log_error("cannot start");
		s->stopping = true;
		s->stop_deadline_ms = clock_monotonic_ms() + 2000;
		return;
	}
	outcome(s, -EINVAL, text);
	/* The older fetcher was asked to let go: it may go on. */
	struct supervised *g = generation_in(s, SUPERVISED_SERVING);
	if (g)
		generation_tell(g, LINK_START_FETCHER);
}

static void try_wanted(struct supervisor *s, int64_t now_ms)
{
	if (!s->wanted || now_ms < s->wanted_ms || generation_new(s) ||
	    !generation_place_free(s, s->last_number + 1))
		return;
	s->wanted = false;
	int r = generation_start(s, &s->wanted_facts, s->wanted_snapshot);
	close(s->wanted_snapshot);
	if (r < 0)
		start_failed(s, "a new generation cannot be started (see the log)\n");
}

static void announce(struct supervisor *s)
{
	char text[ENDPOINT_TEXT_MAX];
	s->announced = true;
	printf("ready:");
	for (unsigned i = 0; i < s->facts.listener_count; i++)
		printf(" %s", endpoint_format(&s->facts.listeners[i], text));
	printf("\n");
	fflush(stdout);
}

static void generation_go(struct supervised *g)
{
	g->state = SUPERVISED_STARTING;
	g->deadline_ms = clock_monotonic_ms() + SUPERVISOR_START_MS;
	generation_tell(g, LINK_GO);
}

static void generation_loaded(struct supervisor *s, struct supervised *g)
{
	struct supervised *old = generation_in(s, SUPERVISED_SERVING);
	struct supervised *orphans = generation_in(s, SUPERVISED_ORPHANED);
	/* Their fetcher holds the feeds' lock: it must go now. */
	if (orphans)
		(void)generation_signal_orphans(s, orphans->number, ROLE_FETCHER, CHILD_LEAVE);
	if (old) {
		g->state = SUPERVISED_WAITING;
		g->deadline_ms = clock_monotonic_ms() + SUPERVISOR_FETCHER_MS;
		generation_tell(old, LINK_STOP_FETCHER);
		return;
	}
	generation_go(g);
}

static void generation_ready(struct supervisor *s, struct supervised *g)
{
	g->state = SUPERVISED_SERVING;
	g->deadline_ms = 0;
	process_state(g->row, PROCESS_SERVING);
	s->recover_delay_ms = 0;
	log_info("generation %u serves", g->number);
	if (!s->announced)
		announce(s);
	else
		outcome(s, 0, "");
	for (unsigned i = 0; i < SUPERVISED_MAX; i++) {
		struct supervised *old = &s->generations[i];
		if (old != g &&
		    (old->state == SUPERVISED_SERVING || old->state == SUPERVISED_ORPHANED))
			generation_drain(s, old);
	}
}

static void generation_message(struct supervisor *s, struct supervised *g,
			       const struct link_message *m)
{
	struct supervised *next;
	switch (m->kind) {
	case LINK_LOADED:
		if (g->state == SUPERVISED_LOADING)
			generation_loaded(s, g);
		break;
	case LINK_READY:
		if (g->state == SUPERVISED_STARTING)
			generation_ready(s, g);
		break;
	case LINK_FAILED:
		if (g->state <= SUPERVISED_STARTING) {
			g->state = SUPERVISED_DRAINING;
			start_failed(s, m->text);
		}
		break;
	case LINK_FETCHER_STOPPED:
		next = generation_in(s, SUPERVISED_WAITING);
		if (next)
			generation_go(next);
		break;
	case LINK_RELOAD:
		reload_ask(s, g->number, m->serial);
		break;
	default:
		break;
	}
}

static void generation_receive(struct supervisor *s, struct supervised *g)
{
	static struct link_message m;
	int r = -EAGAIN;
	while (g->link >= 0 && (r = link_receive(g->link, &m, NULL)) == 1)
		generation_message(s, g, &m);
	if (r == 0) {
		close(g->link);
		g->link = -1;
	}
}

/* ---- death ---- */

static void template_died(struct supervisor *s, struct supervised *g, int status)
{
	int64_t now = clock_monotonic_ms();

	/* What it said last may still lie in the link. */
	generation_receive(s, g);
	g->pid = 0;
	process_remove(g->row);
	g->row = NULL;
	if (g->state == SUPERVISED_DRAINING &&
	    generation_signal_orphans(s, g->number, ROLE_NONE, 0) == 0) {
		log_info("generation %u has left", g->number);
		generation_forget(s, g);
		return;
	}
	if (WIFSIGNALED(status))
		log_error("template %u died of SIG%s", g->number, sigabbrev_np(WTERMSIG(status)));
	else
		log_error("template %u left with status %d", g->number, WEXITSTATUS(status));
	if (g->state == SUPERVISED_SERVING && !s->stopping) {
		g->state = SUPERVISED_ORPHANED;
		return;
	}
	bool starting = g->state <= SUPERVISED_STARTING;
	(void)generation_signal_orphans(s, g->number, ROLE_NONE, SIGKILL);
	g->state = SUPERVISED_DRAINING;
	g->deadline_ms = now + 1000;
	if (starting && !s->stopping)
		start_failed(s, "the new generation died while starting (see the log)\n");
}

static void orphan_died(struct supervisor *s, pid_t pid)
{
	struct shm_process *row = process_find(s->shm, pid);
	if (!row)
		return;
	if (row->role == ROLE_WORKER)
		crash_sweep(s->shm, shm_slot(s->shm, row->generation, row->index));
	process_remove(row);
}

static void reap(struct supervisor *s)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		struct supervised *g = NULL;
		if (pid == s->compile_pid)
			continue; /* its socket says what came of it */
		for (unsigned i = 0; !g && i < SUPERVISED_MAX; i++)
			if (s->generations[i].state != SUPERVISED_FREE &&
			    s->generations[i].pid == pid)
				g = &s->generations[i];
		if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
			if (g)
				g->stopped_ms = WIFSTOPPED(status) ? clock_monotonic_ms() : 0;
			continue;
		}
		if (g)
			template_died(s, g, status);
		else
			orphan_died(s, pid);
	}
}

/* ---- stopping ---- */

static void stop(struct supervisor *s)
{
	if (s->stopping) {
		s->stop_deadline_ms = 0; /* asked twice: at once */
		return;
	}
	log_info("stopping");
	s->stopping = true;
	s->stop_deadline_ms = clock_monotonic_ms() + SUPERVISOR_STOP_MS;
	outcome(s, -ESHUTDOWN, "the daemon is stopping");
	if (s->compile_pid)
		kill(s->compile_pid, SIGKILL);
	if (s->wanted)
		close(s->wanted_snapshot);
	s->wanted = false;
	for (unsigned i = 0; i < SUPERVISED_MAX; i++) {
		struct supervised *g = &s->generations[i];
		if (g->state == SUPERVISED_FREE || g->state == SUPERVISED_DRAINING)
			continue;
		generation_drain(s, g);
	}
}

static bool stopped(struct supervisor *s)
{
	for (unsigned i = 0; i < SUPERVISED_MAX; i++)
		if (s->generations[i].state != SUPERVISED_FREE)
			return false;
	return true;
}

/* ---- the loop ---- */

static void on_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;
	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGTERM:
		case SIGINT:
			stop(s);
			break;
		case SIGHUP:
			if (!s->stopping)
				reload_ask(s, 0, 0);
			break;
		case SIGUSR2:
			log_warn("SIGUSR2: upgrade is not in this version; nothing was changed");
			break;
		default:
			break;
		}
	}
	reap(s);
}

/* A template died and nobody is on the way to take its place: the same snapshot once more. */
static void recover(struct supervisor *s, int64_t now_ms)
{
	struct supervised *orphans = generation_in(s, SUPERVISED_ORPHANED);
	if (!orphans || reload_busy(s) || generation_in(s, SUPERVISED_SERVING))
		return;
	want(s, &orphans->facts, dup(orphans->snapshot), now_ms + s->recover_delay_ms);
	s->recover_delay_ms =
		s->recover_delay_ms == 0 ? SUPERVISOR_RECOVER_MS : s->recover_delay_ms * 2;
	if (s->recover_delay_ms > SUPERVISOR_RECOVER_MAX_MS)
		s->recover_delay_ms = SUPERVISOR_RECOVER_MAX_MS;
}

static void tick(struct supervisor *s, int64_t now_ms)
{
	for (unsigned i = 0; i < SUPERVISED_MAX; i++) {
		struct supervised *g = &s->generations[i];
		if (g->state == SUPERVISED_FREE)
			continue;
		bool late = g->deadline_ms && now_ms >= g->deadline_ms;
		if (g->stopped_ms && now_ms - g->stopped_ms >= SUPERVISOR_STOPPED_MS && g->pid)
			kill(g->pid, SIGKILL);
		if (g->state == SUPERVISED_WAITING && late)
			generation_go(g);
		else if (late && g->pid)
			kill(g->pid, SIGKILL);
		else if (late)
			(void)generation_signal_orphans(s, g->number, ROLE_NONE, SIGKILL);
		if (g->state == SUPERVISED_DRAINING && g->pid == 0 &&
		    generation_signal_orphans(s, g->number, ROLE_NONE, 0) == 0) {
			log_info("generation %u has left", g->number);
			generation_forget(s, g);
		}
	}
	if (s->stopping)
		return;
	recover(s, now_ms);
	try_wanted(s, now_ms);
	if (s->again && !reload_busy(s))
		reload_begin(s);
}

static void loop(struct supervisor *s)
{
	struct pollfd p[2 + SUPERVISED_MAX];
	struct supervised *of[2 + SUPERVISED_MAX];

	while (!(s->stopping && stopped(s))) {
		nfds_t n = 0;
		p[n++] = (struct pollfd){.fd = s->signals, .events = POLLIN};
		p[n++] = (struct pollfd){.fd = s->compile_pid ? s->compile_fd : -1,
					 .events = POLLIN};
		for (unsigned i = 0; i < SUPERVISED_MAX; i++) {
			struct supervised *g = &s->generations[i];
			if (g->state == SUPERVISED_FREE || g->link < 0)
				continue;
			of[n] = g;
			p[n++] = (struct pollfd){.fd = g->link, .events = POLLIN};
		}
		int ready = poll(p, n, SUPERVISOR_TICK_MS);
		for (nfds_t i = 2; ready > 0 && i < n; i++)
			if (p[i].revents)
				generation_receive(s, of[i]);
		if (ready > 0 && p[1].revents && !s->stopping)
			reload_compiled(s);
		if (ready > 0 && p[0].revents)
			on_signals(s);
		int64_t now = clock_monotonic_ms();
		tick(s, now);
		if (s->stopping && now >= s->stop_deadline_ms) {
			for (unsigned i = 0; i < SUPERVISED_MAX; i++)
				if (s->generations[i].state != SUPERVISED_FREE)
					s->generations[i].deadline_ms = 1;
			s->stop_deadline_ms = now + 1000;
		}
	}
}

static void block_signals(struct supervisor *s)
{
	static const int caught[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaddset(&set, caught[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int supervisor_run(const char *config_path)
{
	static struct supervisor s;
	static struct snapshot first;

	title_set("supervisor");
	if (!realpath(config_path, s.config_path)) {
		fprintf(stderr, "%s: %s\n", config_path, strerror(errno));
		return 1;
	}
	int r = snapshot_start(s.config_path, -1, &s.compile_pid, &s.compile_fd);
	if (r < 0) {
		log_error("cannot fork: %s", strerror(-r));
		return 1;
	}
	snapshot_finish(s.compile_fd, &first);
	waitpid(s.compile_pid, NULL, 0);
	s.compile_pid = 0;
	fputs(first.text, stderr);
	if (first.status < 0)
		return 1;
	s.facts = first.facts;
	if (supervisor_setup(&s) < 0)
		return 1;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	block_signals(&s);
	s.round = 1;
	want(&s, &first.facts, first.memfd, 0);
	try_wanted(&s, clock_monotonic_ms());
	loop(&s);
	supervisor_cleanup(&s);
	log_info("stopped");
	return s.announced ? 0 : 1;
}
