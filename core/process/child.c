/* SPDX-License-Identifier: Apache-2.0 */
/* What a template's children have in common; see the header. Each of them. */
#include "core/process/child.h"

#include "base/log.h"
#include "core/process/lifeline.h"

#include <event2/util.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void child_note_send(const struct child *c, const struct child_note *note)
{
	/* The pipe is never full: a child sends one note in its life. */
	ssize_t n = write(c->note, note, sizeof(*note));
	if (n != (ssize_t)sizeof(*note))
		_exit(1);
}

void child_ready(const struct child *c)
{
	struct child_note note = {.kind = CHILD_READY, .pid = (uint32_t)getpid()};
	child_note_send(c, &note);
}

_Noreturn void child_failed(const struct child *c, const char *format, ...)
{
	struct child_note note = {.kind = CHILD_FAILED, .pid = (uint32_t)getpid()};
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(note.text, sizeof(note.text), format, arguments);
	va_end(arguments);
	log_error("%s", note.text);
	child_note_send(c, &note);
	_exit(1);
}

/* libevent's own words (evdns tells of servers that come and go) look like ours. */
static void child_event_log(int severity, const char *text)
{
	if (severity == EVENT_LOG_ERR)
		log_error("%s", text);
	else if (severity == EVENT_LOG_WARN)
		log_warn("%s", text);
	else if (severity == EVENT_LOG_MSG)
		log_info("%s", text);
}

struct event_base *child_begin(const struct child *c, void (*leave)(void *context), void *context)
{
	static const int defaults[] = {CHILD_LEAVE, SIGCHLD, SIGUSR2, SIGALRM};
	sigset_t none;

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		signal(defaults[i], SIG_DFL);
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);

	event_set_log_callback(child_event_log);
	struct event_base *base = event_base_new();
	if (!base || lifeline_watch(c->handover->lifeline, base, leave, context) < 0)
		child_failed(c, "cannot make an event loop");
	return base;
}

struct child_leave {
	void (*leave)(void *context);
	void *context;
};

static void child_told(evutil_socket_t fd, short what, void *context)
{
	struct child_leave *t = context;
	(void)fd;
	(void)what;
	t->leave(t->context);
}

void child_on_leave(struct event_base *base, void (*leave)(void *context), void *context)
{
	/* Both live as long as the process. */
	static struct child_leave t;
	t.leave = leave;
	t.context = context;
	struct event *e = evsignal_new(base, CHILD_LEAVE, child_told, &t);
	if (!e || event_add(e, NULL) < 0)
		abort();
}
