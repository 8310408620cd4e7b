/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the upstream*.c files share. A *flight* is one question and its waiters; an *attempt* is one
 * datagram of it to one server, and outlives the flight until it is answered or too old, so that a
 * late answer still tells about its server. Worker process; one thread.
 */
#ifndef BALEEN_CORE_DNS_UPSTREAM_INTERNAL_H
#define BALEEN_CORE_DNS_UPSTREAM_INTERNAL_H

#include "base/log.h"
#include "core/dns/upstream.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#define FLIGHTS_MAX	    8192 /* a worker */
#define FLIGHTS_SERVER_MAX  4096 /* attempts out at one server */
#define FLIGHT_ATTEMPTS_MAX 10
#define FLIGHT_BUCKETS	    4096
#define ATTEMPT_BUCKETS	    4096
#define SOCKETS_SERVER	    8	 /* connected UDP sockets a server, so that ports vary */
#define SOCKET_USES_MAX	    2048 /* then it gets a new port */
#define SOCKET_AGE_MS	    60000
#define QUERY_MAX	    (MESSAGE_HEADER_SIZE + NAME_WIRE_MAX + 4 + MESSAGE_OPT_SIZE)
#define TCP_PENDING_MAX	    128 /* on one connection */

struct server;

struct udp_socket {
	struct server *server;
	struct event event;
	int fd;	      /* -1: closed */
	unsigned out; /* attempts that wait for an answer here */
	unsigned uses;
	int64_t opened_ms;
	struct udp_socket *next; /* retired ones */
};

struct attempt {
	struct flight *flight; /* NULL: it has ended */
	struct server *server;
	struct udp_socket *socket;
	struct attempt *bucket_next;
	struct attempt *older, *newer; /* by time of sending */
	struct attempt *flight_next;
	int64_t sent_us;
	uint16_t id;
	bool late;  /* counted as a sign of trouble already */
	bool plain; /* without OPT */
};

struct tcp_pending {
	struct flight *flight;
	uint16_t id;
	bool retried;
};

struct tcp_link {
	struct server *server;
	struct bufferevent *stream; /* NULL: not connected */
	bool reused; /* an answer has come over it: a close now is the peer's idle limit */
	unsigned count;
	struct tcp_pending pending[TCP_PENDING_MAX];
};

struct server {
	struct upstreams *upstreams;
	struct group *group;
	struct endpoint endpoint;
	uint8_t index;
	struct udp_socket *sockets[SOCKETS_SERVER];
	struct udp_socket *retired;
	struct tcp_link tcp;
	unsigned out; /* attempts whose flight has not ended */

	/* Health, as this worker sees it. */
	uint32_t srtt_us; /* 0: unknown */
	uint32_t rttvar_us;
	unsigned falls; /* signs of trouble since the last answer */
	unsigned rises;
	bool down;
	int64_t fell_ms; /* the first of them */
	struct log_limit log;
	int64_t probe_ms;	/* when a question may be sent there to see */
	int64_t plain_until_ms; /* it did not understand EDNS */
};

struct group {
	const struct config_upstream *config;
	uint32_t identity;
	uint8_t index;
	struct server servers[CONFIG_SERVERS_MAX];
	size_t server_count;
};

enum server_state { SERVER_FRESH, SERVER_WAITING, SERVER_FAILED };

struct flight {
	struct upstreams *upstreams;
	struct flight *bucket_next;
	struct group *group;
	struct cache_key key;
	uint8_t name[NAME_WIRE_MAX + 1];
	struct query *waiters;
	struct event timer; /* retry, and the end */
	struct event client_timer;
	bool client_timer_set;
	struct attempt *attempts;
	unsigned sent;
	int64_t deadline_us;
	uint32_t wait_us; /* until the next retry; doubles */
	uint8_t state[CONFIG_SERVERS_MAX];
	bool over_tcp[CONFIG_SERVERS_MAX];
	bool plain[CONFIG_SERVERS_MAX];
	uint16_t failed_ede; /* upstream's own */
	bool network_error;  /* the kernel said so, rather than silence */
	bool timed_out;
};

struct zone {
	const struct name *name;
	uint8_t group;
};

struct upstreams {
	struct worker *worker;
	upstream_done *done;
	upstream_late *late;
	struct group *groups;
	size_t group_count;
	struct zone *zones; /* the longest first */
	size_t zone_count;
	struct flight *flights[FLIGHT_BUCKETS];
	struct attempt *by_id[ATTEMPT_BUCKETS];
	struct attempt *oldest, *newest;
	struct flight *free_flights;
	struct attempt *free_attempts;
	size_t pending;
	int64_t attempt_age_us; /* longer than any group waits */
	struct event tidy;	/* old attempts, retired sockets */
	struct message_facts facts;
	uint8_t in[MESSAGE_SIZE_MAX + 1];
	uint8_t cleaned[MESSAGE_SIZE_MAX + 1];
};

/* upstream.c: what the transports report. */
void flight_reply(struct flight *f, struct server *s, const uint8_t *data, size_t size, bool tcp,
		  bool plain);
void flight_server_failed(struct flight *f, struct server *s, bool network_error);
/* The query as it goes out; `out` has QUERY_MAX octets. */
size_t flight_encode(const struct flight *f, uint16_t id, bool plain, uint8_t *out);

/* upstream_server.c: which server, and how it fares. */
struct server *server_choose(struct flight *f);
/* One more to ask beside it, to learn about it: a dead one that may be back, or a rival. */
struct server *server_to_probe(struct flight *f, const struct server *chosen, int64_t now_ms);
void server_answered(struct server *s, int64_t rtt_us, int64_t now_ms);
void server_troubled(struct server *s, bool unreachable, int64_t now_ms);
uint32_t server_wait_us(const struct server *s);

/* upstream_udp.c. send: 0 or -errno; then the server counts as failed for this flight. */
int udp_send(struct flight *f, struct server *s, int64_t now_us);
void udp_forget(struct flight *f); /* its attempts become nobody's */
void udp_tidy(struct upstreams *u, int64_t now_us);
void udp_close(struct server *s);
/* Attempts of the flight that wait since longer than they should: tell the servers' health. */
void udp_mark_late(struct flight *f, int64_t now_us);

/* upstream_tcp.c */
int tcp_send(struct flight *f, struct server *s);
void tcp_forget(struct flight *f);
void tcp_close(struct server *s);

#endif
