/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line splitter. Runs in the fetcher and in `feeds compile`; owns one line of text. Invariant:
 * a line is delivered only once its end was seen, or once the caller vouches for the whole body, so
 * that a cut `google` of `googleads.test` never becomes a rule.
 */
#include "feeds/formats/lines.h"

#include <errno.h>
#include <string.h>

enum { ENCODING_UNKNOWN, ENCODING_UTF8, ENCODING_UTF16LE, ENCODING_UTF16BE };

#define LINES_REPLACEMENT 0xfffd

static int lines_end(struct lines *l)
{
	int result = 0;
	l->number++;
	if (l->overlong) {
		l->reject(l->context, FEED_REJECT_LONG, l->number, l->text, l->length);
	} else if (l->has_nul) {
		l->reject(l->context, FEED_REJECT_ENCODING, l->number, l->text, l->length);
	} else {
		struct feed_line line = {l->text, l->length, l->number};
		result = l->line(l->context, &line);
	}
	l->length = 0;
	l->overlong = l->has_nul = false;
	return result;
}

static void lines_append(struct lines *l, const char *text, size_t size)
{
	if (size > LINES_MAX - l->length) {
		l->overlong = true;
		size = LINES_MAX - l->length;
	}
	if (size == 0)
		return;
	if (memchr(text, '\0', size))
		l->has_nul = true;
	memcpy(l->text + l->length, text, size);
	l->length += size;
}

int lines_split(struct lines *l, const char *text, size_t size)
{
	const char *end = text + size;
	while (text < end) {
		if (l->after_cr && *text == '\n') {
			l->after_cr = false;
			text++;
			continue;
		}
		l->after_cr = false;
		const char *stop = text;
		while (stop < end && *stop != '\n' && *stop != '\r')
			stop++;
		lines_append(l, text, (size_t)(stop - text));
		if (stop == end)
			return 0;
		l->after_cr = *stop == '\r';
		text = stop + 1;
		int result = lines_end(l);
		if (result < 0)
			return result;
	}
	return 0;
}

static int lines_utf8(struct lines *l, const char *text, size_t size)
{
	return l->decoded ? l->decoded(l->context, text, size) : lines_split(l, text, size);
}

static int lines_code_point(struct lines *l, uint32_t c)
{
	char out[4];
	size_t n;
	if (c < 0x80) {
		out[0] = (char)c;
		n = 1;
	} else if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		n = 2;
	} else if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		n = 3;
	} else {
		out[0] = (char)(0xf0 | c >> 18);
		out[1] = (char)(0x80 | (c >> 12 & 0x3f));
		out[2] = (char)(0x80 | (c >> 6 & 0x3f));
		out[3] = (char)(0x80 | (c & 0x3f));
		n = 4;
	}
	return lines_utf8(l, out, n);
}

static int lines_utf16_unit(struct lines *l, uint32_t unit)
{
	bool low = unit >= 0xdc00 && unit <= 0xdfff;
	if (l->surrogate && low) {
		uint32_t c = 0x10000 + ((l->surrogate - 0xd800) << 10) + (unit - 0xdc00);
		l->surrogate = 0;
		return lines_code_point(l, c);
	}
	int result = 0;
	if (l->surrogate) /* half a pair: a name with it will not pass IDNA */
		result = lines_code_point(l, LINES_REPLACEMENT);
	l->surrogate = 0;
	if (result < 0)
		return result;
	if (unit >= 0xd800 && unit <= 0xdbff) {
		l->surrogate = unit;
		return 0;
	}
	return lines_code_point(l, low ? LINES_REPLACEMENT : unit);
}

static int lines_utf16(struct lines *l, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		l->pending[l->pending_count++] = data[i];
		if (l->pending_count < 2)
			continue;
		l->pending_count = 0;
		uint32_t unit = l->encoding == ENCODING_UTF16LE
					? (uint32_t)(l->pending[1] << 8 | l->pending[0])
					: (uint32_t)(l->pending[0] << 8 | l->pending[1]);
		int result = lines_utf16_unit(l, unit);
		if (result < 0)
			return result;
	}
	return 0;
}

static int lines_decode(struct lines *l, const uint8_t *data, size_t size)
{
	if (l->encoding == ENCODING_UTF8)
		return lines_utf8(l, (const char *)data, size);
	return lines_utf16(l, data, size);
}

/* The first (up to) four octets say the encoding; what is not a BOM is handed on. */
static int lines_begin(struct lines *l)
{
	uint8_t head[4] = {0xff, 0x41, 0x41, 0x41}; /* filler that is no encoding's beginning */
	unsigned n = l->pending_count, skip = 0;
	if (n > 0)
		memcpy(head, l->pending, n);
	l->pending_count = 0;
	l->encoding = ENCODING_UTF8;
	if (n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0) {
		skip = 3;
	} else if (n == 4 &&
		   (memcmp(head, "\xff\xfe\0\0", 4) == 0 || memcmp(head, "\0\0\xfe\xff", 4) == 0)) {
		return -EILSEQ;
	} else if (n >= 2 && memcmp(head, "\xff\xfe", 2) == 0) {
		l->encoding = ENCODING_UTF16LE;
		skip = 2;
	} else if (n >= 2 && memcmp(head, "\xfe\xff", 2) == 0) {
		l->encoding = ENCODING_UTF16BE;
		skip = 2;
	} else if (n == 4 && head[0] && !head[1] && head[2] && !head[3]) {
		l->encoding = ENCODING_UTF16LE;
	} else if (n == 4 && !head[0] && head[1] && !head[2] && head[3]) {
		l->encoding = ENCODING_UTF16BE;
	}
	return lines_decode(l, head + skip, n - skip);
}

int lines_push(struct lines *l, const void *data, size_t size)
{
	const uint8_t *p = data;
	if (l->encoding == ENCODING_UNKNOWN) {
		while (size > 0 && l->pending_count < sizeof(l->pending)) {
			l->pending[l->pending_count++] = *p++;
			size--;
		}
		if (l->pending_count < sizeof(l->pending))
			return 0;
		int result = lines_begin(l);
		if (result < 0)
			return result;
	}
	return lines_decode(l, p, size);
}

int lines_finish(struct lines *l, bool whole)
{
	int result = 0;
	if (l->encoding == ENCODING_UNKNOWN)
		result = lines_begin(l);
	if (result == 0 && l->decoded)
		result = l->decoded(l->context, NULL, 0);
	if (result < 0 || !whole)
		return result;
	if (l->encoding != ENCODING_UTF8 && (l->pending_count || l->surrogate))
		l->has_nul = true; /* half a unit at the end: the line is damaged */
	if (l->length > 0 || l->overlong || l->has_nul)
		return lines_end(l);
	return 0;
}
