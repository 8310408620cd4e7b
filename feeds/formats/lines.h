/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A body as lines, whatever its encoding, from chunks of any size in constant memory: UTF-8 with or
 * without BOM passes, UTF-16 (by BOM, or told from its first two octets) is transcoded, UTF-32
 * ends it with -EILSEQ. LF, CR LF and CR end lines. A line over LINES_MAX octets or with a NUL
 * inside is reported and skipped, the next one counts again. The last line without an end is held
 * back until the caller knows that the body is whole. Owned by its body's parser.
 */
#ifndef BALEEN_FEEDS_FORMATS_LINES_H
#define BALEEN_FEEDS_FORMATS_LINES_H

#include "feeds/formats/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINES_MAX 4096

struct lines {
	/* 0 or -errno, which ends the body. */
	int (*line)(void *context, const struct feed_line *line);
	void (*reject)(void *context, enum feed_reject reason, uint64_t line, const char *text,
		       size_t length);
	/* If set, gets the decoded body first, in pieces, and hands on what it wants split into
	 * lines (lines_split); (NULL, 0) at the end. */
	int (*decoded)(void *context, const char *text, size_t size);
	void *context;

	/* Private. */
	int encoding;
	uint8_t pending[4]; /* the body's first octets, then half a UTF-16 unit */
	unsigned pending_count;
	uint32_t surrogate; /* high half that waits for its low one */
	bool after_cr;
	bool overlong, has_nul;
	uint64_t number; /* lines ended so far */
	size_t length;
	char text[LINES_MAX];
};

/* Set the public members, all else zero. */
int lines_push(struct lines *l, const void *data, size_t size);
/* UTF-8, to be split. */
int lines_split(struct lines *l, const char *text, size_t size);
/* The end. `whole`: deliver a last line without an end; else it is dropped. */
int lines_finish(struct lines *l, bool whole);

#endif
