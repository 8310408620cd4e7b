/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logger: drains the rings of its generation's workers, turns records into events, hands them
 * to the sinks in batches and to the subscribers of `log tail`. A sink may block and the disk may
 * be full: workers do not notice, and what their rings lost meanwhile is counted and said.
 * Invariant: polls, never waits for a worker; leaves only after the rings of workers that left are
 * empty.
 */
#include "base/addr.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/chain/chain.h"
#include "core/event.h"
#include "core/process/child.h"
#include "core/process/logger_tail.h"
#include "core/process/sandbox.h"
#include "core/process/title.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOGGER_BATCH	   64
#define LOGGER_POLL_MIN_MS 5
#define LOGGER_POLL_MAX_MS 20
#define LOGGER_TURN_MAX	   64 /* batches before the loop gets its turn */

struct logger {
	const struct child *child;
	struct event_base *base;
	struct event *timer;
	struct chain *chain;
	unsigned workers;
	struct ring_reader readers[CONFIG_WORKERS_MAX];
	uint64_t lost_seen[CONFIG_WORKERS_MAX][RING_VERDICTS];
	uint64_t lost[RING_VERDICTS]; /* since the last line about it */
	uint64_t lost_unsaid;	      /* not yet told to the sinks */
	uint64_t damaged;
	int64_t next_report_ms;
	struct event_storage *storage[LOGGER_BATCH];
	struct baleen_event events[LOGGER_BATCH];
	struct tail *tail;
	unsigned poll_ms;
	bool leaving;
};

static void logger_count_lost(struct logger *l)
{
	uint32_t generation = l->child->generation->number;
	for (unsigned w = 0; w < l->workers; w++) {
		const uint64_t *now =
			ring_lost(shm_ring(l->child->shm, shm_slot(l->child->shm, generation, w)));
		for (unsigned v = 0; v < RING_VERDICTS; v++) {
			uint64_t value = now[v], more = value - l->lost_seen[w][v];
			l->lost_seen[w][v] = value;
			/* A damaged ring was made anew and counts from zero. */
			if (more == 0 || more > UINT32_MAX)
				continue;
			l->lost[v] += more;
			l->lost_unsaid += more;
		}
	}
}

/* At most one line every ten seconds, with every verdict's share. */
static void logger_report_lost(struct logger *l, int64_t now_ms)
{
	char text[256];
	size_t n = 0;
	uint64_t total = l->damaged;

	for (unsigned v = 0; v < EVENT_VERDICTS; v++)
		total += l->lost[v];
	if (total == 0 || now_ms < l->next_report_ms)
		return;
	l->next_report_ms = now_ms + 10000;
	text[0] = '\0';
	for (unsigned v = 0; v < EVENT_VERDICTS && n < sizeof(text); v++)
		if (l->lost[v])
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %s %llu",
					      event_verdict_words[v],
					      (unsigned long long)l->lost[v]);
	log_warn("the sinks were too slow: %llu events are not in the log (%s%s)",
		 (unsigned long long)total, text[0] ? text + 1 : "",
		 l->damaged ? ", damaged records" : "");
	memset(l->lost, 0, sizeof(l->lost));
	l->damaged = 0;
}

static size_t logger_collect(struct logger *l)
{
	static uint8_t record[RING_RECORD_MAX];
	size_t n = 0;
	bool more = true;

	/* One record a worker in turn, so that a busy one does not hide the others. */
	while (more && n < LOGGER_BATCH) {
		more = false;
		for (unsigned w = 0; w < l->workers && n < LOGGER_BATCH; w++) {
			int size = ring_read(&l->readers[w], record, sizeof(record));
			if (size == 0)
				continue;
			more = true;
			if (size < 0 ||
			    event_read(l->storage[n], record, (size_t)size, &l->events[n]) < 0) {
				l->damaged++;
				l->lost_unsaid++;
				continue;
			}
			n++;
		}
	}
	return n;
}

static size_t logger_turn(struct logger *l)
{
	size_t n = logger_collect(l);
	logger_count_lost(l);
	if (n == 0 && l->lost_unsaid == 0)
		return 0;
	chain_events(l->chain, l->events, n, l->lost_unsaid);
	l->lost_unsaid = 0;
	tail_events(l->tail, l->events, n);
	return n;
}

static void logger_arm(struct logger *l)
{
	struct timeval t = {.tv_usec = (suseconds_t)l->poll_ms * 1000};
	evtimer_add(l->timer, &t);
}

static void logger_poll(evutil_socket_t fd, short what, void *context)
{
	struct logger *l = context;
	size_t turns = 0;
	(void)fd;
	(void)what;

	while (turns < LOGGER_TURN_MAX && logger_turn(l) > 0)
		turns++;
	logger_report_lost(l, clock_monotonic_ms());
	if (turns > 0)
		l->poll_ms = LOGGER_POLL_MIN_MS;
	else if (l->poll_ms < LOGGER_POLL_MAX_MS)
		l->poll_ms++;
	if (l->leaving && turns < LOGGER_TURN_MAX) {
		event_base_loopbreak(l->base);
		return;
	}
	logger_arm(l);
}

/* The word comes when the workers are gone: what they left is written first. */
static void logger_leave(void *context)
{
	struct logger *l = context;
	l->leaving = true;
	l->poll_ms = 1;
	logger_arm(l);
}

struct logger_paths {
	struct sandbox_path at[CONFIG_CHAIN_MAX + 1];
	size_t count;
};

/* The folder of a sink's output, so that the sandbox leaves it writable. What is below the state
 * folder is open anyway. */
static void logger_output(void *context, const char *path)
{
	struct logger_paths *paths = context;
	char *folder = *path == '/' ? strdup(path) : NULL;

	if (!folder || paths->count == sizeof(paths->at) / sizeof(paths->at[0])) {
		free(folder);
		return;
	}
	char *slash = strrchr(folder, '/');
	slash[slash == folder] = '\0';
	paths->at[paths->count++] = (struct sandbox_path){.path = folder, .write = true};
}

static void logger_sandbox(const struct generation *g)
{
	struct logger_paths paths = {.at = {{.path = ".", .write = true}}, .count = 1};
	struct sandbox s = {.role = ROLE_LOGGER, .paths = paths.at, .any_tcp = true};
	chain_outputs(g->chain, logger_output, &paths);
	s.path_count = paths.count;
	sandbox_enter(&s);
	for (size_t i = 1; i < paths.count; i++)
		free((void *)(uintptr_t)paths.at[i].path);
}

static int logger_init(struct logger *l, const struct child *c)
{
	l->child = c;
	l->chain = c->generation->chain;
	l->workers = c->generation->config.workers;
	l->poll_ms = LOGGER_POLL_MIN_MS;
	for (unsigned w = 0; w < l->workers; w++) {
		void *ring = shm_ring(c->shm, shm_slot(c->shm, c->generation->number, w));
		ring_init(ring, SHM_RING_BYTES);
		ring_reader_open(ring, &l->readers[w]);
		memcpy(l->lost_seen[w], ring_lost(ring), sizeof(l->lost_seen[w]));
	}
	for (unsigned i = 0; i < LOGGER_BATCH; i++) {
		l->storage[i] = event_storage_new(c->generation);
		if (!l->storage[i])
			return -ENOMEM;
	}
	l->timer = evtimer_new(l->base, logger_poll, l);
	return l->timer ? tail_new(l->base, c->logger_to_admin, &l->tail) : -ENOMEM;
}

_Noreturn void logger_process(const struct child *c)
{
	static struct logger l;
	char error[256] = "";

	title_set("logger");
	l.base = child_begin(c, logger_leave, &l);
	child_on_leave(l.base, logger_leave, &l);
	if (logger_init(&l, c) < 0)
		child_failed(c, "the logger cannot start: out of memory");
	if (chain_start_logger(l.chain, l.base, error) < 0)
		child_failed(c, "the logger cannot start: %s", error);
	logger_sandbox(c->generation);
	child_ready(c);
	logger_arm(&l);
	event_base_dispatch(l.base);
	chain_stop_logger(l.chain);
	_exit(0);
}
