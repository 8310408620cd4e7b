/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bump allocation in chunks. Whoever called arena_init owns everything in it; used where inputs are
 * loaded, never on the DNS path. Invariant: an address once given out stays valid and aligned for
 * any type until arena_fini, and the memory behind it was zeroed.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_CHUNK_SIZE ((size_t)64 << 10)

struct arena_chunk {
	struct arena_chunk *next;
	size_t used;
	size_t size;
	alignas(max_align_t) unsigned char data[];
};

void arena_init(struct arena *a)
{
	a->chunks = NULL;
}

void arena_fini(struct arena *a)
{
	struct arena_chunk *c = a->chunks;
	while (c) {
		struct arena_chunk *next = c->next;
		free(c);
		c = next;
	}
	a->chunks = NULL;
}

static void arena_exhausted(void)
{
	fputs("baleen: out of memory\n", stderr);
	abort();
}

static struct arena_chunk *arena_chunk_new(size_t size)
{
	struct arena_chunk *c = calloc(1, sizeof(*c) + size);
	if (!c)
		arena_exhausted();
	c->size = size;
	return c;
}

void *arena_alloc(struct arena *a, size_t size)
{
	const size_t align = alignof(max_align_t);
	if (size > SIZE_MAX / 2)
		arena_exhausted();
	size_t room = (size + align - 1) / align * align;
	if (room == 0)
		room = align;
	if (room > ARENA_CHUNK_SIZE / 4) {
		/* A chunk of its own, behind the first, so that the first one's rest is not lost.
		 */
		struct arena_chunk *own = arena_chunk_new(room);
		own->used = room;
		if (a->chunks) {
			own->next = a->chunks->next;
			a->chunks->next = own;
		} else {
			a->chunks = own;
		}
		return own->data;
	}
	if (!a->chunks || a->chunks->size - a->chunks->used < room) {
		struct arena_chunk *c = arena_chunk_new(ARENA_CHUNK_SIZE);
		c->next = a->chunks;
		a->chunks = c;
	}
	void *p = a->chunks->data + a->chunks->used;
	a->chunks->used += room;
	return p;
}

void *arena_memdup(struct arena *a, const void *data, size_t size)
{
	void *p = arena_alloc(a, size);
	if (size > 0)
		memcpy(p, data, size);
	return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t length)
{
	size_t n = strnlen(s, length);
	char *p = arena_alloc(a, n + 1);
	memcpy(p, s, n);
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_memdup(a, s, strlen(s) + 1);
}

char *arena_printf(struct arena *a, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (n < 0)
		arena_exhausted();
	char *p = arena_alloc(a, (size_t)n + 1);
	va_start(arguments, format);
	vsnprintf(p, (size_t)n + 1, format, arguments);
	va_end(arguments);
	return p;
}
