/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A template's children: what each is given, and where each begins. The functions run in a freshly
 * forked process with the whole generation in memory, and do not return.
 */
#ifndef BALEEN_CORE_PROCESS_CHILD_H
#define BALEEN_CORE_PROCESS_CHILD_H

#include "core/generation.h"
#include "core/process/handover.h"
#include "core/shm.h"
#include "core/worker.h"

#include <event2/event.h>
#include <signal.h>
#include <stdint.h>

struct fetcher_folder; /* feeds/fetcher.h */

#define CHILD_DRAIN_MS                                                                             \
	4000 /* for queries in flight; the supervisor's patience is a little more                  \
	      */

/* The word to leave. Not SIGTERM: service managers and terminals send that to all processes at
 * once, and only the supervisor decides. */
#define CHILD_LEAVE SIGUSR1

enum child_note_kind { CHILD_READY = 1, CHILD_FAILED = 2 };

/* What a child tells its template, over a pipe that all of them share: small writes are atomic. */
struct child_note {
	uint32_t kind;
	uint32_t pid;
	char text[248];
};

struct child {
	const struct handover *handover;
	struct shm *shm;
	struct generation *generation;
	struct listener_sockets *sockets; /* config.listener_count */
	const struct fetcher_folder *folders;
	size_t folder_count;
	unsigned index; /* of a worker */
	int note;	/* write end of the notes' pipe */
	/* Ends of links; each child uses its own. */
	int admin_to_template, admin_to_fetcher, admin_to_logger;
	int fetcher_to_admin, logger_to_admin;
};

_Noreturn void worker_process(const struct child *c);
_Noreturn void logger_process(const struct child *c);
_Noreturn void fetcher_process(const struct child *c);
_Noreturn void admin_process(const struct child *c);

/* What all of them do first: signals back to their defaults (TERM, INT and HUP ignored: they are
 * the supervisor's), an event loop, the lifeline. Out of memory ends the process. */
struct event_base *child_begin(const struct child *c, void (*leave)(void *context), void *context);
/* Call `leave` when told to. Before that, the word ends the process. */
void child_on_leave(struct event_base *base, void (*leave)(void *context), void *context);
void child_ready(const struct child *c);
/* Say why, to the template and in the log, and leave. */
_Noreturn void child_failed(const struct child *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
