/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP in and out, up to 32 packets a system call. Worker process; the sockets are inherited and
 * stay open. Invariants: a reply leaves from the address that was asked; we never send on a socket
 * that the event loop watches (it would pay for a wake-up on every packet); a wake ends with a
 * batch that was not full, so no listener starves another.
 */
#include "core/dns/listen_udp.h"

#include "core/dns/path_internal.h"
#include "core/dns/set_adopt.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BATCH	       32
#define BATCHES_A_WAKE 8
#define PACKET_MAX     1536 /* of a query; a longer one is cut and so malformed */
#define REPLY_ROOM     1536
#define CONTROL_ROOM   64 /* one packet info, either family */

_Static_assert(REPLY_ROOM >= MESSAGE_UDP_MAX + MESSAGE_OPT_EDE_SIZE, "a reply fits");
_Static_assert(CONTROL_ROOM >= CMSG_SPACE(sizeof(struct in6_pktinfo)), "packet information fits");

struct udp_receiver {
	struct udp_listener *listener;
	struct event event;
	int fd;
};

struct udp_listener {
	struct worker *worker;
	uint8_t index;
	bool wildcard;
	bool v6;
	int send_fd;
	struct udp_receiver *receivers;
	size_t receiver_count;

	unsigned queued;
	struct mmsghdr out[BATCH];
	struct iovec out_data[BATCH];
	struct sockaddr_storage out_to[BATCH];
	uint8_t out_control[BATCH][CONTROL_ROOM] __attribute__((aligned(16)));
	uint8_t replies[BATCH][REPLY_ROOM] __attribute__((aligned(64)));
};

struct udp_listeners {
	struct worker *worker;
	struct udp_listener *items;
	size_t count;
	bool started;

	struct mmsghdr in[BATCH];
	struct iovec in_data[BATCH];
	struct sockaddr_storage in_from[BATCH];
	uint8_t in_control[BATCH][CONTROL_ROOM] __attribute__((aligned(16)));
	uint8_t packets[BATCH][PACKET_MAX] __attribute__((aligned(64)));
};

/* ---- out ---- */

uint8_t *udp_reply_room(struct udp_listeners *l, uint8_t listener, size_t *max)
{
	struct udp_listener *u = &l->items[listener];

	if (u->queued == BATCH)
		udp_flush(l);
	*max = REPLY_ROOM;
	return u->replies[u->queued];
}

/* From the address that was asked, on a listener that has many. */
static void put_source(struct msghdr *h, const struct query_origin *origin, bool v6)
{
	struct cmsghdr *c = h->msg_control;

	c->cmsg_level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
	c->cmsg_type = v6 ? IPV6_PKTINFO : IP_PKTINFO;
	if (v6) {
		struct in6_pktinfo info = {.ipi6_ifindex = origin->local_interface};
		memcpy(&info.ipi6_addr, origin->local.octets, 16);
		c->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		h->msg_controllen = CMSG_SPACE(sizeof(info));
	} else {
		struct in_pktinfo info = {.ipi_ifindex = 0};
		memcpy(&info.ipi_spec_dst, origin->local.octets + 12, 4);
		c->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		h->msg_controllen = CMSG_SPACE(sizeof(info));
	}
}

void udp_reply_send(struct udp_listeners *l, const struct query_origin *origin, const uint8_t *data,
		    size_t size)
{
	struct udp_listener *u = &l->items[origin->listener];
	unsigned i = u->queued++;
	struct msghdr *h = &u->out[i].msg_hdr;

	(void)data; /* it stands in replies[i], where udp_reply_room had it written */
	u->out_data[i].iov_len = size;
	h->msg_namelen = endpoint_to_sockaddr(&origin->client, &u->out_to[i]);
	if (origin->wildcard) {
		h->msg_control = u->out_control[i];
		put_source(h, origin, u->v6);
	}
}

static void flush_one(struct udp_listener *u)
{
	unsigned at = 0;

	while (at < u->queued) {
		int n = sendmmsg(u->send_fd, u->out + at, u->queued - at,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			at += (unsigned)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		/* One that the kernel does not take is lost, as on any network; the rest is not. */
		shm_count(u->worker->cells, METRIC_SEND_FAILED, 1);
		at++;
	}
	u->queued = 0;
}

void udp_flush(struct udp_listeners *l)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].queued)
			flush_one(&l->items[i]);
}

/* ---- in ---- */

static void read_destination(struct msghdr *h, struct query_origin *origin)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			memset(origin->local.octets, 0, 10);
			memset(origin->local.octets + 10, 0xff, 2);
			memcpy(origin->local.octets + 12, &info.ipi_addr, 4);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			memcpy(origin->local.octets, &info.ipi6_addr, 16);
			origin->local_interface = info.ipi6_ifindex;
		}
	}
}

static void read_origin(struct udp_listener *u, struct udp_listeners *l, unsigned i,
			struct query_origin *out)
{
	*out = (struct query_origin){
		.transport = BALEEN_UDP,
		.listener = u->index,
		.wildcard = u->wildcard,
	};
	endpoint_from_sockaddr((struct sockaddr *)&l->in_from[i], &out->client);
	if (u->wildcard)
		read_destination(&l->in[i].msg_hdr, out);
}

/* Three passes, so that memory has time to fetch what the next one will want: all are parsed; then
 * the hooks see their questions, and the cache's tags say where the answers stand; then they are
 * looked up. */
static void batch(struct udp_listeners *l, struct udp_listener *u, unsigned count)
{
	struct path *p = l->worker->path;
	struct path_query *queries[BATCH];
	struct query_origin origin;
	unsigned n = 0;

	path_tick(p);
	p->in_batch = true;
	for (unsigned i = 0; i < count; i++) {
		read_origin(u, l, i, &origin);
		struct path_query *pq = path_begin(p, l->packets[i], l->in[i].msg_len, &origin);
		if (pq)
			queries[n++] = pq;
	}
	for (unsigned i = 0; i < n; i++)
		path_continue(queries[i]);
	path_look_up(p);
	p->in_batch = false;
	path_settle(p);
}

/* The kernel shortens these to what it wrote; only those that it wrote to need it. */
static void make_room(struct udp_listeners *l, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		l->in[i].msg_hdr.msg_namelen = sizeof(l->in_from[i]);
		l->in[i].msg_hdr.msg_controllen = CONTROL_ROOM;
	}
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct udp_receiver *receiver = context;
	struct udp_listener *u = receiver->listener;
	struct udp_listeners *l = u->worker->udp;

	(void)what;
	set_adopt(u->worker);
	for (unsigned turn = 0; turn < BATCHES_A_WAKE; turn++) {
		int n = recvmmsg(fd, l->in, BATCH, MSG_DONTWAIT, NULL);
		if (n <= 0)
			return; /* nothing there, or an error that the next wake will repeat */
		batch(l, u, (unsigned)n);
		make_room(l, (unsigned)n);
		if (n < BATCH)
			return;
	}
}

/* ---- life ---- */

static int listener_init(struct udp_listeners *l, uint8_t index)
{
	struct worker *w = l->worker;
	struct udp_listener *u = &l->items[index];
	const struct listener_sockets *s = &w->sockets[index];
	unsigned workers = w->generation->config.workers;

	u->worker = w;
	u->index = index;
	u->wildcard = s->wildcard;
	u->v6 = s->v6;
	u->send_fd = s->udp_send[w->index % s->udp_count];
	u->receivers = calloc(s->udp_count, sizeof(*u->receivers));
	if (!u->receivers)
		return -ENOMEM;
	for (size_t i = w->index; i < s->udp_count; i += workers) {
		struct udp_receiver *r = &u->receivers[u->receiver_count++];
		r->listener = u;
		r->fd = s->udp[i];
		event_assign(&r->event, w->base, r->fd, EV_READ | EV_PERSIST, on_readable, r);
	}
	for (unsigned i = 0; i < BATCH; i++) {
		u->out_data[i].iov_base = u->replies[i];
		u->out[i].msg_hdr.msg_iov = &u->out_data[i];
		u->out[i].msg_hdr.msg_iovlen = 1;
		u->out[i].msg_hdr.msg_name = &u->out_to[i];
	}
	return 0;
}

int udp_listeners_new(struct worker *w, struct udp_listeners **out)
{
	struct udp_listeners *l = aligned_alloc(64, (sizeof(*l) + 63) / 64 * 64);
	size_t count = w->generation->config.listener_count;

	if (!l)
		return -ENOMEM;
	memset(l, 0, sizeof(*l));
	l->worker = w;
	l->count = count;
	l->items = aligned_alloc(64, (count * sizeof(*l->items) + 63) / 64 * 64);
	if (!l->items) {
		free(l);
		return -ENOMEM;
	}
	memset(l->items, 0, count * sizeof(*l->items));
	for (unsigned i = 0; i < BATCH; i++) {
		l->in_data[i].iov_base = l->packets[i];
		l->in_data[i].iov_len = PACKET_MAX;
		l->in[i].msg_hdr.msg_iov = &l->in_data[i];
		l->in[i].msg_hdr.msg_iovlen = 1;
		l->in[i].msg_hdr.msg_name = &l->in_from[i];
		l->in[i].msg_hdr.msg_control = l->in_control[i];
	}
	make_room(l, BATCH);
	for (size_t i = 0; i < count; i++)
		if (listener_init(l, (uint8_t)i) < 0) {
			udp_listeners_free(l);
			return -ENOMEM;
		}
	*out = l;
	return 0;
}

void udp_listeners_free(struct udp_listeners *l)
{
	if (!l)
		return;
	udp_listeners_stop(l);
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i].receivers);
	free(l->items);
	free(l);
}

void udp_listeners_start(struct udp_listeners *l)
{
	for (size_t i = 0; i < l->count; i++)
		for (size_t k = 0; k < l->items[i].receiver_count; k++)
			event_add(&l->items[i].receivers[k].event, NULL);
	l->started = true;
}

void udp_listeners_stop(struct udp_listeners *l)
{
	if (!l->started)
		return;
	udp_flush(l);
	for (size_t i = 0; i < l->count; i++)
		for (size_t k = 0; k < l->items[i].receiver_count; k++)
			event_del(&l->items[i].receivers[k].event);
	l->started = false;
}
