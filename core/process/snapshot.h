/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiling a snapshot: a throw-away child loads the configuration from disk, with policies,
 * plugins and their files, runs the policies' tests, and sends back a sealed memfd with every file
 * it read, or the errors' text. The supervisor itself reads none of it.
 */
#ifndef BALEEN_CORE_PROCESS_SNAPSHOT_H
#define BALEEN_CORE_PROCESS_SNAPSHOT_H

#include "core/process/handover.h"

#include <sys/types.h>

#define SNAPSHOT_TEXT_MAX 16384
#define SNAPSHOT_LIMIT_S  60

struct snapshot {
	int32_t status; /* 0, or -EINVAL with errors in `text` */
	int32_t memfd;
	struct facts facts;
	char text[SNAPSHOT_TEXT_MAX]; /* findings, one a line; warnings also with status 0 */
};

/* Start the child. `*fd` becomes readable when it is done; `close_fd` (-1: none) is closed in it.
 */
int snapshot_start(const char *config_path, int close_fd, pid_t *pid, int *fd);

/* Read what it sent and close `fd`. Never fails: a child that died gives a status and a text. The
 * memfd is the caller's. */
void snapshot_finish(int fd, struct snapshot *out);

#endif
