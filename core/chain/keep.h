/* SPDX-License-Identifier: Apache-2.0 */
/* Octets that live as long as their query: a small arena inside it. Worker process. */
#ifndef BALEEN_CORE_CHAIN_KEEP_H
#define BALEEN_CORE_CHAIN_KEEP_H

#include "core/query.h"

#include <stdbool.h>
#include <stddef.h>

/* Copied, 8-aligned; NULL: no room. */
const void *keep_copy(struct query *q, const void *data, size_t size);

/* Copy a why with what it points to (but `category`); NULL gives an empty one. False: no room. */
bool keep_why(struct query *q, const struct baleen_why *why, struct baleen_why *out);

#endif
