/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `explain` against the running daemon: a throw-away child of admin rehearses the query with the
 * generation and the set that serve now, and writes the JSON to a pipe. A plugin that crashes or
 * hangs in it costs that child. Bounded: four at a time, ten seconds, 4 MiB.
 */
#include "base/log.h"
#include "base/message_text.h"
#include "base/name.h"
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
#define EXPLAIN_ANSWERS_MAX  64

struct explain_text {
	struct explain_request request;
	const char *answers[EXPLAIN_ANSWERS_MAX + 1];
};

static const char *field(const cJSON *o, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
}

static bool request_answers(const cJSON *request, struct explain_text *out)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(request, "answers"), *item;
	size_t n = 0;
	if (!list || cJSON_IsNull(list))
		return true;
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > EXPLAIN_ANSWERS_MAX)
		return false;
	cJSON_ArrayForEach(item, list)
	{
		if (!cJSON_IsString(item))
			return false;
		out->answers[n++] = item->valuestring;
	}
	out->request.answers = n ? out->answers : NULL;
	return true;
}

/* NULL, or what is wrong with it. */
static const char *request_read(const cJSON *request, struct explain_text *out)
{
	struct explain_request *r = &out->request;
	const char *name = field(request, "name"), *type = field(request, "type");
	const char *client = field(request, "client"), *transport = field(request, "transport");
	const cJSON *at = cJSON_GetObjectItemCaseSensitive(request, "at");

	memset(out, 0, sizeof(*out));
	r->type = TYPE_A;
	if (!name || name_from_unicode(name, strlen(name), &r->name) < 0)
		return "name: not a domain name";
	if (type && message_type_parse(type, strlen(type), &r->type) < 0)
		return "type: not a record type";
	if (addr_parse(client ? client : "127.0.0.1", &r->client) < 0)
		return "client: not an address";
	if (transport && strcmp(transport, "tcp") == 0)
		r->transport = BALEEN_TCP;
	r->listener = field(request, "listener");
	if (cJSON_IsNumber(at)) {
		r->has_time = true;
		r->wall_s = (int64_t)at->valuedouble;
	} else if (at && !cJSON_IsNull(at)) {
		return "at: not a number of seconds";
	}
	return request_answers(request, out) ? NULL : "answers: not a list of records";
}

static cJSON *explain_error(const char *text)
{
	cJSON *o = cJSON_CreateObject();
	cJSON_AddBoolToObject(o, "ok", false);
	cJSON_AddStringToObject(o, "error", text);
	return o;
}

/* In the child. */
static cJSON *explain_run(struct admin *a, const struct explain_request *request)
{
	uint64_t number = atomic_load(shm_set_number(a->shm));
	char error[EXPLAIN_ERROR_MAX] = "", set_error[DOMSET_ERROR_MAX] = "";
	struct domset *set = NULL;
	struct explain *e = NULL;
	struct explain_result result;

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
	if (explain_decide(e, request, &result, error) < 0)
		return explain_error(error);
	cJSON *o = explain_json(&result);
	cJSON_AddBoolToObject(o, "ok", true);
	return o;
}

static _Noreturn void explain_child(struct admin *a, const struct explain_request *request, int fd)
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
	static struct explain_text text;
	struct admin *a = c->admin;
	int pipes[2];

	const char *wrong = request_read(request, &text);
	if (wrong) {
		admin_reply_error(c, "%s", wrong);
		return;
	}
	if (explain_running(a) >= EXPLAIN_CHILDREN_MAX || pipe2(pipes, O_CLOEXEC) < 0) {
		admin_reply_error(c, "too many rehearsals at once; try again");
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(pipes[0]);
		explain_child(a, &text.request, pipes[1]);
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
