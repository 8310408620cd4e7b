/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ratelimit: a token bucket per client network, shared by all workers. Worker process. Owns one
 * region of shared memory of fixed size:
 *
 *   seed | sets of four buckets, one cache line each: {key, when the bucket will be full again}
 *
 * A bucket is one moment (GCRA, "virtual scheduling", ITU-T I.371): every query moves it on by
 * 1/rate; a query that would move it further than `burst` of these into the future is over the
 * limit, and moves nothing, so that a limit ends although the retries go on. One 64-bit word,
 * changed by compare-and-swap: no lock, no torn state.
 *
 * TCP has buckets of its own: a flood with a forged address cannot use up what the real client
 * needs to come back after a truncated reply. Invariant: memory is fixed whatever comes; a client
 * that is over its limit is the last to be evicted.
 */
#include <baleen/plugin.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define WAYS	  4
#define TRIES_MAX 8 /* of a compare-and-swap that others win */

enum { METRIC_DROPPED, METRIC_SLIPPED, METRIC_REFUSED, METRIC_EXEMPT, METRIC_EVICTED };

struct options {
	int64_t rate;
	int64_t burst;
	int64_t slip;
	int64_t clients;
	int64_t v4_bits;
	int64_t v6_bits;
	int action;
	struct baleen_prefixes exempt;

	/* By configure. */
	int64_t step_us;  /* what one query costs */
	int64_t depth_us; /* what a full bucket holds */
};

struct bucket {
	_Atomic uint64_t key; /* 0: free */
	_Atomic int64_t full_us;
};

struct set {
	struct bucket at[WAYS];
} __attribute__((aligned(64)));

struct table {
	_Atomic uint64_t seed;
	uint8_t reserved[56];
	struct set sets[];
};

struct worker {
	struct table *table;
	uint64_t seed;
	uint64_t set_count;
	uint64_t over; /* to slip one in so many */
};

static const char *const actions[] = {"drop", "refuse", NULL};
#define ACTION_REFUSE 1

/* clang-format off */
static const struct baleen_option options[] = {
	{"queries-per-second", BALEEN_INTEGER, offsetof(struct options, rate), "200", 1, 1000000, NULL,
	 "what a client may ask in the long run"},
	{"burst", BALEEN_INTEGER, offsetof(struct options, burst), NULL, 0, 10000000, NULL,
	 "what it may ask at once; default: twice queries-per-second"},
	{"action", BALEEN_CHOICE, offsetof(struct options, action), "drop", 0, 0, actions,
	 "what is over the limit: drop or refuse; over TCP always refuse"},
	{"slip", BALEEN_INTEGER, offsetof(struct options, slip), "2", 0, 100, NULL,
	 "with drop: one in so many gets a truncated reply, so that real clients return over TCP; 0: none"},
	{"exempt", BALEEN_PREFIXES, offsetof(struct options, exempt), NULL, 0, 0, NULL,
	 "clients without a limit"},
	{"ipv4-prefix", BALEEN_INTEGER, offsetof(struct options, v4_bits), "32", 8, 32, NULL,
	 "IPv4 clients that agree in so many bits share a limit"},
	{"ipv6-prefix", BALEEN_INTEGER, offsetof(struct options, v6_bits), "56", 16, 128, NULL,
	 "IPv6 clients that agree in so many bits share a limit"},
	{"clients", BALEEN_INTEGER, offsetof(struct options, clients), "65536", 1024, 2097152, NULL,
	 "how many are remembered, 16 octets each; not per group"},
	{0},
};
/* clang-format on */

static const struct baleen_metric metrics[] = {
	[METRIC_DROPPED] = {"dropped", BALEEN_COUNTER, "Queries over the limit that got no reply"},
	[METRIC_SLIPPED] = {"slipped", BALEEN_COUNTER,
			    "Queries over the limit that got a truncated reply"},
	[METRIC_REFUSED] = {"refused", BALEEN_COUNTER, "Queries over the limit that got REFUSED"},
	[METRIC_EXEMPT] = {"exempt", BALEEN_COUNTER, "Queries of exempt clients"},
	[METRIC_EVICTED] = {"evicted", BALEEN_COUNTER,
			    "Clients forgotten while their bucket was not full"},
	{0},
};

static int configure(const struct baleen_host *host, void *config, char *error, size_t error_size)
{
	struct options *o = config;

	(void)host;
	if (!o->burst)
		o->burst = 2 * o->rate;
	if (o->burst < o->rate) {
		snprintf(error, error_size,
			 "burst (%lld) is below queries-per-second (%lld): nobody could reach that",
			 (long long)o->burst, (long long)o->rate);
		return -1;
	}
	o->step_us = 1000000 / o->rate;
	o->depth_us = o->step_us * o->burst;
	return 0;
}

static int start(const struct baleen_host *host, const void *config, void *worker, char *error,
		 size_t error_size)
{
	const struct options *o = config;
	struct worker *w = worker;
	uint64_t none = 0, seed = 0;

	w->set_count = ((uint64_t)o->clients + WAYS - 1) / WAYS;
	w->table = host->region(host, "buckets",
				sizeof(struct table) + w->set_count * sizeof(struct set));
	if (!w->table) {
		snprintf(error, error_size, "no shared memory for %lld clients",
			 (long long)o->clients);
		return -ENOMEM;
	}
	/* The first worker seeds; without a seed outsiders could choose who shares a set. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = (uintptr_t)w->table ^ 0x9e3779b97f4a7c15u;
	atomic_compare_exchange_strong(&w->table->seed, &none, seed | 1);
	w->seed = atomic_load(&w->table->seed);
	return 0;
}

/* ---- who ---- */

static bool is_v4(const uint8_t *a)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	return memcmp(a, mapped, sizeof(mapped)) == 0;
}

static bool in_prefix(const struct baleen_prefix *p, const uint8_t *a)
{
	unsigned whole = p->bits / 8, rest = p->bits % 8;

	if (memcmp(p->octets, a, whole) != 0)
		return false;
	return !rest || ((p->octets[whole] ^ a[whole]) >> (8 - rest)) == 0;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* The client's network and transport, as a number that is never 0. */
static uint64_t key_of(const struct options *o, const struct worker *w,
		       const struct baleen_query *q)
{
	unsigned bits = is_v4(q->client) ? 96 + (unsigned)o->v4_bits : (unsigned)o->v6_bits;
	uint8_t network[16] = {0};
	uint64_t half[2];

	memcpy(network, q->client, bits / 8);
	if (bits % 8)
		network[bits / 8] = q->client[bits / 8] & (uint8_t)(0xff00 >> bits % 8);
	memcpy(half, network, sizeof(half));
	uint64_t key = mix(mix(half[0] ^ w->seed) ^ half[1] ^ q->transport);
	return key ? key : 1;
}

/* ---- how much ---- */

/* What another rate or a dying worker left: a moment that no bucket of ours could reach. */
static int64_t sane(const struct options *o, int64_t full_us, int64_t now_us)
{
	return full_us < now_us || full_us > now_us + o->depth_us + o->step_us ? now_us : full_us;
}

/* Its bucket; taken over from the client that is nearest to a full one, if need be. */
static struct bucket *find(const struct baleen_call *call, const struct worker *w, uint64_t key,
			   int64_t now_us)
{
	struct set *set = &w->table->sets[key % w->set_count];
	struct bucket *best = NULL;
	int64_t best_us = 0;

	for (unsigned i = 0; i < WAYS; i++)
		if (atomic_load_explicit(&set->at[i].key, memory_order_relaxed) == key)
			return &set->at[i];
	if (call->dry_run)
		return NULL;
	for (unsigned i = 0; i < WAYS; i++) {
		struct bucket *b = &set->at[i];
		int64_t full = atomic_load_explicit(&b->full_us, memory_order_relaxed);
		if (!atomic_load_explicit(&b->key, memory_order_relaxed))
			full = INT64_MIN;
		if (!best || full < best_us) {
			best = b;
			best_us = full;
		}
	}
	if (best_us > now_us)
		call->host->count(call->host, METRIC_EVICTED, 1);
	/* Two workers at once: one client more or less starts with a full bucket. */
	atomic_store_explicit(&best->key, key, memory_order_relaxed);
	atomic_store_explicit(&best->full_us, now_us, memory_order_relaxed);
	return best;
}

/* Take a token; false: there is none. */
static bool take(const struct options *o, struct bucket *b, int64_t now_us, bool spend)
{
	int64_t was = atomic_load_explicit(&b->full_us, memory_order_relaxed);

	for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
		int64_t next = sane(o, was, now_us) + o->step_us;
		if (next - now_us > o->depth_us)
			return false;
		if (!spend || atomic_compare_exchange_weak_explicit(&b->full_us, &was, next,
								    memory_order_relaxed,
								    memory_order_relaxed))
			return true;
	}
	return true; /* fought over by all workers at once: one token is not worth more */
}

static enum baleen_verdict over_limit(struct baleen_call *call, const struct options *o,
				      struct worker *w)
{
	enum baleen_verdict verdict = BALEEN_DROP;
	uint32_t metric = METRIC_DROPPED;

	/* TCP proves the address: an honest no costs nobody else anything. */
	if (o->action == ACTION_REFUSE || call->query->transport == BALEEN_TCP) {
		verdict = BALEEN_REFUSE;
		metric = METRIC_REFUSED;
	} else if (o->slip && !call->dry_run && w->over++ % (uint64_t)o->slip == 0) {
		verdict = BALEEN_TRUNCATE;
		metric = METRIC_SLIPPED;
	}
	if (!call->dry_run)
		call->host->count(call->host, metric, 1);
	call->why->text = "rate limit";
	return verdict;
}

static enum baleen_verdict on_client(struct baleen_call *call)
{
	const struct options *o = call->config;
	struct worker *w = call->worker;
	int64_t now_us = call->query->monotonic_ms * 1000;

	for (size_t i = 0; i < o->exempt.count; i++) {
		if (!in_prefix(&o->exempt.items[i], call->query->client))
			continue;
		if (!call->dry_run)
			call->host->count(call->host, METRIC_EXEMPT, 1);
		return BALEEN_PASS;
	}
	struct bucket *b = find(call, w, key_of(o, w, call->query), now_us);
	if (!b || take(o, b, now_us, !call->dry_run))
		return BALEEN_PASS;
	return over_limit(call, o, w);
}

static const struct baleen_plugin plugin = {
	.size = sizeof(plugin),
	.major = BALEEN_PLUGIN_MAJOR,
	.minor = BALEEN_PLUGIN_MINOR,
	.name = "ratelimit",
	.version = "1.0",
	.summary = "Limit the queries of each client network, over all workers",
	.kind = BALEEN_GUARD,
	.options = options,
	.config_size = sizeof(struct options),
	.metrics = metrics,
	.worker_size = sizeof(struct worker),
	.configure = configure,
	.start = start,
	.on_client = on_client,
};

const struct baleen_plugin *baleen_plugin_entry(const struct baleen_host *host)
{
	(void)host;
	return &plugin;
}
