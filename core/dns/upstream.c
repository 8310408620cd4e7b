/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions in flight: joined when equal, sent to one server after another until one says something
 * final, ended within their group's timeout. Worker process; owns the flights. Invariant: a flight
 * ends exactly once, and whoever waits for it is called exactly once, never from upstreams_ask.
 */
#include "core/dns/upstream_internal.h"

#include "base/clock.h"
#include "base/hash.h"
#include "core/dns/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIDY_MS		 1000
#define PLAIN_MS	 (15 * 60 * 1000) /* how long a server is believed not to know EDNS */
#define FAILURE_MS	 1000		  /* RFC 9520: 1 s to 5 min */
#define FAILURE_STALE_MS 5000		  /* with a stale answer in hand there is no hurry */
#define RACERS		 3

static void on_timer(evutil_socket_t fd, short what, void *context);
static void on_client_timer(evutil_socket_t fd, short what, void *context);

/* ---- groups ---- */

static int by_length(const void *a, const void *b)
{
	const struct zone *x = a;
	const struct zone *y = b;

	return (int)y->name->length - (int)x->name->length;
}

static void group_init(struct upstreams *u, struct group *g, uint8_t index,
		       const struct config_upstream *config)
{
	uint64_t identity = hash_bytes(1, config->name, strlen(config->name));

	g->config = config;
	g->index = index;
	g->server_count = config->server_count;
	for (size_t i = 0; i < config->zone_count; i++)
		identity = hash_bytes(identity, config->zones[i].wire, config->zones[i].length);
	for (size_t i = 0; i < config->server_count; i++) {
		struct server *s = &g->servers[i];
		s->upstreams = u;
		s->group = g;
		s->index = (uint8_t)i;
		s->endpoint = config->servers[i];
		s->tcp.server = s;
		identity = hash_bytes(identity, s->endpoint.addr.octets, 16);
		identity = hash_bytes(identity, &s->endpoint.port, sizeof(s->endpoint.port));
	}
	g->identity = (uint32_t)identity;
}

static void on_tidy(evutil_socket_t fd, short what, void *context)
{
	struct upstreams *u = context;

	(void)fd;
	(void)what;
	udp_tidy(u, clock_monotonic_us());
}

int upstreams_new(struct worker *w, upstream_done *done, upstream_late *late,
		  struct upstreams **out)
{
	const struct config *config = &w->generation->config;
	struct timeval every = {.tv_sec = TIDY_MS / 1000, .tv_usec = TIDY_MS % 1000 * 1000};
	struct upstreams *u = calloc(1, sizeof(*u));
	size_t zones = 0;

	if (!u)
		return -ENOMEM;
	u->worker = w;
	u->done = done;
	u->late = late;
	u->group_count = config->upstream_count;
	u->groups = calloc(u->group_count + 1, sizeof(*u->groups));
	for (size_t i = 0; i < u->group_count; i++)
		zones += config->upstreams[i].zone_count;
	u->zones = calloc(zones + 1, sizeof(*u->zones));
	if (!u->groups || !u->zones) {
		free(u->groups);
		free(u->zones);
		free(u);
		return -ENOMEM;
	}
	for (size_t i = 0; i < u->group_count; i++) {
		const struct config_upstream *g = &config->upstreams[i];
		int64_t age_us = ((int64_t)g->timeout_ms + 1000) * 1000;
		group_init(u, &u->groups[i], (uint8_t)i, g);
		if (age_us > u->attempt_age_us)
			u->attempt_age_us = age_us;
		for (size_t k = 0; k < g->zone_count; k++)
			u->zones[u->zone_count++] = (struct zone){&g->zones[k], (uint8_t)i};
	}
	qsort(u->zones, u->zone_count, sizeof(*u->zones), by_length);
	event_assign(&u->tidy, w->base, -1, EV_PERSIST, on_tidy, u);
	event_add(&u->tidy, &every);
	*out = u;
	return 0;
}

static void flight_free(struct flight *f)
{
	event_del(&f->timer);
	if (f->client_timer_set)
		event_del(&f->client_timer);
	free(f);
}

void upstreams_free(struct upstreams *u)
{
	if (!u)
		return;
	event_del(&u->tidy);
	for (size_t g = 0; g < u->group_count; g++)
		for (size_t i = 0; i < u->groups[g].server_count; i++) {
			udp_close(&u->groups[g].servers[i]);
			tcp_close(&u->groups[g].servers[i]);
		}
	for (unsigned i = 0; i < FLIGHT_BUCKETS; i++)
		while (u->flights[i]) {
			struct flight *f = u->flights[i];
			u->flights[i] = f->bucket_next;
			flight_free(f);
		}
	while (u->free_flights) {
		struct flight *f = u->free_flights;
		u->free_flights = f->bucket_next;
		free(f);
	}
	while (u->oldest) {
		struct attempt *a = u->oldest;
		u->oldest = a->newer;
		free(a);
	}
	while (u->free_attempts) {
		struct attempt *a = u->free_attempts;
		u->free_attempts = a->bucket_next;
		free(a);
	}
	free(u->groups);
	free(u->zones);
	free(u);
}

uint8_t upstreams_group(const struct upstreams *u, const uint8_t *name, size_t length)
{
	for (size_t i = 0; i < u->zone_count; i++)
		if (name_is_under(name, length, u->zones[i].name->wire, u->zones[i].name->length))
			return u->zones[i].group;
	return 0;
}

uint32_t upstreams_group_identity(const struct upstreams *u, uint8_t group)
{
	return u->groups[group].identity;
}

/* ---- flights ---- */

size_t flight_encode(const struct flight *f, uint16_t id, bool plain, uint8_t *out)
{
	struct message_builder b;
	struct message_question question = {
		.name = f->name,
		.length = f->key.length,
		.type = f->key.type,
		.rrclass = f->key.rrclass,
	};
	/* AD says that we want to know (RFC 6840 section 5.7); the cache keeps it for who asks. */
	uint16_t flags = MESSAGE_RD | MESSAGE_AD | (f->key.checking_disabled ? MESSAGE_CD : 0);

	message_build_start(&b, out, QUERY_MAX, id, flags, &question);
	if (!plain)
		message_build_opt(&b, MESSAGE_UDP_MAX, 0, f->key.want_dnssec, EDE_NONE, NULL, 0);
	return message_build_finish(&b);
}

static struct flight **bucket_of(struct upstreams *u, const struct cache_key *key)
{
	return &u->flights[key->hash % FLIGHT_BUCKETS];
}

static struct flight *flight_find(struct upstreams *u, const struct cache_key *key, uint8_t group)
{
	struct flight *f = *bucket_of(u, key);

	while (f &&
	       (f->key.hash != key->hash || f->group->index != group || f->key.type != key->type ||
		f->key.rrclass != key->rrclass || f->key.length != key->length ||
		f->key.checking_disabled != key->checking_disabled ||
		f->key.want_dnssec != key->want_dnssec || memcmp(f->name, key->name, key->length)))
		f = f->bucket_next;
	return f;
}

static struct flight *flight_new(struct upstreams *u, const struct cache_key *key, uint8_t group)
{
	struct flight *f = u->free_flights;

	if (u->pending >= FLIGHTS_MAX)
		return NULL;
	if (f)
		u->free_flights = f->bucket_next;
	else
		f = malloc(sizeof(*f));
	if (!f)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->upstreams = u;
	f->group = &u->groups[group];
	f->key = *key;
	memcpy(f->name, key->name, key->length);
	f->key.name = f->name;
	event_assign(&f->timer, u->worker->base, -1, 0, on_timer, f);
	f->bucket_next = *bucket_of(u, key);
	*bucket_of(u, key) = f;
	u->pending++;
	return f;
}

/* The one end of a flight. */
static void flight_end(struct flight *f, const struct upstream_result *result)
{
	struct upstreams *u = f->upstreams;
	struct flight **link = bucket_of(u, &f->key);
	struct query *q = f->waiters;

	while (*link != f)
		link = &(*link)->bucket_next;
	*link = f->bucket_next;
	event_del(&f->timer);
	if (f->client_timer_set)
		event_del(&f->client_timer);
	udp_forget(f);
	tcp_forget(f);
	f->bucket_next = u->free_flights;
	u->free_flights = f;
	u->pending--;
	while (q) {
		struct query *next = q->parked_next;
		q->parked_next = NULL;
		u->done(q, result);
		q = next;
	}
}

static void flight_fail(struct flight *f)
{
	struct upstreams *u = f->upstreams;
	struct upstream_result result = {.server = EVENT_NO_UPSTREAM};

	if (f->failed_ede)
		result.ede = f->failed_ede;
	else if (f->network_error && !f->timed_out)
		result.ede = EDE_NETWORK_ERROR;
	else
		result.ede = EDE_NO_REACHABLE_AUTHORITY;
	shm_count(u->worker->cells, METRIC_UPSTREAM_FAILED, 1);
	cache_failure_set(u->worker->cache, &f->key, clock_monotonic_ms(),
			  f->client_timer_set ? FAILURE_STALE_MS : FAILURE_MS);
	flight_end(f, &result);
}

static void arm(struct flight *f, int64_t wait_us)
{
	struct timeval t = {.tv_sec = wait_us / 1000000, .tv_usec = wait_us % 1000000};

	evtimer_add(&f->timer, &t);
}

/* Send to the best server that has not been asked. False: there is none. */
static bool send_fresh(struct flight *f, int64_t now_us)
{
	struct server *s;

	while (f->sent < FLIGHT_ATTEMPTS_MAX && (s = server_choose(f))) {
		int error = udp_send(f, s, now_us);
		if (error < 0) {
			f->state[s->index] = SERVER_FAILED;
			f->network_error = true;
			continue;
		}
		f->state[s->index] = SERVER_WAITING;
		f->sent++;
		struct server *probe = server_to_probe(f, s, now_us / 1000);
		if (probe && udp_send(f, probe, now_us) == 0)
			f->state[probe->index] = SERVER_WAITING;
		if (!f->wait_us)
			f->wait_us = server_wait_us(s);
		return true;
	}
	return false;
}

static bool waiting(const struct flight *f)
{
	for (size_t i = 0; i < f->group->server_count; i++)
		if (f->state[i] == SERVER_WAITING)
			return true;
	return false;
}

/* A datagram may have been lost: say it again to the quickest of those that were asked. */
static void send_again(struct flight *f, int64_t now_us)
{
	struct server *best = NULL;

	for (size_t i = 0; i < f->group->server_count; i++) {
		struct server *s = &f->group->servers[i];
		if (f->state[i] == SERVER_WAITING && !f->over_tcp[i] &&
		    (!best || s->srtt_us < best->srtt_us))
			best = s;
	}
	if (!best || f->sent >= FLIGHT_ATTEMPTS_MAX)
		return;
	f->sent++;
	shm_count(f->upstreams->worker->cells, METRIC_UPSTREAM_RETRIES, 1);
	if (udp_send(f, best, now_us) < 0) {
		f->state[best->index] = SERVER_FAILED;
		f->network_error = true;
	}
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct flight *f = context;
	int64_t now_us = clock_monotonic_us();

	(void)fd;
	(void)what;
	if (now_us >= f->deadline_us) {
		udp_mark_late(f, now_us);
		if (waiting(f)) {
			f->timed_out = true;
			shm_count(f->upstreams->worker->cells, METRIC_UPSTREAM_TIMEOUTS, 1);
		}
		flight_fail(f);
		return;
	}
	udp_mark_late(f, now_us);
	if (send_fresh(f, now_us))
		shm_count(f->upstreams->worker->cells, METRIC_UPSTREAM_RETRIES, 1);
	else
		send_again(f, now_us);
	if (!waiting(f)) {
		flight_fail(f);
		return;
	}
	f->wait_us *= 2;
	int64_t left = f->deadline_us - now_us;
	arm(f, f->wait_us < left ? f->wait_us : left);
}

static void on_client_timer(evutil_socket_t fd, short what, void *context)
{
	struct flight *f = context;
	struct query *q = f->waiters;
	struct query *stay = NULL;

	(void)fd;
	(void)what;
	f->waiters = NULL;
	while (q) {
		struct query *next = q->parked_next;
		q->parked_next = NULL;
		if (!f->upstreams->late(q)) {
			q->parked_next = stay;
			stay = q;
		}
		q = next;
	}
	f->waiters = stay;
}

void flight_server_failed(struct flight *f, struct server *s, bool network_error)
{
	if (f->state[s->index] == SERVER_FAILED)
		return;
	f->state[s->index] = SERVER_FAILED;
	f->network_error |= network_error;
	if (send_fresh(f, clock_monotonic_us()))
		shm_count(f->upstreams->worker->cells, METRIC_UPSTREAM_RETRIES, 1);
	else if (!waiting(f))
		flight_fail(f);
}

static void go_tcp(struct flight *f, struct server *s)
{
	if (f->over_tcp[s->index])
		return; /* a second copy of the truncated answer */
	f->over_tcp[s->index] = true;
	shm_count(f->upstreams->worker->cells, METRIC_UPSTREAM_TCP, 1);
	if (tcp_send(f, s) < 0)
		flight_server_failed(f, s, true);
}

static void flight_succeed(struct flight *f, struct server *s, size_t size)
{
	struct upstreams *u = f->upstreams;
	struct worker *w = u->worker;
	int64_t now_ms = clock_monotonic_ms();
	bool evicted;
	struct upstream_result result = {
		.message = u->cleaned,
		.size = size,
		.facts = &u->facts,
		.server = s->index,
	};

	cache_failure_clear(w->cache, &f->key);
	if (cache_insert(w->cache, &f->key, u->cleaned, size, &u->facts, cache_ttl(&u->facts),
			 now_ms, &evicted) == 0) {
		shm_count(w->cells, METRIC_CACHE_INSERT, 1);
		if (evicted)
			shm_count(w->cells, METRIC_CACHE_EVICT, 1);
	}
	flight_end(f, &result);
}

void flight_reply(struct flight *f, struct server *s, const uint8_t *data, size_t size, bool tcp,
		  bool plain)
{
	struct upstreams *u = f->upstreams;
	const struct config *config = &u->worker->generation->config;
	int n = message_clean(data, size, u->cleaned, MESSAGE_SIZE_MAX, config->min_ttl_s,
			      config->max_ttl_s, &u->facts);

	/* What does not read whole over UDP may have been cut on the way. */
	if (!tcp && (n < 0 || u->facts.flags & MESSAGE_TC)) {
		go_tcp(f, s);
		return;
	}
	if (n < 0 || u->facts.flags & MESSAGE_TC) {
		f->failed_ede = EDE_INVALID_DATA;
		flight_server_failed(f, s, false);
		return;
	}
	if (u->facts.rcode == RCODE_NOERROR || u->facts.rcode == RCODE_NXDOMAIN) {
		flight_succeed(f, s, (size_t)n);
		return;
	}
	if (u->facts.rcode == RCODE_FORMERR && !plain) {
		/* An old server that does not know EDNS: ask as one asked before it (RFC 6891). */
		f->plain[s->index] = true;
		s->plain_until_ms = clock_monotonic_ms() + PLAIN_MS;
		if (udp_send(f, s, clock_monotonic_us()) < 0)
			flight_server_failed(f, s, true);
		return;
	}
	if (u->facts.ede)
		f->failed_ede = u->facts.ede;
	/* Bogus there is bogus everywhere: asking around for someone who does not validate would
	 * undo the validation. */
	if (u->facts.rcode == RCODE_SERVFAIL && u->facts.ede >= 6 && u->facts.ede <= 12) {
		flight_fail(f);
		return;
	}
	flight_server_failed(f, s, false);
}

static void start_client_timer(struct flight *f)
{
	struct timeval t = {.tv_sec = UPSTREAM_CLIENT_TIMER_MS / 1000,
			    .tv_usec = UPSTREAM_CLIENT_TIMER_MS % 1000 * 1000};

	event_assign(&f->client_timer, f->upstreams->worker->base, -1, 0, on_client_timer, f);
	evtimer_add(&f->client_timer, &t);
	f->client_timer_set = true;
}

int upstreams_ask(struct upstreams *u, const struct cache_key *key, uint8_t group, struct query *q,
		  bool has_stale)
{
	struct flight *f = flight_find(u, key, group);

	if (f) {
		shm_count(u->worker->cells, METRIC_JOINED, 1);
	} else {
		int64_t now_us = clock_monotonic_us();
		f = flight_new(u, key, group);
		if (!f)
			return -ENOBUFS;
		f->deadline_us = now_us + (int64_t)f->group->config->timeout_ms * 1000;
		unsigned first = f->group->config->strategy == STRATEGY_RACE ? RACERS : 1;
		while (first-- && send_fresh(f, now_us))
			;
		/* Without a server to ask it fails from the loop: whoever waits is not called yet.
		 */
		arm(f, waiting(f) ? f->wait_us : 0);
	}
	q->parked_next = f->waiters;
	f->waiters = q;
	if (has_stale && !f->client_timer_set)
		start_client_timer(f);
	return 0;
}
