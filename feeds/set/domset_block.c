/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a block of names, in every process that looks names up. The octets may be damaged: the
 * parts' places are checked when the block is opened, every suffix against the block's end, so that
 * nothing outside the block (and the slack behind it) is read. Invariant: no name is put together
 * on a lookup; the scan keeps how many octets of the asked key are matched so far.
 */
#include "feeds/set/domset_block.h"

#include "base/hash.h"

#include <errno.h>

uint16_t domset_block_crc(const uint8_t *data, size_t octets)
{
	uint32_t crc = hash_crc32c(0, data + 2, octets - 2);
	return (uint16_t)(crc ^ crc >> 16);
}

int domset_block_open(const uint8_t *data, size_t octets, struct domset_block *out)
{
	if (octets < DOMSET_BLOCK_HEADER)
		return -EBADMSG;
	uint64_t h = domset_load64(data + 2);
	struct domset_block b = {
		.data = data,
		.names = (h & 63) + 1,
		.lcp_width = h >> 7 & 15,
		.size_width = h >> 11 & 15,
		.lcp_min = h >> 15 & 511,
		.size_min = h >> 24 & 255,
		.first_bits = (h >> 32 & 4095) * DOMSET_SIZE_UNIT,
		.palette = h >> 44 & 1 ? 0 : (h >> 45 & 63) + 1,
		.id_width = h >> 51 & 31,
	};
	if (b.lcp_width > 8 || b.size_width > 8)
		return -EBADMSG;
	b.index_width = b.palette ? domset_width(b.palette) : b.id_width;
	b.lcp_at = DOMSET_BLOCK_HEADER;
	b.size_at = b.lcp_at + ((b.names - 1) * b.lcp_width + 7) / 8;
	b.inherited_at = 8 * (b.size_at + ((b.names - 1) * b.size_width + 7) / 8);
	b.palette_at = b.inherited_at;
	b.end = 8 * (uint32_t)octets;
	if (h >> 6 & 1) {
		if (b.inherited_at + 7 > b.end)
			return -EBADMSG;
		b.inherited = domset_bits(data, b.inherited_at) & 127;
		b.inherited_at += 7;
		b.palette_at = b.inherited_at + b.inherited * (9 + b.id_width);
	}
	b.index_at = b.palette_at + b.palette * b.id_width;
	b.suffixes_at = b.index_at + b.names * b.index_width;
	if (b.suffixes_at + b.first_bits > b.end)
		return -EBADMSG;
	*out = b;
	return 0;
}

static uint32_t bits_at(const struct domset_block *b, uint32_t bit, unsigned width)
{
	return (uint32_t)(domset_bits(b->data, bit) & (((uint64_t)1 << width) - 1));
}

static int id_of(const struct domset_block *b, unsigned name, uint32_t *id)
{
	uint32_t index = bits_at(b, b->index_at + name * b->index_width, b->index_width);
	if (!b->palette) {
		*id = index;
		return 0;
	}
	if (index >= b->palette)
		return -EBADMSG;
	*id = bits_at(b, b->palette_at + index * b->id_width, b->id_width);
	return 0;
}

/* Eight fields of `width` (0..8) bits, spread to one an octet. */
static inline uint64_t spread(uint64_t x, unsigned width)
{
	uint64_t one = ((uint64_t)1 << width) - 1;
	uint64_t two = ((uint64_t)1 << 2 * width) - 1;
	uint64_t four = ((uint64_t)1 << 4 * width) - 1;
	x = (x & four) | (x >> 4 * width & four) << 32;
	two *= 0x0000000100000001u;
	x = (x & two) | (x >> 2 * width & two) << 16;
	one *= 0x0001000100010001u;
	return (x & one) | (x >> width & one) << 8;
}

/* The sum of the eight octets of x. */
static unsigned sum_octets(uint64_t x)
{
	uint64_t pairs = (x & 0x00ff00ff00ff00ffu) + (x >> 8 & 0x00ff00ff00ff00ffu);
	return (unsigned)((pairs * 0x0001000100010001u) >> 48);
}

/* For each octet of x: its high bit set if it is at most `limit`. */
static inline uint64_t at_most(uint64_t x, size_t limit)
{
	/* Nine-bit subtractions in two halves, because the fields use all eight bits. */
	const uint64_t guard = 0x0100010001000100u, field = 0x00ff00ff00ff00ffu;
	uint64_t l = (limit < 255 ? limit : 255) * 0x0001000100010001u | guard;
	uint64_t even = (l - (x & field)) & guard;
	uint64_t odd = (l - (x >> 8 & field)) & guard;
	return even >> 1 | odd << 7;
}

/* The octets of a word before octet i (0..7). */
static inline uint64_t below_octet(unsigned i)
{
	return ((uint64_t)1 << 8 * i) - 1;
}

/* The state of a scan: the asked key, and how much of it is matched. */
struct scan {
	const struct domset_decoder *decoder;
	const uint8_t *data;
	const uint8_t *key;
	size_t octets;
	size_t matched;
	uint32_t end;
};

enum { SCAN_BELOW, SCAN_PREFIX, SCAN_ABOVE, SCAN_BAD }; /* the entry's place relative to the key */

/*
 * Compare a suffix of `bits` at `bit` with the key from `matched` on; moves `matched`. This is
 * where a lookup's time goes. The bits are taken from a register as long as a whole code is in it,
 * so that one token waits for the other only by the code table.
 */
static inline int scan_suffix(struct scan *s, uint32_t bit, uint32_t bits)
{
	if (bit + bits > s->end)
		return SCAN_BAD;
	const struct domset_decoder *d = s->decoder;
	size_t matched = s->matched;
	int left = (int)bits, have = 0;
	uint64_t v = 0;
	while (left >= DOMSET_MIN_CODE_BITS) {
		if (have < DOMSET_MAX_CODE_BITS + 8) {
			v = domset_bits(s->data, bit + bits - (uint32_t)left);
			have = 57;
		}
		unsigned code = d->code[v & ((1u << DOMSET_MAX_CODE_BITS) - 1)];
		unsigned taken = DOMSET_CODE_BITS(code);
		uint64_t text = d->text[DOMSET_CODE_TOKEN(code)];
		unsigned octets = d->octets[DOMSET_CODE_TOKEN(code)];
		v >>= taken;
		if (__builtin_expect(!octets, 0)) {
			if (!code)
				return SCAN_BAD;
			text = v & 0xff;
			octets = 1;
			v >>= 8;
			taken += 8;
		}
		left -= (int)taken;
		have -= (int)taken;
		if (left < 0 || matched > s->octets)
			return SCAN_BAD;
		uint64_t differ = domset_load64(s->key + matched) ^ text;
		differ &= ~(uint64_t)0 >> (64 - 8 * octets);
		if (differ) {
			unsigned shift = (unsigned)__builtin_ctzll(differ) & 56;
			s->matched = matched + shift / 8;
			return (text >> shift & 0xff) > s->key[s->matched] ? SCAN_ABOVE
									   : SCAN_BELOW;
		}
		matched += octets;
	}
	s->matched = matched;
	if (matched >= s->octets)
		return SCAN_ABOVE;
	if (s->key[matched])
		return SCAN_BELOW;
	s->matched++;
	return SCAN_PREFIX;
}

static int scan_hit(const struct domset_block *b, unsigned name, size_t octets,
		    struct domset_hits *out)
{
	if (out->count > NAME_LABELS_MAX)
		return -EBADMSG;
	out->at[out->count].octets = (uint16_t)octets;
	return id_of(b, name, &out->at[out->count++].id);
}

static void scan_inherited(const struct domset_block *b, const struct scan *s,
			   struct domset_hits *out)
{
	/* Ancestors of the first name: of the asked one too as far as both agree. */
	for (unsigned i = 0; i < b->inherited; i++) {
		uint32_t at = b->inherited_at + i * (9 + b->id_width);
		uint32_t octets = bits_at(b, at, 9);
		if (octets > s->matched)
			break;
		out->at[out->count].octets = (uint16_t)octets;
		out->at[out->count++].id = bits_at(b, at + 9, b->id_width);
	}
}

/*
 * Eight names at once. Those that share more with the name before than the key does part from the
 * key where that did, and are skipped without a look: `candidates` are the others.
 */
static int scan_group(const struct domset_block *b, struct scan *s, unsigned group, unsigned left,
		      uint32_t *bit, struct domset_hits *out)
{
	uint64_t lcps =
		spread(domset_load64(b->data + b->lcp_at + group * b->lcp_width), b->lcp_width);
	uint64_t sizes =
		spread(domset_load64(b->data + b->size_at + group * b->size_width), b->size_width);
	uint64_t there = left < 8 ? below_octet(left) : ~(uint64_t)0;
	uint64_t candidates = at_most(lcps, s->matched - b->lcp_min) & there;
	while (candidates) {
		unsigned shift = (unsigned)__builtin_ctzll(candidates) & 56, i = shift / 8;
		if ((lcps >> shift & 0xff) + b->lcp_min < s->matched)
			return SCAN_ABOVE;
		uint32_t before =
			(sum_octets(sizes & below_octet(i)) + i * b->size_min) * DOMSET_SIZE_UNIT;
		uint32_t bits =
			((uint32_t)(sizes >> shift & 0xff) + b->size_min) * DOMSET_SIZE_UNIT;
		size_t matched = s->matched;
		int place = scan_suffix(s, *bit + before, bits);
		if (place == SCAN_PREFIX && scan_hit(b, group * 8 + i + 1, s->matched, out))
			return SCAN_BAD;
		if (place == SCAN_ABOVE || place == SCAN_BAD)
			return place;
		if (s->matched != matched)
			candidates = at_most(lcps, s->matched - b->lcp_min) & there;
		candidates &= ~(below_octet(i) | (uint64_t)0xff << shift);
	}
	*bit += (sum_octets(sizes & there) + 8 * b->size_min) * DOMSET_SIZE_UNIT;
	return SCAN_BELOW;
}

int domset_block_scan(const struct domset_block *b, const struct domset_decoder *d,
		      const uint8_t *key, size_t octets, struct domset_hits *out)
{
	struct scan s = {d, b->data, key, octets, 0, b->end};
	uint32_t bit = b->suffixes_at;
	out->count = 0;
	int place = scan_suffix(&s, bit, b->first_bits);
	if (place == SCAN_BAD)
		return -EBADMSG;
	scan_inherited(b, &s, out);
	if (place == SCAN_PREFIX && scan_hit(b, 0, s.matched, out))
		return -EBADMSG;
	if (place == SCAN_ABOVE || s.matched < b->lcp_min)
		return 0; /* all others are above, or part from the key as the first does */
	bit += b->first_bits;
	unsigned left = b->names - 1;
	for (unsigned group = 0; group * 8 < left; group++) {
		place = scan_group(b, &s, group, left - group * 8, &bit, out);
		if (place != SCAN_BELOW)
			return place == SCAN_BAD ? -EBADMSG : 0;
	}
	return 0;
}

int domset_block_compare_first(const struct domset_block *b, const struct domset_decoder *d,
			       const uint8_t *key, size_t octets, int *order)
{
	struct scan s = {d, b->data, key, octets, 0, b->end};
	int place = scan_suffix(&s, b->suffixes_at, b->first_bits);
	if (place == SCAN_BAD)
		return -EBADMSG;
	*order = place == SCAN_ABOVE ? -1 : place == SCAN_PREFIX && s.matched == octets ? 0 : 1;
	return 0;
}

static int decode_suffix(const struct domset_block *b, const struct domset_decoder *d,
			 struct domset_block_cursor *c, uint32_t stop)
{
	while (c->bit + DOMSET_MIN_CODE_BITS <= stop) {
		uint64_t v = domset_bits(b->data, c->bit);
		unsigned code = d->code[v & ((1u << DOMSET_MAX_CODE_BITS) - 1)];
		uint64_t text = d->text[DOMSET_CODE_TOKEN(code)];
		unsigned octets = d->octets[DOMSET_CODE_TOKEN(code)];
		c->bit += DOMSET_CODE_BITS(code);
		if (!octets) {
			text = v >> DOMSET_CODE_BITS(code) & 0xff;
			octets = 1;
			c->bit += 8;
		}
		if (!code || c->bit > stop || c->octets + octets >= KEY_MAX)
			return -EBADMSG;
		memcpy(c->key + c->octets, &text, sizeof text);
		c->octets += octets;
	}
	c->key[c->octets++] = 0;
	c->bit = stop;
	return 0;
}

int domset_block_next(const struct domset_block *b, const struct domset_decoder *d,
		      struct domset_block_cursor *c, uint32_t *id)
{
	uint32_t bits = b->first_bits, lcp = 0;
	if (c->next == b->names)
		return 0;
	if (c->next) {
		unsigned i = c->next - 1;
		lcp = bits_at(b, 8 * b->lcp_at + i * b->lcp_width, b->lcp_width) + b->lcp_min;
		bits = (bits_at(b, 8 * b->size_at + i * b->size_width, b->size_width) +
			b->size_min) *
		       DOMSET_SIZE_UNIT;
	} else {
		c->bit = b->suffixes_at;
	}
	if (lcp > c->octets || c->bit + bits > b->end)
		return -EBADMSG;
	c->octets = lcp;
	if (decode_suffix(b, d, c, c->bit + bits) || id_of(b, c->next, id))
		return -EBADMSG;
	c->next++;
	return 1;
}
