/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a generation's inputs come from: either the disk, recording every file that was read, or a
 * sealed memfd that holds exactly those files (the snapshot). The same loading code runs on both,
 * so a worker restarted at night never sees half-edited files. Owned by the loader.
 *
 * Answers that were failures, and folder listings, are recorded and sealed as well.
 *
 * Snapshot layout: header {u32 magic, u32 version, u64 count, u64 total size, u64 0}, then per
 * answer {u32 path length, u16 kind, u16 errno, u64 data size, path, NUL, data, NUL, padding to
 * 16}. All little-endian.
 */
#ifndef BALEEN_BASE_SOURCE_H
#define BALEEN_BASE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#define SOURCE_FILE_MAX ((size_t)256 << 20)

struct source;

struct source_file {
	const char *path;
	const uint8_t *data; /* NUL-terminated behind size; valid as long as the source */
	size_t size;
};

struct source *source_disk(void);
/* -EINVAL if it is not a snapshot or not sealed. The descriptor stays the caller's. */
int source_snapshot(int memfd, struct source **out);
void source_free(struct source *s);

/* Read a file whole; asked again, the same octets come back. -ENOENT, -EACCES, -EFBIG, -EISDIR.. */
int source_read(struct source *s, const char *path, struct source_file *out);

/* The names (not paths) of the regular files in `dir` that end in `suffix`, sorted bytewise,
 * without dot files. The listing itself is recorded. Free with source_list_free. */
int source_list(struct source *s, const char *dir, const char *suffix, char ***out, size_t *count);
void source_list_free(char **names, size_t count);

/* Seal everything read so far (by a disk source) into a new memfd. */
int source_seal(struct source *s, int *memfd);

#endif
