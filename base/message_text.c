/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records from presentation format, for answers that stand in for upstream's. Used by `explain`,
 * `check` and policy tests, never on the DNS path. Owns nothing. Invariant: it either builds the
 * whole message or says what it did not understand; a record is never left out.
 */
#include "base/message_text.h"

#include "base/addr.h"
#include "base/message_build.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const struct type_word {
	uint16_t type;
	const char *word;
} type_words[] = {
	{TYPE_A, "A"},
	{TYPE_NS, "NS"},
	{TYPE_CNAME, "CNAME"},
	{TYPE_SOA, "SOA"},
	{TYPE_PTR, "PTR"},
	{TYPE_HINFO, "HINFO"},
	{TYPE_MX, "MX"},
	{TYPE_TXT, "TXT"},
	{17, "RP"},
	{18, "AFSDB"},
	{24, "SIG"},
	{25, "KEY"},
	{TYPE_AAAA, "AAAA"},
	{29, "LOC"},
	{TYPE_SRV, "SRV"},
	{TYPE_NAPTR, "NAPTR"},
	{36, "KX"},
	{37, "CERT"},
	{TYPE_DNAME, "DNAME"},
	{TYPE_OPT, "OPT"},
	{42, "APL"},
	{43, "DS"},
	{44, "SSHFP"},
	{45, "IPSECKEY"},
	{TYPE_RRSIG, "RRSIG"},
	{TYPE_NSEC, "NSEC"},
	{48, "DNSKEY"},
	{49, "DHCID"},
	{50, "NSEC3"},
	{51, "NSEC3PARAM"},
	{52, "TLSA"},
	{53, "SMIMEA"},
	{55, "HIP"},
	{59, "CDS"},
	{60, "CDNSKEY"},
	{61, "OPENPGPKEY"},
	{62, "CSYNC"},
	{63, "ZONEMD"},
	{TYPE_SVCB, "SVCB"},
	{TYPE_HTTPS, "HTTPS"},
	{99, "SPF"},
	{108, "EUI48"},
	{109, "EUI64"},
	{TYPE_TKEY, "TKEY"},
	{TYPE_TSIG, "TSIG"},
	{TYPE_IXFR, "IXFR"},
	{TYPE_AXFR, "AXFR"},
	{TYPE_MAILB, "MAILB"},
	{TYPE_MAILA, "MAILA"},
	{TYPE_ANY, "ANY"},
	{256, "URI"},
	{257, "CAA"},
	{32768, "TA"},
	{32769, "DLV"},
};
#define TYPE_WORDS (sizeof(type_words) / sizeof(type_words[0]))

int message_type_parse(const char *text, size_t length, uint16_t *out)
{
	unsigned value = 0;

	for (size_t i = 0; i < TYPE_WORDS; i++)
		if (strlen(type_words[i].word) == length &&
		    !strncasecmp(type_words[i].word, text, length)) {
			*out = type_words[i].type;
			return 0;
		}
	if (length < 5 || length > 9 || strncasecmp(text, "TYPE", 4))
		return -EINVAL;
	for (size_t i = 4; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	if (value > UINT16_MAX)
		return -EINVAL;
	*out = (uint16_t)value;
	return 0;
}

const char *message_type_format(uint16_t type, char out[MESSAGE_TYPE_TEXT])
{
	for (size_t i = 0; i < TYPE_WORDS; i++)
		if (type_words[i].type == type)
			return type_words[i].word;
	snprintf(out, MESSAGE_TYPE_TEXT, "TYPE%u", type);
	return out;
}

/* The words of one record, quoted ones whole. */
struct words {
	const char *at;
	const char *word;
	size_t length;
	bool quoted;
};

static bool next_word(struct words *w)
{
	while (*w->at == ' ' || *w->at == '\t')
		w->at++;
	if (!*w->at)
		return false;
	w->quoted = *w->at == '"';
	if (w->quoted) {
		w->word = ++w->at;
		while (*w->at && *w->at != '"')
			w->at += *w->at == '\\' && w->at[1] ? 2 : 1;
		w->length = (size_t)(w->at - w->word);
		if (!*w->at)
			return false; /* no closing quote */
		w->at++;
		return true;
	}
	w->word = w->at;
	while (*w->at && *w->at != ' ' && *w->at != '\t')
		w->at += *w->at == '\\' && w->at[1] ? 2 : 1;
	w->length = (size_t)(w->at - w->word);
	return true;
}

static bool word_number(const struct words *w, unsigned long max, unsigned long *out)
{
	unsigned long value = 0;

	if (!w->length)
		return false;
	for (size_t i = 0; i < w->length; i++) {
		if (w->word[i] < '0' || w->word[i] > '9')
			return false;
		value = value * 10 + (unsigned long)(w->word[i] - '0');
		if (value > max)
			return false;
	}
	*out = value;
	return true;
}

static bool next_number(struct words *w, unsigned long max, unsigned long *out)
{
	return next_word(w) && word_number(w, max, out);
}

static bool put_name(struct message_builder *b, struct words *w, bool compress)
{
	struct name name;

	if (!next_word(w) || name_parse(w->word, w->length, &name) < 0)
		return false;
	if (compress)
		message_build_name(b, name.wire, name.length);
	else
		writer_bytes(&b->w, name.wire, name.length);
	return true;
}

static bool put_address(struct message_builder *b, const char *text, size_t length, bool v4)
{
	char copy[ADDR_TEXT_MAX];
	struct addr a;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (addr_parse(copy, &a) < 0 || addr_is_v4(&a) != v4)
		return false;
	writer_bytes(&b->w, v4 ? a.octets + 12 : a.octets, v4 ? 4 : 16);
	return true;
}

/* One character string: \X and \DDD escapes, at most 255 octets. */
static bool put_string(struct message_builder *b, const char *text, size_t length)
{
	uint8_t octets[255];
	size_t n = 0;

	for (size_t i = 0; i < length; i++) {
		unsigned c = (unsigned char)text[i];
		if (c == '\\' && i + 1 < length) {
			c = (unsigned char)text[++i];
			if (isdigit((int)c)) {
				if (i + 2 >= length || !isdigit((unsigned char)text[i + 1]) ||
				    !isdigit((unsigned char)text[i + 2]))
					return false;
				c = (c - '0') * 100 + (unsigned)(text[i + 1] - '0') * 10 +
				    (unsigned)(text[i + 2] - '0');
				i += 2;
			}
		}
		if (c > 255 || n == sizeof(octets))
			return false;
		octets[n++] = (uint8_t)c;
	}
	writer_u8(&b->w, (uint8_t)n);
	writer_bytes(&b->w, octets, n);
	return true;
}

static bool put_strings(struct message_builder *b, struct words *w)
{
	bool any = false;

	while (next_word(w)) {
		if (!put_string(b, w->word, w->length))
			return false;
		any = true;
	}
	return any && !*w->at;
}

static const struct {
	const char *word;
	uint16_t key;
} params[] = {{"alpn", 1}, {"port", 3}, {"ipv4hint", 4}, {"ipv6hint", 6}};

/* The comma-separated value of one SvcParam. */
static bool put_param_value(struct message_builder *b, uint16_t key, const char *text,
			    size_t length)
{
	const char *end = text + length;

	if (length && *text == '"' && end[-1] == '"' && length > 1) {
		text++;
		end--;
	}
	if (key == 3) {
		struct words w = {.word = text, .length = (size_t)(end - text)};
		unsigned long port;
		if (!word_number(&w, UINT16_MAX, &port))
			return false;
		writer_u16(&b->w, (uint16_t)port);
		return true;
	}
	while (text < end) {
		const char *comma = memchr(text, ',', (size_t)(end - text));
		size_t part = (size_t)((comma ? comma : end) - text);
		if (!part ||
		    !(key == 1 ? put_string(b, text, part) : put_address(b, text, part, key == 4)))
			return false;
		text += part + (comma ? 1 : 0);
	}
	return true;
}

static bool put_service(struct message_builder *b, struct words *w)
{
	unsigned long priority;
	int last = -1;

	if (!next_number(w, UINT16_MAX, &priority))
		return false;
	writer_u16(&b->w, (uint16_t)priority);
	if (!put_name(b, w, false))
		return false;
	while (next_word(w)) {
		const char *equals = memchr(w->word, '=', w->length);
		size_t n = equals ? (size_t)(equals - w->word) : 0;
		size_t i;
		for (i = 0; i < sizeof(params) / sizeof(params[0]); i++)
			if (strlen(params[i].word) == n && !strncasecmp(params[i].word, w->word, n))
				break;
		/* Keys ascend on the wire; ask for them in that order rather than sort. */
		if (!equals || i == sizeof(params) / sizeof(params[0]) || params[i].key <= last)
			return false;
		last = params[i].key;
		writer_u16(&b->w, params[i].key);
		writer_u16(&b->w, 0);
		size_t mark = b->w.at;
		if (!put_param_value(b, params[i].key, equals + 1, w->length - n - 1))
			return false;
		message_build_end(b, mark);
	}
	return !*w->at;
}

/* RFC 3597: \# LENGTH HEX... */
static bool put_unknown(struct message_builder *b, struct words *w)
{
	unsigned long length;
	unsigned long got = 0;
	int high = -1;

	if (!next_word(w) || w->length != 2 || memcmp(w->word, "\\#", 2) ||
	    !next_number(w, UINT16_MAX, &length))
		return false;
	while (next_word(w))
		for (size_t i = 0; i < w->length; i++) {
			int c = tolower((unsigned char)w->word[i]);
			if (!isxdigit(c))
				return false;
			int digit = isdigit(c) ? c - '0' : c - 'a' + 10;
			if (high < 0) {
				high = digit;
				continue;
			}
			writer_u8(&b->w, (uint8_t)(high << 4 | digit));
			high = -1;
			got++;
		}
	return high < 0 && got == length;
}

static bool put_rdata(struct message_builder *b, uint16_t type, struct words *w)
{
	unsigned long number;
	struct words peek = *w;

	if (next_word(&peek) && peek.length == 2 && !memcmp(peek.word, "\\#", 2))
		return put_unknown(b, w);
	switch (type) {
	case TYPE_A:
	case TYPE_AAAA:
		return next_word(w) && put_address(b, w->word, w->length, type == TYPE_A);
	case TYPE_CNAME:
	case TYPE_NS:
	case TYPE_PTR:
		return put_name(b, w, true);
	case TYPE_DNAME:
		return put_name(b, w, false);
	case TYPE_MX:
		if (!next_number(w, UINT16_MAX, &number))
			return false;
		writer_u16(&b->w, (uint16_t)number);
		return put_name(b, w, true);
	case TYPE_SRV:
		for (unsigned i = 0; i < 3; i++) {
			if (!next_number(w, UINT16_MAX, &number))
				return false;
			writer_u16(&b->w, (uint16_t)number);
		}
		return put_name(b, w, false);
	case TYPE_TXT:
		return put_strings(b, w);
	case TYPE_SVCB:
	case TYPE_HTTPS:
		return put_service(b, w);
	default:
		return false;
	}
}

/* OWNER [TTL] [IN] TYPE RDATA, TTL and class in either order. NULL, or what is wrong. */
static const char *put_record(struct message_builder *b, const char *text)
{
	struct words w = {.at = text};
	struct name owner;
	unsigned long ttl = MESSAGE_TEXT_TTL;
	uint16_t type = 0;

	if (!next_word(&w) || name_parse(w.word, w.length, &owner) < 0)
		return "does not begin with a domain name";
	for (;;) {
		if (!next_word(&w))
			return "has no type";
		if (word_number(&w, INT32_MAX, &ttl) ||
		    (w.length == 2 && !strncasecmp(w.word, "IN", 2)))
			continue;
		break;
	}
	if (message_type_parse(w.word, w.length, &type) < 0)
		return "has an unknown type";
	size_t mark = message_build_begin(b, SECTION_ANSWER, owner.wire, owner.length, type,
					  CLASS_IN, (uint32_t)ttl);
	if (!put_rdata(b, type, &w))
		return "has data that does not fit its type (try TYPE \\# LENGTH HEX)";
	while (*w.at == ' ' || *w.at == '\t')
		w.at++;
	if (*w.at)
		return "has something behind its data";
	message_build_end(b, mark);
	return NULL;
}

ssize_t message_from_text(const char *const *rrs, const uint8_t *name, size_t name_length,
			  uint16_t type, uint8_t *out, size_t max, char *error, size_t error_size)
{
	struct message_question question = {.name = name,
					    .length = (uint8_t)name_length,
					    .type = type,
					    .rrclass = CLASS_IN};
	struct message_builder b;

	message_build_start(&b, out, max, 0, MESSAGE_QR | MESSAGE_RD | MESSAGE_RA, &question);
	for (size_t i = 0; rrs && rrs[i]; i++) {
		const char *wrong = put_record(&b, rrs[i]);
		if (!wrong && b.w.failed)
			wrong = "does not fit the message";
		if (wrong) {
			snprintf(error, error_size, "record \"%.200s\" %s", rrs[i], wrong);
			return -EINVAL;
		}
	}
	size_t size = message_build_finish(&b);
	if (!size) {
		snprintf(error, error_size, "the message is too small");
		return -EINVAL;
	}
	return (ssize_t)size;
}
