/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipe that says that the supervisor lives: it holds the only writing end and never writes, so
 * reading gives an end exactly when it is gone. Every other process then leaves within two seconds.
 */
#ifndef BALEEN_CORE_PROCESS_LIFELINE_H
#define BALEEN_CORE_PROCESS_LIFELINE_H

#include <event2/event.h>

/* Watch `fd` in this loop; when the supervisor is gone call `leave` (NULL: _exit at once), and
 * _exit in any case when it has not worked after LIFELINE_LIMIT_MS. 0 or -ENOMEM. */
#define LIFELINE_LIMIT_MS 1500
typedef void lifeline_leave(void *context);
int lifeline_watch(int fd, struct event_base *base, lifeline_leave *leave, void *context);

#endif
