/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One block of front-coded names: written by the builder, scanned by a lookup without ever putting
 * a name together, and read name by name by a walk. Layout: domset_layout.h.
 */
#ifndef BALEEN_FEEDS_SET_DOMSET_BLOCK_H
#define BALEEN_FEEDS_SET_DOMSET_BLOCK_H

#include "base/key.h"
#include "base/name.h"
#include "feeds/set/domset_tokens.h"

#define DOMSET_KEY_PAD 48 /* zero octets that must stand behind a key that is asked for */
#define DOMSET_BLOCK_MAX                                                                           \
	(DOMSET_BLOCK_HEADER + 2 * DOMSET_BLOCK_NAMES +                                            \
	 (7 + NAME_LABELS_MAX * (9 + 31) + DOMSET_BLOCK_NAMES * (31 + 6) +                         \
	  DOMSET_BLOCK_NAMES * DOMSET_SIZE_MAX * DOMSET_SIZE_UNIT + KEY_MAX * 24) /                \
		 8 +                                                                               \
	 16)

/* ---- reading ---- */

/* A listed ancestor of the asked name, or itself. */
struct domset_hit {
	uint16_t octets; /* of its key */
	uint32_t id;
};

struct domset_hits {
	unsigned count;
	struct domset_hit at[NAME_LABELS_MAX + 1]; /* by ascending length */
};

/* What the header says, with the places of the parts; all inside the block. */
struct domset_block {
	const uint8_t *data;
	unsigned names;
	unsigned lcp_width, lcp_min;
	unsigned size_width, size_min;
	unsigned first_bits;
	unsigned palette; /* 0: ids stand for themselves */
	unsigned id_width, index_width;
	unsigned inherited;
	uint32_t lcp_at, size_at;		     /* octets */
	uint32_t inherited_at, palette_at, index_at; /* bits */
	uint32_t suffixes_at, end;		     /* bits */
};

uint16_t domset_block_crc(const uint8_t *data, size_t octets);

/* `octets` up to the next block; 8 more must be readable. -EBADMSG if the parts do not fit. */
int domset_block_open(const uint8_t *data, size_t octets, struct domset_block *out);

/*
 * Collect the listed ancestors of `key` (itself included) that this block knows. `key` is followed
 * by DOMSET_KEY_PAD zero octets. -EBADMSG for nonsense.
 */
int domset_block_scan(const struct domset_block *b, const struct domset_decoder *d,
		      const uint8_t *key, size_t octets, struct domset_hits *out);

/* How `key` stands to the block's first key: <0, 0, >0 in *order. */
int domset_block_compare_first(const struct domset_block *b, const struct domset_decoder *d,
			       const uint8_t *key, size_t octets, int *order);

struct domset_block_cursor {
	unsigned next;
	uint32_t bit;
	size_t octets; /* of key */
	uint8_t key[KEY_MAX + DOMSET_TOKEN_OCTETS];
};

/* The next key and its id: 1, 0 at the end, -EBADMSG. Start with a zeroed cursor. */
int domset_block_next(const struct domset_block *b, const struct domset_decoder *d,
		      struct domset_block_cursor *c, uint32_t *id);

/* ---- building ---- */

struct domset_block_writer {
	const struct domset_tokens *tokens;
	unsigned names;
	uint16_t lcp[DOMSET_BLOCK_NAMES];
	uint16_t units[DOMSET_BLOCK_NAMES]; /* of SIZE_UNIT bits */
	uint32_t id[DOMSET_BLOCK_NAMES];
	unsigned lcp_min, lcp_max;
	struct domset_hits inherited;
	size_t bits;
	uint8_t suffixes[DOMSET_BLOCK_MAX];
};

/* Begin a block; the caller then fills in `inherited`. */
void domset_block_begin(struct domset_block_writer *w, const struct domset_tokens *tokens);

/* False if the name must begin the next block. lcp: what it shares with the name before. */
bool domset_block_add(struct domset_block_writer *w, const uint8_t *key, size_t octets, size_t lcp,
		      uint32_t id);

/* Write the block (its CRC still zero); returns its octets, at most DOMSET_BLOCK_MAX. */
size_t domset_block_finish(struct domset_block_writer *w, uint8_t *out);

#endif
