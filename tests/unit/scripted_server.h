/* SPDX-License-Identifier: Apache-2.0 */
/* A web server on the test's own event loop that answers with octets as written, then closes: what
 * a server must never send can be sent. Shared by the tests of fetch.c and fetcher.c. */
#ifndef BALEEN_TESTS_SCRIPTED_SERVER_H
#define BALEEN_TESTS_SCRIPTED_SERVER_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct scripted_server {
	struct event_base *base;
	struct evconnlistener *listener;
	unsigned port;
	const char *(*answer)(const char *request); /* NULL: silence */
	char request[4096];			    /* the last one */
	unsigned requests;
	bool reset; /* close with RST */
};

static inline void scripted_close(struct bufferevent *b, void *context)
{
	struct scripted_server *s = context;
	struct linger hard = {1, 0};
	if (s->reset)
		setsockopt(bufferevent_getfd(b), SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	bufferevent_free(b);
}

static inline void scripted_read(struct bufferevent *b, void *context)
{
	struct scripted_server *s = context;
	struct evbuffer *in = bufferevent_get_input(b);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	if (end.pos < 0)
		return;
	size_t n = evbuffer_get_length(in);
	n = n < sizeof(s->request) - 1 ? n : sizeof(s->request) - 1;
	evbuffer_remove(in, s->request, n);
	s->request[n] = '\0';
	s->requests++;
	const char *answer = s->answer(s->request);
	if (!answer)
		return;
	bufferevent_setcb(b, NULL, scripted_close, NULL, s);
	bufferevent_write(b, answer, strlen(answer));
}

static inline void scripted_event(struct bufferevent *b, short what, void *context)
{
	(void)context;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		bufferevent_free(b);
}

static inline void scripted_accept(struct evconnlistener *l, evutil_socket_t fd,
				   struct sockaddr *from, int length, void *context)
{
	struct scripted_server *s = context;
	(void)l;
	(void)from;
	(void)length;
	struct bufferevent *b = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(b, scripted_read, NULL, scripted_event, s);
	bufferevent_enable(b, EV_READ | EV_WRITE);
}

static inline void scripted_start(struct scripted_server *s, struct event_base *base)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);
	s->base = base;
	s->listener = evconnlistener_new_bind(base, scripted_accept, s,
					      LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 16,
					      (struct sockaddr *)&at, sizeof(at));
	getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&at, &length);
	s->port = ntohs(at.sin_port);
}

#endif
