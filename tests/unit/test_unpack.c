/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/unpack.c: packed bodies, whole, cut, damaged, or of the sort that fills disks. */
#include "feeds/unpack.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bzlib.h>
#include <cmocka.h>
#include <zlib.h>
#include <zstd.h>

static uint8_t packed[1 << 20];
static char text[1 << 20];
static uint64_t text_length;
static const char *error;
static enum unpack_kind kind;

static int on_out(void *context, const void *data, size_t size)
{
	(void)context;
	for (size_t i = 0; i < size; i++)
		if (text_length + i < sizeof(text))
			text[text_length + i] = ((const char *)data)[i];
	text_length += size;
	return 0;
}

static int unpack(const void *data, size_t size, size_t chunk)
{
	struct unpack u = {.out = on_out};
	int result = 0;
	text_length = 0;
	for (size_t at = 0; at < size && result == 0; at += chunk)
		result = unpack_push(&u, (const uint8_t *)data + at,
				     size - at < chunk ? size - at : chunk);
	if (result == 0)
		result = unpack_finish(&u);
	error = u.error;
	kind = u.kind;
	unpack_fini(&u);
	return result;
}

static size_t deflated(const void *data, size_t size, int bits, uint8_t *out, size_t room)
{
	z_stream z = {0};
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)data;
	z.avail_in = (uInt)size;
	z.next_out = out;
	z.avail_out = (uInt)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return room - z.avail_out;
}

static uint8_t *le(uint8_t *p, uint64_t value, int octets)
{
	for (int i = 0; i < octets; i++)
		*p++ = (uint8_t)(value >> 8 * i);
	return p;
}

/* The sizes and the checksum of a zip: in the header, or behind the file. */
enum descriptor { DESCRIPTOR_NONE, DESCRIPTOR_BARE, DESCRIPTOR_SIGNED, DESCRIPTOR_ZIP64 };

static size_t zip_file(const void *data, size_t size, bool stored, enum descriptor d, uint8_t *out)
{
	uint32_t crc = (uint32_t)crc32(0, data, (uInt)size);
	uint8_t *p = le(out, 0x04034b50, 4);
	p = le(p, 20, 2);
	p = le(p, d ? 8 : 0, 2);
	p = le(p, stored ? 0 : 8, 2);
	p = le(p, 0, 4);
	p = le(p, d ? 0 : crc, 4);
	uint8_t *sizes = p;
	p = le(p, 0, 8);
	p = le(p, 5, 2);
	p = le(p, 3, 2);
	memcpy(p, "a.txtxyz", 8);
	p += 8;
	size_t n = size;
	if (stored)
		memcpy(p, data, size);
	else
		n = deflated(data, size, -15, p, 1 << 19);
	p += n;
	if (!d)
		le(le(sizes, n, 4), size, 4);
	if (d >= DESCRIPTOR_SIGNED)
		p = le(p, 0x08074b50, 4);
	if (d)
		p = le(le(le(p, crc, 4), n, d == DESCRIPTOR_ZIP64 ? 8 : 4), size,
		       d == DESCRIPTOR_ZIP64 ? 8 : 4);
	return (size_t)(p - out);
}

static size_t zip(const void *data, size_t size, bool stored, enum descriptor d, uint8_t *out)
{
	uint8_t *p = out + zip_file(data, size, stored, d, out);
	p = le(p, 0x02014b50, 4); /* the directory, which nobody reads */
	memset(p, 7, 60);
	return (size_t)(p + 60 - out);
}

static size_t pack(enum unpack_kind as, const void *data, size_t size)
{
	unsigned n = sizeof(packed);
	switch (as) {
	case UNPACK_GZIP:
		return deflated(data, size, 31, packed, sizeof(packed));
	case UNPACK_ZIP:
		return zip(data, size, false, DESCRIPTOR_NONE, packed);
	case UNPACK_ZSTD:
		return ZSTD_compress(packed, sizeof(packed), data, size, 19);
	case UNPACK_BZIP2:
		assert_int_equal(BZ2_bzBuffToBuffCompress((char *)packed, &n,
							  (char *)(uintptr_t)data, (unsigned)size,
							  9, 0, 0),
				 BZ_OK);
		return n;
	case UNPACK_NONE:
		break;
	}
	memcpy(packed, data, size);
	return size;
}

/* A list of some length, so that every buffer is filled more than once. */
static char *list(size_t *size)
{
	char *out = malloc(300000), *p = out;
	for (unsigned i = 0; i < 15000; i++)
		p += sprintf(p, "n%u.x%u.test\n", i * 2654435761u % 65536, i);
	*size = (size_t)(p - out);
	return out;
}

static void every_kind_in_every_chunk(void **state)
{
	(void)state;
	size_t size;
	char *body = list(&size);
	for (enum unpack_kind as = UNPACK_NONE; as <= UNPACK_BZIP2; as++) {
		size_t n = pack(as, body, size);
		static const size_t chunks[] = {1, 2, 3, 5, 1000, 1 << 20};
		for (size_t i = 0; i < 6; i++) {
			assert_int_equal(unpack(packed, n, chunks[i]), 0);
			assert_int_equal(kind, as);
			assert_int_equal(text_length, size);
			assert_memory_equal(text, body, size);
		}
	}
	free(body);
}

static void short_bodies_are_bodies(void **state)
{
	(void)state;
	assert_int_equal(unpack("", 0, 1), 0);
	assert_int_equal(text_length, 0);
	assert_int_equal(unpack("a.b", 3, 2), 0);
	assert_int_equal(text_length, 3);
	assert_int_equal(unpack("PK\3", 3, 1), 0);
	assert_int_equal(kind, UNPACK_NONE);
	for (enum unpack_kind as = UNPACK_GZIP; as <= UNPACK_BZIP2; as++) {
		assert_int_equal(unpack(packed, pack(as, "x", 1), 7), 0);
		assert_int_equal(text_length, 1);
	}
}

static void cut_anywhere_is_cut(void **state)
{
	(void)state;
	for (enum unpack_kind as = UNPACK_GZIP; as <= UNPACK_BZIP2; as++) {
		size_t n = pack(as, "a.test\nb.test\n", 14);
		n -= as == UNPACK_ZIP ? 60 : 0; /* within the directory nothing is missing */
		for (size_t cut = 4; cut < n; cut++) {
			assert_int_equal(unpack(packed, cut, 5), -EBADMSG);
			assert_non_null(strstr(error, "is cut off"));
		}
	}
}

static void damage_is_found(void **state)
{
	(void)state;
	char body[200];
	memset(body, 'a', sizeof(body));
	for (enum unpack_kind as = UNPACK_GZIP; as <= UNPACK_BZIP2; as++) {
		if (as == UNPACK_ZSTD) /* this library writes no checksum unless asked */
			continue;
		size_t n = pack(as, body, sizeof(body));
		size_t at = as == UNPACK_ZIP ? 4 + 26 + 8 + 1 : n - 6;
		packed[at] ^= 0x10;
		assert_int_equal(unpack(packed, n, 9), -EBADMSG);
	}
}

static void zips(void **state)
{
	(void)state;
	for (enum descriptor d = DESCRIPTOR_NONE; d <= DESCRIPTOR_ZIP64; d++) {
		size_t n = zip("a.test\nb.test\n", 14, false, d, packed);
		for (size_t chunk = 1; chunk < n; chunk += 3) {
			assert_int_equal(unpack(packed, n, chunk), 0);
			assert_int_equal(text_length, 14);
		}
	}
	assert_int_equal(unpack(packed, zip("a.test\n", 7, true, DESCRIPTOR_NONE, packed), 3), 0);
	assert_int_equal(text_length, 7);
	assert_int_equal(unpack(packed, zip("", 0, true, DESCRIPTOR_NONE, packed), 3), 0);
	assert_int_equal(text_length, 0);

	static const struct {
		size_t at;
		uint8_t value;
		const char *error;
	} rows[] = {
		{6, 1, "an encrypted zip"},
		{8, 12, "a zip that is packed otherwise than deflated"},
		{14, 0x55, "damaged zip"}, /* the checksum */
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = zip("a.test\n", 7, false, DESCRIPTOR_NONE, packed);
		packed[rows[i].at] = rows[i].value;
		assert_int_equal(unpack(packed, n, 11), -EBADMSG);
		assert_string_equal(error, rows[i].error);
	}
	size_t n = zip("a.test\n", 7, true, DESCRIPTOR_BARE, packed);
	assert_int_equal(unpack(packed, n, 11), -EBADMSG);
	assert_string_equal(error, "a zip with a stored file of unknown size");
	n = zip_file("a.test\n", 7, false, DESCRIPTOR_NONE, packed);
	n += zip("b.test\n", 7, false, DESCRIPTOR_NONE, packed + n);
	assert_int_equal(unpack(packed, n, 11), -EBADMSG);
	assert_string_equal(error, "a zip with more than one file");
}

/* Members and frames behind one another are one body. */
static void several_members(void **state)
{
	(void)state;
	static const enum unpack_kind kinds[] = {UNPACK_GZIP, UNPACK_ZSTD, UNPACK_BZIP2};
	for (size_t i = 0; i < 3; i++) {
		size_t n = pack(kinds[i], "a.test\n", 7);
		memcpy(packed + n, packed, n);
		for (size_t chunk = 1; chunk < 2 * n; chunk += 4) {
			assert_int_equal(unpack(packed, 2 * n, chunk), 0);
			assert_int_equal(text_length, 14);
			assert_memory_equal(text, "a.test\na.test\n", 14);
		}
	}
}

static void a_bomb_ends_early(void **state)
{
	(void)state;
	size_t size = 64 << 20;
	char *zeros = calloc(1, size);
	for (enum unpack_kind as = UNPACK_GZIP; as <= UNPACK_BZIP2; as++) {
		size_t n = pack(as, zeros, size);
		assert_int_equal(unpack(packed, n, 4096), -EBADMSG);
		assert_string_equal(error, "unpacks to more than 200 times its size");
		assert_true(text_length < 3 * UNPACK_FREE);
	}
	free(zeros);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_in_every_chunk),
		cmocka_unit_test(short_bodies_are_bodies),
		cmocka_unit_test(cut_anywhere_is_cut),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(zips),
		cmocka_unit_test(several_members),
		cmocka_unit_test(a_bomb_ends_early),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
