/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an indicator's text to a name. A list of URLs is not a list of names: what is bad on one
 * page of a host with many owners is not the host. Stateless; runs in the fetcher and in `feeds
 * compile`. Invariant: without `url-host` no URL with a path, a query or a user yields its host.
 */
#include "feeds/formats/indicator.h"

#include "feeds/set/domset.h"

#include <string.h>
#include <strings.h>

#define INDICATOR_MAX 2048

/* Undo `x[.]test`, `x(.)test`, `x{.}test`, `hxxp[:]//`; the scheme's letters do not matter. */
static size_t indicator_refang(const char *text, size_t length, char out[INDICATOR_MAX])
{
	size_t n = 0;
	for (size_t i = 0; i < length; i++) {
		bool pair = i + 2 < length && (text[i + 1] == '.' || text[i + 1] == ':') &&
			    ((text[i] == '[' && text[i + 2] == ']') ||
			     (text[i] == '(' && text[i + 2] == ')') ||
			     (text[i] == '{' && text[i + 2] == '}'));
		if (pair) {
			out[n++] = text[i + 1];
			i += 2;
		} else {
			out[n++] = text[i];
		}
	}
	return n;
}

/* The octets before "://", if they are a scheme's; else 0. */
static size_t indicator_scheme(struct entry_text t)
{
	size_t n = 0;
	while (n < t.length &&
	       ((t.at[n] >= 'a' && t.at[n] <= 'z') || (t.at[n] >= 'A' && t.at[n] <= 'Z') ||
		(n > 0 && t.at[n] >= '0' && t.at[n] <= '9') ||
		(n > 0 && strchr("+-.", t.at[n]) && t.at[n])))
		n++;
	return n > 0 && n + 3 <= t.length && memcmp(t.at + n, "://", 3) == 0 ? n : 0;
}

/* Without a port at its end. `[2001:db8::1]:80` becomes the address alone. */
static struct entry_text indicator_without_port(struct entry_text t)
{
	size_t n = t.length;
	while (n > 0 && t.at[n - 1] >= '0' && t.at[n - 1] <= '9')
		n--;
	if (n > 1 && t.at[n - 1] == ':' &&
	    (t.at[n - 2] == ']' || memchr(t.at, ':', t.length) == t.at + n - 1))
		t.length = n - 1;
	if (t.length > 2 && t.at[0] == '[' && t.at[t.length - 1] == ']')
		t = (struct entry_text){t.at + 1, t.length - 2};
	return t;
}

/* Cut a URL to its host; false if it is more than that. */
static bool indicator_host(struct entry_text *t)
{
	size_t n = 0;
	while (n < t->length && !(strchr("/?#\\", t->at[n]) && t->at[n]))
		n++;
	bool whole = n == t->length || (n + 1 == t->length && t->at[n] == '/');
	t->length = n;
	const char *user = memrchr(t->at, '@', t->length);
	if (user) {
		whole = false;
		t->length -= (size_t)(user + 1 - t->at);
		t->at = user + 1;
	}
	*t = indicator_without_port(*t);
	return whole;
}

/* What feeds hold beside names: mail addresses, and digests (MD5, SHA-1, SHA-256, SHA-512). */
static bool indicator_is_other(struct entry_text t)
{
	size_t hex = 0;
	if (memchr(t.at, '@', t.length))
		return true;
	while (hex < t.length && t.at[hex] && strchr("0123456789abcdefABCDEF", t.at[hex]))
		hex++;
	return hex == t.length && (hex == 32 || hex == 40 || hex == 64 || hex == 128);
}

int indicator_deliver(struct feed_body *body, const struct feed_line *line, const char *text,
		      size_t length, uint16_t name_flags, uint16_t url_flags)
{
	char copy[INDICATOR_MAX];
	struct entry_text t = entry_trim(text, length);
	if (t.length > sizeof(copy)) {
		entry_reject(body->sink, line, FEED_REJECT_LONG);
		return 0;
	}
	t = (struct entry_text){copy, indicator_refang(t.at, t.length, copy)};
	if (entry_is_address(t.at, t.length)) {
		entry_reject(body->sink, line, FEED_REJECT_ADDRESS);
		return 0;
	}
	size_t scheme = indicator_scheme(t);
	if (scheme > 0 || memchr(t.at, '/', t.length)) {
		if (scheme > 0)
			t = (struct entry_text){t.at + scheme + 3, t.length - scheme - 3};
		bool whole = indicator_host(&t);
		if (!whole && !body->hints.url_host && !entry_is_address(t.at, t.length)) {
			entry_reject(body->sink, line, FEED_REJECT_URL);
			return 0;
		}
		return entry_deliver(body->sink, line, t.at, t.length, url_flags);
	}
	if (indicator_is_other(t)) {
		entry_reject(body->sink, line, FEED_REJECT_UNSUPPORTED);
		return 0;
	}
	t = indicator_without_port(t);
	if (t.length > 2 && t.at[0] == '*' && t.at[1] == '.') {
		t = (struct entry_text){t.at + 2, t.length - 2};
		name_flags = DOMSET_BELOW;
	} else if (t.length > 1 && t.at[0] == '.') {
		t = (struct entry_text){t.at + 1, t.length - 1};
		name_flags = DOMSET_SUBTREE;
	}
	return entry_deliver(body->sink, line, t.at, t.length, name_flags);
}
