/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any JSON document with its indicators (indicator.h) where the feed's `path` says: keys with dots
 * between them, `[]` for each item of a list, `*` for each member of an object; by default the
 * document is a list of texts. State: the reader. Runs in the fetcher and in `feeds compile`.
 */
#include "feeds/formats/indicator.h"
#include "feeds/formats/json_body.h"

#include "feeds/set/domset.h"

static int json_list_value(void *context, const struct json *j, bool string, struct entry_text text)
{
	struct feed_body *body = context;
	if (!json_is_at(j, body->hints.path ? body->hints.path : "[]"))
		return 0;
	const struct feed_line line = {text.at, text.length, j->line + 1};
	if (!string || j->overlong) {
		entry_reject(body->sink, &line, string ? FEED_REJECT_LONG : FEED_REJECT_SYNTAX);
		return 0;
	}
	uint16_t flags = body->match == FEED_MATCH_EXACT ? DOMSET_EXACT : DOMSET_SUBTREE;
	return indicator_deliver(body, &line, text.at, text.length, flags, DOMSET_EXACT);
}

static int json_list_text(struct feed_body *body, const char *text, size_t size)
{
	struct json *j = body->state;
	j->value = json_list_value;
	return json_body_push(body, j, text, size);
}

static int json_list_end(struct feed_body *body)
{
	return json_body_end(body, body->state);
}

/* Without a path, a list of texts alone is plain. */
static int json_list_recognise(const char *head, size_t size)
{
	struct entry_text t = entry_trim(head, size);
	if (t.length == 0 || t.at[0] != '[')
		return 0;
	t = entry_trim(t.at + 1, t.length - 1);
	return t.length > 0 && t.at[0] == '"' ? 60 : 0;
}

const struct feed_format feed_format_json = {
	.name = "json",
	.help = "JSON with the names or URLs where path says",
	.default_match = FEED_MATCH_EXACT,
	.state_size = sizeof(struct json),
	.text = json_list_text,
	.end = json_list_end,
	.recognise = json_list_recognise,
};
