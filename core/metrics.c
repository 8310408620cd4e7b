/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core's counters by name. The supervisor registers them before anyone else adds to a new
 * segment; an old one already has them. Owns nothing. Invariant: row n of METRICS is metric n.
 */
#include "core/metrics.h"

#include "base/log.h"
#include "core/shm.h"

#include <string.h>

static const struct {
	const char *name;
	const char *help;
} rows[METRIC_COUNT] = {
#define METRIC_ROW(id, name, help) {name, help},
	METRICS(METRIC_ROW)
#undef METRIC_ROW
};

void metrics_register(struct shm *s)
{
	for (unsigned i = 0; i < METRIC_COUNT; i++)
		if (shm_metric(s, rows[i].name) != i)
			log_error("metric %s is not number %u: the segment is not ours",
				  rows[i].name, i);
}

/* The part in front of the labels, which is what a help text is about. */
static size_t base_length(const char *name)
{
	return strcspn(name, "{");
}

const char *metrics_help(const char *name)
{
	const char *found = NULL;

	for (unsigned i = 0; i < METRIC_COUNT; i++) {
		if (!strcmp(rows[i].name, name) && *rows[i].help)
			return rows[i].help;
		/* Rows that differ in labels alone share the first one's text. */
		size_t length = base_length(rows[i].name);
		if (!found && length == base_length(name) && !strncmp(rows[i].name, name, length))
			found = rows[i].help;
	}
	return found;
}
