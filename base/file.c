/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replacing files whole. Used by every process that may write; the caller owns temporary names and
 * buffers. Invariant: a path that readers know is only ever changed by rename(2) of a complete,
 * fsynced file, so a crash or a full disk leaves the old contents.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_READ_STEP ((size_t)64 << 10)

static int file_write_all(int fd, const void *data, size_t size)
{
	const char *p = data;
	while (size > 0) {
		ssize_t n = write(fd, p, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

/* The folder of `path`, malloc'd: "" + name gives ".". */
static char *file_folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return strdup(".");
	if (slash == path)
		return strdup("/");
	return strndup(path, (size_t)(slash - path));
}

static int file_sync_folder(const char *path)
{
	char *folder = file_folder_of(path);
	if (!folder)
		return -ENOMEM;
	int result = 0;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	if (fd < 0)
		return -errno;
	/* Some file systems cannot sync a folder and say so; the rename is still atomic there. */
	if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
		result = -errno;
	close(fd);
	return result;
}

int file_begin(const char *path, mode_t mode, char **temporary)
{
	if (asprintf(temporary, "%s.tmp.%ld", path, (long)getpid()) < 0) {
		*temporary = NULL;
		return -ENOMEM;
	}
	/* The name is ours alone (pid), so what stands there is left from a dead process with the
	 * same pid. Never follow a link that somebody put there. */
	if (unlink(*temporary) < 0 && errno != ENOENT)
		goto fail;
	int fd = open(*temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		goto fail;
	return fd;
fail:;
	int error = errno;
	free(*temporary);
	*temporary = NULL;
	return -error;
}

int file_publish(int fd, const char *temporary, const char *path)
{
	int result = 0;
	if (fsync(fd) < 0)
		result = -errno;
	/* After a failed close the octets may not be there (NFS, quotas). */
	if (close(fd) < 0 && result == 0)
		result = -errno;
	if (result == 0 && rename(temporary, path) < 0)
		result = -errno;
	if (result < 0) {
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): an open fd has a name */
		unlink(temporary);
		return result;
	}
	return file_sync_folder(path);
}

void file_abandon(int fd, const char *temporary)
{
	if (fd >= 0)
		close(fd);
	if (temporary)
		unlink(temporary);
}

int file_replace(const char *path, const void *data, size_t size, mode_t mode)
{
	char *temporary;
	int fd = file_begin(path, mode, &temporary);
	if (fd < 0)
		return fd;
	int result = file_write_all(fd, data, size);
	if (result < 0)
		file_abandon(fd, temporary);
	else
		result = file_publish(fd, temporary, path);
	free(temporary);
	return result;
}

int file_read(const char *path, size_t max, char **out, size_t *size)
{
	*out = NULL;
	*size = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = 0;
	char *data = NULL;
	size_t room = 0, at = 0;
	struct stat st;
	if (fstat(fd, &st) < 0) {
		result = -errno;
		goto done;
	}
	if (S_ISDIR(st.st_mode)) {
		result = -EISDIR;
		goto done;
	}
	/* st_size is a hint only: a pipe has none, and a file may grow while it is read. */
	if (st.st_size > 0 && (uint64_t)st.st_size <= max)
		room = (size_t)st.st_size + 1;
	for (;;) {
		if (!data || at == room) {
			size_t more = data   ? room + room / 2 + FILE_READ_STEP
				      : room ? room
					     : FILE_READ_STEP;
			char *grown = realloc(data, more + 1);
			if (!grown) {
				result = -ENOMEM;
				goto done;
			}
			data = grown;
			room = more;
		}
		ssize_t n = read(fd, data + at, room - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			result = -errno;
			goto done;
		}
		if (n == 0)
			break;
		at += (size_t)n;
		if (at > max) {
			result = -EFBIG;
			goto done;
		}
	}
	data[at] = '\0';
	*out = data;
	*size = at;
	data = NULL;
done:
	free(data);
	close(fd);
	return result;
}

int file_make_folder(const char *path, mode_t mode)
{
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	int result = 0;
	for (char *p = copy + 1; *copy && result == 0; p++) {
		char here = *p;
		if (here != '/' && here != '\0')
			continue;
		*p = '\0';
		struct stat st;
		if (mkdir(copy, mode) < 0 && errno != EEXIST)
			result = -errno;
		else if (here == '\0' && stat(copy, &st) == 0 && !S_ISDIR(st.st_mode))
			result = -ENOTDIR;
		*p = here;
		if (here == '\0')
			break;
	}
	free(copy);
	return result;
}

char *file_relative_to(const char *base_file, const char *path)
{
	if (path[0] == '/')
		return strdup(path);
	const char *slash = strrchr(base_file, '/');
	if (!slash)
		return strdup(path);
	char *out;
	if (asprintf(&out, "%.*s/%s", (int)(slash - base_file), base_file, path) < 0)
		return NULL;
	return out;
}
