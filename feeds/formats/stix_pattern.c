/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pattern reader. It goes over a pattern twice: first it only looks whether every word is one
 * of alternatives, then it delivers. So nothing of a pattern that is not understood to its end
 * becomes an entry. Parentheses around alternatives change nothing. Stateless; runs in the fetcher
 * and in `feeds compile`.
 */
#include "feeds/formats/stix_pattern.h"

#include "feeds/formats/indicator.h"
#include "feeds/set/domset.h"

#include <string.h>

#define STIX_TEXT_MAX 2048

enum stix_token { STIX_END, STIX_TEXT, STIX_WORD, STIX_SIGN, STIX_WRONG };

struct stix_reader {
	struct feed_body *body;
	const struct feed_line *line;
	const char *at, *end;
	bool deliver;
	struct entry_text word; /* of STIX_WORD, STIX_SIGN: as written */
	size_t length;		/* of STIX_TEXT, unescaped */
	bool overlong;
	char text[STIX_TEXT_MAX];
};

static bool stix_is_path_octet(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == ':' || c == '.' || c == '+';
}

/* 'x', with \' and \\ inside. */
static enum stix_token stix_quoted(struct stix_reader *r)
{
	r->length = 0;
	r->overlong = false;
	for (r->at++; r->at < r->end && *r->at != '\''; r->at++) {
		if (*r->at == '\\' && ++r->at == r->end)
			return STIX_WRONG;
		if (r->length < sizeof(r->text))
			r->text[r->length++] = *r->at;
		else
			r->overlong = true;
	}
	if (r->at == r->end)
		return STIX_WRONG;
	r->at++;
	return STIX_TEXT;
}

/* A keyword, a number, or a path such as file:hashes.'SHA-256' or a:b_refs[*].c. */
static void stix_word(struct stix_reader *r)
{
	const char *begin = r->at;
	while (r->at < r->end) {
		const char *stop = NULL;
		size_t left = (size_t)(r->end - r->at);
		if (*r->at == '\'' && r->at > begin && r->at[-1] == '.')
			stop = left > 1 ? memchr(r->at + 1, '\'', left - 1) : NULL;
		else if (*r->at == '[')
			stop = memchr(r->at, ']', left);
		else if (stix_is_path_octet(*r->at))
			stop = r->at;
		if (!stop)
			break;
		r->at = stop + 1;
	}
	r->word = (struct entry_text){begin, (size_t)(r->at - begin)};
}

static enum stix_token stix_next(struct stix_reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || (*r->at >= '\t' && *r->at <= '\r')))
		r->at++;
	if (r->at == r->end)
		return STIX_END;
	if (*r->at == '\'')
		return stix_quoted(r);
	/* t'2026-01-01T00:00:00Z', h'ffd8', b'...': other kinds of text */
	if (r->at + 1 < r->end && r->at[1] == '\'' && strchr("thb", *r->at) && *r->at) {
		r->at++;
		return stix_quoted(r);
	}
	if (stix_is_path_octet(*r->at)) {
		stix_word(r);
		return STIX_WORD;
	}
	size_t n =
		r->at + 1 < r->end && strchr("!<>", *r->at) && (r->at[1] == '=' || r->at[1] == '>');
	r->word = (struct entry_text){r->at, n + 1};
	r->at += n + 1;
	return strchr("[](),=!<>", r->word.at[0]) && r->word.at[0] ? STIX_SIGN : STIX_WRONG;
}

static bool stix_is(const struct stix_reader *r, const char *word)
{
	return r->word.length == strlen(word) && memcmp(r->word.at, word, r->word.length) == 0;
}

/* What one value of a comparison gives. */
static int stix_value(struct stix_reader *r, struct entry_text path, bool applies)
{
	static const char domain[] = "domain-name:value", url[] = "url:value";
	struct feed_body *body = r->body;
	if (!r->deliver)
		return 0;
	applies =
		applies &&
		((path.length == sizeof(domain) - 1 && memcmp(path.at, domain, path.length) == 0) ||
		 (path.length == sizeof(url) - 1 && memcmp(path.at, url, path.length) == 0));
	if (!applies || r->overlong) {
		entry_reject(body->sink, r->line,
			     applies ? FEED_REJECT_LONG : FEED_REJECT_UNSUPPORTED);
		return 0;
	}
	uint16_t flags = body->match == FEED_MATCH_SUBTREE ? DOMSET_SUBTREE : DOMSET_EXACT;
	return indicator_deliver(body, r->line, r->text, r->length, flags, flags);
}

/* `(` value `,` ... `)` behind IN. 0, an error, or 1: wrong. */
static int stix_in(struct stix_reader *r, struct entry_text path, bool applies)
{
	enum stix_token token = stix_next(r);
	if (token != STIX_SIGN || !stix_is(r, "("))
		return 1;
	do {
		token = stix_next(r);
		if (token != STIX_TEXT && token != STIX_WORD)
			return 1;
		int result = stix_value(r, path, applies && token == STIX_TEXT);
		if (result < 0)
			return result;
		token = stix_next(r);
		if (token != STIX_SIGN)
			return 1;
	} while (stix_is(r, ","));
	return !stix_is(r, ")");
}

/* `path [NOT] op value`, r->word being the path. */
static int stix_comparison(struct stix_reader *r)
{
	struct entry_text path = r->word;
	enum stix_token token = stix_next(r);
	bool negated = token == STIX_WORD && stix_is(r, "NOT");
	if (negated)
		token = stix_next(r);
	if (token != STIX_WORD && token != STIX_SIGN)
		return 1;
	if (stix_is(r, "IN"))
		return stix_in(r, path, !negated);
	bool equal = stix_is(r, "=") && !negated;
	token = stix_next(r);
	if (token != STIX_TEXT && token != STIX_WORD)
		return 1;
	return stix_value(r, path, equal && token == STIX_TEXT);
}

/* Over the whole pattern. 0, an error, or 1 + the reason why it is not for us. */
static int stix_read(struct stix_reader *r)
{
	bool inside = false, any = false;
	r->at = r->line->text;
	for (;;) {
		enum stix_token token = stix_next(r);
		if (token == STIX_END)
			return any && !inside ? 0 : 1 + FEED_REJECT_SYNTAX;
		if (token == STIX_SIGN && stix_is(r, inside ? "]" : "[")) {
			inside = !inside;
			continue;
		}
		if (token == STIX_SIGN && (stix_is(r, "(") || stix_is(r, ")")))
			continue;
		if (token != STIX_WORD)
			return 1 + FEED_REJECT_SYNTAX;
		if (stix_is(r, "OR"))
			continue;
		if (!inside || stix_is(r, "AND") || stix_is(r, "NOT") || stix_is(r, "EXISTS"))
			return 1 + FEED_REJECT_UNSUPPORTED;
		int result = stix_comparison(r);
		if (result)
			return result < 0 ? result : 1 + FEED_REJECT_SYNTAX;
		any = true;
	}
}

int stix_pattern(struct feed_body *body, const struct feed_line *line)
{
	struct stix_reader r = {.body = body, .line = line, .end = line->text + line->length};
	int result = stix_read(&r);
	if (result > 0) {
		entry_reject(body->sink, line, (enum feed_reject)(result - 1));
		return 0;
	}
	r.deliver = true;
	return stix_read(&r);
}
