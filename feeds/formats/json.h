/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON (RFC 8259) as a stream, in pieces of any size, in constant memory and without recursion.
 * Several values one behind the other (a value a line) pass. Owned by its format's state.
 */
#ifndef BALEEN_FEEDS_FORMATS_JSON_H
#define BALEEN_FEEDS_FORMATS_JSON_H

#include "feeds/formats/entry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 64
#define JSON_TEXT_MAX  ((size_t)64 << 10)
#define JSON_KEY_MAX   48

struct json_frame {
	bool array;
	bool key_overlong;
	uint8_t key_length; /* of the member that is being read */
	char key[JSON_KEY_MAX];
};

struct json {
	/* A string (unescaped, UTF-8), or another scalar as written. frames[depth - 1] is what it
	 * is in. `overlong`: text was cut to JSON_TEXT_MAX. 0 or -errno, which ends the body. */
	int (*value)(void *context, const struct json *j, bool string, struct entry_text text);
	/* An object or array begins, or ends: frames[depth - 1] is it. May be NULL. */
	int (*open)(void *context, const struct json *j);
	int (*close)(void *context, const struct json *j);
	void *context;
	const char *error; /* with -EBADMSG from here */
	uint64_t line;	   /* from 0 */
	size_t depth;
	struct json_frame frames[JSON_DEPTH_MAX];
	bool overlong;

	/* Private. */
	int expect, token;
	unsigned digits;
	uint32_t code, high;
	size_t length;
	char text[JSON_TEXT_MAX];
};

/* Set the callbacks, all else zero. 0, -EBADMSG with `error`, or a callback's. */
int json_push(struct json *j, const char *text, size_t size);
/* The end: -EBADMSG if something is still open. */
int json_finish(struct json *j);

bool json_key_is(const struct json_frame *frame, const char *key);

/* The next part of a path such as `items[].domain` or `*[].ioc`: 1 and *part for a key (`*`: any),
 * 2 for `[]`, 0 at the end, -1 if it is none. */
int json_path_next(const char **path, struct entry_text *part);
/* Is the value that `value` was called with where the path leads to? */
bool json_is_at(const struct json *j, const char *path);

#endif
