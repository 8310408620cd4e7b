/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a block of names, in the fetcher. Invariant: whatever was added comes back out of
 * domset_block_scan and domset_block_next.
 */
#include "feeds/set/domset_block.h"

static_assert(KEY_MAX * (DOMSET_MAX_CODE_BITS + 8) / DOMSET_SIZE_UNIT < 1 << 12,
	      "the size of a first suffix has 12 bits");

struct bit_writer {
	uint8_t *data;
	size_t bits;
};

/* Up to 57 bits, the lowest first. The octets behind must be zero and writable. */
static void put(struct bit_writer *w, uint64_t value, unsigned width)
{
	uint64_t v = domset_load64(w->data + w->bits / 8) | value << (w->bits & 7);
	memcpy(w->data + w->bits / 8, &v, sizeof v);
	w->bits += width;
}

static void align(struct bit_writer *w, unsigned unit)
{
	w->bits = (w->bits + unit - 1) / unit * unit;
}

void domset_block_begin(struct domset_block_writer *w, const struct domset_tokens *tokens)
{
	w->tokens = tokens;
	w->names = 0;
	w->lcp_min = UINT16_MAX;
	w->lcp_max = 0;
	w->inherited.count = 0;
	memset(w->suffixes, 0, w->bits / 8 + 16);
	w->bits = 0;
}

bool domset_block_add(struct domset_block_writer *w, const uint8_t *key, size_t octets, size_t lcp,
		      uint32_t id)
{
	unsigned lcp_min = lcp < w->lcp_min ? (unsigned)lcp : w->lcp_min;
	unsigned lcp_max = lcp > w->lcp_max ? (unsigned)lcp : w->lcp_max;
	if (w->names == DOMSET_BLOCK_NAMES || (w->names && lcp_max - lcp_min > 255))
		return false;
	if (!w->names)
		lcp = 0;
	/* The key's last octet goes without saying. */
	uint16_t parsed[KEY_MAX];
	size_t count = domset_tokens_parse(w->tokens, key + lcp, octets - lcp - 1, parsed);
	size_t bits = 0;
	for (size_t i = 0; i < count; i++)
		bits += w->tokens->token[parsed[i]].bits + (parsed[i] ? 0 : 8);
	size_t units = (bits + DOMSET_SIZE_UNIT - 1) / DOMSET_SIZE_UNIT;
	if (w->names && units > DOMSET_SIZE_MAX)
		return false;
	struct bit_writer out = {w->suffixes, w->bits};
	const uint8_t *text = key + lcp;
	for (size_t i = 0; i < count; i++) {
		const struct domset_token *token = &w->tokens->token[parsed[i]];
		put(&out, w->tokens->code[parsed[i]], token->bits);
		if (!parsed[i])
			put(&out, *text, 8);
		text += parsed[i] ? token->octets : 1;
	}
	align(&out, DOMSET_SIZE_UNIT);
	w->bits = out.bits;
	if (w->names) {
		w->lcp_min = lcp_min;
		w->lcp_max = lcp_max;
	}
	w->lcp[w->names] = (uint16_t)lcp;
	w->units[w->names] = (uint16_t)units;
	w->id[w->names++] = id;
	return true;
}

/* The distinct ids in order of appearance; each name's place among them. */
static unsigned palette_of(const struct domset_block_writer *w, uint32_t *palette, uint8_t *index)
{
	unsigned count = 0;
	for (unsigned i = 0; i < w->names; i++) {
		unsigned k = 0;
		while (k < count && palette[k] != w->id[i])
			k++;
		if (k == count)
			palette[count++] = w->id[i];
		index[i] = (uint8_t)k;
	}
	return count;
}

size_t domset_block_finish(struct domset_block_writer *w, uint8_t *out)
{
	uint32_t palette[DOMSET_BLOCK_NAMES], id_max = 0;
	uint8_t index[DOMSET_BLOCK_NAMES];
	unsigned colours = palette_of(w, palette, index);
	unsigned size_min = DOMSET_SIZE_MAX, size_max = 0;
	for (unsigned i = 1; i < w->names; i++) {
		size_min = w->units[i] < size_min ? w->units[i] : size_min;
		size_max = w->units[i] > size_max ? w->units[i] : size_max;
	}
	if (w->names == 1)
		w->lcp_min = w->lcp_max = size_min = size_max = 0;
	for (unsigned i = 0; i < colours; i++)
		id_max = palette[i] > id_max ? palette[i] : id_max;
	for (unsigned i = 0; i < w->inherited.count; i++)
		id_max = w->inherited.at[i].id > id_max ? w->inherited.at[i].id : id_max;
	unsigned lcp_width = domset_width(w->lcp_max - w->lcp_min + 1);
	unsigned size_width = domset_width(size_max - size_min + 1);
	unsigned id_width = domset_width(id_max + 1), index_width = domset_width(colours);
	bool direct = w->names * id_width <= colours * id_width + w->names * index_width;

	memset(out, 0, DOMSET_BLOCK_MAX);
	struct bit_writer b = {out, 16};
	put(&b, w->names - 1, 6);
	put(&b, w->inherited.count != 0, 1);
	put(&b, lcp_width, 4);
	put(&b, size_width, 4);
	put(&b, w->lcp_min, 9);
	put(&b, size_min, 8);
	put(&b, w->units[0], 12);
	put(&b, direct, 1);
	put(&b, direct ? 0 : colours - 1, 6);
	put(&b, id_width, 5);
	for (unsigned i = 1; i < w->names; i++)
		put(&b, w->lcp[i] - w->lcp_min, lcp_width);
	align(&b, 8);
	for (unsigned i = 1; i < w->names; i++)
		put(&b, w->units[i] - size_min, size_width);
	align(&b, 8);
	if (w->inherited.count)
		put(&b, w->inherited.count, 7);
	for (unsigned i = 0; i < w->inherited.count; i++) {
		put(&b, w->inherited.at[i].octets, 9);
		put(&b, w->inherited.at[i].id, id_width);
	}
	for (unsigned i = 0; i < colours && !direct; i++)
		put(&b, palette[i], id_width);
	for (unsigned i = 0; i < w->names; i++)
		put(&b, direct ? w->id[i] : index[i], direct ? id_width : index_width);
	for (size_t bit = 0; bit < w->bits; bit += 8) {
		unsigned n = w->bits - bit < 8 ? (unsigned)(w->bits - bit) : 8;
		put(&b, w->suffixes[bit / 8], n);
	}
	align(&b, 8);
	return b.bits / 8;
}
