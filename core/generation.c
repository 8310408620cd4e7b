/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting a generation together: configuration, then policies, then the chain, each from the same
 * source. Runs in the compile child, in the template, in `check` and in `explain`. Invariant: what
 * is handed out is complete; with any error nothing is, and all errors are told, in their order.
 */
#include "core/generation.h"

#include "core/chain/chain.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The plugin that returns the policy's outcome: by its word, or as a path to blocklist.so. */
static bool generation_is_blocklist(const char *plugin)
{
	const char *slash = strrchr(plugin, '/');
	if (!slash)
		return strcmp(plugin, "blocklist") == 0;
	return strcmp(slash + 1, "blocklist.so") == 0;
}

static int generation_load_policy(struct generation *g, struct diags *d)
{
	const struct config *config = &g->config;
	const char *plugins[CONFIG_CHAIN_MAX + 1], *listeners[CONFIG_LISTENERS_MAX + 1];
	struct policy_context context = {
		.feeds = &config->feeds,
		.config_folder = config->folder,
		.plugin_names = plugins,
		.listener_names = listeners,
	};
	size_t n = 0;

	for (size_t i = 0; i < config->chain_count; i++) {
		plugins[i] = config->chain[i].instance;
		if (generation_is_blocklist(config->chain[i].plugin))
			context.blocklist_in_chain = true;
	}
	plugins[config->chain_count] = NULL;
	for (size_t i = 0; i < config->listener_count; i++)
		if (config->listeners[i].name)
			listeners[n++] = config->listeners[i].name;
	listeners[n] = NULL;
	return policy_load(g->source, config->policies, &context, &g->arena, d, &g->policy);
}

int generation_load(struct source *source, const char *config_path, struct shm *shm,
		    uint32_t number, struct diags *d, struct generation **out)
{
	struct generation *g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->number = number;
	g->source = source;
	g->shm = shm;
	arena_init(&g->arena);

	int r = config_load(source, config_path, &g->arena, d, &g->config);
	/* Whoever has errors here and there wants to hear of all of them. */
	if (r == 0 || g->config.checkable) {
		int policies = generation_load_policy(g, d);
		int plugins = chain_load(g, d, &g->chain);
		r = r < 0 ? r : policies < 0 ? policies : plugins;
	}
	if (r == 0 && d->errors > 0)
		r = -EINVAL;
	diag_sort(d);
	if (r < 0) {
		/* The source stays the caller's. */
		arena_fini(&g->arena);
		free(g);
		return r;
	}
	*out = g;
	return 0;
}

void generation_free(struct generation *g)
{
	if (!g)
		return;
	source_free(g->source);
	arena_fini(&g->arena);
	free(g);
}
