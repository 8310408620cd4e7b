/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core's counters as rows: an enum of numbers and a table of names with help texts. Registered
 * first in every segment, so a row's number is its metric index. Single writer per slot.
 */
#ifndef BALEEN_CORE_METRICS_H
#define BALEEN_CORE_METRICS_H

struct shm;

/* clang-format off */
#define METRICS(X) \
	X(QUERIES_UDP,       "queries_total{transport=\"udp\"}",      "Queries that parsed") \
	X(QUERIES_TCP,       "queries_total{transport=\"tcp\"}",      "Queries that parsed") \
	X(MALFORMED,         "malformed_total",                       "Packets answered FORMERR/NOTIMP or dropped before the chain") \
	X(IGNORED,           "ignored_total",                         "Packets that get silence: too short, QR set, own address") \
	X(ACL_REFUSED,       "acl_refused_total",                     "Clients outside allow-clients") \
	X(VERDICT_ALLOW,     "verdicts_total{verdict=\"allow\"}",     "Finished queries by verdict") \
	X(VERDICT_BLOCK,     "verdicts_total{verdict=\"block\"}",     "") \
	X(VERDICT_ANSWER,    "verdicts_total{verdict=\"answer\"}",    "") \
	X(VERDICT_REWRITE,   "verdicts_total{verdict=\"rewrite\"}",   "") \
	X(VERDICT_REFUSE,    "verdicts_total{verdict=\"refuse\"}",    "") \
	X(VERDICT_DROP,      "verdicts_total{verdict=\"drop\"}",      "") \
	X(VERDICT_TRUNCATE,  "verdicts_total{verdict=\"truncate\"}",  "") \
	X(VERDICT_ERROR,     "verdicts_total{verdict=\"error\"}",     "") \
	X(CACHE_HIT,         "cache_total{result=\"hit\"}",           "Cache look-ups by result") \
	X(CACHE_MISS,        "cache_total{result=\"miss\"}",          "") \
	X(CACHE_STALE,       "cache_total{result=\"stale\"}",         "") \
	X(CACHE_INSERT,      "cache_inserts_total",                   "Answers stored") \
	X(CACHE_EVICT,       "cache_evictions_total",                 "Live entries overwritten") \
	X(JOINED,            "joined_total",                          "Queries that joined an equal one in flight") \
	X(UPSTREAM_QUERIES,  "upstream_queries_total",                "Queries sent upstream") \
	X(UPSTREAM_RETRIES,  "upstream_retries_total",                "Repeated to the same or another server") \
	X(UPSTREAM_TIMEOUTS, "upstream_timeouts_total",               "No answer in time") \
	X(UPSTREAM_REJECTED, "upstream_rejected_total",               "Answers not believed: id, question, source") \
	X(UPSTREAM_TCP,      "upstream_tcp_total",                    "Queries moved to TCP") \
	X(UPSTREAM_FAILED,   "upstream_failed_total",                 "Questions that no server answered") \
	X(SEND_FAILED,       "send_failed_total",                     "Replies the kernel did not take") \
	X(TCP_ACCEPTED,      "tcp_accepted_total",                    "TCP connections accepted") \
	X(TCP_REFUSED,       "tcp_refused_total",                     "TCP connections over the limits") \
	X(TRUNCATED,         "truncated_total",                       "Replies sent with TC") \
	X(PARKED_SHED,       "shed_total",                            "Queries answered SERVFAIL because too many wait") \
	X(CHAIN_FAILURES,    "chain_failures_total",                  "Verdicts FAIL, illegal ones included") \
	X(QUERY_OF_DEATH,    "query_of_death_total",                  "Queries answered SERVFAIL because they killed a worker") \
	X(SET_DAMAGED,       "set_damaged_total",                     "Look-ups that met a damaged block")

enum metric {
#define METRIC_ENUM(id, name, help) METRIC_##id,
	METRICS(METRIC_ENUM)
#undef METRIC_ENUM
	METRIC_COUNT
};
/* clang-format on */

/* Register the rows. Must run before any other shm_metric on a new segment. */
void metrics_register(struct shm *s);
/* The help text of a metric by its full name, or NULL (plugins' rows are asked elsewhere). */
const char *metrics_help(const char *name);

#endif
