/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the text of a name to an entry or a reject. Owns nothing; runs in the fetcher and in `feeds
 * compile`. Invariant: a text that is not wholly a name never yields one; no fragment of a line
 * that was not understood becomes an entry.
 */
#include "feeds/formats/entry.h"

#include "base/addr.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static bool entry_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct entry_text entry_trim(const char *text, size_t length)
{
	while (length > 0 && entry_is_blank(text[0])) {
		text++;
		length--;
	}
	while (length > 0 && entry_is_blank(text[length - 1]))
		length--;
	return (struct entry_text){text, length};
}

bool entry_token(struct entry_text *rest, struct entry_text *token)
{
	*rest = entry_trim(rest->at, rest->length);
	if (rest->length == 0)
		return false;
	size_t n = 0;
	while (n < rest->length && !entry_is_blank(rest->at[n]))
		n++;
	*token = (struct entry_text){rest->at, n};
	rest->at += n;
	rest->length -= n;
	return true;
}

struct entry_text entry_without_comment(const char *text, size_t length)
{
	const char *hash = memchr(text, '#', length);
	return entry_trim(text, hash ? (size_t)(hash - text) : length);
}

bool entry_is_address(const char *text, size_t length)
{
	char copy[ADDR_TEXT_MAX];
	struct prefix prefix;
	const char *zone = memchr(text, '%', length);
	if (zone)
		length = (size_t)(zone - text);
	if (length == 0 || length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	int result = prefix_parse(copy, &prefix);
	return result == 0 || result == -EDOM;
}

int entry_is_block_address(struct entry_text token)
{
	char copy[ADDR_TEXT_MAX];
	struct addr address;
	const char *zone = memchr(token.at, '%', token.length);
	size_t length = zone ? (size_t)(zone - token.at) : token.length;
	if (length == 0 || length >= sizeof(copy))
		return -1;
	if (length == 1 && token.at[0] == '0') /* inet_aton's short form, seen in lists */
		return 1;
	memcpy(copy, token.at, length);
	copy[length] = '\0';
	if (addr_parse(copy, &address) != 0)
		return -1;
	return addr_is_unspecified(&address) || addr_is_loopback(&address);
}

bool entry_is_local(const char *text, size_t length)
{
	static const char *const words[] = {
		"localhost",	 "localhost.localdomain",
		"localhost4",	 "localhost4.localdomain4",
		"localhost6",	 "localhost6.localdomain6",
		"localdomain",	 "local",
		"broadcasthost",
	};
	if (length > 0 && text[length - 1] == '.')
		length--;
	if (length == 0)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == length && strncasecmp(words[i], text, length) == 0)
			return true;
	return length > 4 && strncasecmp(text, "ip6-", 4) == 0 && !memchr(text, '.', length);
}

static bool entry_is_name_octet(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.' || c == '\\' || c >= 0x80;
}

/* Well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. */
static bool entry_is_utf8(const char *text, size_t length)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + length;
	while (p < end) {
		unsigned c = *p++;
		if (c < 0x80)
			continue;
		unsigned more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
		if (c < 0xc2 || c > 0xf4 || (size_t)(end - p) < more)
			return false;
		unsigned low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
		unsigned high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
		if (*p < low || *p > high)
			return false;
		for (p++; more > 1; more--, p++)
			if ((*p & 0xc0) != 0x80)
				return false;
	}
	return true;
}

void entry_reject(const struct feed_sink *sink, const struct feed_line *line,
		  enum feed_reject reason)
{
	sink->reject(sink->context, reason, line->number, line->text, line->length);
}

int entry_deliver(const struct feed_sink *sink, const struct feed_line *line, const char *text,
		  size_t length, uint16_t flags)
{
	enum feed_reject reason;
	struct name name;
	bool plain = true, control = false;
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		plain = plain && entry_is_name_octet(c);
		control = control || c < 0x20 || c == 0x7f;
	}
	if (control || !entry_is_utf8(text, length))
		reason = FEED_REJECT_ENCODING;
	else if (entry_is_address(text, length))
		reason = FEED_REJECT_ADDRESS;
	else if (length == 0 || !plain)
		reason = FEED_REJECT_NAME;
	else if (entry_is_local(text, length))
		reason = FEED_REJECT_LOCAL;
	else if (name_from_unicode(text, length, &name) != 0)
		reason = FEED_REJECT_NAME;
	else
		return sink->entry(sink->context, line, &name, flags);
	entry_reject(sink, line, reason);
	return 0;
}

int entry_likeness(const char *head, size_t size, int (*judge)(struct entry_text line))
{
	unsigned like = 0, all = 0;
	while (size > 0) {
		const char *end = memchr(head, '\n', size);
		size_t length = end ? (size_t)(end - head) : size;
		int verdict = judge(entry_trim(head, length));
		like += verdict == 1;
		all += verdict >= 0;
		length += end != NULL;
		head += length;
		size -= length;
	}
	return all ? (int)(100ull * like / all) : 0;
}

bool entry_looks_like_name(struct entry_text t)
{
	if (t.length == 0 || !memchr(t.at, '.', t.length))
		return false;
	for (size_t i = 0; i < t.length; i++)
		if (!entry_is_name_octet((unsigned char)t.at[i]))
			return false;
	return true;
}
