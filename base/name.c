/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain names: text to wire and back, measuring, comparing. Leaf file, pure functions, used in
 * every process; only name_from_unicode allocates (inside libidn2). Invariant: whatever a function
 * here returns as a name is well-formed, lower-cased and within 255 octets and 127 labels.
 */
#include "base/name.h"

#include <errno.h>
#include <idn2.h>
#include <string.h>

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A label being written into a name: its length octet is filled in when it ends. */
struct builder {
	struct name *name;
	size_t start; /* of the open label's length octet */
	size_t at;
};

static bool builder_octet(struct builder *b, uint8_t c)
{
	/* Room for the root label must stay; a label's end writes one more octet. */
	if (b->at - b->start > NAME_LABEL_MAX || b->at + 1 >= NAME_WIRE_MAX)
		return false;
	b->name->wire[b->at++] = lower(c);
	return true;
}

static bool builder_end_label(struct builder *b)
{
	size_t n = b->at - b->start - 1;
	if (!n)
		return false;
	b->name->wire[b->start] = (uint8_t)n;
	b->name->labels++;
	b->start = b->at++;
	return true;
}

static void builder_begin(struct builder *b, struct name *out)
{
	memset(out, 0, sizeof *out);
	*b = (struct builder){.name = out, .start = 0, .at = 1};
}

/* The root label takes the place of the length octet that was opened last. */
static void builder_finish(struct builder *b)
{
	b->name->wire[b->start] = 0;
	b->name->length = (uint8_t)(b->start + 1);
}

/* One octet of presentation format, escapes resolved: how many characters it took, 0 if bad. */
static size_t unescape(const char *text, size_t left, uint8_t *octet)
{
	if (text[0] != '\\') {
		*octet = (uint8_t)text[0];
		return 1;
	}
	if (left < 2)
		return 0;
	if (!digit(text[1])) {
		*octet = (uint8_t)text[1];
		return 2;
	}
	if (left < 4 || !digit(text[2]) || !digit(text[3]))
		return 0;
	int value = (text[1] - '0') * 100 + (text[2] - '0') * 10 + (text[3] - '0');
	if (value > 255)
		return 0;
	*octet = (uint8_t)value;
	return 4;
}

int name_parse(const char *text, size_t length, struct name *out)
{
	struct builder b;
	builder_begin(&b, out);
	if (!length)
		return -EINVAL;
	if (length == 1 && text[0] == '.') {
		builder_finish(&b);
		return 0;
	}
	for (size_t i = 0; i < length;) {
		if (text[i] == '.') {
			if (!builder_end_label(&b))
				return -EINVAL;
			i++;
			continue;
		}
		uint8_t octet;
		size_t taken = unescape(text + i, length - i, &octet);
		if (!taken || !builder_octet(&b, octet))
			return -EINVAL;
		i += taken;
	}
	if (b.at - b.start > 1 && !builder_end_label(&b))
		return -EINVAL;
	builder_finish(&b);
	return 0;
}

/* The octets of a label separator at `text`: '.', or one of the three that IDNA takes for it. */
static size_t separator(const char *text, size_t left)
{
	if (text[0] == '.')
		return 1;
	if (left >= 3 && (!memcmp(text, "\xe3\x80\x82", 3) || !memcmp(text, "\xef\xbc\x8e", 3) ||
			  !memcmp(text, "\xef\xbd\xa1", 3)))
		return 3;
	return 0;
}

static bool has_foreign(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((uint8_t)text[i] >= 0x80)
			return true;
	return false;
}

/*
 * One label through IDNA into the builder. Label by label, because a whole name would be refused
 * for a neighbour that is no host name (_dmarc, or an A-label of an older IDNA).
 */
static int idna_label(struct builder *b, const char *text, size_t length)
{
	uint8_t in[4 * NAME_WIRE_MAX + 1];
	if (length >= sizeof in || memchr(text, 0, length) || memchr(text, '\\', length))
		return -EINVAL;
	memcpy(in, text, length);
	in[length] = 0;
	uint8_t *ascii = NULL;
	int rc = idn2_lookup_u8(in, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
	if (rc != IDN2_OK)
		return rc == IDN2_MALLOC ? -ENOMEM : -EINVAL;
	rc = *ascii ? 0 : -EINVAL;
	for (const uint8_t *p = ascii; *p && !rc; p++)
		if (*p == '.' || !builder_octet(b, *p)) /* some characters decompose to a dot */
			rc = -EINVAL;
	idn2_free(ascii);
	return rc;
}

static int plain_label(struct builder *b, const char *text, size_t length)
{
	for (size_t i = 0; i < length;) {
		uint8_t octet;
		size_t taken = unescape(text + i, length - i, &octet);
		if (!taken || !builder_octet(b, octet))
			return -EINVAL;
		i += taken;
	}
	return 0;
}

int name_from_unicode(const char *text, size_t length, struct name *out)
{
	if (!has_foreign(text, length))
		return name_parse(text, length, out);
	struct builder b;
	builder_begin(&b, out);
	for (size_t i = 0; i < length;) {
		size_t end = i, dot = 0;
		while (end < length && !(dot = separator(text + end, length - end)))
			end += text[end] == '\\' && end + 1 < length ? 2 : 1;
		int rc = has_foreign(text + i, end - i) ? idna_label(&b, text + i, end - i)
							: plain_label(&b, text + i, end - i);
		if (rc)
			return rc;
		if (!builder_end_label(&b))
			return -EINVAL;
		i = end + dot;
	}
	builder_finish(&b);
	return 0;
}

size_t name_format(const uint8_t *wire, char out[NAME_TEXT_MAX])
{
	size_t n = 0;
	for (size_t i = 0; wire[i]; i += wire[i] + 1u) {
		for (unsigned k = 1; k <= wire[i]; k++) {
			uint8_t c = wire[i + k];
			if (c <= ' ' || c >= 0x7f) {
				out[n++] = '\\';
				out[n++] = (char)('0' + c / 100);
				out[n++] = (char)('0' + c / 10 % 10);
				out[n++] = (char)('0' + c % 10);
				continue;
			}
			if (strchr(".\\\"();@$", c))
				out[n++] = '\\';
			out[n++] = (char)c;
		}
		out[n++] = '.';
	}
	if (!n)
		out[n++] = '.';
	out[n] = 0;
	return n;
}

size_t name_measure(const uint8_t *wire, size_t available, unsigned *labels)
{
	size_t limit = available < NAME_WIRE_MAX ? available : NAME_WIRE_MAX;
	unsigned count = 0;
	size_t i = 0;
	while (i < limit && wire[i]) {
		if (wire[i] > NAME_LABEL_MAX)
			return 0;
		i += wire[i] + 1u;
		count++;
	}
	if (i >= limit)
		return 0;
	*labels = count;
	return i + 1;
}

/* Eight octets at once; an octet with its high bit set stays as it is. */
static uint64_t lower8(uint64_t v)
{
	const uint64_t ones = 0x0101010101010101u;
	uint64_t low = v & 0x7f * ones;
	uint64_t from_a = low + (0x80 - 'A') * ones;
	uint64_t past_z = low + (0x80 - 'Z' - 1) * ones;
	uint64_t upper = from_a & ~past_z & ~v & 0x80 * ones;
	return v | upper >> 2;
}

void name_lower(const uint8_t *in, size_t length, uint8_t *out)
{
	uint64_t v;
	if (length < 8) {
		for (size_t i = 0; i < length; i++)
			out[i] = lower(in[i]);
		return;
	}
	for (size_t i = 0; i + 8 < length; i += 8) {
		memcpy(&v, in + i, 8);
		v = lower8(v);
		memcpy(out + i, &v, 8);
	}
	/* The last eight, some of which may be lower already. */
	memcpy(&v, in + length - 8, 8);
	v = lower8(v);
	memcpy(out + length - 8, &v, 8);
}

void name_set(struct name *out, const uint8_t *wire, size_t length, unsigned labels)
{
	out->length = (uint8_t)length;
	out->labels = (uint8_t)labels;
	name_lower(wire, length, out->wire);
}

bool name_equal(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length)
{
	return a_length == b_length && !memcmp(a, b, a_length);
}

bool name_is_under(const uint8_t *name, size_t length, const uint8_t *ancestor,
		   size_t ancestor_length)
{
	if (ancestor_length > length)
		return false;
	size_t border = length - ancestor_length;
	if (memcmp(name + border, ancestor, ancestor_length))
		return false;
	/* The octets agree; now the ancestor must begin where a label does. */
	size_t i = 0;
	while (i < border)
		i += name[i] + 1u;
	return i == border;
}

size_t name_suffix_offset(const uint8_t *wire, unsigned labels, unsigned keep)
{
	size_t i = 0;
	for (unsigned drop = labels - keep; drop; drop--)
		i += wire[i] + 1u;
	return i;
}

static unsigned label_offsets(const uint8_t *wire, uint8_t out[NAME_LABELS_MAX])
{
	unsigned n = 0;
	for (size_t i = 0; wire[i] && n < NAME_LABELS_MAX; i += wire[i] + 1u)
		out[n++] = (uint8_t)i;
	return n;
}

int name_compare(const uint8_t *a, const uint8_t *b)
{
	uint8_t a_at[NAME_LABELS_MAX], b_at[NAME_LABELS_MAX];
	unsigned a_left = label_offsets(a, a_at), b_left = label_offsets(b, b_at);
	while (a_left && b_left) {
		const uint8_t *x = a + a_at[--a_left], *y = b + b_at[--b_left];
		int order = memcmp(x + 1, y + 1, x[0] < y[0] ? x[0] : y[0]);
		if (!order)
			order = x[0] - y[0];
		if (order)
			return order;
	}
	return (int)a_left - (int)b_left;
}
