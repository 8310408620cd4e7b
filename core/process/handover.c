/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From supervisor to template over exec. The template is exec'd afresh, so that it carries nothing
 * of an older generation: no plugin code, no heap, no layout of addresses. Invariant: exactly the
 * descriptors named in the handover (and the standard ones) cross the exec.
 */
#include "core/process/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HANDOVER_MAGIC 0x484f5652U
/* Room for the title, which is written over the arguments; see title.c. */
#define HANDOVER_ROOM "................................................................"

static void handover_set(int fd, int flags)
{
	if (fd >= 0)
		(void)fcntl(fd, F_SETFD, flags);
}

static void handover_walk(const struct handover *h, int flags)
{
	const int single[] = {h->shm, h->snapshot, h->link, h->lifeline, h->control, h->admin};
	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++)
		handover_set(single[i], flags);
	for (unsigned l = 0; l < h->facts.listener_count; l++) {
		for (unsigned w = 0; w < h->facts.workers; w++) {
			handover_set(h->listeners[l].udp[w], flags);
			handover_set(h->listeners[l].udp_send[w], flags);
		}
		handover_set(h->listeners[l].tcp, flags);
	}
}

static int handover_memfd(const struct handover *h)
{
	struct handover copy = *h;
	copy.magic = HANDOVER_MAGIC;
	copy.size = sizeof(copy);
	int fd = memfd_create("baleen-handover", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, &copy, sizeof(copy)) != (ssize_t)sizeof(copy)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

int handover_exec(const struct handover *h)
{
	int fd = handover_memfd(h);
	if (fd < 0)
		return fd;
	pid_t pid = fork();
	if (pid < 0) {
		int r = -errno;
		close(fd);
		return r;
	}
	if (pid == 0) {
		char number[16], name[] = "baleen", argument[] = HANDOVER_ARGUMENT,
				 room[] = HANDOVER_ROOM;
		char *arguments[] = {name, argument, number, room, NULL};
		sigset_t none;
		snprintf(number, sizeof(number), "%d", fd);
		handover_set(fd, 0);
		handover_walk(h, 0);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execv("/proc/self/exe", arguments);
		_exit(127);
	}
	close(fd);
	return pid;
}

int handover_read(const char *argument, struct handover *out)
{
	char *end;
	long fd = strtol(argument, &end, 10);
	if (*end || fd < 3 || fd > INT_MAX)
		return -EINVAL;
	ssize_t n = pread((int)fd, out, sizeof(*out), 0);
	close((int)fd);
	if (n != (ssize_t)sizeof(*out) || out->magic != HANDOVER_MAGIC ||
	    out->size != sizeof(*out) || out->facts.listener_count > CONFIG_LISTENERS_MAX ||
	    out->facts.workers > CONFIG_WORKERS_MAX)
		return -EINVAL;
	handover_walk(out, FD_CLOEXEC);
	return 0;
}
