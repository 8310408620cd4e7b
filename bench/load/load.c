/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A DNS load generator over UDP: batches of 32, several source sockets, open loop at a fixed rate
 * (latency counts from when a query was due, so a stalled server cannot hide) or closed loop with a
 * window. Every answer's id and question are checked. Prints one JSON object. A program of its own:
 * it shares no code with the server that it measures.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH	    32
#define SOCKETS_MAX 1024
#define QUERY_MAX   512
#define ANSWER_MAX  4096
#define LOST_NS	    1000000000ull
#define BUCKETS	    (64 * 32) /* 32 linear steps a power of two of nanoseconds */

struct packet {
	uint16_t size;
	uint8_t data[QUERY_MAX];
};

struct flight {
	uint64_t due_ns; /* 0: free */
	uint32_t query;
};

struct source {
	int fd;
	uint16_t next_id;
	struct flight flights[65536];
};

static struct packet *queries;
static size_t query_count;
static struct source *sources;
static size_t source_count = 4;
static uint64_t histogram[BUCKETS];
static uint64_t sent, answered, lost, mismatched, outstanding, rcodes[16];

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(2);
}

static unsigned bucket_of(uint64_t ns)
{
	if (ns < 32)
		return (unsigned)ns;
	unsigned power = 63 - (unsigned)__builtin_clzll(ns);
	return (power - 4) * 32 + (unsigned)(ns >> (power - 5) & 31);
}

static double bucket_us(unsigned bucket)
{
	if (bucket < 32)
		return bucket / 1000.0;
	unsigned power = bucket / 32 + 4;
	return (double)((uint64_t)(32 + bucket % 32) << (power - 5)) / 1000.0;
}

static double percentile(double p)
{
	uint64_t want = (uint64_t)((double)answered * p), seen = 0;
	for (unsigned i = 0; i < BUCKETS; i++) {
		seen += histogram[i];
		if (seen > want)
			return bucket_us(i);
	}
	return 0;
}

static uint16_t type_number(const char *word)
{
	static const struct {
		const char *word;
		uint16_t number;
	} types[] = {{"A", 1},	    {"NS", 2},	  {"CNAME", 5}, {"SOA", 6},  {"PTR", 12},
		     {"MX", 15},    {"TXT", 16},  {"AAAA", 28}, {"SRV", 33}, {"SVCB", 64},
		     {"HTTPS", 65}, {"CAA", 257}, {"ANY", 255}};
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strcasecmp(types[i].word, word) == 0)
			return types[i].number;
	return 1;
}

/* "name [type]" to a query with RD and an OPT of 1232 octets. False for what is no name. */
static bool build(const char *name, uint16_t type, struct packet *out)
{
	static const uint8_t opt[] = {0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0};
	uint8_t *p = out->data;
	memset(p, 0, 12);
	p[2] = 1;
	p[5] = 1;
	p[11] = 1;
	size_t at = 12;
	while (*name) {
		size_t n = strcspn(name, ".");
		if (n == 0 || n > 63 || at + n + 2 > 12 + 254)
			return false;
		p[at++] = (uint8_t)n;
		memcpy(p + at, name, n);
		at += n;
		name += n + (name[n] == '.');
	}
	p[at++] = 0;
	p[at++] = (uint8_t)(type >> 8);
	p[at++] = (uint8_t)type;
	p[at++] = 0;
	p[at++] = 1;
	memcpy(p + at, opt, sizeof opt);
	out->size = (uint16_t)(at + sizeof opt);
	return true;
}

static void load_file(const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "r") : stdin;
	if (!f)
		die(path);
	char line[1200], name[1024], type[32];
	size_t room = 0;
	while (fgets(line, sizeof line, f)) {
		int n = sscanf(line, "%1023s %31s", name, type);
		if (n < 1)
			continue;
		if (query_count == room) {
			room = room ? room * 2 : 4096;
			queries = realloc(queries, room * sizeof *queries);
			if (!queries)
				die("memory");
		}
		if (build(name, n == 2 ? type_number(type) : 1, &queries[query_count]))
			query_count++;
	}
	if (f != stdin)
		fclose(f);
	if (!query_count) {
		errno = EINVAL;
		die("no names in the file");
	}
}

static void open_sources(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST}, *info;
	if (getaddrinfo(host, port, &hints, &info) != 0) {
		errno = EINVAL;
		die("server address");
	}
	sources = calloc(source_count, sizeof *sources);
	if (!sources)
		die("memory");
	for (size_t i = 0; i < source_count; i++) {
		int fd = socket(info->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (fd < 0 || connect(fd, info->ai_addr, info->ai_addrlen) < 0)
			die("socket");
		int octets = 4 << 20;
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &octets, sizeof octets);
		sources[i].fd = fd;
		sources[i].next_id = (uint16_t)(i * 7919);
	}
	freeaddrinfo(info);
}

/* Send `count` queries (at most BATCH) from one source; those due at `due`. Returns how many went.
 */
static unsigned send_batch(struct source *s, unsigned count, size_t *next, uint64_t due,
			   uint64_t step)
{
	struct mmsghdr messages[BATCH];
	struct iovec vectors[BATCH];
	uint16_t ids[BATCH];
	uint32_t which[BATCH];
	unsigned n = 0;

	memset(messages, 0, sizeof messages);
	for (; n < count; n++) {
		uint16_t id = s->next_id++;
		if (s->flights[id].due_ns) { /* never answered: its id comes round again */
			lost++;
			outstanding--;
			s->flights[id].due_ns = 0;
		}
		which[n] = (uint32_t)((*next + n) % query_count);
		struct packet *q = &queries[which[n]];
		/* Equal names in one batch share the packet, so the id goes into a copy. */
		static uint8_t copies[BATCH][QUERY_MAX];
		memcpy(copies[n], q->data, q->size);
		copies[n][0] = (uint8_t)(id >> 8);
		copies[n][1] = (uint8_t)id;
		ids[n] = id;
		vectors[n] = (struct iovec){copies[n], q->size};
		messages[n].msg_hdr.msg_iov = &vectors[n];
		messages[n].msg_hdr.msg_iovlen = 1;
	}
	int done = sendmmsg(s->fd, messages, n, 0);
	if (done < 0)
		done = 0;
	for (int i = 0; i < done; i++) {
		s->flights[ids[i]] = (struct flight){due + (uint64_t)i * step, which[i]};
		outstanding++;
		sent++;
	}
	*next += (size_t)done;
	s->next_id = (uint16_t)(s->next_id - (n - (unsigned)done));
	return (unsigned)done;
}

static void receive(struct source *s)
{
	static uint8_t buffers[BATCH][ANSWER_MAX];
	struct mmsghdr messages[BATCH];
	struct iovec vectors[BATCH];

	memset(messages, 0, sizeof messages);
	for (unsigned i = 0; i < BATCH; i++) {
		vectors[i] = (struct iovec){buffers[i], ANSWER_MAX};
		messages[i].msg_hdr.msg_iov = &vectors[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	int n;
	while ((n = recvmmsg(s->fd, messages, BATCH, MSG_DONTWAIT, NULL)) > 0) {
		uint64_t now = now_ns();
		for (int i = 0; i < n; i++) {
			const uint8_t *p = buffers[i];
			uint16_t id = (uint16_t)(p[0] << 8 | p[1]);
			struct flight *f = &s->flights[id];
			const struct packet *q = &queries[f->query];
			size_t question = (size_t)q->size - 12 - 11;
			if (messages[i].msg_len < 12 + question || !f->due_ns ||
			    memcmp(p + 12, q->data + 12, question) != 0) {
				mismatched++;
				continue;
			}
			histogram[bucket_of(now > f->due_ns ? now - f->due_ns : 0)]++;
			rcodes[p[3] & 15]++;
			f->due_ns = 0;
			outstanding--;
			answered++;
		}
		if (n < BATCH)
			break;
	}
}

static void expire(uint64_t now)
{
	for (size_t i = 0; i < source_count; i++)
		for (unsigned id = 0; id < 65536; id++) {
			struct flight *f = &sources[i].flights[id];
			if (f->due_ns && now > f->due_ns + LOST_NS) {
				f->due_ns = 0;
				lost++;
				outstanding--;
			}
		}
}

static void run(double seconds, double rate, uint64_t window)
{
	struct pollfd polls[SOCKETS_MAX];
	uint64_t start = now_ns(), end = start + (uint64_t)(seconds * 1e9), next_expiry = start;
	uint64_t step = rate > 0 ? (uint64_t)(1e9 / rate) : 0;
	size_t next = 0, turn = 0;

	for (size_t i = 0; i < source_count; i++)
		polls[i] = (struct pollfd){.fd = sources[i].fd, .events = POLLIN};
	for (uint64_t now = start;; now = now_ns()) {
		bool sending = now < end;
		if (!sending && (!outstanding || now > end + LOST_NS))
			break;
		uint64_t room = 0, due = now;
		if (sending && rate > 0) {
			uint64_t wanted = (uint64_t)((double)(now - start) * rate / 1e9);
			room = wanted > sent ? wanted - sent : 0;
			due = start + (uint64_t)((double)sent * 1e9 / rate);
		} else if (sending && outstanding < window) {
			room = window - outstanding;
		}
		while (room) {
			unsigned count = room > BATCH ? BATCH : (unsigned)room;
			unsigned done = send_batch(&sources[turn++ % source_count], count, &next,
						   due, step);
			room -= done;
			due += done * step;
			if (done < count)
				break;
		}
		struct timespec wait = {0, 200000};
		if (rate > 0 && step > wait.tv_nsec * 5ull)
			wait.tv_nsec = (long)step / 4;
		if (ppoll(polls, source_count, &wait, NULL) > 0)
			for (size_t i = 0; i < source_count; i++)
				if (polls[i].revents)
					receive(&sources[i]);
		if (now > next_expiry) {
			expire(now);
			next_expiry = now + 500000000ull;
		}
	}
	for (size_t i = 0; i < source_count; i++)
		receive(&sources[i]);
	lost += outstanding;
}

static void usage(void)
{
	fputs("usage: load -s ADDRESS -p PORT -f FILE [-d SECONDS] [-r QUERIES/S | -w WINDOW] "
	      "[-c SOCKETS]\n  FILE: `name [type]` a line; without -r a closed loop of WINDOW "
	      "(100) in flight\n",
	      stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	const char *host = NULL, *port = "53", *file = NULL;
	double seconds = 5, rate = 0;
	uint64_t window = 100;

	for (int o; (o = getopt(argc, argv, "s:p:f:d:r:w:c:")) != -1;) {
		switch (o) {
		case 's':
			host = optarg;
			break;
		case 'p':
			port = optarg;
			break;
		case 'f':
			file = optarg;
			break;
		case 'd':
			seconds = atof(optarg);
			break;
		case 'r':
			rate = atof(optarg);
			break;
		case 'w':
			window = strtoull(optarg, NULL, 10);
			break;
		case 'c':
			source_count = strtoull(optarg, NULL, 10);
			break;
		default:
			usage();
		}
	}
	if (!host || !file || seconds <= 0 || !window || !source_count ||
	    source_count > SOCKETS_MAX)
		usage();
	load_file(file);
	open_sources(host, port);
	run(seconds, rate, window);
	printf("{\"sent\":%llu,\"answered\":%llu,\"lost\":%llu,\"mismatched\":%llu,"
	       "\"queries_per_second\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,"
	       "\"noerror\":%llu,\"servfail\":%llu,\"nxdomain\":%llu,\"refused\":%llu}\n",
	       (unsigned long long)sent, (unsigned long long)answered, (unsigned long long)lost,
	       (unsigned long long)mismatched, (double)answered / seconds, percentile(0.5),
	       percentile(0.99), percentile(0.999), (unsigned long long)rcodes[0],
	       (unsigned long long)rcodes[2], (unsigned long long)rcodes[3],
	       (unsigned long long)rcodes[5]);
	return 0;
}
