/* SPDX-License-Identifier: Apache-2.0 */
/* The table of processes in shared memory: what `status` shows, and how the supervisor finds the
 * children of a template that died. */
#ifndef BALEEN_CORE_PROCESS_PROCESS_TABLE_H
#define BALEEN_CORE_PROCESS_PROCESS_TABLE_H

#include "core/shm.h"

#include <sys/types.h>

enum process_state { PROCESS_STARTING, PROCESS_SERVING, PROCESS_DRAINING };

extern const char *const process_role_words[];
extern const char *const process_state_words[];

/* Take a free row for this pid; NULL when all are taken (then it is only not shown). */
struct shm_process *process_add(struct shm *s, enum shm_role role, uint32_t generation,
				uint32_t index, pid_t pid);
/* The same place, held by a successor. NULL is let pass. */
void process_replace(struct shm_process *row, pid_t pid);
void process_state(struct shm_process *row, enum process_state state);
void process_remove(struct shm_process *row);
struct shm_process *process_find(struct shm *s, pid_t pid);

/* Is `pid` a child of this process? The table lies in shared memory: ask before a signal. */
int process_is_child(pid_t pid);

#endif
