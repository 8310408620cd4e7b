/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a body to a version in force: feed file, admission, publishing. Runs in the fetcher; a
 * feed's writer and parser live from take_begin to take_end or take_abandon. Invariant: `entries`
 * is only ever replaced by a complete version that admission let through, and the one before is
 * kept.
 */
#include "feeds/fetcher_private.h"

#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void take_write_state(struct fetcher_feed *ff)
{
	int result = state_write(ff->fetcher->state, ff->feed, &ff->state);
	if (result < 0)
		log_warn("feed %s: its state cannot be written: %s", ff->feed->name,
			 strerror(-result));
}

void take_failed(struct fetcher_feed *ff, const char *why)
{
	struct state *s = &ff->state;
	s->checked_s = time(NULL);
	s->failures++;
	s->status = STATE_FAILED;
	snprintf(s->error, sizeof(s->error), "%s", why);
	log_warn("feed %s: failed: %s; %s", ff->feed->name, s->error,
		 s->version ? "the last good version stays" : "there is no version yet");
	take_write_state(ff);
}

int take_begin(struct fetcher_feed *ff)
{
	const struct parse_options options = {
		.format = ff->feed->format,
		.match = ff->feed->match,
		.hints = ff->feed->hints,
		.max_bytes = ff->feed->max_bytes,
		.protected = &ff->fetcher->hard,
	};
	char *folder = state_path(ff->fetcher->state, ff->feed->name, "");
	char *path = state_path(ff->fetcher->state, ff->feed->name, "entries");
	int result = folder && path ? file_make_folder(folder, 0750) : -ENOMEM;
	if (result == 0)
		result = feedfile_begin(path, path, (uint64_t)time(NULL), &ff->writer);
	if (result == 0)
		result = parse_new(&options, ff->writer, &ff->parse);
	if (result == 0)
		result = popular_hits_init(&ff->hits, &ff->fetcher->popular);
	if (result < 0)
		take_abandon(ff);
	free(folder);
	free(path);
	return result;
}

void take_abandon(struct fetcher_feed *ff)
{
	parse_free(ff->parse);
	feedfile_abandon(ff->writer);
	popular_hits_fini(&ff->hits);
	ff->parse = NULL;
	ff->writer = NULL;
}

/* `from` becomes `to`; a missing `from` is fine. */
static int take_rename(struct fetcher_feed *ff, const char *from, const char *to)
{
	char *old = state_path(ff->fetcher->state, ff->feed->name, from);
	char *new = state_path(ff->fetcher->state, ff->feed->name, to);
	int result = 0;
	if (!old || !new)
		result = -ENOMEM;
	else if (rename(old, new) < 0 && errno != ENOENT)
		result = -errno;
	free(old);
	free(new);
	return result;
}

/* The version in force gets a second name, so that its first never goes missing. */
static int take_keep_previous(struct fetcher_feed *ff)
{
	char *now = state_path(ff->fetcher->state, ff->feed->name, "entries");
	char *kept = state_path(ff->fetcher->state, ff->feed->name, "entries.prev.new");
	int result = 0;
	if (!now || !kept) {
		result = -ENOMEM;
	} else {
		unlink(kept);
		if (link(now, kept) < 0)
			result = errno == ENOENT ? 0 : -errno;
		else
			result = take_rename(ff, "entries.prev.new", "entries.prev");
	}
	free(now);
	free(kept);
	return result;
}

static int take_publish(struct fetcher_feed *ff, const char *leaf)
{
	char *path = state_path(ff->fetcher->state, ff->feed->name, leaf);
	int result = path ? feedfile_publish(ff->writer, path) : -ENOMEM;
	if (path)
		ff->writer = NULL;
	free(path);
	return result;
}

int take_promote_file(struct fetcher_feed *ff, const char *leaf)
{
	struct feedfile file;
	char *path = state_path(ff->fetcher->state, ff->feed->name, leaf);
	int result = path ? feedfile_open(path, 0, &file) : -ENOMEM;
	free(path);
	if (result < 0)
		return result;
	uint64_t entries = file.entries;
	feedfile_close(&file);
	/* entries.prev itself may be what is promoted: it must not be overwritten first. */
	result = take_rename(ff, leaf, "entries.next");
	if (result == 0)
		result = take_keep_previous(ff);
	if (result == 0)
		result = take_rename(ff, "entries.next", "entries");
	if (result < 0)
		return result;
	ff->state.entries = entries;
	ff->state.version++;
	ff->state.changed_s = time(NULL);
	ff->state.status = STATE_OK;
	ff->state.error[0] = '\0';
	take_write_state(ff);
	set_schedule(ff->fetcher);
	return 0;
}

static int take_hold(struct fetcher_feed *ff, const char *why)
{
	int result = take_publish(ff, "entries.held");
	if (result < 0)
		return result;
	ff->state.status = STATE_QUARANTINED;
	snprintf(ff->state.error, sizeof(ff->state.error), "%s", why);
	log_warn("feed %s: quarantined: %s; `baleen feeds release %s` takes it after all",
		 ff->feed->name, why, ff->feed->name);
	return 0;
}

/* A version that waited for `release` is overtaken. */
static void take_drop_held(struct fetcher_feed *ff)
{
	char *path = state_path(ff->fetcher->state, ff->feed->name, "entries.held");
	if (path)
		unlink(path);
	free(path);
}

static int take_admit(struct fetcher_feed *ff, const struct parse_report *report,
		      const struct feedfile_change *change)
{
	struct state *s = &ff->state;
	bool changed = change->added || change->removed || !s->version;
	int result = 0;
	if (changed) {
		result = take_keep_previous(ff);
		if (result == 0)
			result = take_publish(ff, "entries");
		if (result < 0)
			return result;
		s->version++;
		s->changed_s = s->checked_s;
		s->entries = change->entries;
		set_schedule(ff->fetcher);
	}
	take_drop_held(ff);
	s->status = STATE_OK;
	s->error[0] = '\0';
	log_info("feed %s: %s, %llu names (%llu added, %llu gone), %llu rejected of %llu lines",
		 ff->feed->name, changed ? "new version" : "unchanged",
		 (unsigned long long)change->entries, (unsigned long long)change->added,
		 (unsigned long long)change->removed, (unsigned long long)report->rejected,
		 (unsigned long long)report->lines);
	return 0;
}

int take_end(struct fetcher_feed *ff, bool whole)
{
	struct feedfile_change change = {0};
	char why[ADMISSION_WHY_MAX] = "";
	int result = parse_finish(ff->parse, whole);
	struct parse_report report = *parse_report(ff->parse);
	if (result == 0)
		result = feedfile_finish(ff->writer, popular_hits_added, &ff->hits, &change);
	enum admission verdict = ADMIT_REFUSE;
	if (result == 0) {
		verdict = admission_judge(ff->feed, &report, &change, &ff->hits, why);
		result = verdict == ADMIT_REFUSE ? -EBADMSG : 0;
	}
	if (result == 0) {
		ff->state.checked_s = ff->state.fetched_s = time(NULL);
		ff->state.failures = 0;
		state_take_report(&ff->state, &report);
		result = verdict == ADMIT_HOLD ? take_hold(ff, why)
					       : take_admit(ff, &report, &change);
	}
	take_abandon(ff);
	if (result == 0)
		take_write_state(ff);
	if (result < 0)
		take_failed(ff, report.error[0] ? report.error : why[0] ? why : strerror(-result));
	return result;
}
