/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baleen feeds lookup`: which feeds hold a name in a set file, with the daemon's own lookup. Runs
 * in the user's process; reads only.
 */
#include "core/cli/cmd_feeds.h"

#include "base/name.h"
#include "core/cli/cli.h"
#include "core/config.h"
#include "feeds/set/domset.h"
#include "feeds/setfiles.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lookup {
	const char *config;
	const char *set_path;
	bool json;
	struct name name;
	struct domset *set;
	struct feeds feeds; /* those of the file, all of them enforced */
	struct feed items[FEEDS_MAX];
};

/* Bits of one listed name that say something about the asked one. */
static uint16_t lookup_applying(uint16_t flags, bool itself)
{
	uint16_t bits = itself ? DOMSET_EXACT | DOMSET_SUBTREE : DOMSET_SUBTREE | DOMSET_BELOW;
	return flags & (bits | DOMSET_EXCEPT(bits) | DOMSET_IMPORTANT(bits) |
			DOMSET_EXCEPT_IMPORTANT(bits));
}

static const struct {
	uint16_t bit;
	const char *word;
} lookup_words[] = {
	{DOMSET_EXACT, "exact"},
	{DOMSET_SUBTREE, "subtree"},
	{DOMSET_BELOW, "below"},
	{DOMSET_IMPORTANT(DOMSET_EXACT), "important exact"},
	{DOMSET_IMPORTANT(DOMSET_SUBTREE), "important subtree"},
	{DOMSET_IMPORTANT(DOMSET_BELOW), "important below"},
	{DOMSET_EXCEPT(DOMSET_EXACT), "exception exact"},
	{DOMSET_EXCEPT(DOMSET_SUBTREE), "exception subtree"},
	{DOMSET_EXCEPT(DOMSET_BELOW), "exception below"},
	{DOMSET_EXCEPT_IMPORTANT(DOMSET_EXACT), "important exception exact"},
	{DOMSET_EXCEPT_IMPORTANT(DOMSET_SUBTREE), "important exception subtree"},
	{DOMSET_EXCEPT_IMPORTANT(DOMSET_BELOW), "important exception below"},
};

/* One (feed, listed name, way) that applies. */
static void lookup_print(struct lookup *l, cJSON *matches, const char *feed, unsigned labels,
			 const char *word)
{
	char entry[NAME_TEXT_MAX];
	name_format(l->name.wire + name_suffix_offset(l->name.wire, l->name.labels, labels), entry);
	if (!matches) {
		printf("%s: %s %s (depth %u)\n", feed, entry, word, labels);
		return;
	}
	cJSON *match = cJSON_CreateObject();
	cJSON_AddItemToArray(matches, match);
	cJSON_AddStringToObject(match, "feed", feed);
	cJSON_AddStringToObject(match, "entry", entry);
	cJSON_AddNumberToObject(match, "depth", labels);
	cJSON_AddStringToObject(match, "match", word);
}

static void lookup_matches(struct lookup *l, const struct domset_result *r, cJSON *matches)
{
	for (unsigned i = 0; i < r->count; i++) {
		size_t count;
		const struct domset_entry *entries =
			domset_combination(l->set, r->at[i].combination, &count);
		for (size_t j = 0; j < count; j++) {
			uint16_t bits =
				lookup_applying(entries[j].flags, r->at[i].labels == r->labels);
			const char *feed = domset_feed_name(l->set, entries[j].feed);
			for (size_t k = 0; k < sizeof(lookup_words) / sizeof(lookup_words[0]); k++)
				if (bits & lookup_words[k].bit)
					lookup_print(l, matches, feed, r->at[i].labels,
						     lookup_words[k].word);
		}
	}
}

/* Feeds whose entries match, their own exceptions applied. */
static void lookup_add_feeds(struct lookup *l, const struct domset_result *r, cJSON *root)
{
	cJSON *feeds = cJSON_AddArrayToObject(root, "feeds");
	for (unsigned i = 0; i < l->feeds.count; i++)
		if (feedmask_has(&r->feeds, i))
			cJSON_AddItemToArray(feeds, cJSON_CreateString(l->feeds.items[i].name));
}

static int lookup_run(struct lookup *l)
{
	char text[NAME_TEXT_MAX];
	struct domset_result r;
	l->feeds = (struct feeds){.items = l->items, .count = domset_feed_count(l->set)};
	for (size_t i = 0; i < l->feeds.count; i++) {
		l->items[i] =
			(struct feed){.name = domset_feed_name(l->set, i), .number = (unsigned)i};
		feedmask_add(&l->feeds.enforced, (unsigned)i);
	}
	int result = domset_bind(l->set, &l->feeds);
	if (result < 0) {
		fprintf(stderr, "%s: %s\n", l->set_path, strerror(-result));
		return 1;
	}
	domset_lookup(l->set, l->name.wire, l->name.length, l->name.labels, &r);
	if (r.damaged) {
		fprintf(stderr, "%s: damaged\n", l->set_path);
		return 1;
	}
	bool found = feedmask_any(&r.feeds);
	name_format(l->name.wire, text);
	if (l->json) {
		cJSON *root = cJSON_CreateObject();
		cJSON_AddStringToObject(root, "name", text);
		cJSON_AddBoolToObject(root, "found", found);
		lookup_add_feeds(l, &r, root);
		lookup_matches(l, &r, cJSON_AddArrayToObject(root, "matches"));
		char *json = cJSON_PrintUnformatted(root);
		if (json)
			puts(json);
		free(json);
		cJSON_Delete(root);
	} else {
		lookup_matches(l, &r, NULL);
		if (!found)
			printf("%s: not listed\n", text);
	}
	return found ? 0 : 1;
}

/* The newest set of the configuration's state folder. */
static char *lookup_newest(const char *config)
{
	char *control = NULL, *state = NULL, *path = NULL;
	int result = config_find_paths(config, &control, &state);
	uint64_t number = result < 0 ? 0 : setfiles_newest(state, UINT64_MAX);
	if (result < 0)
		fprintf(stderr, "%s: %s\n", config, strerror(-result));
	else if (number == 0)
		fprintf(stderr, "%s/sets: no compiled set\n", state);
	else
		path = setfiles_path(state, number, "mdb");
	free(control);
	free(state);
	return path;
}

int cmd_feeds_lookup(int argc, char **argv)
{
	struct cli_options o;
	struct lookup l = {0};
	const struct cli_option own[] = {{"set", NULL, &l.set_path}, {0}};
	int used = cli_options(argc, argv, "feeds lookup NAME [--set FILE.mdb] [-c FILE] [--json]",
			       own, 1, 1, &o);
	if (used >= 0)
		return used;
	l.config = o.config;
	l.json = o.json;
	if (name_from_unicode(argv[optind], strlen(argv[optind]), &l.name) != 0) {
		fprintf(stderr, "baleen feeds lookup: \"%s\" is not a domain name\n", argv[optind]);
		return 2;
	}
	char *newest = l.set_path ? NULL : lookup_newest(l.config);
	if (newest)
		l.set_path = newest;
	if (!l.set_path)
		return 1;
	char error[DOMSET_ERROR_MAX] = "";
	int code = 1;
	int result = domset_open(l.set_path, DOMSET_CHECK_HEADER, &l.set, error);
	if (result < 0) {
		fprintf(stderr, "%s: %s\n", l.set_path, error[0] ? error : strerror(-result));
	} else {
		code = lookup_run(&l);
		domset_close(l.set);
	}
	free(newest);
	return code;
}
