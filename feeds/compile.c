/* SPDX-License-Identifier: Apache-2.0 */
/*
 * List file to feed file, feed files to set. Runs in the fetcher and in `feeds compile`; owns
 * nothing between calls. Invariant: feeds go into a set in the order of their names, so that equal
 * feed files give equal octets whatever the order in the configuration.
 */
#include "feeds/compile.h"

#include "base/file.h"
#include "feeds/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPILE_CHUNK ((size_t)256 << 10)

int compile_read_body(int fd, struct parse *p)
{
	char *chunk = malloc(COMPILE_CHUNK);
	if (!chunk)
		return -ENOMEM;
	int result = 0;
	for (;;) {
		ssize_t n = read(fd, chunk, COMPILE_CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			result = -errno;
		if (n <= 0)
			break;
		result = parse_push(p, chunk, (size_t)n);
		if (result < 0)
			break;
	}
	free(chunk);
	return result;
}

static int compile_order(const void *a, const void *b)
{
	const struct compile_feed *x = a, *y = b;
	return strcmp(x->name, y->name);
}

/* domset_build has written and synced it; give it its name. */
static int compile_rename(const char *temporary, const char *path)
{
	int fd = open(temporary, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return file_publish(fd, temporary, path);
}

int compile_set(const char *path, struct compile_feed *feeds, size_t count, uint64_t site_key,
		struct domset_stats *out, size_t *bad)
{
	int result = -ENOMEM;
	struct merge *merge = NULL;
	char *temporary = NULL;
	const char **names = calloc(count + 1, sizeof(*names));
	const char **paths = calloc(count + 1, sizeof(*paths));
	if (asprintf(&temporary, "%s.tmp.%ld", path, (long)getpid()) < 0)
		temporary = NULL;
	if (!names || !paths || !temporary)
		goto done;
	if (count > 0)
		qsort(feeds, count, sizeof(*feeds), compile_order);
	for (size_t i = 0; i < count; i++) {
		names[i] = feeds[i].name;
		paths[i] = feeds[i].path;
	}
	result = merge_new(paths, count, &merge, bad);
	if (result < 0)
		goto done;
	struct domset_build options = {.feed_names = names,
				       .feed_count = count,
				       .site_key = site_key};
	struct domset_stream stream = merge_stream(merge);
	unlink(temporary);
	result = domset_build(temporary, &options, &stream, out);
	if (result == 0)
		result = compile_rename(temporary, path);
	if (result < 0)
		unlink(temporary);
done:
	merge_free(merge);
	free(temporary);
	free(names);
	free(paths);
	return result;
}
