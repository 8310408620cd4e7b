/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries that killed workers: the supervisor writes them down when it reaps one, and for a while
 * they are answered SERVFAIL before any plugin sees them. Worker process; reads only.
 */
#ifndef BALEEN_CORE_DNS_QUERY_OF_DEATH_H
#define BALEEN_CORE_DNS_QUERY_OF_DEATH_H

#include "core/shm.h"

/* Is this question on the list? Costs one load while the list is empty. */
bool query_of_death_listed(struct shm *s, const uint8_t *name, size_t length, uint16_t type,
			   int64_t now_ms);

#endif
