/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching the supervisor's pipe; see the header. One per process. Invariant: once the end was
 * seen the process is gone after LIFELINE_LIMIT_MS, whatever its own loop does: SIGALRM ends it.
 */
#include "core/process/lifeline.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static lifeline_leave *lifeline_call;
static void *lifeline_context;
static struct event *lifeline_event;

static void lifeline_end(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	(void)context;
	event_del(lifeline_event);
	if (!lifeline_call)
		_exit(0);
	/* The default action of SIGALRM ends the process, even one that hangs in a hook. */
	struct itimerval limit = {.it_value = {.tv_sec = LIFELINE_LIMIT_MS / 1000,
					       .tv_usec = LIFELINE_LIMIT_MS % 1000 * 1000}};
	signal(SIGALRM, SIG_DFL);
	setitimer(ITIMER_REAL, &limit, NULL);
	lifeline_call(lifeline_context);
}

int lifeline_watch(int fd, struct event_base *base, lifeline_leave *leave, void *context)
{
	lifeline_call = leave;
	lifeline_context = context;
	lifeline_event = event_new(base, fd, EV_READ | EV_PERSIST, lifeline_end, NULL);
	if (!lifeline_event || event_add(lifeline_event, NULL) < 0)
		return -ENOMEM;
	return 0;
}
