/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plugin gets from the core: the function table of plugin.h, one copy per instance, so that
 * every function knows for whom it works.
 */
#ifndef BALEEN_CORE_CHAIN_HOST_H
#define BALEEN_CORE_CHAIN_HOST_H

#include "baleen/plugin.h"

#include <stdbool.h>
#include <stddef.h>

struct chain;

struct host {
	struct baleen_host table; /* first: the plugin's pointer is ours */
	struct chain *chain;
	size_t index; /* of the instance */
	bool loading; /* alloc is allowed */
};

void host_init(struct host *h, struct chain *chain, size_t index);

/* host_policy.c: the two that ask the policy and the set. */
enum baleen_verdict host_policy(struct baleen_call *call);
uint32_t host_lookup(struct baleen_call *call, const uint8_t *name, uint8_t length,
		     struct baleen_match *out, uint32_t max);

#endif
