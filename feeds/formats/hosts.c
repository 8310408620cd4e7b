/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts(5): `address name [name...]`, `#` to the end of the line is a comment. An unspecified or
 * loopback address means "block these"; any other would send clients elsewhere, which a list may
 * not do, so those names are rejected. Names stand for themselves alone unless the feed says
 * `match: subtree`. Stateless; runs in the fetcher and in `feeds compile`.
 */
#include "feeds/formats/entry.h"

#include "feeds/set/domset.h"

static int hosts_line(struct feed_body *body, const struct feed_line *line)
{
	const struct feed_sink *sink = body->sink;
	struct entry_text rest = entry_without_comment(line->text, line->length);
	struct entry_text token;
	if (!entry_token(&rest, &token))
		return 0;
	int blocks = entry_is_block_address(token);
	struct entry_text name;
	if (blocks < 0 || !entry_token(&rest, &name)) {
		entry_reject(sink, line, FEED_REJECT_SYNTAX);
		return 0;
	}
	uint16_t flags = body->match == FEED_MATCH_SUBTREE ? DOMSET_SUBTREE : DOMSET_EXACT;
	do {
		if (blocks) {
			int result = entry_deliver(sink, line, name.at, name.length, flags);
			if (result < 0)
				return result;
		} else {
			entry_reject(sink, line,
				     entry_is_local(name.at, name.length) ? FEED_REJECT_LOCAL
									  : FEED_REJECT_REDIRECT);
		}
	} while (entry_token(&rest, &name));
	return 0;
}

static int hosts_judge(struct entry_text line)
{
	struct entry_text token;
	line = entry_without_comment(line.at, line.length);
	if (!entry_token(&line, &token))
		return -1;
	return entry_is_block_address(token) >= 0 && entry_token(&line, &token);
}

static int hosts_recognise(const char *head, size_t size)
{
	return entry_likeness(head, size, hosts_judge);
}

const struct feed_format feed_format_hosts = {
	.name = "hosts",
	.help = "hosts(5): 0.0.0.0 name [name...]",
	.default_match = FEED_MATCH_EXACT,
	.line = hosts_line,
	.recognise = hosts_recognise,
};
