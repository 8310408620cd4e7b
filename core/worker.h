/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker process's state: one event loop, one thread, the DNS path. Writes no file. Everything
 * that a step of the path needs hangs here.
 */
#ifndef BALEEN_CORE_WORKER_H
#define BALEEN_CORE_WORKER_H

#include "core/generation.h"
#include "core/ring.h"
#include "core/shm.h"
#include "feeds/set/domset.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

/* Sockets of one listener, bound by the supervisor, inherited by all. */
struct listener_sockets {
	int *udp; /* config.workers receivers: the reuseport group's members */
	size_t udp_count;
	int *udp_send; /* one send-only socket a worker, opened after the receivers */
	size_t udp_send_count;
	int tcp; /* one listening socket, accepted by every worker */
	bool wildcard;
	bool v6;
};

struct worker {
	unsigned index; /* 0..workers-1 */
	unsigned slot;	/* in shm */
	struct generation *generation;
	struct shm *shm;
	_Atomic uint64_t *cells;
	struct breadcrumb *crumb;
	struct event_base *base;
	struct ring_writer ring;

	struct listener_sockets *sockets; /* config.listener_count */

	/* The set that new queries use; adopted at a loop tick (core/dns/set_adopt.h). */
	struct domset *set;
	uint64_t set_number;
	uint64_t set_refused; /* could not be opened: not tried again for a while */
	uint64_t set_complained;
	struct open_set *open_sets;

	/* Owned by their files. */
	struct path *path;
	struct cache *cache;
	struct upstreams *upstreams;
	struct udp_listeners *udp;
	struct tcp_listeners *tcp;
	struct tickets *tickets;

	bool draining;
	size_t parked; /* queries that wait for something */
};

/* The core's own counters, registered by core/metrics.c. */
#include "core/metrics.h"

#endif
