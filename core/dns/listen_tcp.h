/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TCP listeners of a worker (RFC 7766): pipelined queries, answers in any order, everything
 * bounded. Worker process.
 */
#ifndef BALEEN_CORE_DNS_LISTEN_TCP_H
#define BALEEN_CORE_DNS_LISTEN_TCP_H

#include "core/query.h"
#include "core/worker.h"

#define TCP_CONNECTIONS_MAX 1024 /* a worker */
#define TCP_CLIENT_MAX	    64	 /* connections of one client, a worker */
#define TCP_IN_FLIGHT_MAX   64	 /* queries of one connection that wait for an answer */
#define TCP_IDLE_MS	    10000
#define TCP_OUTPUT_MAX	    (256 << 10) /* unsent octets, above which a connection is not read */

struct tcp_listeners;

int tcp_listeners_new(struct worker *w, struct tcp_listeners **out);
void tcp_listeners_free(struct tcp_listeners *l);
void tcp_listeners_start(struct tcp_listeners *l);
/* Accept no more; answer what has come, then half-close and read to the end. */
void tcp_listeners_drain(struct tcp_listeners *l);
bool tcp_listeners_idle(const struct tcp_listeners *l);

/* Answer a query of a connection that may be gone by now; or say that there will be no answer. */
void tcp_reply_send(struct tcp_listeners *l, const struct query_origin *origin, const uint8_t *data,
		    size_t size);
void tcp_reply_none(struct tcp_listeners *l, const struct query_origin *origin);

#endif
