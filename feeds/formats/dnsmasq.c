/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnsmasq.conf(5): the lines that say how a domain is answered. A domain stands for itself and all
 * below it.
 *
 *   address=/x/[y/...]     address=/x/#     address=/x/0.0.0.0   (also ::, 127.0.0.1)   blocked
 *   server=/x/[y/...]      local=/x/                              never asked for: blocked
 *   server=/x/#            local=/x/#                             asked for as usual: an exception
 *   address=/x/192.0.2.1                                          leads elsewhere: rejected
 *   server=/x/192.0.2.1                                           forwarding: not applied
 *
 * `*.x` is what lies below x; any other `*`, and every other option, is not applied. `#` begins a
 * comment at the start of a line or behind a blank. Stateless; runs in the fetcher and in `feeds
 * compile`.
 */
#include "feeds/formats/entry.h"

#include "feeds/set/domset.h"

#include <string.h>

enum dnsmasq_option { DNSMASQ_ADDRESS, DNSMASQ_SERVER, DNSMASQ_OTHER, DNSMASQ_NONE };

static struct entry_text dnsmasq_without_comment(struct entry_text t)
{
	for (size_t i = 0; i < t.length; i++)
		if (t.at[i] == '#' && (i == 0 || t.at[i - 1] == ' ' || t.at[i - 1] == '\t'))
			t.length = i;
	return entry_trim(t.at, t.length);
}

/* Which option; *rest is what stands behind the '='. */
static enum dnsmasq_option dnsmasq_option(struct entry_text line, struct entry_text *rest)
{
	size_t n = 0;
	while (n < line.length &&
	       ((line.at[n] >= 'a' && line.at[n] <= 'z') || (n > 0 && line.at[n] == '-') ||
		(n > 0 && line.at[n] >= '0' && line.at[n] <= '9')))
		n++;
	struct entry_text key = {line.at, n};
	*rest = entry_trim(line.at + n, line.length - n);
	if (n == 0 || (rest->length > 0 && rest->at[0] != '='))
		return DNSMASQ_NONE;
	if (rest->length == 0)
		return DNSMASQ_OTHER;
	*rest = entry_trim(rest->at + 1, rest->length - 1);
	if (n == 7 && memcmp(key.at, "address", 7) == 0)
		return DNSMASQ_ADDRESS;
	if ((n == 6 && memcmp(key.at, "server", 6) == 0) ||
	    (n == 5 && memcmp(key.at, "local", 5) == 0))
		return DNSMASQ_SERVER;
	return DNSMASQ_OTHER;
}

/* What each of the domains gets: flags, or 0 and a reason to reject. */
static uint16_t dnsmasq_flags(enum dnsmasq_option option, struct entry_text target,
			      enum feed_reject *reason)
{
	bool none = target.length == 0, hash = target.length == 1 && target.at[0] == '#';
	if (option == DNSMASQ_SERVER) {
		*reason = FEED_REJECT_UNSUPPORTED;
		return none ? DOMSET_SUBTREE : hash ? DOMSET_EXCEPT(DOMSET_SUBTREE) : 0;
	}
	*reason = FEED_REJECT_REDIRECT;
	return none || hash || entry_is_block_address(target) == 1 ? DOMSET_SUBTREE : 0;
}

static int dnsmasq_domain(const struct feed_body *body, const struct feed_line *line,
			  struct entry_text domain, uint16_t flags, enum feed_reject reason)
{
	if (domain.length > 2 && domain.at[0] == '*' && domain.at[1] == '.') {
		domain = (struct entry_text){domain.at + 2, domain.length - 2};
		flags = flags == DOMSET_SUBTREE ? DOMSET_BELOW
			: flags			? DOMSET_EXCEPT(DOMSET_BELOW)
						: 0;
	} else if (domain.length > 1 && domain.at[0] == '.') {
		domain = (struct entry_text){domain.at + 1, domain.length - 1};
	}
	/* All domains, names without a dot, prefixes. */
	if (domain.length == 0 || memchr(domain.at, '#', domain.length) ||
	    memchr(domain.at, '*', domain.length)) {
		reason = FEED_REJECT_UNSUPPORTED;
		flags = 0;
	}
	if (flags)
		return entry_deliver(body->sink, line, domain.at, domain.length, flags);
	entry_reject(body->sink, line, reason);
	return 0;
}

static int dnsmasq_line(struct feed_body *body, const struct feed_line *line)
{
	struct entry_text t = dnsmasq_without_comment(entry_trim(line->text, line->length)), rest;
	enum feed_reject reason;
	if (t.length == 0)
		return 0;
	enum dnsmasq_option option = dnsmasq_option(t, &rest);
	if (option == DNSMASQ_NONE) {
		entry_reject(body->sink, line, FEED_REJECT_SYNTAX);
		return 0;
	}
	/* `server=192.0.2.1` names no domain. */
	if (option == DNSMASQ_OTHER || rest.length == 0 || rest.at[0] != '/') {
		entry_reject(body->sink, line, FEED_REJECT_UNSUPPORTED);
		return 0;
	}
	const char *last = memrchr(rest.at, '/', rest.length);
	if (last == rest.at) {
		entry_reject(body->sink, line, FEED_REJECT_SYNTAX);
		return 0;
	}
	struct entry_text target = {last + 1, rest.length - (size_t)(last + 1 - rest.at)};
	uint16_t flags = dnsmasq_flags(option, target, &reason);
	for (const char *at = rest.at + 1; at <= last;) {
		const char *slash = memchr(at, '/', (size_t)(last + 1 - at));
		struct entry_text domain = {at, (size_t)(slash - at)};
		int result = dnsmasq_domain(body, line, domain, flags, reason);
		if (result < 0)
			return result;
		at = slash + 1;
	}
	return 0;
}

static int dnsmasq_judge(struct entry_text line)
{
	struct entry_text rest;
	line = dnsmasq_without_comment(line);
	if (line.length == 0)
		return -1;
	return dnsmasq_option(line, &rest) != DNSMASQ_NONE && memchr(line.at, '=', line.length);
}

static int dnsmasq_recognise(const char *head, size_t size)
{
	return entry_likeness(head, size, dnsmasq_judge);
}

const struct feed_format feed_format_dnsmasq = {
	.name = "dnsmasq",
	.help = "dnsmasq.conf(5): address=/name/#, local=/name/, server=/name/",
	.default_match = FEED_MATCH_FORMAT,
	.line = dnsmasq_line,
	.recognise = dnsmasq_recognise,
};
