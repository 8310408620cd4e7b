/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to upstreams over UDP: connected sockets on ports of the kernel's random choice,
 * several a server and renewed often, random ids (RFC 5452). Worker process; owns sockets and
 * attempts. Invariant: a datagram counts only if it came from the server we connected to, with the
 * id of an attempt on that very socket and that attempt's question; anything else is counted and
 * ignored.
 */
#include "core/dns/upstream_internal.h"

#include "base/clock.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DATAGRAMS_A_WAKE 32
#define ID_TRIES	 16

static unsigned bucket_of(const struct udp_socket *socket, uint16_t id)
{
	return (unsigned)(((uintptr_t)socket >> 6) + id) % ATTEMPT_BUCKETS;
}

static struct attempt *attempt_find(struct upstreams *u, const struct udp_socket *socket,
				    uint16_t id)
{
	struct attempt *a = u->by_id[bucket_of(socket, id)];

	while (a && (a->socket != socket || a->id != id))
		a = a->bucket_next;
	return a;
}

/* Take it off every list and back into the pool. */
static void attempt_drop(struct upstreams *u, struct attempt *a)
{
	struct attempt **link = &u->by_id[bucket_of(a->socket, a->id)];

	while (*link != a)
		link = &(*link)->bucket_next;
	*link = a->bucket_next;
	*(a->older ? &a->older->newer : &u->oldest) = a->newer;
	*(a->newer ? &a->newer->older : &u->newest) = a->older;
	if (a->flight) {
		link = &a->flight->attempts;
		while (*link != a)
			link = &(*link)->flight_next;
		*link = a->flight_next;
		a->server->out--;
	}
	a->socket->out--;
	a->bucket_next = u->free_attempts;
	u->free_attempts = a;
}

static struct attempt *attempt_new(struct upstreams *u, struct flight *f, struct udp_socket *socket,
				   uint16_t id, int64_t now_us)
{
	struct attempt *a = u->free_attempts;

	if (a)
		u->free_attempts = a->bucket_next;
	else
		a = malloc(sizeof(*a));
	if (!a)
		return NULL;
	unsigned bucket = bucket_of(socket, id);
	*a = (struct attempt){
		.flight = f,
		.server = socket->server,
		.socket = socket,
		.bucket_next = u->by_id[bucket],
		.older = u->newest,
		.flight_next = f->attempts,
		.sent_us = now_us,
		.id = id,
	};
	u->by_id[bucket] = a;
	*(u->newest ? &u->newest->newer : &u->oldest) = a;
	u->newest = a;
	f->attempts = a;
	socket->out++;
	socket->server->out++;
	return a;
}

/* The kernel says that nobody is there: no need to wait for any answer on this socket. */
static void socket_failed(struct udp_socket *socket)
{
	struct server *s = socket->server;
	struct upstreams *u = s->upstreams;
	struct attempt *a = u->oldest;

	server_troubled(s, true, clock_monotonic_ms());
	while (a && socket->out) {
		if (a->socket != socket) {
			a = a->newer;
			continue;
		}
		struct flight *f = a->flight;
		attempt_drop(u, a);
		if (f)
			flight_server_failed(f, s, true);
		a = u->oldest; /* what was next may be gone */
	}
}

static void datagram(struct udp_socket *socket, const uint8_t *data, size_t size)
{
	struct server *s = socket->server;
	struct upstreams *u = s->upstreams;
	struct message_header header;
	struct attempt *a = NULL;

	if (message_header(data, size, &header))
		a = attempt_find(u, socket, header.id);
	if (!a || !(header.flags & MESSAGE_QR) ||
	    (a->flight &&
	     !message_answers(data, size, a->id, a->flight->key.name, a->flight->key.length,
			      a->flight->key.type, a->flight->key.rrclass))) {
		shm_count(u->worker->cells, METRIC_UPSTREAM_REJECTED, 1);
		return;
	}
	struct flight *f = a->flight;
	bool plain = a->plain;
	int64_t now_us = clock_monotonic_us();
	server_answered(s, now_us - a->sent_us, now_us / 1000);
	attempt_drop(u, a);
	if (f)
		flight_reply(f, s, data, size, false, plain);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct udp_socket *socket = context;
	struct upstreams *u = socket->server->upstreams;

	(void)what;
	for (unsigned i = 0; i < DATAGRAMS_A_WAKE && socket->fd >= 0; i++) {
		ssize_t n = recv(fd, u->in, sizeof(u->in), MSG_DONTWAIT);
		if (n >= 0) {
			datagram(socket, u->in, (size_t)n);
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			socket_failed(socket);
		return;
	}
}

static struct udp_socket *socket_open(struct server *s, int64_t now_ms, int *error)
{
	struct sockaddr_storage to;
	socklen_t length = endpoint_to_sockaddr(&s->endpoint, &to);
	struct udp_socket *socket_ = calloc(1, sizeof(*socket_));

	*error = -ENOMEM;
	if (!socket_)
		return NULL;
	socket_->server = s;
	socket_->opened_ms = now_ms;
	socket_->fd = socket(to.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (socket_->fd < 0 || connect(socket_->fd, (struct sockaddr *)&to, length) < 0) {
		*error = -errno;
		if (socket_->fd >= 0)
			close(socket_->fd);
		free(socket_);
		return NULL;
	}
	event_assign(&socket_->event, s->upstreams->worker->base, socket_->fd, EV_READ | EV_PERSIST,
		     on_readable, socket_);
	event_add(&socket_->event, NULL);
	return socket_;
}

static void socket_free(struct udp_socket *socket)
{
	event_del(&socket->event);
	close(socket->fd);
	free(socket);
}

/* One of the server's sockets by chance; a new one, and so a new port, where one has served enough.
 */
static struct udp_socket *socket_pick(struct server *s, int64_t now_ms, int *error)
{
	struct udp_socket **at = &s->sockets[hash_random() % SOCKETS_SERVER];

	if (*at && ((*at)->uses >= SOCKET_USES_MAX || now_ms - (*at)->opened_ms > SOCKET_AGE_MS)) {
		(*at)->next = s->retired;
		s->retired = *at;
		*at = NULL;
	}
	if (!*at)
		*at = socket_open(s, now_ms, error);
	return *at;
}

int udp_send(struct flight *f, struct server *s, int64_t now_us)
{
	struct upstreams *u = f->upstreams;
	uint8_t query[QUERY_MAX];
	int error = 0;
	struct udp_socket *socket = socket_pick(s, now_us / 1000, &error);
	uint16_t id = (uint16_t)hash_random();

	if (!socket)
		return error;
	for (unsigned i = 0; attempt_find(u, socket, id); i++) {
		if (i == ID_TRIES)
			return -EAGAIN;
		id = (uint16_t)hash_random();
	}
	bool plain = f->plain[s->index] || now_us / 1000 < s->plain_until_ms;
	size_t size = flight_encode(f, id, plain, query);
	ssize_t n = send(socket->fd, query, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* The error may be an earlier datagram's: it is told once, so ask again. */
	if (n < 0 && errno == ECONNREFUSED)
		n = send(socket->fd, query, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != ENOBUFS) {
		error = -errno;
		server_troubled(s, true, now_us / 1000);
		return error;
	}
	struct attempt *a = attempt_new(u, f, socket, id, now_us);
	if (!a)
		return -ENOMEM;
	a->plain = plain;
	socket->uses++;
	shm_count(u->worker->cells, METRIC_UPSTREAM_QUERIES, 1);
	return 0;
}

void udp_forget(struct flight *f)
{
	for (struct attempt *a = f->attempts; a; a = a->flight_next) {
		a->flight = NULL;
		a->server->out--;
	}
	f->attempts = NULL;
}

void udp_mark_late(struct flight *f, int64_t now_us)
{
	for (struct attempt *a = f->attempts; a; a = a->flight_next) {
		if (a->late || now_us - a->sent_us < server_wait_us(a->server))
			continue;
		a->late = true;
		server_troubled(a->server, false, now_us / 1000);
	}
}

void udp_tidy(struct upstreams *u, int64_t now_us)
{
	while (u->oldest && now_us - u->oldest->sent_us > u->attempt_age_us) {
		struct attempt *a = u->oldest;
		if (!a->late)
			server_troubled(a->server, false, now_us / 1000);
		attempt_drop(u, a);
	}
	for (size_t g = 0; g < u->group_count; g++)
		for (size_t i = 0; i < u->groups[g].server_count; i++) {
			struct udp_socket **at = &u->groups[g].servers[i].retired;
			while (*at) {
				struct udp_socket *socket = *at;
				if (socket->out) {
					at = &socket->next;
					continue;
				}
				*at = socket->next;
				socket_free(socket);
			}
		}
}

void udp_close(struct server *s)
{
	for (unsigned i = 0; i < SOCKETS_SERVER; i++)
		if (s->sockets[i])
			socket_free(s->sockets[i]);
	while (s->retired) {
		struct udp_socket *socket = s->retired;
		s->retired = socket->next;
		socket_free(socket);
	}
}
