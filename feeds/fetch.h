/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP for the fetcher: one URL into a stream of octets, on the event loop, with every wait and
 * every size bounded. libcurl speaks HTTP and TLS; host names are resolved by evdns through the
 * given resolvers, never by the system's resolver, which may be this very daemon.
 *
 * Redirects are followed here, not by libcurl: at most 5, never from https to http, never with the
 * site's secret headers to another host, and to a private address only if the feed allows it.
 */
#ifndef BALEEN_FEEDS_FETCH_H
#define BALEEN_FEEDS_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct fetch_pool;
struct fetch;

/* `resolvers`: NULL-terminated, or NULL for those of resolv.conf. */
int fetch_pool_new(struct event_base *base, const char *const *resolvers, struct fetch_pool **out);
/* All transfers must be done or cancelled. */
void fetch_pool_free(struct fetch_pool *p);

struct fetch_result {
	int error;	   /* 0: a complete answer; else -errno */
	bool not_modified; /* 304 to the validators that were sent */
	bool whole;	   /* the transport vouches for the end of the body */
	uint64_t retry_after_s;
	const char *etag, *last_modified; /* of the answer; "" */
	const char *why;		  /* one line for people when error is set */
};

struct fetch_request {
	const char *url;
	const char *etag, *last_modified; /* validators; "" or NULL: none */
	const void *ca;			  /* PEM; NULL: the system's */
	size_t ca_size;
	const char *headers; /* "Name: value" lines, or NULL */
	bool allow_private;
	uint64_t max_bytes; /* as they come over the wire */

	/* Octets of a 200 answer. Other than 0 ends the transfer with that error. */
	int (*body)(void *context, const void *data, size_t size);
	/* Exactly once, never from inside fetch_start; `f` is gone afterwards. */
	void (*done)(void *context, const struct fetch_result *result);
	void *context;
};

/* Texts must live until `done`. 0 or -errno (-EINVAL: no URL that can be fetched). */
int fetch_start(struct fetch_pool *p, const struct fetch_request *request, struct fetch **out);
/* Without calling `done`. */
void fetch_cancel(struct fetch *f);

#endif
