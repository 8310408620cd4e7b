/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes to filter shards, in the fetcher. Owns the temporary file. Invariant: at most one shard's
 * hashes and its peeling memory are on the heap at once.
 */
#include "feeds/set/domset_shards.h"

#include "feeds/set/domset_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SHARD_BUFFER 512
#define SHARD_MAX    ((uint32_t)1 << 20)

int domset_shards_init(struct domset_shards *s, const char *path, uint64_t names)
{
	*s = (struct domset_shards){
		.fd = -1,
		.count = (uint32_t)((names + DOMSET_SHARD_KEYS - 1) / DOMSET_SHARD_KEYS),
	};
	if (!s->count)
		s->count = 1;
	char *temporary;
	if (asprintf(&temporary, "%s.hashes.XXXXXX", path) < 0)
		return -ENOMEM;
	s->fd = mkostemp(temporary, O_CLOEXEC);
	int rc = s->fd < 0 ? -errno : 0;
	if (s->fd >= 0)
		unlink(temporary);
	free(temporary);
	s->keys = calloc(s->count, sizeof *s->keys);
	s->buffer = malloc((size_t)s->count * SHARD_BUFFER * sizeof *s->buffer);
	if (!s->keys || !s->buffer)
		rc = -ENOMEM;
	return rc;
}

void domset_shards_fini(struct domset_shards *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->keys);
	free(s->buffer);
}

static int write_out(struct domset_shards *s, uint32_t shard, uint32_t first, uint32_t count)
{
	const uint8_t *p = (const uint8_t *)(s->buffer + (size_t)shard * SHARD_BUFFER);
	size_t left = (size_t)count * sizeof *s->buffer;
	off_t at = ((off_t)shard * SHARD_MAX + first) * (off_t)sizeof *s->buffer;
	while (left) {
		ssize_t n = pwrite(s->fd, p, left, at);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			at += n;
			left -= (size_t)n;
		}
	}
	return 0;
}

int domset_shards_add(struct domset_shards *s, uint64_t hash)
{
	uint32_t shard = domset_shard_of(hash, s->count);
	uint32_t at = s->keys[shard]++;
	if (at == SHARD_MAX)
		return -EFBIG;
	s->buffer[(size_t)shard * SHARD_BUFFER + at % SHARD_BUFFER] = hash;
	if ((at + 1) % SHARD_BUFFER)
		return 0;
	return write_out(s, shard, at + 1 - SHARD_BUFFER, SHARD_BUFFER);
}

static int read_back(struct domset_shards *s, uint32_t shard, uint64_t *out)
{
	uint32_t tail = s->keys[shard] % SHARD_BUFFER;
	int rc = write_out(s, shard, s->keys[shard] - tail, tail);
	if (rc)
		return rc;
	uint8_t *p = (uint8_t *)out;
	size_t left = (size_t)s->keys[shard] * sizeof *out;
	off_t at = (off_t)shard * SHARD_MAX * (off_t)sizeof *out;
	while (left) {
		ssize_t n = pread(s->fd, p, left, at);
		if (!n || (n < 0 && errno != EINTR))
			return n ? -errno : -EIO;
		if (n > 0) {
			p += n;
			at += n;
			left -= (size_t)n;
		}
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Which of this shard's suffixes pass its filter and are no name of it: to the front, after those
 * of earlier shards. */
static void find_false(const struct domset_filter_shard *filter, uint32_t shard, uint32_t shards,
		       const uint64_t *hashes, size_t count, uint64_t *suffixes,
		       size_t suffix_count, size_t *false_count)
{
	size_t first = *false_count, end = first;
	for (size_t i = first; i < suffix_count; i++) {
		if (domset_shard_of(suffixes[i], shards) != shard)
			continue;
		struct domset_filter_shard one = *filter;
		if (!domset_filter_has(&one, 1, suffixes[i]))
			continue;
		uint64_t passing = suffixes[i];
		suffixes[i] = suffixes[end];
		suffixes[end++] = passing;
	}
	qsort(suffixes + first, end - first, sizeof *suffixes, by_value);
	bool listed[DOMSET_SUFFIXES_MAX] = {false};
	if (end - first > DOMSET_SUFFIXES_MAX)
		end = first + DOMSET_SUFFIXES_MAX;
	for (size_t i = 0; i < count; i++) {
		uint64_t *hit = bsearch(&hashes[i], suffixes + first, end - first, sizeof *suffixes,
					by_value);
		if (hit)
			listed[hit - suffixes - (ptrdiff_t)first] = true;
	}
	/* A listed one must go down, and must not be looked at again. */
	size_t kept = first;
	for (size_t i = first; i < end; i++)
		if (!listed[i - first] && kept < DOMSET_SUFFIXES_MAX) {
			uint64_t v = suffixes[i];
			suffixes[i] = suffixes[kept];
			suffixes[kept++] = v;
		}
	*false_count = kept;
}

int domset_shards_write(struct domset_shards *s, struct domset_file *file, uint64_t seed,
			uint64_t *suffixes, size_t suffix_count, size_t *false_count)
{
	*false_count = 0;
	int rc = 0;
	for (uint32_t shard = 0; !rc && shard < s->count; shard++) {
		size_t count = s->keys[shard], octets = 0;
		void *value = NULL;
		struct domset_filter_shard filter;
		uint64_t *hashes = malloc((count + 1) * sizeof *hashes);
		rc = hashes ? read_back(s, shard, hashes) : -ENOMEM;
		if (!rc)
			rc = domset_filter_build(hashes, count, seed + shard, &value, &octets);
		if (!rc)
			rc = domset_filter_open(value, octets, &filter);
		if (!rc) {
			find_false(&filter, shard, s->count, hashes, count, suffixes, suffix_count,
				   false_count);
			rc = domset_file_put(file, DOMSET_FILTER, shard, value, octets);
		}
		free(value);
		free(hashes);
	}
	if (!rc)
		qsort(suffixes, *false_count, sizeof *suffixes, by_value);
	return rc;
}
