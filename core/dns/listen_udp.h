/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The UDP listeners of a worker: packets in batches from the sockets it owns, replies in batches
 * through its send-only socket. Worker process.
 */
#ifndef BALEEN_CORE_DNS_LISTEN_UDP_H
#define BALEEN_CORE_DNS_LISTEN_UDP_H

#include "core/query.h"
#include "core/worker.h"

struct udp_listeners;

int udp_listeners_new(struct worker *w, struct udp_listeners **out);
void udp_listeners_free(struct udp_listeners *l);
void udp_listeners_start(struct udp_listeners *l);
/* Read no more: what waits in the sockets is for whoever shares them. */
void udp_listeners_stop(struct udp_listeners *l);

/* Room for the next reply of a listener; send what was written there; get all of it out. */
uint8_t *udp_reply_room(struct udp_listeners *l, uint8_t listener, size_t *max);
void udp_reply_send(struct udp_listeners *l, const struct query_origin *origin, const uint8_t *data,
		    size_t size);
void udp_flush(struct udp_listeners *l);

#endif
