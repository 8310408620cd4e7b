/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a set file looks, drawn before the code that reads and writes it. Private to feeds/set.
 *
 *   +--------------------------------------------+ 0
 *   | LMDB pages: one unnamed database           |
 *   |   key   = kind, number (both u32, big end) |
 *   |   value = what the kind says, see below    |
 *   +--------------------------------------------+ footer.pages_octets
 *   | directory: one struct domset_extent a value|   where each value lies in the file, its CRC32C
 *   +--------------------------------------------+ file size - sizeof footer
 *   | footer                                     |   CRCs of footer, directory, and of all octets
 * of
 *   +--------------------------------------------+   the LMDB pages that lie in no value
 *
 * LMDB trusts its pages. So before it sees them, domset_open checks the footer, the directory and
 * the octets between the values, which are exactly those that LMDB itself interprets; then that
 * LMDB leads to the extents of the directory. Values carry their own CRC: all but the names' chunks
 * are checked at every open, the chunks by DOMSET_CHECK_ALL, and each block when it is first read.
 * Together the CRCs cover every octet of the file. All numbers are little-endian.
 *
 * Kinds:
 *   HEADER     struct domset_header
 *   FEEDS      the feeds' names, each ended by NUL
 *   TOKENS     struct domset_token[TOKENS_MAX], of which header.tokens are used
 *   SUFFIXES   u64[], sorted: hashes of public suffixes that pass the filter without being listed
 *   FILTER     one a shard: struct domset_shard, then its fingerprints
 *   LIST_AT    u32[] chunks: the place of each combination, chunk << 20 | octet
 *   LISTS      chunks: combinations: u32 count, then struct domset_entry[count]
 *   UPPER      one a level: struct domset_node[], level 1 (over the leaves) first
 *   LEAVES     chunks of LEAVES_PER_CHUNK struct domset_leaf
 *   NAMES      chunks of CHUNK_OCTETS (the last may be shorter): blocks, then zeros; the last
 *              CHUNK_SLACK octets are zero, so that an 8-octet load may pass a block's end
 *
 * Names are sort keys (base/key.h), 64 a block. The root's key is empty; if it is listed, the
 * header says so, and it is in no block.
 *
 * A block. `suffix` is what a key has behind what it shares (lcp) with the key before it, without
 * its last octet, which is 00 in every key. The first suffix of a block is its whole first key.
 *
 *   u16  CRC32C of all that follows, up to the next block or the chunk's end, folded to 16 bits
 *   u64  (7 octets): names - 1 : 6, inherits : 1, lcp width : 4, size width : 4, lcp minimum : 9,
 *        size minimum : 8, size of the first : 12, direct : 1, palette - 1 : 6, id width : 5
 *   lcp[names - 1]     of `lcp width` bits each, over the minimum; padded to an octet
 *   size[names - 1]    of `size width` bits each, over the minimum; padded to an octet. In units of
 *                      SIZE_UNIT bits
 *   bits, not aligned:
 *     if inherits:  count : 7, then count times (key octets : 9, id : id width)
 *     palette:      the ids of the block, `id width` each; none if direct
 *     ids:          one a name: an index into the palette, of just enough bits, or if direct the id
 *     suffixes      token codes, each suffix padded to a multiple of SIZE_UNIT bits
 *
 * inherited: the listed ancestors of the block's first name that stand in earlier blocks. A listed
 * ancestor of any name asked for is in the block that the descent leads to, or it is one of these:
 * it is a prefix of everything between itself and the asked name, the block's first name included.
 * So one descent answers all suffixes.
 *
 * Token codes are canonical Huffman codes of MIN_CODE_BITS to MAX_CODE_BITS bits, first bit lowest.
 * Token 0 is the escape: 8 bits follow that are the octet itself. No code is shorter than
 * SIZE_UNIT, so padding is never taken for a token.
 *
 * The index is a tree of 32 children a node over the blocks' separators: the shortest prefix of a
 * block's first key that is above the key before it. A node holds what its separators 1..31 have in
 * common, and of each the eight octets that follow (big end first, zero padded), so that a search
 * is one short compare and 31 integer compares. Separators longer than that are marked; a tie with
 * one is settled by the block's first name.
 */
#ifndef BALEEN_FEEDS_SET_DOMSET_LAYOUT_H
#define BALEEN_FEEDS_SET_DOMSET_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "set files are little-endian");

#define DOMSET_MAGIC   0x53446e65656c6142u /* "BaleenDS" */
#define DOMSET_VERSION 1

enum domset_kind {
	DOMSET_HEADER = 1,
	DOMSET_FEEDS,
	DOMSET_TOKENS,
	DOMSET_SUFFIXES,
	DOMSET_FILTER,
	DOMSET_LIST_AT,
	DOMSET_LISTS,
	DOMSET_UPPER,
	DOMSET_LEAVES,
	DOMSET_NAMES,
	DOMSET_KINDS,
};

enum {
	DOMSET_BLOCK_NAMES = 64,
	DOMSET_BLOCK_HEADER = 9,
	DOMSET_SIZE_UNIT = 4,
	DOMSET_SIZE_MAX = 255, /* of a suffix that is not a block's first, in units */
	DOMSET_TOKENS_MAX = 2048,
	DOMSET_TOKEN_OCTETS = 8,
	DOMSET_MIN_CODE_BITS = DOMSET_SIZE_UNIT,
	DOMSET_MAX_CODE_BITS = 13,
	DOMSET_FANOUT = 32,
	DOMSET_PREFIX_MAX = 35,
	DOMSET_LEVELS_MAX = 6,
	DOMSET_LEAVES_PER_CHUNK = 2048,
	DOMSET_LIST_AT_PER_CHUNK = 1 << 17,
	DOMSET_CHUNK_SHIFT = 20,
	DOMSET_CHUNK_OCTETS = (1 << DOMSET_CHUNK_SHIFT) - 16, /* fills its pages exactly */
	DOMSET_CHUNK_SLACK = 8,
	DOMSET_SHARD_KEYS = 900000, /* on average; never over 2^20 */
	DOMSET_SUFFIXES_MAX = 4096,
};

struct domset_extent {
	uint64_t offset; /* in the file */
	uint64_t octets;
	uint32_t kind;
	uint32_t number;
	uint32_t crc32c;
	uint32_t zero;
};

struct domset_footer {
	uint64_t pages_octets;
	uint32_t extents;
	uint32_t directory_crc32c;
	uint32_t pages_crc32c; /* of what lies between the extents */
	uint32_t version;
	uint64_t magic;
	uint32_t zero;
	uint32_t crc32c; /* of the footer up to here */
};

struct domset_header {
	uint64_t names; /* the root included */
	uint64_t entries;
	uint64_t blocks;
	uint64_t hash_seed;
	uint64_t block_octets;
	uint32_t feeds;
	uint32_t combinations;
	uint32_t root; /* combination of the root's entry + 1; 0: not listed */
	uint32_t tokens;
	uint32_t shards;
	uint32_t levels; /* of UPPER; 0: at most 32 blocks, one leaf is the tree */
	uint32_t suffixes;
	uint32_t zero;
};

struct domset_token {
	uint8_t text[DOMSET_TOKEN_OCTETS]; /* zero padded */
	uint8_t octets;			   /* 0: the escape */
	uint8_t bits;			   /* of its code */
	uint8_t zero[6];
};

struct domset_shard {
	uint64_t seed;
	uint32_t segment_octets;  /* a power of two */
	uint32_t segments_octets; /* where the first of the four probes may fall */
	uint32_t octets;	  /* of fingerprints */
	uint32_t keys;
};

struct domset_node {
	uint32_t cut; /* bit i: separator i does not fit its key */
	uint8_t prefix_octets;
	uint8_t prefix[DOMSET_PREFIX_MAX];
	uint64_t key[DOMSET_FANOUT - 1]; /* of separators 1..31; unused ones are all ones */
};

struct domset_leaf {
	struct domset_node node;
	uint32_t at[DOMSET_FANOUT]; /* of the blocks: chunk << 20 | octet */
};

static_assert(sizeof(struct domset_extent) == 32, "on disk");
static_assert(sizeof(struct domset_footer) == 40, "on disk");
static_assert(sizeof(struct domset_header) == 72, "on disk");
static_assert(sizeof(struct domset_token) == 16, "on disk");
static_assert(sizeof(struct domset_shard) == 24, "on disk");
static_assert(sizeof(struct domset_node) == 288, "on disk");
static_assert(sizeof(struct domset_leaf) == 416, "on disk");

static inline uint64_t domset_load64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

/* At least 57 bits from `bit` on, the first one lowest. Reads 8 octets. */
static inline uint64_t domset_bits(const uint8_t *p, size_t bit)
{
	return domset_load64(p + bit / 8) >> (bit & 7);
}

/* How many bits tell `count` values apart. */
static inline unsigned domset_width(uint32_t count)
{
	return count <= 1 ? 0 : 32 - (unsigned)__builtin_clz(count - 1);
}

#endif
