/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One name a line. `x` is the name, with all below it unless the feed says `match: exact`; `*.x` is
 * what lies below x without x itself, `.x` is x and all below: those two say it themselves. `#`
 * begins a comment anywhere, `;` at the start of a line or behind a blank. Stateless; runs in the
 * fetcher and in `feeds compile`.
 */
#include "feeds/formats/entry.h"

#include "feeds/set/domset.h"

#include <string.h>

/* The line's one token. 1, 0 for an empty or comment line, -1 when there are several. */
static int domains_token(const char *text, size_t length, struct entry_text *token)
{
	struct entry_text rest = entry_without_comment(text, length), more;
	if (!entry_token(&rest, token) || token->at[0] == ';')
		return 0;
	if (entry_token(&rest, &more) && more.at[0] != ';')
		return -1;
	return 1;
}

static int domains_line(struct feed_body *body, const struct feed_line *line)
{
	const struct feed_sink *sink = body->sink;
	struct entry_text token;
	int found = domains_token(line->text, line->length, &token);
	if (found == 0)
		return 0;
	if (found < 0) {
		entry_reject(sink, line, FEED_REJECT_SYNTAX);
		return 0;
	}
	uint16_t flags = body->match == FEED_MATCH_EXACT ? DOMSET_EXACT : DOMSET_SUBTREE;
	if (token.length > 2 && token.at[0] == '*' && token.at[1] == '.') {
		flags = DOMSET_BELOW;
		token.at += 2;
		token.length -= 2;
	} else if (token.length > 1 && token.at[0] == '.') {
		flags = DOMSET_SUBTREE;
		token.at += 1;
		token.length -= 1;
	}
	return entry_deliver(sink, line, token.at, token.length, flags);
}

static int domains_judge(struct entry_text line)
{
	struct entry_text token;
	int found = domains_token(line.at, line.length, &token);
	if (found == 0)
		return -1;
	if (found < 0)
		return 0;
	if (token.length > 2 && token.at[0] == '*')
		token = (struct entry_text){token.at + 1, token.length - 1};
	return entry_looks_like_name(token);
}

static int domains_recognise(const char *head, size_t size)
{
	return entry_likeness(head, size, domains_judge);
}

const struct feed_format feed_format_domains = {
	.name = "domains",
	.help = "one name a line; *.name: only what is below it",
	.default_match = FEED_MATCH_SUBTREE,
	.line = domains_line,
	.recognise = domains_recognise,
};
