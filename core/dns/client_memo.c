/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembering clients' groups. Worker process; owns its table. Invariant: an entry is believed only
 * for exactly the address and listener that it was made for.
 */
#include "core/dns/client_memo.h"

#include "base/hash.h"

#include <string.h>

void client_memo_init(struct client_memo *m)
{
	memset(m, 0, sizeof(*m));
	m->seed = hash_random();
}

static bool allowed(const struct config *config, const struct addr *client)
{
	for (size_t i = 0; i < config->allow_client_count; i++)
		if (prefix_contains(&config->allow_clients[i], client))
			return true;
	return false;
}

bool client_memo_find(struct client_memo *m, const struct generation *g, const struct addr *client,
		      uint8_t listener, uint32_t *group)
{
	size_t at = hash_bytes(m->seed + listener, client->octets, 16) % CLIENT_MEMO_SIZE;

	if (m->entries[at].listener_plus_one != listener + 1u ||
	    memcmp(m->entries[at].addr.octets, client->octets, 16)) {
		struct policy_client who = {
			.addr = *client,
			.listener = g->config.listeners[listener].name,
		};
		m->entries[at].addr = *client;
		m->entries[at].listener_plus_one = (uint8_t)(listener + 1);
		m->entries[at].allowed = allowed(&g->config, client);
		m->entries[at].group = policy_group_of(g->policy, &who);
	}
	*group = m->entries[at].group;
	return m->entries[at].allowed;
}
