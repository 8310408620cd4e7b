/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to upstreams over TCP, for answers that did not fit a datagram (RFC 7766): one
 * connection a server, kept while it is in use, questions pipelined, answers in any order. Worker
 * process. Invariant: a peer that closes an idle connection costs nobody anything: what was just
 * written to it is sent once more on a new one.
 */
#include "core/dns/upstream_internal.h"

#include "base/clock.h"
#include "base/hash.h"

#include <errno.h>
#include <event2/buffer.h>
#include <string.h>

#define IDLE_S	  5 /* below what servers usually allow (10 s and more) */
#define CONNECT_S 2

static void on_read(struct bufferevent *stream, void *context);
static void on_event(struct bufferevent *stream, short what, void *context);

static int link_open(struct tcp_link *link)
{
	struct server *s = link->server;
	struct sockaddr_storage to;
	socklen_t length = endpoint_to_sockaddr(&s->endpoint, &to);
	struct timeval idle = {.tv_sec = IDLE_S};
	struct timeval connect = {.tv_sec = CONNECT_S};

	link->stream = bufferevent_socket_new(s->upstreams->worker->base, -1,
					      BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!link->stream)
		return -ENOMEM;
	link->reused = false;
	bufferevent_setcb(link->stream, on_read, NULL, on_event, link);
	bufferevent_set_timeouts(link->stream, &idle, &connect);
	bufferevent_enable(link->stream, EV_READ | EV_WRITE);
	if (bufferevent_socket_connect(link->stream, (struct sockaddr *)&to, (int)length) < 0) {
		bufferevent_free(link->stream);
		link->stream = NULL;
		return -EHOSTUNREACH;
	}
	return 0;
}

static bool id_taken(const struct tcp_link *link, uint16_t id)
{
	for (unsigned i = 0; i < link->count; i++)
		if (link->pending[i].id == id)
			return true;
	return false;
}

static int link_ask(struct tcp_link *link, struct flight *f, bool retried)
{
	uint8_t query[2 + QUERY_MAX];
	uint16_t id;
	int error;

	if (link->count == TCP_PENDING_MAX)
		return -ENOBUFS;
	if (!link->stream && (error = link_open(link)) < 0)
		return error;
	do
		id = (uint16_t)hash_random();
	while (id_taken(link, id));
	bool plain = f->plain[link->server->index] ||
		     clock_monotonic_ms() < link->server->plain_until_ms;
	size_t size = flight_encode(f, id, plain, query + 2);
	query[0] = (uint8_t)(size >> 8);
	query[1] = (uint8_t)size;
	if (bufferevent_write(link->stream, query, size + 2) < 0)
		return -ENOMEM;
	link->pending[link->count++] =
		(struct tcp_pending){.flight = f, .id = id, .retried = retried};
	return 0;
}

int tcp_send(struct flight *f, struct server *s)
{
	return link_ask(&s->tcp, f, false);
}

void tcp_forget(struct flight *f)
{
	for (size_t i = 0; i < f->group->server_count; i++) {
		struct tcp_link *link = &f->group->servers[i].tcp;
		if (!f->over_tcp[i])
			continue;
		for (unsigned k = 0; k < link->count; k++)
			if (link->pending[k].flight == f)
				link->pending[k--] = link->pending[--link->count];
	}
}

static void message_in(struct tcp_link *link, const uint8_t *data, size_t size)
{
	struct upstreams *u = link->server->upstreams;
	struct message_header header;

	if (message_header(data, size, &header))
		for (unsigned i = 0; i < link->count; i++) {
			struct flight *f = link->pending[i].flight;
			if (link->pending[i].id != header.id ||
			    !message_answers(data, size, header.id, f->key.name, f->key.length,
					     f->key.type, f->key.rrclass))
				continue;
			link->pending[i] = link->pending[--link->count];
			link->reused = true;
			flight_reply(f, link->server, data, size, true,
				     f->plain[link->server->index]);
			return;
		}
	/* Its question may have ended meanwhile; or it is not ours at all. */
	shm_count(u->worker->cells, METRIC_UPSTREAM_REJECTED, 1);
}

static void on_read(struct bufferevent *stream, void *context)
{
	struct tcp_link *link = context;
	struct upstreams *u = link->server->upstreams;
	struct evbuffer *in = bufferevent_get_input(stream);
	uint8_t prefix[2];

	while (evbuffer_copyout(in, prefix, 2) == 2) {
		size_t size = (size_t)prefix[0] << 8 | prefix[1];
		if (evbuffer_get_length(in) < 2 + size)
			return;
		evbuffer_drain(in, 2);
		evbuffer_remove(in, u->in, size);
		message_in(link, u->in, size);
	}
}

/* Closed, broken or silent. */
static void on_event(struct bufferevent *stream, short what, void *context)
{
	struct tcp_link *link = context;
	struct server *s = link->server;
	struct tcp_pending pending[TCP_PENDING_MAX];
	unsigned count = link->count;
	bool reused = link->reused;

	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)))
		return;
	memcpy(pending, link->pending, count * sizeof(pending[0]));
	link->count = 0;
	link->stream = NULL;
	bufferevent_free(stream);
	if (count && !reused)
		server_troubled(s, true, clock_monotonic_ms());
	for (unsigned i = 0; i < count; i++)
		if (!reused || pending[i].retried || link_ask(link, pending[i].flight, true) < 0)
			flight_server_failed(pending[i].flight, s, true);
}

void tcp_close(struct server *s)
{
	if (s->tcp.stream)
		bufferevent_free(s->tcp.stream);
	s->tcp.stream = NULL;
	s->tcp.count = 0;
}
