/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baleen check --schema`: the configuration as JSON Schema, for editors that complete and check
 * YAML. The frame is a text, options come from the rows of the plugins that a configuration loads.
 */
#ifndef BALEEN_CORE_CLI_CHECK_SCHEMA_H
#define BALEEN_CORE_CLI_CHECK_SCHEMA_H

#include <cjson/cJSON.h>

struct generation;

/* `g` NULL (nothing could be loaded): plugins' options stay open. NULL: no memory. cJSON_Delete. */
cJSON *check_schema(const struct generation *g);

#endif
