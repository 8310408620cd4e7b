/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/fetch.c: complete answers arrive, everything else is an error with a reason. */
#include "feeds/fetch.h"

#include "scripted_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct event_base *base;
static struct fetch_pool *pool;
static struct scripted_server server, other;

static struct {
	char body[65536];
	size_t size;
	unsigned done;
	struct fetch_result result;
	char why[512], etag[64];
	int refuse; /* what the body callback says */
} got;

static int on_body(void *context, const void *data, size_t size)
{
	(void)context;
	assert_int_equal(got.done, 0);
	assert_true(got.size + size < sizeof(got.body));
	memcpy(got.body + got.size, data, size);
	got.size += size;
	return got.refuse;
}

static void on_done(void *context, const struct fetch_result *result)
{
	(void)context;
	got.done++;
	got.result = *result;
	snprintf(got.why, sizeof(got.why), "%s", result->why ? result->why : "");
	snprintf(got.etag, sizeof(got.etag), "%s", result->etag);
	event_base_loopbreak(base);
}

static int setup(void **state)
{
	(void)state;
	static const char *const resolvers[] = {"127.0.0.1:9", NULL}; /* nobody answers there */
	base = event_base_new();
	scripted_start(&server, base);
	scripted_start(&other, base);
	return fetch_pool_new(base, resolvers, &pool);
}

static int teardown(void **state)
{
	(void)state;
	fetch_pool_free(pool);
	evconnlistener_free(server.listener);
	evconnlistener_free(other.listener);
	event_base_free(base);
	return 0;
}

static const char *answer_text;
static const char *answer_fixed(const char *request)
{
	(void)request;
	return answer_text;
}

/* Fetch `path` from the server, whose answer is `text`; more in `more`. */
static void fetch_with(const char *text, const char *path, struct fetch_request more)
{
	char url[256];
	struct fetch *f;
	answer_text = text;
	if (text)
		server.answer = answer_fixed;
	server.requests = 0;
	memset(&got.result, 0, sizeof(got.result));
	got.size = got.done = 0;
	snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", server.port, path);
	more.url = url;
	more.body = on_body;
	more.done = on_done;
	if (!more.max_bytes)
		more.max_bytes = 10000;
	assert_int_equal(fetch_start(pool, &more, &f), 0);
	assert_int_equal(got.done, 0);
	event_base_dispatch(base);
	assert_int_equal(got.done, 1);
	got.body[got.size] = '\0';
}

static const struct fetch_request plain;

static void complete_answers(void **state)
{
	(void)state;
	fetch_with("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nETag: \"v1\"\r\n\r\nabc\n", "/", plain);
	assert_int_equal(got.result.error, 0);
	assert_true(got.result.whole);
	assert_string_equal(got.body, "abc\n");
	assert_string_equal(got.etag, "\"v1\"");
	assert_non_null(strstr(server.request, "User-Agent: Baleen/"));
	fetch_with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		   "/", plain);
	assert_int_equal(got.result.error, 0);
	assert_true(got.result.whole);
	assert_string_equal(got.body, "abc");
}

/* A3-18: a body that ends with the connection may have been cut; nobody can vouch for it. */
static void an_unframed_body_is_not_vouched_for(void **state)
{
	(void)state;
	fetch_with("HTTP/1.0 200 OK\r\n\r\nads.test\ngoogle", "/", plain);
	assert_int_equal(got.result.error, 0);
	assert_false(got.result.whole);
}

static void cut_bodies_are_errors(void **state)
{
	(void)state;
	fetch_with("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nads.test\ngoogle", "/", plain);
	assert_int_not_equal(got.result.error, 0);
	fetch_with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "/", plain);
	assert_int_not_equal(got.result.error, 0);
	server.reset = true;
	fetch_with("HTTP/1.0 200 OK\r\n\r\nads.test\ngoogle", "/", plain);
	server.reset = false;
	assert_int_not_equal(got.result.error, 0);
	fetch_with("rubbish\r\n\r\n", "/", plain);
	assert_int_not_equal(got.result.error, 0);
}

static void error_pages_are_no_lists(void **state)
{
	(void)state;
	fetch_with("HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nbad.test\n", "/", plain);
	assert_int_equal(got.result.error, -EPROTO);
	assert_string_equal(got.why, "HTTP 404");
	assert_int_equal(got.size, 0);
	fetch_with("HTTP/1.1 503 Busy\r\nRetry-After: 77\r\nContent-Length: 0\r\n\r\n", "/", plain);
	assert_int_equal(got.result.error, -EPROTO);
	assert_int_equal(got.result.retry_after_s, 77);
	fetch_with("HTTP/1.1 206 Partial\r\nContent-Length: 9\r\n\r\nbad.test\n", "/", plain);
	assert_int_equal(got.result.error, -EPROTO);
	assert_int_equal(got.size, 0);
}

static void bounds(void **state)
{
	(void)state;
	const struct fetch_request small = {.max_bytes = 5};
	fetch_with("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcde\n", "/", small);
	assert_int_equal(got.result.error, -EFBIG);
	fetch_with("HTTP/1.0 200 OK\r\n\r\nabcde\n", "/", small);
	assert_int_equal(got.result.error, -EFBIG);
	fetch_with("HTTP/1.0 200 OK\r\n\r\nabcd\n", "/", small);
	assert_int_equal(got.result.error, 0);
	got.refuse = -ENOSPC;
	fetch_with("HTTP/1.0 200 OK\r\n\r\nabcd\n", "/", plain);
	got.refuse = 0;
	assert_int_equal(got.result.error, -ENOSPC);
}

/* A3-12: 304 for another version than ours. */
static const char *answer_odd_304(const char *request)
{
	if (strstr(request, "If-None-Match"))
		return "HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\n\r\n";
	return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: \"v2\"\r\n\r\nx\n";
}

static void conditional(void **state)
{
	(void)state;
	const struct fetch_request have = {.etag = "\"v1\"", .last_modified = "yesterday"};
	fetch_with("HTTP/1.1 304 Not Modified\r\nETAG: W/\"v1\"\r\n\r\n", "/", have);
	assert_int_equal(got.result.error, 0);
	assert_true(got.result.not_modified);
	assert_non_null(strstr(server.request, "If-None-Match: \"v1\"\r\n"));
	assert_non_null(strstr(server.request, "If-Modified-Since: yesterday\r\n"));
	fetch_with("HTTP/1.1 304 Not Modified\r\n\r\n", "/", plain);
	assert_int_equal(got.result.error, -EPROTO);
	server.answer = answer_odd_304;
	fetch_with(NULL, "/", have);
	assert_int_equal(got.result.error, 0);
	assert_false(got.result.not_modified);
	assert_string_equal(got.body, "x\n");
	assert_int_equal(server.requests, 2);
}

static char redirect_to[256];
static const char *answer_redirect(const char *request)
{
	static char text[512];
	if (strncmp(request, "GET /there ", 11) == 0)
		return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\ny\n";
	snprintf(text, sizeof(text),
		 "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 9\r\n\r\nbad.test\n",
		 redirect_to);
	return text;
}

static void redirects(void **state)
{
	(void)state;
	const struct fetch_request secret = {.headers = "# key\nX-Key: s3cret\n"};
	struct fetch_request open = secret;
	open.allow_private = true;
	server.answer = other.answer = answer_redirect;
	strcpy(redirect_to, "/there");
	fetch_with(NULL, "/", secret);
	assert_int_equal(got.result.error, 0);
	assert_string_equal(got.body, "y\n");
	assert_non_null(strstr(server.request, "X-Key: s3cret\r\n"));
	assert_null(strstr(server.request, "# key"));

	strcpy(redirect_to, "/again");
	fetch_with(NULL, "/", plain);
	assert_int_equal(got.result.error, -ELOOP);
	assert_int_equal(server.requests, 6);

	/* Another host, at a private address. */
	snprintf(redirect_to, sizeof(redirect_to), "http://127.0.0.2:%u/there", other.port);
	fetch_with(NULL, "/", secret);
	assert_int_equal(got.result.error, -EACCES);
	snprintf(redirect_to, sizeof(redirect_to), "http://localhost:%u/there", other.port);
	fetch_with(NULL, "/", secret);
	assert_int_equal(got.result.error, -EACCES);
	fetch_with(NULL, "/", open);
	assert_int_equal(got.result.error, 0);
	assert_string_equal(got.body, "y\n");
	assert_null(strstr(other.request, "s3cret"));

	strcpy(redirect_to, "file:///etc/passwd");
	fetch_with(NULL, "/", plain);
	assert_int_equal(got.result.error, -EPROTO);
	strcpy(redirect_to, "ftp://127.0.0.1/");
	fetch_with(NULL, "/", plain);
	assert_int_equal(got.result.error, -EPROTO);
}

static void urls(void **state)
{
	(void)state;
	static const char *const bad[] = {"",	      "x",	 "file:///etc/passwd",
					  "ftp://x/", "http://", NULL};
	for (const char *const *url = bad; *url; url++) {
		struct fetch *f;
		struct fetch_request r = {.url = *url, .body = on_body, .done = on_done};
		assert_int_equal(fetch_start(pool, &r, &f), -EINVAL);
	}
}

static void cancelled_at_any_time(void **state)
{
	(void)state;
	static const char *const hosts[] = {"127.0.0.1", "nobody.test"};
	server.answer = answer_fixed;
	answer_text = NULL; /* silence */
	for (int i = 0; i < 8; i++) {
		char url[256];
		struct fetch *f;
		struct fetch_request r = {.url = url,
					  .body = on_body,
					  .done = on_done,
					  .max_bytes = 100};
		snprintf(url, sizeof(url), "http://%s:%u/", hosts[i % 2], server.port);
		got.done = 0;
		assert_int_equal(fetch_start(pool, &r, &f), 0);
		for (int turn = 0; turn < i; turn++)
			event_base_loop(base, EVLOOP_NONBLOCK);
		fetch_cancel(f);
		event_base_loop(base, EVLOOP_NONBLOCK);
		assert_int_equal(got.done, 0);
	}
}

static void nobody_listens(void **state)
{
	(void)state;
	struct fetch *f;
	struct fetch_request r = {.url = "http://127.0.0.1:1/",
				  .body = on_body,
				  .done = on_done,
				  .max_bytes = 100};
	got.done = 0;
	assert_int_equal(fetch_start(pool, &r, &f), 0);
	event_base_dispatch(base);
	assert_int_equal(got.done, 1);
	assert_int_not_equal(got.result.error, 0);
	assert_true(got.why[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_answers),
		cmocka_unit_test(an_unframed_body_is_not_vouched_for),
		cmocka_unit_test(cut_bodies_are_errors),
		cmocka_unit_test(error_pages_are_no_lists),
		cmocka_unit_test(bounds),
		cmocka_unit_test(conditional),
		cmocka_unit_test(redirects),
		cmocka_unit_test(urls),
		cmocka_unit_test(cancelled_at_any_time),
		cmocka_unit_test(nobody_listens),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
