/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `status` and `stats` as JSON, from shared memory and the generation's tables. Admin process;
 * reads only. Invariant: whatever stands in shared memory is shown, never followed.
 */
#include "base/clock.h"
#include "core/chain/chain.h"
#include "core/dns/cache.h"
#include "core/metrics.h"
#include "core/process/admin.h"
#include "core/process/process_table.h"
#include "feeds/state.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* A process that was restarted, or a sink that lost something, this long ago is news. */
#define STATUS_RECENT_MS 60000
#define STATUS_DISK_LOW	 ((uint64_t)1 << 20)

static void add_number(cJSON *o, const char *key, uint64_t n)
{
	cJSON_AddNumberToObject(o, key, (double)n);
}

static void add_time(cJSON *o, const char *key, int64_t wall_us)
{
	char text[32];
	time_t t = (time_t)(wall_us / 1000000);
	struct tm tm;
	if (!gmtime_r(&t, &tm))
		return;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	cJSON_AddStringToObject(o, key, text);
}

/* ---- processes ---- */

static cJSON *status_process(const struct shm_process *p, int64_t now_us)
{
	cJSON *o = cJSON_CreateObject();
	uint32_t role = p->role <= ROLE_ADMIN ? p->role : ROLE_NONE;
	uint32_t state = p->state <= PROCESS_DRAINING ? p->state : PROCESS_STARTING;

	cJSON_AddStringToObject(o, "role", process_role_words[role]);
	if (role == ROLE_WORKER)
		add_number(o, "worker", p->index);
	add_number(o, "pid", p->pid);
	add_number(o, "generation", p->generation);
	cJSON_AddStringToObject(o, "state", process_state_words[state]);
	add_number(o, "restarts", p->restarts);
	add_number(o, "uptime_s",
		   now_us > p->started_us ? (uint64_t)(now_us - p->started_us) / 1000000 : 0);
	return o;
}

static cJSON *status_processes(struct admin *a, cJSON *degraded, int64_t *started_us)
{
	struct shm_process *rows = shm_processes(a->shm);
	cJSON *list = cJSON_CreateArray();
	int64_t now = clock_wall_us();
	char text[160], who[32];

	for (unsigned i = 0; i < SHM_PROCESSES_MAX; i++) {
		struct shm_process p;
		memcpy(&p, &rows[i], sizeof(p));
		if (p.pid == 0 || p.role == ROLE_NONE || p.role > ROLE_ADMIN)
			continue;
		cJSON_AddItemToArray(list, status_process(&p, now));
		if (p.role == ROLE_SUPERVISOR)
			*started_us = p.started_us;
		if (p.restarts == 0 || now - p.started_us > STATUS_RECENT_MS * 1000LL)
			continue;
		if (p.role == ROLE_WORKER)
			snprintf(who, sizeof(who), "worker %u", p.index);
		else
			snprintf(who, sizeof(who), "%s", process_role_words[p.role]);
		snprintf(text, sizeof(text), "%s: restarted %lld s ago (%u in all)", who,
			 (long long)(now - p.started_us) / 1000000, (unsigned)p.restarts);
		cJSON_AddItemToArray(degraded, cJSON_CreateString(text));
	}
	return list;
}

/* ---- plugins and feeds ---- */

void admin_status_tick(evutil_socket_t fd, short what, void *context)
{
	struct admin *a = context;
	const struct chain *chain = a->generation->chain;
	char name[SHM_METRIC_NAME];
	(void)fd;

	for (size_t i = 0; i < chain_count(chain); i++) {
		if (chain_plugin(chain, i)->kind != BALEEN_SINK)
			continue;
		snprintf(name, sizeof(name), "plugin_lost_events_total{plugin=\"%s\"}",
			 chain_instance(chain, i));
		unsigned metric = shm_metric(a->shm, name);
		uint64_t lost = metric < SHM_METRICS_MAX ? shm_metric_sum(a->shm, metric) : 0;
		if (lost > a->sinks[i].lost && what)
			a->sinks[i].lost_ms = clock_monotonic_ms();
		a->sinks[i].lost = lost;
	}
}

static void status_sink(struct admin *a, size_t i, cJSON *o, cJSON *degraded)
{
	char text[160];
	add_number(o, "lost", a->sinks[i].lost);
	if (a->sinks[i].lost_ms == 0 ||
	    clock_monotonic_ms() - a->sinks[i].lost_ms > STATUS_RECENT_MS)
		return;
	snprintf(text, sizeof(text), "plugin %s: events are being lost, %llu so far",
		 chain_instance(a->generation->chain, i), (unsigned long long)a->sinks[i].lost);
	cJSON_AddItemToArray(degraded, cJSON_CreateString(text));
}

static const char *const kind_words[] = {"filter", "guard", "sink"};

static cJSON *status_plugins(struct admin *a, cJSON *degraded)
{
	const struct generation *g = a->generation;
	const struct shm_breaker *breakers = shm_breakers(a->shm, g->number);
	cJSON *list = cJSON_CreateArray();
	int64_t now = clock_monotonic_ms();
	char text[256];

	for (size_t i = 0; i < chain_count(g->chain); i++) {
		const struct baleen_plugin *p = chain_plugin(g->chain, i);
		const struct config_plugin *entry = &g->config.chain[i];
		bool out = breakers[i].open && breakers[i].retry_ms > now;
		cJSON *o = cJSON_CreateObject();
		cJSON_AddStringToObject(o, "name", chain_instance(g->chain, i));
		cJSON_AddStringToObject(o, "plugin", p->name);
		cJSON_AddStringToObject(o, "version", p->version ? p->version : "");
		cJSON_AddStringToObject(o, "kind",
					kind_words[p->kind <= BALEEN_SINK ? p->kind : 0]);
		cJSON_AddStringToObject(o, "mode",
					chain_is_monitor(g->chain, i) ? "monitor" : "enforce");
		cJSON_AddStringToObject(o, "state", out ? "out of the chain" : "ok");
		add_number(o, "crashes", breakers[i].crashes);
		cJSON_AddItemToArray(list, o);
		if (p->kind == BALEEN_SINK)
			status_sink(a, i, o, degraded);
		if (!out)
			continue;
		snprintf(text, sizeof(text),
			 "plugin %s: out of the chain after %u crashes, back in %lld s; until then "
			 "its queries %s",
			 chain_instance(g->chain, i), (unsigned)breakers[i].crashes,
			 (long long)(breakers[i].retry_ms - now) / 1000,
			 entry->on_failure == ON_FAILURE_CLOSED ? "get SERVFAIL" : "pass it by");
		cJSON_AddItemToArray(degraded, cJSON_CreateString(text));
	}
	return list;
}

/* Only feeds that are subscribed: others' files may still lie there. */
static cJSON *status_feeds(struct admin *a, cJSON *degraded)
{
	const struct feeds *feeds = &a->generation->config.feeds;
	cJSON *list = cJSON_CreateArray();
	char text[640];

	for (size_t i = 0; i < feeds->count; i++) {
		cJSON *o = state_json(".", feeds->items[i].name);
		if (!o) {
			o = cJSON_CreateObject();
			cJSON_AddStringToObject(o, "name", feeds->items[i].name);
			cJSON_AddStringToObject(o, "status", "pending");
		}
		const char *status = cJSON_GetStringValue(cJSON_GetObjectItem(o, "status"));
		const char *error = cJSON_GetStringValue(cJSON_GetObjectItem(o, "error"));
		if (status &&
		    (strcmp(status, "failed") == 0 || strcmp(status, "quarantined") == 0)) {
			snprintf(text, sizeof(text), "feed %s: %s%s%.512s", feeds->items[i].name,
				 status, error && *error ? ": " : "", error ? error : "");
			cJSON_AddItemToArray(degraded, cJSON_CreateString(text));
		}
		cJSON_AddItemToArray(list, o);
	}
	return list;
}

/* ---- status ---- */

/* What a full disk stops cannot say so itself: it would have to be written. */
static void status_disk(cJSON *degraded)
{
	struct statvfs disk;
	char text[128];

	if (statvfs(".", &disk) != 0)
		return;
	uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
	if (left >= STATUS_DISK_LOW)
		return;
	snprintf(text, sizeof(text),
		 "the state folder's disk is full (%llu KiB left): feeds and logs stay behind",
		 (unsigned long long)left / 1024);
	cJSON_AddItemToArray(degraded, cJSON_CreateString(text));
}

bool admin_is_ready(struct admin *a, char *text, size_t size)
{
	struct shm_process *rows = shm_processes(a->shm);
	unsigned serving = 0, wanted = a->generation->config.workers;

	for (unsigned i = 0; i < SHM_PROCESSES_MAX; i++)
		if (rows[i].pid && rows[i].role == ROLE_WORKER &&
		    rows[i].generation == a->generation->number && rows[i].state == PROCESS_SERVING)
			serving++;
	if (serving == 0)
		snprintf(text, size, "no worker serves");
	else if (atomic_load(shm_set_number(a->shm)) == 0)
		snprintf(text, size, "no domain set is published yet");
	else
		snprintf(text, size, "%u of %u workers serve", serving, wanted);
	return serving > 0 && atomic_load(shm_set_number(a->shm)) != 0;
}

static cJSON *status_listeners(const struct config *config)
{
	cJSON *list = cJSON_CreateArray();
	for (size_t i = 0; i < config->listener_count; i++) {
		char text[ENDPOINT_TEXT_MAX];
		endpoint_format(&config->listeners[i].endpoint, text);
		cJSON_AddItemToArray(list, cJSON_CreateString(text));
	}
	return list;
}

cJSON *admin_status(struct admin *a)
{
	const struct config *config = &a->generation->config;
	cJSON *o = cJSON_CreateObject(), *degraded = cJSON_CreateArray();
	int64_t started_us = a->started_us;
	char text[128];

	if (!admin_is_ready(a, text, sizeof(text)))
		cJSON_AddItemToArray(degraded, cJSON_CreateString(text));
	status_disk(degraded);
	cJSON *processes = status_processes(a, degraded, &started_us);
	cJSON *plugins = status_plugins(a, degraded), *feeds = status_feeds(a, degraded);

	cJSON_AddBoolToObject(o, "ok", true);
	cJSON_AddStringToObject(o, "version", BALEEN_VERSION);
	cJSON_AddStringToObject(o, "configuration", config->path);
	cJSON_AddStringToObject(o, "state_folder", config->state);
	add_number(o, "generation", a->generation->number);
	add_number(o, "set", atomic_load(shm_set_number(a->shm)));
	add_time(o, "started", started_us);
	add_number(o, "uptime_s", (uint64_t)(clock_wall_us() - started_us) / 1000000);
	add_number(o, "workers", config->workers);
	cJSON_AddItemToObject(o, "listen", status_listeners(config));
	cJSON_AddItemToObject(o, "degraded", degraded);
	cJSON_AddItemToObject(o, "processes", processes);
	cJSON_AddItemToObject(o, "plugins", plugins);
	cJSON_AddItemToObject(o, "feeds", feeds);
	return o;
}

/* ---- stats ---- */

struct stats_row {
	const char *key;
	enum metric metric;
};

static uint64_t stats_add(struct admin *a, cJSON *o, const struct stats_row *rows, size_t count)
{
	uint64_t total = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t n = shm_metric_sum(a->shm, rows[i].metric);
		add_number(o, rows[i].key, n);
		total += n;
	}
	return total;
}

#define STATS(a, o, rows) stats_add(a, o, rows, sizeof(rows) / sizeof((rows)[0]))

static const struct stats_row stats_queries[] = {
	{"udp", METRIC_QUERIES_UDP},
	{"tcp", METRIC_QUERIES_TCP},
};
static const struct stats_row stats_verdicts[] = {
	{"allow", METRIC_VERDICT_ALLOW},       {"block", METRIC_VERDICT_BLOCK},
	{"answer", METRIC_VERDICT_ANSWER},     {"rewrite", METRIC_VERDICT_REWRITE},
	{"refuse", METRIC_VERDICT_REFUSE},     {"drop", METRIC_VERDICT_DROP},
	{"truncate", METRIC_VERDICT_TRUNCATE}, {"error", METRIC_VERDICT_ERROR},
};
static const struct stats_row stats_cache[] = {
	{"hit", METRIC_CACHE_HIT},	   {"miss", METRIC_CACHE_MISS},
	{"stale", METRIC_CACHE_STALE},	   {"inserts", METRIC_CACHE_INSERT},
	{"evictions", METRIC_CACHE_EVICT}, {"joined", METRIC_JOINED},
};
static const struct stats_row stats_upstream[] = {
	{"queries", METRIC_UPSTREAM_QUERIES},	{"retries", METRIC_UPSTREAM_RETRIES},
	{"timeouts", METRIC_UPSTREAM_TIMEOUTS}, {"rejected", METRIC_UPSTREAM_REJECTED},
	{"tcp", METRIC_UPSTREAM_TCP},		{"failed", METRIC_UPSTREAM_FAILED},
};
static const struct stats_row stats_drops[] = {
	{"malformed", METRIC_MALFORMED},	   {"ignored", METRIC_IGNORED},
	{"acl_refused", METRIC_ACL_REFUSED},	   {"send_failed", METRIC_SEND_FAILED},
	{"tcp_refused", METRIC_TCP_REFUSED},	   {"shed", METRIC_PARKED_SHED},
	{"query_of_death", METRIC_QUERY_OF_DEATH}, {"chain_failures", METRIC_CHAIN_FAILURES},
	{"set_damaged", METRIC_SET_DAMAGED},
};

/* The value of one label in a metric's name, or false. */
static bool label_of(const char *name, const char *label, char *out, size_t size)
{
	char want[32];
	snprintf(want, sizeof(want), "%s=\"", label);
	const char *at = strstr(name, want);
	if (!at)
		return false;
	at += strlen(want);
	size_t n = strcspn(at, "\"");
	if (n >= size)
		return false;
	memcpy(out, at, n);
	out[n] = '\0';
	return true;
}

static bool metric_is(const char *name, const char *base)
{
	size_t n = strlen(base);
	return strncmp(name, base, n) == 0 && name[n] == '{';
}

/* Feeds, groups and plugins: their counters have the name as a label. */
static void stats_labelled(struct admin *a, cJSON *feeds, cJSON *groups, cJSON *plugins)
{
	unsigned count = shm_metric_count(a->shm);
	for (unsigned i = 0; i < count; i++) {
		const char *name = shm_metric_name(a->shm, i);
		char key[SHM_METRIC_NAME], verdict[32];
		uint64_t n = shm_metric_sum(a->shm, i);
		if (metric_is(name, "feed_hits_total") && label_of(name, "feed", key, sizeof(key)))
			add_number(feeds, key, n);
		if (metric_is(name, "group_queries_total") &&
		    label_of(name, "group", key, sizeof(key)))
			add_number(groups, key, n);
		if (!metric_is(name, "plugin_verdicts_total") ||
		    !label_of(name, "plugin", key, sizeof(key)) ||
		    !label_of(name, "verdict", verdict, sizeof(verdict)))
			continue;
		cJSON *o = cJSON_GetObjectItemCaseSensitive(plugins, key);
		if (!o)
			o = cJSON_AddObjectToObject(plugins, key);
		add_number(o, verdict, n);
	}
}

cJSON *admin_stats(struct admin *a)
{
	cJSON *o = cJSON_CreateObject();
	struct cache_stats cache;
	size_t size;
	void *memory = shm_cache(a->shm, &size);

	cJSON_AddBoolToObject(o, "ok", true);
	cJSON *queries = cJSON_AddObjectToObject(o, "queries");
	add_number(queries, "total", STATS(a, queries, stats_queries));
	(void)STATS(a, cJSON_AddObjectToObject(o, "verdicts"), stats_verdicts);
	cJSON *plugins = cJSON_AddObjectToObject(o, "plugins");
	cJSON *feeds = cJSON_AddObjectToObject(o, "feeds");
	cJSON *groups = cJSON_AddObjectToObject(o, "groups");
	stats_labelled(a, feeds, groups, plugins);
	cJSON *c = cJSON_AddObjectToObject(o, "cache");
	(void)STATS(a, c, stats_cache);
	cache_stats(memory, size, clock_monotonic_ms(), &cache);
	add_number(c, "entries", cache.used);
	add_number(c, "octets", cache.octets);
	add_number(c, "used_octets", cache.used_octets);
	(void)STATS(a, cJSON_AddObjectToObject(o, "upstreams"), stats_upstream);
	(void)STATS(a, cJSON_AddObjectToObject(o, "drops"), stats_drops);
	add_number(o, "tcp_accepted", shm_metric_sum(a->shm, METRIC_TCP_ACCEPTED));
	add_number(o, "truncated", shm_metric_sum(a->shm, METRIC_TRUNCATED));
	return o;
}
