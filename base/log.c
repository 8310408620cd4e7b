/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's own log on stderr. Used by every process, which owns its process word and level.
 * Invariant: one message is one line and one write(2), so that lines of several processes never mix
 * and nothing foreign can begin a line of its own or reach a terminal as a control sequence.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_TEXT_MAX	2048
#define LOG_LINE_MAX	(LOG_TEXT_MAX * 4 + 128)
#define LOG_PROCESS_MAX 48
#define LOG_INTERVAL_MS 1000

static char log_process[LOG_PROCESS_MAX] = "baleen";
static enum log_level log_threshold = LOG_INFO_;

static const char *const log_words[] = {"error", "warn", "info", "debug"};

void log_set_process(const char *name)
{
	snprintf(log_process, sizeof(log_process), "%s", name);
}

void log_set_level(enum log_level level)
{
	log_threshold = level;
}

/* Control octets, DEL and C1 controls (in UTF-8: C2 80..C2 9F) become \DDD; other text passes. */
static size_t log_escape(const char *text, char *out)
{
	char *p = out;
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		bool c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f;
		if (*c < 0x20 || *c == 0x7f || c1)
			p += sprintf(p, "\\%03u", *c);
		else
			*p++ = (char)*c;
		if (c1)
			p += sprintf(p, "\\%03u", *++c);
	}
	return (size_t)(p - out);
}

static void log_write(enum log_level level, const char *format, va_list arguments)
{
	if (level > log_threshold)
		return;
	int saved = errno;
	char text[LOG_TEXT_MAX];
	char line[LOG_LINE_MAX];
	int n = vsnprintf(text, sizeof(text), format, arguments);
	if (n < 0)
		strcpy(text, "(a message that cannot be formatted)");
	else if ((size_t)n >= sizeof(text))
		memcpy(text + sizeof(text) - 4, "...", 4);
	size_t length = (size_t)snprintf(line, 128, "%s %s: ", log_words[level], log_process);
	length += log_escape(text, line + length);
	line[length++] = '\n';
	/* Nobody to tell if stderr is gone; and a log must never end the process. */
	ssize_t written = write(STDERR_FILENO, line, length);
	(void)written;
	errno = saved;
}

/* clang-format off */
#define LOG_FUNCTION(name, level)                                                                  \
	void name(const char *format, ...)                                                         \
	{                                                                                          \
		va_list arguments;                                                                 \
		va_start(arguments, format);                                                       \
		log_write(level, format, arguments);                                               \
		va_end(arguments);                                                                 \
	}
/* clang-format on */

LOG_FUNCTION(log_error, LOG_ERROR_)
LOG_FUNCTION(log_warn, LOG_WARN_)
LOG_FUNCTION(log_info, LOG_INFO_)
LOG_FUNCTION(log_debug, LOG_DEBUG_)

bool log_limit(struct log_limit *state, int64_t now_ms, uint64_t *suppressed)
{
	if (now_ms < state->next_ms) {
		state->held++;
		return false;
	}
	*suppressed = state->held;
	state->held = 0;
	state->next_ms = now_ms + LOG_INTERVAL_MS;
	return true;
}
