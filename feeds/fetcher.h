/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetcher's engine: keeps every subscribed feed fresh and the compiled set with it, on one
 * event loop, in one process that serves no DNS. On disk, below `state`:
 *
 *   feeds/NAME/entries      the last good version, sorted (feedfile.h)
 *   feeds/NAME/entries.prev the version before it, for rollback
 *   feeds/NAME/entries.held a version that admission quarantined, for release
 *   feeds/NAME/state.json   what `feeds list` shows (state.h)
 *   feeds/promoted          shadow feeds that enforce since `feeds promote`, one a line
 *   feeds.lock              whose turn it is to write (ownership.h): one writer over generations
 *   sets/domains.N.mdb      compiled sets; the newest and the one before are kept
 *   sets/domains.N.json     which version of which feed went in
 *
 * A refresh can only make things better: whatever fails (network, content, disk full) leaves the
 * last good feed file and the last good set, and is logged and shown with its reason.
 */
#ifndef BALEEN_FEEDS_FETCHER_H
#define BALEEN_FEEDS_FETCHER_H

#include "base/name.h"
#include "base/source.h"
#include "feeds/feed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct fetcher;

/* A folder opened (O_PATH will do) while privileged, for the local lists in it. */
struct fetcher_folder {
	const char *path; /* dirname of a feed's `file`, as feed->file spells it */
	int fd;
};

struct fetcher_options {
	struct event_base *base;
	const char *state; /* folder; "." in the daemon, which stands in it */
	const struct feeds *feeds;
	struct source *source; /* CA and header files, popular and protected names: as sealed */

	/* The hard list: names that no entry may take in. */
	const struct name *zones; /* zones with upstreams of their own */
	size_t zone_count;
	const char *const *protected_files; /* absolute, also in `source` */
	size_t protected_count;

	const struct fetcher_folder *folders;
	size_t folder_count;
	const char *const *resolvers; /* "9.9.9.9", "[::1]:53": asked for feed hosts; may be NULL */

	uint64_t site_key;  /* for the set's filter; 0: none */
	uint64_t published; /* number of the set that is served already; 0: none */

	/* A set is complete on disk and checked. Called from fetcher_first_pass or the loop. */
	void (*publish)(void *context, uint64_t set_number);
	void *context;
};

/* The folders whose descriptors fetcher_options wants: dirnames of local feeds, each once. Strings
 * are malloc'd, the array too. */
int fetcher_folders(const struct feeds *feeds, char ***out, size_t *count);

/* Texts in the options must outlive the fetcher. 0 or -errno (-ENOMEM, state not writable...). */
int fetcher_new(const struct fetcher_options *options, struct fetcher **out);
void fetcher_free(struct fetcher *f);

/*
 * Before the loop: lower the priority, become the one writer (an older generation's fetcher is
 * superseded from here on and only idles), remove what a dead process left, publish the newest set
 * that verifies, compile local lists that changed, rebuild if the set does not match the feeds and
 * their files, and publish that. Then arm timers and watches. 0, or -errno when no set could be
 * published at all (no feeds at all is fine: an empty set is published).
 *
 * A superseded fetcher takes over again by itself, within seconds, once the newer one is gone (a
 * reload that did not work out).
 */
int fetcher_first_pass(struct fetcher *f);

/* Read the set that is served; if its file is damaged, make it anew, or else serve the one before.
 */
void fetcher_check_set(struct fetcher *f);

/* Stop timers, transfers and watches, and let go of the ownership: an older generation that leaves.
 */
void fetcher_stop(struct fetcher *f);

enum fetcher_verb {
	FETCHER_REFRESH,  /* now; feed NULL: all. With no conditional GET */
	FETCHER_PROMOTE,  /* shadow to enforce; takes effect with the next reload */
	FETCHER_ROLLBACK, /* to entries.prev, held there until `refresh` or a changed list */
	FETCHER_RELEASE,  /* take the quarantined version after all */
};
#define FETCHER_ANSWER_MAX 256

/* The word of a verb: refresh, promote, rollback, release. */
extern const char *const fetcher_verbs[];

/*
 * Act on a feed. `answer` gets one line for the user. 0 (refresh: has begun; its outcome is in the
 * feed's state), -ENOENT (no such feed), -ESRCH (nothing to roll back, release, promote), -errno.
 */
int fetcher_command(struct fetcher *f, enum fetcher_verb verb, const char *feed,
		    char answer[FETCHER_ANSWER_MAX]);

#endif
