/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Option rows of a plugin to its options struct: YAML in, checked values out. Plugins never see
 * YAML. Also the same rows as text, for `plugin list`, and as JSON Schema, for editors.
 */
#ifndef BALEEN_CORE_CHAIN_OPTIONS_H
#define BALEEN_CORE_CHAIN_OPTIONS_H

#include "baleen/plugin.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/node.h"
#include "base/source.h"

struct cJSON;

struct options_context {
	struct source *source; /* for BALEEN_FILE */
	struct arena *arena;   /* backs every value */
	struct diags *d;
	const char *config_file; /* absolute; a node's relative file stands in its folder */
	const char *state;	 /* absolute: outputs below it become relative */
	const char *instance;
	int line, column; /* of the chain's entry, when there is no better place */
};

/*
 * Fill `config` (config_size octets, zeroed by this). `given` is the entry's map, or NULL; keys in
 * the NULL-terminated `common` are somebody else's. 0, or -EINVAL with every error in context->d.
 */
int options_fill(const struct options_context *context, const struct baleen_plugin *plugin,
		 const struct node *given, const char *const *common, void *config);

/* A group's: begins as a copy of `base` (not configured yet), and keys in `given` differ. */
int options_override(const struct options_context *context, const struct baleen_plugin *plugin,
		     const void *base, const struct node *given, const char *const *common,
		     void *config);

/* Every BALEEN_OUTPUT value that is set, one call each. */
typedef void options_output(void *context, const char *path);
void options_outputs(const struct baleen_plugin *plugin, const void *config, options_output *each,
		     void *context);

/* "duration", "list of prefixes": the type's word. */
const char *options_type_word(enum baleen_type type);

/* JSON Schema of the options as an object's "properties". Free with cJSON_Delete. */
struct cJSON *options_schema(const struct baleen_plugin *plugin);

#endif
