/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding or making a set to rehearse on. Runs in the user's process and in the compile child; owns
 * a temporary folder only while a set is made. Invariant: a set that cannot be read is an error,
 * not an empty one.
 */
#include "core/rehearsal_set.h"

#include "feeds/compile.h"
#include "feeds/setfiles.h"
#include "feeds/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SET_PATH_MAX 4096

static int open_bound(const char *path, const struct feeds *feeds, struct domset **out,
		      char error[DOMSET_ERROR_MAX])
{
	int r = domset_open(path, DOMSET_CHECK_ALL, out, error);
	if (r == 0) {
		r = domset_bind(*out, feeds);
		if (r < 0) {
			domset_close(*out);
			snprintf(error, DOMSET_ERROR_MAX, "%s: %s", path, strerror(-r));
		}
	}
	return r;
}

/* One local list into a feed file. */
static int read_list(const struct feed *feed, const char *to)
{
	const struct parse_options options = {.format = feed->format,
					      .match = feed->match,
					      .hints = feed->hints,
					      .max_bytes = feed->max_bytes};
	struct feedfile_writer *writer = NULL;
	struct feedfile_change change;
	struct parse *parse = NULL;

	int fd = open(feed->file, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : feedfile_begin(to, NULL, (uint64_t)time(NULL), &writer);
	if (r == 0)
		r = parse_new(&options, writer, &parse);
	if (r == 0)
		r = compile_read_body(fd, parse);
	if (r == 0)
		r = parse_finish(parse, true);
	if (r == 0)
		r = feedfile_finish(writer, NULL, NULL, &change);
	if (r < 0)
		fprintf(stderr, "note: feed %s: %s: %s\n", feed->name, feed->file,
			parse && parse_report(parse)->error[0] ? parse_report(parse)->error
							       : strerror(-r));
	if (r == 0)
		r = feedfile_publish(writer, to);
	else if (writer)
		feedfile_abandon(writer);
	if (parse)
		parse_free(parse);
	if (fd >= 0)
		close(fd);
	return r;
}

/* The feed's entries as the fetcher left them, malloc'd; NULL: there are none. */
static char *entries_on_disk(const struct generation *g, const struct feed *feed)
{
	char *path = state_path(g->config.state, feed->name, "entries");

	if (path && access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

/* A feed file to merge, malloc'd: what is on disk, or the local list read into `folder`. */
static char *entries_of(const struct generation *g, const struct feed *feed, const char *folder)
{
	char *path = entries_on_disk(g, feed);

	if (path)
		return path;
	if (!feed->file) {
		fprintf(stderr, "note: feed %s has not been fetched yet\n", feed->name);
		return NULL;
	}
	if (asprintf(&path, "%s/%u", folder, feed->number) < 0)
		return NULL;
	if (read_list(feed, path) < 0) {
		free(path);
		return NULL;
	}
	return path;
}

static int compile(const struct generation *g, const char *folder, struct domset **out,
		   char error[DOMSET_ERROR_MAX])
{
	const struct feeds *feeds = &g->config.feeds;
	struct compile_feed *lists = calloc(feeds->count, sizeof(*lists));
	char path[SET_PATH_MAX];
	struct domset_stats stats;
	size_t count = 0;

	if (!lists)
		return -ENOMEM;
	for (size_t i = 0; i < feeds->count; i++) {
		char *entries = entries_of(g, &feeds->items[i], folder);
		if (entries)
			lists[count++] = (struct compile_feed){feeds->items[i].name, entries};
	}
	snprintf(path, sizeof(path), "%s/set", folder);
	int r = compile_set(path, lists, count, 0, &stats, NULL);
	if (r < 0)
		snprintf(error, DOMSET_ERROR_MAX, "cannot compile the lists: %s", strerror(-r));
	else
		r = open_bound(path, feeds, out, error);
	/* An open set needs its name no more. */
	unlink(path);
	for (size_t i = 0; i < count; i++) {
		if (strncmp(lists[i].path, folder, strlen(folder)) == 0)
			unlink(lists[i].path);
		free((char *)lists[i].path);
	}
	free(lists);
	return r;
}

/* Does the set hold every feed whose entries are at hand? */
static bool complete(const struct generation *g, const struct domset *set)
{
	const struct feeds *feeds = &g->config.feeds;

	for (size_t i = 0; i < feeds->count; i++) {
		bool there = false;
		for (size_t k = 0; k < domset_feed_count(set) && !there; k++)
			there = domset_feed_number(set, k) == i;
		if (there)
			continue;
		char *path = entries_on_disk(g, &feeds->items[i]);
		free(path);
		if (path || feeds->items[i].file)
			return false;
		fprintf(stderr, "note: feed %s has not been fetched yet\n", feeds->items[i].name);
	}
	return true;
}

int rehearsal_set_open(const struct generation *g, const char *path, struct domset **out,
		       uint64_t *number, char error[DOMSET_ERROR_MAX])
{
	char folder[] = "/tmp/baleen-rehearsal-XXXXXX";

	*out = NULL;
	*number = 0;
	if (path)
		return open_bound(path, &g->config.feeds, out, error);
	*number = setfiles_newest(g->config.state, UINT64_MAX);
	if (*number) {
		char *newest = setfiles_path(g->config.state, *number, "mdb");
		int r = newest ? open_bound(newest, &g->config.feeds, out, error) : -ENOMEM;
		free(newest);
		if (r < 0 || complete(g, *out))
			return r;
		domset_close(*out);
		*out = NULL;
		*number = 0;
	}
	if (!g->config.feeds.count)
		return 0;
	if (!mkdtemp(folder)) {
		int r = -errno;
		snprintf(error, DOMSET_ERROR_MAX, "%s: %s", folder, strerror(-r));
		return r;
	}
	int r = compile(g, folder, out, error);
	rmdir(folder);
	return r;
}
