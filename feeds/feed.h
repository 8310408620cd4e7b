/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The feeds a site subscribes to, as configured: the `feeds:` list of baleen.yaml, with what the
 * catalogue says filled in. A feed's number is its place in that list, valid inside one generation;
 * everything that outlives a generation goes by name. Read-only once loaded.
 */
#ifndef BALEEN_FEEDS_FEED_H
#define BALEEN_FEEDS_FEED_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/node.h"
#include "base/source.h"

#include <stdbool.h>
#include <stdint.h>

#define FEEDS_MAX     256
#define FEED_NONE     0xffff
#define FEED_NAME_MAX 63

enum feed_kind { FEED_KIND_BLOCKLIST, FEED_KIND_THREAT };
enum feed_mode { FEED_MODE_ENFORCE, FEED_MODE_SHADOW };
enum feed_match { FEED_MATCH_FORMAT, FEED_MATCH_SUBTREE, FEED_MATCH_EXACT };

/* A set of feed numbers. */
struct feedmask {
	uint64_t words[FEEDS_MAX / 64];
};

static inline void feedmask_add(struct feedmask *m, unsigned feed)
{
	m->words[feed / 64] |= (uint64_t)1 << feed % 64;
}

static inline bool feedmask_has(const struct feedmask *m, unsigned feed)
{
	return m->words[feed / 64] >> feed % 64 & 1;
}

static inline bool feedmask_meets(const struct feedmask *a, const struct feedmask *b)
{
	return ((a->words[0] & b->words[0]) | (a->words[1] & b->words[1]) |
		(a->words[2] & b->words[2]) | (a->words[3] & b->words[3])) != 0;
}

static inline bool feedmask_any(const struct feedmask *m)
{
	return (m->words[0] | m->words[1] | m->words[2] | m->words[3]) != 0;
}

/* The lowest number in both, or FEED_NONE. */
unsigned feedmask_first(const struct feedmask *a, const struct feedmask *b);

struct feed_format; /* formats/format.h */

/* What a feed's configuration says beside its format's name. */
struct feed_hints {
	const char *column; /* csv: the column's name, or its number from 1; NULL: a usual one */
	const char *path;   /* json: where the names are; NULL: "[]" */
	bool url_host;	    /* a URL with a path stands for its host */
};

struct feed {
	const char *name; /* [a-z0-9][a-z0-9._-]*, at most FEED_NAME_MAX */
	unsigned number;
	const char *file;	 /* absolute path, or NULL */
	const char *const *urls; /* the URL and its mirrors, NULL-terminated; NULL with `file` */
	const struct feed_format *format; /* NULL: auto */
	struct feed_hints hints;
	enum feed_match match;
	enum feed_kind kind;
	enum feed_mode mode;
	const char *category; /* never NULL; default: "" */
	const char *threat_type;
	const char *licence;	 /* from the catalogue, or NULL */
	int confidence;		 /* 0..100, default 100 */
	uint64_t refresh_ms;	 /* default 1 d; the catalogue's floor holds */
	uint64_t max_bytes;	 /* of a body, default 256 MiB */
	const char *ca_file;	 /* absolute, or NULL: the system's */
	const char *header_file; /* absolute, or NULL */
	bool allow_private;	 /* redirects may lead to private addresses */
	double shrink_limit;	 /* admission: new/old below this is refused; default 0.5 */
	double grow_limit;	 /* and above this; default 3 */
	int line, column;	 /* in the configuration */
};

struct feeds {
	struct feed *items;
	size_t count;
	struct feedmask enforced_blocklists; /* what `feeds: all` means */
	struct feedmask enforced;
};

/*
 * Read the `feeds:` list (may be NULL: no feeds). Relative files are relative to `config_file`.
 * The catalogue comes from `source`. All errors go to `d`.
 */
int feeds_load(const struct node *list, const char *config_file, struct source *source,
	       struct arena *a, struct diags *d, struct feeds *out);

/*
 * Shadow feeds that `feeds promote` named (STATE/feeds/promoted, read through `source`) enforce
 * from here on. After feeds_load, before policies are loaded. A missing file is fine.
 */
void feeds_promote(struct feeds *f, struct source *source, const char *state);

/*
 * A data file of the program's own ("catalogue.yaml", "popular.txt"), read through `source` so that
 * it is sealed with the rest: beside the program in a build tree, else installed. -ENOENT: neither.
 */
int feed_data_read(struct source *source, const char *name, struct source_file *out);

/* [a-z0-9][a-z0-9._-]*, at most FEED_NAME_MAX: safe as a folder's name too. */
bool feed_name_is_valid(const char *name);

const struct feed *feeds_find(const struct feeds *f, const char *name);

#endif
