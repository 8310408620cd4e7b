/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list format: a row in a table, one file each in this folder. A parser reads a body as a
 * stream of chunks with bounded memory, and hands on entries; what it cannot take it rejects, by
 * reason, never widening a rule it does not understand. Runs in the fetcher and in `feeds compile`.
 */
#ifndef BALEEN_FEEDS_FORMATS_FORMAT_H
#define BALEEN_FEEDS_FORMATS_FORMAT_H

#include "base/name.h"
#include "feeds/feed.h"

#include <stdint.h>

enum feed_reject {
	FEED_REJECT_SYNTAX,	 /* not a line of this format */
	FEED_REJECT_NAME,	 /* no domain name: empty label, too long, '@', IDNA refuses */
	FEED_REJECT_ADDRESS,	 /* an IP address where a name was expected */
	FEED_REJECT_LOCAL,	 /* localhost, broadcasthost, ip6-*, the empty name, the root */
	FEED_REJECT_REDIRECT,	 /* hosts line with another address than a blocking one */
	FEED_REJECT_UNSUPPORTED, /* a rule of the format that Baleen does not apply (regex, ...) */
	FEED_REJECT_MODIFIER,	 /* adblock: a modifier that would change what the rule means */
	FEED_REJECT_COSMETIC,	 /* adblock: not about DNS */
	FEED_REJECT_LONG,	 /* line over the bound */
	FEED_REJECT_ENCODING,	 /* NUL, control octets, broken UTF-8 */
	FEED_REJECT_SUFFIX,	 /* would take in a top-level domain (the hard list) */
	FEED_REJECT_PROTECTED,	 /* the hard list: the site's own zones, upstreams, feed hosts */
	FEED_REJECT_URL,	 /* a URL that is more than its host */
	FEED_REJECT_ZONE,	 /* rpz: an owner outside of the zone */
	FEED_REJECT_EXPIRED,	 /* not valid now, says the feed */
	FEED_REJECT_REASONS
};
/* Stable words for JSON, in enum order: "syntax", "name", "address", ... */
extern const char *const feed_reject_words[FEED_REJECT_REASONS];

/* Beside domset.h's flags: the list takes back what it says elsewhere with just these flags, in
 * whatever order the two stand (adblock: $badfilter). */
#define FEED_ENTRY_CANCEL 0x8000

struct feed_line {
	const char *text; /* without the line end; no NUL inside */
	size_t length;
	uint64_t number; /* from 1 */
};

/* Where a parser delivers. `line` is what an entry comes from, for the examples of rejects. */
struct feed_sink {
	void *context;
	/* `flags` as domset.h says, perhaps with FEED_ENTRY_CANCEL. 0 or -errno, which ends the
	 * parse. */
	int (*entry)(void *context, const struct feed_line *line, const struct name *name,
		     uint16_t flags);
	void (*reject)(void *context, enum feed_reject reason, uint64_t line, const char *text,
		       size_t length);
	/* The body as a whole is not to be used. Returns -EBADMSG. */
	int (*refuse)(void *context, const char *why);
};

/* One body while it is read. */
struct feed_body {
	const struct feed_format *format;
	enum feed_match match; /* FEED_MATCH_FORMAT only where default_match is */
	struct feed_hints hints;
	int64_t now_s;
	const struct feed_sink *sink;
	void *state; /* of the format: state_size octets, zero at the body's beginning */
};

struct feed_format {
	const char *name; /* the word in the configuration */
	const char *help;
	enum feed_match default_match; /* FEED_MATCH_FORMAT: the format says it for each rule */
	size_t state_size;
	/* One of the two. `line`: one line, already free of BOM, CR and over-long text. `text`: the
	 * body in pieces, as UTF-8. 0 or -errno, which ends the parse. */
	int (*line)(struct feed_body *body, const struct feed_line *line);
	int (*text)(struct feed_body *body, const char *text, size_t size);
	int (*end)(struct feed_body *body); /* all is there; may be NULL */
	/* 0..100: how much the beginning of a body looks like this format. */
	int (*recognise)(const char *head, size_t size);
};

/* `match` FEED_MATCH_FORMAT: the format's own. `hints` may be NULL. 0 or -ENOMEM. */
int feed_body_init(struct feed_body *b, const struct feed_format *format, enum feed_match match,
		   const struct feed_hints *hints, int64_t now_s, const struct feed_sink *sink);
void feed_body_fini(struct feed_body *b);

extern const struct feed_format feed_format_hosts, feed_format_domains, feed_format_adblock;
extern const struct feed_format feed_format_dnsmasq, feed_format_unbound, feed_format_rpz;
extern const struct feed_format feed_format_urls, feed_format_csv, feed_format_json;
extern const struct feed_format feed_format_misp, feed_format_stix;

/* NULL-terminated, in the order in which `auto` breaks ties. */
extern const struct feed_format *const feed_formats[];
const struct feed_format *feed_format_find(const char *name);		    /* NULL: not known */
const struct feed_format *feed_format_guess(const char *head, size_t size); /* NULL: none fits */

#endif
