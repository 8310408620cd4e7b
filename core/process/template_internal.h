/* SPDX-License-Identifier: Apache-2.0 */
/* The template's state, shared by template.c (phases, messages) and template_children.c (forking,
 * reaping, watching). Nobody else includes this. */
#ifndef BALEEN_CORE_PROCESS_TEMPLATE_INTERNAL_H
#define BALEEN_CORE_PROCESS_TEMPLATE_INTERNAL_H

#include "core/process/child.h"
#include "core/process/handover.h"
#include "core/process/link.h"
#include "core/process/process_table.h"
#include "core/ring.h"
#include "feeds/fetcher.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum template_phase {
	TEMPLATE_LOADING,
	TEMPLATE_LOADED,   /* waits for the supervisor's GO */
	TEMPLATE_FETCHING, /* the fetcher's first pass */
	TEMPLATE_STARTING, /* workers, logger, admin */
	TEMPLATE_SERVING,
	TEMPLATE_DRAINING,
	TEMPLATE_LAST, /* only the logger is left */
};

/* A place that a process fills, and its successor after it. */
struct place {
	enum shm_role role;
	unsigned index;
	pid_t pid; /* 0: nobody at the moment */
	bool ready;
	bool hung; /* we sent it SIGABRT */
	int64_t started_ms;
	int64_t stopped_ms;	/* since when a signal keeps it stopped; 0: it runs */
	int64_t respawn_ms;	/* when the next one starts; 0: not wanted */
	uint32_t delay_ms;	/* doubles while successors die young */
	uint64_t crumb_entered; /* watchdog: what it saw last */
	int64_t crumb_since_ms;
	struct shm_process *row;
};

#define TEMPLATE_PLACES_MAX (CONFIG_WORKERS_MAX + 3)

struct template
{
	struct handover handover;
	struct shm *shm;
	struct source *source;
	struct generation *generation;
	struct listener_sockets sockets[CONFIG_LISTENERS_MAX];
	struct fetcher_folder *folders;
	size_t folder_count;
	struct child child; /* what each child gets */
	int signals, notes, admin;
	enum template_phase phase;
	int64_t deadline_ms;
	bool fetcher_wanted, fetcher_stopping;
	struct place places[TEMPLATE_PLACES_MAX];
	unsigned count;
};

/* template_children.c */
void template_add(struct template *t, enum shm_role role, unsigned index);
void template_reap(struct template *t);
void template_respawn(struct template *t, int64_t now_ms);
void template_watch(struct template *t, int64_t now_ms);
struct place *template_place_of(struct template *t, pid_t pid);
bool template_runs(const struct template *t, enum shm_role role);
unsigned template_running(const struct template *t, bool without_logger);
void template_stop(struct place *p); /* SIGTERM, and no successor */
void template_stop_role(struct template *t, enum shm_role role);
void template_revive(struct template *t, enum shm_role role);
void template_kill_all(struct template *t, int sig);
void template_kill_draining(struct template *t);
/* The supervisor is gone: end all within two seconds. */
_Noreturn void template_orphaned(struct template *t);

#endif
