/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process table. Rows are written by the supervisor (its own, templates') and by templates
 * (their children's); read by admin. Invariant: a row is claimed by one compare-and-swap of its
 * pid.
 */
#include "core/process/process_table.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const process_role_words[] = {
	[ROLE_NONE] = "none",	  [ROLE_SUPERVISOR] = "supervisor", [ROLE_TEMPLATE] = "template",
	[ROLE_WORKER] = "worker", [ROLE_FETCHER] = "fetcher",	    [ROLE_LOGGER] = "logger",
	[ROLE_ADMIN] = "admin",
};

const char *const process_state_words[] = {
	[PROCESS_STARTING] = "starting",
	[PROCESS_SERVING] = "serving",
	[PROCESS_DRAINING] = "draining",
};

struct shm_process *process_add(struct shm *s, enum shm_role role, uint32_t generation,
				uint32_t index, pid_t pid)
{
	struct shm_process *rows = shm_processes(s);
	for (unsigned i = 0; i < SHM_PROCESSES_MAX; i++) {
		uint32_t free_pid = 0;
		if (!atomic_compare_exchange_strong(&rows[i].pid, &free_pid, (uint32_t)pid))
			continue;
		rows[i].role = role;
		rows[i].generation = generation;
		rows[i].index = index;
		rows[i].restarts = 0;
		rows[i].state = PROCESS_STARTING;
		rows[i].started_us = clock_wall_us();
		return &rows[i];
	}
	return NULL;
}

void process_replace(struct shm_process *row, pid_t pid)
{
	if (!row)
		return;
	row->state = PROCESS_STARTING;
	row->started_us = clock_wall_us();
	atomic_fetch_add(&row->restarts, 1);
	atomic_store(&row->pid, (uint32_t)pid);
}

void process_state(struct shm_process *row, enum process_state state)
{
	if (row)
		row->state = state;
}

void process_remove(struct shm_process *row)
{
	if (!row)
		return;
	row->role = ROLE_NONE;
	atomic_store(&row->pid, 0);
}

struct shm_process *process_find(struct shm *s, pid_t pid)
{
	struct shm_process *rows = shm_processes(s);
	for (unsigned i = 0; i < SHM_PROCESSES_MAX; i++)
		if (rows[i].pid == (uint32_t)pid)
			return &rows[i];
	return NULL;
}

int process_is_child(pid_t pid)
{
	char path[32], text[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* "pid (name) S ppid ...", where the name may hold anything: count from its last bracket.
	 */
	const char *end = strrchr(text, ')');
	return end && strlen(end) > 4 && atoi(end + 4) == (int)getpid();
}
