/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin process: the control socket and HTTP. It checks who asks, reads shared memory, and
 * forwards what changes something as structs of a fixed size. Both listening sockets are the
 * supervisor's and inherited by every generation, so a reload leaves no gap. Invariant: nothing a
 * client sends reaches the supervisor but a kind and a serial number.
 */
#include "base/clock.h"
#include "base/log.h"
#include "core/process/admin.h"
#include "core/process/sandbox.h"
#include "core/process/title.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void admin_leave_late(evutil_socket_t fd, short what, void *context)
{
	struct admin *a = context;
	(void)fd;
	(void)what;
	event_base_loopbreak(a->base);
}

/* New clients meet the next generation; those that are here get their answers first. */
static void admin_leave(void *context)
{
	struct admin *a = context;
	struct timeval limit = {.tv_sec = ADMIN_LEAVE_MS / 1000};
	if (a->leaving)
		return;
	a->leaving = true;
	evconnlistener_disable(a->control);
	if (a->http_listener)
		evconnlistener_disable(a->http_listener);
	/* HTTP answers are made at once: what is in the sockets' buffers needs only a moment. */
	if (a->connection_count == 0)
		limit = (struct timeval){.tv_usec = 100000};
	event_base_once(a->base, -1, EV_TIMEOUT, admin_leave_late, a, &limit);
}

static int admin_watch(struct admin *a, int fd, event_callback_fn call)
{
	struct event *e = event_new(a->base, fd, EV_READ | EV_PERSIST, call, a);
	return e && event_add(e, NULL) == 0 ? 0 : -1;
}

/* Reads the sets and the feeds' state; connects to nobody; writes nothing. */
static void admin_sandbox(void)
{
	const struct sandbox_path paths[] = {{.path = "."}};
	const struct sandbox s = {.role = ROLE_ADMIN, .paths = paths, .path_count = 1};
	sandbox_enter(&s);
}

_Noreturn void admin_process(const struct child *c)
{
	static struct admin a;
	const struct rlimit descriptors = {.rlim_cur = ADMIN_DESCRIPTORS,
					   .rlim_max = ADMIN_DESCRIPTORS};

	title_set("admin");
	a.child = c;
	a.generation = c->generation;
	a.shm = c->shm;
	a.started_us = clock_wall_us();
	a.next_serial = (uint64_t)a.started_us; /* a successor must not take our answers */
	a.base = child_begin(c, admin_leave, &a);
	child_on_leave(a.base, admin_leave, &a);
	(void)setrlimit(RLIMIT_NOFILE, &descriptors);
	if (admin_watch(&a, c->admin_to_template, admin_on_template) < 0 ||
	    admin_watch(&a, c->admin_to_fetcher, admin_on_fetcher) < 0 ||
	    admin_control_start(&a, c->handover->control) < 0)
		child_failed(c, "the admin process cannot start: out of memory");
	if (c->handover->admin >= 0 && admin_http_start(&a, c->handover->admin) < 0)
		child_failed(c, "the admin process cannot start: HTTP");
	const struct timeval second = {.tv_sec = 1};
	struct event *tick = event_new(a.base, -1, EV_PERSIST, admin_status_tick, &a);
	if (!tick || event_add(tick, &second) < 0)
		child_failed(c, "the admin process cannot start: out of memory");
	admin_status_tick(-1, 0, &a);
	admin_sandbox();
	child_ready(c);
	event_base_dispatch(a.base);
	_exit(0);
}
