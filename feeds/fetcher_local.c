/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds that are files on this machine: read through folder descriptors that were opened while
 * privileged, watched with inotify, and looked at once more every refresh in case a watch missed
 * something. Runs in the fetcher. Invariant: a file that changed while it was read is not taken.
 */
#include "feeds/fetcher_private.h"

#include "base/log.h"
#include "feeds/compile.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCAL_RETRY_MS	10000 /* after what is not the list's fault: a full disk, no memory */
#define LOCAL_SETTLE_MS 200   /* several writes in a row are one change */

static const char *local_leaf(const struct feed *feed)
{
	const char *slash = strrchr(feed->file, '/');
	return slash ? slash + 1 : feed->file;
}

static bool local_is_in(const struct feed *feed, const char *folder)
{
	size_t n = (size_t)(local_leaf(feed) - feed->file);
	if (n == 0)
		return strcmp(folder, ".") == 0;
	if (n == 1) /* "/file" */
		return strcmp(folder, "/") == 0;
	return strlen(folder) == n - 1 && memcmp(folder, feed->file, n - 1) == 0;
}

static int local_open(struct fetcher_feed *ff)
{
	const struct fetcher_options *o = &ff->fetcher->options;
	int fd = -1;
	errno = ENOENT;
	for (size_t i = 0; i < o->folder_count && fd < 0; i++)
		if (local_is_in(ff->feed, o->folders[i].path))
			fd = openat(o->folders[i].fd, local_leaf(ff->feed),
				    O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int64_t local_ns(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool local_same(const struct state *s, const struct stat *st)
{
	return s->file_size == (uint64_t)st->st_size && s->file_inode == (uint64_t)st->st_ino &&
	       s->file_mtime_ns == local_ns(st->st_mtim) &&
	       s->file_ctime_ns == local_ns(st->st_ctim);
}

static void local_remember(struct state *s, const struct stat *st)
{
	s->file_size = (uint64_t)st->st_size;
	s->file_inode = (uint64_t)st->st_ino;
	s->file_mtime_ns = local_ns(st->st_mtim);
	s->file_ctime_ns = local_ns(st->st_ctim);
}

static void local_again(struct fetcher_feed *ff)
{
	ff->state.file_mtime_ns = 0;
	fetcher_arm(ff->timer, LOCAL_RETRY_MS);
}

static void local_read(struct fetcher_feed *ff, int fd, const struct stat *before)
{
	struct stat after;
	/* Remembered whatever comes of it: the same rubbish need not be read again. */
	local_remember(&ff->state, before);
	int result = take_begin(ff);
	if (result < 0) {
		local_again(ff);
		take_failed(ff, strerror(-result));
		return;
	}
	result = compile_read_body(fd, ff->parse);
	if (result == 0 && (fstat(fd, &after) < 0 || !local_same(&ff->state, &after))) {
		log_info("feed %s: %s changed while it was read; reading it again", ff->feed->name,
			 ff->feed->file);
		take_abandon(ff);
		ff->state.file_mtime_ns = 0;
		fetcher_arm(ff->timer, LOCAL_SETTLE_MS);
		return;
	}
	if (result < 0 && result != -EBADMSG && result != -EFBIG)
		local_again(ff);
	if (result < 0) {
		const char *why = parse_report(ff->parse)->error;
		char text[PARSE_ERROR_MAX];
		snprintf(text, sizeof(text), "%s", why[0] ? why : strerror(-result));
		take_abandon(ff);
		take_failed(ff, text);
		return;
	}
	result = take_end(ff, true);
	if (result < 0 && result != -EBADMSG) {
		local_again(ff);
		take_write_state(ff);
	}
}

/* True if the feed's own files are where its state says. */
static bool local_has_entries(const struct fetcher_feed *ff)
{
	char *path = state_path(ff->fetcher->state, ff->feed->name, "entries");
	bool has = path && access(path, F_OK) == 0;
	free(path);
	return has || ff->state.version == 0;
}

void local_check(struct fetcher_feed *ff, bool force)
{
	struct stat st;
	char why[STATE_TEXT_MAX];
	fetcher_arm(ff->timer, ff->feed->refresh_ms);
	int fd = local_open(ff);
	int result = fd < 0 ? fd : 0;
	if (result == 0 && fstat(fd, &st) < 0)
		result = -errno;
	if (result == 0 && !S_ISREG(st.st_mode))
		result = -EINVAL;
	if (result < 0) {
		snprintf(why, sizeof(why), "%s: %s", ff->feed->file, strerror(-result));
		/* Say it once, not every time somebody looks. */
		if (ff->state.status != STATE_FAILED || strcmp(ff->state.error, why) != 0) {
			local_remember(&ff->state, &(struct stat){0});
			take_failed(ff, why);
		}
	} else if (force || !local_same(&ff->state, &st) || !local_has_entries(ff)) {
		local_read(ff, fd, &st);
	}
	if (fd >= 0)
		close(fd);
}

static void local_on_inotify(evutil_socket_t fd, short what, void *context)
{
	struct fetcher *f = context;
	char buffer[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;
	(void)what;
	while ((n = read(fd, buffer, sizeof(buffer))) > 0) {
		const struct inotify_event *event;
		for (char *p = buffer; p < buffer + n; p += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)(void *)p;
			for (size_t i = 0; i < f->count; i++) {
				struct fetcher_feed *ff = &f->feeds[i];
				bool overflow = event->mask & IN_Q_OVERFLOW;
				if (ff->feed->file &&
				    (overflow || (event->len > 0 &&
						  strcmp(event->name, local_leaf(ff->feed)) == 0)))
					fetcher_arm(ff->timer, LOCAL_SETTLE_MS);
			}
		}
	}
}

int local_watch(struct fetcher *f)
{
	f->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (f->inotify < 0)
		return -errno;
	for (size_t i = 0; i < f->options.folder_count; i++) {
		char path[64];
		/* The folder's parents need not be searchable for us. */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", f->options.folders[i].fd);
		if (inotify_add_watch(f->inotify, path,
				      IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE) < 0)
			log_warn("folder %s cannot be watched (%s): changed lists are seen at the "
				 "next refresh",
				 f->options.folders[i].path, strerror(errno));
	}
	f->inotify_event =
		event_new(f->options.base, f->inotify, EV_READ | EV_PERSIST, local_on_inotify, f);
	if (!f->inotify_event || event_add(f->inotify_event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

void local_unwatch(struct fetcher *f)
{
	if (f->inotify_event)
		event_free(f->inotify_event);
	f->inotify_event = NULL;
	if (f->inotify >= 0)
		close(f->inotify);
	f->inotify = -1;
}
