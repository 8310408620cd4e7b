/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer and reader of feed files. The fetcher and `feeds compile` write; they, `explain` and
 * `feeds show` read. A writer owns its sorter and its temporary file. Invariant: what stands under
 * a published name is complete, fsynced and checks out against its CRCs.
 */
#include "feeds/feedfile.h"

#include "base/file.h"
#include "base/hash.h"
#include "feeds/formats/format.h"
#include "feeds/sort.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FEEDFILE_MAGIC	 "BALEENF1"
#define FEEDFILE_VERSION 1
#define FEEDFILE_HEADER	 64
#define FEEDFILE_BUFFER	 ((size_t)256 << 10)

enum {
	AT_VERSION = 8,
	AT_HEADER_CRC = 12,
	AT_ENTRIES = 16,
	AT_OCTETS = 24,
	AT_RECORDS_CRC = 32,
	AT_TIME_BASE = 40,
};

struct feedfile_writer {
	struct sort *sort;
	int fd;
	char *temporary;
	char *previous;
	uint64_t now_s;
};

static void put_number(uint8_t *p, uint64_t v, unsigned octets)
{
	for (unsigned i = 0; i < octets; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get_number(const uint8_t *p, unsigned octets)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < octets; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

int feedfile_begin(const char *path, const char *previous, uint64_t now_s,
		   struct feedfile_writer **out)
{
	struct feedfile_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->fd = -1;
	w->now_s = now_s;
	int result = -ENOMEM;
	char *folder = file_relative_to(path, ".");
	if (!folder || (previous && !(w->previous = strdup(previous))))
		goto fail;
	result = sort_new(folder, &w->sort);
	if (result < 0)
		goto fail;
	w->fd = file_begin(path, 0640, &w->temporary);
	if (w->fd < 0) {
		result = w->fd;
		goto fail;
	}
	free(folder);
	*out = w;
	return 0;
fail:
	free(folder);
	feedfile_abandon(w);
	return result;
}

int feedfile_add(struct feedfile_writer *w, const struct name *name, uint16_t flags)
{
	uint8_t key[KEY_MAX];
	size_t length = key_from_wire(name->wire, name->length, name->labels, key);
	if (flags & FEED_ENTRY_CANCEL)
		return sort_add(w->sort, key, length, 0, flags & (uint16_t)~FEED_ENTRY_CANCEL);
	return sort_add(w->sort, key, length, flags, 0);
}

/* The version before, stepped through beside the new one. */
struct feedfile_before {
	struct feedfile file;
	bool open, at_record;
};

static void feedfile_before_step(struct feedfile_before *b)
{
	b->at_record = feedfile_next(&b->file) == 1;
}

/* Step to `key`, counting what is passed over as gone. True if it stands there. */
static bool feedfile_before_seek(struct feedfile_before *b, const uint8_t *key, size_t length,
				 struct feedfile_change *change)
{
	while (b->open && b->at_record) {
		const struct record *now = &b->file.records.now;
		int order = key_compare(now->key, now->key_length, key, length);
		if (order >= 0)
			return order == 0;
		change->removed++;
		feedfile_before_step(b);
	}
	return false;
}

int feedfile_finish(struct feedfile_writer *w,
		    void (*added)(void *context, const uint8_t *key, size_t key_length,
				  uint16_t flags),
		    void *context, struct feedfile_change *out)
{
	*out = (struct feedfile_change){0};
	struct feedfile_before before = {0};
	struct record_writer records;
	int result = record_writer_init(&records, w->fd, FEEDFILE_HEADER, FEEDFILE_BUFFER);
	if (result == 0)
		result = sort_finish(w->sort);
	if (result < 0)
		goto done;
	if (w->previous && feedfile_open(w->previous, FEEDFILE_BUFFER, &before.file) == 0) {
		before.open = true;
		out->before = before.file.entries;
		feedfile_before_step(&before);
	}
	const uint8_t *key;
	size_t length;
	uint16_t flags;
	while ((result = sort_next(w->sort, &key, &length, &flags)) == 1) {
		uint64_t seen = w->now_s;
		uint16_t had = 0;
		if (feedfile_before_seek(&before, key, length, out)) {
			had = before.file.records.now.flags;
			seen = feedfile_first_seen(&before.file);
			feedfile_before_step(&before);
		}
		out->added += (flags & ~had) != 0;
		out->removed += (had & ~flags) != 0;
		if ((flags & ~had) && added)
			added(context, key, length, flags);
		/* A clock that stepped back must not make a time of the future wrap around. */
		result = record_write(&records, key, length, flags,
				      seen < w->now_s ? w->now_s - seen : 0);
		if (result < 0)
			goto done;
		out->entries++;
	}
	if (result < 0)
		goto done;
	for (; before.open && before.at_record; feedfile_before_step(&before))
		out->removed++;
	result = record_writer_flush(&records);
	if (result < 0)
		goto done;
	uint8_t header[FEEDFILE_HEADER] = FEEDFILE_MAGIC;
	put_number(header + AT_VERSION, FEEDFILE_VERSION, 4);
	put_number(header + AT_ENTRIES, out->entries, 8);
	put_number(header + AT_OCTETS, (uint64_t)records.at - FEEDFILE_HEADER, 8);
	put_number(header + AT_RECORDS_CRC, records.crc, 4);
	put_number(header + AT_TIME_BASE, w->now_s, 8);
	put_number(header + AT_HEADER_CRC, hash_crc32c(0, header, sizeof(header)), 4);
	ssize_t n = pwrite(w->fd, header, sizeof(header), 0);
	if (n != (ssize_t)sizeof(header))
		result = n < 0 ? -errno : -EIO;
done:
	record_writer_fini(&records);
	if (before.open)
		feedfile_close(&before.file);
	sort_free(w->sort);
	w->sort = NULL;
	return result;
}

static void feedfile_writer_free(struct feedfile_writer *w)
{
	sort_free(w->sort);
	free(w->temporary);
	free(w->previous);
	free(w);
}

int feedfile_publish(struct feedfile_writer *w, const char *path)
{
	int result = file_publish(w->fd, w->temporary, path);
	feedfile_writer_free(w);
	return result;
}

void feedfile_abandon(struct feedfile_writer *w)
{
	if (!w)
		return;
	if (w->temporary)
		file_abandon(w->fd, w->temporary);
	feedfile_writer_free(w);
}

static int feedfile_check_records(int fd, uint64_t octets, uint32_t expected)
{
	uint8_t *buffer = malloc(FEEDFILE_BUFFER);
	if (!buffer)
		return -ENOMEM;
	uint32_t crc = 0;
	uint64_t at = 0;
	int result = 0;
	while (at < octets) {
		ssize_t n = pread(fd, buffer, FEEDFILE_BUFFER, (off_t)(FEEDFILE_HEADER + at));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			result = n < 0 ? -errno : -EBADMSG;
			break;
		}
		crc = hash_crc32c(crc, buffer, (size_t)n);
		at += (uint64_t)n;
	}
	free(buffer);
	return result < 0 ? result : crc == expected ? 0 : -EBADMSG;
}

int feedfile_open(const char *path, size_t buffer_bytes, struct feedfile *out)
{
	*out = (struct feedfile){.fd = open(path, O_RDONLY | O_CLOEXEC)};
	if (out->fd < 0)
		return -errno;
	int result = -EINVAL;
	uint8_t header[FEEDFILE_HEADER];
	struct stat st;
	if (fstat(out->fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    pread(out->fd, header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    memcmp(header, FEEDFILE_MAGIC, 8) != 0 ||
	    get_number(header + AT_VERSION, 4) != FEEDFILE_VERSION)
		goto fail;
	result = -EBADMSG;
	out->crc = (uint32_t)get_number(header + AT_HEADER_CRC, 4);
	put_number(header + AT_HEADER_CRC, 0, 4);
	if (hash_crc32c(0, header, sizeof(header)) != out->crc)
		goto fail;
	uint64_t octets = get_number(header + AT_OCTETS, 8);
	if (octets != (uint64_t)st.st_size - FEEDFILE_HEADER)
		goto fail;
	result = feedfile_check_records(out->fd, octets,
					(uint32_t)get_number(header + AT_RECORDS_CRC, 4));
	if (result < 0)
		goto fail;
	out->entries = get_number(header + AT_ENTRIES, 8);
	out->time_base = get_number(header + AT_TIME_BASE, 8);
	result = record_reader_init(&out->records, out->fd, FEEDFILE_HEADER, st.st_size,
				    buffer_bytes);
	if (result < 0)
		goto fail;
	return 0;
fail:
	close(out->fd);
	out->fd = -1;
	return result;
}

void feedfile_close(struct feedfile *f)
{
	record_reader_fini(&f->records);
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

int feedfile_find(const char *path, const struct name *name, uint16_t *flags,
		  uint64_t *first_seen_s)
{
	uint8_t key[KEY_MAX];
	size_t length = key_from_wire(name->wire, name->length, name->labels, key);
	struct feedfile f;
	int result = feedfile_open(path, FEEDFILE_BUFFER, &f);
	if (result < 0)
		return result;
	while ((result = feedfile_next(&f)) == 1) {
		const struct record *now = &f.records.now;
		int order = key_compare(now->key, now->key_length, key, length);
		if (order > 0)
			result = 0;
		if (order >= 0)
			break;
	}
	if (result == 1) {
		*flags = f.records.now.flags;
		*first_seen_s = feedfile_first_seen(&f);
	}
	feedfile_close(&f);
	return result;
}
