/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compile child; see the header. Owned by the supervisor, which gives it SNAPSHOT_LIMIT_S
 * seconds. Invariant: the running generation does not notice whatever happens here.
 */
#include "core/process/snapshot.h"

#include "base/diag.h"
#include "base/source.h"
#include "core/generation.h"
#include "core/policy_tests.h"
#include "core/process/title.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union snapshot_control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

/* 0, or -ENAMETOOLONG naming what did not fit. */
static int facts_fill(struct facts *f, const struct config *c, struct diags *d)
{
	memset(f, 0, sizeof(*f));
	for (size_t i = 0; i < c->listener_count; i++)
		f->listeners[i] = c->listeners[i].endpoint;
	f->listener_count = (uint32_t)c->listener_count;
	f->workers = c->workers;
	f->cache_bytes = c->cache_bytes;
	f->user_given = c->user_given;
	f->admin_enabled = c->admin_enabled;
	f->admin_listen = c->admin_listen;
	const struct {
		const char *key, *from;
		char *to;
		size_t size;
	} texts[] = {
		{"user", c->user, f->user, sizeof(f->user)},
		{"state", c->state, f->state, sizeof(f->state)},
		{"control", c->control, f->control, sizeof(f->control)},
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if ((size_t)snprintf(texts[i].to, texts[i].size, "%s", texts[i].from) <
		    texts[i].size)
			continue;
		diag_error(d, c->path, 0, 0, "%s: \"%s\" is too long (at most %zu octets)",
			   texts[i].key, texts[i].from, texts[i].size - 1);
		return -ENAMETOOLONG;
	}
	return 0;
}

static int snapshot_compile(const char *config_path, struct snapshot *s, struct diags *d)
{
	struct source *source = source_disk();
	struct generation *g = NULL;
	if (!source)
		return -ENOMEM;
	int r = generation_load(source, config_path, NULL, 0, d, &g);
	if (r == 0)
		policy_lint(g->policy, d);
	if (r == 0)
		r = policy_tests_run(g, NULL, d, NULL);
	if (r == 0)
		r = facts_fill(&s->facts, &g->config, d);
	if (r == 0)
		r = source_seal(source, &s->memfd);
	if (r < 0 && d->errors == 0)
		diag_error(d, config_path, 0, 0, "cannot make a snapshot: %s", strerror(-r));
	return r;
}

/* Findings as text, cut at a line's end where there are too many. */
static void snapshot_text(struct diags *d, char out[SNAPSHOT_TEXT_MAX])
{
	static const char more[] = "... (more: run `baleen check`)\n";
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	out[0] = '\0';
	if (!stream)
		return;
	diag_sort(d);
	diag_print(d, stream);
	fclose(stream);
	size_t room = SNAPSHOT_TEXT_MAX - sizeof(more);
	bool cut = size > room;
	if (cut) {
		size = room;
		while (size > 0 && text[size - 1] != '\n')
			size--;
	}
	memcpy(out, text, size);
	out[size] = '\0';
	if (cut)
		strcat(out, more);
	free(text);
}

static void snapshot_send(int fd, const struct snapshot *s)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)s, .iov_len = sizeof(*s)};
	struct msghdr h = {.msg_iov = &part, .msg_iovlen = 1};
	union snapshot_control control;

	memset(&control, 0, sizeof(control));
	if (s->memfd >= 0) {
		h.msg_control = &control;
		h.msg_controllen = sizeof(control.room);
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &s->memfd, sizeof(int));
	}
	while (sendmsg(fd, &h, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static _Noreturn void snapshot_child(const char *config_path, int fd)
{
	static struct snapshot s;
	struct diags d;
	sigset_t none;

	title_set("check");
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGALRM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	alarm(SNAPSHOT_LIMIT_S);
	diag_init(&d);
	s.memfd = -1;
	s.status = snapshot_compile(config_path, &s, &d);
	snapshot_text(&d, s.text);
	snapshot_send(fd, &s);
	_exit(0);
}

int snapshot_start(const char *config_path, int close_fd, pid_t *pid, int *fd)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid_t child = fork();
	if (child < 0) {
		int r = -errno;
		close(pair[0]);
		close(pair[1]);
		return r;
	}
	if (child == 0) {
		close(pair[0]);
		if (close_fd >= 0)
			close(close_fd);
		snapshot_child(config_path, pair[1]);
	}
	close(pair[1]);
	*pid = child;
	*fd = pair[0];
	return 0;
}

void snapshot_finish(int fd, struct snapshot *out)
{
	struct iovec part = {.iov_base = out, .iov_len = sizeof(*out)};
	union snapshot_control control;
	struct msghdr h = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control.room)};
	ssize_t n;
	int memfd = -1;

	do
		n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	close(fd);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&h) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&memfd, CMSG_DATA(c), sizeof(int));
	if (n != (ssize_t)sizeof(*out) || (out->status == 0 && memfd < 0)) {
		if (memfd >= 0)
			close(memfd);
		memset(out, 0, sizeof(*out));
		out->status = -ECHILD;
		out->memfd = -1;
		snprintf(out->text, sizeof(out->text),
			 "the process that reads the configuration died or took longer than %d s\n",
			 SNAPSHOT_LIMIT_S);
		return;
	}
	out->memfd = memfd;
	out->text[sizeof(out->text) - 1] = '\0';
}
