/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin process's state, shared by its files: admin_process.c (start, drain), admin_control.c
 * (the control socket), admin_commands.c (what can be asked), admin_status.c (status and stats as
 * JSON), admin_explain.c (throw-away children), admin_http.c and admin_metrics.c. Nobody else
 * includes this.
 */
#ifndef BALEEN_CORE_PROCESS_ADMIN_H
#define BALEEN_CORE_PROCESS_ADMIN_H

#include "core/generation.h"
#include "core/process/child.h"
#include "core/process/link.h"

#include <cjson/cJSON.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ADMIN_CONNECTIONS_MAX 32
#define ADMIN_REQUEST_S	      10  /* to send the request, and to take the reply */
#define ADMIN_ANSWER_S	      130 /* for what others have to do first */
#define ADMIN_LEAVE_MS	      2000
#define ADMIN_DESCRIPTORS     1024

struct admin;

struct admin_connection {
	struct admin *admin;
	struct bufferevent *stream; /* NULL: free */
	uid_t uid;
	bool may_change; /* root, the daemon's user, whoever started it */
	bool answered;
	bool asked;	 /* a request came */
	uint64_t number; /* ascends with each that is accepted */
	uint64_t serial; /* of a request that others answer; 0: none */
	struct event *timeout;
	struct event *explain; /* output of a throw-away child */
	struct evbuffer *explain_text;
	pid_t explain_pid;
};

struct admin {
	const struct child *child;
	struct generation *generation;
	struct shm *shm;
	struct event_base *base;
	struct evconnlistener *control;
	struct evhttp *http;
	struct evconnlistener *http_listener;
	struct admin_connection connections[ADMIN_CONNECTIONS_MAX];
	unsigned connection_count;
	uint64_t accepted;
	uint64_t next_serial;
	struct { /* sinks by chain index: what they could not write, and when that last grew */
		uint64_t lost;
		int64_t lost_ms;
	} sinks[CONFIG_CHAIN_MAX];
	int64_t started_us;
	bool leaving;
};

/* ---- admin_control.c ---- */
/* Out of descriptors; and when the pause after that is over. */
void admin_accept_again(evutil_socket_t fd, short what, void *admin);
void admin_accept_failed(struct evconnlistener *listener, void *context);
int admin_control_start(struct admin *a, int fd);
/* Send the reply (and delete it), then close. */
void admin_reply(struct admin_connection *c, cJSON *reply);
void admin_reply_error(struct admin_connection *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
struct admin_connection *admin_waiting(struct admin *a, uint64_t serial);
/* Take the socket away from the connection: it is the logger's from now on. The descriptor. */
int admin_detach(struct admin_connection *c);
void admin_close(struct admin_connection *c);

/* ---- admin_commands.c ---- */
void admin_command(struct admin_connection *c, const cJSON *request);
/* Answers of template and fetcher. */
void admin_on_template(evutil_socket_t fd, short what, void *admin);
void admin_on_fetcher(evutil_socket_t fd, short what, void *admin);

/* ---- admin_status.c ---- */
cJSON *admin_status(struct admin *a);
cJSON *admin_stats(struct admin *a);
/* Look at what the sinks lost; every second. */
void admin_status_tick(evutil_socket_t fd, short what, void *admin);
/* Is everything in place to answer queries? Why not, in `text`. */
bool admin_is_ready(struct admin *a, char *text, size_t size);

/* ---- admin_explain.c ---- */
void admin_explain(struct admin_connection *c, const cJSON *request);

/* ---- admin_http.c, admin_metrics.c ---- */
int admin_http_start(struct admin *a, int fd);
void admin_metrics(struct admin *a, struct evbuffer *out);

#endif
