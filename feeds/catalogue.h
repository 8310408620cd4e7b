/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public feeds that Baleen knows by name: catalogue.yaml as a table. Read through a source, so
 * that it is sealed in the snapshot; lives in the caller's arena.
 */
#ifndef BALEEN_FEEDS_CATALOGUE_H
#define BALEEN_FEEDS_CATALOGUE_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/source.h"
#include "feeds/feed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct catalogue_entry {
	const char *name;
	const char *about;
	const char *home;
	const char *licence;
	const char *const *urls; /* the URL and its mirrors, NULL-terminated */
	const struct feed_format *format;
	struct feed_hints hints;
	enum feed_match match;
	enum feed_kind kind;
	const char *category;
	const char *threat_type;
	int confidence;
	uint64_t refresh_ms; /* what its maintainers allow at most this often */
	bool key_needed;     /* the URL works only with a key of one's own */
};

struct catalogue {
	struct catalogue_entry *items;
	size_t count;
};

/* 0, -ENOENT (no catalogue installed), -EINVAL with `d`. */
int catalogue_load(struct source *source, struct arena *a, struct diags *d, struct catalogue *out);
const struct catalogue_entry *catalogue_find(const struct catalogue *c, const char *name);

/* The words of the configuration, shared by catalogue and `feeds:`. NULL-terminated. */
extern const char *const feed_kind_words[], *const feed_match_words[], *const feed_mode_words[];
/* A format's word: sets *out (NULL for "auto"); else tells `d`. */
bool feed_format_node(const struct node *n, struct diags *d, const struct feed_format **out);
/* A feed's `column`, `path` and `url-host`, each only beside a format that has a use for it. */
void feed_hints_node(const struct node *feed, struct diags *d, const struct feed_format *format,
		     struct feed_hints *out);

#endif
