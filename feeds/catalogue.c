/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading catalogue.yaml. Runs wherever a configuration is loaded and in `feeds catalogue`; all
 * memory is the arena's. Invariant: an entry in the table is complete: name, URL, format, licence.
 */
#include "feeds/catalogue.h"

#include "base/node.h"
#include "feeds/formats/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const feed_kind_words[] = {"blocklist", "threat", NULL};
const char *const feed_match_words[] = {"subtree", "exact", NULL};
const char *const feed_mode_words[] = {"enforce", "shadow", NULL};

int feed_data_read(struct source *source, const char *name, struct source_file *out)
{
	static const char *const up[] = {"..", "../..", "../../.."};
	char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	program[n < 0 ? 0 : n] = '\0';
	char *slash = strrchr(program, '/');
	char *path;
	int result = -ENOENT;
	if (slash) {
		*slash = '\0';
		for (size_t i = 0; i < sizeof(up) / sizeof(up[0]) && result == -ENOENT; i++) {
			if (asprintf(&path, "%s/%s/feeds/%s", program, up[i], name) < 0)
				return -ENOMEM;
			result = source_read(source, path, out);
			free(path);
		}
	}
	if (result != -ENOENT && result != -ENOTDIR && result != -EACCES)
		return result;
	if (asprintf(&path, "%s/share/baleen/%s", BALEEN_PREFIX, name) < 0)
		return -ENOMEM;
	result = source_read(source, path, out);
	free(path);
	return result;
}

bool feed_format_node(const struct node *n, struct diags *d, const struct feed_format **out)
{
	const char *words[32];
	const char *word;
	size_t count = 0;
	if (!node_text(n, d, &word))
		return false;
	words[count++] = "auto";
	for (const struct feed_format *const *f = feed_formats; *f; f++)
		words[count++] = (*f)->name;
	words[count] = NULL;
	*out = feed_format_find(word);
	if (*out || strcmp(word, "auto") == 0)
		return true;
	const char *near = node_nearest(word, words);
	char list[256] = "";
	for (size_t i = 0; i < count; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "",
			 words[i]);
	if (near)
		node_error(n, d, "unknown format \"%s\" (did you mean \"%s\"? expected one of %s)",
			   word, near, list);
	else
		node_error(n, d, "unknown format \"%s\" (expected one of %s)", word, list);
	return false;
}

static bool feed_hint_fits(const struct node *n, struct diags *d, const struct feed_format *format,
			   const char *word, const char *const *formats)
{
	if (!n)
		return false;
	for (const char *const *f = formats; *f; f++)
		if (format && strcmp(format->name, *f) == 0)
			return true;
	node_error(n, d, "%s goes with format: %s%s", word, formats[0],
		   formats[1] ? " and others of threat feeds" : "");
	return false;
}

void feed_hints_node(const struct node *feed, struct diags *d, const struct feed_format *format,
		     struct feed_hints *out)
{
	static const char *const csv[] = {"csv", NULL}, *const json[] = {"json", NULL};
	static const char *const urls[] = {"urls", "csv", "json", "misp", "stix", NULL};
	const struct node *column = node_get(feed, "column"), *path = node_get(feed, "path");
	const struct node *host = node_get(feed, "url-host");
	struct entry_text part;
	const char *at;
	if (feed_hint_fits(column, d, format, "column", csv) &&
	    node_text(column, d, &out->column) &&
	    (out->column[0] == '\0' || strcmp(out->column, "0") == 0))
		node_error(column, d, "expected a column's name, or its number from 1");
	if (feed_hint_fits(path, d, format, "path", json) && node_text(path, d, &out->path)) {
		int kind = 1;
		for (at = out->path; kind > 0;)
			kind = json_path_next(&at, &part);
		if (kind < 0 || out->path[0] == '\0')
			node_error(path, d,
				   "no path (expected keys and [], such as items[].domain)");
	}
	if (feed_hint_fits(host, d, format, "url-host", urls))
		node_bool(host, d, &out->url_host);
}

static const char *const *catalogue_urls(const struct node *n, struct arena *a, struct diags *d)
{
	const struct node *mirrors = node_get(n, "mirrors");
	const char **urls = arena_alloc(a, ((mirrors ? mirrors->count : 0) + 2) * sizeof(*urls));
	size_t count = 0;
	count += node_text(node_get(n, "url"), d, &urls[count]);
	for (const struct node *m = mirrors ? mirrors->children : NULL; m; m = m->next)
		count += node_text(m, d, &urls[count]);
	return urls;
}

static void catalogue_entry(const struct node *n, struct arena *a, struct diags *d,
			    struct catalogue_entry *out)
{
	static const char *const keys[] = {"name",     "about",	     "home",	    "licence",
					   "url",      "mirrors",    "format",	    "match",
					   "kind",     "category",   "threat-type", "confidence",
					   "refresh",  "key-needed", "column",	    "path",
					   "url-host", NULL};
	int word;
	int64_t number = 100;
	node_check_keys(n, keys, d);
	*out = (struct catalogue_entry){.category = "", .about = "", .home = ""};
	node_text(node_get(n, "name"), d, &out->name);
	node_text(node_get(n, "about"), d, &out->about);
	node_text(node_get(n, "home"), d, &out->home);
	node_text(node_get(n, "licence"), d, &out->licence);
	node_text(node_get(n, "category"), d, &out->category);
	node_text(node_get(n, "threat-type"), d, &out->threat_type);
	out->urls = catalogue_urls(n, a, d);
	feed_format_node(node_get(n, "format"), d, &out->format);
	feed_hints_node(n, d, out->format, &out->hints);
	if (node_choice(node_get(n, "match"), d, feed_match_words, &word))
		out->match = word == 0 ? FEED_MATCH_SUBTREE : FEED_MATCH_EXACT;
	if (node_choice(node_get(n, "kind"), d, feed_kind_words, &word))
		out->kind = word == 0 ? FEED_KIND_BLOCKLIST : FEED_KIND_THREAT;
	node_integer(node_get(n, "confidence"), d, 0, 100, &number);
	out->confidence = (int)number;
	node_duration(node_get(n, "refresh"), d, &out->refresh_ms);
	node_bool(node_get(n, "key-needed"), d, &out->key_needed);
	if (!out->name || !feed_name_is_valid(out->name) || !out->urls[0] || !out->format ||
	    !out->licence || !out->refresh_ms)
		node_error(n, d, "a catalogue entry needs name, url, format, licence and refresh");
}

int catalogue_load(struct source *source, struct arena *a, struct diags *d, struct catalogue *out)
{
	struct source_file file;
	struct node *root;
	*out = (struct catalogue){0};
	int result = feed_data_read(source, "catalogue.yaml", &file);
	if (result < 0)
		return result;
	size_t errors = d->errors;
	const char *path = arena_strdup(a, file.path);
	result = node_parse(path, (const char *)file.data, file.size, a, d, &root);
	if (result < 0)
		return result;
	static const char *const keys[] = {"feeds", NULL};
	node_check_keys(root, keys, d);
	const struct node *list = node_get(root, "feeds");
	if (!list || list->kind != NODE_LIST) {
		diag_error(d, path, 1, 1, "no list of feeds (expected \"feeds:\" with a list)");
		return -EINVAL;
	}
	out->items = arena_alloc(a, list->count * sizeof(*out->items) + 1);
	for (const struct node *n = list->children; n; n = n->next)
		catalogue_entry(n, a, d, &out->items[out->count++]);
	return d->errors > errors ? -EINVAL : 0;
}

const struct catalogue_entry *catalogue_find(const struct catalogue *c, const char *name)
{
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->items[i].name, name) == 0)
			return &c->items[i];
	return NULL;
}
