/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process may still do once it runs: seccomp allow-lists and Landlock rulesets, by role.
 * Where the kernel lacks one, a line in the log says so and the process goes on without it.
 */
#ifndef BALEEN_CORE_PROCESS_SANDBOX_H
#define BALEEN_CORE_PROCESS_SANDBOX_H

#include "core/shm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A folder or file that stays usable; by path, or by descriptor when `path` is NULL. */
struct sandbox_path {
	const char *path;
	int fd;
	bool write;
};

struct sandbox {
	enum shm_role role;
	const struct sandbox_path *paths;
	size_t path_count;
	bool any_tcp; /* no limit on ports: the fetcher, plugins that need the network */
	const uint16_t *tcp_ports; /* else connect only to these */
	size_t tcp_port_count;
};

/* Enter it: for good, for this process and what it forks. Logs what is missing. */
void sandbox_enter(const struct sandbox *s);

#endif
