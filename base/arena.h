/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator: many small things that live and die together (a parsed file, a generation).
 * Never returns NULL: out of memory ends the process with a message, because an arena is only used
 * where the process has nothing better to do (loading a configuration in a throw-away child).
 * Not for the DNS path.
 */
#ifndef BALEEN_BASE_ARENA_H
#define BALEEN_BASE_ARENA_H

#include <stddef.h>

struct arena {
	struct arena_chunk *chunks;
};

void arena_init(struct arena *a);
void arena_fini(struct arena *a);

/* `size` zeroed bytes, aligned for any type. */
void *arena_alloc(struct arena *a, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t length);
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *arena_memdup(struct arena *a, const void *data, size_t size);

#endif
