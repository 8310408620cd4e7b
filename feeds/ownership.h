/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of several fetchers (two generations, during a reload) may write. The newest that claimed
 * is the owner; every write happens between enter and leave. feeds.lock holds the owner's ticket;
 * open file description locks on byte 0 (a write is going on) and on byte 4096 + ticket (that owner
 * lives).
 */
#ifndef BALEEN_FEEDS_OWNERSHIP_H
#define BALEEN_FEEDS_OWNERSHIP_H

#include <stdbool.h>
#include <stdint.h>

struct ownership {
	int fd;
	uint64_t ticket;
};

/* Become the owner; waits for a write that is going on, at most `wait_ms`. 0, -EBUSY, -errno. */
int ownership_claim(struct ownership *o, const char *path, int wait_ms);
/* 0: write now. -ESTALE: a newer fetcher has claimed. -EBUSY: another writes for too long. */
int ownership_enter(struct ownership *o, int wait_ms);
void ownership_leave(struct ownership *o);
/* True if whoever claimed last is gone: claim again. */
bool ownership_orphaned(struct ownership *o);
/* Let go for good. */
void ownership_release(struct ownership *o);

#endif
