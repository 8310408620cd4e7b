/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The template; see the header. Exec'd by the supervisor with a handover; drops privileges before
 * it loads a plugin; from then on one poll loop over signals, the supervisor's link, the children's
 * notes and admin's link. Invariant: a child that dies is replaced from the memory that stands
 * here, never from files on disk.
 */
#include "core/process/template.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/process/template_internal.h"
#include "core/process/title.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define TEMPLATE_TICK_MS       250 /* watchdog */
#define TEMPLATE_FIRST_PASS_MS 30000
#define TEMPLATE_START_MS      20000 /* until every worker reads */
#define TEMPLATE_WORKERS_MS    (CHILD_DRAIN_MS + 500)
#define TEMPLATE_LOGGER_MS     1500

static void template_tell(struct template *t, enum link_kind kind, const char *text)
{
	static struct link_message m;
	link_message_init(&m, kind, "%s", text);
	m.generation = t->handover.generation;
	int r = link_send(t->handover.link, &m, -1);
	if (r < 0)
		log_warn("cannot tell the supervisor: %s", strerror(-r));
}

static _Noreturn void template_failed(struct template *t, const char *text)
{
	template_tell(t, LINK_FAILED, text);
	template_kill_all(t, SIGKILL);
	_exit(1);
}

/* ---- loading ---- */

static int template_load_folders(struct template *t, const char *path)
{
	struct arena arena;
	struct config *config = calloc(1, sizeof(*config));
	struct diags d;
	char **names = NULL;
	size_t count = 0;
	int r = config ? 0 : -ENOMEM;

	arena_init(&arena);
	diag_init(&d);
	if (r == 0)
		r = config_load(t->source, path, &arena, &d, config);
	if (r == 0)
		r = fetcher_folders(&config->feeds, &names, &count);
	if (r == 0 && count > 0) {
		t->folders = calloc(count, sizeof(*t->folders));
		r = t->folders ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < count; i++) {
		t->folders[i].path = names[i];
		t->folders[i].fd = open(names[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		t->folder_count++;
	}
	diag_fini(&d);
	arena_fini(&arena);
	free(config);
	return r;
}

static void template_sockets(struct template *t)
{
	const struct handover *h = &t->handover;
	for (unsigned l = 0; l < h->facts.listener_count; l++) {
		const struct handover_listener *from = &h->listeners[l];
		t->sockets[l] = (struct listener_sockets){
			.udp = (int *)(uintptr_t)from->udp,
			.udp_count = h->facts.workers,
			.udp_send = (int *)(uintptr_t)from->udp_send,
			.tcp = from->tcp,
			.wildcard = from->wildcard,
			.v6 = from->v6,
		};
	}
}

/* Everything that can fail before a child exists. */
static void template_load(struct template *t)
{
	struct handover *h = &t->handover;
	struct diags d;
	char error[256];

	if (shm_map(h->shm, &t->shm) < 0 || source_snapshot(h->snapshot, &t->source) < 0)
		template_failed(t, "the snapshot or the shared memory cannot be mapped\n");
	if (template_load_folders(t, h->config_path) < 0)
		template_failed(t, "the snapshot's configuration cannot be read\n");
	if (privilege_drop(&h->privilege, error, sizeof(error)) < 0)
		template_failed(t, error);
	memset(shm_breakers(t->shm, h->generation), 0,
	       CONFIG_CHAIN_MAX * sizeof(struct shm_breaker));

	diag_init(&d);
	if (generation_load(t->source, h->config_path, t->shm, h->generation, &d, &t->generation) <
	    0) {
		char *text = NULL;
		size_t size = 0;
		FILE *stream = open_memstream(&text, &size);
		if (stream) {
			diag_print(&d, stream);
			fclose(stream);
		}
		template_failed(t, text ? text : "out of memory\n");
	}
	diag_fini(&d);
	template_sockets(t);
	/* What an older generation's workers left in these slots would be read with our tables. */
	for (unsigned w = 0; w < t->generation->config.workers; w++) {
		struct ring_reader r;
		void *ring = shm_ring(t->shm, shm_slot(t->shm, h->generation, w));
		ring_init(ring, SHM_RING_BYTES);
		ring_reader_open(ring, &r);
		ring_reader_skip(&r);
	}
}

static void template_links(struct template *t)
{
	int admin[2], feeds[2], tail[2], notes[2];

	if (link_pair(admin) < 0 || link_pair(feeds) < 0 || link_pair(tail) < 0 ||
	    pipe2(notes, O_CLOEXEC | O_NONBLOCK) < 0)
		template_failed(t, "out of descriptors\n");
	t->admin = admin[0];
	t->notes = notes[0];
	t->child = (struct child){
		.handover = &t->handover,
		.shm = t->shm,
		.generation = t->generation,
		.sockets = t->sockets,
		.folders = t->folders,
		.folder_count = t->folder_count,
		.note = notes[1],
		.admin_to_template = admin[1],
		.admin_to_fetcher = feeds[0],
		.fetcher_to_admin = feeds[1],
		.admin_to_logger = tail[0],
		.logger_to_admin = tail[1],
	};
}

/* ---- phases ---- */

static void template_start_rest(struct template *t)
{
	t->phase = TEMPLATE_STARTING;
	t->deadline_ms = clock_monotonic_ms() + TEMPLATE_START_MS;
	template_add(t, ROLE_LOGGER, 0);
	for (unsigned w = 0; w < t->generation->config.workers; w++)
		template_add(t, ROLE_WORKER, w);
	template_add(t, ROLE_ADMIN, 0);
}

static void template_begin(struct template *t)
{
	t->phase = TEMPLATE_FETCHING;
	t->deadline_ms = clock_monotonic_ms() + TEMPLATE_FIRST_PASS_MS;
	template_add(t, ROLE_FETCHER, 0);
}

static void template_check_started(struct template *t)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->places[i].role == ROLE_WORKER && !t->places[i].ready)
			return;
	t->phase = TEMPLATE_SERVING;
	template_tell(t, LINK_READY, "");
}

static void template_drain(struct template *t)
{
	if (t->phase >= TEMPLATE_DRAINING)
		return;
	t->phase = TEMPLATE_DRAINING;
	t->deadline_ms = clock_monotonic_ms() + TEMPLATE_WORKERS_MS;
	for (unsigned i = 0; i < t->count; i++)
		if (t->places[i].role != ROLE_LOGGER)
			template_stop(&t->places[i]);
}

/* The logger goes last: it writes what the workers left. */
static void template_check_drained(struct template *t)
{
	if (t->phase == TEMPLATE_DRAINING && template_running(t, true) == 0) {
		t->phase = TEMPLATE_LAST;
		t->deadline_ms = clock_monotonic_ms() + TEMPLATE_LOGGER_MS;
		for (unsigned i = 0; i < t->count; i++)
			template_stop(&t->places[i]);
	}
	if (t->phase == TEMPLATE_LAST && template_running(t, false) == 0)
		_exit(0);
}

static void template_deadline(struct template *t, int64_t now_ms)
{
	if (t->phase == TEMPLATE_FETCHING && now_ms >= t->deadline_ms) {
		log_warn("the domain set is not ready after %d s; serving without waiting for it",
			 TEMPLATE_FIRST_PASS_MS / 1000);
		template_start_rest(t);
	} else if (t->phase == TEMPLATE_STARTING && now_ms >= t->deadline_ms) {
		template_failed(t, "the workers did not start in time\n");
	} else if (t->phase >= TEMPLATE_DRAINING && now_ms >= t->deadline_ms) {
		t->deadline_ms = now_ms + TEMPLATE_LOGGER_MS;
		template_kill_draining(t);
	}
}

/* ---- what comes in ---- */

static void template_on_notes(struct template *t)
{
	struct child_note note;
	while (read(t->notes, &note, sizeof(note)) == (ssize_t)sizeof(note)) {
		note.text[sizeof(note.text) - 1] = '\0';
		struct place *p = template_place_of(t, (pid_t)note.pid);
		if (!p)
			continue;
		if (note.kind == CHILD_FAILED && p->role == ROLE_WORKER &&
		    t->phase == TEMPLATE_STARTING) {
			strcat(note.text, "\n");
			template_failed(t, note.text);
		}
		if (note.kind != CHILD_READY)
			continue;
		p->ready = true;
		process_state(p->row, PROCESS_SERVING);
		if (p->role == ROLE_FETCHER && t->phase == TEMPLATE_FETCHING)
			template_start_rest(t);
		if (t->phase == TEMPLATE_STARTING)
			template_check_started(t);
	}
}

static void template_on_supervisor(struct template *t)
{
	static struct link_message m;
	int r;
	while ((r = link_receive(t->handover.link, &m, NULL)) == 1) {
		switch (m.kind) {
		case LINK_GO:
			if (t->phase == TEMPLATE_LOADED)
				template_begin(t);
			break;
		case LINK_STOP_FETCHER:
			t->fetcher_wanted = false;
			t->fetcher_stopping = true;
			template_stop_role(t, ROLE_FETCHER);
			break;
		case LINK_START_FETCHER:
			t->fetcher_wanted = true;
			template_revive(t, ROLE_FETCHER);
			break;
		case LINK_OUTCOME:
			(void)link_send(t->admin, &m, -1);
			break;
		case LINK_DRAIN:
			template_drain(t);
			break;
		default:
			break;
		}
	}
	/* The supervisor is gone: nobody would ever stop us. */
	if (r == 0)
		template_orphaned(t);
	if (t->fetcher_stopping && !template_runs(t, ROLE_FETCHER)) {
		t->fetcher_stopping = false;
		template_tell(t, LINK_FETCHER_STOPPED, "");
	}
}

static void template_on_admin(struct template *t)
{
	static struct link_message m;
	while (link_receive(t->admin, &m, NULL) == 1)
		if (m.kind == LINK_RELOAD) {
			m.generation = t->handover.generation;
			(void)link_send(t->handover.link, &m, -1);
		}
}

static void template_on_signals(struct template *t)
{
	struct signalfd_siginfo info;
	while (read(t->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
	template_reap(t);
	if (t->fetcher_stopping && !template_runs(t, ROLE_FETCHER)) {
		t->fetcher_stopping = false;
		template_tell(t, LINK_FETCHER_STOPPED, "");
	}
	/* A fetcher that dies in its first pass must not hold up the service. */
	if (t->phase == TEMPLATE_FETCHING && !template_runs(t, ROLE_FETCHER))
		template_start_rest(t);
	template_check_drained(t);
}

static void template_signals(struct template *t)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	/* A child that is told to leave right after its fork finds the word when it begins. */
	sigaddset(&set, CHILD_LEAVE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigdelset(&set, CHILD_LEAVE);
	/* A terminal's Ctrl-C and a killall reach us too: only the supervisor decides. */
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void template_loop(struct template *t)
{
	struct pollfd p[] = {
		{.fd = t->signals, .events = POLLIN},
		{.fd = t->handover.link, .events = POLLIN},
		{.fd = t->notes, .events = POLLIN},
		{.fd = t->admin, .events = POLLIN},
		{.fd = t->handover.lifeline, .events = POLLIN},
	};
	int64_t next_tick_ms = 0;

	for (;;) {
		int64_t now = clock_monotonic_ms();
		int wait = next_tick_ms > now ? (int)(next_tick_ms - now) : 0;
		int n = poll(p, sizeof(p) / sizeof(p[0]), wait);
		if (n > 0 && p[0].revents)
			template_on_signals(t);
		if (n > 0 && p[2].revents)
			template_on_notes(t);
		if (n > 0 && p[1].revents)
			template_on_supervisor(t);
		if (n > 0 && p[3].revents)
			template_on_admin(t);
		if (n > 0 && p[4].revents)
			template_orphaned(t);
		now = clock_monotonic_ms();
		if (now < next_tick_ms)
			continue;
		next_tick_ms = now + TEMPLATE_TICK_MS;
		template_watch(t, now);
		template_respawn(t, now);
		template_deadline(t, now);
	}
}

int template_run(const char *argument)
{
	static struct template t;

	title_set("template");
	if (handover_read(argument, &t.handover) < 0) {
		log_error("this argument is for the supervisor's use only");
		return 2;
	}
	title_set("template %u", t.handover.generation);
	t.fetcher_wanted = true;
	template_signals(&t);
	template_load(&t);
	template_links(&t);
	t.phase = TEMPLATE_LOADED;
	template_tell(&t, LINK_LOADED, "");
	template_loop(&t);
	return 0;
}
