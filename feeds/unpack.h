/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A body out of its packing, told from its first octets: gzip, zip with one file, zstd, bzip2, or
 * none. A stream in constant memory; what unpacks to more than a bounded multiple of what came in
 * is refused. Owned by its body's parser.
 */
#ifndef BALEEN_FEEDS_UNPACK_H
#define BALEEN_FEEDS_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Beyond the first UNPACK_FREE octets, so many come out of one at most. Lists pack 3 to 30 times.
 */
#define UNPACK_RATIO_MAX 200
#define UNPACK_FREE	 ((uint64_t)4 << 20)

enum unpack_kind { UNPACK_NONE, UNPACK_GZIP, UNPACK_ZIP, UNPACK_ZSTD, UNPACK_BZIP2 };

struct unpack {
	/* 0 or -errno, which ends the body. */
	int (*out)(void *context, const void *data, size_t size);
	void *context;
	const char *error; /* why -EBADMSG came from here; else NULL */
	enum unpack_kind kind;

	/* Private. */
	uint8_t magic[4];
	unsigned magic_count;
	bool begun;
	uint64_t octets_in, octets_out;
	uint8_t *buffer;
	struct unpack_stream *stream;
};

/* Set `out` and `context`, all else zero. 0 or -errno; -EBADMSG with `error` set, or `out`'s own.
 */
int unpack_push(struct unpack *u, const void *data, size_t size);
/* Nothing comes any more: -EBADMSG if the packing says that something should. */
int unpack_finish(struct unpack *u);
void unpack_fini(struct unpack *u);

#endif
