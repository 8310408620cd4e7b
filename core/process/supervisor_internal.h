/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's state, shared by supervisor.c (loop, signals, reload), supervisor_setup.c (state
 * folder, sockets, shared memory) and supervisor_generation.c (templates). Nobody else includes it.
 */
#ifndef BALEEN_CORE_PROCESS_SUPERVISOR_INTERNAL_H
#define BALEEN_CORE_PROCESS_SUPERVISOR_INTERNAL_H

#include "core/process/handover.h"
#include "core/process/link.h"
#include "core/process/process_table.h"
#include "core/process/snapshot.h"
#include "core/worker.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum supervised_state {
	SUPERVISED_FREE,
	SUPERVISED_LOADING,  /* until LINK_LOADED */
	SUPERVISED_WAITING,  /* loaded; an older fetcher has to let go first */
	SUPERVISED_STARTING, /* until LINK_READY */
	SUPERVISED_SERVING,
	SUPERVISED_DRAINING,
	SUPERVISED_ORPHANED, /* its template died; the children serve until a successor does */
};

/* A descriptor that several generations may use: the control socket, the admin listener. */
struct shared_socket {
	int fd; /* -1: none */
	unsigned users;
	struct endpoint endpoint;
	char path[108];
};

struct supervised {
	enum supervised_state state;
	uint32_t number;
	pid_t pid; /* the template; 0 when it is gone */
	int link;
	int snapshot; /* memfd */
	struct facts facts;
	struct shared_socket *control, *admin;
	int64_t deadline_ms; /* of the state; 0: none */
	int64_t stopped_ms;  /* since when a signal keeps the template stopped; 0: it runs */
	struct shm_process *row;
};

/* A `baleen reload` that waits for its outcome. */
struct waiter {
	uint32_t generation; /* whose admin asked; 0: free */
	uint64_t serial;
	uint64_t round; /* of reloading, whose outcome answers it */
};

#define SUPERVISED_MAX 8 /* one serves, one starts, two drain, and orphans of each */
#define SHARED_MAX     8
#define WAITERS_MAX    32

struct supervisor {
	char config_path[PATH_MAX];
	struct privilege privilege;
	struct facts facts; /* of the first start: what a reload cannot change */
	struct listener_sockets sockets[CONFIG_LISTENERS_MAX];
	int shm_fd, signals, lifeline[2], lock;
	struct shm *shm;
	struct shared_socket controls[SHARED_MAX], admins[SHARED_MAX];

	struct supervised generations[SUPERVISED_MAX];
	uint32_t last_number;
	bool announced; /* "ready:" was printed */

	/* Reloading: at most one compile and one start at a time. */
	pid_t compile_pid; /* 0: none */
	int compile_fd;
	uint64_t round; /* of the compile or start that runs, or ran last */
	bool again;	/* asked for once more meanwhile */
	struct waiter waiters[WAITERS_MAX];

	/* A generation that is to start as soon as its slots are free. */
	bool wanted;
	int64_t wanted_ms;
	uint32_t recover_delay_ms;
	struct facts wanted_facts;
	int wanted_snapshot;

	bool stopping;
	int64_t stop_deadline_ms;
};

/* supervisor_setup.c: 0, or -errno after a line in the log. */
int supervisor_setup(struct supervisor *s);
struct shared_socket *supervisor_control(struct supervisor *s, const char *path);
struct shared_socket *supervisor_admin(struct supervisor *s, const struct endpoint *e);
void supervisor_release(struct shared_socket *shared);
void supervisor_cleanup(struct supervisor *s);

/* supervisor_generation.c */
int generation_start(struct supervisor *s, const struct facts *facts, int snapshot);
struct supervised *generation_in(struct supervisor *s, enum supervised_state state);
struct supervised *generation_numbered(struct supervisor *s, uint32_t number);
struct supervised *generation_new(struct supervisor *s); /* loading, waiting or starting */
void generation_tell(struct supervised *g, enum link_kind kind);
void generation_drain(struct supervisor *s, struct supervised *g);
void generation_forget(struct supervisor *s, struct supervised *g);
/* Is the number's place in shared memory free? Who is still there has until its deadline. */
bool generation_place_free(struct supervisor *s, uint32_t number);
/* Signal what is left of a generation whose template is gone (ROLE_NONE: all of it; sig 0: only
 * count); how many there are. */
unsigned generation_signal_orphans(struct supervisor *s, uint32_t number, enum shm_role role,
				   int sig);

#endif
