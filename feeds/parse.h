/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list's body, as a stream of chunks, into a feed file: unpacked if it is packed, refused if it
 * is a web page, split into lines, format guessed if not given, entries checked against the hard
 * list, rejects counted by reason with the first few kept. Bounded memory. Owned by its caller.
 */
#ifndef BALEEN_FEEDS_PARSE_H
#define BALEEN_FEEDS_PARSE_H

#include "feeds/feed.h"
#include "feeds/feedfile.h"
#include "feeds/formats/format.h"
#include "feeds/namelist.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARSE_EXAMPLES	  3
#define PARSE_EXAMPLE_MAX 100
#define PARSE_ERROR_MAX	  160

struct parse_reject {
	uint64_t count;
	struct {
		uint64_t line;
		char text[PARSE_EXAMPLE_MAX]; /* as in the list; control octets escaped, cut */
	} examples[PARSE_EXAMPLES];
};

struct parse_report {
	const struct feed_format *format; /* NULL: none was found */
	uint64_t octets;		  /* after decompression */
	uint64_t lines;
	uint64_t accepted; /* entries delivered, before equal ones become one */
	uint64_t rejected; /* sum over reasons */
	struct parse_reject rejects[FEED_REJECT_REASONS];
	char error[PARSE_ERROR_MAX]; /* why the body as a whole was refused; "" */
};

struct parse_options {
	const struct feed_format *format; /* NULL: guess */
	enum feed_match match;
	struct feed_hints hints;
	uint64_t max_bytes;		  /* of the body, decompressed */
	const struct namelist *protected; /* hard list's names; may be NULL */
};

struct parse;

int parse_new(const struct parse_options *options, struct feedfile_writer *to, struct parse **out);
/* 0; -EBADMSG: the body is refused, the report says why; -EFBIG; other -errno (disk, memory). */
int parse_push(struct parse *p, const void *data, size_t size);
/* The end of the body. `whole` is the transport's word that nothing is missing; without it a last
 * line that has no end is dropped. */
int parse_finish(struct parse *p, bool whole);
const struct parse_report *parse_report(const struct parse *p);
void parse_free(struct parse *p);

#endif
