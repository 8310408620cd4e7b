/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON reader. Runs in the fetcher and in `feeds compile`. Invariant: what is expected next is
 * always in `expect`, and what is half read in `token` and `text`, so that a piece may end
 * anywhere.
 */
#include "feeds/formats/json.h"

#include <errno.h>
#include <string.h>

enum { JSON_VALUE, JSON_VALUE_OR_END, JSON_KEY_OR_END, JSON_KEY, JSON_COLON, JSON_COMMA_OR_END };
enum { TOKEN_NONE, TOKEN_STRING, TOKEN_ESCAPE, TOKEN_UNICODE, TOKEN_WORD };

#define JSON_REPLACEMENT 0xfffd

static int json_fail(struct json *j, const char *why)
{
	j->error = why;
	return -EBADMSG;
}

static bool json_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '+' || c == '.';
}

static void json_append(struct json *j, char c)
{
	if (j->length < sizeof(j->text))
		j->text[j->length++] = c;
	else
		j->overlong = true;
}

static void json_append_code(struct json *j, uint32_t c)
{
	if (c < 0x80) {
		json_append(j, (char)c);
		return;
	}
	if (c >= 0x10000) {
		json_append(j, (char)(0xf0 | c >> 18));
		json_append(j, (char)(0x80 | (c >> 12 & 0x3f)));
	} else if (c >= 0x800) {
		json_append(j, (char)(0xe0 | c >> 12));
	}
	if (c >= 0x800)
		json_append(j, (char)(0x80 | (c >> 6 & 0x3f)));
	else
		json_append(j, (char)(0xc0 | c >> 6));
	json_append(j, (char)(0x80 | (c & 0x3f)));
}

/* Half a surrogate pair that stays alone is no character. */
static void json_flush_surrogate(struct json *j)
{
	if (j->high)
		json_append_code(j, JSON_REPLACEMENT);
	j->high = 0;
}

static void json_unicode(struct json *j, uint32_t code)
{
	bool low = code >= 0xdc00 && code <= 0xdfff;
	if (j->high && low) {
		json_append_code(j, 0x10000 + ((j->high - 0xd800) << 10) + (code - 0xdc00));
		j->high = 0;
		return;
	}
	json_flush_surrogate(j);
	if (code >= 0xd800 && code <= 0xdbff)
		j->high = code;
	else
		json_append_code(j, low ? JSON_REPLACEMENT : code);
}

static void json_after_value(struct json *j)
{
	j->expect = j->depth > 0 ? JSON_COMMA_OR_END : JSON_VALUE;
}

static int json_deliver(struct json *j, bool string)
{
	struct entry_text text = {j->text, j->length};
	j->token = TOKEN_NONE;
	if (string && (j->expect == JSON_KEY || j->expect == JSON_KEY_OR_END)) {
		struct json_frame *frame = &j->frames[j->depth - 1];
		frame->key_overlong = text.length > sizeof(frame->key);
		frame->key_length = frame->key_overlong ? 0 : (uint8_t)text.length;
		memcpy(frame->key, text.at, frame->key_length);
		j->expect = JSON_COLON;
		return 0;
	}
	json_after_value(j);
	return j->value(j->context, j, string, text);
}

static int json_escape(struct json *j, char c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = c ? strchr(from, c) : NULL;
	if (c == 'u') {
		j->token = TOKEN_UNICODE;
		j->digits = 0;
		j->code = 0;
		return 0;
	}
	if (!at)
		return json_fail(j, "an escape that JSON does not have");
	json_flush_surrogate(j);
	json_append(j, to[at - from]);
	j->token = TOKEN_STRING;
	return 0;
}

static int json_digit(struct json *j, char c)
{
	uint32_t digit;
	if (c >= '0' && c <= '9')
		digit = (uint32_t)(c - '0');
	else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		digit = (uint32_t)((c | 0x20) - 'a' + 10);
	else
		return json_fail(j, "an escape that JSON does not have");
	j->code = j->code << 4 | digit;
	if (++j->digits == 4) {
		j->token = TOKEN_STRING;
		json_unicode(j, j->code);
	}
	return 0;
}

static int json_in_string(struct json *j, char c)
{
	if (j->token == TOKEN_ESCAPE)
		return json_escape(j, c);
	if (j->token == TOKEN_UNICODE)
		return json_digit(j, c);
	if (c == '\\') {
		j->token = TOKEN_ESCAPE;
		return 0;
	}
	json_flush_surrogate(j);
	if (c == '"')
		return json_deliver(j, true);
	json_append(j, c);
	return 0;
}

static void json_begin_text(struct json *j, int token)
{
	j->token = token;
	j->length = 0;
	j->overlong = false;
	j->high = 0;
}

static int json_open(struct json *j, bool array)
{
	if (j->depth == JSON_DEPTH_MAX)
		return json_fail(j, "nested too deeply");
	j->frames[j->depth++] = (struct json_frame){.array = array};
	j->expect = array ? JSON_VALUE_OR_END : JSON_KEY_OR_END;
	return j->open ? j->open(j->context, j) : 0;
}

static int json_close(struct json *j, bool array)
{
	if (j->depth == 0 || j->frames[j->depth - 1].array != array)
		return json_fail(j, "a bracket that closes nothing");
	int result = j->close ? j->close(j->context, j) : 0;
	j->depth--;
	json_after_value(j);
	return result;
}

static int json_begin_value(struct json *j, char c)
{
	if (c == '{' || c == '[')
		return json_open(j, c == '[');
	if (c == '"')
		json_begin_text(j, TOKEN_STRING);
	else if (c == '-' || (c >= '0' && c <= '9') || c == 't' || c == 'f' || c == 'n')
		json_begin_text(j, TOKEN_WORD);
	else
		return json_fail(j, "no value where one has to be");
	if (c != '"')
		json_append(j, c);
	return 0;
}

/* Anything outside of strings and words. */
static int json_structure(struct json *j, char c)
{
	if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
		return 0;
	switch (j->expect) {
	case JSON_VALUE_OR_END:
		if (c == ']')
			return json_close(j, true);
		return json_begin_value(j, c);
	case JSON_VALUE:
		return json_begin_value(j, c);
	case JSON_KEY_OR_END:
		if (c == '}')
			return json_close(j, false);
		/* fall through */
	case JSON_KEY:
		if (c != '"')
			return json_fail(j, "no key where one has to be");
		json_begin_text(j, TOKEN_STRING);
		return 0;
	case JSON_COLON:
		if (c != ':')
			return json_fail(j, "no ':' behind a key");
		j->expect = JSON_VALUE;
		return 0;
	default:
		if (c == ']' || c == '}')
			return json_close(j, c == ']');
		if (c != ',')
			return json_fail(j, "no ',' between values");
		j->expect = j->frames[j->depth - 1].array ? JSON_VALUE : JSON_KEY;
		return 0;
	}
}

int json_push(struct json *j, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char c = text[i];
		int result = 0;
		if (j->token == TOKEN_WORD && !json_is_word(c))
			result = json_deliver(j, false);
		if (result == 0 && j->token == TOKEN_WORD)
			json_append(j, c);
		else if (result == 0)
			result = j->token == TOKEN_NONE ? json_structure(j, c)
							: json_in_string(j, c);
		if (result < 0)
			return result;
		j->line += c == '\n';
	}
	return 0;
}

int json_finish(struct json *j)
{
	int result = j->token == TOKEN_WORD ? json_deliver(j, false) : 0;
	if (result == 0 && (j->depth > 0 || j->token != TOKEN_NONE))
		return json_fail(j, "cut off");
	return result;
}

bool json_key_is(const struct json_frame *frame, const char *key)
{
	return !frame->array && !frame->key_overlong && frame->key_length == strlen(key) &&
	       memcmp(frame->key, key, frame->key_length) == 0;
}

int json_path_next(const char **path, struct entry_text *part)
{
	const char *p = *path;
	if (*p == '\0')
		return 0;
	if (p[0] == '[' && p[1] == ']') {
		*path = p + 2 + (p[2] == '.' && p[3] != '\0');
		return *(p + 2) == '\0' || p[2] == '[' || *path > p + 2 ? 2 : -1;
	}
	size_t n = strcspn(p, ".[]");
	*part = (struct entry_text){p, n};
	*path = p + n + (p[n] == '.' && p[n + 1] != '\0');
	return n == 0 || n > JSON_KEY_MAX || (p[n] != '\0' && p[n] != '[' && *path == p + n) ? -1
											     : 1;
}

bool json_is_at(const struct json *j, const char *path)
{
	struct entry_text part;
	for (size_t i = 0; i < j->depth; i++) {
		const struct json_frame *frame = &j->frames[i];
		int kind = json_path_next(&path, &part);
		if (kind != (frame->array ? 2 : 1))
			return false;
		if (kind == 2 || (part.length == 1 && part.at[0] == '*'))
			continue;
		if (frame->key_overlong || frame->key_length != part.length ||
		    memcmp(frame->key, part.at, part.length) != 0)
			return false;
	}
	return *path == '\0';
}
