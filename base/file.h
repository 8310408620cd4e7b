/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are replaced, never edited: temporary name in the same folder, fsync, rename, fsync of
 * the folder. Leaf file.
 */
#ifndef BALEEN_BASE_FILE_H
#define BALEEN_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Write all of it or leave the old file as it is. 0 or -errno (-ENOSPC included). */
int file_replace(const char *path, const void *data, size_t size, mode_t mode);

/* In two steps, for streams: an fd on `path` + ".tmp.<pid>", then publish or abandon. */
int file_begin(const char *path, mode_t mode, char **temporary);
int file_publish(int fd, const char *temporary, const char *path); /* fsync, close, rename, fsync */
void file_abandon(int fd, const char *temporary);

/* Whole file with a bound; NUL-terminated behind size; free() it. -EFBIG over `max`. */
int file_read(const char *path, size_t max, char **out, size_t *size);

/* mkdir -p. 0 or -errno. */
int file_make_folder(const char *path, mode_t mode);

/* dirname(base_file)/path, unless path is absolute; malloc'd. */
char *file_relative_to(const char *base_file, const char *path);

#endif
