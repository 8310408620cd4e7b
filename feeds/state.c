/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A feed's state as JSON. The fetcher is the only writer; readers see the old file or the new one.
 * Invariant: nothing read from the file is trusted beyond its type and length: a damaged state
 * costs a download, nothing else.
 */
#include "feeds/state.h"

#include "base/file.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_FILE_MAX ((size_t)256 << 10)

static const char *const state_words[] = {"pending", "ok", "failed", "quarantined"};

/* Plain numbers and texts, as rows: key, offset, size (0: a number of 64 bits). */
static const struct state_row {
	const char *key;
	size_t offset;
	size_t size;
} state_rows[] = {
	{"error", offsetof(struct state, error), STATE_TEXT_MAX},
	{"entries", offsetof(struct state, entries), 0},
	{"version", offsetof(struct state, version), 0},
	{"lines", offsetof(struct state, lines), 0},
	{"accepted", offsetof(struct state, accepted), 0},
	{"rejected", offsetof(struct state, rejected), 0},
	{"format", offsetof(struct state, format), sizeof(((struct state *)0)->format)},
	{"fetched", offsetof(struct state, fetched_s), 0},
	{"checked", offsetof(struct state, checked_s), 0},
	{"changed", offsetof(struct state, changed_s), 0},
	{"url", offsetof(struct state, url), sizeof(((struct state *)0)->url)},
	{"etag", offsetof(struct state, etag), STATE_TEXT_MAX},
	{"last_modified", offsetof(struct state, last_modified),
	 sizeof(((struct state *)0)->last_modified)},
	{"recipe", offsetof(struct state, recipe), sizeof(((struct state *)0)->recipe)},
	{"file_size", offsetof(struct state, file_size), 0},
	{"file_inode", offsetof(struct state, file_inode), 0},
	{"file_mtime_ns", offsetof(struct state, file_mtime_ns), 0},
	{"file_ctime_ns", offsetof(struct state, file_ctime_ns), 0},
};
#define STATE_ROWS (sizeof(state_rows) / sizeof(state_rows[0]))

char *state_path(const char *folder, const char *feed, const char *leaf)
{
	char *path;
	if (asprintf(&path, "%s/feeds/%s%s%s", folder, feed, leaf[0] ? "/" : "", leaf) < 0)
		return NULL;
	return path;
}

void state_take_report(struct state *s, const struct parse_report *report)
{
	s->lines = report->lines;
	s->accepted = report->accepted;
	s->rejected = report->rejected;
	memcpy(s->rejects, report->rejects, sizeof(s->rejects));
	snprintf(s->format, sizeof(s->format), "%s", report->format ? report->format->name : "");
}

/* JSON numbers are doubles; nanoseconds and inodes need all 64 bits, so those go as text. */
static bool state_is_exact(const char *key)
{
	return strncmp(key, "file_", 5) == 0;
}

static void state_put_rejects(cJSON *root, const struct state *s)
{
	cJSON *rejects = cJSON_AddObjectToObject(root, "rejects");
	for (int i = 0; i < FEED_REJECT_REASONS; i++) {
		const struct parse_reject *r = &s->rejects[i];
		if (r->count == 0)
			continue;
		cJSON *reject = cJSON_AddObjectToObject(rejects, feed_reject_words[i]);
		cJSON_AddNumberToObject(reject, "count", (double)r->count);
		cJSON *examples = cJSON_AddArrayToObject(reject, "examples");
		for (unsigned j = 0; j < PARSE_EXAMPLES && j < r->count; j++) {
			cJSON *example = cJSON_CreateObject();
			cJSON_AddNumberToObject(example, "line", (double)r->examples[j].line);
			cJSON_AddStringToObject(example, "text", r->examples[j].text);
			cJSON_AddItemToArray(examples, example);
		}
	}
}

static void state_put_feed(cJSON *root, const struct feed *feed)
{
	cJSON_AddStringToObject(root, "name", feed->name);
	cJSON_AddStringToObject(root, "kind",
				feed->kind == FEED_KIND_THREAT ? "threat" : "blocklist");
	cJSON_AddStringToObject(root, "mode",
				feed->mode == FEED_MODE_SHADOW ? "shadow" : "enforce");
	cJSON_AddStringToObject(root, "category", feed->category);
	cJSON_AddStringToObject(root, "origin",
				feed->file   ? feed->file
				: feed->urls ? feed->urls[0]
					     : "");
	cJSON_AddNumberToObject(root, "refresh_s", (double)(feed->refresh_ms / 1000));
	if (feed->licence)
		cJSON_AddStringToObject(root, "licence", feed->licence);
}

int state_write(const char *folder, const struct feed *feed, const struct state *s)
{
	cJSON *root = cJSON_CreateObject();
	state_put_feed(root, feed);
	cJSON_AddStringToObject(root, "outcome", state_words[s->status]);
	cJSON_AddNumberToObject(root, "failures", s->failures);
	for (size_t i = 0; i < STATE_ROWS; i++) {
		const char *at = (const char *)s + state_rows[i].offset;
		int64_t number;
		char text[32];
		if (state_rows[i].size) {
			cJSON_AddStringToObject(root, state_rows[i].key, at);
			continue;
		}
		memcpy(&number, at, sizeof(number));
		snprintf(text, sizeof(text), "%lld", (long long)number);
		if (state_is_exact(state_rows[i].key))
			cJSON_AddStringToObject(root, state_rows[i].key, text);
		else
			cJSON_AddNumberToObject(root, state_rows[i].key, (double)number);
	}
	state_put_rejects(root, s);
	char *text = cJSON_Print(root);
	cJSON_Delete(root);
	char *path = state_path(folder, feed->name, "state.json");
	int result = text && path ? file_replace(path, text, strlen(text), 0644) : -ENOMEM;
	free(path);
	free(text);
	return result;
}

static cJSON *state_load(const char *folder, const char *feed)
{
	char *text = NULL;
	size_t size;
	char *path = state_path(folder, feed, "state.json");
	int result = path ? file_read(path, STATE_FILE_MAX, &text, &size) : -ENOMEM;
	free(path);
	if (result < 0)
		return NULL;
	cJSON *root = cJSON_ParseWithLength(text, size);
	free(text);
	if (root && !cJSON_IsObject(root)) {
		cJSON_Delete(root);
		root = NULL;
	}
	return root;
}

static int64_t state_number(const cJSON *root, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
	if (cJSON_IsString(item))
		return strtoll(item->valuestring, NULL, 10);
	if (!cJSON_IsNumber(item) || !(item->valuedouble > -9e15 && item->valuedouble < 9e15))
		return 0;
	return (int64_t)item->valuedouble;
}

static void state_text(const cJSON *root, const char *key, char *out, size_t size)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
	snprintf(out, size, "%s", cJSON_IsString(item) ? item->valuestring : "");
}

static void state_get_rejects(const cJSON *root, struct state *s)
{
	const cJSON *rejects = cJSON_GetObjectItemCaseSensitive(root, "rejects");
	for (int i = 0; i < FEED_REJECT_REASONS; i++) {
		const cJSON *reject =
			cJSON_GetObjectItemCaseSensitive(rejects, feed_reject_words[i]);
		struct parse_reject *r = &s->rejects[i];
		r->count = (uint64_t)state_number(reject, "count");
		const cJSON *examples = cJSON_GetObjectItemCaseSensitive(reject, "examples");
		for (int j = 0; j < PARSE_EXAMPLES && j < cJSON_GetArraySize(examples); j++) {
			const cJSON *example = cJSON_GetArrayItem(examples, j);
			r->examples[j].line = (uint64_t)state_number(example, "line");
			state_text(example, "text", r->examples[j].text, PARSE_EXAMPLE_MAX);
		}
	}
}

void state_read(const char *folder, const char *feed, struct state *out)
{
	memset(out, 0, sizeof(*out));
	cJSON *root = state_load(folder, feed);
	if (!root)
		return;
	char word[32];
	state_text(root, "outcome", word, sizeof(word));
	for (size_t i = 0; i < sizeof(state_words) / sizeof(state_words[0]); i++)
		if (strcmp(word, state_words[i]) == 0)
			out->status = (enum state_status)i;
	out->failures = (unsigned)state_number(root, "failures") % 1000;
	for (size_t i = 0; i < STATE_ROWS; i++) {
		char *at = (char *)out + state_rows[i].offset;
		if (state_rows[i].size) {
			state_text(root, state_rows[i].key, at, state_rows[i].size);
			continue;
		}
		int64_t number = state_number(root, state_rows[i].key);
		memcpy(at, &number, sizeof(number));
	}
	state_get_rejects(root, out);
	cJSON_Delete(root);
}

struct cJSON *state_json(const char *folder, const char *feed)
{
	cJSON *root = state_load(folder, feed);
	if (!root)
		return NULL;
	char outcome[32], mode[32];
	state_text(root, "outcome", outcome, sizeof(outcome));
	state_text(root, "mode", mode, sizeof(mode));
	bool shadow = strcmp(mode, "shadow") == 0 && strcmp(outcome, "ok") == 0;
	cJSON_AddStringToObject(root, "status", shadow ? "shadow" : outcome);
	return root;
}

static int state_is_feed(const struct dirent *entry)
{
	return feed_name_is_valid(entry->d_name);
}

struct cJSON *state_json_all(const char *folder)
{
	cJSON *all = cJSON_CreateArray();
	struct dirent **names;
	char *path;
	if (!all || asprintf(&path, "%s/feeds", folder) < 0)
		return all;
	int count = scandir(path, &names, state_is_feed, alphasort);
	free(path);
	for (int i = 0; i < count; i++) {
		cJSON *one = state_json(folder, names[i]->d_name);
		if (one)
			cJSON_AddItemToArray(all, one);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	return all;
}
