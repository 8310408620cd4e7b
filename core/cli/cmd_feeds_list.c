/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baleen feeds list`, `show` and `catalogue`: what the fetcher left on disk, and the feeds known
 * by name. Runs in the user's process; reads only, so it works without a daemon.
 */
#include "core/cli/cmd_feeds.h"

#include "core/cli/cli.h"
#include "core/config.h"
#include "feeds/catalogue.h"
#include "feeds/formats/format.h"
#include "feeds/state.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* -1: go on with argv[optind...]; else an exit code. */
static int list_options(int argc, char **argv, int operands, struct cli_options *out)
{
	char usage[64];
	snprintf(usage, sizeof(usage), "feeds %s%s [-c FILE] [--json]", argv[0],
		 operands ? " NAME" : "");
	return cli_options(argc, argv, usage, NULL, operands, operands, out);
}

static char *list_state_folder(const char *config)
{
	char *control = NULL, *state = NULL;
	int result = config_find_paths(config, &control, &state);
	if (result < 0)
		fprintf(stderr, "%s: %s\n", config, strerror(-result));
	free(control);
	return result < 0 ? NULL : state;
}

static int list_print_json(const cJSON *root)
{
	char *text = cJSON_PrintUnformatted(root);
	if (text)
		puts(text);
	free(text);
	return text ? 0 : 1;
}

static const char *list_text(const cJSON *feed, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(feed, key);
	return cJSON_IsString(item) ? item->valuestring : "";
}

static double list_number(const cJSON *feed, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(feed, key);
	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* "3m", "5h", "never". */
static const char *list_age(double since_s, char out[32])
{
	double age = difftime(time(NULL), (time_t)since_s);
	if (since_s <= 0)
		return "never";
	if (age < 0)
		age = 0;
	if (age < 120)
		snprintf(out, 32, "%.0fs", age);
	else if (age < 7200)
		snprintf(out, 32, "%.0fm", age / 60);
	else if (age < 172800)
		snprintf(out, 32, "%.0fh", age / 3600);
	else
		snprintf(out, 32, "%.0fd", age / 86400);
	return out;
}

int cmd_feeds_list(int argc, char **argv)
{
	struct cli_options options;
	int code = list_options(argc, argv, 0, &options);
	if (code >= 0)
		return code;
	char *state = list_state_folder(options.config);
	if (!state)
		return 1;
	cJSON *all = state_json_all(state);
	const cJSON *feed;
	char age[32];
	code = 0;
	if (options.json) {
		cJSON *root = cJSON_CreateObject();
		cJSON_AddItemToObject(root, "feeds", all);
		code = list_print_json(root);
		all = root; /* holds it from here on */
	} else {
		printf("%-28s %-12s %10s %10s %8s %s\n", "feed", "status", "names", "rejected",
		       "checked", "error");
		cJSON_ArrayForEach(feed, all)
			printf("%-28s %-12s %10.0f %10.0f %8s %s\n", list_text(feed, "name"),
			       list_text(feed, "status"), list_number(feed, "entries"),
			       list_number(feed, "rejected"),
			       list_age(list_number(feed, "checked"), age),
			       list_text(feed, "error"));
	}
	cJSON_Delete(all);
	free(state);
	return code;
}

static void list_print_rejects(const cJSON *feed)
{
	const cJSON *reject, *example;
	cJSON_ArrayForEach(reject, cJSON_GetObjectItemCaseSensitive(feed, "rejects"))
	{
		printf("  %-12s %.0f\n", reject->string, list_number(reject, "count"));
		cJSON_ArrayForEach(example, cJSON_GetObjectItemCaseSensitive(reject, "examples"))
			printf("    line %.0f: %s\n", list_number(example, "line"),
			       list_text(example, "text"));
	}
}

static void list_print_feed(const cJSON *feed)
{
	static const char *const texts[] = {"name",	"status", "error",   "kind",  "mode",
					    "category", "origin", "licence", "format"};
	static const char *const numbers[] = {"entries", "version", "lines", "accepted",
					      "rejected"};
	static const char *const times[] = {"checked", "fetched", "changed"};
	char age[32];
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (list_text(feed, texts[i])[0])
			printf("%-10s %s\n", texts[i], list_text(feed, texts[i]));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		printf("%-10s %.0f\n", numbers[i], list_number(feed, numbers[i]));
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		printf("%-10s %s\n", times[i], list_age(list_number(feed, times[i]), age));
	list_print_rejects(feed);
}

int cmd_feeds_show(int argc, char **argv)
{
	struct cli_options options;
	int code = list_options(argc, argv, 1, &options);
	if (code >= 0)
		return code;
	const char *name = argv[optind];
	char *state = list_state_folder(options.config);
	if (!state)
		return 1;
	cJSON *feed = feed_name_is_valid(name) ? state_json(state, name) : NULL;
	code = 0;
	if (!feed) {
		fprintf(stderr, "baleen feeds show: no feed \"%s\" in %s/feeds\n", name, state);
		code = 1;
	} else if (options.json) {
		code = list_print_json(feed);
	} else {
		list_print_feed(feed);
	}
	cJSON_Delete(feed);
	free(state);
	return code;
}

static cJSON *list_catalogue_json(const struct catalogue *c)
{
	cJSON *all = cJSON_CreateArray();
	for (size_t i = 0; i < c->count; i++) {
		const struct catalogue_entry *e = &c->items[i];
		cJSON *item = cJSON_CreateObject();
		cJSON_AddItemToArray(all, item);
		cJSON_AddStringToObject(item, "name", e->name);
		cJSON_AddStringToObject(item, "about", e->about);
		cJSON_AddStringToObject(item, "home", e->home);
		cJSON_AddStringToObject(item, "licence", e->licence);
		cJSON *urls = cJSON_AddArrayToObject(item, "urls");
		for (const char *const *url = e->urls; *url; url++)
			cJSON_AddItemToArray(urls, cJSON_CreateString(*url));
		cJSON_AddStringToObject(item, "format", e->format->name);
		cJSON_AddStringToObject(item, "kind", feed_kind_words[e->kind]);
		cJSON_AddStringToObject(item, "category", e->category);
		cJSON_AddNumberToObject(item, "refresh_s", (double)e->refresh_ms / 1000);
		cJSON_AddBoolToObject(item, "key_needed", e->key_needed);
	}
	return all;
}

static void list_print_catalogue(const struct catalogue *c)
{
	int width = 0;
	for (size_t i = 0; i < c->count; i++) {
		int length = (int)strlen(c->items[i].name);
		width = length > width ? length : width;
	}
	for (size_t i = 0; i < c->count; i++)
		printf("%-*s  %-9s  %-10s  %-7s  %s%s [%s]\n", width, c->items[i].name,
		       feed_kind_words[c->items[i].kind], c->items[i].category,
		       c->items[i].format->name, c->items[i].about,
		       c->items[i].key_needed ? " (key needed)" : "", c->items[i].licence);
}

int cmd_feeds_catalogue(int argc, char **argv)
{
	struct cli_options options;
	int code = list_options(argc, argv, 0, &options);
	if (code >= 0)
		return code;
	struct source *source = source_disk();
	struct arena arena;
	struct diags d;
	struct catalogue c;
	arena_init(&arena);
	diag_init(&d);
	int result = catalogue_load(source, &arena, &d, &c);
	diag_print(&d, stderr);
	code = result < 0;
	if (result == -ENOENT)
		fprintf(stderr, "baleen feeds catalogue: no catalogue is installed\n");
	if (result == 0 && options.json) {
		cJSON *all = list_catalogue_json(&c);
		code = list_print_json(all);
		cJSON_Delete(all);
	} else if (result == 0) {
		list_print_catalogue(&c);
	}
	diag_fini(&d);
	arena_fini(&arena);
	source_free(source);
	return code;
}
