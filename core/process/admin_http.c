/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP of the admin process: /metrics, /health, /ready, and nothing else. Default deny: a path that
 * is not exactly one of the rows is 404 after the token was asked for; only GET and HEAD exist, so
 * nothing can be changed here. The Host must be an address or localhost: a name that an attacker
 * made resolve to us (DNS rebinding) is turned away.
 */
#include "base/addr.h"
#include "base/log.h"
#include "core/process/admin.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HTTP_HEADERS_MAX 8192
#define HTTP_TIMEOUT_S	 10
#define HTTP_FAILURES_S	 10 /* wrong tokens a second, over all clients */

static const char http_text[] = "text/plain; charset=utf-8";

/* Same time whatever the guess: the length of what was sent is the only thing to be learnt. */
static bool token_equal(const char *token, const char *guess)
{
	size_t length = strlen(token), guessed = strlen(guess);
	unsigned char difference = length != guessed;
	for (size_t i = 0; i < guessed; i++)
		difference |= (unsigned char)(token[length ? i % length : 0] ^ guess[i]);
	return difference == 0;
}

static bool http_authorised(const struct admin *a, struct evhttp_request *request)
{
	static const char scheme[] = "Bearer ";
	const char *token = a->generation->config.admin_token;
	const char *header =
		evhttp_find_header(evhttp_request_get_input_headers(request), "Authorization");
	if (!token)
		return true;
	return header && strncasecmp(header, scheme, sizeof(scheme) - 1) == 0 &&
	       token_equal(token, header + sizeof(scheme) - 1);
}

static bool http_host_ok(struct evhttp_request *request)
{
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
	struct endpoint e;
	if (!host)
		return false;
	if (strncasecmp(host, "localhost", 9) == 0 && (host[9] == '\0' || host[9] == ':'))
		return true;
	return endpoint_parse(host, 80, &e) == 0;
}

static void http_reply(struct evhttp_request *request, int code, const char *text)
{
	struct evbuffer *body = evbuffer_new();
	if (body)
		evbuffer_add_printf(body, "%s\n", text);
	evhttp_send_reply(request, code, NULL, body);
	if (body)
		evbuffer_free(body);
}

/* ---- pages ---- */

static void page_health(struct admin *a, struct evhttp_request *request)
{
	(void)a;
	http_reply(request, HTTP_OK, "ok");
}

static void page_ready(struct admin *a, struct evhttp_request *request)
{
	char text[128];
	bool ready = admin_is_ready(a, text, sizeof(text));
	http_reply(request, ready ? HTTP_OK : HTTP_SERVUNAVAIL, text);
}

static void page_metrics(struct admin *a, struct evhttp_request *request)
{
	struct evbuffer *body = evbuffer_new();
	if (!body) {
		http_reply(request, HTTP_SERVUNAVAIL, "out of memory");
		return;
	}
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	evhttp_remove_header(headers, "Content-Type");
	evhttp_add_header(headers, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	admin_metrics(a, body);
	evhttp_send_reply(request, HTTP_OK, NULL, body);
	evbuffer_free(body);
}

static const struct {
	const char *path;
	bool open; /* without the token */
	void (*page)(struct admin *a, struct evhttp_request *request);
} pages[] = {
	{"/health", true, page_health},
	{"/ready", false, page_ready},
	{"/metrics", false, page_metrics},
};

/* Guessing is slowed down for all alike; nobody is locked out by a stranger's guesses for long. */
static bool http_too_many_failures(bool failed)
{
	static time_t second;
	static unsigned failures;
	time_t now = time(NULL);
	if (now != second) {
		second = now;
		failures = 0;
	}
	if (failed)
		failures++;
	return failures > HTTP_FAILURES_S;
}

static void http_request(struct evhttp_request *request, void *context)
{
	struct admin *a = context;
	const char *uri = evhttp_request_get_uri(request);
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	size_t row = 0, rows = sizeof(pages) / sizeof(pages[0]);

	evhttp_add_header(headers, "Content-Type", http_text);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	if (!http_host_ok(request)) {
		http_reply(request, 421, "this host is not served here");
		return;
	}
	while (row < rows && strcmp(uri, pages[row].path) != 0)
		row++;
	if ((row == rows || !pages[row].open) && !http_authorised(a, request)) {
		bool many = http_too_many_failures(true);
		evhttp_add_header(headers, "WWW-Authenticate", "Bearer");
		http_reply(request, many ? 429 : 401, "a token is needed");
		return;
	}
	if (row == rows)
		http_reply(request, HTTP_NOTFOUND, "there is no such page");
	else
		pages[row].page(a, request);
}

/*
 * Called for each new connection. The lowest free descriptor tells how many are open: with three
 * quarters taken, HTTP, where anybody may come, waits a second and leaves the rest to the control
 * socket.
 */
static struct bufferevent *http_accepted(struct event_base *base, void *context)
{
	const struct timeval pause = {.tv_sec = 1};
	struct admin *a = context;
	int lowest = fcntl(a->child->note, F_DUPFD_CLOEXEC, 0);

	if (lowest >= 0)
		close(lowest);
	if (lowest < 0 || lowest > ADMIN_DESCRIPTORS / 4 * 3) {
		evconnlistener_disable(a->http_listener);
		event_base_once(a->base, -1, EV_TIMEOUT, admin_accept_again, a, &pause);
	}
	return bufferevent_socket_new(base, -1, 0);
}

int admin_http_start(struct admin *a, int fd)
{
	a->http = evhttp_new(a->base);
	if (!a->http)
		return -ENOMEM;
	evhttp_set_allowed_methods(a->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(a->http, HTTP_HEADERS_MAX);
	evhttp_set_max_body_size(a->http, HTTP_HEADERS_MAX);
	evhttp_set_timeout(a->http, HTTP_TIMEOUT_S);
	evhttp_set_default_content_type(a->http, NULL);
	evhttp_set_gencb(a->http, http_request, a);
	struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(a->http, fd);
	if (!bound)
		return -EIO;
	a->http_listener = evhttp_bound_socket_get_listener(bound);
	evconnlistener_set_error_cb(a->http_listener, admin_accept_failed);
	evhttp_set_bevcb(a->http, http_accepted, a);
	return 0;
}
