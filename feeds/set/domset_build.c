/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building a set file from a sorted stream, in the fetcher (and in `feeds compile`). Two readings:
 * the first counts, checks, numbers combinations and samples suffixes for the token table; the
 * second writes blocks and index and spills hashes for the filter. Invariant: equal stream and
 * options give equal octets, and anonymous memory does not grow with the stream.
 */
#include "feeds/set/domset.h"

#include "base/hash.h"
#include "base/key.h"
#include "feeds/set/domset_block.h"
#include "feeds/set/domset_filter.h"
#include "feeds/set/domset_index.h"
#include "feeds/set/domset_lists.h"
#include "feeds/set/domset_shards.h"
#include "feeds/set/domset_suffixes.h"

#include <errno.h>
#include <stdlib.h>

#define SAMPLE_OCTETS ((size_t)4 << 20)
#define MAP_SLACK     ((size_t)256 << 20)
#define SUFFIXES_ROOM ((size_t)1 << 15)

struct builder {
	const struct domset_build *options;
	struct domset_stream *stream;
	struct domset_header header;
	uint64_t content; /* hash of the stream */
	uint64_t key_octets;
	uint64_t list_entries;

	uint8_t previous[KEY_MAX];
	size_t previous_octets;
	bool started;

	uint8_t *sample; /* (u16 octets, text): the suffix of one name in 2^sample_shift */
	size_t sample_octets;
	unsigned sample_shift;

	struct domset_tokens *tokens;
	struct domset_file file;
	struct domset_lists *lists;
	struct domset_shards shards;
	struct domset_index *index;
	struct domset_chunks names;
	struct domset_chunks leaves;
	struct domset_block_writer *block;
	uint8_t *block_out;
	size_t block_start; /* of the last block in the chunk being filled: its CRC is not set yet
			     */
	bool block_open;
	uint8_t separator[KEY_MAX]; /* of the block being filled */
	size_t separator_octets;
	struct domset_hits ancestors; /* listed ones of the name before, itself included */

	uint64_t *suffixes;
	size_t suffix_count;
};

/* ---- what both readings do ---- */

static size_t common_octets(const struct builder *b, const struct domset_record *r)
{
	size_t n = 0;
	while (n < r->key_length && n < b->previous_octets && r->key[n] == b->previous[n])
		n++;
	return n;
}

/* Is it a well-formed record, above the one before? Sets what it shares with that. */
static int check(const struct builder *b, const struct domset_record *r, size_t *lcp)
{
	uint8_t wire[NAME_WIRE_MAX];
	*lcp = 0;
	if (r->key_length > KEY_MAX || !key_to_wire(r->key, r->key_length, wire) || !r->count)
		return -EINVAL;
	for (size_t i = 0; i < r->count; i++) {
		const struct domset_entry *e = &r->entries[i];
		if (e->feed >= b->options->feed_count || (i && e[-1].feed >= e->feed) ||
		    !e->flags || e->flags & ~DOMSET_FLAGS_MASK)
			return -EINVAL;
	}
	if (!b->started)
		return 0;
	*lcp = common_octets(b, r);
	if (*lcp == r->key_length ||
	    (*lcp < b->previous_octets && r->key[*lcp] < b->previous[*lcp]))
		return -EILSEQ;
	return 0;
}

static void remember(struct builder *b, const struct domset_record *r)
{
	memcpy(b->previous, r->key, r->key_length);
	b->previous_octets = r->key_length;
	b->started = true;
}

static int reading(struct builder *b,
		   int (*each)(struct builder *b, const struct domset_record *r, size_t lcp))
{
	struct domset_record r;
	b->started = false;
	int rc = b->stream->rewind(b->stream->context);
	while (!rc) {
		rc = b->stream->next(b->stream->context, &r);
		if (rc <= 0)
			return rc;
		size_t lcp;
		rc = check(b, &r, &lcp);
		if (!rc)
			rc = each(b, &r, lcp);
		if (!rc)
			remember(b, &r);
	}
	return rc;
}

/* ---- first reading ---- */

/* Full: from here on take only every second one of those, and drop every second that was taken. */
static void sample_halve(struct builder *b)
{
	size_t kept = 0;
	bool keep = true;
	b->sample_shift++;
	for (size_t at = 0; at < b->sample_octets; keep = !keep) {
		uint16_t octets;
		memcpy(&octets, b->sample + at, 2);
		if (keep) {
			memmove(b->sample + kept, b->sample + at, 2u + octets);
			kept += 2u + octets;
		}
		at += 2u + octets;
	}
	b->sample_octets = kept;
}

static void sample(struct builder *b, const uint8_t *text, uint16_t octets)
{
	if (b->header.names & (((uint64_t)1 << b->sample_shift) - 1))
		return;
	while (b->sample_octets + 2u + octets > SAMPLE_OCTETS)
		sample_halve(b);
	memcpy(b->sample + b->sample_octets, &octets, 2);
	memcpy(b->sample + b->sample_octets + 2, text, octets);
	b->sample_octets += 2u + octets;
}

static int count(struct builder *b, const struct domset_record *r, size_t lcp)
{
	b->header.names++;
	b->header.entries += r->count;
	b->key_octets += r->key_length;
	b->content = hash_bytes(b->content, r->key, r->key_length);
	b->content = hash_bytes(b->content, r->entries, r->count * sizeof *r->entries);
	if (r->key_length)
		sample(b, r->key + lcp, (uint16_t)(r->key_length - lcp - 1));
	return domset_lists_count(b->lists, r->entries, r->count);
}

static int first_reading(struct builder *b)
{
	b->lists = domset_lists_new();
	b->sample = malloc(SAMPLE_OCTETS);
	b->tokens = malloc(sizeof *b->tokens);
	if (!b->lists || !b->sample || !b->tokens)
		return -ENOMEM;
	for (size_t i = 0; i < b->options->feed_count; i++) {
		const char *name = b->options->feed_names[i];
		b->content = hash_bytes(b->content, name, strlen(name) + 1);
	}
	int rc = reading(b, count);
	if (!rc)
		rc = domset_train(b->tokens, b->sample, b->sample_octets);
	free(b->sample);
	b->sample = NULL;
	return rc;
}

/* ---- second reading ---- */

static uint64_t hash_wire(uint64_t hash, const uint8_t *wire, unsigned labels)
{
	uint8_t padded[NAME_WIRE_MAX + DOMSET_LABEL_PAD] = {0};
	uint8_t at[NAME_LABELS_MAX];
	unsigned n = 0;
	size_t length = 0;
	for (; n < labels; n++) {
		at[n] = (uint8_t)length;
		length += wire[length] + 1u;
	}
	memcpy(padded, wire, length);
	while (n--)
		hash = domset_hash_label(hash, padded + at[n] + 1, padded[at[n]]);
	return hash;
}

static void add_suffix(void *context, const uint8_t *wire, unsigned labels)
{
	struct builder *b = context;
	if (b->suffix_count < SUFFIXES_ROOM)
		b->suffixes[b->suffix_count++] = hash_wire(b->header.hash_seed, wire, labels);
}

/* The CRC of the last block, now that its end is known. */
static void settle_block(struct builder *b, size_t end)
{
	if (!b->block_open)
		return;
	uint8_t *data = b->names.data + b->block_start;
	uint16_t crc = domset_block_crc(data, end - b->block_start);
	memcpy(data, &crc, sizeof crc);
	b->block_open = false;
}

static int close_chunk(struct builder *b, size_t octets)
{
	if (!b->names.used)
		return 0;
	memset(b->names.data + b->names.used, 0, octets - b->names.used);
	settle_block(b, octets - DOMSET_CHUNK_SLACK);
	b->names.used = octets;
	return domset_chunks_flush(&b->names);
}

static int finish_block(struct builder *b)
{
	if (!b->block->names)
		return 0;
	size_t octets = domset_block_finish(b->block, b->block_out);
	int rc = 0;
	if (b->names.used + octets > DOMSET_CHUNK_OCTETS - DOMSET_CHUNK_SLACK)
		rc = close_chunk(b, DOMSET_CHUNK_OCTETS);
	settle_block(b, b->names.used);
	uint8_t *to;
	uint32_t at;
	if (!rc)
		rc = domset_chunks_reserve(&b->names, octets, &to, &at);
	if (rc)
		return rc;
	memcpy(to, b->block_out, octets);
	b->block_start = (size_t)(to - b->names.data);
	b->block_open = true;
	b->header.blocks++;
	b->header.block_octets += octets;
	return domset_index_add(b->index, b->separator, b->separator_octets, at);
}

static int add_name(struct builder *b, const struct domset_record *r, size_t lcp, uint32_t id)
{
	if (domset_block_add(b->block, r->key, r->key_length, lcp, id))
		return 0;
	int rc = finish_block(b);
	domset_block_begin(b->block, b->tokens);
	b->separator_octets = lcp + 1;
	memcpy(b->separator, r->key, lcp + 1);
	b->block->inherited = b->ancestors;
	if (!domset_block_add(b->block, r->key, r->key_length, lcp, id))
		rc = -EIO; /* cannot be: a block takes any first name */
	return rc;
}

/* Top-level domains are asked for with every name below them: they must not pass by chance. */
static void note_top(struct builder *b, const struct domset_record *r, const uint8_t *wire,
		     size_t length, size_t lcp)
{
	const uint8_t *end = memchr(r->key, 0, r->key_length);
	if (lcp > (size_t)(end - r->key))
		return;
	size_t at = 0, last = 0;
	for (; at + 1 < length; at += wire[at] + 1u)
		last = at;
	add_suffix(b, wire + last, 1);
}

static int store(struct builder *b, const struct domset_record *r, size_t lcp)
{
	uint32_t id;
	int rc = domset_lists_id(b->lists, r->entries, r->count, &id);
	if (rc)
		return rc;
	if (!r->key_length) {
		b->header.root = id + 1;
		return 0;
	}
	uint8_t wire[NAME_WIRE_MAX];
	unsigned labels;
	size_t length = key_to_wire(r->key, r->key_length, wire);
	(void)name_measure(wire, length, &labels);
	note_top(b, r, wire, length, lcp);
	struct domset_hits *a = &b->ancestors;
	while (a->count && a->at[a->count - 1].octets > lcp)
		a->count--;
	rc = add_name(b, r, lcp, id);
	a->at[a->count++] = (struct domset_hit){(uint16_t)r->key_length, id};
	if (!rc)
		rc = domset_shards_add(&b->shards, hash_wire(b->header.hash_seed, wire, labels));
	return rc;
}

static int store_leaf(void *context, const struct domset_leaf *leaf)
{
	struct builder *b = context;
	uint8_t *to;
	uint32_t at;
	int rc = domset_chunks_reserve(&b->leaves, sizeof *leaf, &to, &at);
	if (!rc)
		memcpy(to, leaf, sizeof *leaf);
	return rc;
}

static int second_reading_begin(struct builder *b, const char *path)
{
	/* Far more than it can take; only addresses are used up. */
	size_t map = MAP_SLACK + b->key_octets * 4 + b->header.names * 16 + b->header.entries * 8;
	int rc = domset_file_begin(&b->file, path, map & ~(size_t)0xffff);
	if (rc)
		return rc;
	b->index = malloc(sizeof *b->index);
	b->block = calloc(1, sizeof *b->block);
	b->block_out = malloc(DOMSET_BLOCK_MAX);
	b->suffixes = malloc(SUFFIXES_ROOM * sizeof *b->suffixes);
	if (!b->index || !b->block || !b->block_out || !b->suffixes)
		return -ENOMEM;
	domset_index_init(b->index, store_leaf, b);
	domset_block_begin(b->block, b->tokens);
	rc = domset_shards_init(&b->shards, path, b->header.names);
	if (!rc)
		rc = domset_chunks_init(&b->names, &b->file, DOMSET_NAMES, DOMSET_CHUNK_OCTETS);
	if (!rc)
		rc = domset_chunks_init(&b->leaves, &b->file, DOMSET_LEAVES,
					DOMSET_LEAVES_PER_CHUNK * sizeof(struct domset_leaf));
	if (!rc)
		rc = domset_lists_rank(b->lists, &b->file);
	return rc;
}

static int second_reading(struct builder *b)
{
	domset_suffixes_each(add_suffix, b);
	int rc = reading(b, store);
	if (!rc)
		rc = finish_block(b);
	if (!rc)
		rc = close_chunk(b, b->names.used + DOMSET_CHUNK_SLACK);
	unsigned levels = 0;
	if (!rc && b->header.blocks)
		rc = domset_index_finish(b->index, &levels);
	if (!rc)
		rc = domset_chunks_flush(&b->leaves);
	for (unsigned i = 0; !rc && i < levels; i++)
		rc = domset_file_put(&b->file, DOMSET_UPPER, i, b->index->upper[i],
				     b->index->count[i] * sizeof(struct domset_node));
	if (!rc)
		rc = domset_lists_finish(b->lists, &b->header.combinations);
	b->header.levels = levels;
	domset_lists_free(b->lists); /* its room is for the filter's now */
	b->lists = NULL;
	return rc;
}

/* ---- the rest ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void suffixes_unique(struct builder *b)
{
	qsort(b->suffixes, b->suffix_count, sizeof *b->suffixes, by_value);
	size_t kept = 0;
	for (size_t i = 0; i < b->suffix_count; i++)
		if (!kept || b->suffixes[kept - 1] != b->suffixes[i])
			b->suffixes[kept++] = b->suffixes[i];
	b->suffix_count = kept;
}

static int write_filter(struct builder *b)
{
	size_t false_count;
	suffixes_unique(b);
	int rc = domset_shards_write(&b->shards, &b->file,
				     domset_mix(b->content, b->header.hash_seed | 1), b->suffixes,
				     b->suffix_count, &false_count);
	if (!rc && false_count)
		rc = domset_file_put(&b->file, DOMSET_SUFFIXES, 0, b->suffixes,
				     false_count * sizeof *b->suffixes);
	b->header.suffixes = (uint32_t)false_count;
	b->header.shards = b->shards.count;
	return rc;
}

static int write_feeds(struct builder *b)
{
	size_t octets = 0, at = 0;
	for (size_t i = 0; i < b->options->feed_count; i++)
		octets += strlen(b->options->feed_names[i]) + 1;
	char *names = malloc(octets + 1);
	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < b->options->feed_count; i++) {
		size_t length = strlen(b->options->feed_names[i]) + 1;
		memcpy(names + at, b->options->feed_names[i], length);
		at += length;
	}
	int rc = octets ? domset_file_put(&b->file, DOMSET_FEEDS, 0, names, octets) : 0;
	free(names);
	return rc;
}

static int write_rest(struct builder *b)
{
	int rc = write_filter(b);
	if (!rc)
		rc = write_feeds(b);
	if (!rc)
		rc = domset_file_put(&b->file, DOMSET_TOKENS, 0, b->tokens->token,
				     sizeof b->tokens->token);
	b->header.tokens = (uint32_t)b->tokens->count;
	b->header.feeds = (uint32_t)b->options->feed_count;
	if (!rc)
		rc = domset_file_put(&b->file, DOMSET_HEADER, 0, &b->header, sizeof b->header);
	return rc;
}

static void builder_fini(struct builder *b, int outcome)
{
	domset_file_end(&b->file, outcome);
	if (b->index)
		domset_index_fini(b->index);
	domset_shards_fini(&b->shards);
	domset_chunks_fini(&b->names);
	domset_chunks_fini(&b->leaves);
	domset_lists_free(b->lists);
	free(b->sample);
	free(b->tokens);
	free(b->index);
	free(b->block);
	free(b->block_out);
	free(b->suffixes);
	free(b);
}

static void fill_stats(const struct builder *b, struct domset_stats *out, uint64_t file_octets,
		       uint32_t crc32c)
{
	*out = (struct domset_stats){
		.names = b->header.names,
		.entries = b->header.entries,
		.file_octets = file_octets,
		.block_octets = b->header.block_octets,
		.combinations = b->header.combinations,
		.crc32c = crc32c,
	};
	for (size_t i = 0; i < b->file.extent_count; i++) {
		const struct domset_extent *e = &b->file.extents[i];
		if (e->kind == DOMSET_FILTER)
			out->filter_octets += e->octets;
		if (e->kind == DOMSET_LEAVES || e->kind == DOMSET_UPPER)
			out->index_octets += e->octets;
	}
}

int domset_build(const char *path, const struct domset_build *options, struct domset_stream *stream,
		 struct domset_stats *out)
{
	if (options->feed_count > UINT16_MAX)
		return -EINVAL;
	for (size_t i = 1; i < options->feed_count; i++)
		if (strcmp(options->feed_names[i - 1], options->feed_names[i]) >= 0)
			return -EINVAL;
	struct builder *b = calloc(1, sizeof *b);
	if (!b)
		return -ENOMEM;
	b->options = options;
	b->stream = stream;
	b->shards.fd = -1;
	b->header.hash_seed =
		domset_mix(options->site_key ^ 0x9e3779b97f4a7c15u, 0xd1342543de82ef95u);
	uint64_t file_octets = 0;
	uint32_t crc32c = 0;
	int rc = first_reading(b);
	if (!rc)
		rc = second_reading_begin(b, path);
	if (!rc)
		rc = second_reading(b);
	if (!rc)
		rc = write_rest(b);
	if (!rc)
		rc = domset_file_seal(&b->file, &file_octets, &crc32c);
	if (!rc && out)
		fill_stats(b, out, file_octets, crc32c);
	builder_fini(b, rc);
	return rc;
}
