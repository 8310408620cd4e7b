/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token table of a set file: finding tokens in a text, assigning codes, the decode table. Used
 * by the builder in the fetcher and by every process that opens a set. Invariant: what parse writes
 * with the codes of assign, a decoder over the same table reads back.
 */
#include "feeds/set/domset_tokens.h"

#include "base/key.h"

#include <errno.h>

static uint64_t mask_of(unsigned octets)
{
	return octets >= 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * octets) - 1;
}

/* Canonical order: by code length, then by token. Returns false if the lengths ask too much. */
static bool assign(const struct domset_token *tokens, size_t count, uint16_t *code)
{
	uint32_t next = 0;
	for (unsigned bits = DOMSET_MIN_CODE_BITS; bits <= DOMSET_MAX_CODE_BITS; bits++) {
		next <<= 1;
		for (size_t i = 0; i < count; i++) {
			if (tokens[i].bits != bits)
				continue;
			if (next >> bits)
				return false;
			uint32_t reversed = 0;
			for (unsigned b = 0; b < bits; b++)
				reversed |= (next >> b & 1) << (bits - 1 - b);
			code[i] = (uint16_t)reversed;
			next++;
		}
	}
	return true;
}

void domset_tokens_assign(struct domset_tokens *t)
{
	bool fits = assign(t->token, t->count, t->code);
	assert(fits);
	(void)fits;
}

int domset_decoder_init(struct domset_decoder *d, const struct domset_token *tokens, size_t count)
{
	uint16_t code[DOMSET_TOKENS_MAX];
	if (!count || count > DOMSET_TOKENS_MAX)
		return -EBADMSG;
	memset(d, 0, sizeof *d);
	for (size_t i = 0; i < count; i++) {
		const struct domset_token *t = &tokens[i];
		if (t->bits < DOMSET_MIN_CODE_BITS || t->bits > DOMSET_MAX_CODE_BITS ||
		    t->octets > DOMSET_TOKEN_OCTETS || !t->octets != !i)
			return -EBADMSG;
		d->text[i] = domset_load64(t->text) & mask_of(t->octets);
		d->octets[i] = t->octets;
	}
	if (!assign(tokens, count, code))
		return -EBADMSG;
	for (size_t i = 0; i < count; i++)
		for (uint32_t at = code[i]; at < 1u << DOMSET_MAX_CODE_BITS;
		     at += 1u << tokens[i].bits)
			d->code[at] = (uint16_t)(i << 4 | tokens[i].bits);
	return 0;
}

static size_t slot_of(uint64_t text, unsigned octets)
{
	uint64_t h = (text ^ octets) * 0x9e3779b97f4a7c15u;
	return h >> 40 & (DOMSET_TOKENS_MAX * 4 - 1);
}

void domset_tokens_index(struct domset_tokens *t)
{
	struct domset_matcher *m = &t->matcher;
	memset(m, 0, sizeof *m);
	for (size_t i = 1; i < t->count; i++) {
		unsigned octets = t->token[i].octets;
		t->text[i] = domset_load64(t->token[i].text) & mask_of(octets);
		if (octets == 1) {
			m->octet[t->text[i]] = (uint16_t)i;
			continue;
		}
		m->lengths[t->text[i] & 0xffff] |= (uint8_t)(1u << (octets - 1));
		size_t s = slot_of(t->text[i], octets);
		while (m->slot[s])
			s = (s + 1) & (DOMSET_TOKENS_MAX * 4 - 1);
		m->slot[s] = (uint16_t)i;
	}
}

static unsigned find(const struct domset_tokens *t, uint64_t text, unsigned octets)
{
	for (size_t s = slot_of(text, octets);; s = (s + 1) & (DOMSET_TOKENS_MAX * 4 - 1)) {
		unsigned i = t->matcher.slot[s];
		if (!i || (t->text[i] == text && t->token[i].octets == octets))
			return i;
	}
}

size_t domset_tokens_parse(const struct domset_tokens *t, const uint8_t *text, size_t octets,
			   uint16_t *out)
{
	uint8_t padded[KEY_MAX + 8];
	uint32_t cost[KEY_MAX + 1];
	uint16_t best[KEY_MAX];
	memcpy(padded, text, octets);
	memset(padded + octets, 0, 8);
	cost[octets] = 0;
	for (size_t i = octets; i--;) {
		uint64_t here = domset_load64(padded + i);
		unsigned token = t->matcher.octet[here & 0xff];
		best[i] = (uint16_t)token;
		cost[i] = cost[i + 1] + t->cost[token];
		unsigned lengths = t->matcher.lengths[here & 0xffff];
		if (octets - i < 8)
			lengths &= (1u << (octets - i)) - 1;
		for (; lengths; lengths &= lengths - 1) {
			unsigned n = (unsigned)__builtin_ctz(lengths) + 1;
			token = find(t, here & mask_of(n), n);
			if (token && cost[i + n] + t->cost[token] <= cost[i]) {
				cost[i] = cost[i + n] + t->cost[token];
				best[i] = (uint16_t)token;
			}
		}
	}
	size_t count = 0;
	for (size_t i = 0; i < octets; count++) {
		out[count] = best[i];
		i += best[i] ? t->token[best[i]].octets : 1;
	}
	return count;
}
