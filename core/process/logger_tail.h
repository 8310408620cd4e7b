/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subscribers of `log tail`. Admin checks who asks and passes the client's socket with its filter;
 * from then on the logger writes to it. Bounded in number; a reader that is too slow loses lines,
 * and is told how many, and one that does not read at all is dropped.
 */
#ifndef BALEEN_CORE_PROCESS_LOGGER_TAIL_H
#define BALEEN_CORE_PROCESS_LOGGER_TAIL_H

#include "baleen/plugin.h"

#include <event2/event.h>
#include <stddef.h>

#define TAIL_MAX	 8
#define TAIL_BUFFER_MAX	 (256 << 10) /* octets waiting for one reader */
#define TAIL_PATIENCE_MS 10000	     /* with a full buffer and no progress */

struct tail;

/* Watch `link` for LINK_TAIL messages. 0 or -ENOMEM. */
int tail_new(struct event_base *base, int link, struct tail **out);
void tail_events(struct tail *t, const struct baleen_event *events, size_t count);

#endif
