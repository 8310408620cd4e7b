/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A generation: everything that one configuration means, loaded from one source. Configuration,
 * feeds, policies, plugins loaded and configured, chain flattened per group. `check`, `explain` and
 * the template all call generation_load; the template then forks workers, logger, fetcher and
 * admin, which share it copy-on-write. Read-only once loaded.
 */
#ifndef BALEEN_CORE_GENERATION_H
#define BALEEN_CORE_GENERATION_H

#include "base/diag.h"
#include "base/source.h"
#include "core/config.h"
#include "policies/policy.h"

struct chain;
struct shm;

struct generation {
	uint32_t number; /* 1 for the first; from the supervisor */
	struct source *source;
	struct arena arena;
	struct config config;
	struct policy *policy;
	struct chain *chain; /* core/chain/chain.h */
	struct shm *shm;     /* NULL in check and offline explain */
};

/*
 * Load it all. With `shm` NULL plugins get private memory in place of shared regions. 0, or
 * -EINVAL with every error in `d`. `source` becomes the generation's.
 */
int generation_load(struct source *source, const char *config_path, struct shm *shm,
		    uint32_t number, struct diags *d, struct generation **out);
void generation_free(struct generation *g);

#endif
