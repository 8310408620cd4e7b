/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's multi interface on a libevent loop. Runs in the fetcher; owns the multi handle, the
 * events on its sockets, and the resolver. Invariant: transfers end in fetch_pool_check, called
 * from the loop alone, so no callback runs inside a call into libcurl that could see its handle go.
 */
#include "feeds/fetch_pool.h"

#include "base/file.h"

#include <curl/curl.h>
#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#define FETCH_CA_PATH "/etc/ssl/certs/ca-certificates.crt"
#define FETCH_CA_MAX  ((size_t)8 << 20)

struct fetch_pool {
	struct event_base *base;
	struct evdns_base *dns;
	CURLM *multi;
	struct event *timer;
	char *ca;
	size_t ca_size;
};

static void fetch_pool_check(struct fetch_pool *p)
{
	CURLMsg *message;
	int left;
	while ((message = curl_multi_info_read(p->multi, &left)))
		if (message->msg == CURLMSG_DONE)
			fetch_ended(message->easy_handle, (int)message->data.result);
}

static void fetch_pool_on_event(evutil_socket_t fd, short what, void *context)
{
	struct fetch_pool *p = context;
	int running;
	int action =
		(what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
	curl_multi_socket_action(p->multi, fd, action, &running);
	fetch_pool_check(p);
}

static void fetch_pool_on_timer(evutil_socket_t fd, short what, void *context)
{
	struct fetch_pool *p = context;
	int running;
	(void)fd;
	(void)what;
	curl_multi_socket_action(p->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	fetch_pool_check(p);
}

static int fetch_pool_socket(CURL *easy, curl_socket_t fd, int what, void *context,
			     void *socket_context)
{
	struct fetch_pool *p = context;
	struct event *event = socket_context;
	(void)easy;
	if (event)
		event_free(event);
	event = NULL;
	if (what != CURL_POLL_REMOVE) {
		short kind = EV_PERSIST | (what & CURL_POLL_IN ? EV_READ : 0) |
			     (what & CURL_POLL_OUT ? EV_WRITE : 0);
		event = event_new(p->base, fd, kind, fetch_pool_on_event, p);
		if (event)
			event_add(event, NULL);
	}
	curl_multi_assign(p->multi, fd, event);
	return 0;
}

static int fetch_pool_set_timer(CURLM *multi, long timeout_ms, void *context)
{
	struct fetch_pool *p = context;
	(void)multi;
	if (timeout_ms < 0) {
		evtimer_del(p->timer);
		return 0;
	}
	const struct timeval wait = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	evtimer_add(p->timer, &wait);
	return 0;
}

static int fetch_pool_open_dns(struct fetch_pool *p, const char *const *resolvers)
{
	bool own = resolvers && resolvers[0];
	p->dns = evdns_base_new(p->base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (!p->dns)
		return -ENOMEM;
	evdns_base_load_hosts(p->dns, "/etc/hosts");
	for (; own && *resolvers; resolvers++)
		evdns_base_nameserver_ip_add(p->dns, *resolvers);
	if (!own)
		evdns_base_resolv_conf_parse(p->dns, DNS_OPTION_NAMESERVERS | DNS_OPTION_MISC,
					     "/etc/resolv.conf");
	/* Names in URLs are complete. */
	evdns_base_search_clear(p->dns);
	return 0;
}

int fetch_pool_new(struct event_base *base, const char *const *resolvers, struct fetch_pool **out)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	struct fetch_pool *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->base = base;
	p->multi = curl_multi_init();
	p->timer = evtimer_new(base, fetch_pool_on_timer, p);
	int result = p->multi && p->timer ? fetch_pool_open_dns(p, resolvers) : -ENOMEM;
	if (result < 0) {
		fetch_pool_free(p);
		return result;
	}
	/* Read now: what is readable may shrink once the sandbox is on. */
	if (file_read(FETCH_CA_PATH, FETCH_CA_MAX, &p->ca, &p->ca_size) < 0)
		p->ca = NULL;
	curl_multi_setopt(p->multi, CURLMOPT_SOCKETFUNCTION, fetch_pool_socket);
	curl_multi_setopt(p->multi, CURLMOPT_SOCKETDATA, p);
	curl_multi_setopt(p->multi, CURLMOPT_TIMERFUNCTION, fetch_pool_set_timer);
	curl_multi_setopt(p->multi, CURLMOPT_TIMERDATA, p);
	*out = p;
	return 0;
}

void fetch_pool_free(struct fetch_pool *p)
{
	if (!p)
		return;
	if (p->multi)
		curl_multi_cleanup(p->multi);
	if (p->timer)
		event_free(p->timer);
	if (p->dns)
		evdns_base_free(p->dns, 0);
	free(p->ca);
	free(p);
}

int fetch_pool_add(struct fetch_pool *p, void *easy)
{
	return curl_multi_add_handle(p->multi, easy) == CURLM_OK ? 0 : -EIO;
}

void fetch_pool_remove(struct fetch_pool *p, void *easy)
{
	curl_multi_remove_handle(p->multi, easy);
}

struct event_base *fetch_pool_base(struct fetch_pool *p)
{
	return p->base;
}

struct evdns_base *fetch_pool_dns(struct fetch_pool *p)
{
	return p->dns;
}

const void *fetch_pool_ca(struct fetch_pool *p, size_t *size)
{
	*size = p->ca_size;
	return p->ca;
}
