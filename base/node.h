/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML document as a tree of nodes that know where they stand, and typed, checked reads of it.
 * All of configuration, policy and plugin options go through here, so that every error carries
 * file:line:column, unknown keys name their nearest known neighbour, and a bare `*.x` says
 * "quote it". Built on libyaml's event API. Nodes live in the arena given to node_parse.
 * Anchors, aliases, tags and merge keys are errors. A duplicate key is an error naming both lines.
 * Bounded: nesting 32, document 4 MiB.
 */
#ifndef BALEEN_BASE_NODE_H
#define BALEEN_BASE_NODE_H

#include "base/addr.h"
#include "base/arena.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	const char *file;
	int line;
	int column;
	bool quoted;	       /* scalar only: it was quoted, so `null` is a text */
	const char *text;      /* scalar only: NUL-terminated, no NUL inside (that is an error) */
	struct node *next;     /* next item or value of the parent */
	struct node *children; /* list: items; map: values */
	const char *key;       /* when this is a map's value */
	int key_line;
	int key_column;
	size_t count;
};

/*
 * Parse one document. An empty document gives an empty map. Returns 0, or -EINVAL with `d` told;
 * then `*out` is NULL, or a whole tree, so that a caller can find the document's other errors too.
 */
int node_parse(const char *file, const char *text, size_t size, struct arena *a, struct diags *d,
	       struct node **out);

/* The value of `key` in a map, or NULL. */
const struct node *node_get(const struct node *map, const char *key);

/* True for an absent node and for an empty, unquoted scalar (`key:`). */
bool node_is_null(const struct node *n);

/*
 * Report every key of `map` that is not in the NULL-terminated `known`:
 * `unknown key "upstream" (did you mean "upstreams"?)`. Not a map: an error. Returns true if clean.
 */
bool node_check_keys(const struct node *map, const char *const *known, struct diags *d);

/* The known word nearest to `text` by edit distance (at most a third of its length), or NULL. */
const char *node_nearest(const char *text, const char *const *known);

/* `n`'s place, for one more error about it. */
void node_error(const struct node *n, struct diags *d, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void node_warning(const struct node *n, struct diags *d, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Typed reads. Each leaves `*out` alone when `n` is NULL (so a default can stand there), and tells
 * `d` when the text does not fit. Return true when `*out` was set.
 */
bool node_text(const struct node *n, struct diags *d, const char **out);
bool node_bool(const struct node *n, struct diags *d, bool *out); /* true|false|yes|no|on|off */
bool node_integer(const struct node *n, struct diags *d, int64_t min, int64_t max, int64_t *out);
bool node_number(const struct node *n, struct diags *d, double min, double max, double *out);
bool node_size(const struct node *n, struct diags *d, uint64_t *out_bytes);  /* 64MiB, 4096 */
bool node_duration(const struct node *n, struct diags *d, uint64_t *out_ms); /* 500ms 2s 1h 1d */
bool node_choice(const struct node *n, struct diags *d, const char *const *words, int *out);
bool node_address(const struct node *n, struct diags *d, struct addr *out);
bool node_prefix(const struct node *n, struct diags *d, struct prefix *out);
bool node_endpoint(const struct node *n, struct diags *d, uint16_t default_port,
		   struct endpoint *out);

#endif
