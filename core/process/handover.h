/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a supervisor hands to a template over exec: facts, and numbers of inherited descriptors, in
 * a sealed memfd whose own number is the argument.
 */
#ifndef BALEEN_CORE_PROCESS_HANDOVER_H
#define BALEEN_CORE_PROCESS_HANDOVER_H

#include "core/config.h"
#include "core/process/privilege.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define HANDOVER_ARGUMENT "--internal-template"

/* What the supervisor must know of a configuration that it does not read itself. */
struct facts {
	struct endpoint listeners[CONFIG_LISTENERS_MAX];
	uint32_t listener_count;
	uint32_t workers;
	uint64_t cache_bytes;
	bool user_given;
	bool admin_enabled;
	struct endpoint admin_listen;
	char user[64];
	char state[PATH_MAX];
	char control[108]; /* of a sockaddr_un */
};

struct handover_listener {
	int32_t udp[CONFIG_WORKERS_MAX];
	int32_t udp_send[CONFIG_WORKERS_MAX];
	int32_t tcp;
	bool wildcard;
	bool v6;
};

struct handover {
	uint32_t magic;
	uint32_t size;
	uint32_t generation;
	uint32_t supervisor_uid;
	int32_t shm, snapshot, link, lifeline, control, admin; /* admin: -1 if there is none */
	struct privilege privilege;
	char config_path[PATH_MAX];
	struct facts facts;
	struct handover_listener listeners[CONFIG_LISTENERS_MAX];
};

/* fork + exec of this program with these descriptors. The pid, or -errno. */
int handover_exec(const struct handover *h);

/* In the template: read it, close the memfd, make every descriptor close-on-exec. 0 or -errno. */
int handover_read(const char *argument, struct handover *out);

#endif
