/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One query's way through a worker:
 *
 *   receive -> parse -> ACL, group -> PHASE_CLIENT, PHASE_QUERY -> cache -> upstream
 *           -> PHASE_ANSWER -> send -> event
 *
 * Queries stand in slots of a pool that the worker owns. A slot's address never changes: a query
 * that must wait simply keeps its slot, and the UDP batch takes another. So a `struct query *` is
 * valid from its receipt until its reply has left, and nothing on the way touches the heap.
 * Worker process only.
 */
#ifndef BALEEN_CORE_DNS_PATH_H
#define BALEEN_CORE_DNS_PATH_H

#include "core/query.h"
#include "core/worker.h"

/* Build everything under worker->{cache,upstreams,udp,tcp}; nothing is read yet. Wants generation,
 * shm, cells, crumb, base, ring and sockets set. 0, or -errno with a sentence in `error`. */
int path_init(struct worker *w, char error[256]);

/* Begin to read from the listeners. The set that stands in shm is adopted first. */
void path_start(struct worker *w);

/* Stop reading and accepting; finish what is in flight (TCP is half-closed and read to the end);
 * then call `idle` from the loop, once. Bounded: at most `limit_ms`, then it is called anyway. */
void path_drain(struct worker *w, unsigned limit_ms, void (*idle)(struct worker *w));

void path_fini(struct worker *w);

/*
 * A ticket has come back: go on with `q` in q->phase. Calls chain_run for that phase again, which
 * begins by applying the verdict that the ticket brought, behind the plugin that waited. From the
 * event loop only, never from inside a hook.
 */
void path_resume(struct query *q);

#endif
