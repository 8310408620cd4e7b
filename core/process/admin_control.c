/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket's connections: one JSON line in, one JSON line out. Who asks is what the
 * kernel says (SO_PEERCRED): root, the daemon's user and whoever started the daemon may change
 * things; others who can open the socket (its group) may look. Bounded in number, size and time.
 */
#include "base/clock.h"
#include "base/log.h"
#include "core/process/admin.h"

#include <errno.h>
#include <event2/util.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/process/control.h"

void admin_close(struct admin_connection *c)
{
	struct admin *a = c->admin;
	if (c->explain_pid > 0)
		kill(c->explain_pid, SIGKILL);
	if (c->explain) {
		int fd = event_get_fd(c->explain);
		event_free(c->explain);
		close(fd);
	}
	if (c->explain_text)
		evbuffer_free(c->explain_text);
	if (c->timeout)
		event_free(c->timeout);
	if (c->stream)
		bufferevent_free(c->stream);
	memset(c, 0, sizeof(*c));
	a->connection_count--;
	if (a->leaving && a->connection_count == 0)
		event_base_loopbreak(a->base);
}

struct admin_connection *admin_waiting(struct admin *a, uint64_t serial)
{
	for (unsigned i = 0; i < ADMIN_CONNECTIONS_MAX; i++)
		if (a->connections[i].stream && a->connections[i].serial == serial)
			return &a->connections[i];
	return NULL;
}

int admin_detach(struct admin_connection *c)
{
	int fd = dup(bufferevent_getfd(c->stream));
	admin_close(c);
	return fd;
}

static void control_written(struct bufferevent *stream, void *context)
{
	struct admin_connection *c = context;
	if (c->answered && evbuffer_get_length(bufferevent_get_output(stream)) == 0)
		admin_close(c);
}

void admin_reply(struct admin_connection *c, cJSON *reply)
{
	char *text = reply ? cJSON_PrintUnformatted(reply) : NULL;
	static const char failed[] = "{\"ok\":false,\"error\":\"out of memory\"}";
	const char *line = text ? text : failed;
	const struct timeval limit = {.tv_sec = ADMIN_REQUEST_S};

	cJSON_Delete(reply);
	c->answered = true;
	c->serial = 0;
	bufferevent_write(c->stream, line, strlen(line));
	bufferevent_write(c->stream, "\n", 1);
	bufferevent_enable(c->stream, EV_WRITE);
	event_add(c->timeout, &limit);
	cJSON_free(text);
}

void admin_reply_error(struct admin_connection *c, const char *format, ...)
{
	char text[LINK_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	cJSON *reply = cJSON_CreateObject();
	cJSON_AddBoolToObject(reply, "ok", false);
	cJSON_AddStringToObject(reply, "error", text);
	admin_reply(c, reply);
}

static void control_read(struct bufferevent *stream, void *context)
{
	struct admin_connection *c = context;
	struct evbuffer *in = bufferevent_get_input(stream);
	const struct timeval limit = {.tv_sec = ADMIN_ANSWER_S};
	size_t length;

	char *line = evbuffer_readln(in, &length, EVBUFFER_EOL_LF);
	if (!line) {
		if (evbuffer_get_length(in) > CONTROL_REQUEST_MAX)
			admin_close(c);
		return;
	}
	bufferevent_disable(stream, EV_READ);
	c->asked = true;
	event_add(c->timeout, &limit);
	cJSON *request = cJSON_ParseWithLength(line, length);
	free(line);
	if (cJSON_IsObject(request))
		admin_command(c, request);
	else
		admin_reply_error(c, "the request is not a JSON object");
	cJSON_Delete(request);
}

static void control_event(struct bufferevent *stream, short what, void *context)
{
	(void)stream;
	(void)what;
	admin_close(context);
}

static void control_timeout(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	admin_close(context);
}

static bool control_may_change(const struct admin *a, int fd, uid_t *uid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	*uid = (uid_t)-1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return false;
	*uid = peer.uid;
	return peer.uid == 0 || peer.uid == geteuid() ||
	       peer.uid == a->child->handover->supervisor_uid;
}

/* All places are taken: whoever has sat there longest and asked nothing must go. */
static struct admin_connection *control_oldest_idle(struct admin *a)
{
	struct admin_connection *oldest = NULL;
	for (unsigned i = 0; i < ADMIN_CONNECTIONS_MAX; i++) {
		struct admin_connection *c = &a->connections[i];
		if (!c->asked && (!oldest || c->number < oldest->number))
			oldest = c;
	}
	return oldest;
}

static void control_accept(struct evconnlistener *listener, evutil_socket_t fd,
			   struct sockaddr *address, int length, void *context)
{
	const struct timeval limit = {.tv_sec = ADMIN_REQUEST_S};
	struct admin *a = context;
	struct admin_connection *c = NULL;
	(void)listener;
	(void)address;
	(void)length;

	for (unsigned i = 0; !c && i < ADMIN_CONNECTIONS_MAX; i++)
		if (!a->connections[i].admin)
			c = &a->connections[i];
	if (!c) {
		c = control_oldest_idle(a);
		if (!c) {
			close(fd);
			return;
		}
		admin_close(c);
	}
	c->admin = a;
	c->number = ++a->accepted;
	a->connection_count++;
	c->may_change = control_may_change(a, fd, &c->uid);
	c->stream = bufferevent_socket_new(a->base, fd, BEV_OPT_CLOSE_ON_FREE);
	c->timeout = evtimer_new(a->base, control_timeout, c);
	if (!c->stream || !c->timeout) {
		if (!c->stream)
			close(fd);
		admin_close(c);
		return;
	}
	bufferevent_setwatermark(c->stream, EV_READ, 0, CONTROL_REQUEST_MAX + 1);
	bufferevent_setcb(c->stream, control_read, control_written, control_event, c);
	bufferevent_enable(c->stream, EV_READ | EV_WRITE);
	event_add(c->timeout, &limit);
}

void admin_accept_again(evutil_socket_t fd, short what, void *context)
{
	struct admin *a = context;
	(void)fd;
	(void)what;
	if (a->leaving)
		return;
	evconnlistener_enable(a->control);
	if (a->http_listener)
		evconnlistener_enable(a->http_listener);
}

/* Out of descriptors: wait a second instead of trying, and saying so, without end. */
void admin_accept_failed(struct evconnlistener *listener, void *context)
{
	const struct timeval pause = {.tv_sec = 1};
	struct admin *a = context;
	static struct log_limit limit;
	uint64_t held;

	if (log_limit(&limit, clock_monotonic_ms(), &held))
		log_warn("connections cannot be accepted: %s (%llu more times)", strerror(errno),
			 (unsigned long long)held);
	evconnlistener_disable(listener);
	event_base_once(a->base, -1, EV_TIMEOUT, admin_accept_again, a, &pause);
}

int admin_control_start(struct admin *a, int fd)
{
	a->control = evconnlistener_new(a->base, control_accept, a, LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!a->control)
		return -ENOMEM;
	evconnlistener_set_error_cb(a->control, admin_accept_failed);
	return 0;
}
