/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One feed's entries, sorted, on disk: what is kept of a fetched list, and what sets are merged
 * from. Immutable once published. Little-endian:
 *
 *   "BALEENF1" | u32 version | u32 crc of this header (with 0 here) | u64 entries |
 *   u64 octets of records | u32 crc of records | u32 0 | u64 time base | u64 0 | u64 0
 *   records (record.h): key, flags as domset.h, age = time base - first seen, in seconds
 *
 * An entry's first-seen time is carried over from the version before. CRCs are CRC32C.
 */
#ifndef BALEEN_FEEDS_FEEDFILE_H
#define BALEEN_FEEDS_FEEDFILE_H

#include "base/name.h"
#include "feeds/record.h"

#include <stddef.h>
#include <stdint.h>

/* ---- writing ---- */

struct feedfile_writer;

struct feedfile_change {
	uint64_t entries;
	uint64_t before;  /* entries of the version before; 0 if there was none */
	uint64_t added;	  /* new names, and names that are now listed in more ways */
	uint64_t removed; /* gone names, and names that are now listed in fewer ways */
};

/* Write beside `path` (its folder must exist); `previous`: the version before, or NULL. Whatever is
 * wrong with the version before, the new one is written: first-seen times begin anew then. */
int feedfile_begin(const char *path, const char *previous, uint64_t now_s,
		   struct feedfile_writer **out);
/* `flags` may carry FEED_ENTRY_CANCEL. In any order, as often as you like. */
int feedfile_add(struct feedfile_writer *w, const struct name *name, uint16_t flags);
/* Sort and write, without publishing. `added` (may be NULL) is called in key order. */
int feedfile_finish(struct feedfile_writer *w,
		    void (*added)(void *context, const uint8_t *key, size_t key_length,
				  uint16_t flags),
		    void *context, struct feedfile_change *out);
/* Under `path`, which may be another than at the beginning, in the same folder. Frees `w`. */
int feedfile_publish(struct feedfile_writer *w, const char *path);
void feedfile_abandon(struct feedfile_writer *w);

/* ---- reading ---- */

struct feedfile {
	int fd;
	uint64_t entries;
	uint64_t time_base;
	uint32_t crc; /* of the header: says which version this is */
	struct record_reader records;
};

/* Checks everything: -ENOENT, -EINVAL (no feed file, other version), -EBADMSG (damaged). */
int feedfile_open(const char *path, size_t buffer_bytes, struct feedfile *out);
void feedfile_close(struct feedfile *f);
/* 1 and f->records.now, 0 at the end, -errno. Rewind: record_reader_rewind(&f->records). */
static inline int feedfile_next(struct feedfile *f)
{
	return record_next(&f->records);
}
static inline uint64_t feedfile_first_seen(const struct feedfile *f)
{
	return f->time_base - f->records.now.extra;
}

/* Scan for one name: 1 found, 0 not, -errno. For explain. */
int feedfile_find(const char *path, const struct name *name, uint16_t *flags,
		  uint64_t *first_seen_s);

#endif
