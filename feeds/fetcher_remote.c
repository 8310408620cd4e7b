/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds with URLs: when to ask, with which validators, which mirror next, how long to wait after a
 * failure. Runs in the fetcher. Invariant: validators go out only while the body they belong to is
 * on disk and only to the URL that gave them.
 */
#include "feeds/fetcher_private.h"

#include "base/hash.h"
#include "base/log.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REMOTE_TRANSFERS    3 /* at once: each may hold a sorter of 25 MiB */
#define REMOTE_BACKOFF_MS   5000
#define REMOTE_BACKOFF_MAX  ((uint64_t)3600 * 1000)
#define REMOTE_RETRY_MAX_MS ((uint64_t)24 * 3600 * 1000)
#define REMOTE_FIRST_MS	    50
#define REMOTE_JITTER_SHARE 10 /* a tenth */

static uint64_t remote_jitter(uint64_t ms)
{
	return ms + hash_random() % (ms / REMOTE_JITTER_SHARE + 1);
}

static uint64_t remote_backoff(const struct fetcher_feed *ff)
{
	unsigned doublings = ff->state.failures < 12 ? ff->state.failures : 12;
	uint64_t ms = (uint64_t)REMOTE_BACKOFF_MS << (doublings ? doublings - 1 : 0);
	if (ms > REMOTE_BACKOFF_MAX)
		ms = REMOTE_BACKOFF_MAX;
	if (ms > ff->feed->refresh_ms)
		ms = ff->feed->refresh_ms;
	/* The server's own word, bounded: it must not put the feed off for ever. */
	uint64_t asked = ff->retry_after_s * 1000;
	if (asked > REMOTE_RETRY_MAX_MS)
		asked = REMOTE_RETRY_MAX_MS;
	return asked > ms ? asked : ms;
}

void remote_arm(struct fetcher_feed *ff)
{
	uint64_t wait = REMOTE_FIRST_MS;
	if (ff->state.failures > 0) {
		wait = remote_backoff(ff);
	} else if (ff->state.checked_s > 0) {
		/* What the wall clock says about the last run; a clock that stepped must neither
		 * freeze the feed nor hammer the server. */
		int64_t age_s = (int64_t)time(NULL) - ff->state.checked_s;
		uint64_t age = age_s > 0 ? (uint64_t)age_s * 1000 : 0;
		wait = age < ff->feed->refresh_ms ? ff->feed->refresh_ms - age : REMOTE_FIRST_MS;
	}
	fetcher_arm(ff->timer, remote_jitter(wait));
}

static bool remote_has(const struct fetcher_feed *ff, const char *leaf)
{
	char *path = state_path(ff->fetcher->state, ff->feed->name, leaf);
	bool has = path && access(path, F_OK) == 0;
	free(path);
	return has;
}

static void remote_finish(struct fetcher_feed *ff)
{
	struct fetcher *f = ff->fetcher;
	f->transfers--;
	ff->unconditional = false;
	remote_arm(ff);
	/* Who has waited longest: lists that fail and come back must not keep the others out. */
	struct fetcher_feed *next = NULL;
	for (size_t i = 0; i < f->count; i++)
		if (f->feeds[i].waiting && (!next || f->feeds[i].waiting < next->waiting))
			next = &f->feeds[i];
	if (next)
		remote_start(next);
}

static int remote_body(void *context, const void *data, size_t size)
{
	struct fetcher_feed *ff = context;
	int result = ff->parse ? 0 : take_begin(ff);
	return result < 0 ? result : parse_push(ff->parse, data, size);
}

static void remote_try(struct fetcher_feed *ff);

static void remote_failed(struct fetcher_feed *ff, const char *url, const char *why)
{
	char text[STATE_TEXT_MAX];
	snprintf(text, sizeof(text), "%s: %s", url, why);
	if (ff->feed->urls[++ff->url]) {
		log_info("feed %s: %s; trying the next mirror", ff->feed->name, text);
		remote_try(ff);
		return;
	}
	if (fetcher_enter(ff->fetcher)) {
		take_failed(ff, text);
		fetcher_leave(ff->fetcher);
	}
	remote_finish(ff);
}

/* A complete 200. */
static int remote_take(struct fetcher_feed *ff, const char *url, const struct fetch_result *result)
{
	struct state *s = &ff->state;
	/* In place before take_end, which writes the state. */
	struct state before = *s;
	snprintf(s->url, sizeof(s->url), "%s", url);
	snprintf(s->etag, sizeof(s->etag), "%s", result->etag);
	snprintf(s->last_modified, sizeof(s->last_modified), "%s", result->last_modified);
	int taken = ff->parse ? 0 : take_begin(ff); /* an empty body never came by */
	if (taken == 0)
		taken = take_end(ff, result->whole);
	if (taken < 0) {
		memcpy(s->url, before.url, sizeof(s->url));
		memcpy(s->etag, before.etag, sizeof(s->etag));
		memcpy(s->last_modified, before.last_modified, sizeof(s->last_modified));
		take_write_state(ff);
	}
	return taken;
}

static void remote_not_modified(struct fetcher_feed *ff)
{
	struct state *s = &ff->state;
	s->checked_s = time(NULL);
	s->failures = 0;
	if (s->status == STATE_FAILED) {
		bool held = remote_has(ff, "entries.held");
		s->status = held ? STATE_QUARANTINED : STATE_OK;
		snprintf(s->error, sizeof(s->error), "%s", held ? "waits for a release" : "");
	}
	log_info("feed %s: not modified", ff->feed->name);
	take_write_state(ff);
}

static void remote_done(void *context, const struct fetch_result *result)
{
	struct fetcher_feed *ff = context;
	const char *url = ff->feed->urls[ff->url];
	char why[STATE_TEXT_MAX];
	ff->fetch = NULL;
	if (result->error) {
		const char *refused = ff->parse ? parse_report(ff->parse)->error : "";
		snprintf(why, sizeof(why), "%s", refused[0] ? refused : result->why);
		take_abandon(ff);
		if (result->retry_after_s > ff->retry_after_s)
			ff->retry_after_s = result->retry_after_s;
		remote_failed(ff, url, why);
		return;
	}
	if (!fetcher_enter(ff->fetcher)) {
		take_abandon(ff);
		remote_finish(ff);
		return;
	}
	ff->retry_after_s = 0;
	if (result->not_modified)
		remote_not_modified(ff);
	else
		remote_take(ff, url, result);
	fetcher_leave(ff->fetcher);
	remote_finish(ff);
}

/* The text of a sealed file, or NULL. */
static const char *remote_sealed(struct fetcher_feed *ff, const char *path, size_t *size)
{
	struct source_file file;
	if (!path || source_read(ff->fetcher->options.source, path, &file) < 0)
		return NULL;
	*size = file.size;
	return (const char *)file.data;
}

static void remote_try(struct fetcher_feed *ff)
{
	const struct state *s = &ff->state;
	const char *url = ff->feed->urls[ff->url];
	size_t unused;
	bool conditional = !ff->unconditional && strcmp(s->url, url) == 0 &&
			   (remote_has(ff, "entries") || remote_has(ff, "entries.held"));
	/* Copies: the state may change while the transfer runs. */
	snprintf(ff->etag, sizeof(ff->etag), "%s", conditional ? s->etag : "");
	snprintf(ff->last_modified, sizeof(ff->last_modified), "%s",
		 conditional ? s->last_modified : "");
	ff->request = (struct fetch_request){
		.url = url,
		.etag = ff->etag,
		.last_modified = ff->last_modified,
		.headers = remote_sealed(ff, ff->feed->header_file, &unused),
		.allow_private = ff->feed->allow_private,
		.max_bytes = ff->feed->max_bytes,
		.body = remote_body,
		.done = remote_done,
		.context = ff,
	};
	ff->request.ca = remote_sealed(ff, ff->feed->ca_file, &ff->request.ca_size);
	if (ff->feed->ca_file && !ff->request.ca) {
		remote_failed(ff, url, "its ca-file cannot be read");
		return;
	}
	int result = fetch_start(ff->fetcher->pool, &ff->request, &ff->fetch);
	if (result < 0)
		remote_failed(ff, url, strerror(-result));
}

void remote_start(struct fetcher_feed *ff)
{
	struct fetcher *f = ff->fetcher;
	if (ff->fetch)
		return;
	if (f->transfers >= REMOTE_TRANSFERS) {
		if (!ff->waiting)
			ff->waiting = ++f->queued;
		return;
	}
	ff->waiting = 0;
	evtimer_del(ff->timer);
	f->transfers++;
	ff->url = 0;
	ff->retry_after_s = 0;
	remote_try(ff);
}

void remote_stop(struct fetcher_feed *ff)
{
	if (ff->fetch) {
		fetch_cancel(ff->fetch);
		ff->fetch = NULL;
		ff->fetcher->transfers--;
	}
	ff->waiting = 0;
	take_abandon(ff);
}
