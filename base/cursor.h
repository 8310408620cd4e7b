/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way foreign octets are read and messages are written: a bounds-checked cursor with a
 * sticky error. After the first read or write out of bounds every later one yields zeros (or
 * writes nothing); check cursor_ok once at the end. Leaf file; all inline.
 */
#ifndef BALEEN_BASE_CURSOR_H
#define BALEEN_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *data;
	size_t size;
	size_t at;
	bool failed;
};

static inline struct cursor cursor_make(const void *data, size_t size)
{
	return (struct cursor){.data = data, .size = size};
}

static inline bool cursor_ok(const struct cursor *c)
{
	return !c->failed;
}

static inline size_t cursor_left(const struct cursor *c)
{
	return c->failed ? 0 : c->size - c->at;
}

/* `n` octets at the cursor, or NULL. Advances. */
static inline const uint8_t *cursor_take(struct cursor *c, size_t n)
{
	if (c->failed || n > c->size - c->at) {
		c->failed = true;
		return NULL;
	}
	const uint8_t *p = c->data + c->at;
	c->at += n;
	return p;
}

static inline uint8_t cursor_u8(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 1);
	return p ? p[0] : 0;
}

static inline uint16_t cursor_u16(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 2);
	return p ? (uint16_t)(p[0] << 8 | p[1]) : 0;
}

static inline uint32_t cursor_u32(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 4);
	return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

static inline void cursor_skip(struct cursor *c, size_t n)
{
	(void)cursor_take(c, n);
}

/* The writing twin. `at` never passes `size`; overflow sets failed and writes nothing more. */
struct writer {
	uint8_t *data;
	size_t size;
	size_t at;
	bool failed;
};

static inline struct writer writer_make(void *data, size_t size)
{
	return (struct writer){.data = data, .size = size};
}

static inline uint8_t *writer_reserve(struct writer *w, size_t n)
{
	if (w->failed || n > w->size - w->at) {
		w->failed = true;
		return NULL;
	}
	uint8_t *p = w->data + w->at;
	w->at += n;
	return p;
}

static inline void writer_u8(struct writer *w, uint8_t v)
{
	uint8_t *p = writer_reserve(w, 1);
	if (p)
		p[0] = v;
}

static inline void writer_u16(struct writer *w, uint16_t v)
{
	uint8_t *p = writer_reserve(w, 2);
	if (p) {
		p[0] = (uint8_t)(v >> 8);
		p[1] = (uint8_t)v;
	}
}

static inline void writer_u32(struct writer *w, uint32_t v)
{
	uint8_t *p = writer_reserve(w, 4);
	if (p) {
		p[0] = (uint8_t)(v >> 24);
		p[1] = (uint8_t)(v >> 16);
		p[2] = (uint8_t)(v >> 8);
		p[3] = (uint8_t)v;
	}
}

static inline void writer_bytes(struct writer *w, const void *data, size_t n)
{
	uint8_t *p = writer_reserve(w, n);
	if (p && n)
		memcpy(p, data, n);
}

#endif
