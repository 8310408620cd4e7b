/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a list, in every format, cut into chunks at a place that the input chooses: the
 * entries and rejects are the same as for the body in one piece, and every name is well formed. */
#include "feeds/formats/format.h"
#include "feeds/formats/lines.h"
#include "feeds/set/domset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	struct feed_body body;
	struct feed_sink sink;
	uint64_t sum; /* over everything delivered, order included */
};

static void mix(struct outcome *o, const void *data, size_t size)
{
	const uint8_t *octets = data;

	for (size_t i = 0; i < size; i++)
		o->sum = (o->sum ^ octets[i]) * 0x100000001b3u;
}

static int on_entry(void *context, const struct feed_line *line, const struct name *name,
		    uint16_t flags)
{
	struct outcome *o = context;
	uint8_t lower[NAME_WIRE_MAX];
	unsigned labels;

	if (name_measure(name->wire, name->length, &labels) != name->length)
		abort();
	name_lower(name->wire, name->length, lower);
	if (memcmp(lower, name->wire, name->length) != 0)
		abort();
	if (!(flags & DOMSET_FLAGS_MASK))
		abort();
	mix(o, name->wire, name->length);
	mix(o, &flags, sizeof(flags));
	mix(o, &line->number, sizeof(line->number));
	mix(o, line->text, line->length);
	return 0;
}

static void on_reject(void *context, enum feed_reject reason, uint64_t line, const char *text,
		      size_t length)
{
	struct outcome *o = context;

	if (reason >= FEED_REJECT_REASONS)
		abort();
	mix(o, &reason, sizeof(reason));
	mix(o, &line, sizeof(line));
	mix(o, text, length);
}

static int on_refuse(void *context, const char *why)
{
	mix(context, why, strlen(why));
	return -EBADMSG;
}

static int on_line(void *context, const struct feed_line *line)
{
	struct outcome *o = context;

	if (memchr(line->text, 0, line->length))
		abort();
	return o->body.format->line(&o->body, line);
}

static int on_text(void *context, const char *text, size_t size)
{
	struct outcome *o = context;

	return text ? o->body.format->text(&o->body, text, size) : 0;
}

static uint64_t run(const struct feed_format *format, const struct feed_hints *hints,
		    const uint8_t *data, size_t size, size_t cut)
{
	struct outcome o = {0};
	struct lines *lines = calloc(1, sizeof(*lines));

	o.sink = (struct feed_sink){&o, on_entry, on_reject, on_refuse};
	if (!lines || feed_body_init(&o.body, format, FEED_MATCH_FORMAT, hints, 0, &o.sink) < 0)
		abort();
	lines->line = on_line;
	lines->reject = on_reject;
	lines->decoded = format->text ? on_text : NULL;
	lines->context = &o;
	int result = lines_push(lines, data, cut);
	if (result == 0)
		result = lines_push(lines, data + cut, size - cut);
	if (result == 0)
		result = lines_finish(lines, true);
	if (result == 0 && format->end)
		result = format->end(&o.body);
	mix(&o, &result, sizeof(result));
	feed_body_fini(&o.body);
	free(lines);
	return o.sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct feed_hints hints[] = {
		{0},
		{.column = "2", .path = "a[].b", .url_host = true},
	};

	if (size < 1)
		return 0;
	size_t cut = data[0];
	data++;
	size--;
	if (cut > size)
		cut = size;
	feed_format_guess((const char *)data, size);
	for (size_t i = 0; feed_formats[i]; i++)
		for (size_t h = 0; h < 2; h++)
			if (run(feed_formats[i], &hints[h], data, size, 0) !=
			    run(feed_formats[i], &hints[h], data, size, cut))
				abort();
	return 0;
}
