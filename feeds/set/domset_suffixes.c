/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public suffix list, read once and kept as wire names (about 150 KiB). libpsl tells where the
 * distribution keeps it; it has no way to walk its own copy. A missing list is no error: top-level
 * domains are taken from the names themselves anyway. Invariant: the same in every build of a
 * process.
 */
#include "feeds/set/domset_suffixes.h"

#include "base/name.h"

#include <libpsl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIXES_OCTETS_MAX ((size_t)4 << 20)

static struct {
	bool read;
	uint8_t *names; /* wire names, one after the other */
	size_t octets;
} suffixes;

/* "*.ck" and "!www.ck" say that ck and www.ck are of interest too. */
static void add_line(const char *line)
{
	if (!strncmp(line, "//", 2))
		return;
	if (line[0] == '!')
		line++;
	if (!strncmp(line, "*.", 2))
		line += 2;
	size_t length = strcspn(line, " \t\r\n");
	struct name n;
	if (!length || name_from_unicode(line, length, &n) || !n.labels)
		return;
	void *grown = realloc(suffixes.names, suffixes.octets + n.length);
	if (!grown)
		return;
	suffixes.names = grown;
	memcpy(suffixes.names + suffixes.octets, n.wire, n.length);
	suffixes.octets += n.length;
}

/* libpsl may name its compiled form; the text lies beside it. */
static FILE *open_list(void)
{
	const char *path = psl_dist_filename();
	const char *dot = path ? strrchr(path, '.') : NULL;
	char *text = NULL;
	if (!dot || asprintf(&text, "%.*s.dat", (int)(dot - path), path) < 0)
		return NULL;
	FILE *f = fopen(text, "re");
	free(text);
	return f;
}

/* Once a process; a set can be built without. */
static void read_list(void)
{
	if (suffixes.read)
		return;
	suffixes.read = true;
	FILE *f = open_list();
	if (!f)
		return;
	char line[1024];
	while (suffixes.octets < SUFFIXES_OCTETS_MAX && fgets(line, sizeof line, f))
		add_line(line);
	fclose(f);
}

void domset_suffixes_each(void (*each)(void *context, const uint8_t *wire, unsigned labels),
			  void *context)
{
	read_list();
	for (size_t at = 0; at < suffixes.octets;) {
		unsigned labels = 0;
		size_t length = name_measure(suffixes.names + at, suffixes.octets - at, &labels);
		each(context, suffixes.names + at, labels);
		at += length;
	}
}
