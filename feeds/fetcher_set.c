/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feed files into sets, and sets to whoever serves. Runs in the fetcher. Invariant: a number is
 * published only after the whole file under it was checked; what was published before stays on disk
 * until then.
 */
#include "feeds/fetcher_private.h"

#include "base/file.h"
#include "base/log.h"
#include "feeds/compile.h"
#include "feeds/setfiles.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SET_SCHEDULE_MS	 300
#define SET_BUSY_MS	 2000 /* while transfers run: more changes are likely */
#define SET_RETRY_MS	 10000
#define SET_MANIFEST_MAX ((size_t)256 << 10)
#define SET_TRIES	 3

/* What goes into a set, in the order of names. */
struct set_plan {
	struct compile_feed *feeds;
	struct fetcher_feed **owners; /* same order */
	uint32_t *versions;
	size_t count;
};

static void set_plan_fini(struct set_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		free((char *)(uintptr_t)plan->feeds[i].path);
	free(plan->feeds);
	free(plan->owners);
	free(plan->versions);
}

/* Every name that the published set lists for this feed. */
static int set_copy_feed(struct domset *set, size_t index, struct feedfile_writer *to)
{
	struct domset_walk *walk;
	struct name name;
	uint32_t combination;
	int result = domset_walk_new(set, &walk);
	if (result < 0)
		return result;
	while ((result = domset_walk_next(walk, &name, &combination)) == 1) {
		size_t count;
		const struct domset_entry *entries = domset_combination(set, combination, &count);
		for (size_t i = 0; i < count && result == 1; i++)
			if (entries[i].feed == index &&
			    feedfile_add(to, &name, entries[i].flags) < 0)
				result = -EIO;
		if (result < 0)
			break;
	}
	domset_walk_free(walk);
	return result;
}

/* Make the feed's file anew from the set that is served, so that no name is let through meanwhile.
 */
static int set_recover(struct fetcher_feed *ff)
{
	struct fetcher *f = ff->fetcher;
	struct domset *set;
	struct feedfile_writer *writer;
	struct feedfile_change change;
	char error[DOMSET_ERROR_MAX];
	char *from = f->set_number ? setfiles_path(f->state, f->set_number, "mdb") : NULL;
	char *to = state_path(f->state, ff->feed->name, "entries");
	int result = from && to ? domset_open(from, DOMSET_CHECK_ALL, &set, error) : -ENOENT;
	if (result < 0)
		goto done;
	size_t index = 0, count = domset_feed_count(set);
	while (index < count && strcmp(domset_feed_name(set, index), ff->feed->name) != 0)
		index++;
	result = index < count ? feedfile_begin(to, NULL, (uint64_t)time(NULL), &writer) : -ENOENT;
	if (result == 0) {
		result = set_copy_feed(set, index, writer);
		if (result == 0)
			result = feedfile_finish(writer, NULL, NULL, &change);
		if (result == 0)
			result = feedfile_publish(writer, to);
		else
			feedfile_abandon(writer);
	}
	domset_close(set);
done:
	free(from);
	free(to);
	return result;
}

/* `entries` is there and cannot be read: fall back on what the served set holds of it or on the
 * version before, and read the list anew soon. */
static void set_damaged(struct fetcher_feed *ff, int error)
{
	struct state *s = &ff->state;
	char why[STATE_TEXT_MAX];
	char *path = state_path(ff->fetcher->state, ff->feed->name, "entries");
	log_error("feed %s: its file on disk is unreadable: %s", ff->feed->name, strerror(-error));
	if (path)
		unlink(path);
	free(path);
	s->etag[0] = s->last_modified[0] = '\0';
	s->file_mtime_ns = 0;
	s->checked_s = 0;
	fetcher_arm(ff->timer, SET_SCHEDULE_MS);
	if (set_recover(ff) == 0) {
		log_info("feed %s: taken from set %" PRIu64 " for the time being", ff->feed->name,
			 ff->fetcher->set_number);
		take_write_state(ff);
		return;
	}
	if (take_promote_file(ff, "entries.prev") == 0)
		return;
	s->entries = 0;
	s->version = 0;
	snprintf(why, sizeof(why), "its file on disk is unreadable: %s", strerror(-error));
	take_failed(ff, why);
}

static int set_owner_order(const void *a, const void *b)
{
	const struct fetcher_feed *x = *(struct fetcher_feed *const *)a;
	const struct fetcher_feed *y = *(struct fetcher_feed *const *)b;
	return strcmp(x->feed->name, y->feed->name);
}

/* 1: this feed has a version that can be read. */
static int set_plan_add(struct set_plan *plan, struct fetcher_feed *ff)
{
	struct feedfile file;
	char *path = state_path(ff->fetcher->state, ff->feed->name, "entries");
	int result = path ? feedfile_open(path, 0, &file) : -ENOMEM;
	if (result < 0) {
		free(path);
		return result;
	}
	plan->feeds[plan->count] = (struct compile_feed){ff->feed->name, path};
	plan->versions[plan->count] = file.crc;
	plan->count++;
	feedfile_close(&file);
	return 0;
}

static int set_plan_init(struct fetcher *f, struct set_plan *plan)
{
	*plan = (struct set_plan){
		.feeds = calloc(f->count + 1, sizeof(*plan->feeds)),
		.owners = calloc(f->count + 1, sizeof(struct fetcher_feed *)),
		.versions = calloc(f->count + 1, sizeof(*plan->versions)),
	};
	if (!plan->feeds || !plan->owners || !plan->versions)
		return -ENOMEM;
	for (size_t i = 0; i < f->count; i++)
		plan->owners[i] = &f->feeds[i];
	qsort(plan->owners, f->count, sizeof(struct fetcher_feed *), set_owner_order);
	for (size_t i = 0; i < f->count; i++) {
		int result = set_plan_add(plan, plan->owners[i]);
		if (result == -EINVAL || result == -EBADMSG) {
			set_damaged(plan->owners[i], result);
			result = set_plan_add(plan, plan->owners[i]);
		}
		if (result < 0 && result != -ENOENT)
			return result;
	}
	return 0;
}

static char *set_manifest(const struct fetcher *f, const struct set_plan *plan)
{
	char key[32];
	cJSON *root = cJSON_CreateObject();
	snprintf(key, sizeof(key), "%016" PRIx64, f->options.site_key);
	cJSON_AddStringToObject(root, "site_key", key);
	cJSON *list = cJSON_AddArrayToObject(root, "feeds");
	for (size_t i = 0; i < plan->count; i++) {
		cJSON *item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "name", plan->feeds[i].name);
		cJSON_AddNumberToObject(item, "version", plan->versions[i]);
		cJSON_AddItemToArray(list, item);
	}
	char *text = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	return text;
}

static bool set_is_current(const struct fetcher *f, const char *manifest)
{
	char *text = NULL;
	size_t size;
	char *path = f->set_number ? setfiles_path(f->state, f->set_number, "json") : NULL;
	bool same = path && file_read(path, SET_MANIFEST_MAX, &text, &size) == 0 &&
		    strcmp(text, manifest) == 0;
	free(text);
	free(path);
	return same;
}

static int set_verify(const char *path)
{
	struct domset *set;
	char error[DOMSET_ERROR_MAX] = "";
	int result = domset_open(path, DOMSET_CHECK_ALL, &set, error);
	if (result < 0)
		log_error("%s: %s", path, error[0] ? error : strerror(-result));
	else
		domset_close(set);
	return result;
}

static void set_published(struct fetcher *f, uint64_t number)
{
	f->set_number = number;
	f->options.publish(f->options.context, number);
}

void set_publish_newest(struct fetcher *f)
{
	uint64_t below = UINT64_MAX, number;
	for (int i = 0; i < SET_TRIES; i++) {
		number = setfiles_newest(f->state, below);
		if (number == 0)
			return;
		char *path = setfiles_path(f->state, number, "mdb");
		int result = path ? set_verify(path) : -ENOMEM;
		free(path);
		if (result == 0) {
			set_published(f, number);
			return;
		}
		log_warn("set %" PRIu64 " is unreadable: it will be rebuilt from the feeds",
			 number);
		below = number;
	}
}

static uint64_t set_above(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static int set_build(struct fetcher *f, struct set_plan *plan, const char *manifest)
{
	struct domset_stats stats;
	size_t bad = SIZE_MAX;
	uint64_t newest = setfiles_newest(f->state, UINT64_MAX);
	uint64_t number = set_above(set_above(newest, f->set_number), f->options.published) + 1;
	char *path = setfiles_path(f->state, number, "mdb");
	char *json = setfiles_path(f->state, number, "json");
	int result = -ENOMEM;
	if (!path || !json)
		goto done;
	result = compile_set(path, plan->feeds, plan->count, f->options.site_key, &stats, &bad);
	if (result == 0)
		result = set_verify(path);
	if (result == 0)
		result = file_replace(json, manifest, strlen(manifest), 0644);
	if (result < 0) {
		unlink(path);
		unlink(json);
		goto done;
	}
	log_info("set %" PRIu64 ": %" PRIu64 " names of %zu feeds, %" PRIu64 " octets", number,
		 stats.names, plan->count, stats.file_octets);
	set_published(f, number);
	setfiles_clean(f->state, number);
done:
	free(path);
	free(json);
	return result;
}

int set_refresh(struct fetcher *f)
{
	struct set_plan plan;
	int result = set_plan_init(f, &plan);
	char *manifest = result == 0 ? set_manifest(f, &plan) : NULL;
	if (result == 0 && !manifest)
		result = -ENOMEM;
	if (result == 0 && !set_is_current(f, manifest))
		result = set_build(f, &plan, manifest);
	if (result < 0) {
		f->set_failures++;
		log_error("the set could not be built: %s; %s", strerror(-result),
			  f->set_number ? "the last one stays" : "there is none yet");
		fetcher_arm(f->set_timer, SET_RETRY_MS);
	} else {
		f->set_failures = 0;
		evtimer_del(f->set_timer);
	}
	free(manifest);
	set_plan_fini(&plan);
	return result;
}

void set_check(struct fetcher *f)
{
	char *path = f->set_number ? setfiles_path(f->state, f->set_number, "mdb") : NULL;
	char *json = f->set_number ? setfiles_path(f->state, f->set_number, "json") : NULL;
	if (path && json && set_verify(path) < 0) {
		log_error("set %" PRIu64 " was damaged while it was served: it is made anew",
			  f->set_number);
		unlink(json); /* so that it is current no more */
		if (set_refresh(f) < 0)
			set_publish_newest(f);
	}
	free(path);
	free(json);
}

void set_schedule(struct fetcher *f)
{
	if (!evtimer_pending(f->set_timer, NULL))
		fetcher_arm(f->set_timer, f->transfers ? SET_BUSY_MS : SET_SCHEDULE_MS);
}
