/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the JSON formats share: reading a body, and objects as records. A record is an object with
 * those of its members that the format names, as far as they are scalars; it is delivered when the
 * object ends, whatever stood between them. Owned by the format's state.
 */
#ifndef BALEEN_FEEDS_FORMATS_JSON_BODY_H
#define BALEEN_FEEDS_FORMATS_JSON_BODY_H

#include "feeds/formats/json.h"

#define JSON_FIELDS_MAX	 8
#define JSON_RECORDS_MAX ((size_t)128 << 10) /* octets of all open records */

struct json_field {
	bool present, string, overlong;
	uint32_t at, length;
};

struct json_records {
	struct json json;
	/* NULL-terminated, at most JSON_FIELDS_MAX. */
	const char *const *names;
	int (*record)(struct feed_body *body, const struct json_records *r,
		      const struct json_field fields[JSON_FIELDS_MAX]);
	/* Every scalar; may be NULL. */
	int (*value)(struct feed_body *body, const struct json_records *r, bool string,
		     struct entry_text text);

	/* Private. */
	size_t used;
	size_t marks[JSON_DEPTH_MAX];
	struct json_field fields[JSON_DEPTH_MAX][JSON_FIELDS_MAX];
	char text[JSON_RECORDS_MAX];
};

int json_body_push(struct feed_body *body, struct json *j, const char *text, size_t size);
int json_body_end(struct feed_body *body, struct json *j);

/* Set `names` and the callbacks before; `r` is body->state. */
int json_records_push(struct feed_body *body, const char *text, size_t size);
struct entry_text json_field_text(const struct json_records *r, const struct json_field *field);
/* A text, or false: another kind, not there. */
bool json_field_is(const struct json_records *r, const struct json_field *field, const char *text);

#endif
