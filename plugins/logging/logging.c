/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logging: one JSON line per query, into a file that rotates, or to stderr. Logger process; may
 * block, DNS does not notice. Owns the file and a buffer. Invariant: a line is in the file whole or
 * not at all: what a full disk cut off is taken back, counted and said, and writing goes on as soon
 * as there is room.
 */
#include <baleen/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_SIZE (256 * 1024)
#define PATH_SIZE   1024

enum { METRIC_WRITTEN, METRIC_LOST, METRIC_ROTATED };

struct options {
	const char *file;
	uint64_t max_size;
	int64_t keep;
	int what;
	int clients;
};

struct state {
	const struct baleen_host *host;
	const struct options *options;
	int fd; /* -1: not open */
	int64_t size;
	time_t looked; /* when the file's place was last looked at */
	bool failing;
	uint64_t lost; /* since it fails */
	size_t used;
	uint32_t buffered; /* events in it */
	char buffer[BUFFER_SIZE];
};

static const char *const what_words[] = {"all", "decided", NULL};
#define WHAT_DECIDED 1
static const char *const clients_words[] = {"full", "truncate", "hide", NULL};
#define CLIENTS_TRUNCATE 1
#define CLIENTS_HIDE	 2

/* clang-format off */
static const struct baleen_option options[] = {
	{"file", BALEEN_OUTPUT, offsetof(struct options, file), "log/queries.log", 0, 0, NULL,
	 "where to write, relative to the state folder; \"-\" is stderr"},
	{"max-size", BALEEN_SIZE, offsetof(struct options, max_size), "100MiB", 0, 1e15, NULL,
	 "begin a new file at this size; 0: never"},
	{"keep", BALEEN_INTEGER, offsetof(struct options, keep), "5", 0, 100, NULL,
	 "how many full files to keep (file.1 is the newest)"},
	{"what", BALEEN_CHOICE, offsetof(struct options, what), "all", 0, 0, what_words,
	 "all, or decided: only what was not simply allowed"},
	{"clients", BALEEN_CHOICE, offsetof(struct options, clients), "full", 0, 0, clients_words,
	 "full, truncate (IPv4 to /24, IPv6 to /48) or hide (0.0.0.0 or ::)"},
	{0},
};
/* clang-format on */

static const struct baleen_metric metrics[] = {
	[METRIC_WRITTEN] = {"written", BALEEN_COUNTER, "Events written"},
	[METRIC_LOST] = {"lost", BALEEN_COUNTER, "Events that could not be written"},
	[METRIC_ROTATED] = {"rotated", BALEEN_COUNTER, "Files begun because the last was full"},
	{0},
};

static bool to_stderr(const struct state *s)
{
	return strcmp(s->options->file, "-") == 0;
}

/* ---- the file ---- */

static void make_folders(const char *path)
{
	char folder[PATH_SIZE];

	snprintf(folder, sizeof(folder), "%s", path);
	for (char *p = folder + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		(void)mkdir(folder, 0750);
		*p = '/';
	}
}

static int open_file(struct state *s)
{
	struct stat st;

	if (to_stderr(s)) {
		s->fd = STDERR_FILENO;
		return 0;
	}
	make_folders(s->options->file);
	s->fd = open(s->options->file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
	if (s->fd < 0)
		return -errno;
	s->size = fstat(s->fd, &st) == 0 ? st.st_size : 0;
	return 0;
}

static void close_file(struct state *s)
{
	if (s->fd >= 0 && s->fd != STDERR_FILENO)
		close(s->fd);
	s->fd = -1;
}

/* Moved away by logrotate, or by the logger of another generation: then the name is somebody
 * else's file, or nobody's. */
static bool moved(struct state *s)
{
	struct stat there, here;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (to_stderr(s) || now.tv_sec == s->looked)
		return false;
	s->looked = now.tv_sec;
	return stat(s->options->file, &there) < 0 || fstat(s->fd, &here) < 0 ||
	       there.st_ino != here.st_ino || there.st_dev != here.st_dev;
}

/* file.4 -> file.5, ..., file -> file.1. What cannot be renamed stays, and the file grows on. */
static void rotate(struct state *s)
{
	char from[PATH_SIZE + 16], to[PATH_SIZE + 16];
	const struct options *o = s->options;

	for (int64_t n = o->keep; n > 0; n--) {
		snprintf(to, sizeof(to), "%s.%lld", o->file, (long long)n);
		snprintf(from, sizeof(from), n > 1 ? "%s.%lld" : "%s", o->file, (long long)n - 1);
		if (rename(from, to) < 0 && errno != ENOENT) {
			s->host->log(s->host, BALEEN_LOG_WARN, "cannot rename %s to %s: %s", from,
				     to, strerror(errno));
			return;
		}
	}
	if (o->keep == 0)
		(void)unlink(o->file);
	close_file(s);
	s->host->count(s->host, METRIC_ROTATED, 1);
}

/* ---- writing ---- */

static int give_up(struct state *s, int error, uint32_t events)
{
	if (!s->failing)
		s->host->log(s->host, BALEEN_LOG_ERROR,
			     "cannot write %s: %s; events are lost until it works again",
			     s->options->file, strerror(-error));
	s->failing = true;
	s->lost += events;
	s->host->count(s->host, METRIC_LOST, events);
	return error;
}

/* All of the buffer or nothing. */
static int write_all(struct state *s)
{
	size_t done = 0;

	while (done < s->used) {
		ssize_t n = write(s->fd, s->buffer + done, s->used - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int error = n < 0 ? -errno : -EIO;
			/* Half a line would spoil the next. */
			if (done && !to_stderr(s) && ftruncate(s->fd, s->size) < 0)
				close_file(s);
			return error;
		}
		done += (size_t)n;
	}
	s->size += (int64_t)done;
	return 0;
}

static int flush(struct state *s)
{
	uint32_t events = s->buffered;
	int r = 0;

	if (!s->used)
		return 0;
	if (s->fd >= 0 && moved(s))
		close_file(s);
	if (s->fd >= 0 && !to_stderr(s) && s->options->max_size && s->size > 0 &&
	    (uint64_t)s->size + s->used > s->options->max_size)
		rotate(s);
	if (s->fd < 0)
		r = open_file(s);
	if (r == 0)
		r = write_all(s);
	s->used = 0;
	s->buffered = 0;
	if (r < 0)
		return give_up(s, r, events);
	if (s->failing)
		s->host->log(s->host, BALEEN_LOG_WARN, "writes %s again; %llu events were lost",
			     s->options->file, (unsigned long long)s->lost);
	s->failing = false;
	s->lost = 0;
	s->host->count(s->host, METRIC_WRITTEN, events);
	return 0;
}

/* ---- events ---- */

/* The client as the privacy option wants it. */
static void mask(const struct options *o, const uint8_t *client, uint8_t out[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool v4 = memcmp(client, mapped, sizeof(mapped)) == 0;
	size_t keep = 16;

	if (o->clients == CLIENTS_TRUNCATE)
		keep = v4 ? 15 : 6;
	else if (o->clients == CLIENTS_HIDE)
		keep = v4 ? 12 : 0;
	memset(out, 0, 16);
	memcpy(out, client, keep);
}

static int add(struct state *s, const struct baleen_event *event)
{
	struct baleen_event copy = *event;
	uint8_t client[16];
	int r = 0;

	mask(s->options, event->client, client);
	copy.client = client;
	size_t left = BUFFER_SIZE - s->used;
	size_t n = s->host->event_json(&copy, s->buffer + s->used, left);
	if (n + 1 > left) {
		r = flush(s);
		n = s->host->event_json(&copy, s->buffer, BUFFER_SIZE);
		if (n + 1 > BUFFER_SIZE)
			return give_up(s, -EMSGSIZE, 1);
	}
	s->buffer[s->used + n] = '\n';
	s->used += n + 1;
	s->buffered++;
	return r;
}

static int on_events(const struct baleen_host *host, const struct baleen_batch *batch)
{
	struct state *s = batch->worker;
	int failed = 0;

	(void)host;
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct baleen_event *event = &batch->events[i];
		if (s->options->what == WHAT_DECIDED && strcmp(event->verdict, "allow") == 0)
			continue;
		failed |= add(s, event);
	}
	failed |= flush(s);
	return failed ? -1 : 0;
}

static int configure(const struct baleen_host *host, void *config, char *error, size_t error_size)
{
	const struct options *o = config;

	(void)host;
	if (strlen(o->file) >= PATH_SIZE) {
		snprintf(error, error_size, "file has more than %d octets", PATH_SIZE);
		return -1;
	}
	return 0;
}

/* A place that cannot be written is said and tried again: DNS must start all the same. */
static int start(const struct baleen_host *host, const void *config, void *worker, char *error,
		 size_t error_size)
{
	struct state *s = worker;

	(void)error;
	(void)error_size;
	s->host = host;
	s->options = config;
	s->fd = -1;
	int r = open_file(s);
	if (r < 0)
		give_up(s, r, 0);
	return 0;
}

static void stop(const struct baleen_host *host, const void *config, void *worker)
{
	struct state *s = worker;

	(void)host;
	(void)config;
	(void)flush(s);
	close_file(s);
}

static const struct baleen_plugin plugin = {
	.size = sizeof(plugin),
	.major = BALEEN_PLUGIN_MAJOR,
	.minor = BALEEN_PLUGIN_MINOR,
	.name = "logging",
	.version = "1.0",
	.summary = "One JSON line per query, into a file that rotates or to stderr",
	.kind = BALEEN_SINK,
	.options = options,
	.config_size = sizeof(struct options),
	.metrics = metrics,
	.worker_size = sizeof(struct state),
	.configure = configure,
	.start = start,
	.stop = stop,
	.on_events = on_events,
};

const struct baleen_plugin *baleen_plugin_entry(const struct baleen_host *host)
{
	(void)host;
	return &plugin;
}
