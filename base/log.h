/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's own log: one line on stderr a message, `LEVEL process: text`, with foreign octets
 * escaped by the caller or here (control characters become \DDD). Not the query log. Leaf file.
 */
#ifndef BALEEN_BASE_LOG_H
#define BALEEN_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR_, LOG_WARN_, LOG_INFO_, LOG_DEBUG_ };

void log_set_process(const char *name); /* "worker 1" */
void log_set_level(enum log_level level);
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For messages that an outsider can cause at will: true at most once a second per `state` (zeroed
 * at first); `*suppressed` says how many were held back since. */
struct log_limit {
	int64_t next_ms;
	uint64_t held;
};
bool log_limit(struct log_limit *state, int64_t now_ms, uint64_t *suppressed);

#endif
