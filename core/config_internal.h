/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read baleen.yaml share. Nobody else includes this. */
#ifndef BALEEN_CORE_CONFIG_INTERNAL_H
#define BALEEN_CORE_CONFIG_INTERNAL_H

#include "core/config.h"

struct config_loader {
	struct source *source;
	struct arena *arena;
	struct diags *d;
	struct config *config;
};

/* [A-Za-z0-9][A-Za-z0-9_.-]*, at most 63: names that stand in logs, metrics and commands. */
bool config_name_is_valid(const char *name);

/* An endpoint, or an error that also knows what other products write here (tls://...). */
bool config_endpoint(struct config_loader *l, const struct node *n, struct endpoint *out);

/* Children of a list, or of a single scalar that stands for a list of one; NULL with an error. */
const struct node *config_items(struct config_loader *l, const struct node *n);

void config_load_upstreams(struct config_loader *l, const struct node *n);
void config_load_chain(struct config_loader *l, const struct node *n);

#endif
