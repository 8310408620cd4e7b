/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a body: unpack -> decode -> (guess) -> lines -> format -> hard list -> feed file. Runs
 * in the fetcher and in `feeds compile`; a `struct parse` owns all of its stages but the feed file
 * writer. A body that begins as JSON does is not split into lines.
 * Invariant: after an error nothing more is delivered, and the report keeps the first reason.
 */
#include "feeds/parse.h"

#include "feeds/admission.h"
#include "feeds/formats/lines.h"
#include "feeds/unpack.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define PARSE_HEAD_MAX ((size_t)64 << 10)
#define PARSE_HELD_MAX 256

/* How the body is read: lines or text, once its first octets have shown which. */
enum parse_mode { PARSE_MODE_OPEN, PARSE_MODE_LINES, PARSE_MODE_TEXT };

struct parse {
	struct parse_options options;
	struct feedfile_writer *to;
	struct parse_report report;
	struct feed_sink sink;
	struct unpack unpack;
	struct lines lines;
	struct feed_body body; /* once the format is known */
	bool has_body;
	enum parse_mode mode;
	bool line_ended; /* of a text: the next octet is on another line */
	int failed;	 /* sticky */

	char held[PARSE_HELD_MAX]; /* blanks at the beginning, and what decides the mode */
	size_t held_length;
	/* The first lines or octets, kept until the format is known. */
	char *head;
	size_t head_length;
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

static int parse_refuse(void *context, const char *why)
{
	return parse_fail(context, -EBADMSG, "%s", why);
}

static int parse_entry(void *context, const struct feed_line *line, const struct name *name,
		       uint16_t flags)
{
	struct parse *p = context;
	int reason = hardlist_check(p->options.protected, name, flags);
	if (reason >= 0) {
		parse_reject(p, (enum feed_reject)reason, line->number, line->text, line->length);
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

static int parse_begin_body(struct parse *p, const struct feed_format *format)
{
	p->report.format = format;
	p->has_body = true;
	return feed_body_init(&p->body, format, p->options.match, &p->options.hints,
			      (int64_t)time(NULL), &p->sink);
}

static int parse_read_head(struct parse *p)
{
	if (p->mode == PARSE_MODE_TEXT)
		return p->body.format->text(&p->body, p->head, p->head_length);
	struct feed_line line = {.text = p->head};
	const char *end = p->head + p->head_length;
	while (line.text < end) {
		const char *stop = memchr(line.text, '\n', (size_t)(end - line.text));
		line.length = (size_t)(stop - line.text);
		line.number++;
		int result = p->body.format->line(&p->body, &line);
		if (result < 0)
			return result;
		line.text = stop + 1;
	}
	return 0;
}

/* The head is complete: choose a format and read the head with it. */
static int parse_begin_format(struct parse *p)
{
	const struct feed_format *format = feed_format_guess(p->head, p->head_length);
	if (!format || (format->text != NULL) != (p->mode == PARSE_MODE_TEXT))
		return parse_fail(p, -EBADMSG, "looks like none of the known list formats");
	int result = parse_begin_body(p, format);
	if (result == 0)
		result = parse_read_head(p);
	p->head_length = 0;
	return result;
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
	if (!p->has_body)
		return parse_keep_head(p, line->text, line->length);
	return p->body.format->line(&p->body, line);
}

/* A line that no format gets to see: too long, a NUL inside. */
static void parse_lost_line(void *context, enum feed_reject reason, uint64_t line, const char *text,
			    size_t length)
{
	struct parse *p = context;
	p->report.lines++;
	parse_reject(p, reason, line, text, length);
	if (!p->has_body)
		p->failed = parse_keep_head(p, "", 0);
}

/* A piece of a body that is not read by lines. */
static int parse_text(struct parse *p, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		p->report.lines += p->line_ended;
		p->line_ended = text[i] == '\n';
	}
	while (size > 0 && !p->has_body) {
		size_t n = PARSE_HEAD_MAX - p->head_length;
		n = n < size ? n : size;
		memcpy(p->head + p->head_length, text, n);
		p->head_length += n;
		text += n;
		size -= n;
		int result = p->head_length == PARSE_HEAD_MAX ? parse_begin_format(p) : 0;
		if (result < 0)
			return result;
	}
	return size > 0 ? p->body.format->text(&p->body, text, size) : 0;
}

/* JSON begins with '{', or with '[' and no letter: "[Adblock Plus 2.0]" is a line. OPEN: the held
 * octets do not tell yet. */
static enum parse_mode parse_mode(const char *text, size_t length, bool ended)
{
	size_t i = 0;
	while (i < length && strchr(" \t\r\n", text[i]) && text[i])
		i++;
	if (i < length && text[i] == '{')
		return PARSE_MODE_TEXT;
	if (i < length && text[i] != '[')
		return PARSE_MODE_LINES;
	if (i + 1 < length)
		return text[i + 1] && strchr(" \t\r\n[]{\"", text[i + 1]) ? PARSE_MODE_TEXT
									  : PARSE_MODE_LINES;
	return ended || length == PARSE_HELD_MAX ? PARSE_MODE_LINES : PARSE_MODE_OPEN;
}

/* Read what is held, if it tells how. */
static int parse_settle(struct parse *p, bool ended)
{
	p->mode = parse_mode(p->held, p->held_length, ended);
	if (p->mode == PARSE_MODE_OPEN)
		return 0;
	return p->mode == PARSE_MODE_TEXT ? parse_text(p, p->held, p->held_length)
					  : lines_split(&p->lines, p->held, p->held_length);
}

static int parse_decoded(void *context, const char *text, size_t size)
{
	struct parse *p = context;
	int result = 0;
	if (!text)
		return p->mode == PARSE_MODE_OPEN ? parse_settle(p, true) : 0;
	while (result == 0 && p->mode == PARSE_MODE_OPEN && size > 0) {
		p->held[p->held_length++] = *text++;
		size--;
		result = parse_settle(p, false);
	}
	if (result < 0 || size == 0)
		return result;
	return p->mode == PARSE_MODE_TEXT ? parse_text(p, text, size)
					  : lines_split(&p->lines, text, size);
}

static int parse_unpacked(void *context, const void *data, size_t size)
{
	struct parse *p = context;
	p->report.octets += size;
	if (p->report.octets > p->options.max_bytes)
		return parse_fail(p, -EFBIG, "more than %llu octets",
				  (unsigned long long)p->options.max_bytes);
	int result = lines_push(&p->lines, data, size);
	if (result == -EILSEQ)
		return parse_fail(p, -EBADMSG, "an encoding other than UTF-8 and UTF-16");
	return result;
}

int parse_new(const struct parse_options *options, struct feedfile_writer *to, struct parse **out)
{
	struct parse *p = calloc(1, sizeof(*p));
	int result = 0;
	if (!p)
		return -ENOMEM;
	p->options = *options;
	p->to = to;
	p->sink = (struct feed_sink){p, parse_entry, parse_reject, parse_refuse};
	p->lines = (struct lines){.line = parse_line,
				  .reject = parse_lost_line,
				  .decoded = parse_decoded,
				  .context = p};
	p->line_ended = true;
	p->unpack = (struct unpack){.out = parse_unpacked, .context = p};
	if (options->format) {
		p->mode = options->format->text ? PARSE_MODE_TEXT : PARSE_MODE_LINES;
		result = parse_begin_body(p, options->format);
	} else if (!(p->head = malloc(PARSE_HEAD_MAX))) {
		result = -ENOMEM;
	}
	if (result < 0)
		parse_free(p);
	else
		*out = p;
	return result;
}

void parse_free(struct parse *p)
{
	if (!p)
		return;
	unpack_fini(&p->unpack);
	feed_body_fini(&p->body);
	free(p->head);
	free(p);
}

/* What a stage says at first is what counts. */
static int parse_result(struct parse *p, int result)
{
	if (result == -EBADMSG && p->failed == 0 && p->unpack.error)
		return parse_fail(p, result, "%s", p->unpack.error);
	if (result < 0 && p->failed == 0)
		p->failed = result;
	return p->failed;
}

int parse_push(struct parse *p, const void *data, size_t size)
{
	return p->failed ? p->failed : parse_result(p, unpack_push(&p->unpack, data, size));
}

int parse_finish(struct parse *p, bool whole)
{
	if (p->failed || parse_result(p, unpack_finish(&p->unpack)) < 0)
		return p->failed;
	/* Packed, it has an end of its own. */
	int result = lines_finish(&p->lines, whole || p->unpack.kind != UNPACK_NONE);
	if (result == 0 && p->failed == 0 && !p->has_body && p->head_length > 0)
		result = parse_begin_format(p);
	if (result == 0 && p->failed == 0 && p->has_body && p->body.format->end)
		result = p->body.format->end(&p->body);
	return parse_result(p, result);
}

const struct parse_report *parse_report(const struct parse *p)
{
	return &p->report;
}
