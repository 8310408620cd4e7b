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
	FEED_REJECT_REASONS
};
/* Stable words for JSON, in enum order: "syntax", "name", "address", ... */
extern const char *const feed_reject_words[FEED_REJECT_REASONS];

/* Beside domset.h's flags: the list takes back what it says elsewhere with just these flags, in
 * whatever order the two stand (adblock: $badfilter). */
#define FEED_ENTRY_CANCEL 0x8000

/* Where a parser delivers. */
struct feed_sink {
	void *context;
	/* `flags` as domset.h says, perhaps with FEED_ENTRY_CANCEL. 0 or -errno, which ends the
	 * parse. */
	int (*entry)(void *context, const struct name *name, uint16_t flags);
	void (*reject)(void *context, enum feed_reject reason, uint64_t line, const char *text,
		       size_t length);
};

struct feed_line {
	const char *text; /* without the line end; no NUL inside */
	size_t length;
	uint64_t number; /* from 1 */
};

struct feed_format {
	const char *name; /* the word in the configuration */
	const char *help;
	enum feed_match default_match; /* FEED_MATCH_FORMAT: the format says it for each rule */
	/* One line, already free of BOM, CR and over-long text. `match` is never FEED_MATCH_FORMAT
	 * unless default_match is. */
	int (*line)(const struct feed_line *line, enum feed_match match,
		    const struct feed_sink *sink);
	/* 0..100: how much the first lines of a body look like this format. */
	int (*recognise)(const char *head, size_t size);
};

extern const struct feed_format feed_format_hosts, feed_format_domains, feed_format_adblock;

/* NULL-terminated, in the order in which `auto` breaks ties. */
extern const struct feed_format *const feed_formats[];
const struct feed_format *feed_format_find(const char *name);		    /* NULL: not known */
const struct feed_format *feed_format_guess(const char *head, size_t size); /* NULL: none fits */

#endif
