/* SPDX-License-Identifier: Apache-2.0 */
/* What transfers share: libcurl's multi handle on the event loop, the resolver, the system's
 * certificates. Private to fetch.c and fetch_pool.c. */
#ifndef BALEEN_FEEDS_FETCH_POOL_H
#define BALEEN_FEEDS_FETCH_POOL_H

#include "feeds/fetch.h"

#include <stddef.h>

struct evdns_base;

int fetch_pool_add(struct fetch_pool *p, void *easy);
void fetch_pool_remove(struct fetch_pool *p, void *easy);
struct event_base *fetch_pool_base(struct fetch_pool *p);
struct evdns_base *fetch_pool_dns(struct fetch_pool *p);
/* PEM of the system's certificates, or NULL: libcurl's own default then. */
const void *fetch_pool_ca(struct fetch_pool *p, size_t *size);

/* Called by the pool when a transfer ends; in fetch.c. */
void fetch_ended(void *easy, int curl_code);

#endif
