/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One transfer: resolve, connect, read, follow. Runs in the fetcher. A `struct fetch` owns its easy
 * handle, its header list and its DNS request. Invariant: `done` is called exactly once, from the
 * loop, and only after the last call of `body`.
 */
#include "feeds/fetch.h"

#include "base/addr.h"
#include "feeds/fetch_pool.h"

#include <curl/curl.h>
#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define FETCH_REDIRECTS	    5
#define FETCH_CONNECT_MS    15000L
#define FETCH_TOTAL_MS	    600000L
#define FETCH_STALL_OCTETS  100L /* fewer a second than this ... */
#define FETCH_STALL_SECONDS 20L	 /* ... for so long is a stall */
#define FETCH_ADDRESSES	    8
#define FETCH_ERROR_PAGE    ((uint64_t)1 << 20)
#define FETCH_TEXT_MAX	    512
#define FETCH_AGENT	    "Baleen/" BALEEN_VERSION " (DNS firewall; fetches lists its site subscribes to)"

struct fetch {
	struct fetch_pool *pool;
	struct fetch_request request;
	CURL *easy;
	bool in_multi;
	struct event *start; /* so that nothing is called from inside fetch_start */
	struct evdns_getaddrinfo_request *lookup;
	struct curl_slist *headers, *resolve;

	char *url;  /* of this hop */
	char *host; /* of this hop; `home` is that of the request */
	char *home;
	char port[8];
	bool https;
	unsigned hops;

	uint64_t octets;
	bool framed; /* a length or chunks: the end of the body is known */
	bool private_refused;
	int body_error;
	char etag[FETCH_TEXT_MAX], last_modified[64];
	char curl_error[CURL_ERROR_SIZE];
};

static void fetch_free(struct fetch *f)
{
	if (f->lookup)
		evdns_getaddrinfo_cancel(f->lookup);
	if (f->in_multi)
		fetch_pool_remove(f->pool, f->easy);
	if (f->easy)
		curl_easy_cleanup(f->easy);
	if (f->start)
		event_free(f->start);
	curl_slist_free_all(f->headers);
	curl_slist_free_all(f->resolve);
	free(f->url);
	free(f->host);
	free(f->home);
	free(f);
}

void fetch_cancel(struct fetch *f)
{
	if (!f)
		return;
	/* A cancelled lookup still calls back, with f gone: see fetch_resolved. */
	fetch_free(f);
}

static void fetch_finish(struct fetch *f, const struct fetch_result *result)
{
	void (*done)(void *, const struct fetch_result *) = f->request.done;
	void *context = f->request.context;
	done(context, result);
	fetch_free(f);
}

static void fetch_fail(struct fetch *f, int error, uint64_t retry_after_s, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void fetch_fail(struct fetch *f, int error, uint64_t retry_after_s, const char *format, ...)
{
	char why[FETCH_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	struct fetch_result result = {
		.error = error,
		.retry_after_s = retry_after_s,
		.etag = "",
		.last_modified = "",
		.why = why,
	};
	fetch_finish(f, &result);
}

/* ---- libcurl's callbacks ---- */

static size_t fetch_on_body(char *data, size_t one, size_t count, void *context)
{
	struct fetch *f = context;
	size_t size = one * count;
	long status = 0;
	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200) { /* an error page: nobody reads it */
		f->octets += size;
		return f->octets > FETCH_ERROR_PAGE ? 0 : size;
	}
	f->octets += size;
	if (f->octets > f->request.max_bytes) {
		f->body_error = -EFBIG;
		return 0;
	}
	f->body_error = f->request.body(f->request.context, data, size);
	return f->body_error < 0 ? 0 : size;
}

static void fetch_header_value(const char *line, size_t size, const char *name, char *out,
			       size_t room)
{
	size_t n = strlen(name);
	if (size <= n || strncasecmp(line, name, n) != 0)
		return;
	line += n;
	size -= n;
	while (size > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		size--;
	}
	while (size > 0 && strchr("\r\n \t", line[size - 1]))
		size--;
	if (size < room) { /* one that does not fit is worth nothing cut */
		memcpy(out, line, size);
		out[size] = '\0';
	}
}

static size_t fetch_on_header(char *line, size_t one, size_t count, void *context)
{
	struct fetch *f = context;
	size_t size = one * count;
	char value[64] = "";
	if (size > 5 && memcmp(line, "HTTP/", 5) == 0) {
		/* A new answer (after 100 Continue): forget the one before. */
		f->etag[0] = f->last_modified[0] = '\0';
		f->framed = size > 6 && line[5] >= '2';
	}
	fetch_header_value(line, size, "etag:", f->etag, sizeof(f->etag));
	fetch_header_value(line, size, "last-modified:", f->last_modified,
			   sizeof(f->last_modified));
	fetch_header_value(line, size, "content-length:", value, sizeof(value));
	fetch_header_value(line, size, "transfer-encoding:", value, sizeof(value));
	if (value[0])
		f->framed = true;
	return size;
}

static bool fetch_is_private(const struct sockaddr *sa)
{
	static const char *const nets[] = {"0.0.0.0/8",	    "10.0.0.0/8",     "100.64.0.0/10",
					   "127.0.0.0/8",   "169.254.0.0/16", "172.16.0.0/12",
					   "192.0.0.0/24",  "192.168.0.0/16", "198.18.0.0/15",
					   "224.0.0.0/3",   "::/128",	      "::1/128",
					   "fc00::/7",	    "fe80::/10",      "ff00::/8",
					   "64:ff9b:1::/48"};
	struct endpoint e;
	endpoint_from_sockaddr(sa, &e);
	for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++) {
		struct prefix net;
		if (prefix_parse(nets[i], &net) == 0 && prefix_contains(&net, &e.addr))
			return true;
	}
	return false;
}

/* The host that the configuration names may be anywhere; one that only a redirect names may not. */
static curl_socket_t fetch_open_socket(void *context, curlsocktype purpose,
				       struct curl_sockaddr *address)
{
	struct fetch *f = context;
	(void)purpose;
	if (!f->request.allow_private && strcasecmp(f->host, f->home) != 0 &&
	    fetch_is_private(&address->addr)) {
		f->private_refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		      address->protocol);
}

/* ---- one hop ---- */

static char *fetch_url_part(const char *url, CURLUPart part)
{
	char *text = NULL, *copy = NULL;
	CURLU *u = curl_url();
	if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(u, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK)
		copy = strdup(text);
	curl_free(text);
	curl_url_cleanup(u);
	return copy;
}

/* Take the URL apart; false if it is none that feeds come from. */
static bool fetch_set_url(struct fetch *f, const char *url)
{
	char *copy = strdup(url);
	char *scheme = fetch_url_part(url, CURLUPART_SCHEME);
	char *host = fetch_url_part(url, CURLUPART_HOST);
	char *port = fetch_url_part(url, CURLUPART_PORT);
	bool fine = copy && scheme && host && port &&
		    (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
	if (fine) {
		free(f->url);
		free(f->host);
		f->url = copy;
		f->host = host;
		f->https = strcmp(scheme, "https") == 0;
		snprintf(f->port, sizeof(f->port), "%s", port);
		copy = host = NULL;
	}
	free(copy);
	free(scheme);
	free(host);
	free(port);
	return fine;
}

static void fetch_add_header(struct fetch *f, const char *name, const char *value)
{
	char line[FETCH_TEXT_MAX + 64];
	if (!value || !value[0])
		return;
	snprintf(line, sizeof(line), "%s: %s", name, value);
	struct curl_slist *list = curl_slist_append(f->headers, line);
	if (list)
		f->headers = list;
}

static void fetch_set_headers(struct fetch *f)
{
	curl_slist_free_all(f->headers);
	f->headers = NULL;
	fetch_add_header(f, "Accept", "text/plain, */*;q=0.5");
	/* Decoded by the parser, which knows a cut gzip from a whole one. */
	fetch_add_header(f, "Accept-Encoding", "gzip");
	fetch_add_header(f, "If-None-Match", f->request.etag);
	fetch_add_header(f, "If-Modified-Since", f->request.last_modified);
	const char *line = strcasecmp(f->host, f->home) == 0 ? f->request.headers : NULL;
	while (line && *line) {
		size_t n = strcspn(line, "\r\n");
		char *copy = strndup(line, n);
		if (copy && strchr(copy, ':') && copy[0] != '#') {
			struct curl_slist *list = curl_slist_append(f->headers, copy);
			f->headers = list ? list : f->headers;
		}
		free(copy);
		line += n + strspn(line + n, "\r\n");
	}
}

static void fetch_set_ca(struct fetch *f)
{
	struct curl_blob blob = {(void *)(uintptr_t)f->request.ca, f->request.ca_size,
				 CURL_BLOB_NOCOPY};
	if (!f->request.ca)
		blob.data = (void *)(uintptr_t)fetch_pool_ca(f->pool, &blob.len);
	if (blob.data)
		curl_easy_setopt(f->easy, CURLOPT_CAINFO_BLOB, &blob);
}

static void fetch_transfer(struct fetch *f)
{
	CURL *e = f->easy;
	curl_easy_reset(e);
	f->octets = 0;
	f->framed = false;
	f->curl_error[0] = '\0';
	fetch_set_headers(f);
	curl_easy_setopt(e, CURLOPT_PRIVATE, f);
	curl_easy_setopt(e, CURLOPT_URL, f->url);
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_PROXY, ""); /* whatever the environment says */
	curl_easy_setopt(e, CURLOPT_USERAGENT, FETCH_AGENT);
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, f->headers);
	curl_easy_setopt(e, CURLOPT_RESOLVE, f->resolve);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, FETCH_CONNECT_MS);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, FETCH_TOTAL_MS);
	curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, FETCH_STALL_OCTETS);
	curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, FETCH_STALL_SECONDS);
	curl_easy_setopt(e, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)f->request.max_bytes);
	curl_easy_setopt(e, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, f->curl_error);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, fetch_on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, fetch_on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, f);
	curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, fetch_open_socket);
	curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, f);
	fetch_set_ca(f);
	int result = fetch_pool_add(f->pool, e);
	if (result < 0) {
		fetch_fail(f, result, 0, "%s", strerror(-result));
		return;
	}
	f->in_multi = true;
}

/* "host:port:address,address" for CURLOPT_RESOLVE. */
static int fetch_set_addresses(struct fetch *f, const struct evutil_addrinfo *list)
{
	char line[FETCH_TEXT_MAX + FETCH_ADDRESSES * 48];
	int at = snprintf(line, sizeof(line), "%s:%s:", f->host, f->port);
	unsigned count = 0;
	for (; list && count < FETCH_ADDRESSES && at > 0 && (size_t)at + 64 < sizeof(line);
	     list = list->ai_next) {
		char text[64];
		if (getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof(text), NULL, 0,
				NI_NUMERICHOST) != 0)
			continue;
		const char *format = strchr(text, ':') ? "%s[%s]" : "%s%s";
		at += snprintf(line + at, sizeof(line) - (size_t)at, format, count ? "," : "",
			       text);
		count++;
	}
	if (count == 0)
		return -EADDRNOTAVAIL;
	curl_slist_free_all(f->resolve);
	f->resolve = curl_slist_append(NULL, line);
	return f->resolve ? 0 : -ENOMEM;
}

static void fetch_resolved(int result, struct evutil_addrinfo *list, void *context)
{
	struct fetch *f = context;
	if (result == EVUTIL_EAI_CANCEL) /* f is gone */
		return;
	f->lookup = NULL;
	int error = result == 0 ? fetch_set_addresses(f, list) : -EADDRNOTAVAIL;
	if (list)
		evutil_freeaddrinfo(list);
	if (error < 0)
		fetch_fail(f, error, 0, "cannot resolve %s: %s", f->host,
			   result ? evutil_gai_strerror(result) : "no address");
	else
		fetch_transfer(f);
}

/* Resolve this hop's host, unless it is an address, and go on. */
static void fetch_hop(struct fetch *f)
{
	struct endpoint e;
	if (endpoint_parse(f->host, 0, &e) == 0) {
		fetch_transfer(f);
		return;
	}
	const struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC,
					      .ai_socktype = SOCK_STREAM,
					      .ai_flags = EVUTIL_AI_ADDRCONFIG};
	/* NULL: it was answered at once (from the hosts file), and f may be gone. */
	struct evdns_getaddrinfo_request *lookup =
		evdns_getaddrinfo(fetch_pool_dns(f->pool), f->host, NULL, &hints, fetch_resolved,
				  f);
	if (lookup)
		f->lookup = lookup;
}

static void fetch_on_start(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	fetch_hop(context);
}

int fetch_start(struct fetch_pool *p, const struct fetch_request *request, struct fetch **out)
{
	const struct timeval now = {0, 0};
	struct fetch *f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->pool = p;
	f->request = *request;
	int result = -EINVAL;
	if (!fetch_set_url(f, request->url))
		goto fail;
	result = -ENOMEM;
	f->home = strdup(f->host);
	f->easy = curl_easy_init();
	f->start = evtimer_new(fetch_pool_base(p), fetch_on_start, f);
	if (!f->home || !f->easy || !f->start || evtimer_add(f->start, &now) < 0)
		goto fail;
	*out = f;
	return 0;
fail:
	fetch_free(f);
	return result;
}

/* ---- the end of a hop ---- */

static void fetch_redirect(struct fetch *f)
{
	char *location = NULL;
	bool https = f->https;
	curl_easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &location);
	if (!location) {
		fetch_fail(f, -EPROTO, 0, "a redirect without a place to go");
		return;
	}
	if (++f->hops > FETCH_REDIRECTS) {
		fetch_fail(f, -ELOOP, 0, "more than %d redirects", FETCH_REDIRECTS);
		return;
	}
	char *copy = strdup(location); /* the handle's; gone with its reset */
	bool fine = copy && fetch_set_url(f, copy);
	free(copy);
	if (!fine)
		fetch_fail(f, -EPROTO, 0, "a redirect to something else than http(s)");
	else if (https && !f->https)
		fetch_fail(f, -EPROTO, 0, "a redirect from https to http");
	else
		fetch_hop(f);
}

/* Validators are compared weakly: W/"x" and "x" name the same text. */
static bool fetch_same_etag(const char *a, const char *b)
{
	a += strncmp(a, "W/", 2) == 0 ? 2 : 0;
	b += strncmp(b, "W/", 2) == 0 ? 2 : 0;
	return strcmp(a, b) == 0;
}

static void fetch_answered(struct fetch *f, long status)
{
	struct fetch_result result = {
		.whole = f->framed,
		.etag = f->etag,
		.last_modified = f->last_modified,
		.why = "",
	};
	if (status == 200) {
		fetch_finish(f, &result);
		return;
	}
	/* 304 for another version than ours: ask again, without validators. */
	bool sent = f->request.etag && f->request.etag[0];
	if (sent && f->etag[0] && !fetch_same_etag(f->etag, f->request.etag)) {
		f->request.etag = f->request.last_modified = NULL;
		fetch_hop(f);
		return;
	}
	if (!sent && !(f->request.last_modified && f->request.last_modified[0])) {
		fetch_fail(f, -EPROTO, 0, "HTTP 304 to an unconditional request");
		return;
	}
	result.not_modified = true;
	fetch_finish(f, &result);
}

void fetch_ended(void *easy, int curl_code)
{
	struct fetch *f = NULL;
	long status = 0;
	curl_off_t retry = 0;
	curl_easy_getinfo((CURL *)easy, CURLINFO_PRIVATE, (char **)&f);
	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(f->easy, CURLINFO_RETRY_AFTER, &retry);
	fetch_pool_remove(f->pool, f->easy);
	f->in_multi = false;
	if (f->private_refused)
		fetch_fail(f, -EACCES, 0, "a redirect to a private address (%s)", f->host);
	else if (f->body_error < 0)
		fetch_fail(f, f->body_error, 0, "%s",
			   f->body_error == -EFBIG ? "larger than max-size"
						   : strerror(-f->body_error));
	else if (curl_code == CURLE_FILESIZE_EXCEEDED)
		fetch_fail(f, -EFBIG, 0, "larger than max-size");
	else if (curl_code != CURLE_OK && !(curl_code == CURLE_WRITE_ERROR && status != 200))
		fetch_fail(f, curl_code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EIO, 0, "%s",
			   f->curl_error[0] ? f->curl_error
					    : curl_easy_strerror((CURLcode)curl_code));
	else if (status >= 300 && status < 400 && status != 304)
		fetch_redirect(f);
	else if (status == 200 || status == 304)
		fetch_answered(f, status);
	else
		fetch_fail(f, -EPROTO, retry > 0 ? (uint64_t)retry : 0, "HTTP %ld", status);
}
