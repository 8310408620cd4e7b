/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `explain` against the running daemon: a throw-away child of admin rehearses the query with the
 * generation and the set that serve now, and writes the JSON to a pipe. A plugin that crashes or
 * hangs in it costs that child. Bounded: four at a time, ten seconds, 4 MiB.
 */
#include "base/log.h"
#include "core/explain.h"
#include "core/process/admin.h"
#include "core/process/title.h"
#include "feeds/setfiles.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPLAIN_CHILDREN_MAX 4
#define EXPLAIN_LIMIT_S	     10
#define EXPLAIN_OUTPUT_MAX   (4u << 20)

static cJSON *explain_error(const char *text)
{
	cJSON *o = cJSON_CreateObject();
	cJSON_AddBoolToObject(o, "ok", false);
	cJSON_AddStringToObject(o, "error", text);
	return o;
}

/* In the child. */
static cJSON *explain_run(struct admin *a, const cJSON *request)
{
	uint64_t number = atomic_load(shm_set_number(a->shm));
	char error[EXPLAIN_ERROR_MAX] = "", set_error[DOMSET_ERROR_MAX] = "";
	struct domset *set = NULL;
	struct explain *e = NULL;

	if (number) {
		char *path = setfiles_path(".", number, "mdb");
		int r = path ? domset_open(path, DOMSET_CHECK_HEADER, &set, set_error) : -ENOMEM;
		free(path);
		if (r < 0)
			return explain_error(set_error[0] ? set_error : strerror(-r));
		r = domset_bind(set, &a->generation->config.feeds);
		if (r < 0)
			return explain_error(strerror(-r));
	}
	if (explain_new(a->generation, set, number, ".", &e, error) < 0)
		return explain_error(error);
	return explain_reply(e, request);
}

static _Noreturn void explain_child(struct admin *a, const cJSON *request, int fd)
{
	title_set("explain");
	signal(SIGTERM, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	alarm(EXPLAIN_LIMIT_S);
	cJSON *o = explain_run(a, request);
	char *text = o ? cJSON_PrintUnformatted(o) : NULL;
	size_t left = text ? strlen(text) : 0;
	for (const char *at = text; left > 0;) {
		ssize_t n = write(fd, at, left);
		if (n < 0)
			_exit(1);
		at += n;
		left -= (size_t)n;
	}
	_exit(0);
}

static void explain_done(struct admin_connection *c)
{
	int status = 0, fd = event_get_fd(c->explain);
	size_t length = evbuffer_get_length(c->explain_text);

	event_free(c->explain);
	c->explain = NULL;
	close(fd);
	/* It has closed its end: it is about to leave, or was ended by its alarm. */
	(void)waitpid(c->explain_pid, &status, 0);
	c->explain_pid = 0;
	const char *text = (const char *)evbuffer_pullup(c->explain_text, -1);
	cJSON *reply = length ? cJSON_ParseWithLength(text, length) : NULL;
	if (reply)
		admin_reply(c, reply);
	else if (WIFSIGNALED(status))
		admin_reply_error(c, "the rehearsal died of SIG%s: a plugin crashed or hung",
				  sigabbrev_np(WTERMSIG(status)));
	else
		admin_reply_error(c, "the rehearsal gave no answer");
}

static void explain_read(evutil_socket_t fd, short what, void *context)
{
	struct admin_connection *c = context;
	(void)what;
	int n = evbuffer_read(c->explain_text, fd, 65536);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && evbuffer_get_length(c->explain_text) <= EXPLAIN_OUTPUT_MAX)
		return;
	if (n > 0)
		kill(c->explain_pid, SIGKILL);
	explain_done(c);
}

static unsigned explain_running(const struct admin *a)
{
	unsigned n = 0;
	for (unsigned i = 0; i < ADMIN_CONNECTIONS_MAX; i++)
		n += a->connections[i].explain_pid > 0;
	return n;
}

void admin_explain(struct admin_connection *c, const cJSON *request)
{
	struct admin *a = c->admin;
	int pipes[2];

	if (explain_running(a) >= EXPLAIN_CHILDREN_MAX || pipe2(pipes, O_CLOEXEC) < 0) {
		admin_reply_error(c, "too many rehearsals at once; try again");
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(pipes[0]);
		explain_child(a, request, pipes[1]);
	}
	close(pipes[1]);
	(void)fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	c->explain_text = evbuffer_new();
	c->explain = pid > 0 ? event_new(a->base, pipes[0], EV_READ | EV_PERSIST, explain_read, c)
			     : NULL;
	if (!c->explain || !c->explain_text) {
		close(pipes[0]);
		admin_reply_error(c, "cannot fork");
		return;
	}
	c->explain_pid = pid;
	event_add(c->explain, NULL);
}
