/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DNS part of adblock lists, as AdGuard defines it:
 *
 *   ["@@"] pattern ["$" modifier ["," modifier]...]      ! comment      [Adblock Plus 2.0]
 *
 *   ||x^  ||x  ||x|    x and all below         |x^  |x|   x alone
 *   ||*.x^  *.x  *.x^  all below x             x          x alone
 *
 * A rule whose pattern or modifiers are not in this table is rejected as a whole: half a rule would
 * block more than its author meant. Modifiers: `important`, and `badfilter`, which takes the same
 * rule back. Where a pattern means a text prefix (`||x` also covers x.evil.test), the part of it
 * that ends at a label border is taken, never more. Stateless; runs in the fetcher and in
 * `feeds compile`.
 */
#include "feeds/formats/entry.h"

#include "feeds/set/domset.h"

#include <string.h>

static bool adblock_begins(struct entry_text t, const char *word)
{
	size_t n = strlen(word);
	return t.length >= n && memcmp(t.at, word, n) == 0;
}

static bool adblock_skip(struct entry_text *t, const char *word)
{
	if (!adblock_begins(*t, word))
		return false;
	t->at += strlen(word);
	t->length -= strlen(word);
	return true;
}

static bool adblock_cut(struct entry_text *t, char last)
{
	if (t->length == 0 || t->at[t->length - 1] != last)
		return false;
	t->length--;
	return true;
}

/* Element hiding, scriptlets, HTML filters: `##`, `#@#`, `#?#`, `#$#`, `#%#`, `$$`, `$@$`. */
static bool adblock_is_cosmetic(struct entry_text t)
{
	static const char *const marks[] = {"##",   "#@#",   "#?#", "#@?#", "#$#", "#@$#",
					    "#$?#", "#@$?#", "#%#", "#@%#", "$$",  "$@$"};
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (memmem(t.at, t.length, marks[i], strlen(marks[i])))
			return true;
	return false;
}

/* Comments, headers and directives: nothing to say and nothing to reject. */
static bool adblock_is_silent(struct entry_text t)
{
	if (t.length == 0 || t.at[0] == '!')
		return true;
	if (t.at[0] == '[' && t.at[t.length - 1] == ']')
		return true;
	return t.at[0] == '#' && !adblock_is_cosmetic(t);
}

struct adblock_modifiers {
	bool important;
	bool badfilter;
};

/* The text behind `$`. False for a modifier that this program does not apply. */
static bool adblock_modifiers(struct entry_text t, struct adblock_modifiers *out)
{
	do {
		const char *comma = memchr(t.at, ',', t.length);
		size_t n = comma ? (size_t)(comma - t.at) : t.length;
		if (n == 9 && memcmp(t.at, "important", 9) == 0)
			out->important = true;
		else if (n == 9 && memcmp(t.at, "badfilter", 9) == 0)
			out->badfilter = true;
		else
			return false;
		n += comma != NULL;
		t.at += n;
		t.length -= n;
		if (comma && t.length == 0)
			return false;
	} while (t.length > 0);
	return true;
}

/* Reduce the pattern to the text of a name; 0 if it is none of the table's forms. */
static uint16_t adblock_pattern(struct entry_text *t)
{
	bool subtree = adblock_skip(t, "||");
	bool start = subtree || adblock_skip(t, "|");
	bool end = adblock_cut(t, '|');
	end = adblock_cut(t, '^') || end;
	bool below = false;
	if (subtree || !start)
		below = adblock_skip(t, "*.");
	/* `x^` and `x|` also match notx: a text suffix, not a name. */
	if (!start && !below && end)
		return 0;
	/* `||ads.` is a prefix of names, not the name `ads`. */
	if (t->length == 0 || t->at[t->length - 1] == '.')
		return 0;
	if (memchr(t->at, '*', t->length) || memchr(t->at, '/', t->length) ||
	    memchr(t->at, '^', t->length) || memchr(t->at, '|', t->length))
		return 0;
	/* A port makes it a URL rule; an IPv6 address is told apart later. */
	if (memchr(t->at, ':', t->length) && !entry_is_address(t->at, t->length))
		return 0;
	if (below)
		return DOMSET_BELOW;
	return subtree ? DOMSET_SUBTREE : DOMSET_EXACT;
}

static int adblock_rule(const struct feed_line *line, struct entry_text t,
			const struct feed_sink *sink)
{
	struct adblock_modifiers modifiers = {0};
	bool except = adblock_skip(&t, "@@");
	/* `/re/`, also with modifiers behind; a path alone is not about names either. */
	if (adblock_begins(t, "/")) {
		entry_reject(sink, line, FEED_REJECT_UNSUPPORTED);
		return 0;
	}
	const char *dollar = memchr(t.at, '$', t.length);
	struct entry_text behind = {0};
	if (dollar) {
		behind.at = dollar + 1;
		behind.length = t.length - (size_t)(behind.at - t.at);
		t.length = (size_t)(dollar - t.at);
	}
	uint16_t flags = adblock_pattern(&t);
	if (!flags) {
		entry_reject(sink, line, FEED_REJECT_UNSUPPORTED);
		return 0;
	}
	if (dollar && !adblock_modifiers(behind, &modifiers)) {
		entry_reject(sink, line, FEED_REJECT_MODIFIER);
		return 0;
	}
	if (except)
		flags = modifiers.important ? DOMSET_EXCEPT_IMPORTANT(flags) : DOMSET_EXCEPT(flags);
	else if (modifiers.important)
		flags = DOMSET_IMPORTANT(flags);
	if (modifiers.badfilter)
		flags |= FEED_ENTRY_CANCEL;
	return entry_deliver(sink, line, t.at, t.length, flags);
}

static int adblock_line(struct feed_body *body, const struct feed_line *line)
{
	const struct feed_sink *sink = body->sink;
	struct entry_text t = entry_trim(line->text, line->length);
	if (adblock_is_silent(t))
		return 0;
	if (adblock_is_cosmetic(t)) {
		entry_reject(sink, line, FEED_REJECT_COSMETIC);
		return 0;
	}
	/* Such lists mix in hosts lines and plain names with comments behind; a rule proper has
	 * neither blanks nor '#'. */
	struct entry_text rest = entry_without_comment(t.at, t.length), first, second;
	if (!entry_token(&rest, &first))
		return 0;
	if (entry_token(&rest, &second)) {
		if (entry_is_address(first.at, first.length))
			return feed_format_hosts.line(body, line);
		entry_reject(sink, line, FEED_REJECT_SYNTAX);
		return 0;
	}
	if (first.length < t.length && !entry_looks_like_name(first)) {
		entry_reject(sink, line, FEED_REJECT_SYNTAX);
		return 0;
	}
	return adblock_rule(line, first, sink);
}

static int adblock_judge(struct entry_text line)
{
	if (line.length == 0 || line.at[0] == '#')
		return -1;
	if (line.at[0] == '!' || adblock_begins(line, "[Adblock"))
		return 1;
	return adblock_begins(line, "||") || adblock_begins(line, "@@") ||
	       adblock_is_cosmetic(line);
}

static int adblock_recognise(const char *head, size_t size)
{
	/* The customary first line, or comments that no other format has: plain names between
	 * them mean something else here (the name alone). */
	struct entry_text first = entry_trim(head, size);
	if (adblock_begins(first, "[Adblock") || adblock_begins(first, "! "))
		return 100;
	return entry_likeness(head, size, adblock_judge);
}

const struct feed_format feed_format_adblock = {
	.name = "adblock",
	.help = "the DNS part of adblock lists: ||name^, @@||name^, $important",
	.default_match = FEED_MATCH_FORMAT,
	.line = adblock_line,
	.recognise = adblock_recognise,
};
