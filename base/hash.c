/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes and random numbers. Leaf file, used in every process; its only state is the buffer of
 * random numbers, which the kernel wipes in a forked child, so that parent and child never hand out
 * the same ones. Invariant: CRC32C gives the same value on every machine.
 */
#include "base/hash.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#define CASTAGNOLI 0x82f63b78u /* reflected */
#define POOL_PAGE  4096

static uint64_t load64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

static uint32_t load32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

/* Eight tables, so that eight octets need eight independent loads (Intel's "slicing by 8"). */
static uint32_t crc_table[8][256];

static void crc_table_fill(void)
{
	for (unsigned i = 0; i < 256; i++) {
		uint32_t crc = i;
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? CASTAGNOLI : 0);
		crc_table[0][i] = crc;
	}
	for (unsigned i = 0; i < 256; i++)
		for (unsigned t = 1; t < 8; t++)
			crc_table[t][i] =
				crc_table[t - 1][i] >> 8 ^ crc_table[0][crc_table[t - 1][i] & 0xff];
}

static uint32_t crc_software(uint32_t crc, const uint8_t *p, size_t size)
{
	if (!crc_table[0][1])
		crc_table_fill();
	for (; size >= 8; p += 8, size -= 8) {
		uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				      (uint32_t)p[3] << 24);
		crc = crc_table[7][low & 0xff] ^ crc_table[6][low >> 8 & 0xff] ^
		      crc_table[5][low >> 16 & 0xff] ^ crc_table[4][low >> 24] ^
		      crc_table[3][p[4]] ^ crc_table[2][p[5]] ^ crc_table[1][p[6]] ^
		      crc_table[0][p[7]];
	}
	for (; size; p++, size--)
		crc = crc >> 8 ^ crc_table[0][(crc ^ *p) & 0xff];
	return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_hardware(uint32_t crc, const uint8_t *p,
							       size_t size)
{
	uint64_t wide = crc;
	for (; size >= 8; p += 8, size -= 8)
		wide = _mm_crc32_u64(wide, load64(p));
	crc = (uint32_t)wide;
	for (; size; p++, size--)
		crc = _mm_crc32_u8(crc, *p);
	return crc;
}
#endif

uint32_t hash_crc32c(uint32_t crc, const void *data, size_t size)
{
	crc = ~crc;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc_hardware(crc, data, size);
#endif
	return ~crc_software(crc, data, size);
}

/* One 64x64 -> 128 multiply folded to 64 bits: every input bit reaches every output bit. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash_bytes(uint64_t seed, const void *data, size_t size)
{
	static const uint64_t k[3] = {0x9e3779b97f4a7c15u, 0xe7037ed1a0b428dbu,
				      0x8ebc6af09c88c6e3u};
	const uint8_t *p = data;
	uint64_t h = seed ^ mix(seed ^ k[0], k[1]);
	size_t left = size;
	for (; left > 16; p += 16, left -= 16)
		h = mix(load64(p) ^ k[1], load64(p + 8) ^ h);
	uint64_t a = 0, b = 0;
	if (left >= 8) {
		a = load64(p);
		b = load64(p + left - 8);
	} else if (left >= 4) {
		a = load32(p);
		b = load32(p + left - 4);
	} else if (left) {
		a = (uint64_t)p[0] << 16 | (uint64_t)p[left / 2] << 8 | p[left - 1];
	}
	return mix(k[2] ^ size, mix(a ^ k[1], b ^ h));
}

static void random_fill(void *out, size_t size)
{
	uint8_t *p = out;
	while (size) {
		ssize_t n = getrandom(p, size, 0);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			/* Predictable ids would be worse than no service. */
			perror("getrandom");
			abort();
		}
		p += n;
		size -= (size_t)n;
	}
}

struct pool {
	uint64_t left; /* zero after fork: the page was wiped */
	uint64_t values[POOL_PAGE / 8 - 1];
};

static struct pool *pool_map(void)
{
	void *page =
		mmap(NULL, POOL_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, POOL_PAGE, MADV_WIPEONFORK) < 0) {
		munmap(page, POOL_PAGE);
		return NULL;
	}
	return page;
}

uint64_t hash_random(void)
{
	static struct pool *pool;
	static bool tried;
	if (!tried) {
		tried = true;
		pool = pool_map();
	}
	if (!pool) {
		uint64_t v;
		random_fill(&v, sizeof v);
		return v;
	}
	if (!pool->left) {
		random_fill(pool->values, sizeof pool->values);
		pool->left = sizeof pool->values / sizeof pool->values[0];
	}
	uint64_t v = pool->values[--pool->left];
	pool->values[pool->left] = 0; /* a later memory leak must not tell earlier ids */
	return v;
}
