/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unbound.conf(5): `local-zone: "name." type` and `local-data: "name [ttl] [IN] A address"`. A zone
 * stands for its name and all below it, data for the name alone.
 *
 *   always_nxdomain always_nodata always_null always_refuse always_deny
 *   static refuse deny inform_deny                                        blocked
 *   redirect                   blocked if data with a blocking address comes next, else rejected
 *   transparent always_transparent                                        an exception
 *   others                                                                not applied
 *
 * `#` begins a comment outside of quotes. State: the redirected zone that waits for its data. Runs
 * in the fetcher and in `feeds compile`.
 */
#include "feeds/formats/entry.h"

#include "feeds/formats/lines.h"
#include "feeds/set/domset.h"

#include <string.h>
#include <strings.h>

struct unbound_state {
	size_t zone_length; /* 0: none waits */
	uint64_t line_number;
	char zone[LINES_MAX];
};

/* The next word or quoted text behind the key; false at the end, or at a comment. */
static bool unbound_word(struct entry_text *rest, struct entry_text *word)
{
	*rest = entry_trim(rest->at, rest->length);
	if (rest->length == 0 || rest->at[0] == '#')
		return false;
	char quote = rest->at[0];
	if (quote != '"' && quote != '\'')
		return entry_token(rest, word);
	const char *end = memchr(rest->at + 1, quote, rest->length - 1);
	size_t length = end ? (size_t)(end - rest->at) - 1 : rest->length - 1;
	*word = (struct entry_text){rest->at + 1, length};
	length += 1 + (end != NULL);
	rest->at += length;
	rest->length -= length;
	return true;
}

static bool unbound_is(struct entry_text t, const char *word)
{
	return t.length == strlen(word) && strncasecmp(t.at, word, t.length) == 0;
}

/* The key before the ':'; false if the line has none. */
static bool unbound_key(struct entry_text *rest, struct entry_text *key)
{
	size_t n = 0;
	while (n < rest->length &&
	       ((rest->at[n] >= 'a' && rest->at[n] <= 'z') || rest->at[n] == '-'))
		n++;
	if (n == 0 || n == rest->length || rest->at[n] != ':')
		return false;
	*key = (struct entry_text){rest->at, n};
	*rest = (struct entry_text){rest->at + n + 1, rest->length - n - 1};
	return true;
}

static uint16_t unbound_type(struct entry_text type)
{
	static const char *const blocks[] = {
		"always_nxdomain", "always_nodata", "always_null", "always_refuse", "always_deny",
		"static",	   "refuse",	    "deny",	   "inform_deny",
	};
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		if (unbound_is(type, blocks[i]))
			return DOMSET_SUBTREE;
	if (unbound_is(type, "transparent") || unbound_is(type, "always_transparent"))
		return DOMSET_EXCEPT(DOMSET_SUBTREE);
	return 0;
}

static void unbound_drop_waiting(struct feed_body *body)
{
	struct unbound_state *s = body->state;
	if (s->zone_length > 0)
		body->sink->reject(body->sink->context, FEED_REJECT_REDIRECT, s->line_number,
				   s->zone, s->zone_length);
	s->zone_length = 0;
}

static int unbound_zone(struct feed_body *body, const struct feed_line *line,
			struct entry_text rest)
{
	struct unbound_state *s = body->state;
	struct entry_text name, type, more;
	unbound_drop_waiting(body);
	if (!unbound_word(&rest, &name) || !unbound_word(&rest, &type) ||
	    unbound_word(&rest, &more)) {
		entry_reject(body->sink, line, FEED_REJECT_SYNTAX);
		return 0;
	}
	if (unbound_is(type, "redirect")) {
		memcpy(s->zone, name.at, name.length);
		s->zone_length = name.length;
		s->line_number = line->number;
		return 0;
	}
	uint16_t flags = unbound_type(type);
	if (flags)
		return entry_deliver(body->sink, line, name.at, name.length, flags);
	entry_reject(body->sink, line, FEED_REJECT_UNSUPPORTED);
	return 0;
}

/* Is `word` the zone that waits for its data, with or without the last dot? */
static bool unbound_is_waiting(const struct unbound_state *s, struct entry_text name)
{
	size_t n = s->zone_length;
	n -= n > 1 && s->zone[n - 1] == '.';
	name.length -= name.length > 1 && name.at[name.length - 1] == '.';
	return n > 0 && n == name.length && strncasecmp(s->zone, name.at, n) == 0;
}

/* `name [ttl] [class] type address`: the name and whether the address blocks; -1: other data. */
static int unbound_record(struct entry_text record, struct entry_text *name)
{
	struct entry_text word, address;
	if (!entry_token(&record, name))
		return -1;
	do {
		if (!entry_token(&record, &word))
			return -1;
	} while ((word.at[0] >= '0' && word.at[0] <= '9') || unbound_is(word, "IN"));
	if ((!unbound_is(word, "A") && !unbound_is(word, "AAAA")) ||
	    !entry_token(&record, &address))
		return -1;
	return entry_is_block_address(address);
}

static int unbound_data(struct feed_body *body, const struct feed_line *line,
			struct entry_text rest)
{
	struct unbound_state *s = body->state;
	struct entry_text record, name = {0};
	if (!unbound_word(&rest, &record) || record.length == 0) {
		entry_reject(body->sink, line, FEED_REJECT_SYNTAX);
		return 0;
	}
	int blocks = unbound_record(record, &name);
	if (blocks == 1) {
		uint16_t flags = unbound_is_waiting(s, name) ? DOMSET_SUBTREE : DOMSET_EXACT;
		if (flags == DOMSET_SUBTREE)
			s->zone_length = 0;
		return entry_deliver(body->sink, line, name.at, name.length, flags);
	}
	entry_reject(body->sink, line,
		     blocks == 0 ? FEED_REJECT_REDIRECT : FEED_REJECT_UNSUPPORTED);
	return 0;
}

static int unbound_line(struct feed_body *body, const struct feed_line *line)
{
	struct entry_text rest = entry_trim(line->text, line->length), key, word;
	if (rest.length == 0 || rest.at[0] == '#')
		return 0;
	if (!unbound_key(&rest, &key))
		entry_reject(body->sink, line, FEED_REJECT_SYNTAX);
	else if (unbound_is(key, "local-zone"))
		return unbound_zone(body, line, rest);
	else if (unbound_is(key, "local-data"))
		return unbound_data(body, line, rest);
	else if (!unbound_is(key, "server") || unbound_word(&rest, &word))
		entry_reject(body->sink, line, FEED_REJECT_UNSUPPORTED);
	return 0;
}

static int unbound_end(struct feed_body *body)
{
	unbound_drop_waiting(body);
	return 0;
}

static int unbound_judge(struct entry_text line)
{
	struct entry_text key;
	if (line.length == 0 || line.at[0] == '#')
		return -1;
	return unbound_key(&line, &key) &&
	       (unbound_is(key, "server") || (key.length > 6 && memcmp(key.at, "local-", 6) == 0));
}

static int unbound_recognise(const char *head, size_t size)
{
	return entry_likeness(head, size, unbound_judge);
}

const struct feed_format feed_format_unbound = {
	.name = "unbound",
	.help = "unbound.conf(5): local-zone: \"name\" always_nxdomain",
	.default_match = FEED_MATCH_FORMAT,
	.state_size = sizeof(struct unbound_state),
	.line = unbound_line,
	.end = unbound_end,
	.recognise = unbound_recognise,
};
