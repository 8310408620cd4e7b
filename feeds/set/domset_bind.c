/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combinations of an open set, and what they mean for a site's feeds: masks worked out once, so
 * that a lookup only joins words, whether the site has one feed or two hundred. In every process
 * that looks names up. Invariant: the masks say exactly what the entries say.
 */
#include "feeds/set/domset_reader.h"

#include <errno.h>
#include <stdlib.h>

#define AT_BITS	   (DOMSET_EXACT | DOMSET_SUBTREE)
#define BELOW_BITS (DOMSET_SUBTREE | DOMSET_BELOW)

const struct domset_entry *domset_combination(const struct domset *s, uint32_t combination,
					      size_t *count)
{
	*count = 0;
	if (combination >= s->header.combinations)
		return NULL;
	uint32_t at, entries;
	memcpy(&at,
	       s->list_at.data[combination / DOMSET_LIST_AT_PER_CHUNK] +
		       4 * (size_t)(combination % DOMSET_LIST_AT_PER_CHUNK),
	       4);
	const uint8_t *list =
		s->lists.data[at >> DOMSET_CHUNK_SHIFT] + (at & ((1u << DOMSET_CHUNK_SHIFT) - 1));
	memcpy(&entries, list, 4);
	*count = entries;
	return (const struct domset_entry *)(const void *)(list + 4);
}

static void add(struct domset_masks *m, unsigned feed, unsigned flags)
{
	if (flags & AT_BITS)
		feedmask_add(&m->at, feed);
	if (flags & BELOW_BITS)
		feedmask_add(&m->below, feed);
}

static int bind_combination(struct domset *s, uint32_t combination, uint32_t *rule_count)
{
	size_t count;
	const struct domset_entry *e = domset_combination(s, combination, &count);
	struct domset_masks plain = {0};
	struct domset_rules rules = {0};
	bool any = false;
	for (size_t i = 0; i < count; i++) {
		unsigned feed = s->feed_numbers[e[i].feed];
		if (feed == FEED_NONE)
			continue;
		add(&plain, feed, e[i].flags);
		add(&rules.except, feed, e[i].flags >> 3);
		add(&rules.important, feed, e[i].flags >> 6);
		add(&rules.except_important, feed, e[i].flags >> 9);
		any = any || e[i].flags >> 3;
	}
	size_t words = s->mask_words;
	memcpy(s->masks + 2 * words * combination, plain.at.words, words * sizeof *s->masks);
	memcpy(s->masks + 2 * words * combination + words, plain.below.words,
	       words * sizeof *s->masks);
	if (!any)
		return 0;
	s->ruled[combination / 64] |= (uint64_t)1 << combination % 64;
	uint32_t at = *rule_count;
	if (!(at & (at - 1))) {
		void *grown = realloc(s->rules, 2 * (size_t)at * sizeof *s->rules);
		if (!grown)
			return -ENOMEM;
		s->rules = grown;
	}
	s->rules[at] = rules;
	s->rules_of[combination] = at;
	*rule_count = at + 1;
	return 0;
}

static void map_feeds(struct domset *s, const struct feeds *feeds)
{
	s->mask_words = 1;
	for (uint32_t i = 0; i < s->header.feeds; i++) {
		s->feed_numbers[i] = FEED_NONE;
		for (size_t k = 0; k < feeds->count; k++) {
			unsigned number = feeds->items[k].number;
			if (number >= FEEDS_MAX || strcmp(feeds->items[k].name, s->feed_names[i]))
				continue;
			s->feed_numbers[i] = (uint16_t)number;
			if (number / 64 >= s->mask_words)
				s->mask_words = number / 64 + 1;
		}
	}
}

int domset_bind(struct domset *s, const struct feeds *feeds)
{
	map_feeds(s, feeds);
	free(s->masks);
	free(s->ruled);
	free(s->rules_of);
	free(s->rules);
	size_t count = s->header.combinations + (size_t)1;
	s->masks = calloc(count, 2 * s->mask_words * sizeof *s->masks);
	s->ruled = calloc(count / 64 + 1, sizeof *s->ruled);
	s->rules_of = calloc(count, sizeof *s->rules_of);
	s->rules = calloc(1, sizeof *s->rules);
	if (!s->masks || !s->ruled || !s->rules_of || !s->rules)
		return -ENOMEM;
	uint32_t rule_count = 1;
	for (uint32_t i = 0; i < s->header.combinations; i++) {
		int rc = bind_combination(s, i, &rule_count);
		if (rc)
			return rc;
	}
	return 0;
}

size_t domset_feed_count(const struct domset *s)
{
	return s->header.feeds;
}

const char *domset_feed_name(const struct domset *s, size_t index)
{
	return s->feed_names[index];
}

unsigned domset_feed_number(const struct domset *s, size_t index)
{
	return s->feed_numbers[index];
}
