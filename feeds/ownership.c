/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ownership of the feed and set folders, by locks that the kernel drops with the process. Runs in
 * fetchers. Invariant: whoever is inside enter/leave holds byte 0 and the highest ticket.
 */
#include "feeds/ownership.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define OWNERSHIP_LIFE	  4096
#define OWNERSHIP_STEP_NS 20000000

static int ownership_lock(struct ownership *o, short type, uint64_t byte)
{
	struct flock lock = {.l_type = type,
			     .l_whence = SEEK_SET,
			     .l_start = (off_t)byte,
			     .l_len = 1};
	return fcntl(o->fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static int ownership_begin(struct ownership *o, int wait_ms)
{
	int64_t until = clock_monotonic_ms() + wait_ms;
	const struct timespec step = {0, OWNERSHIP_STEP_NS};
	int result;
	while ((result = ownership_lock(o, F_WRLCK, 0)) == -EAGAIN || result == -EACCES) {
		if (clock_monotonic_ms() >= until)
			return -EBUSY;
		nanosleep(&step, NULL);
	}
	return result;
}

static uint64_t ownership_ticket(const struct ownership *o)
{
	uint64_t ticket = 0;
	if (pread(o->fd, &ticket, sizeof(ticket), 0) != (ssize_t)sizeof(ticket))
		return 0;
	return ticket & 0x7fffffffffff; /* a damaged file must not overflow off_t */
}

int ownership_claim(struct ownership *o, const char *path, int wait_ms)
{
	if (o->fd < 0) {
		o->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
		if (o->fd < 0)
			return -errno;
	}
	int result = ownership_begin(o, wait_ms);
	if (result < 0)
		return result;
	if (o->ticket)
		ownership_lock(o, F_UNLCK, OWNERSHIP_LIFE + o->ticket);
	o->ticket = ownership_ticket(o) + 1;
	if (pwrite(o->fd, &o->ticket, sizeof(o->ticket), 0) != (ssize_t)sizeof(o->ticket))
		result = errno ? -errno : -EIO;
	else
		result = ownership_lock(o, F_WRLCK, OWNERSHIP_LIFE + o->ticket);
	ownership_leave(o);
	return result;
}

int ownership_enter(struct ownership *o, int wait_ms)
{
	int result = ownership_begin(o, wait_ms);
	if (result < 0)
		return result;
	if (ownership_ticket(o) == o->ticket)
		return 0;
	ownership_leave(o);
	return -ESTALE;
}

void ownership_leave(struct ownership *o)
{
	ownership_lock(o, F_UNLCK, 0);
}

bool ownership_orphaned(struct ownership *o)
{
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)(OWNERSHIP_LIFE + ownership_ticket(o)),
		.l_len = 1,
	};
	return fcntl(o->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

void ownership_release(struct ownership *o)
{
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
	o->ticket = 0;
}
