/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetcher's life: start, timers, commands, end. Runs in the fetcher process, one thread, one
 * loop; owns everything in `struct fetcher`. Invariant: nothing under the state folder is written
 * outside of fetcher_enter and fetcher_leave, except temporary files that carry this process's id.
 */
#include "feeds/fetcher_private.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FETCHER_RECIPE	     1 /* raise it when a parser reads the same list differently */
#define FETCHER_NICE	     19
#define FETCHER_IDLE	     (3 << 13) /* IOPRIO_CLASS_IDLE */
#define FETCHER_ORPHAN_MS    2000
#define FETCHER_BUSY_MS	     1000
#define FETCHER_PROMOTED_MAX ((size_t)64 << 10)

const char *const fetcher_verbs[] = {"refresh", "promote", "rollback", "release"};

void fetcher_arm(struct event *timer, uint64_t ms)
{
	const struct timeval wait = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
	evtimer_add(timer, &wait);
}

bool fetcher_enter(struct fetcher *f)
{
	if (f->stopped || f->superseded)
		return false;
	if (f->entered > 0) {
		f->entered++;
		return true;
	}
	int result = ownership_enter(&f->ownership, FETCHER_WAIT_MS);
	if (result == -ESTALE) {
		log_info("a newer generation fetches from here on");
		f->superseded = true;
		fetcher_arm(f->orphan_timer, FETCHER_ORPHAN_MS);
	} else if (result < 0) {
		log_warn("feeds.lock: %s", strerror(-result));
	}
	f->entered = result == 0;
	return result == 0;
}

void fetcher_leave(struct fetcher *f)
{
	if (--f->entered == 0)
		ownership_leave(&f->ownership);
}

static void fetcher_on_feed(evutil_socket_t fd, short what, void *context)
{
	struct fetcher_feed *ff = context;
	(void)fd;
	(void)what;
	if (ff->fetcher->stopped || ff->fetcher->superseded)
		return;
	if (!ff->feed->file) {
		remote_start(ff);
	} else if (fetcher_enter(ff->fetcher)) {
		local_check(ff, false);
		fetcher_leave(ff->fetcher);
	} else {
		fetcher_arm(ff->timer, FETCHER_BUSY_MS);
	}
}

static void fetcher_on_set(evutil_socket_t fd, short what, void *context)
{
	struct fetcher *f = context;
	(void)fd;
	(void)what;
	if (fetcher_enter(f)) {
		set_refresh(f);
		fetcher_leave(f);
	} else if (!f->stopped && !f->superseded) {
		fetcher_arm(f->set_timer, FETCHER_BUSY_MS);
	}
}

static void fetcher_on_orphan(evutil_socket_t fd, short what, void *context)
{
	struct fetcher *f = context;
	(void)fd;
	(void)what;
	if (f->stopped || !f->superseded)
		return;
	if (!ownership_orphaned(&f->ownership)) {
		fetcher_arm(f->orphan_timer, FETCHER_ORPHAN_MS);
		return;
	}
	log_info("the newer generation is gone: fetching again");
	fetcher_first_pass(f);
}

int fetcher_folders(const struct feeds *feeds, char ***out, size_t *count)
{
	*count = 0;
	*out = calloc(feeds->count + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (size_t i = 0; i < feeds->count; i++) {
		const char *file = feeds->items[i].file;
		if (!file)
			continue;
		const char *slash = strrchr(file, '/');
		char *folder = !slash	       ? strdup(".")
			       : slash == file ? strdup("/")
					       : strndup(file, (size_t)(slash - file));
		bool known = false;
		for (size_t j = 0; folder && j < *count; j++)
			known = known || strcmp((*out)[j], folder) == 0;
		if (known)
			free(folder);
		else if (folder)
			(*out)[(*count)++] = folder;
	}
	return 0;
}

static int fetcher_new_feeds(struct fetcher *f)
{
	f->count = f->options.feeds->count;
	f->feeds = calloc(f->count + 1, sizeof(*f->feeds));
	if (!f->feeds)
		return -ENOMEM;
	for (size_t i = 0; i < f->count; i++) {
		struct fetcher_feed *ff = &f->feeds[i];
		ff->fetcher = f;
		ff->feed = &f->options.feeds->items[i];
		ff->timer = evtimer_new(f->options.base, fetcher_on_feed, ff);
		if (!ff->timer)
			return -ENOMEM;
	}
	return 0;
}

static int fetcher_new_lists(struct fetcher *f)
{
	const struct fetcher_options *o = &f->options;
	struct diags d;
	int result = hardlist_init(&f->hard, o->zones, o->zone_count, o->feeds);
	if (result < 0)
		return result;
	diag_init(&d);
	result = popular_load(o->source, o->protected_files, o->protected_count, &d, &f->popular);
	for (size_t i = 0; i < d.count; i++)
		log_warn("%s%s%s", d.items[i].file ? d.items[i].file : "",
			 d.items[i].file ? ": " : "", d.items[i].text);
	diag_fini(&d);
	return result == -ENOMEM ? result : 0;
}

int fetcher_new(const struct fetcher_options *options, struct fetcher **out)
{
	struct fetcher *f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->options = *options;
	f->state = options->state;
	f->ownership.fd = -1;
	f->inotify = -1;
	f->set_timer = evtimer_new(options->base, fetcher_on_set, f);
	f->orphan_timer = evtimer_new(options->base, fetcher_on_orphan, f);
	int result = f->set_timer && f->orphan_timer ? fetcher_new_feeds(f) : -ENOMEM;
	if (result == 0)
		result = fetcher_new_lists(f);
	if (result == 0)
		result = fetch_pool_new(options->base, options->resolvers, &f->pool);
	if (result < 0) {
		fetcher_free(f);
		return result;
	}
	/* DNS comes first, on the processor and on the disk; a refusal changes nothing else. */
	setpriority(PRIO_PROCESS, 0, FETCHER_NICE);
	syscall(SYS_ioprio_set, 1, 0, FETCHER_IDLE);
	*out = f;
	return 0;
}

void fetcher_stop(struct fetcher *f)
{
	f->stopped = true;
	for (size_t i = 0; i < f->count; i++) {
		remote_stop(&f->feeds[i]);
		evtimer_del(f->feeds[i].timer);
	}
	evtimer_del(f->set_timer);
	evtimer_del(f->orphan_timer);
	local_unwatch(f);
	ownership_release(&f->ownership);
}

void fetcher_free(struct fetcher *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count && f->feeds; i++) {
		remote_stop(&f->feeds[i]);
		if (f->feeds[i].timer)
			event_free(f->feeds[i].timer);
	}
	free(f->feeds);
	local_unwatch(f);
	ownership_release(&f->ownership);
	fetch_pool_free(f->pool);
	if (f->set_timer)
		event_free(f->set_timer);
	if (f->orphan_timer)
		event_free(f->orphan_timer);
	namelist_fini(&f->hard);
	namelist_fini(&f->popular);
	free(f);
}

/* Temporary names in a feed's folder are of processes that are gone: we are the one writer. */
static void fetcher_clean_feed(struct fetcher *f, const char *feed)
{
	char *path = state_path(f->state, feed, "");
	DIR *folder = path ? opendir(path) : NULL;
	struct dirent *entry;
	while (folder && (entry = readdir(folder)))
		if (strstr(entry->d_name, ".tmp.") || strcmp(entry->d_name, "entries.next") == 0 ||
		    strcmp(entry->d_name, "entries.prev.new") == 0)
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	free(path);
}

/* Feeds that are not subscribed any more keep their entries (they may come back) but are no longer
 * listed. */
static void fetcher_clean(struct fetcher *f)
{
	char *path = state_path(f->state, "", "");
	DIR *folder = path ? opendir(path) : NULL;
	struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		if (!feed_name_is_valid(entry->d_name))
			continue;
		if (!feeds_find(f->options.feeds, entry->d_name)) {
			char *state = state_path(f->state, entry->d_name, "state.json");
			if (state)
				unlink(state);
			free(state);
		}
		fetcher_clean_feed(f, entry->d_name);
	}
	if (folder)
		closedir(folder);
	free(path);
}

/* A list must be read again, unchanged as it may be, when what is made of it has changed. */
static void fetcher_check_recipe(struct fetcher_feed *ff)
{
	const struct feed *feed = ff->feed;
	const struct namelist *hard = &ff->fetcher->hard;
	const char *origin = feed->file ? feed->file : feed->urls[0];
	char recipe[sizeof(ff->state.recipe)];
	uint64_t hash = hash_bytes(FETCHER_RECIPE, origin, strlen(origin));
	for (size_t i = 0; i < hard->count; i++)
		hash = hash_bytes(hash, hard->items[i].key, hard->items[i].length);
	snprintf(recipe, sizeof(recipe), "%s %d %016llx",
		 feed->format ? feed->format->name : "auto", (int)feed->match,
		 (unsigned long long)hash);
	if (strcmp(recipe, ff->state.recipe) == 0)
		return;
	memcpy(ff->state.recipe, recipe, sizeof(recipe));
	ff->state.etag[0] = ff->state.last_modified[0] = '\0';
	ff->state.checked_s = 0;
	ff->state.failures = 0;
	ff->state.file_mtime_ns = 0;
}

/* The state of each feed; entries without one (subscribed again) are counted. */
static void fetcher_read_states(struct fetcher *f)
{
	for (size_t i = 0; i < f->count; i++) {
		struct fetcher_feed *ff = &f->feeds[i];
		struct feedfile file;
		state_read(f->state, ff->feed->name, &ff->state);
		char *folder = state_path(f->state, ff->feed->name, "");
		char *path = state_path(f->state, ff->feed->name, "entries");
		if (ff->state.version == 0 && path && feedfile_open(path, 0, &file) == 0) {
			ff->state.version = 1;
			ff->state.entries = file.entries;
			feedfile_close(&file);
		}
		fetcher_check_recipe(ff);
		if (folder)
			file_make_folder(folder, 0755);
		take_write_state(ff); /* what the configuration says may have changed */
		free(folder);
		free(path);
	}
}

static int fetcher_make_folders(struct fetcher *f)
{
	static const char *const names[] = {"feeds", "sets"};
	int result = 0;
	for (size_t i = 0; i < 2 && result == 0; i++) {
		char *path;
		if (asprintf(&path, "%s/%s", f->state, names[i]) < 0)
			return -ENOMEM;
		result = file_make_folder(path, 0755);
		if (result < 0)
			log_error("%s: %s", path, strerror(-result));
		free(path);
	}
	return result;
}

static int fetcher_claim(struct fetcher *f)
{
	char *path;
	if (asprintf(&path, "%s/feeds.lock", f->state) < 0)
		return -ENOMEM;
	int result = ownership_claim(&f->ownership, path, FETCHER_WAIT_MS);
	if (result < 0)
		log_error("%s: %s", path, strerror(-result));
	free(path);
	return result;
}

int fetcher_first_pass(struct fetcher *f)
{
	f->superseded = false;
	int result = fetcher_make_folders(f);
	if (result == 0)
		result = fetcher_claim(f);
	if (result < 0 || !fetcher_enter(f)) {
		/* Nothing can be written; what is there can still be served. */
		set_publish_newest(f);
		return f->set_number ? 0 : result < 0 ? result : -EAGAIN;
	}
	fetcher_clean(f);
	fetcher_read_states(f);
	set_publish_newest(f);
	for (size_t i = 0; i < f->count; i++)
		if (f->feeds[i].feed->file)
			local_check(&f->feeds[i], false);
	result = set_refresh(f);
	fetcher_leave(f);
	for (size_t i = 0; i < f->count; i++)
		if (!f->feeds[i].feed->file)
			remote_arm(&f->feeds[i]);
	local_unwatch(f);
	int watched = local_watch(f);
	if (watched < 0)
		log_warn("local lists cannot be watched: %s", strerror(-watched));
	return f->set_number ? 0 : result;
}

void fetcher_check_set(struct fetcher *f)
{
	if (!fetcher_enter(f))
		return;
	set_check(f);
	fetcher_leave(f);
}

/* ---- commands ---- */

static int fetcher_refresh(struct fetcher *f, struct fetcher_feed *only, char *answer)
{
	size_t begun = 0;
	for (size_t i = 0; i < f->count; i++) {
		struct fetcher_feed *ff = &f->feeds[i];
		if (only && only != ff)
			continue;
		begun++;
		if (ff->feed->file) {
			local_check(ff, true);
		} else {
			ff->unconditional = true;
			remote_start(ff);
		}
	}
	if (only && only->feed->file)
		snprintf(answer, FETCHER_ANSWER_MAX, "%s: %.180s", only->feed->name,
			 only->state.error[0] ? only->state.error : "read again");
	else
		snprintf(answer, FETCHER_ANSWER_MAX, "refreshing %zu feed%s", begun,
			 begun == 1 ? "" : "s");
	return 0;
}

static int fetcher_promote(struct fetcher *f, struct fetcher_feed *ff, char *answer)
{
	char *path, *text = NULL, *next = NULL;
	size_t size = 0;
	if (ff->feed->mode != FEED_MODE_SHADOW) {
		snprintf(answer, FETCHER_ANSWER_MAX, "%s is not in shadow mode", ff->feed->name);
		return -ESRCH;
	}
	if (asprintf(&path, "%s/feeds/promoted", f->state) < 0)
		return -ENOMEM;
	int result = file_read(path, FETCHER_PROMOTED_MAX, &text, &size);
	if (result == 0 || result == -ENOENT) {
		int n = asprintf(&next, "%s%s\n", text ? text : "", ff->feed->name);
		result = n < 0 ? -ENOMEM : file_replace(path, next, (size_t)n, 0644);
		if (n < 0)
			next = NULL;
	}
	if (result == 0)
		snprintf(answer, FETCHER_ANSWER_MAX, "%s enforces from the next reload on",
			 ff->feed->name);
	free(text);
	free(next);
	free(path);
	return result;
}

static int fetcher_swap(struct fetcher_feed *ff, const char *leaf, const char *nothing,
			char *answer)
{
	int result = take_promote_file(ff, leaf);
	if (result == -ENOENT) {
		snprintf(answer, FETCHER_ANSWER_MAX, "%s: %s", ff->feed->name, nothing);
		return -ESRCH;
	}
	if (result == 0)
		snprintf(answer, FETCHER_ANSWER_MAX, "%s: %llu names in force", ff->feed->name,
			 (unsigned long long)ff->state.entries);
	return result;
}

int fetcher_command(struct fetcher *f, enum fetcher_verb verb, const char *feed,
		    char answer[FETCHER_ANSWER_MAX])
{
	struct fetcher_feed *ff = NULL;
	for (size_t i = 0; feed && i < f->count; i++)
		if (strcmp(f->feeds[i].feed->name, feed) == 0)
			ff = &f->feeds[i];
	answer[0] = '\0';
	if (!ff && (feed || verb != FETCHER_REFRESH)) {
		snprintf(answer, FETCHER_ANSWER_MAX, "no feed \"%s\"", feed ? feed : "");
		return -ENOENT;
	}
	if (!fetcher_enter(f)) {
		snprintf(answer, FETCHER_ANSWER_MAX, "another generation fetches now; try again");
		return -EBUSY;
	}
	int result = -EINVAL;
	if (verb == FETCHER_REFRESH)
		result = fetcher_refresh(f, ff, answer);
	else if (verb == FETCHER_PROMOTE)
		result = fetcher_promote(f, ff, answer);
	else if (verb == FETCHER_ROLLBACK)
		result = fetcher_swap(ff, "entries.prev", "no version before this one", answer);
	else if (verb == FETCHER_RELEASE)
		result = fetcher_swap(ff, "entries.held", "no version is held", answer);
	fetcher_leave(f);
	if (result < 0 && !answer[0])
		snprintf(answer, FETCHER_ANSWER_MAX, "%s", strerror(-result));
	return result;
}
