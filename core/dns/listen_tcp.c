/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP in and out. Worker process; owns the connections, whose memory is kept and used again, so
 * that a late answer may look at its connection and see by the serial number that it is another
 * one. Invariants: a connection lives by whole queries, not by octets (one octet every few seconds
 * does not keep it open), and one that does not read its answers is not read from.
 */
#include "core/dns/listen_tcp.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "core/dns/path_internal.h"
#include "core/dns/set_adopt.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS_A_WAKE	32
#define ACCEPT_PAUSE_MS 100 /* when there are no descriptors left */
#define CLIENT_CELLS	4096
#define LINGER_MS	1000 /* for the peer to close after we have */

enum tcp_state {
	TCP_OPEN,
	TCP_PEER_DONE, /* it has half-closed: answer what it asked, then close */
	TCP_LINGER,    /* we have half-closed: read to its end */
};

struct tcp_connection {
	struct tcp_listeners *listeners;
	struct tcp_connection *next; /* of the free ones */
	struct tcp_connection *list_next, **list_back;
	struct bufferevent *stream; /* NULL: free */
	uint64_t serial;
	struct query_origin origin;
	struct event timer;
	enum tcp_state state;
	unsigned in_flight;
	bool paused;   /* not read from: too much is in flight or unsent */
	size_t unsent; /* when the timer last looked */
	uint16_t cell;
};

struct tcp_acceptor {
	struct tcp_listeners *listeners;
	struct event event;
	struct event pause;
	uint8_t index;
	int fd;
};

struct tcp_listeners {
	struct worker *worker;
	struct tcp_acceptor *acceptors;
	size_t count;
	bool draining;
	struct tcp_connection *open;
	struct tcp_connection *free;
	size_t connections;
	uint64_t serial;
	uint16_t by_client[CLIENT_CELLS];
	struct log_limit accept_log;
	uint8_t message[MESSAGE_SIZE_MAX];
};

static void read_queries(struct tcp_connection *c);

static void connection_close(struct tcp_connection *c)
{
	struct tcp_listeners *l = c->listeners;

	bufferevent_free(c->stream);
	c->stream = NULL;
	c->serial = 0;
	event_del(&c->timer);
	*c->list_back = c->list_next;
	if (c->list_next)
		c->list_next->list_back = c->list_back;
	l->by_client[c->cell]--;
	l->connections--;
	c->next = l->free;
	l->free = c;
}

static void arm(struct tcp_connection *c, unsigned ms)
{
	struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	evtimer_add(&c->timer, &t);
}

static size_t unsent(const struct tcp_connection *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->stream));
}

static bool has_message(const struct tcp_connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->stream);
	uint8_t prefix[2];

	return evbuffer_copyout(in, prefix, 2) == 2 &&
	       evbuffer_get_length(in) >= 2 + ((size_t)prefix[0] << 8 | prefix[1]);
}

/* Nothing in flight, nothing unsent, nothing to be read: may the connection end? */
static void maybe_end(struct tcp_connection *c)
{
	if (c->in_flight || unsent(c) || (c->state != TCP_LINGER && has_message(c)))
		return;
	if (c->state == TCP_PEER_DONE) {
		connection_close(c);
	} else if (c->state == TCP_OPEN && c->listeners->draining &&
		   !evbuffer_get_length(bufferevent_get_input(c->stream))) {
		/* Closing at once would reset it, should another query be on its way. */
		c->state = TCP_LINGER;
		shutdown(bufferevent_getfd(c->stream), SHUT_WR);
		arm(c, LINGER_MS);
	}
}

/* Read, or wait until there is less to do. */
static void regulate(struct tcp_connection *c)
{
	bool full = c->in_flight >= TCP_IN_FLIGHT_MAX || unsent(c) > TCP_OUTPUT_MAX;

	if (full == c->paused)
		return;
	c->paused = full;
	if (c->state == TCP_PEER_DONE)
		return;
	if (full)
		bufferevent_disable(c->stream, EV_READ);
	else
		bufferevent_enable(c->stream, EV_READ);
}

static struct tcp_connection *connection_of(const struct query_origin *origin)
{
	struct tcp_connection *c = origin->connection;

	return c->stream && c->serial == origin->connection_serial ? c : NULL;
}

/* One query less in flight; queries that were read but had to wait may go on. */
static void answered(struct tcp_connection *c)
{
	bool was_paused = c->paused;

	c->in_flight--;
	regulate(c);
	if (was_paused && !c->paused)
		bufferevent_trigger(c->stream, EV_READ, BEV_TRIG_DEFER_CALLBACKS);
	maybe_end(c);
}

void tcp_reply_send(struct tcp_listeners *l, const struct query_origin *origin, const uint8_t *data,
		    size_t size)
{
	struct tcp_connection *c = connection_of(origin);
	uint8_t prefix[2] = {(uint8_t)(size >> 8), (uint8_t)size};

	(void)l;
	if (!c)
		return;
	if (c->state != TCP_LINGER) {
		bufferevent_write(c->stream, prefix, 2);
		bufferevent_write(c->stream, data, size);
	}
	answered(c);
}

void tcp_reply_none(struct tcp_listeners *l, const struct query_origin *origin)
{
	struct tcp_connection *c = connection_of(origin);

	(void)l;
	if (c)
		answered(c);
}

/* A whole message. False: the connection is gone. */
static bool message_in(struct tcp_connection *c, size_t size)
{
	struct tcp_listeners *l = c->listeners;
	struct path *p = l->worker->path;
	uint64_t serial = c->serial;

	/* A response, or less than a header: whoever sends that does not want an answer. */
	if (size < MESSAGE_HEADER_SIZE || l->message[2] & MESSAGE_QR >> 8) {
		path_count(p, METRIC_IGNORED);
		connection_close(c);
		return false;
	}
	c->in_flight++;
	arm(c, TCP_IDLE_MS);
	path_tick(p);
	set_adopt(l->worker);
	struct path_query *pq = path_begin(p, l->message, size, &c->origin);
	if (pq)
		path_continue(pq);
	return c->stream && c->serial == serial;
}

static void read_queries(struct tcp_connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->stream);
	uint8_t prefix[2];

	if (c->state == TCP_LINGER) {
		evbuffer_drain(in, evbuffer_get_length(in));
		return;
	}
	while (!c->paused && evbuffer_copyout(in, prefix, 2) == 2) {
		size_t size = (size_t)prefix[0] << 8 | prefix[1];
		if (evbuffer_get_length(in) < 2 + size)
			break;
		evbuffer_drain(in, 2);
		evbuffer_remove(in, c->listeners->message, size);
		if (!message_in(c, size))
			return;
		regulate(c);
	}
	maybe_end(c);
}

static void on_read(struct bufferevent *stream, void *context)
{
	(void)stream;
	read_queries(context);
}

/* The output is empty. */
static void on_written(struct bufferevent *stream, void *context)
{
	struct tcp_connection *c = context;
	bool was_paused = c->paused;

	(void)stream;
	regulate(c);
	if (was_paused && !c->paused)
		read_queries(c);
	else
		maybe_end(c);
}

static void on_event(struct bufferevent *stream, short what, void *context)
{
	struct tcp_connection *c = context;

	(void)stream;
	if (what & BEV_EVENT_EOF && c->state == TCP_OPEN && (c->in_flight || unsent(c))) {
		c->state = TCP_PEER_DONE;
		return;
	}
	connection_close(c);
}

/* No whole query for a while: over, unless answers are still to come or being taken. */
static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct tcp_connection *c = context;
	size_t now = unsent(c);
	bool stalled = now && c->unsent && now >= c->unsent;
	bool idle = !now && !c->in_flight;

	(void)fd;
	(void)what;
	if (c->state == TCP_LINGER || stalled || idle) {
		connection_close(c);
		return;
	}
	c->unsent = now;
	arm(c, TCP_IDLE_MS);
}

static struct tcp_connection *connection_new(struct tcp_listeners *l)
{
	struct tcp_connection *c = l->free;

	if (c)
		l->free = c->next;
	else
		c = calloc(1, sizeof(*c));
	return c;
}

static void connection_open(struct tcp_acceptor *a, int fd, const struct sockaddr_storage *from,
			    uint16_t cell)
{
	struct tcp_listeners *l = a->listeners;
	struct tcp_connection *c = connection_new(l);
	struct sockaddr_storage to;
	socklen_t length = sizeof(to);
	struct endpoint local = {.port = 0};
	int one = 1;

	if (!c) {
		close(fd);
		return;
	}
	memset(c, 0, sizeof(*c));
	c->stream = bufferevent_socket_new(l->worker->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!c->stream) {
		close(fd);
		c->next = l->free;
		l->free = c;
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (getsockname(fd, (struct sockaddr *)&to, &length) == 0)
		endpoint_from_sockaddr((struct sockaddr *)&to, &local);
	c->listeners = l;
	c->serial = ++l->serial;
	c->cell = cell;
	c->origin = (struct query_origin){
		.transport = BALEEN_TCP,
		.listener = a->index,
		.local = local.addr,
		.connection = c,
		.connection_serial = c->serial,
	};
	endpoint_from_sockaddr((const struct sockaddr *)from, &c->origin.client);
	c->list_next = l->open;
	c->list_back = &l->open;
	if (l->open)
		l->open->list_back = &c->list_next;
	l->open = c;
	l->by_client[cell]++;
	l->connections++;
	event_assign(&c->timer, l->worker->base, -1, 0, on_timer, c);
	arm(c, TCP_IDLE_MS);
	bufferevent_setcb(c->stream, on_read, on_written, on_event, c);
	/* Room for a whole message, and a bound on what is read ahead of it. */
	bufferevent_setwatermark(c->stream, EV_READ, 0, MESSAGE_SIZE_MAX + 2);
	bufferevent_enable(c->stream, EV_READ | EV_WRITE);
	path_count(l->worker->path, METRIC_TCP_ACCEPTED);
}

static void pause_accepting(struct tcp_acceptor *a)
{
	struct timeval t = {.tv_usec = ACCEPT_PAUSE_MS * 1000};
	uint64_t held;

	/* The listener stays readable, so without a pause the loop would spin. */
	event_del(&a->event);
	evtimer_add(&a->pause, &t);
	if (log_limit(&a->listeners->accept_log, clock_monotonic_ms(), &held))
		log_warn("TCP accept: %s (%llu more times)", strerror(errno),
			 (unsigned long long)held);
}

static void on_pause_over(evutil_socket_t fd, short what, void *context)
{
	struct tcp_acceptor *a = context;

	(void)fd;
	(void)what;
	if (!a->listeners->draining)
		event_add(&a->event, NULL);
}

static void on_acceptable(evutil_socket_t fd, short what, void *context)
{
	struct tcp_acceptor *a = context;
	struct tcp_listeners *l = a->listeners;

	(void)what;
	for (unsigned i = 0; i < ACCEPTS_A_WAKE; i++) {
		struct sockaddr_storage from;
		socklen_t length = sizeof(from);
		struct endpoint client;
		int conn = accept4(fd, (struct sockaddr *)&from, &length,
				   SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (conn < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			    errno == ENOMEM)
				pause_accepting(a);
			return; /* EAGAIN: another worker was quicker; ECONNABORTED: gone already */
		}
		endpoint_from_sockaddr((struct sockaddr *)&from, &client);
		uint16_t cell = (uint16_t)(hash_bytes(0, client.addr.octets, 16) % CLIENT_CELLS);
		if (l->connections >= TCP_CONNECTIONS_MAX || l->by_client[cell] >= TCP_CLIENT_MAX) {
			path_count(l->worker->path, METRIC_TCP_REFUSED);
			close(conn);
			continue;
		}
		connection_open(a, conn, &from, cell);
	}
}

int tcp_listeners_new(struct worker *w, struct tcp_listeners **out)
{
	struct tcp_listeners *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->worker = w;
	l->count = w->generation->config.listener_count;
	l->acceptors = calloc(l->count, sizeof(*l->acceptors));
	if (!l->acceptors) {
		free(l);
		return -ENOMEM;
	}
	for (size_t i = 0; i < l->count; i++) {
		struct tcp_acceptor *a = &l->acceptors[i];
		a->listeners = l;
		a->index = (uint8_t)i;
		a->fd = w->sockets[i].tcp;
		event_assign(&a->event, w->base, a->fd, EV_READ | EV_PERSIST, on_acceptable, a);
		event_assign(&a->pause, w->base, -1, 0, on_pause_over, a);
	}
	*out = l;
	return 0;
}

static void stop_accepting(struct tcp_listeners *l)
{
	for (size_t i = 0; i < l->count; i++) {
		event_del(&l->acceptors[i].event);
		event_del(&l->acceptors[i].pause);
	}
}

void tcp_listeners_free(struct tcp_listeners *l)
{
	if (!l)
		return;
	stop_accepting(l);
	while (l->open)
		connection_close(l->open);
	while (l->free) {
		struct tcp_connection *c = l->free;
		l->free = c->next;
		free(c);
	}
	free(l->acceptors);
	free(l);
}

void tcp_listeners_start(struct tcp_listeners *l)
{
	for (size_t i = 0; i < l->count; i++)
		event_add(&l->acceptors[i].event, NULL);
}

void tcp_listeners_drain(struct tcp_listeners *l)
{
	l->draining = true;
	stop_accepting(l);
	for (struct tcp_connection *c = l->open, *next; c; c = next) {
		next = c->list_next;
		maybe_end(c);
	}
}

bool tcp_listeners_idle(const struct tcp_listeners *l)
{
	return !l->open;
}
