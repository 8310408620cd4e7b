/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a query costs in instructions: a whole worker in one process, with the four shipped plugins,
 * ten feeds that hold 100,000 names and twenty groups, asked over a real socket in batches of 32.
 * Under callgrind only the worker's turns of the event loop are counted, and each scenario ends
 * with a dump named after it (bench/instructions/run reads those). Without valgrind it prints the
 * best of many passes in nanoseconds of CPU, system calls included: for comparing two builds. A
 * program of its own, of the project's archives; nothing is measured that the daemon does not run.
 */
#include "base/key.h"
#include "base/message_build.h"
#include "base/message_text.h"
#include "core/chain/chain.h"
#include "core/dns/cache.h"
#include "core/dns/path.h"
#include "core/dns/socket.h"
#include "core/dns/upstream.h"
#include "core/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#define FEEDS	    10
#define GROUPS	    20
#define LISTED	    100000
#define CLEAN	    6400
#define BATCH	    32
#define PASSES	    60 /* without valgrind */
#define QUERY_MAX   512
#define CACHE_BYTES ((uint64_t)64 << 20)

static struct worker w;
static struct listener_sockets sockets;
static struct event_base *base;
static int client;

static char folder[] = "/tmp/baleen-instructions-XXXXXX";

static void tidy(void)
{
	char command[64];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command) != 0)
		fprintf(stderr, "instructions: %s stays\n", folder);
}

static void die(const char *what)
{
	fprintf(stderr, "instructions: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ---- names: the same ones in every run ---- */

static void clean_name(unsigned i, char out[64])
{
	snprintf(out, 64, "%c%u.site%u.example", 'a' + (int)(i % 8), i, i % 3000);
}

static void listed_name(unsigned i, char out[64])
{
	snprintf(out, 64, "ads%u.tracker%u.test", i, i % 20000);
}

/* ---- the set ---- */

struct listed {
	uint8_t key[48];
	size_t size;
	struct domset_entry entry;
};

struct stream {
	struct listed *names;
	size_t at;
};

static int by_key(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	return key_compare(x->key, x->size, y->key, y->size);
}

static int next(void *context, struct domset_record *out)
{
	struct stream *s = context;

	if (s->at == LISTED)
		return 0;
	const struct listed *l = &s->names[s->at++];
	*out = (struct domset_record){l->key, l->size, &l->entry, 1};
	return 1;
}

static int again(void *context)
{
	struct stream *s = context;
	s->at = 0;
	return 0;
}

static void make_set(void)
{
	static const char *const feeds[FEEDS] = {"f0", "f1", "f2", "f3", "f4",
						 "f5", "f6", "f7", "f8", "f9"};
	struct stream s = {.names = calloc(LISTED, sizeof(*s.names))};
	struct domset_build options = {feeds, FEEDS, 0};
	struct domset_stream stream = {next, again, &s};
	struct domset_stats stats;
	uint8_t key[KEY_MAX];
	struct name name;
	char text[64];

	if (!s.names || mkdir("sets", 0700) < 0)
		die("sets");
	for (unsigned i = 0; i < LISTED; i++) {
		struct listed *l = &s.names[i];
		listed_name(i, text);
		name_parse(text, strlen(text), &name);
		l->size = key_from_wire(name.wire, name.length, name.labels, key);
		if (l->size > sizeof(l->key))
			exit(2);
		memcpy(l->key, key, l->size);
		l->entry = (struct domset_entry){(uint16_t)(i % FEEDS), DOMSET_SUBTREE};
	}
	qsort(s.names, LISTED, sizeof(*s.names), by_key);
	errno = -domset_build("sets/domains.1.mdb", &options, &stream, &stats);
	if (errno)
		die("set");
	free(s.names);
}

/* ---- the worker ---- */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		die(path);
}

static void make_policies(void)
{
	char path[64], text[512];

	if (mkdir("policies", 0755) < 0)
		die("policies");
	for (unsigned i = 0; i < GROUPS; i++) {
		snprintf(path, sizeof(path), "policies/group%u.yaml", i);
		snprintf(text, sizeof(text),
			 "group: group%u\nclients: [%s%u.0.0/16]\nrules:\n"
			 "  - allow: {names: [wanted.tracker1.test, wanted.example]}\n"
			 "  - block: {names: [\"*.unwanted.example\"]}\n"
			 "  - block: {feeds: all}\n",
			 i, i ? "10." : "127.", i);
		write_file(path, text);
	}
}

static struct generation *make_generation(const char *plugins)
{
	struct generation *g = NULL;
	struct diags d;
	char text[4096];
	size_t n = (size_t)snprintf(
		text, sizeof(text),
		"listen: [{address: \"127.0.0.1:%u\"}]\nworkers: 1\n"
		"upstreams: {default: {servers: [\"127.0.0.1:9\"]}}\ncache: {size: 64MiB}\n"
		"plugin-folder: %s\npolicies: policies\nstate: .\ncontrol: control.sock\nplugins:\n"
		"  - ratelimit: {queries-per-second: 1000000, burst: 10000000}\n"
		"  - blocklist\n  - threatfeed\n  - logging: {file: queries.log}\nfeeds:\n",
		20000 + (unsigned)getpid() % 40000, plugins);
	for (unsigned i = 0; i < FEEDS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "  - {name: f%u, file: list.txt, format: domains%s}\n", i,
				      i == FEEDS - 1 ? ", kind: threat" : "");
	write_file("list.txt", "placeholder.test\n");
	write_file("baleen.yaml", text);
	make_policies();
	diag_init(&d);
	struct shm *shm = shm_private(1, CACHE_BYTES);
	if (!shm)
		die("memory");
	metrics_register(shm);
	char *path = realpath("baleen.yaml", NULL);
	if (generation_load(source_disk(), path, shm, 1, &d, &g) < 0) {
		diag_print(&d, stderr);
		exit(2);
	}
	free(path);
	return g;
}

static void make_worker(struct generation *g)
{
	char error[SOCKET_ERROR_MAX] = "";

	base = event_base_new();
	w = (struct worker){.generation = g, .shm = g->shm, .base = base, .sockets = &sockets};
	w.slot = shm_slot(w.shm, 1, 0);
	w.cells = shm_cells(w.shm, w.slot);
	w.crumb = shm_breadcrumb(w.shm, w.slot);
	ring_init(shm_ring(w.shm, w.slot), SHM_RING_BYTES);
	ring_writer_open(shm_ring(w.shm, w.slot), &w.ring);
	atomic_store(shm_set_number(w.shm), 1);
	if (socket_open_listener(&g->config.listeners[0], 1, &sockets, error) < 0 ||
	    path_init(&w, error) < 0 || chain_start_worker(g->chain, &w, base, error) < 0) {
		fprintf(stderr, "instructions: %s\n", error);
		exit(2);
	}
	path_start(&w);
	if (!w.set)
		die("the set was not adopted");
}

static void make_client(const struct endpoint *to)
{
	struct sockaddr_storage address;
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	client = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t length = endpoint_to_sockaddr(to, &address);
	if (client < 0 || bind(client, (struct sockaddr *)&own, sizeof(own)) < 0 ||
	    connect(client, (struct sockaddr *)&address, length) < 0)
		die("client");
}

/* ---- what the cache holds: put there as an answer from upstream would be ---- */

static void keep_answer(const struct name *name, const char *const *rrs)
{
	uint8_t in[1024], out[1024];
	char error[200] = "";
	struct message_facts facts;
	bool evicted;
	struct cache_key key = {
		.name = name->wire,
		.length = name->length,
		.type = TYPE_A,
		.rrclass = CLASS_IN,
		.group = upstreams_group_identity(w.upstreams, 0),
	};
	ssize_t n = message_from_text(rrs, name->wire, name->length, TYPE_A, in, sizeof(in), error,
				      sizeof(error));
	if (n < 0) {
		fprintf(stderr, "instructions: %s\n", error);
		exit(2);
	}
	in[2] |= MESSAGE_QR >> 8;
	int size = message_clean(in, (size_t)n, out, sizeof(out), 0, 86400, &facts);
	cache_key_finish(w.cache, &key);
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	if (size < 0 || cache_insert(w.cache, &key, out, (size_t)size, &facts, 3600,
				     t.tv_sec * 1000 + t.tv_nsec / 1000000, &evicted) < 0)
		die("cache");
}

static void fill_cache(void)
{
	char text[64], rr[3][160];
	struct name name;

	for (unsigned i = 0; i < CLEAN; i++) {
		clean_name(i, text);
		name_parse(text, strlen(text), &name);
		snprintf(rr[0], sizeof(rr[0]), "%s. 300 A 192.0.2.1", text);
		keep_answer(&name, (const char *const[]){rr[0], NULL});
		snprintf(text, sizeof(text), "www%u.shop%u.example", i, i % 3000);
		name_parse(text, strlen(text), &name);
		snprintf(rr[0], sizeof(rr[0]), "%s. 300 CNAME edge%u.cdn.example.", text, i % 100);
		snprintf(rr[1], sizeof(rr[1]), "edge%u.cdn.example. 60 A 192.0.2.1", i % 100);
		snprintf(rr[2], sizeof(rr[2]), "edge%u.cdn.example. 60 A 192.0.2.2", i % 100);
		keep_answer(&name, (const char *const[]){rr[0], rr[1], rr[2], NULL});
	}
}

/* ---- asking ---- */

enum scenario { CACHED, CHAINED, BLOCKED };
static const char *const scenarios[] = {"cached", "chained", "blocked"};
static const unsigned rcodes[] = {RCODE_NOERROR, RCODE_NOERROR, RCODE_NXDOMAIN};
static const unsigned answers[] = {1, 3, 0};

static size_t make_query(enum scenario scenario, unsigned i, uint16_t id, uint8_t out[QUERY_MAX])
{
	struct message_question q = {.type = TYPE_A, .rrclass = CLASS_IN};
	struct message_builder b;
	struct name name;
	char text[64];

	if (scenario == CACHED)
		clean_name(i, text);
	else if (scenario == CHAINED)
		snprintf(text, sizeof(text), "www%u.shop%u.example", i, i % 3000);
	else /* of the nine feeds that are no threat feeds */
		listed_name(i * 7 % LISTED - (i * 7 % FEEDS == FEEDS - 1), text);
	name_parse(text, strlen(text), &name);
	q.name = name.wire;
	q.length = name.length;
	message_build_start(&b, out, QUERY_MAX, id, MESSAGE_RD, &q);
	message_build_opt(&b, 1232, 0, false, 0, NULL, 0);
	return message_build_finish(&b);
}

static uint64_t turns_ns;

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void turn(void)
{
	uint64_t start = cpu_ns();
	CALLGRIND_TOGGLE_COLLECT;
	event_base_loop(base, EVLOOP_ONCE);
	CALLGRIND_TOGGLE_COLLECT;
	turns_ns += cpu_ns() - start;
}

/* One batch there and back. The replies come in order: there is one worker. */
static void ask_batch(enum scenario scenario, unsigned first)
{
	uint8_t data[QUERY_MAX * 4];

	for (unsigned i = first; i < first + BATCH; i++) {
		size_t size = make_query(scenario, i, (uint16_t)i, data);
		if (send(client, data, size, 0) != (ssize_t)size)
			die("send");
	}
	turn();
	for (unsigned i = first; i < first + BATCH; i++) {
		ssize_t n;
		while ((n = recv(client, data, sizeof(data), MSG_DONTWAIT)) < 0 && errno == EAGAIN)
			turn(); /* a timer came first */
		if (n < MESSAGE_HEADER_SIZE || (uint16_t)(data[0] << 8 | data[1]) != (uint16_t)i ||
		    (data[3] & MESSAGE_RCODE) != rcodes[scenario] || data[7] != answers[scenario]) {
			fprintf(stderr, "instructions: %s %u: not the answer\n",
				scenarios[scenario], i);
			exit(1);
		}
	}
	/* What the logger would have read. */
	struct ring_reader reader;
	ring_reader_open(shm_ring(w.shm, w.slot), &reader);
	ring_reader_skip(&reader);
}

static void run(enum scenario scenario)
{
	for (unsigned i = 0; i < CLEAN; i += BATCH)
		ask_batch(scenario, i);
}

int main(int argc, char **argv)
{
	char *plugins;

	if (argc != 2 || !(plugins = realpath(argv[1], NULL))) {
		fputs("usage: instructions PLUGIN-FOLDER\n", stderr);
		return 2;
	}
	if (!mkdtemp(folder) || chdir(folder) < 0)
		die(folder);
	atexit(tidy);
	make_set();
	struct generation *g = make_generation(plugins);
	make_worker(g);
	make_client(&g->config.listeners[0].endpoint);
	fill_cache();
	/* Once unmeasured: blocks are checked, popular answers marked, memory is there. */
	for (unsigned s = CACHED; s <= BLOCKED; s++)
		run((enum scenario)s);
	unsigned passes = RUNNING_ON_VALGRIND ? 1 : PASSES;
	uint64_t best[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
	CALLGRIND_START_INSTRUMENTATION;
	for (unsigned pass = 0; pass < passes; pass++)
		for (unsigned s = CACHED; s <= BLOCKED; s++) {
			turns_ns = 0;
			CALLGRIND_ZERO_STATS;
			run((enum scenario)s);
			CALLGRIND_DUMP_STATS_AT(scenarios[s]);
			best[s] = turns_ns < best[s] ? turns_ns : best[s];
		}
	CALLGRIND_STOP_INSTRUMENTATION;
	for (unsigned s = CACHED; s <= BLOCKED; s++)
		printf("%s %u %.0f\n", scenarios[s], CLEAN, (double)best[s] / CLEAN);
	uint64_t hits = shm_metric_sum(w.shm, METRIC_CACHE_HIT);
	uint64_t blocks = shm_metric_sum(w.shm, METRIC_VERDICT_BLOCK);
	if (hits != (passes + 1) * 2 * CLEAN || blocks != (passes + 1) * CLEAN) {
		fprintf(stderr, "instructions: %llu hits, %llu blocks\n", (unsigned long long)hits,
			(unsigned long long)blocks);
		return 1;
	}
	path_fini(&w);
	return 0;
}
