/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `feeds:` list of the configuration. Runs wherever a configuration is loaded; all memory is
 * the arena's. Invariant: with 0 returned every feed has a name of its own, exactly one of `file`
 * and `urls`, and every file that the fetcher will need is in the source.
 */
#include "feeds/feed.h"

#include "base/file.h"
#include "feeds/catalogue.h"
#include "feeds/formats/format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEED_REFRESH_MS	    ((uint64_t)24 * 3600 * 1000)
#define FEED_REFRESH_MIN_MS 1000
#define FEED_BYTES	    ((uint64_t)256 << 20)
#define FEED_SHRINK	    0.5
#define FEED_GROW	    3.0
#define FEED_PROMOTED_MAX   ((size_t)64 << 10)

static const char *const feed_keys[] = {"name",	     "file",	    "url",	   "mirrors",
					"format",    "match",	    "kind",	   "mode",
					"category",  "threat-type", "confidence",  "refresh",
					"max-size",  "ca-file",	    "header-file", "allow-private",
					"admission", "column",	    "path",	   "url-host",
					NULL};

struct feed_loader {
	const char *config_file;
	struct source *source;
	struct arena *arena;
	struct diags *d;
	struct catalogue catalogue;
	int catalogue_result;
};

unsigned feedmask_first(const struct feedmask *a, const struct feedmask *b)
{
	for (unsigned i = 0; i < FEEDS_MAX / 64; i++) {
		uint64_t both = a->words[i] & b->words[i];
		if (both)
			return i * 64 + (unsigned)__builtin_ctzll(both);
	}
	return FEED_NONE;
}

bool feed_name_is_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-");
	return n > 0 && n <= FEED_NAME_MAX && name[n] == '\0' && !strchr("._-", name[0]);
}

/* A file beside the configuration, absolute. */
static const char *feed_path(struct feed_loader *l, const char *path)
{
	char *absolute = file_relative_to(l->config_file, path);
	const char *out = absolute ? arena_strdup(l->arena, absolute) : path;
	free(absolute);
	return out;
}

/* As feed_path, and read now, so that it is sealed for the fetcher. */
static void feed_sealed_file(struct feed_loader *l, const struct node *n, const char **out)
{
	const char *text;
	struct source_file file;
	if (!node_text(n, l->d, &text))
		return;
	*out = feed_path(l, text);
	int result = source_read(l->source, *out, &file);
	if (result < 0)
		node_error(n, l->d, "%s cannot be read: %s", *out, strerror(-result));
}

static void feed_url(struct feed_loader *l, const struct node *n, const char **urls, size_t *count)
{
	const char *url;
	if (!node_text(n, l->d, &url))
		return;
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		node_error(n, l->d,
			   "\"%s\" is no URL that feeds come from (expected http://, https://, or "
			   "\"file:\" for a local list)",
			   url);
	else if (url[strcspn(url, " \t\r\n")] != '\0')
		node_error(n, l->d, "a blank in a URL");
	else
		urls[(*count)++] = url;
}

static void feed_urls(struct feed_loader *l, const struct node *n, struct feed *feed)
{
	const struct node *url = node_get(n, "url"), *mirrors = node_get(n, "mirrors");
	if (!url) {
		if (mirrors)
			node_error(mirrors, l->d, "mirrors without url");
		return;
	}
	size_t count = 0, room = 2 + (mirrors ? mirrors->count : 0);
	const char **urls = arena_alloc(l->arena, room * sizeof(*urls));
	feed_url(l, url, urls, &count);
	if (mirrors && mirrors->kind != NODE_LIST)
		node_error(mirrors, l->d, "expected a list of URLs");
	else if (mirrors)
		for (const struct node *m = mirrors->children; m; m = m->next)
			feed_url(l, m, urls, &count);
	feed->urls = urls;
}

static void feed_from_catalogue(const struct catalogue_entry *c, struct feed *feed)
{
	feed->format = c->format;
	feed->hints = c->hints;
	feed->match = c->match;
	feed->kind = c->kind;
	feed->category = c->category;
	feed->threat_type = c->threat_type;
	feed->confidence = c->confidence;
	feed->licence = c->licence;
	feed->refresh_ms = c->refresh_ms;
}

static void feed_admission(struct feed_loader *l, const struct node *n, struct feed *feed)
{
	static const char *const keys[] = {"shrink", "grow", NULL};
	if (node_is_null(n) || !node_check_keys(n, keys, l->d))
		return;
	node_number(node_get(n, "shrink"), l->d, 0, 1, &feed->shrink_limit);
	node_number(node_get(n, "grow"), l->d, 1, 1e9, &feed->grow_limit);
}

static void feed_options(struct feed_loader *l, const struct node *n, struct feed *feed)
{
	struct diags *d = l->d;
	int word;
	int64_t number = feed->confidence;
	const struct node *match = node_get(n, "match"), *refresh = node_get(n, "refresh");
	uint64_t floor_ms = feed->licence ? feed->refresh_ms : FEED_REFRESH_MIN_MS;
	feed_format_node(node_get(n, "format"), d, &feed->format);
	if (node_choice(match, d, feed_match_words, &word))
		feed->match = word == 0 ? FEED_MATCH_SUBTREE : FEED_MATCH_EXACT;
	feed_hints_node(n, d, feed->format, &feed->hints);
	if (match && feed->format && feed->format->default_match == FEED_MATCH_FORMAT)
		node_error(match, d, "a list of format %s says itself what each rule matches",
			   feed->format->name);
	if (node_choice(node_get(n, "kind"), d, feed_kind_words, &word))
		feed->kind = word == 0 ? FEED_KIND_BLOCKLIST : FEED_KIND_THREAT;
	if (node_choice(node_get(n, "mode"), d, feed_mode_words, &word))
		feed->mode = word == 0 ? FEED_MODE_ENFORCE : FEED_MODE_SHADOW;
	node_text(node_get(n, "category"), d, &feed->category);
	node_text(node_get(n, "threat-type"), d, &feed->threat_type);
	node_integer(node_get(n, "confidence"), d, 0, 100, &number);
	feed->confidence = (int)number;
	if (node_duration(refresh, d, &feed->refresh_ms) && feed->refresh_ms < floor_ms) {
		node_warning(refresh, d, "the list's maintainers ask for %llu minutes at least",
			     (unsigned long long)floor_ms / 60000);
		feed->refresh_ms = floor_ms;
	}
	node_size(node_get(n, "max-size"), d, &feed->max_bytes);
	feed_sealed_file(l, node_get(n, "ca-file"), &feed->ca_file);
	feed_sealed_file(l, node_get(n, "header-file"), &feed->header_file);
	node_bool(node_get(n, "allow-private"), d, &feed->allow_private);
	feed_admission(l, node_get(n, "admission"), feed);
}

static void feed_unknown(struct feed_loader *l, const struct node *n, const char *name)
{
	if (l->catalogue_result == -ENOENT) {
		node_error(n, l->d,
			   "feed \"%s\" has neither file nor url, and no catalogue is installed",
			   name);
		return;
	}
	const char **words = arena_alloc(l->arena, (l->catalogue.count + 1) * sizeof(*words));
	for (size_t i = 0; i < l->catalogue.count; i++)
		words[i] = l->catalogue.items[i].name;
	const char *near = node_nearest(name, words);
	node_error(n, l->d,
		   "feed \"%s\" has neither file nor url and is not in the catalogue%s%s%s", name,
		   near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

/* Where the list comes from: `file`, `url`, or the catalogue. */
static void feed_origin(struct feed_loader *l, const struct node *n, struct feed *feed,
			const struct catalogue_entry *known)
{
	const struct node *file = node_get(n, "file"), *url = node_get(n, "url");
	const char *text;
	if (file && url) {
		node_error(url, l->d, "file and url for one feed (expected one of them)");
		return;
	}
	if (node_text(file, l->d, &text))
		feed->file = feed_path(l, text);
	feed_urls(l, n, feed);
	if (file || url)
		return;
	if (!known)
		feed_unknown(l, n, feed->name);
	else if (known->key_needed && !feed->header_file)
		node_error(n, l->d,
			   "feed \"%s\" needs a key of your own (expected url with the key, or "
			   "header-file; see %s)",
			   feed->name, known->home);
	else
		feed->urls = known->urls;
}

static void feed_load(struct feed_loader *l, const struct node *n, struct feeds *out)
{
	struct feed *feed = &out->items[out->count];
	const struct node *name = n->kind == NODE_SCALAR ? n : node_get(n, "name");
	*feed = (struct feed){
		.number = (unsigned)out->count,
		.category = "",
		.confidence = 100,
		.refresh_ms = FEED_REFRESH_MS,
		.max_bytes = FEED_BYTES,
		.shrink_limit = FEED_SHRINK,
		.grow_limit = FEED_GROW,
		.line = n->line,
		.column = n->column,
	};
	if (n->kind == NODE_LIST) {
		node_error(n, l->d, "expected a feed: a name from the catalogue, or a map");
		return;
	}
	if (n->kind == NODE_MAP)
		node_check_keys(n, feed_keys, l->d);
	if (node_is_null(name)) {
		node_error(n, l->d, "a feed without name");
		return;
	}
	if (!node_text(name, l->d, &feed->name))
		return;
	if (!feed_name_is_valid(feed->name)) {
		node_error(name, l->d,
			   "\"%s\" is no feed name (expected a-z, 0-9, '.', '_', '-', at most %d)",
			   feed->name, FEED_NAME_MAX);
		return;
	}
	for (size_t i = 0; i < out->count; i++) {
		if (strcmp(out->items[i].name, feed->name) == 0) {
			node_error(name, l->d, "feed \"%s\" twice (first on line %d)", feed->name,
				   out->items[i].line);
			return;
		}
	}
	const struct catalogue_entry *known = catalogue_find(&l->catalogue, feed->name);
	if (known)
		feed_from_catalogue(known, feed);
	if (n->kind == NODE_MAP) {
		feed_options(l, n, feed);
		feed_origin(l, n, feed, known);
	} else if (!known) {
		feed_unknown(l, n, feed->name);
	} else if (known->key_needed) {
		feed_origin(l, n, feed, known);
	} else {
		feed->urls = known->urls;
	}
	out->count++;
}

static void feeds_mask(struct feeds *f)
{
	f->enforced = f->enforced_blocklists = (struct feedmask){0};
	for (unsigned i = 0; i < f->count; i++) {
		if (f->items[i].mode != FEED_MODE_ENFORCE)
			continue;
		feedmask_add(&f->enforced, i);
		if (f->items[i].kind == FEED_KIND_BLOCKLIST)
			feedmask_add(&f->enforced_blocklists, i);
	}
}

int feeds_load(const struct node *list, const char *config_file, struct source *source,
	       struct arena *a, struct diags *d, struct feeds *out)
{
	*out = (struct feeds){0};
	if (node_is_null(list))
		return 0;
	if (list->kind != NODE_LIST) {
		node_error(list, d, "expected a list of feeds");
		return -EINVAL;
	}
	if (list->count > FEEDS_MAX) {
		node_error(list, d, "%zu feeds (expected at most %d)", list->count, FEEDS_MAX);
		return -EINVAL;
	}
	size_t errors = d->errors;
	struct feed_loader l = {config_file, source, a, d, {0}, 0};
	l.catalogue_result = catalogue_load(source, a, d, &l.catalogue);
	/* Read now, so that the fetcher finds it in the snapshot; it says so if it is missing. */
	struct source_file popular;
	(void)feed_data_read(source, "popular.txt", &popular);
	out->items = arena_alloc(a, (list->count + 1) * sizeof(*out->items));
	for (const struct node *n = list->children; n; n = n->next)
		feed_load(&l, n, out);
	feeds_mask(out);
	return d->errors > errors ? -EINVAL : 0;
}

void feeds_promote(struct feeds *f, struct source *source, const char *state)
{
	char *path;
	struct source_file file;
	if (asprintf(&path, "%s/feeds/promoted", state) < 0)
		return;
	int result = source_read(source, path, &file);
	free(path);
	if (result < 0 || file.size > FEED_PROMOTED_MAX)
		return;
	const char *text = (const char *)file.data;
	while (*text) {
		size_t length = strcspn(text, "\n");
		for (size_t i = 0; i < f->count; i++)
			if (strlen(f->items[i].name) == length &&
			    memcmp(f->items[i].name, text, length) == 0)
				f->items[i].mode = FEED_MODE_ENFORCE;
		text += length + (text[length] == '\n');
	}
	feeds_mask(f);
}

const struct feed *feeds_find(const struct feeds *f, const char *name)
{
	for (size_t i = 0; i < f->count; i++)
		if (strcmp(f->items[i].name, name) == 0)
			return &f->items[i];
	return NULL;
}
