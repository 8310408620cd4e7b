/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MISP: events, as feeds and the API give them, and warning lists.
 *
 *   {"Event": {"Attribute": [{"type": "domain", "value": "x.test", "to_ids": true}, ...],
 *              "Object": [{"Attribute": [...]}, ...]}}
 *   {"type": "hostname", "list": ["x.test", ".y.test", ...], ...}
 *
 * As MISP's own export to RPZ does it, a `domain` stands for itself and all below it, a `hostname`
 * for itself; of a `url` see indicator.h. What is not for detection (`to_ids` false) or of another
 * type is counted as not applied; what is deleted says nothing. Of warning lists those of type
 * string and hostname are names, `.x` with all below. State: the records. Runs in the fetcher and
 * in `feeds compile`.
 */
#include "feeds/formats/indicator.h"
#include "feeds/formats/json_body.h"

#include "feeds/set/domset.h"

#include <stdio.h>
#include <string.h>

enum { MISP_TYPE, MISP_VALUE, MISP_TO_IDS, MISP_DELETED };
static const char *const misp_names[] = {"type", "value", "to_ids", "deleted", NULL};

static const struct {
	const char *type;
	uint16_t name_flags;
	bool cut; /* what stands before the '|' */
} misp_types[] = {
	{"domain", DOMSET_EXACT, false},   {"hostname", DOMSET_EXACT, false},
	{"domain|ip", DOMSET_EXACT, true}, {"hostname|port", DOMSET_EXACT, true},
	{"url", DOMSET_EXACT, false},
};

static bool misp_is_true(const struct json_records *r, const struct json_field *field)
{
	return json_field_is(r, field, "true") || json_field_is(r, field, "1");
}

/* Is the object that ends an item of a list called Attribute? */
static bool misp_is_attribute(const struct json *j)
{
	return j->depth >= 3 && j->frames[j->depth - 2].array &&
	       json_key_is(&j->frames[j->depth - 3], "Attribute");
}

static int misp_attribute(struct feed_body *body, const struct json_records *r,
			  const struct json_field *fields)
{
	struct entry_text value = json_field_text(r, &fields[MISP_VALUE]);
	const struct feed_line line = {value.at, value.length, r->json.line + 1};
	if (misp_is_true(r, &fields[MISP_DELETED]))
		return 0;
	if (fields[MISP_VALUE].overlong) {
		entry_reject(body->sink, &line, FEED_REJECT_LONG);
		return 0;
	}
	for (size_t i = 0; i < sizeof(misp_types) / sizeof(misp_types[0]); i++) {
		if (!json_field_is(r, &fields[MISP_TYPE], misp_types[i].type))
			continue;
		if (!misp_is_true(r, &fields[MISP_TO_IDS]))
			break;
		const char *bar = memchr(value.at, '|', value.length);
		if (misp_types[i].cut && bar)
			value.length = (size_t)(bar - value.at);
		return indicator_deliver(body, &line, value.at, value.length,
					 misp_types[i].name_flags, DOMSET_EXACT);
	}
	entry_reject(body->sink, &line, FEED_REJECT_UNSUPPORTED);
	return 0;
}

/* The document itself: a warning list says what it is a list of, be it at its end. */
static int misp_document(struct feed_body *body, const struct json_records *r,
			 const struct json_field *fields)
{
	char why[96];
	struct entry_text type = json_field_text(r, &fields[MISP_TYPE]);
	if (!fields[MISP_TYPE].present || json_field_is(r, &fields[MISP_TYPE], "string") ||
	    json_field_is(r, &fields[MISP_TYPE], "hostname"))
		return 0;
	int length = type.length < 32 ? (int)type.length : 32;
	snprintf(why, sizeof(why), "a warning list of type %.*s", length, type.at);
	return body->sink->refuse(body->sink->context, why);
}

static int misp_record(struct feed_body *body, const struct json_records *r,
		       const struct json_field fields[JSON_FIELDS_MAX])
{
	if (misp_is_attribute(&r->json))
		return misp_attribute(body, r, fields);
	return r->json.depth == 1 ? misp_document(body, r, fields) : 0;
}

static int misp_value(struct feed_body *body, const struct json_records *r, bool string,
		      struct entry_text text)
{
	if (!json_is_at(&r->json, "list[]"))
		return 0;
	const struct feed_line line = {text.at, text.length, r->json.line + 1};
	if (!string || r->json.overlong) {
		entry_reject(body->sink, &line, string ? FEED_REJECT_LONG : FEED_REJECT_SYNTAX);
		return 0;
	}
	return indicator_deliver(body, &line, text.at, text.length, DOMSET_EXACT, DOMSET_EXACT);
}

static int misp_text(struct feed_body *body, const char *text, size_t size)
{
	struct json_records *r = body->state;
	r->names = misp_names;
	r->record = misp_record;
	r->value = misp_value;
	return json_records_push(body, text, size);
}

static int misp_end(struct feed_body *body)
{
	struct json_records *r = body->state;
	return json_body_end(body, &r->json);
}

static int misp_recognise(const char *head, size_t size)
{
	static const char *const keys[] = {"\"Event\"", "\"Attribute\"", "\"matching_attributes\"",
					   "\"list\""};
	struct entry_text t = entry_trim(head, size);
	if (t.length == 0 || (t.at[0] != '{' && t.at[0] != '['))
		return 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (memmem(t.at, t.length, keys[i], strlen(keys[i])))
			return 70;
	return 0;
}

const struct feed_format feed_format_misp = {
	.name = "misp",
	.help = "MISP events and warning lists (JSON)",
	.default_match = FEED_MATCH_FORMAT,
	.state_size = sizeof(struct json_records),
	.text = misp_text,
	.end = misp_end,
	.recognise = misp_recognise,
};
