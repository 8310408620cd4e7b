/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set that an offline explanation stands on: the newest in the state folder, or, where there is
 * none yet, one compiled for the moment from the configuration's local lists.
 */
#ifndef BALEEN_CORE_CLI_EXPLAIN_SET_H
#define BALEEN_CORE_CLI_EXPLAIN_SET_H

#include "core/generation.h"
#include "feeds/set/domset.h"

#include <stdint.h>

/* 0 with a bound set (NULL: no feeds at all) and its number (0: made for the moment). -errno with
 * a sentence. Feeds that are in no set are told on stderr. */
int explain_set_open(const struct generation *g, struct domset **out, uint64_t *number,
		     char error[DOMSET_ERROR_MAX]);

#endif
