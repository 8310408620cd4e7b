/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole DNS path in one process: a worker with real sockets on loopback, a scripted upstream on
 * the same event loop, and a chain that the test plays itself (chain_run and chain_has are wrapped
 * by the linker, see the Makefile).
 */
#include "base/clock.h"
#include "base/message_build.h"
#include "base/message_text.h"
#include "core/chain/chain.h"
#include "core/dns/answer.h"
#include "core/dns/path.h"
#include "core/dns/socket.h"
#include "core/dns/upstream.h"
#include "core/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SERVERS	   2
#define TIMEOUT_MS 400

/* ---- the chain, played by the test ---- */

typedef enum chain_next play(struct query *q, enum query_phase phase,
			     const struct baleen_answer *answer);
static play *chain_play;
static unsigned chain_calls[3];

bool __wrap_chain_has(const struct chain *c, uint32_t group, enum query_phase phase);
bool __wrap_chain_has(const struct chain *c, uint32_t group, enum query_phase phase)
{
	(void)c;
	(void)group;
	(void)phase;
	return chain_play != NULL;
}

enum chain_next __wrap_chain_run(struct chain *c, struct query *q, enum query_phase phase,
				 const struct baleen_answer *answer, bool dry_run);
enum chain_next __wrap_chain_run(struct chain *c, struct query *q, enum query_phase phase,
				 const struct baleen_answer *answer, bool dry_run)
{
	(void)c;
	assert_false(dry_run);
	assert_int_equal(q->phase, phase);
	assert_int_equal(answer != NULL, phase == PHASE_ANSWER);
	chain_calls[phase]++;
	return chain_play(q, phase, answer);
}

uint32_t __wrap_policy_group_of(const struct policy *p, const struct policy_client *client);
uint32_t __wrap_policy_group_of(const struct policy *p, const struct policy_client *client)
{
	(void)p;
	(void)client;
	return 0;
}

/* ---- the upstream, scripted by the test ---- */

struct asked {
	unsigned server;
	int fd;
	struct sockaddr_in from;
	bool tcp;
	uint8_t data[512];
	size_t size;
};

/* Returns the size of the reply in `out`; 0: say nothing. */
typedef size_t script(const struct asked *a, uint8_t *out);
static script *upstream_script;
static unsigned upstream_asked[SERVERS];
static struct asked last_asked;
static bool close_after_answer;

/* A reply to what was asked, with these records and rcode and flags. */
static size_t reply_with(const struct asked *a, uint8_t *out, uint16_t flags, unsigned rcode,
			 const char *const *rrs)
{
	struct message_question q;
	char error[200] = "";

	assert_int_not_equal(message_question(a->data, a->size, &q), 0);
	ssize_t n =
		message_from_text(rrs, q.name, q.length, q.type, out, 8192, error, sizeof(error));
	assert_string_equal(error, "");
	out[0] = a->data[0];
	out[1] = a->data[1];
	out[2] |= (uint8_t)(flags >> 8);
	out[3] |= (uint8_t)(flags | rcode);
	return (size_t)n;
}

static size_t answer_one(const struct asked *a, uint8_t *out)
{
	char text[NAME_TEXT_MAX + 32], name[NAME_TEXT_MAX];
	const char *const rrs[] = {text, NULL};
	struct message_question q;

	message_question(a->data, a->size, &q);
	name_format(q.name, name);
	snprintf(text, sizeof(text), "%s 300 A 192.0.2.%u", name, 1 + a->server);
	return reply_with(a, out, 0, RCODE_NOERROR, rrs);
}

static size_t say_nothing(const struct asked *a, uint8_t *out)
{
	(void)a;
	(void)out;
	return 0;
}

static void upstream_readable(evutil_socket_t fd, short what, void *context)
{
	static uint8_t out[8192];
	struct asked a = {.server = (unsigned)(uintptr_t)context, .fd = fd};
	socklen_t length = sizeof(a.from);

	(void)what;
	ssize_t n = recvfrom(fd, a.data, sizeof(a.data), 0, (struct sockaddr *)&a.from, &length);
	assert_true(n > 0);
	a.size = (size_t)n;
	upstream_asked[a.server]++;
	last_asked = a;
	size_t size = upstream_script(&a, out);
	if (size)
		sendto(fd, out, size, 0, (struct sockaddr *)&a.from, length);
}

static struct event *upstream_conns[16];
static unsigned upstream_conn_count;

static void upstream_tcp_readable(evutil_socket_t fd, short what, void *context)
{
	static uint8_t out[8192];
	struct asked a = {.server = (unsigned)(uintptr_t)context, .fd = fd, .tcp = true};
	uint8_t prefix[2];

	(void)what;
	if (recv(fd, prefix, 2, MSG_WAITALL) != 2) {
		for (unsigned i = 0; i < upstream_conn_count; i++)
			if (event_get_fd(upstream_conns[i]) == fd)
				event_del(upstream_conns[i]);
		return;
	}
	a.size = (size_t)(prefix[0] << 8 | prefix[1]);
	assert_true(a.size <= sizeof(a.data));
	assert_int_equal(recv(fd, a.data, a.size, MSG_WAITALL), a.size);
	upstream_asked[a.server]++;
	size_t size = upstream_script(&a, out + 2);
	out[0] = (uint8_t)(size >> 8);
	out[1] = (uint8_t)size;
	if (size)
		assert_int_equal(send(fd, out, size + 2, MSG_NOSIGNAL), size + 2);
}

/* ---- the world ---- */

static struct worker w;
static struct generation g;
static struct config_upstream groups[2];
static struct prefix allowed;
static struct listener_sockets sockets;
static int upstream_udp[SERVERS], upstream_tcp[SERVERS];
static struct event *upstream_events[SERVERS * 2];
static int client = -1;
static bool drained;

static void upstream_acceptable(evutil_socket_t fd, short what, void *context)
{
	int conn = accept(fd, NULL, NULL);
	(void)what;
	assert_true(conn >= 0 && upstream_conn_count < 16);
	struct event *e = event_new(w.base, conn, EV_READ | (close_after_answer ? 0 : EV_PERSIST),
				    upstream_tcp_readable, context);
	event_add(e, NULL);
	upstream_conns[upstream_conn_count++] = e;
}

static int bound(int type, struct endpoint *out)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(a);
	int fd = socket(AF_INET, type, 0);

	a.sin_port = htons(out->port);
	if (bind(fd, (struct sockaddr *)&a, length) < 0) {
		close(fd);
		return -1;
	}
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &length), 0);
	endpoint_from_sockaddr((struct sockaddr *)&a, out);
	return fd;
}

/* A port that is free for both: others take ports meanwhile, so it may need a few tries. */
static void bound_pair(int *udp, int *tcp, struct endpoint *out)
{
	for (unsigned i = 0; i < 100; i++) {
		out->port = 0;
		*udp = bound(SOCK_DGRAM, out);
		*tcp = bound(SOCK_STREAM, out);
		if (*tcp >= 0)
			return;
		close(*udp);
	}
	fail_msg("no port is free");
}

static int begin(void **state)
{
	char error[SOCKET_ERROR_MAX] = "";

	(void)state;
	memset(&w, 0, sizeof(w));
	memset(&g, 0, sizeof(g));
	memset(groups, 0, sizeof(groups));
	memset(upstream_asked, 0, sizeof(upstream_asked));
	memset(chain_calls, 0, sizeof(chain_calls));
	chain_play = NULL;
	upstream_script = answer_one;
	upstream_conn_count = 0;
	close_after_answer = false;
	drained = false;

	w.base = event_base_new();
	groups[0].name = "default";
	groups[0].timeout_ms = TIMEOUT_MS;
	groups[0].strategy = STRATEGY_ORDERED;
	groups[0].server_count = SERVERS;
	for (unsigned i = 0; i < SERVERS; i++) {
		struct endpoint at;
		bound_pair(&upstream_udp[i], &upstream_tcp[i], &at);
		listen(upstream_tcp[i], 8);
		groups[0].servers[i] = at;
		void *context = (void *)(uintptr_t)i;
		upstream_events[2 * i] = event_new(w.base, upstream_udp[i], EV_READ | EV_PERSIST,
						   upstream_readable, context);
		upstream_events[2 * i + 1] =
			event_new(w.base, upstream_tcp[i], EV_READ | EV_PERSIST,
				  upstream_acceptable, context);
		event_add(upstream_events[2 * i], NULL);
		event_add(upstream_events[2 * i + 1], NULL);
	}
	groups[1] = groups[0];
	groups[1].name = "corp";
	groups[1].servers[0] = groups[0].servers[1];
	groups[1].server_count = 1;
	static struct name zone;
	name_parse("corp.test", 9, &zone);
	groups[1].zones = &zone;
	groups[1].zone_count = 1;

	struct endpoint at;
	int udp, tcp;
	bound_pair(&udp, &tcp, &at);
	close(udp);
	close(tcp);
	at.addr =
		(struct addr){.octets = {[10] = 0xff, [11] = 0xff}}; /* 0.0.0.0: packet info too */
	g.config.listeners[0].endpoint = at;
	g.config.listener_count = 1;
	g.config.workers = 1;
	prefix_parse("127.0.0.0/8", &allowed);
	g.config.allow_clients = &allowed;
	g.config.allow_client_count = 1;
	g.config.upstreams = groups;
	g.config.upstream_count = 2;
	g.config.max_ttl_s = 86400;
	g.config.stale_s = 86400;
	g.number = 1;
	w.generation = &g;
	w.shm = g.shm = shm_private(1, 1 << 20);
	metrics_register(w.shm);
	w.cells = shm_cells(w.shm, 0);
	w.crumb = shm_breadcrumb(w.shm, 0);
	ring_init(shm_ring(w.shm, 0), SHM_RING_BYTES);
	ring_writer_open(shm_ring(w.shm, 0), &w.ring);
	w.sockets = &sockets;
	assert_int_equal(socket_open_listener(&g.config.listeners[0], 1, &sockets, error), 0);
	assert_int_equal(path_init(&w, error), 0);
	path_start(&w);

	struct endpoint from = {.port = 0};
	client = bound(SOCK_DGRAM, &from);
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(at.port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(connect(client, (struct sockaddr *)&to, sizeof(to)), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	path_fini(&w);
	close(client);
	for (unsigned i = 0; i < upstream_conn_count; i++) {
		close(event_get_fd(upstream_conns[i]));
		event_free(upstream_conns[i]);
	}
	for (unsigned i = 0; i < SERVERS; i++) {
		event_free(upstream_events[2 * i]);
		event_free(upstream_events[2 * i + 1]);
		close(upstream_udp[i]);
		close(upstream_tcp[i]);
	}
	socket_close_listener(&sockets);
	event_base_free(w.base);
	shm_unmap(w.shm);
	return 0;
}

static uint64_t count_of(enum metric m)
{
	return shm_metric_sum(w.shm, m);
}

static void turn(void)
{
	event_base_loop(w.base, EVLOOP_NONBLOCK);
	usleep(200);
}

/* ---- the client ---- */

static size_t make_query(uint8_t *out, uint16_t id, const char *name, uint16_t type, bool edns)
{
	struct message_builder b;
	struct name n;
	uint8_t wire[NAME_WIRE_MAX];
	struct message_question q = {.type = type, .rrclass = CLASS_IN};

	assert_int_equal(name_parse(name, strlen(name), &n), 0);
	/* Upper case as given, which name_parse takes away. */
	memcpy(wire, n.wire, n.length);
	for (size_t i = 0; name[i]; i++)
		if (name[i] != '.')
			wire[i + 1] = (uint8_t)name[i];
	q.name = wire;
	q.length = n.length;
	message_build_start(&b, out, 512, id, MESSAGE_RD, &q);
	if (edns)
		message_build_opt(&b, 1232, 0, false, 0, NULL, 0);
	return message_build_finish(&b);
}

static uint8_t reply[65536];

/* The next reply at the client's socket within `ms`: its size, or 0. */
static size_t receive(int fd, unsigned ms)
{
	int64_t until = clock_monotonic_ms() + ms;

	do {
		turn();
		ssize_t n = recv(fd, reply, sizeof(reply), MSG_DONTWAIT);
		if (n > 0)
			return (size_t)n;
	} while (clock_monotonic_ms() < until);
	return 0;
}

struct seen {
	struct message_header header;
	unsigned rcode;
	unsigned answers;
	uint16_t types[8];
	uint16_t ede;
	char last_address[INET_ADDRSTRLEN];
};

static void look(size_t size, struct seen *out)
{
	struct message_walk walk;
	struct message_record r;
	struct message_opt opt;
	int more;

	memset(out, 0, sizeof(*out));
	assert_true(message_header(reply, size, &out->header));
	out->rcode = out->header.flags & MESSAGE_RCODE;
	assert_int_equal(message_walk_start(&walk, reply, size), 0);
	while ((more = message_walk_next(&walk, &r)) > 0) {
		if (r.type == TYPE_OPT) {
			assert_int_equal(message_opt(reply, &r, &opt), 0);
			out->ede = opt.has_ede ? opt.ede : 0;
		}
		if (r.section != SECTION_ANSWER)
			continue;
		if (out->answers < 8)
			out->types[out->answers] = r.type;
		out->answers++;
		if (r.type == TYPE_A)
			inet_ntop(AF_INET, reply + r.rdata_at, out->last_address,
				  sizeof(out->last_address));
	}
	assert_int_equal(more, 0);
}

static void ask(const char *name, uint16_t type, struct seen *out)
{
	static uint16_t id;
	uint8_t query[512];
	size_t n = make_query(query, ++id, name, type, true);

	assert_int_equal(send(client, query, n, 0), n);
	size_t size = receive(client, 3000);
	assert_int_not_equal(size, 0);
	look(size, out);
	assert_int_equal(out->header.id, id);
	/* The question as it was asked, case and all. */
	assert_memory_equal(reply + 12, query + 12, strlen(name) + 2 + 4);
}

/* ---- tests: upstream and cache ---- */

static void test_forwards_then_answers_from_the_cache(void **state)
{
	(void)state;
	struct seen s;

	ask("Www.Example.TEST", TYPE_A, &s);
	assert_int_equal(s.rcode, RCODE_NOERROR);
	assert_string_equal(s.last_address, "192.0.2.1");
	assert_int_equal(upstream_asked[0], 1);
	ask("wWW.example.test", TYPE_A, &s);
	assert_string_equal(s.last_address, "192.0.2.1");
	assert_int_equal(upstream_asked[0], 1);
	assert_int_equal(count_of(METRIC_CACHE_HIT), 1);
	assert_int_equal(count_of(METRIC_VERDICT_ALLOW), 2);
	/* What went upstream: RD, EDNS of 1232, no other option. */
	struct message_query q;
	assert_int_equal(message_parse_query(last_asked.data, last_asked.size, &q), MESSAGE_OK);
	assert_true(q.header.flags & MESSAGE_RD);
	assert_int_equal(q.opt.udp_size, 1232);
}

static void test_zones_have_their_own_servers(void **state)
{
	(void)state;
	struct seen s;

	ask("a.corp.test", TYPE_A, &s);
	assert_string_equal(s.last_address, "192.0.2.2");
	ask("corp.test", TYPE_A, &s);
	assert_string_equal(s.last_address, "192.0.2.2");
	ask("notcorp.test", TYPE_A, &s);
	assert_string_equal(s.last_address, "192.0.2.1");
}

static struct asked held_question;
static unsigned held_count;

static size_t hold_it(const struct asked *a, uint8_t *out)
{
	(void)out;
	held_question = *a;
	held_count++;
	return 0;
}

static void test_equal_questions_join(void **state)
{
	(void)state;
	uint8_t query[512], out[8192];
	bool got[51] = {false};

	upstream_script = hold_it;
	held_count = 0;
	for (uint16_t id = 1; id <= 50; id++) {
		size_t n =
			make_query(query, id, id % 2 ? "JOIN.test" : "join.TEST", TYPE_A, id % 3);
		assert_int_equal(send(client, query, n, 0), n);
	}
	for (unsigned i = 0; i < 20; i++)
		turn();
	assert_int_equal(held_count, 1);
	assert_int_equal(w.parked, 50);
	size_t n = answer_one(&held_question, out);
	sendto(held_question.fd, out, n, 0, (struct sockaddr *)&held_question.from,
	       sizeof(held_question.from));
	for (unsigned i = 0; i < 50; i++) {
		struct seen s;
		size_t size = receive(client, 1000);
		assert_int_not_equal(size, 0);
		look(size, &s);
		assert_in_range(s.header.id, 1, 50);
		assert_false(got[s.header.id]);
		got[s.header.id] = true;
		assert_memory_equal(reply + 12, s.header.id % 2 ? "\4JOIN" : "\4join", 5);
		assert_int_equal(s.header.records[2], s.header.id % 3 ? 1 : 0);
	}
	assert_int_equal(count_of(METRIC_JOINED), 49);
	assert_int_equal(w.parked, 0);
}

static unsigned wrong_kind;

/* First something that is not the answer; the right one only after it. */
static size_t lie_first(const struct asked *a, uint8_t *out)
{
	static const char *const victim[] = {"victim.test A 203.0.113.66", NULL};
	size_t n = reply_with(a, out, 0, RCODE_NOERROR, victim);

	switch (wrong_kind) {
	case 0: /* another id */
		out[1] ^= 1;
		break;
	case 1: /* another question: same length, so only its octets differ */
		out[13] ^= 1;
		break;
	case 2: /* a query */
		out[2] &= 0x7f;
		break;
	case 3: /* no question */
		out[5] = 0;
		break;
	case 4: /* another opcode */
		out[2] |= 0x20;
		break;
	default: /* another type */
		out[12 + 4 + 6 + 1 + 1] ^= 1;
	}
	sendto(a->fd, out, n, 0, (const struct sockaddr *)&a->from, sizeof(a->from));
	return answer_one(a, out);
}

static void test_answers_are_bound_to_their_question(void **state)
{
	(void)state;
	upstream_script = lie_first;
	for (wrong_kind = 0; wrong_kind < 6; wrong_kind++) {
		char name[16];
		struct seen s;
		snprintf(name, sizeof(name), "xx%u.test", wrong_kind);
		ask(name, TYPE_A, &s);
		assert_int_equal(s.answers, 1);
		assert_string_equal(s.last_address, "192.0.2.1");
		assert_int_equal(count_of(METRIC_UPSTREAM_REJECTED), wrong_kind + 1);
	}
	upstream_script = answer_one;
	struct seen s;
	ask("victim.test", TYPE_A, &s);
	assert_string_equal(s.last_address, "192.0.2.1");
}

static size_t big_over_tcp(const struct asked *a, uint8_t *out)
{
	static char text[60][64];
	const char *rrs[61] = {NULL};
	struct message_question q;
	char name[NAME_TEXT_MAX];

	if (!a->tcp)
		return reply_with(a, out, MESSAGE_TC, RCODE_NOERROR, rrs);
	message_question(a->data, a->size, &q);
	name_format(q.name, name);
	for (unsigned i = 0; i < 60; i++) {
		snprintf(text[i], sizeof(text[i]), "%.40s A 10.0.0.%u", name, i);
		rrs[i] = text[i];
	}
	return reply_with(a, out, 0, RCODE_NOERROR, rrs);
}

static void test_truncated_goes_over_tcp(void **state)
{
	(void)state;
	struct seen s;

	upstream_script = big_over_tcp;
	for (unsigned round = 0; round < 2; round++) {
		/* The second time the upstream takes one question a connection, and says so by
		 * closing it after the answer. */
		for (unsigned i = 0; i < 3; i++) {
			char name[16];
			snprintf(name, sizeof(name), "big%u%u.test", round, i);
			ask(name, TYPE_A, &s);
			assert_int_equal(s.rcode, RCODE_NOERROR);
			assert_int_equal(s.answers, 60);
			if (round)
				for (unsigned k = 0; k < upstream_conn_count; k++)
					shutdown(event_get_fd(upstream_conns[k]), SHUT_RDWR);
		}
		close_after_answer = true;
	}
	assert_int_equal(count_of(METRIC_UPSTREAM_TCP), 6);
}

static unsigned bad_rcode;

static size_t first_is_bad(const struct asked *a, uint8_t *out)
{
	static const char *const none[] = {NULL};
	return a->server ? answer_one(a, out) : reply_with(a, out, 0, bad_rcode, none);
}

static void test_failover_by_rcode(void **state)
{
	(void)state;
	static const struct {
		unsigned rcode;
		bool next;
	} rows[] = {{RCODE_SERVFAIL, true},
		    {RCODE_REFUSED, true},
		    {RCODE_NOTIMP, true},
		    {RCODE_NXDOMAIN, false},
		    {RCODE_NOERROR, false}};
	upstream_script = first_is_bad;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char name[16];
		struct seen s;
		unsigned before = upstream_asked[1];
		snprintf(name, sizeof(name), "rc%zu.test", i);
		bad_rcode = rows[i].rcode;
		ask(name, TYPE_A, &s);
		assert_int_equal(s.rcode, rows[i].next ? RCODE_NOERROR : rows[i].rcode);
		assert_int_equal(s.answers, rows[i].next);
		assert_int_equal(upstream_asked[1] - before, rows[i].next);
	}
}

static size_t malformed_answer(const struct asked *a, uint8_t *out)
{
	size_t n = answer_one(a, out);
	out[n - 5] = 200; /* RDLENGTH past the end */
	return n;
}

static void test_what_cannot_be_parsed_does_not_pass(void **state)
{
	(void)state;
	struct seen s;

	upstream_script = malformed_answer;
	ask("cut.test", TYPE_A, &s);
	assert_int_equal(s.rcode, RCODE_SERVFAIL);
	assert_int_equal(s.answers, 0);
}

static void test_silence_ends_in_servfail_in_time(void **state)
{
	(void)state;
	struct seen s;

	upstream_script = say_nothing;
	int64_t begun = clock_monotonic_ms();
	ask("silent.test", TYPE_A, &s);
	int64_t took = clock_monotonic_ms() - begun;
	assert_int_equal(s.rcode, RCODE_SERVFAIL);
	assert_int_equal(s.ede, EDE_NO_REACHABLE_AUTHORITY);
	assert_in_range(took, TIMEOUT_MS - 50, TIMEOUT_MS + 250);
	/* Both were tried. */
	assert_true(upstream_asked[0] && upstream_asked[1]);
	/* And again at once: no new storm. */
	unsigned before = upstream_asked[0] + upstream_asked[1];
	ask("silent.test", TYPE_A, &s);
	assert_int_equal(s.rcode, RCODE_SERVFAIL);
	assert_int_equal(upstream_asked[0] + upstream_asked[1], before);
	assert_int_equal(count_of(METRIC_VERDICT_ERROR), 2);
}

static void test_nobody_there_is_known_at_once(void **state)
{
	(void)state;
	struct seen s;

	for (unsigned i = 0; i < SERVERS; i++) {
		event_del(upstream_events[2 * i]);
		close(upstream_udp[i]);
	}
	int64_t begun = clock_monotonic_ms();
	ask("dead.test", TYPE_A, &s);
	assert_int_equal(s.rcode, RCODE_SERVFAIL);
	assert_int_equal(s.ede, EDE_NETWORK_ERROR);
	assert_in_range(clock_monotonic_ms() - begun, 0, 200);
	for (unsigned i = 0; i < SERVERS; i++)
		upstream_udp[i] = socket(AF_INET, SOCK_DGRAM, 0);
}

static size_t short_lived(const struct asked *a, uint8_t *out)
{
	static const char *const rrs[] = {"stale.test 1 A 192.0.2.77", NULL};
	return reply_with(a, out, 0, RCODE_NOERROR, rrs);
}

static void test_stale_when_upstream_fails(void **state)
{
	(void)state;
	struct seen s;

	upstream_script = short_lived;
	ask("stale.test", TYPE_A, &s);
	assert_int_equal(s.ede, 0);
	usleep(1100000);
	upstream_script = say_nothing;
	ask("stale.test", TYPE_A, &s);
	assert_int_equal(s.rcode, RCODE_NOERROR);
	assert_string_equal(s.last_address, "192.0.2.77");
	assert_int_equal(s.ede, EDE_STALE);
	unsigned before = upstream_asked[0] + upstream_asked[1];
	ask("stale.test", TYPE_A, &s);
	assert_int_equal(s.ede, EDE_STALE);
	assert_int_equal(upstream_asked[0] + upstream_asked[1], before);
	assert_int_equal(count_of(METRIC_CACHE_STALE), 2);
}

/* ---- tests: what comes in ---- */

static void test_malformed_queries(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		int at; /* octet to change, -1: none */
		uint8_t value;
		size_t size; /* octets to send, 0: all */
		int rcode;   /* -1: silence */
	} rows[] = {
		{"no octet", -1, 0, 1, -1},
		{"eleven", -1, 0, 11, -1},
		{"header only", -1, 0, 12, RCODE_FORMERR},
		{"cut", -1, 0, 20, RCODE_FORMERR},
		{"a response", 2, 0x80, 0, -1},
		{"NOTIFY", 2, 0x20, 0, RCODE_NOTIMP},
		{"two questions", 5, 2, 0, RCODE_FORMERR},
		{"pointer", 12, 0xc0, 0, RCODE_FORMERR},
		{"class CH", 22, 3, 0, RCODE_REFUSED},
		{"AXFR", 20, 252, 0, RCODE_REFUSED},
	};
	chain_play = NULL;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t query[512];
		struct seen s;
		size_t n = make_query(query, 9, "bad.x", TYPE_A, false);
		assert_int_equal(n, 23);
		if (rows[i].at >= 0)
			query[rows[i].at] = rows[i].value;
		print_message("%s\n", rows[i].what);
		send(client, query, rows[i].size ? rows[i].size : n, 0);
		size_t size = receive(client, rows[i].rcode < 0 ? 50 : 1000);
		if (rows[i].rcode < 0) {
			assert_int_equal(size, 0);
			continue;
		}
		look(size, &s);
		assert_int_equal(s.rcode, rows[i].rcode);
		assert_int_equal(s.header.id, 9);
	}
	assert_int_equal(upstream_asked[0], 0);
}

static void test_strangers_are_refused(void **state)
{
	(void)state;
	struct seen s;
	uint8_t query[512];

	prefix_parse("10.0.0.0/8", &allowed);
	ask("www.test", TYPE_A, &s);
	assert_int_equal(s.rcode, RCODE_REFUSED);
	assert_int_equal(s.ede, EDE_PROHIBITED);
	assert_int_equal(upstream_asked[0], 0);
	assert_int_equal(count_of(METRIC_VERDICT_REFUSE), 1);
	assert_int_equal(count_of(METRIC_ACL_REFUSED), 1);
	/* Malformed and a stranger: not even an error. */
	make_query(query, 9, "bad.x", TYPE_A, false);
	send(client, query, 12, 0);
	assert_int_equal(receive(client, 50), 0);
}

static void test_reply_leaves_from_the_address_that_was_asked(void **state)
{
	(void)state;
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(g.config.listeners[0].endpoint.port)};
	uint8_t query[512];
	size_t n = make_query(query, 3, "src.test", TYPE_A, false);

	inet_pton(AF_INET, "127.0.0.77", &to.sin_addr);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	/* A connected socket takes replies from that address alone. */
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	send(fd, query, n, 0);
	assert_int_not_equal(receive(fd, 1000), 0);
	close(fd);
}

/* ---- tests: decisions ---- */

static bool is(const struct query *q, const char *text)
{
	struct name n;
	name_parse(text, strlen(text), &n);
	return name_equal(n.wire, n.length, q->name, q->view.name_length);
}

static enum chain_next decide(struct query *q, enum event_verdict verdict)
{
	q->next++;
	q->verdict = verdict;
	q->decided_by = 0;
	return CHAIN_DECIDED;
}

static enum chain_next scripted_chain(struct query *q, enum query_phase phase,
				      const struct baleen_answer *answer)
{
	static struct policy_answer walled;

	if (phase == PHASE_CLIENT)
		return CHAIN_GO_ON;
	if (phase == PHASE_ANSWER) {
		for (unsigned i = 0; i < answer->record_count; i++) {
			const struct baleen_record *r = &answer->records[i];
			if (r->target_length == 14 && !memcmp(r->target, "\7blocked\4test", 14)) {
				q->why.hop = BALEEN_HOP_CNAME;
				return decide(q, EVENT_BLOCK);
			}
		}
		return CHAIN_GO_ON;
	}
	if (is(q, "blocked.test"))
		return decide(q, EVENT_BLOCK);
	if (is(q, "walled.test")) {
		walled = (struct policy_answer){.form = POLICY_FORM_CNAME, .ttl_s = 33, .ede = 17};
		name_parse("garden.test", 11, &walled.target);
		q->policy_answer = &walled;
		return decide(q, EVENT_BLOCK);
	}
	if (is(q, "from.test") || is(q, "evil.test") || is(q, "loop.test")) {
		const char *to = is(q, "from.test")   ? "to.test"
				 : is(q, "evil.test") ? "blocked.test"
						      : "loop.test";
		name_parse(to, strlen(to), &q->target);
		if (is(q, "loop.test") && q->next)
			return CHAIN_GO_ON;
		return decide(q, EVENT_REWRITE);
	}
	if (is(q, "tc.test"))
		return q->next ? CHAIN_GO_ON : decide(q, EVENT_TRUNCATE);
	if (is(q, "drop.test"))
		return decide(q, EVENT_DROP);
	return CHAIN_GO_ON;
}

static void test_decisions(void **state)
{
	(void)state;
	struct seen s;

	chain_play = scripted_chain;
	ask("blocked.test", TYPE_A, &s);
	assert_int_equal(s.rcode, RCODE_NXDOMAIN);
	assert_int_equal(s.ede, EDE_BLOCKED);
	assert_int_equal(upstream_asked[0], 0);

	ask("walled.test", TYPE_A, &s);
	assert_int_equal(s.answers, 2);
	assert_int_equal(s.types[0], TYPE_CNAME);
	assert_int_equal(s.types[1], TYPE_A);
	assert_int_equal(s.ede, 17);
	assert_int_equal(count_of(METRIC_VERDICT_BLOCK), 2);

	for (unsigned warm = 0; warm < 2; warm++) {
		ask("from.test", TYPE_A, &s);
		assert_int_equal(s.rcode, RCODE_NOERROR);
		assert_int_equal(s.answers, 2);
		assert_int_equal(s.types[0], TYPE_CNAME);
		assert_string_equal(s.last_address, "192.0.2.1");
	}
	assert_int_equal(count_of(METRIC_VERDICT_REWRITE), 2);

	/* A rewrite does not lead around a rule. */
	ask("evil.test", TYPE_A, &s);
	assert_int_equal(s.rcode, RCODE_NXDOMAIN);
	assert_int_equal(s.ede, EDE_BLOCKED);

	/* A rewrite to itself is none. */
	ask("loop.test", TYPE_A, &s);
	assert_int_equal(s.answers, 1);
	assert_int_equal(s.types[0], TYPE_A);

	ask("tc.test", TYPE_A, &s);
	assert_true(s.header.flags & MESSAGE_TC);
	assert_int_equal(s.answers, 0);

	uint8_t query[512];
	send(client, query, make_query(query, 5, "drop.test", TYPE_A, true), 0);
	assert_int_equal(receive(client, 50), 0);
	assert_int_equal(count_of(METRIC_VERDICT_DROP), 1);
	assert_int_equal(w.parked, 0);
}

static size_t cname_answer(const struct asked *a, uint8_t *out)
{
	static const char *const rrs[] = {"alias.test CNAME blocked.test",
					  "blocked.test A 192.0.2.66", NULL};
	return reply_with(a, out, 0, RCODE_NOERROR, rrs);
}

/* The same verdict whether the answer comes from upstream or from the cache. */
static void test_hops_are_judged_cold_and_warm(void **state)
{
	(void)state;
	struct seen s;

	chain_play = scripted_chain;
	upstream_script = cname_answer;
	for (unsigned i = 0; i < 3; i++) {
		ask("alias.test", TYPE_A, &s);
		assert_int_equal(s.rcode, RCODE_NXDOMAIN);
		assert_int_equal(s.answers, 0);
		assert_int_equal(s.ede, EDE_BLOCKED);
	}
	assert_int_equal(upstream_asked[0], 1);
	assert_int_equal(count_of(METRIC_VERDICT_BLOCK), 3);
	/* The cache holds what upstream said. */
	chain_play = NULL;
	ask("alias.test", TYPE_A, &s);
	assert_int_equal(s.answers, 2);
	assert_int_equal(upstream_asked[0], 1);
}

static struct query *waiting[3];
static bool came_back[3];

static enum chain_next wait_everywhere(struct query *q, enum query_phase phase,
				       const struct baleen_answer *answer)
{
	(void)answer;
	if (phase == PHASE_CLIENT)
		return CHAIN_GO_ON;
	if (!waiting[phase]) {
		waiting[phase] = q;
		return CHAIN_WAITING;
	}
	came_back[phase] = true;
	if (phase == PHASE_ANSWER)
		assert_int_equal(answer->record_count, 1);
	return CHAIN_GO_ON;
}

static void test_waiting_hooks(void **state)
{
	(void)state;
	uint8_t query[512];
	struct seen s;

	memset(waiting, 0, sizeof(waiting));
	memset(came_back, 0, sizeof(came_back));
	chain_play = wait_everywhere;
	send(client, query, make_query(query, 11, "wait.test", TYPE_A, true), 0);
	for (unsigned i = 0; i < 20 && !waiting[PHASE_QUERY]; i++)
		turn();
	assert_non_null(waiting[PHASE_QUERY]);
	assert_int_equal(w.parked, 1);
	/* Others go on meanwhile, through other slots. */
	chain_play = NULL;
	ask("other.test", TYPE_A, &s);
	chain_play = wait_everywhere;
	path_resume(waiting[PHASE_QUERY]);
	for (unsigned i = 0; i < 50 && !waiting[PHASE_ANSWER]; i++)
		turn();
	assert_ptr_equal(waiting[PHASE_ANSWER], waiting[PHASE_QUERY]);
	assert_int_equal(receive(client, 20), 0);
	path_resume(waiting[PHASE_ANSWER]);
	size_t size = receive(client, 1000);
	assert_int_not_equal(size, 0);
	look(size, &s);
	assert_int_equal(s.header.id, 11);
	assert_string_equal(s.last_address, "192.0.2.1");
	assert_true(came_back[PHASE_QUERY] && came_back[PHASE_ANSWER]);
	assert_int_equal(w.parked, 0);
}

/* ---- tests: TCP ---- */

static int tcp_connect(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(g.config.listeners[0].endpoint.port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static size_t framed(uint8_t *out, uint16_t id, const char *name)
{
	size_t n = make_query(out + 2, id, name, TYPE_A, true);

	out[0] = (uint8_t)(n >> 8);
	out[1] = (uint8_t)n;
	return n + 2;
}

/* One whole message from the stream; 0: nothing came; -1: closed. */
static int tcp_receive(int fd, unsigned ms)
{
	static uint8_t buffer[65537];
	int64_t until = clock_monotonic_ms() + ms;
	ssize_t n;

	do {
		turn();
		n = recv(fd, buffer, 2, MSG_DONTWAIT | MSG_PEEK);
		if (n == 0)
			return -1;
		if (n == 2)
			break;
	} while (clock_monotonic_ms() < until);
	if (n != 2)
		return 0;
	size_t size = (size_t)(buffer[0] << 8 | buffer[1]);
	assert_int_equal(recv(fd, buffer, size + 2, MSG_WAITALL), size + 2);
	memcpy(reply, buffer + 2, size);
	return (int)size;
}

static size_t slow_for_some(const struct asked *a, uint8_t *out)
{
	if (a->data[13] == 's')
		return hold_it(a, out);
	return answer_one(a, out);
}

static void test_tcp_pipelined_out_of_order_in_pieces(void **state)
{
	(void)state;
	uint8_t stream[1024], out[8192];
	size_t size = 0;
	struct seen s;
	int fd = tcp_connect();

	upstream_script = slow_for_some;
	size += framed(stream + size, 1, "slow.test");
	size += framed(stream + size, 2, "quick.test");
	size += framed(stream + size, 3, "fast.test");
	for (size_t i = 0; i < size; i++) {
		assert_int_equal(send(fd, stream + i, 1, 0), 1);
		if (i % 7 == 0)
			turn();
	}
	for (uint16_t id = 2; id <= 3; id++) {
		int n = tcp_receive(fd, 1000);
		assert_true(n > 0);
		look((size_t)n, &s);
		assert_int_equal(s.header.id, id);
	}
	/* The client has no more to ask; the slow answer still comes. */
	shutdown(fd, SHUT_WR);
	for (unsigned i = 0; i < 5; i++)
		turn();
	size_t n = answer_one(&held_question, out);
	sendto(held_question.fd, out, n, 0, (struct sockaddr *)&held_question.from,
	       sizeof(held_question.from));
	int got = tcp_receive(fd, 1000);
	assert_true(got > 0);
	look((size_t)got, &s);
	assert_int_equal(s.header.id, 1);
	assert_int_equal(tcp_receive(fd, 1000), -1);
	close(fd);
	assert_int_equal(count_of(METRIC_QUERIES_TCP), 3);
}

static void test_tcp_many_in_one_write(void **state)
{
	(void)state;
	static uint8_t stream[300 * 64];
	bool got[300] = {false};
	size_t size = 0;
	int fd = tcp_connect();

	/* More than may be in flight: what is over waits in the stream, nothing is lost. */
	for (uint16_t id = 0; id < 300; id++) {
		char name[24];
		snprintf(name, sizeof(name), "m%u.test", id);
		size += framed(stream + size, id, name);
	}
	assert_int_equal(send(fd, stream, size, 0), size);
	shutdown(fd, SHUT_WR);
	for (unsigned i = 0; i < 300; i++) {
		int n = tcp_receive(fd, 1000);
		assert_true(n > 0);
		unsigned id = (unsigned)(reply[0] << 8 | reply[1]);
		assert_true(id < 300 && !got[id]);
		got[id] = true;
	}
	assert_int_equal(tcp_receive(fd, 1000), -1);
	close(fd);
}

static void test_tcp_rubbish_closes(void **state)
{
	(void)state;
	static const struct {
		uint8_t octets[16];
		size_t size;
	} rows[] = {{{0, 0}, 2},
		    {{0, 5, 1, 2, 3, 4, 5}, 7},
		    {{0, 12, 0, 1, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, 14}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int fd = tcp_connect();
		assert_int_equal(send(fd, rows[i].octets, rows[i].size, 0), rows[i].size);
		assert_int_equal(tcp_receive(fd, 1000), -1);
		close(fd);
	}
	/* Malformed, but a query: an error, and the connection lives. */
	uint8_t stream[128];
	size_t n = framed(stream, 7, "bad.x");
	stream[2 + 5] = 2;
	int fd = tcp_connect();
	send(fd, stream, n, 0);
	struct seen s;
	int size = tcp_receive(fd, 1000);
	assert_true(size > 0);
	look((size_t)size, &s);
	assert_int_equal(s.rcode, RCODE_FORMERR);
	n = framed(stream, 8, "good.x");
	send(fd, stream, n, 0);
	assert_true(tcp_receive(fd, 1000) > 0);
	close(fd);
}

static void test_truncate_means_nothing_over_tcp(void **state)
{
	(void)state;
	uint8_t stream[128];
	struct seen s;
	int fd = tcp_connect();

	chain_play = scripted_chain;
	send(fd, stream, framed(stream, 1, "tc.test"), 0);
	int n = tcp_receive(fd, 1000);
	assert_true(n > 0);
	look((size_t)n, &s);
	assert_false(s.header.flags & MESSAGE_TC);
	assert_int_equal(s.answers, 1);
	/* A dropped query leaves the connection usable. */
	send(fd, stream, framed(stream, 2, "drop.test"), 0);
	assert_int_equal(tcp_receive(fd, 50), 0);
	send(fd, stream, framed(stream, 3, "x.test"), 0);
	assert_true(tcp_receive(fd, 1000) > 0);
	close(fd);
}

/* The connection is gone when the answer comes: nobody is written to, least of all another. */
static void test_tcp_client_that_leaves(void **state)
{
	(void)state;
	uint8_t stream[128], out[8192];
	int fd = tcp_connect();

	upstream_script = hold_it;
	held_count = 0;
	send(fd, stream, framed(stream, 1, "gone.test"), 0);
	for (unsigned i = 0; i < 50 && !held_count; i++)
		turn();
	struct linger hard = {.l_onoff = 1};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
	for (unsigned i = 0; i < 5; i++)
		turn();
	int other = tcp_connect();
	for (unsigned i = 0; i < 5; i++)
		turn();
	size_t n = answer_one(&held_question, out);
	sendto(held_question.fd, out, n, 0, (struct sockaddr *)&held_question.from,
	       sizeof(held_question.from));
	assert_int_equal(tcp_receive(other, 100), 0);
	assert_int_equal(w.parked, 0);
	close(other);
}

/* ---- tests: leaving ---- */

static void on_idle(struct worker *worker)
{
	(void)worker;
	drained = true;
}

static void test_drain_finishes_what_is_in_flight(void **state)
{
	(void)state;
	uint8_t query[512], stream[128], out[8192];
	int fd = tcp_connect();

	upstream_script = hold_it;
	held_count = 0;
	send(client, query, make_query(query, 1, "last.test", TYPE_A, true), 0);
	send(fd, stream, framed(stream, 2, "last.test"), 0);
	for (unsigned i = 0; i < 100 && w.parked < 2; i++)
		turn();
	assert_int_equal(w.parked, 2);
	path_drain(&w, 5000, on_idle);
	for (unsigned i = 0; i < 50; i++)
		turn();
	assert_false(drained);
	size_t n = answer_one(&held_question, out);
	sendto(held_question.fd, out, n, 0, (struct sockaddr *)&held_question.from,
	       sizeof(held_question.from));
	assert_int_not_equal(receive(client, 1000), 0);
	assert_true(tcp_receive(fd, 1000) > 0);
	/* Our half is closed; when the client closes too, all is done. */
	assert_int_equal(tcp_receive(fd, 1000), -1);
	close(fd);
	for (unsigned i = 0; i < 500 && !drained; i++)
		turn();
	assert_true(drained);
	/* Nothing more is read: the next worker on these sockets will. */
	send(client, query, make_query(query, 3, "late.test", TYPE_A, true), 0);
	assert_int_equal(receive(client, 50), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		T(test_forwards_then_answers_from_the_cache),
		T(test_zones_have_their_own_servers),
		T(test_equal_questions_join),
		T(test_answers_are_bound_to_their_question),
		T(test_truncated_goes_over_tcp),
		T(test_failover_by_rcode),
		T(test_what_cannot_be_parsed_does_not_pass),
		T(test_silence_ends_in_servfail_in_time),
		T(test_nobody_there_is_known_at_once),
		T(test_stale_when_upstream_fails),
		T(test_malformed_queries),
		T(test_strangers_are_refused),
		T(test_reply_leaves_from_the_address_that_was_asked),
		T(test_decisions),
		T(test_hops_are_judged_cold_and_warm),
		T(test_waiting_hooks),
		T(test_tcp_pipelined_out_of_order_in_pieces),
		T(test_tcp_many_in_one_write),
		T(test_tcp_rubbish_closes),
		T(test_truncate_means_nothing_over_tcp),
		T(test_tcp_client_that_leaves),
		T(test_drain_finishes_what_is_in_flight),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
