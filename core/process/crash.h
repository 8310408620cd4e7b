/* SPDX-License-Identifier: Apache-2.0 */
/* After a worker died: read its breadcrumb, say where it was, keep the books. Template process. */
#ifndef BALEEN_CORE_PROCESS_CRASH_H
#define BALEEN_CORE_PROCESS_CRASH_H

#include "core/generation.h"
#include "core/shm.h"

#include <stdbool.h>
#include <sys/types.h>

#define CRASH_DEATH_MS 600000 /* how long a query that killed a worker gets SERVFAIL */

/*
 * Log the breadcrumb of worker `index`, count the crash against the plugin that it was in (out of
 * the chain from max-crashes within the window on), remember the query, and sweep what the worker
 * may have left half-written. `status` is waitpid's; `hung`: we sent the signal.
 */
void crash_account(struct shm *s, const struct generation *g, unsigned index, pid_t pid, int status,
		   bool hung);

/* Only the sweep, for a slot whose template is gone too. Supervisor. */
void crash_sweep(struct shm *s, unsigned slot);

#endif
