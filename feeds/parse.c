/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a body: gunzip -> lines -> (guess) -> format -> hard list -> feed file. Runs in the
 * fetcher and in `feeds compile`; a `struct parse` owns all of its stages but the feed file writer.
 * Invariant: after an error nothing more is delivered, and the report keeps the first reason.
 */
#include "feeds/parse.h"

#include "feeds/admission.h"
#include "feeds/formats/lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define PARSE_HEAD_MAX	  ((size_t)64 << 10)
#define PARSE_INFLATE_MAX ((size_t)64 << 10)

struct parse {
	struct parse_options options;
	struct feedfile_writer *to;
	struct parse_report report;
	struct feed_sink sink;
	struct lines lines;
	int failed;		      /* sticky */
	const struct feed_line *line; /* that is being read */

	/* The first lines, kept until the format is known. */
	char *head;
	size_t head_length;

	uint8_t magic[2]; /* the body's first two octets */
	unsigned magic_count;
	bool gzip, gzip_ended;
	z_stream stream;
	uint8_t *inflated;
};

static int parse_fail(struct parse *p, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int parse_fail(struct parse *p, int error, const char *format, ...)
{
	if (p->failed == 0) {
		va_list arguments;
		va_start(arguments, format);
		vsnprintf(p->report.error, sizeof(p->report.error), format, arguments);
		va_end(arguments);
		p->failed = error;
	}
	return p->failed;
}

/* An example for people: escaped, one line, cut. */
static void parse_example(const char *text, size_t length, char out[PARSE_EXAMPLE_MAX])
{
	char *p = out, *end = out + PARSE_EXAMPLE_MAX - 8;
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		if (p >= end) {
			p = stpcpy(p, "...");
			break;
		}
		if (c < 0x20 || c >= 0x7f)
			p += sprintf(p, "\\%03u", c);
		else
			*p++ = (char)c;
	}
	*p = '\0';
}

static void parse_reject(void *context, enum feed_reject reason, uint64_t line, const char *text,
			 size_t length)
{
	struct parse *p = context;
	struct parse_reject *r = &p->report.rejects[reason];
	if (r->count < PARSE_EXAMPLES) {
		r->examples[r->count].line = line;
		parse_example(text, length, r->examples[r->count].text);
	}
	r->count++;
	p->report.rejected++;
}

static int parse_entry(void *context, const struct name *name, uint16_t flags)
{
	struct parse *p = context;
	int reason = hardlist_check(p->options.protected, name, flags);
	if (reason >= 0) {
		parse_reject(p, (enum feed_reject)reason, p->line->number, p->line->text,
			     p->line->length);
		return 0;
	}
	p->report.accepted++;
	return feedfile_add(p->to, name, flags);
}

static bool parse_is_markup(const char *text, size_t length)
{
	static const char *const tags[] = {"<!doctype", "<html",   "<head", "<body", "<meta",
					   "<title",	"<script", "<?xml", "<div",  "<!--"};
	while (length > 0 && (*text == ' ' || *text == '\t')) {
		text++;
		length--;
	}
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (length >= strlen(tags[i]) && strncasecmp(text, tags[i], strlen(tags[i])) == 0)
			return true;
	return false;
}

static int parse_feed_line(struct parse *p, const struct feed_line *line)
{
	enum feed_match match = p->options.match;
	const struct feed_format *format = p->report.format;
	if (match == FEED_MATCH_FORMAT || format->default_match == FEED_MATCH_FORMAT)
		match = format->default_match;
	p->line = line;
	return format->line(line, match, &p->sink);
}

/* The head is complete: choose a format and read the head with it. */
static int parse_begin_format(struct parse *p)
{
	p->report.format = feed_format_guess(p->head, p->head_length);
	if (!p->report.format)
		return parse_fail(p, -EBADMSG, "looks like none of the known list formats");
	struct feed_line line = {.text = p->head};
	const char *end = p->head + p->head_length;
	while (line.text < end) {
		const char *stop = memchr(line.text, '\n', (size_t)(end - line.text));
		line.length = (size_t)(stop - line.text);
		line.number++;
		int result = parse_feed_line(p, &line);
		if (result < 0)
			return result;
		line.text = stop + 1;
	}
	p->head_length = 0;
	return 0;
}

/* Every line of the head ends in LF, so the n-th is the body's n-th. */
static int parse_keep_head(struct parse *p, const char *text, size_t length)
{
	memcpy(p->head + p->head_length, text, length);
	p->head_length += length;
	p->head[p->head_length++] = '\n';
	return p->head_length > PARSE_HEAD_MAX - LINES_MAX - 1 ? parse_begin_format(p) : 0;
}

static int parse_line(void *context, const struct feed_line *line)
{
	struct parse *p = context;
	p->report.lines++;
	if (parse_is_markup(line->text, line->length))
		return parse_fail(p, -EBADMSG, "a web page, not a list (line %llu)",
				  (unsigned long long)line->number);
	if (!p->report.format)
		return parse_keep_head(p, line->text, line->length);
	return parse_feed_line(p, line);
}

/* A line that no format gets to see: too long, a NUL inside. */
static void parse_lost_line(void *context, enum feed_reject reason, uint64_t line, const char *text,
			    size_t length)
{
	struct parse *p = context;
	p->report.lines++;
	parse_reject(p, reason, line, text, length);
	if (!p->report.format)
		p->failed = parse_keep_head(p, "", 0);
}

int parse_new(const struct parse_options *options, struct feedfile_writer *to, struct parse **out)
{
	struct parse *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->options = *options;
	p->to = to;
	p->report.format = options->format;
	p->sink = (struct feed_sink){p, parse_entry, parse_reject};
	p->lines = (struct lines){.line = parse_line, .reject = parse_lost_line, .context = p};
	if (!options->format && !(p->head = malloc(PARSE_HEAD_MAX))) {
		free(p);
		return -ENOMEM;
	}
	*out = p;
	return 0;
}

void parse_free(struct parse *p)
{
	if (!p)
		return;
	if (p->gzip)
		inflateEnd(&p->stream);
	free(p->inflated);
	free(p->head);
	free(p);
}

static int parse_text(struct parse *p, const void *data, size_t size)
{
	p->report.octets += size;
	if (p->report.octets > p->options.max_bytes)
		return parse_fail(p, -EFBIG, "more than %llu octets",
				  (unsigned long long)p->options.max_bytes);
	int result = lines_push(&p->lines, data, size);
	if (result == -EILSEQ)
		return parse_fail(p, -EBADMSG, "an encoding other than UTF-8 and UTF-16");
	if (result < 0 && p->failed == 0)
		p->failed = result;
	return p->failed;
}

static int parse_gzip(struct parse *p, const void *data, size_t size)
{
	p->stream.next_in = (Bytef *)(uintptr_t)data;
	p->stream.avail_in = (uInt)size;
	while (p->stream.avail_in > 0) {
		/* Several members one after the other are one file (RFC 1952). */
		if (p->gzip_ended && inflateReset(&p->stream) != Z_OK)
			return parse_fail(p, -EBADMSG, "damaged gzip");
		p->gzip_ended = false;
		p->stream.next_out = p->inflated;
		p->stream.avail_out = PARSE_INFLATE_MAX;
		int z = inflate(&p->stream, Z_NO_FLUSH);
		if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
			return parse_fail(p, -EBADMSG, "damaged gzip");
		p->gzip_ended = z == Z_STREAM_END;
		int result = parse_text(p, p->inflated, PARSE_INFLATE_MAX - p->stream.avail_out);
		if (result < 0)
			return result;
	}
	return 0;
}

static int parse_raw(struct parse *p, const void *data, size_t size)
{
	return p->gzip ? parse_gzip(p, data, size) : parse_text(p, data, size);
}

/* The first two octets are there, or all there are. */
static int parse_begin_body(struct parse *p)
{
	unsigned n = p->magic_count;
	if (n == 2 && p->magic[0] == 0x1f && p->magic[1] == 0x8b) {
		p->inflated = malloc(PARSE_INFLATE_MAX);
		if (!p->inflated || inflateInit2(&p->stream, 16 + MAX_WBITS) != Z_OK) {
			p->failed = -ENOMEM;
			return p->failed;
		}
		p->gzip = true;
	}
	return parse_raw(p, p->magic, n);
}

int parse_push(struct parse *p, const void *data, size_t size)
{
	const uint8_t *at = data;
	if (p->failed)
		return p->failed;
	if (p->magic_count < 2) {
		while (size > 0 && p->magic_count < 2) {
			p->magic[p->magic_count++] = *at++;
			size--;
		}
		if (p->magic_count < 2)
			return 0;
		int result = parse_begin_body(p);
		if (result < 0)
			return result;
	}
	return parse_raw(p, at, size);
}

int parse_finish(struct parse *p, bool whole)
{
	if (p->failed == 0 && p->magic_count == 1)
		parse_begin_body(p);
	if (p->failed)
		return p->failed;
	if (p->gzip && !p->gzip_ended)
		return parse_fail(p, -EBADMSG, "the gzip body is cut off");
	whole = whole || p->gzip;
	int result = lines_finish(&p->lines, whole);
	if (result == 0 && !p->report.format && p->head_length > 0)
		result = parse_begin_format(p);
	if (result < 0 && p->failed == 0)
		p->failed = result;
	return p->failed;
}

const struct parse_report *parse_report(const struct parse *p)
{
	return &p->report;
}
