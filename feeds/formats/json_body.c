/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies and records of JSON. Runs in the fetcher and in `feeds compile`. Invariant: the texts of
 * an object lie behind those of the objects around it, so that its end frees them all at once.
 */
#include "feeds/formats/json_body.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int json_body_result(struct feed_body *body, struct json *j, int result)
{
	char why[128];
	if (result != -EBADMSG || !j->error)
		return result;
	snprintf(why, sizeof(why), "not JSON: %s (line %llu)", j->error,
		 (unsigned long long)j->line + 1);
	return body->sink->refuse(body->sink->context, why);
}

int json_body_push(struct feed_body *body, struct json *j, const char *text, size_t size)
{
	j->context = body;
	return json_body_result(body, j, json_push(j, text, size));
}

int json_body_end(struct feed_body *body, struct json *j)
{
	return json_body_result(body, j, json_finish(j));
}

static int json_records_open(void *context, const struct json *j)
{
	struct feed_body *body = context;
	struct json_records *r = body->state;
	memset(r->fields[j->depth - 1], 0, sizeof(r->fields[0]));
	r->marks[j->depth - 1] = r->used;
	return 0;
}

static int json_records_close(void *context, const struct json *j)
{
	struct feed_body *body = context;
	struct json_records *r = body->state;
	int result = 0;
	if (!j->frames[j->depth - 1].array)
		result = r->record(body, r, r->fields[j->depth - 1]);
	r->used = r->marks[j->depth - 1];
	return result;
}

static void json_records_keep(struct json_records *r, struct json_field *field, bool string,
			      struct entry_text text)
{
	bool overlong = r->json.overlong || text.length > sizeof(r->text) - r->used;
	*field = (struct json_field){.present = true, .string = string, .overlong = overlong};
	if (overlong)
		return;
	field->at = (uint32_t)r->used;
	field->length = (uint32_t)text.length;
	memcpy(r->text + r->used, text.at, text.length);
	r->used += text.length;
}

static int json_records_value(void *context, const struct json *j, bool string,
			      struct entry_text text)
{
	struct feed_body *body = context;
	struct json_records *r = body->state;
	for (size_t i = 0; j->depth > 0 && r->names[i]; i++)
		if (json_key_is(&j->frames[j->depth - 1], r->names[i]))
			json_records_keep(r, &r->fields[j->depth - 1][i], string, text);
	return r->value ? r->value(body, r, string, text) : 0;
}

int json_records_push(struct feed_body *body, const char *text, size_t size)
{
	struct json_records *r = body->state;
	r->json.value = json_records_value;
	r->json.open = json_records_open;
	r->json.close = json_records_close;
	return json_body_push(body, &r->json, text, size);
}

struct entry_text json_field_text(const struct json_records *r, const struct json_field *field)
{
	return (struct entry_text){r->text + field->at, field->length};
}

bool json_field_is(const struct json_records *r, const struct json_field *field, const char *text)
{
	return field->present && field->length == strlen(text) &&
	       memcmp(r->text + field->at, text, field->length) == 0;
}
