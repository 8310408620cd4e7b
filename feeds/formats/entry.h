/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every list format shares: the text of one name becomes an entry or a reject, by the same
 * rules whatever the format; and blanks, tokens and likeness scores. Runs where the parsers run.
 */
#ifndef BALEEN_FEEDS_FORMATS_ENTRY_H
#define BALEEN_FEEDS_FORMATS_ENTRY_H

#include "feeds/formats/format.h"

#include <stdbool.h>
#include <stddef.h>

struct entry_text {
	const char *at;
	size_t length;
};

/* Without blanks (space, tab, other ASCII white space) at both ends. */
struct entry_text entry_trim(const char *text, size_t length);

/* Take the next blank-separated token off `rest`; false at the end. */
bool entry_token(struct entry_text *rest, struct entry_text *token);

/* Cut a trailing comment off: everything from the first '#'. One rule for all formats. */
struct entry_text entry_without_comment(const char *text, size_t length);

/* An IPv4 or IPv6 address or prefix, with or without a zone index. */
bool entry_is_address(const char *text, size_t length);

/* An address that stands for "nowhere": unspecified, loopback. 1: so it is, 0: another address, -1:
 * no address at all. */
int entry_is_block_address(struct entry_text token);

/* Names that machines use for themselves: localhost, broadcasthost, ip6-*, the root... */
bool entry_is_local(const char *text, size_t length);

/*
 * Deliver `text` with `flags`, or reject the line. Letters, digits, '-', '_', octets above 127 and
 * \-escapes make up a name here; anything else ('@', '/', ':', '*', ...) says that the line means
 * something else than a name.
 */
int entry_deliver(const struct feed_sink *sink, const struct feed_line *line, const char *text,
		  size_t length, uint16_t flags);
void entry_reject(const struct feed_sink *sink, const struct feed_line *line,
		  enum feed_reject reason);

/* How many of the lines of `head` `judge` likes, in per cent. It answers 1 (like this format), 0
 * (unlike) or -1 (says nothing: empty, comment). */
int entry_likeness(const char *head, size_t size, int (*judge)(struct entry_text line));

/* Could it be a name with at least two labels? A quick look for the judges, no more. */
bool entry_looks_like_name(struct entry_text t);

#endif
