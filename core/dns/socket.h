/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of a listener, made once by the supervisor and inherited by every generation: a
 * reuseport group with one UDP receiver a worker, among which a classic BPF program chooses by
 * chance for each packet; one send-only UDP socket a worker, opened after the receivers so that the
 * choice never falls on it; one TCP listener. None of them is closed while the daemon lives:
 * closing a member of the group would lose its queue and move the others.
 */
#ifndef BALEEN_CORE_DNS_SOCKET_H
#define BALEEN_CORE_DNS_SOCKET_H

#include "core/config.h"
#include "core/worker.h"

#define SOCKET_RECEIVE_BYTES (4 << 20) /* 10,000 waiting queries: 0.3 s of a busy worker */
#define SOCKET_ERROR_MAX     256

/* 0, or -errno with a sentence in `error` (-EADDRINUSE: someone else is there). */
int socket_open_listener(const struct config_listener *listener, unsigned workers,
			 struct listener_sockets *out, char error[SOCKET_ERROR_MAX]);
void socket_close_listener(struct listener_sockets *s);

#endif
