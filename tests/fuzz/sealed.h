/* SPDX-License-Identifier: Apache-2.0 */
/* A source that holds one file and nothing else: what a fuzzed text names cannot be read. */
#ifndef BALEEN_TESTS_FUZZ_SEALED_H
#define BALEEN_TESTS_FUZZ_SEALED_H

#include "base/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * `path` must be of a file that can be written, in a folder that exists; it is read, sealed and
 * removed, and lives on in the source. Given `list`, the folder's *.yaml are listed too.
 */
static struct source *sealed_source(const char *path, const char *list, const uint8_t *data,
				    size_t size)
{
	struct source *disk = source_disk(), *sealed = NULL;
	struct source_file file;
	char **names;
	size_t count;
	int memfd = -1;
	FILE *f = fopen(path, "w");
	if (!disk || !f || fwrite(data, 1, size, f) != size || fclose(f) != 0 ||
	    source_read(disk, path, &file) < 0)
		abort();
	if (list && source_list(disk, list, ".yaml", &names, &count) == 0)
		source_list_free(names, count);
	if (unlink(path) < 0 || source_seal(disk, &memfd) < 0 ||
	    source_snapshot(memfd, &sealed) < 0)
		abort();
	close(memfd);
	source_free(disk);
	return sealed;
}

/* A folder of this process's own, gone when it ends. */
static char sealed_folder[] = "/tmp/baleen-fuzz-XXXXXX";

static void sealed_remove(void)
{
	(void)rmdir(sealed_folder);
}

static const char *sealed_path(void)
{
	static char path[64];
	if (!path[0]) {
		if (!mkdtemp(sealed_folder))
			abort();
		atexit(sealed_remove);
		snprintf(path, sizeof(path), "%s/f.yaml", sealed_folder);
	}
	return path;
}

/* Findings are sentences with a place, and there are some exactly when loading failed. */
static void sealed_check(const struct diags *d, int result)
{
	if ((result < 0) != (d->errors > 0))
		abort();
	for (size_t i = 0; i < d->count; i++)
		if (!d->items[i].text[0] || d->items[i].line < 0)
			abort();
}

#endif
