/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetcher's inside, shared by its files and nobody else:
 *
 *   fetcher.c        its life, timers, commands
 *   fetcher_take.c   a body becomes a version, or a failure
 *   fetcher_remote.c feeds with URLs
 *   fetcher_local.c  feeds that are local files, and watching their folders
 *   fetcher_set.c    feed files become a set, and the set is published
 */
#ifndef BALEEN_FEEDS_FETCHER_PRIVATE_H
#define BALEEN_FEEDS_FETCHER_PRIVATE_H

#include "feeds/admission.h"
#include "feeds/fetch.h"
#include "feeds/fetcher.h"
#include "feeds/ownership.h"
#include "feeds/state.h"

#include <sys/types.h>

struct event;

#define FETCHER_WAIT_MS 10000 /* for another generation's write to end */

/* One feed and what goes on with it. */
struct fetcher_feed {
	struct fetcher *fetcher;
	const struct feed *feed;
	struct state state;
	struct event *timer;

	/* A body that is being read. */
	struct feedfile_writer *writer;
	struct parse *parse;
	struct popular_hits hits;

	/* Remote feeds. */
	struct fetch *fetch;
	struct fetch_request request;
	size_t url;	    /* which of feed->urls */
	bool unconditional; /* asked for by a command */
	uint64_t waiting;   /* for a free transfer: its place in the queue; 0: it does not */
	uint64_t retry_after_s;
	char etag[STATE_TEXT_MAX], last_modified[64];
};

struct fetcher {
	struct fetcher_options options;
	const char *state; /* options.state */
	struct ownership ownership;
	bool stopped, superseded;
	unsigned entered; /* depth of fetcher_enter */
	struct event *orphan_timer;

	struct namelist hard, popular;
	struct fetch_pool *pool;
	size_t transfers; /* running */
	uint64_t queued;  /* places given out */

	struct fetcher_feed *feeds;
	size_t count;

	int inotify;
	struct event *inotify_event;

	struct event *set_timer; /* a rebuild is due */
	uint64_t set_number;	 /* published last */
	unsigned set_failures;
};

/* fetcher.c */
bool fetcher_enter(struct fetcher *f); /* false: not the writer (any more) */
void fetcher_leave(struct fetcher *f);
void fetcher_arm(struct event *timer, uint64_t ms);

/* fetcher_take.c */
int take_begin(struct fetcher_feed *ff);
void take_abandon(struct fetcher_feed *ff);
/* The body is complete. Judges, publishes, writes the state; 0 if the version was taken, held or
 * unchanged; else -errno with the state saying why. */
int take_end(struct fetcher_feed *ff, bool whole);
void take_failed(struct fetcher_feed *ff, const char *why);
/* Publish a version that stands under `leaf` as the one in force; the one in force becomes .prev.
 */
int take_promote_file(struct fetcher_feed *ff, const char *leaf);
void take_write_state(struct fetcher_feed *ff);

/* fetcher_remote.c */
void remote_arm(struct fetcher_feed *ff); /* when it is due next */
void remote_start(struct fetcher_feed *ff);
void remote_stop(struct fetcher_feed *ff);

/* fetcher_local.c */
void local_check(struct fetcher_feed *ff, bool force); /* read it if it changed */
int local_watch(struct fetcher *f);
void local_unwatch(struct fetcher *f);

/* fetcher_set.c */
/* Publish the newest set on disk that verifies, if any. */
void set_publish_newest(struct fetcher *f);
/* Build and publish a set if the newest does not say what the feed files say. 0 or -errno. */
int set_refresh(struct fetcher *f);
void set_schedule(struct fetcher *f);
/* Verify what is served, and replace it if it is damaged. */
void set_check(struct fetcher *f);

#endif
