/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is asking: may this address use us at all, and which group is it in? Both come from searches
 * over prefixes, so the last answers are remembered by address and listener. Worker process; valid
 * as long as the generation.
 */
#ifndef BALEEN_CORE_DNS_CLIENT_MEMO_H
#define BALEEN_CORE_DNS_CLIENT_MEMO_H

#include "core/generation.h"

#include <stdbool.h>
#include <stdint.h>

#define CLIENT_MEMO_SIZE 1024

struct client_memo {
	struct {
		struct addr addr;
		uint32_t group;
		uint8_t listener_plus_one; /* 0: empty */
		bool allowed;
	} entries[CLIENT_MEMO_SIZE];
	uint64_t seed;
};

void client_memo_init(struct client_memo *m);

/* False: outside allow-clients. `*group` is set either way. */
bool client_memo_find(struct client_memo *m, const struct generation *g, const struct addr *client,
		      uint8_t listener, uint32_t *group);

#endif
