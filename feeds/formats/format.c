/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of list formats and the words for what they reject. Constant data; runs in the fetcher
 * and in `feeds compile`. Invariant: the order of feed_reject_words is that of enum feed_reject,
 * because state files and JSON carry the words.
 */
#include "feeds/formats/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Below this a body is not taken for a format at all. */
#define FORMAT_LIKENESS_MIN 50

const char *const feed_reject_words[FEED_REJECT_REASONS] = {
	[FEED_REJECT_SYNTAX] = "syntax",     [FEED_REJECT_NAME] = "name",
	[FEED_REJECT_ADDRESS] = "address",   [FEED_REJECT_LOCAL] = "local",
	[FEED_REJECT_REDIRECT] = "redirect", [FEED_REJECT_UNSUPPORTED] = "unsupported",
	[FEED_REJECT_MODIFIER] = "modifier", [FEED_REJECT_COSMETIC] = "cosmetic",
	[FEED_REJECT_LONG] = "long",	     [FEED_REJECT_ENCODING] = "encoding",
	[FEED_REJECT_SUFFIX] = "suffix",     [FEED_REJECT_PROTECTED] = "protected",
	[FEED_REJECT_URL] = "url",	     [FEED_REJECT_ZONE] = "zone",
	[FEED_REJECT_EXPIRED] = "expired",
};

const struct feed_format *const feed_formats[] = {
	&feed_format_csv,     &feed_format_hosts,   &feed_format_domains, &feed_format_adblock,
	&feed_format_dnsmasq, &feed_format_unbound, &feed_format_rpz,	  &feed_format_urls,
	&feed_format_json,    &feed_format_misp,    &feed_format_stix,	  NULL,
};

const struct feed_format *feed_format_find(const char *name)
{
	for (const struct feed_format *const *f = feed_formats; *f; f++)
		if (strcmp((*f)->name, name) == 0)
			return *f;
	return NULL;
}

const struct feed_format *feed_format_guess(const char *head, size_t size)
{
	const struct feed_format *best = NULL;
	int best_score = FORMAT_LIKENESS_MIN - 1;
	for (const struct feed_format *const *f = feed_formats; *f; f++) {
		int score = (*f)->recognise(head, size);
		if (score > best_score) {
			best = *f;
			best_score = score;
		}
	}
	return best;
}

int feed_body_init(struct feed_body *b, const struct feed_format *format, enum feed_match match,
		   const struct feed_hints *hints, int64_t now_s, const struct feed_sink *sink)
{
	*b = (struct feed_body){.format = format, .match = match, .now_s = now_s, .sink = sink};
	if (match == FEED_MATCH_FORMAT || format->default_match == FEED_MATCH_FORMAT)
		b->match = format->default_match;
	if (hints)
		b->hints = *hints;
	if (format->state_size && !(b->state = calloc(1, format->state_size)))
		return -ENOMEM;
	return 0;
}

void feed_body_fini(struct feed_body *b)
{
	free(b->state);
	b->state = NULL;
}
