/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known about one feed, on disk as STATE/feeds/NAME/state.json: written by the fetcher
 * after every attempt, read by it at start and by whoever lists feeds (no daemon needed). The JSON
 * keys are those of `baleen feeds show --json`.
 */
#ifndef BALEEN_FEEDS_STATE_H
#define BALEEN_FEEDS_STATE_H

#include "feeds/feed.h"
#include "feeds/parse.h"

#include <stdbool.h>
#include <stdint.h>

struct cJSON;

#define STATE_TEXT_MAX 512

/* The last attempt's outcome. A feed in shadow mode is shown as "shadow" where this says ok. */
enum state_status { STATE_PENDING, STATE_OK, STATE_FAILED, STATE_QUARANTINED };

struct state {
	enum state_status status;
	char error[STATE_TEXT_MAX]; /* why failed or quarantined; "" */
	unsigned failures;	    /* in a row */

	uint64_t entries; /* of the version in force; 0 and version 0: none yet */
	uint64_t version; /* counts published versions */
	uint64_t lines, accepted, rejected;
	struct parse_reject rejects[FEED_REJECT_REASONS];
	char format[32];

	int64_t fetched_s; /* a body was taken in (or held) */
	int64_t checked_s; /* the last attempt, whatever came of it */
	int64_t changed_s; /* the entries in force changed */

	/* Validators of the last body, for this URL alone. Used only while `entries` or `held` of
	 * that body is on disk. */
	char url[STATE_TEXT_MAX * 4];
	char etag[STATE_TEXT_MAX];
	char last_modified[64];

	/* What the entries depend on beside the list: origin, format, match, hard list. */
	char recipe[64];

	/* The local list as it was read last. */
	uint64_t file_size, file_inode;
	int64_t file_mtime_ns, file_ctime_ns;
};

/* "STATE/feeds/NAME/leaf", malloc'd. */
char *state_path(const char *folder, const char *feed, const char *leaf);

/* A missing or unreadable file gives a fresh, pending state. */
void state_read(const char *folder, const char *feed, struct state *out);
/* 0 or -errno. `feed` adds what the configuration says (kind, mode, category, origin). */
int state_write(const char *folder, const struct feed *feed, const struct state *s);

/* The JSON of one feed with `status` as shown, or NULL. cJSON_Delete it. */
struct cJSON *state_json(const char *folder, const char *feed);
/* An array of all feeds with a state on disk, by name. Never NULL but for lack of memory. */
struct cJSON *state_json_all(const char *folder);

/* Take over what a parse found. */
void state_take_report(struct state *s, const struct parse_report *report);

#endif
