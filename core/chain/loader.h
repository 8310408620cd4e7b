/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a word of the configuration to a checked descriptor: finds the file, reads it through the
 * source (so that a snapshot holds it), loads it from a private copy in memory, compares versions,
 * and checks all that the core relies on later.
 */
#ifndef BALEEN_CORE_CHAIN_LOADER_H
#define BALEEN_CORE_CHAIN_LOADER_H

#include "baleen/plugin.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/source.h"

#include <stdbool.h>

struct loader_request {
	struct source *source;
	struct arena *arena;	 /* for the path */
	const char *word;	 /* "blocklist", or a path that ends in .so */
	const char *folder;	 /* plugin-folder, or NULL for the default places */
	const char *config_file; /* relative paths are relative to it; its owner is trusted */
	int line, column;	 /* where the word stands, for errors */
};

/* 0 with `out` filled, missing tail zeroed, and the file's path; -EINVAL with a reason in `d`. */
int loader_load(const struct loader_request *request, const struct baleen_host *host,
		struct diags *d, struct baleen_plugin *out, const char **path);

#endif
