/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The domain set: one immutable LMDB file that maps millions of names, exactly, to the feeds that
 * hold them. Reader and builder share this contract; the layout is drawn in domset_layout.h.
 *
 * A name is listed by feeds, each with flags that say how. A lookup walks all ancestors of a name
 * at once and returns each listed one; nothing is pruned that another feed or depth would need.
 * The file names feeds, not numbers: domset_bind maps them to a generation's feed numbers.
 * The file is never edited or truncated in place. LMDB trusts its pages; we do not: domset_open
 * checks the whole file's CRC32C when asked, and every block's when it is decoded.
 */
#ifndef BALEEN_FEEDS_SET_DOMSET_H
#define BALEEN_FEEDS_SET_DOMSET_H

#include "base/name.h"
#include "feeds/feed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a feed lists a name. EXACT: the name alone. SUBTREE: it and all below. BELOW: all below. */
enum {
	DOMSET_EXACT = 1,
	DOMSET_SUBTREE = 2,
	DOMSET_BELOW = 4,
};
/* The same three bits again, shifted: the feed's own exceptions, which undo only its own matches.
 */
#define DOMSET_EXCEPT(bits)	      ((bits) << 3)
#define DOMSET_IMPORTANT(bits)	      ((bits) << 6) /* beats an exception that is not important */
#define DOMSET_EXCEPT_IMPORTANT(bits) ((bits) << 9)
#define DOMSET_FLAGS_MASK	      0x0fff

struct domset_entry {
	uint16_t feed; /* index into the file's feed names */
	uint16_t flags;
};

/* ---- reading ---- */

struct domset;

#define DOMSET_ERROR_MAX 256

enum domset_check { DOMSET_CHECK_HEADER, DOMSET_CHECK_ALL };

/* Open a set file. -ENOENT, -EINVAL (not a set, wrong version), -EBADMSG (damaged), -ENOMEM. */
int domset_open(const char *path, enum domset_check check, struct domset **out,
		char error[DOMSET_ERROR_MAX]);
void domset_close(struct domset *s);
/* Is this an address in the set's file? For a handler of SIGBUS: safe in a signal. */
bool domset_maps(const struct domset *s, const void *address);

/* Map the file's feeds to numbers in `feeds`; a feed that is not subscribed never matches. Must be
 * called once before domset_lookup. */
int domset_bind(struct domset *s, const struct feeds *feeds);

struct domset_match {
	uint8_t labels; /* labels of the listed name; the asked name has domset_result.labels */
	uint32_t combination; /* domset_combination() says which feeds, how */
};

struct domset_result {
	unsigned count;	       /* listed ancestors, the asked name included, deepest first */
	unsigned labels;       /* of the asked name */
	struct feedmask feeds; /* every feed that matches, its own exceptions applied */
	bool damaged; /* a block did not decode: the caller must not treat it as "not listed" */
	struct domset_match at[NAME_LABELS_MAX + 1]; /* only `count` are set */
};

/* `wire` is lower-cased, `length` octets with the root label, `labels` without. Never allocates. */
void domset_lookup(const struct domset *s, const uint8_t *wire, size_t length, unsigned labels,
		   struct domset_result *out);

/* The hashes of a name's suffixes, for this set alone. count 0: none are known. */
#define DOMSET_HASHES_MAX 8
struct domset_hashes {
	unsigned count;			/* the name's labels */
	uint64_t at[DOMSET_HASHES_MAX]; /* of the suffix of 1, 2, ... labels */
};

/* Fetch what the next lookup of this name will touch first (the filter's lines). `out` is for that
 * lookup; a name of more labels than fit has no hashes, and nothing is fetched for it. */
void domset_prefetch(const struct domset *s, const uint8_t *wire, size_t length, unsigned labels,
		     struct domset_hashes *out);

/* domset_lookup with what domset_prefetch has worked out for the same set and name. */
void domset_lookup_hashed(const struct domset *s, const uint8_t *wire, size_t length,
			  unsigned labels, const struct domset_hashes *hashes,
			  struct domset_result *out);

/* The entries of one combination, feeds as the file's index. */
const struct domset_entry *domset_combination(const struct domset *s, uint32_t combination,
					      size_t *count);

/* The deepest listed name by which feed number `feed` matches the result, as its label count; -1
 * if it does not. `*flags` gets the bit that matched. */
int domset_match_of(const struct domset *s, const struct domset_result *r, unsigned feed,
		    uint16_t *flags);

size_t domset_feed_count(const struct domset *s);
const char *domset_feed_name(const struct domset *s, size_t index);
unsigned domset_feed_number(const struct domset *s, size_t index); /* FEED_NONE: not subscribed */

struct domset_stats {
	uint64_t names;
	uint64_t entries; /* names times feeds */
	uint64_t file_octets;
	uint64_t filter_octets;
	uint64_t index_octets;
	uint64_t block_octets;
	uint64_t combinations;
	uint32_t crc32c; /* of the whole file's contents: equal input, equal octets */
};
void domset_stats(const struct domset *s, struct domset_stats *out);

/* Walk every name in key order (tests, `feeds` tools): 1 and the record, 0 at the end, -errno. */
struct domset_walk;
int domset_walk_new(const struct domset *s, struct domset_walk **out);
int domset_walk_next(struct domset_walk *w, struct name *name, uint32_t *combination);
void domset_walk_free(struct domset_walk *w);

/* ---- building ---- */

struct domset_record {
	const uint8_t *key; /* base/key.h; strictly ascending from call to call */
	size_t key_length;
	const struct domset_entry *entries; /* sorted by feed, no feed twice */
	size_t count;
};

/* A sorted stream that can be read several times. next: 1, 0 at the end, -errno. */
struct domset_stream {
	int (*next)(void *context, struct domset_record *out);
	int (*rewind)(void *context);
	void *context;
};

struct domset_build {
	const char *const *feed_names; /* sorted bytewise: same input, same octets */
	size_t feed_count;
	uint64_t site_key; /* mixed into the filter's seed; 0: none */
};

/*
 * Write a set to `path` (which must not exist), fsynced, not renamed. Anonymous memory stays under
 * 64 MiB whatever the input. 0 or -errno (-ENOSPC, -EILSEQ for an unsorted stream, ...).
 */
int domset_build(const char *path, const struct domset_build *options, struct domset_stream *stream,
		 struct domset_stats *out);

#endif
