/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking with zlib, zstd and bzip2. Runs in the fetcher and in `feeds compile`. Invariant: a
 * packed body counts as whole only if its own end was seen and its checksum was right.
 *
 * A zip is read from the front, as it arrives:
 *
 *   "PK\3\4" | 26 octets | name | extra | packed data | [descriptor] | "PK\1\2" directory
 *
 * so the file's sizes may be missing (flag bit 3: they are in the descriptor); a deflated file ends
 * by itself, a stored one must say its size in the header.
 */
#include "feeds/unpack.h"

#include <bzlib.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <zlib.h>
#include <zstd.h>

#define UNPACK_BUFFER_MAX ((size_t)64 << 10)
/* zstd: the window that a body may ask for, 8 MiB (what every decoder has to offer, RFC 8878). */
#define UNPACK_WINDOW_LOG 23

#define ZIP_HEADER 26 /* behind the signature */

enum zip_stage { ZIP_LOCAL, ZIP_SKIP, ZIP_DEFLATED, ZIP_STORED, ZIP_BEHIND, ZIP_DONE };

struct unpack_stream {
	z_stream z;
	bz_stream bz;
	ZSTD_DStream *zstd;
	bool ended; /* at the end of a member or frame: the body may end here */

	enum zip_stage stage;
	uint8_t zip[ZIP_HEADER];
	size_t zip_count;
	uint16_t zip_flags, zip_method;
	uint32_t zip_crc, crc;
	uint64_t zip_left; /* of what is skipped, or of a stored file */
};

static int unpack_refuse(struct unpack *u, const char *why)
{
	u->error = why;
	return -EBADMSG;
}

static int unpack_deliver(struct unpack *u, const void *data, size_t size)
{
	u->octets_out += size;
	if (u->octets_out > UNPACK_FREE && u->octets_out / UNPACK_RATIO_MAX > u->octets_in)
		return unpack_refuse(u, "unpacks to more than 200 times its size");
	return size ? u->out(u->context, data, size) : 0;
}

static int unpack_gzip(struct unpack *u, const uint8_t *data, size_t size)
{
	struct unpack_stream *s = u->stream;
	s->z.next_in = (Bytef *)(uintptr_t)data;
	s->z.avail_in = (uInt)size;
	while (s->z.avail_in > 0) {
		/* Several members one after the other are one file (RFC 1952). */
		if (s->ended && inflateReset(&s->z) != Z_OK)
			return unpack_refuse(u, "damaged gzip");
		s->z.next_out = u->buffer;
		s->z.avail_out = UNPACK_BUFFER_MAX;
		int z = inflate(&s->z, Z_NO_FLUSH);
		if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
			return unpack_refuse(u, "damaged gzip");
		s->ended = z == Z_STREAM_END;
		int result = unpack_deliver(u, u->buffer, UNPACK_BUFFER_MAX - s->z.avail_out);
		if (result < 0)
			return result;
	}
	return 0;
}

static int unpack_bzip2(struct unpack *u, const uint8_t *data, size_t size)
{
	struct unpack_stream *s = u->stream;
	s->bz.next_in = (char *)(uintptr_t)data;
	s->bz.avail_in = (unsigned)size;
	while (s->bz.avail_in > 0) {
		if (s->ended) {
			char *next = s->bz.next_in;
			unsigned left = s->bz.avail_in;
			BZ2_bzDecompressEnd(&s->bz);
			memset(&s->bz, 0, sizeof(s->bz));
			if (BZ2_bzDecompressInit(&s->bz, 0, 0) != BZ_OK)
				return -ENOMEM;
			s->bz.next_in = next;
			s->bz.avail_in = left;
		}
		s->bz.next_out = (char *)u->buffer;
		s->bz.avail_out = UNPACK_BUFFER_MAX;
		int bz = BZ2_bzDecompress(&s->bz);
		if (bz == BZ_MEM_ERROR)
			return -ENOMEM;
		if (bz != BZ_OK && bz != BZ_STREAM_END)
			return unpack_refuse(u, "damaged bzip2");
		s->ended = bz == BZ_STREAM_END;
		int result = unpack_deliver(u, u->buffer, UNPACK_BUFFER_MAX - s->bz.avail_out);
		if (result < 0)
			return result;
	}
	return 0;
}

static int unpack_zstd(struct unpack *u, const uint8_t *data, size_t size)
{
	struct unpack_stream *s = u->stream;
	ZSTD_inBuffer in = {data, size, 0};
	bool full = false;
	while (in.pos < in.size || full) {
		ZSTD_outBuffer out = {u->buffer, UNPACK_BUFFER_MAX, 0};
		size_t z = ZSTD_decompressStream(s->zstd, &out, &in);
		if (ZSTD_isError(z))
			return unpack_refuse(u, "damaged zstd, or of a window over 8 MiB");
		s->ended = z == 0;
		full = z != 0 && out.pos == out.size;
		int result = unpack_deliver(u, u->buffer, out.pos);
		if (result < 0)
			return result;
	}
	return 0;
}

static uint16_t unpack_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t unpack_le32(const uint8_t *p)
{
	return (uint32_t)unpack_le16(p) | (uint32_t)unpack_le16(p + 2) << 16;
}

static int zip_local(struct unpack *u)
{
	struct unpack_stream *s = u->stream;
	const uint8_t *h = s->zip;
	s->zip_flags = unpack_le16(h + 2);
	s->zip_method = unpack_le16(h + 4);
	s->zip_crc = unpack_le32(h + 10);
	if (s->zip_flags & 1)
		return unpack_refuse(u, "an encrypted zip");
	if (s->zip_method != 0 && s->zip_method != Z_DEFLATED)
		return unpack_refuse(u, "a zip that is packed otherwise than deflated");
	if (s->zip_method == 0 && (s->zip_flags & 8 || unpack_le32(h + 14) == UINT32_MAX))
		return unpack_refuse(u, "a zip with a stored file of unknown size");
	s->zip_left = (uint64_t)unpack_le16(h + 22) + unpack_le16(h + 24);
	s->stage = ZIP_SKIP;
	return 0;
}

static void zip_begin_file(struct unpack_stream *s)
{
	s->crc = (uint32_t)crc32(0, NULL, 0);
	s->zip_left = unpack_le32(s->zip + 14);
	s->zip_count = 0;
	s->stage = s->zip_method == 0 ? ZIP_STORED : ZIP_DEFLATED;
	if (s->stage == ZIP_STORED && s->zip_left == 0)
		s->stage = ZIP_BEHIND;
}

static int zip_deliver(struct unpack *u, const uint8_t *data, size_t size)
{
	u->stream->crc = (uint32_t)crc32(u->stream->crc, data, (uInt)size);
	return unpack_deliver(u, data, size);
}

/* How many of the octets were used, or -errno. */
static ssize_t zip_deflated(struct unpack *u, const uint8_t *data, size_t size)
{
	struct unpack_stream *s = u->stream;
	int z = Z_OK;
	s->z.next_in = (Bytef *)(uintptr_t)data;
	s->z.avail_in = (uInt)size;
	while (s->z.avail_in > 0 && z != Z_STREAM_END) {
		s->z.next_out = u->buffer;
		s->z.avail_out = UNPACK_BUFFER_MAX;
		z = inflate(&s->z, Z_NO_FLUSH);
		if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
			return unpack_refuse(u, "damaged zip");
		int result = zip_deliver(u, u->buffer, UNPACK_BUFFER_MAX - s->z.avail_out);
		if (result < 0)
			return result;
	}
	if (z == Z_STREAM_END)
		s->stage = ZIP_BEHIND;
	return (ssize_t)(size - s->z.avail_in);
}

/* Behind the file: a descriptor of 12 to 24 octets if the header said so, then the directory. */
static int zip_behind(struct unpack *u)
{
	struct unpack_stream *s = u->stream;
	const uint8_t *p = s->zip;
	size_t n = s->zip_count, at = 0;
	if (s->zip_flags & 8) {
		if (n < 16)
			return 0;
		bool signed_ = memcmp(p, "PK\7\10", 4) == 0;
		s->zip_crc = unpack_le32(p + (signed_ ? 4 : 0));
		at = signed_ ? 16 : 12;
		/* Sizes of eight octets each (zip64) stand where the directory would. */
		if (n >= at + 4 && memcmp(p + at, "PK", 2) != 0)
			at += 8;
	}
	if (n < at + 4 && n < ZIP_HEADER)
		return 0;
	if (s->zip_crc != s->crc)
		return unpack_refuse(u, "damaged zip");
	if (n >= at + 4 && memcmp(p + at, "PK\3\4", 4) == 0)
		return unpack_refuse(u, "a zip with more than one file");
	/* A descriptor of 24 octets leaves two of the signature to see. */
	if (memcmp(p + at, "PK\1\2", n - at < 4 ? n - at : 4) != 0)
		return unpack_refuse(u, "damaged zip");
	s->stage = ZIP_DONE;
	s->ended = true;
	return 0;
}

static int unpack_zip(struct unpack *u, const uint8_t *data, size_t size)
{
	struct unpack_stream *s = u->stream;
	while (size > 0) {
		size_t n = 1;
		int result = 0;
		switch (s->stage) {
		case ZIP_LOCAL:
			s->zip[s->zip_count++] = *data;
			if (s->zip_count == ZIP_HEADER)
				result = zip_local(u);
			break;
		case ZIP_SKIP:
			n = s->zip_left < size ? (size_t)s->zip_left : size;
			s->zip_left -= n;
			if (s->zip_left == 0)
				zip_begin_file(s);
			break;
		case ZIP_DEFLATED: {
			ssize_t used = zip_deflated(u, data, size);
			result = used < 0 ? (int)used : 0;
			n = used < 0 ? 0 : (size_t)used;
			break;
		}
		case ZIP_STORED:
			n = s->zip_left < size ? (size_t)s->zip_left : size;
			result = zip_deliver(u, data, n);
			s->zip_left -= n;
			if (s->zip_left == 0)
				s->stage = ZIP_BEHIND;
			break;
		case ZIP_BEHIND:
			s->zip[s->zip_count++] = *data;
			result = zip_behind(u);
			break;
		case ZIP_DONE:
			return 0;
		}
		if (result < 0)
			return result;
		data += n;
		size -= n;
	}
	return 0;
}

static const struct {
	const char *magic;
	size_t magic_length;
	int (*push)(struct unpack *u, const uint8_t *data, size_t size);
	const char *cut;
} unpack_kinds[] = {
	[UNPACK_GZIP] = {"\x1f\x8b", 2, unpack_gzip, "the gzip body is cut off"},
	[UNPACK_ZIP] = {"PK\3\4", 4, unpack_zip, "the zip body is cut off"},
	[UNPACK_ZSTD] = {"\x28\xb5\x2f\xfd", 4, unpack_zstd, "the zstd body is cut off"},
	[UNPACK_BZIP2] = {"BZh", 3, unpack_bzip2, "the bzip2 body is cut off"},
};

static int unpack_open(struct unpack *u)
{
	struct unpack_stream *s = calloc(1, sizeof(*s));
	u->buffer = malloc(UNPACK_BUFFER_MAX);
	u->stream = s;
	if (!s || !u->buffer)
		return -ENOMEM;
	if (u->kind == UNPACK_BZIP2)
		return BZ2_bzDecompressInit(&s->bz, 0, 0) == BZ_OK ? 0 : -ENOMEM;
	if (u->kind == UNPACK_ZSTD) {
		s->zstd = ZSTD_createDStream();
		if (!s->zstd)
			return -ENOMEM;
		ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, UNPACK_WINDOW_LOG);
		return 0;
	}
	int bits = u->kind == UNPACK_GZIP ? 16 + MAX_WBITS : -MAX_WBITS;
	return inflateInit2(&s->z, bits) == Z_OK ? 0 : -ENOMEM;
}

static int unpack_feed(struct unpack *u, const uint8_t *data, size_t size)
{
	u->octets_in += size;
	if (size == 0)
		return 0;
	if (u->kind == UNPACK_NONE)
		return u->out(u->context, data, size);
	return unpack_kinds[u->kind].push(u, data, size);
}

/* The first four octets are there, or all there are. */
static int unpack_begin(struct unpack *u)
{
	unsigned n = u->magic_count;
	u->begun = true;
	for (int kind = UNPACK_GZIP; kind <= UNPACK_BZIP2; kind++)
		if (n >= unpack_kinds[kind].magic_length &&
		    memcmp(u->magic, unpack_kinds[kind].magic, unpack_kinds[kind].magic_length) ==
			    0)
			u->kind = (enum unpack_kind)kind;
	int result = u->kind == UNPACK_NONE ? 0 : unpack_open(u);
	if (result < 0 || u->kind == UNPACK_ZIP) /* its state begins behind the signature */
		return result;
	return unpack_feed(u, u->magic, n);
}

int unpack_push(struct unpack *u, const void *data, size_t size)
{
	const uint8_t *at = data;
	int result = 0;
	while (!u->begun && size > 0) {
		u->magic[u->magic_count++] = *at++;
		size--;
		if (u->magic_count == sizeof(u->magic))
			result = unpack_begin(u);
	}
	return result < 0 || size == 0 ? result : unpack_feed(u, at, size);
}

int unpack_finish(struct unpack *u)
{
	if (!u->begun && u->magic_count > 0) {
		int result = unpack_begin(u);
		if (result < 0)
			return result;
	}
	if (u->kind != UNPACK_NONE && !u->stream->ended)
		return unpack_refuse(u, unpack_kinds[u->kind].cut);
	return 0;
}

void unpack_fini(struct unpack *u)
{
	if (u->stream) {
		inflateEnd(&u->stream->z);
		BZ2_bzDecompressEnd(&u->stream->bz);
		ZSTD_freeDStream(u->stream->zstd);
	}
	free(u->stream);
	free(u->buffer);
}
