/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One URL a line, `#` begins a comment line. What of a URL becomes an entry: indicator.h. Hosts
 * stand for themselves alone unless the feed says `match: subtree`. Stateless; runs in the fetcher
 * and in `feeds compile`.
 */
#include "feeds/formats/indicator.h"

#include "feeds/set/domset.h"

#include <string.h>

static int urls_line(struct feed_body *body, const struct feed_line *line)
{
	struct entry_text rest = entry_trim(line->text, line->length), url, more;
	if (rest.length == 0 || rest.at[0] == '#')
		return 0;
	entry_token(&rest, &url);
	if (entry_token(&rest, &more)) {
		entry_reject(body->sink, line, FEED_REJECT_SYNTAX);
		return 0;
	}
	uint16_t flags = body->match == FEED_MATCH_SUBTREE ? DOMSET_SUBTREE : DOMSET_EXACT;
	return indicator_deliver(body, line, url.at, url.length, flags, flags);
}

static int urls_judge(struct entry_text line)
{
	struct entry_text url;
	if (!entry_token(&line, &url) || url.at[0] == '#')
		return -1;
	return !entry_token(&line, &line) && memmem(url.at, url.length, "://", 3) != NULL &&
	       url.at[0] != '|' && url.at[0] != '@';
}

static int urls_recognise(const char *head, size_t size)
{
	return entry_likeness(head, size, urls_judge);
}

const struct feed_format feed_format_urls = {
	.name = "urls",
	.help = "one URL a line: hosts of those that are nothing but a host",
	.default_match = FEED_MATCH_EXACT,
	.line = urls_line,
	.recognise = urls_recognise,
};
