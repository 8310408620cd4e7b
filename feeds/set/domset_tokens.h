/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token table: strings of 1 to 8 octets with Huffman codes, by which suffixes are written.
 * Trained by the builder (domset_train.c), stored in the file, turned into a decode table by the
 * reader. Any octet that is no token of its own goes through the escape, token 0.
 */
#ifndef BALEEN_FEEDS_SET_DOMSET_TOKENS_H
#define BALEEN_FEEDS_SET_DOMSET_TOKENS_H

#include "feeds/set/domset_layout.h"

#include <stdbool.h>

/* ---- reading ---- */

/*
 * Two steps: the next MAX_CODE_BITS bits to a token and its code's length, which is all that
 * finding the next token waits for; and from the token to its text.
 */
struct domset_decoder {
	uint16_t code[1 << DOMSET_MAX_CODE_BITS]; /* token << 4 | bits; 0: no code begins so */
	uint8_t octets[DOMSET_TOKENS_MAX];	  /* 0: the escape */
	uint64_t text[DOMSET_TOKENS_MAX];	  /* first octet lowest, zero padded */
};

static_assert(DOMSET_TOKENS_MAX << 4 <= 1 << 16 && DOMSET_MAX_CODE_BITS < 16, "u16 code");

#define DOMSET_CODE_BITS(code)	((code)&15)
#define DOMSET_CODE_TOKEN(code) ((code) >> 4)

/* -EBADMSG if the lengths are not those of a prefix code. */
int domset_decoder_init(struct domset_decoder *d, const struct domset_token *tokens, size_t count);

/* ---- building ---- */

/* Finds the tokens that start a text. */
struct domset_matcher {
	uint16_t octet[256];	  /* token of this one octet, or 0 */
	uint8_t lengths[1 << 16]; /* by the first two octets: bit n - 1: some token has n octets */
	uint16_t slot[DOMSET_TOKENS_MAX * 4];
};

struct domset_tokens {
	size_t count;
	struct domset_token token[DOMSET_TOKENS_MAX];
	uint64_t text[DOMSET_TOKENS_MAX];
	uint16_t code[DOMSET_TOKENS_MAX]; /* first bit lowest */
	uint32_t cost[DOMSET_TOKENS_MAX]; /* in 1/256 bits, what parses are chosen by */
	struct domset_matcher matcher;
};

/* From texts of known octets, tokens 1..count-1 set: sort out how to find them. */
void domset_tokens_index(struct domset_tokens *t);

/* Canonical codes from token[].bits. */
void domset_tokens_assign(struct domset_tokens *t);

/*
 * The cheapest way to write `text` (at most KEY_MAX octets) as tokens: fills `out`, returns how
 * many. The escape stands for one octet.
 */
size_t domset_tokens_parse(const struct domset_tokens *t, const uint8_t *text, size_t octets,
			   uint16_t *out);

/* Train on sampled suffixes: `sample` holds (u16 octets, text) one after the other. 0 or -ENOMEM.
 */
int domset_train(struct domset_tokens *t, const uint8_t *sample, size_t octets);

#endif
