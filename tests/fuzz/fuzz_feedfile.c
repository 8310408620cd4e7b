/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a feed file, under a header whose checksums fit: whatever stands there, the reader
 * gives ascending keys of bounded length, then the end or an error; and the same again after a
 * rewind. */
#include "base/hash.h"
#include "feeds/feedfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEADER 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(uint8_t *p, uint64_t v, unsigned octets)
{
	for (unsigned i = 0; i < octets; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static int read_all(struct feedfile *f, uint64_t *sum)
{
	uint8_t last[KEY_MAX];
	size_t last_length = 0;
	uint64_t count = 0;
	int result;
	*sum = 0;
	while ((result = feedfile_next(f)) == 1) {
		const struct record *now = &f->records.now;
		if (now->key_length > KEY_MAX)
			abort();
		if (count++ && key_compare(last, last_length, now->key, now->key_length) >= 0)
			abort();
		memcpy(last, now->key, now->key_length);
		last_length = now->key_length;
		*sum = hash_bytes(*sum ^ now->flags ^ now->extra, now->key, now->key_length);
	}
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t header[HEADER] = "BALEENF1";
	char path[64];
	struct feedfile f;
	put(header + 8, 1, 4);
	put(header + 24, size, 8);
	put(header + 32, hash_crc32c(0, data, size), 4);
	put(header + 12, hash_crc32c(0, header, sizeof(header)), 4);
	int fd = memfd_create("feedfile", MFD_CLOEXEC);
	if (fd < 0 || write(fd, header, sizeof(header)) != HEADER ||
	    write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (feedfile_open(path, 0, &f) != 0)
		abort();
	uint64_t once, twice;
	int result = read_all(&f, &once);
	if (result > 0)
		abort();
	record_reader_rewind(&f.records);
	if (read_all(&f, &twice) != result || once != twice)
		abort();
	feedfile_close(&f);
	close(fd);
	return 0;
}
