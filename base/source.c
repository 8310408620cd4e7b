/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs of a generation, from the disk or from a sealed memfd. The loader (check, explain, the
 * compile child, the template) owns a source and with it the octets of every file. Invariant: what
 * was asked once is answered the same way for ever, failures and folder listings included, and a
 * snapshot answers exactly what the disk source that sealed it answered.
 */
#include "base/source.h"

#include "base/cursor.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE_MAGIC	 0x43524c42u /* "BLRC" */
#define SOURCE_VERSION	 1
#define SOURCE_ALIGN	 16
#define SOURCE_COUNT_MAX 65536
#define SOURCE_LIST_MAX	 4096
#define SOURCE_SEALS	 (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

enum source_kind { SOURCE_FILE, SOURCE_LIST };

/* One answer: a file's octets, a listing's names each with its NUL, or the error that came. */
struct source_entry {
	char *path; /* of a listing: folder, slash, star, suffix */
	uint8_t *data;
	size_t size;
	uint16_t kind;
	uint16_t error; /* errno, 0: none */
};

struct source {
	struct source_entry *entries;
	size_t count, room;
	bool sealed; /* a snapshot: its mapping owns paths and data; else the disk */
	uint8_t *map;
	size_t map_size;
};

struct source *source_disk(void)
{
	return calloc(1, sizeof(struct source));
}

void source_free(struct source *s)
{
	if (!s)
		return;
	for (size_t i = 0; !s->sealed && i < s->count; i++) {
		free(s->entries[i].path);
		free(s->entries[i].data);
	}
	if (s->sealed)
		munmap(s->map, s->map_size);
	free(s->entries);
	free(s);
}

static const struct source_entry *source_find(const struct source *s, enum source_kind kind,
					      const char *path)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->entries[i].kind == kind && strcmp(s->entries[i].path, path) == 0)
			return &s->entries[i];
	return NULL;
}

/* Room for one more entry; its fields are the caller's to fill. */
static struct source_entry *source_next(struct source *s)
{
	if (s->count == SOURCE_COUNT_MAX)
		return NULL;
	if (s->count == s->room) {
		size_t room = s->room ? s->room * 2 : 16;
		struct source_entry *grown = realloc(s->entries, room * sizeof(*grown));
		if (!grown)
			return NULL;
		s->entries = grown;
		s->room = room;
	}
	return &s->entries[s->count];
}

/* Record an answer. Takes `data`, frees it on failure. */
static int source_record(struct source *s, enum source_kind kind, const char *path, int error,
			 char *data, size_t size)
{
	struct source_entry *e = source_next(s);
	char *copy = e ? strdup(path) : NULL;
	if (!copy) {
		free(data);
		return -ENOMEM;
	}
	*e = (struct source_entry){.path = copy,
				   .data = (uint8_t *)data,
				   .size = size,
				   .kind = (uint16_t)kind,
				   .error = (uint16_t)-error};
	s->count++;
	return 0;
}

static int source_read_disk(struct source *s, const char *path)
{
	char *data = NULL;
	size_t size = 0;
	struct stat st;
	int result = 0;
	/* Asked before it is opened: opening a FIFO would wait for its writer. */
	if (stat(path, &st) < 0)
		result = -errno;
	else if (S_ISDIR(st.st_mode))
		result = -EISDIR;
	else if (!S_ISREG(st.st_mode))
		result = -EINVAL;
	else
		result = file_read(path, SOURCE_FILE_MAX, &data, &size);
	return source_record(s, SOURCE_FILE, path, result, data, size);
}

int source_read(struct source *s, const char *path, struct source_file *out)
{
	const struct source_entry *e = source_find(s, SOURCE_FILE, path);
	if (!e && s->sealed)
		return -ENOENT;
	if (!e) {
		int result = source_read_disk(s, path);
		if (result < 0)
			return result;
		e = &s->entries[s->count - 1];
	}
	if (e->error)
		return -(int)e->error;
	*out = (struct source_file){.path = e->path, .data = e->data, .size = e->size};
	return 0;
}

/* ---- listings ---- */

void source_list_free(char **names, size_t count)
{
	for (size_t i = 0; names && i < count; i++)
		free(names[i]);
	free(names);
}

static int source_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Regular files only; a link that leads nowhere is listed too, so that reading it says so. */
static bool source_is_wanted(int folder, const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);
	if (name[0] == '.' || n < m || strcmp(name + n - m, suffix) != 0)
		return false;
	struct stat st;
	return fstatat(folder, name, &st, 0) < 0 || S_ISREG(st.st_mode);
}

/* The names in `dir`, sorted, each with its NUL, in one block. */
static int source_list_disk(const char *dir, const char *suffix, char **data, size_t *size)
{
	DIR *folder = opendir(dir);
	if (!folder)
		return -errno;
	int result = 0;
	size_t count = 0, total = 0;
	char **names = calloc(SOURCE_LIST_MAX, sizeof(*names));
	if (!names) {
		result = -ENOMEM;
		goto out;
	}
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(folder);
		if (!entry) {
			result = -errno;
			break;
		}
		if (!source_is_wanted(dirfd(folder), entry->d_name, suffix))
			continue;
		if (count == SOURCE_LIST_MAX) {
			result = -E2BIG;
			break;
		}
		names[count] = strdup(entry->d_name);
		if (!names[count]) {
			result = -ENOMEM;
			break;
		}
		total += strlen(names[count]) + 1;
		count++;
	}
	if (result < 0)
		goto out;
	qsort(names, count, sizeof(*names), source_order);
	char *block = malloc(total + 1);
	if (!block) {
		result = -ENOMEM;
		goto out;
	}
	size_t at = 0;
	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(names[i]) + 1;
		memcpy(block + at, names[i], n);
		at += n;
	}
	block[at] = '\0';
	*data = block;
	*size = total;
out:
	source_list_free(names, count);
	closedir(folder);
	return result;
}

/* A listing's block as an array of copies. */
static int source_list_split(const struct source_entry *e, char ***out, size_t *count)
{
	size_t n = 0;
	for (size_t i = 0; i < e->size; i++)
		n += e->data[i] == '\0';
	char **names = calloc(n + 1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	const char *p = (const char *)e->data;
	for (size_t i = 0; i < n; i++) {
		names[i] = strdup(p);
		if (!names[i]) {
			source_list_free(names, i);
			return -ENOMEM;
		}
		p += strlen(p) + 1;
	}
	*out = names;
	*count = n;
	return 0;
}

int source_list(struct source *s, const char *dir, const char *suffix, char ***out, size_t *count)
{
	char *key;
	if (asprintf(&key, "%s/*%s", dir, suffix) < 0)
		return -ENOMEM;
	int result = 0;
	const struct source_entry *e = source_find(s, SOURCE_LIST, key);
	if (!e && s->sealed) {
		result = -ENOENT;
	} else if (!e) {
		char *data = NULL;
		size_t size = 0;
		int error = source_list_disk(dir, suffix, &data, &size);
		result = source_record(s, SOURCE_LIST, key, error, data, size);
		if (result == 0)
			e = &s->entries[s->count - 1];
	}
	free(key);
	if (result < 0)
		return result;
	return e->error ? -(int)e->error : source_list_split(e, out, count);
}

/* ---- the snapshot ---- */

static void source_put_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void source_put_u32(uint8_t *p, uint32_t v)
{
	source_put_u16(p, (uint16_t)v);
	source_put_u16(p + 2, (uint16_t)(v >> 16));
}

static void source_put_u64(uint8_t *p, uint64_t v)
{
	source_put_u32(p, (uint32_t)v);
	source_put_u32(p + 4, (uint32_t)(v >> 32));
}

static uint64_t source_get(struct cursor *c, unsigned octets)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < octets; i++)
		v |= (uint64_t)cursor_u8(c) << 8 * i;
	return v;
}

/* What an entry takes in the file: head, path, NUL, data, NUL, padding. */
static size_t source_entry_size(size_t path_length, size_t data_size)
{
	size_t n = SOURCE_ALIGN + path_length + 1 + data_size + 1;
	return (n + SOURCE_ALIGN - 1) / SOURCE_ALIGN * SOURCE_ALIGN;
}

int source_seal(struct source *s, int *memfd)
{
	if (s->sealed)
		return -EINVAL;
	size_t total = 2 * SOURCE_ALIGN;
	for (size_t i = 0; i < s->count; i++)
		total += source_entry_size(strlen(s->entries[i].path), s->entries[i].size);

	int fd = memfd_create("baleen-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int result = 0;
	uint8_t *map = MAP_FAILED;
	if (ftruncate(fd, (off_t)total) < 0)
		goto fail;
	map = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		goto fail;
	source_put_u32(map, SOURCE_MAGIC);
	source_put_u32(map + 4, SOURCE_VERSION);
	source_put_u64(map + 8, s->count);
	source_put_u64(map + 16, total);
	uint8_t *p = map + 2 * SOURCE_ALIGN;
	for (size_t i = 0; i < s->count; i++) {
		const struct source_entry *e = &s->entries[i];
		size_t path_length = strlen(e->path);
		source_put_u32(p, (uint32_t)path_length);
		source_put_u16(p + 4, e->kind);
		source_put_u16(p + 6, e->error);
		source_put_u64(p + 8, e->size);
		memcpy(p + SOURCE_ALIGN, e->path, path_length + 1);
		if (e->size > 0)
			memcpy(p + SOURCE_ALIGN + path_length + 1, e->data, e->size);
		p += source_entry_size(path_length, e->size);
	}
	munmap(map, total);
	map = MAP_FAILED;
	if (fcntl(fd, F_ADD_SEALS, SOURCE_SEALS | F_SEAL_SEAL) < 0)
		goto fail;
	*memfd = fd;
	return 0;
fail:
	result = -errno;
	if (map != MAP_FAILED)
		munmap(map, total);
	close(fd);
	return result;
}

/* Index the mapping: entries point into it. */
static int source_index(struct source *s)
{
	struct cursor c = cursor_make(s->map, s->map_size);
	uint64_t magic = source_get(&c, 4);
	uint64_t version = source_get(&c, 4);
	uint64_t count = source_get(&c, 8);
	uint64_t total = source_get(&c, 8);
	cursor_skip(&c, 8);
	if (!cursor_ok(&c) || magic != SOURCE_MAGIC || version != SOURCE_VERSION ||
	    total != s->map_size || count > SOURCE_COUNT_MAX)
		return -EINVAL;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t path_length = source_get(&c, 4);
		uint64_t kind = source_get(&c, 2);
		uint64_t error = source_get(&c, 2);
		uint64_t size = source_get(&c, 8);
		if (!cursor_ok(&c) || size > s->map_size)
			return -EINVAL;
		const uint8_t *path = cursor_take(&c, path_length + 1);
		const uint8_t *data = cursor_take(&c, size + 1);
		size_t whole = source_entry_size(path_length, size);
		cursor_skip(&c, whole - (SOURCE_ALIGN + path_length + 1 + size + 1));
		if (!cursor_ok(&c) || memchr(path, '\0', path_length + 1) != path + path_length ||
		    data[size] != '\0')
			return -EINVAL;
		struct source_entry *e = source_next(s);
		if (!e)
			return -ENOMEM;
		/* Never written through: the mapping is read-only. */
		*e = (struct source_entry){.path = (char *)(uintptr_t)path,
					   .data = (uint8_t *)(uintptr_t)data,
					   .size = size,
					   .kind = (uint16_t)kind,
					   .error = (uint16_t)error};
		s->count++;
	}
	return cursor_left(&c) == 0 ? 0 : -EINVAL;
}

int source_snapshot(int memfd, struct source **out)
{
	int seals = fcntl(memfd, F_GET_SEALS);
	if (seals < 0 || (seals & SOURCE_SEALS) != SOURCE_SEALS)
		return -EINVAL;
	struct stat st;
	if (fstat(memfd, &st) < 0)
		return -errno;
	if (st.st_size <= 0)
		return -EINVAL;
	struct source *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->sealed = true;
	s->map_size = (size_t)st.st_size;
	s->map = mmap(NULL, s->map_size, PROT_READ, MAP_SHARED, memfd, 0);
	if (s->map == MAP_FAILED) {
		int result = -errno;
		free(s);
		return result;
	}
	int result = source_index(s);
	if (result < 0) {
		source_free(s);
		return result;
	}
	*out = s;
	return 0;
}
