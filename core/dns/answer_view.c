/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building the view of an answer that hooks see. Owns only what is inside struct answer_view.
 * Worker process, and offline commands. Invariant: a record that cannot be read fails the whole
 * view, so that no filter ever judges half an answer.
 */
#include "core/dns/answer_view.h"

#include "base/cursor.h"
#include "base/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct answer_view *answer_view_new(void)
{
	return calloc(1, sizeof(struct answer_view));
}

void answer_view_free(struct answer_view *v)
{
	free(v);
}

/* Decompress a name into the view's store. Returns it, or NULL with *error set. */
static const uint8_t *take_name(struct answer_view *v, size_t *used, size_t at, uint8_t *length,
				size_t *end, int *error)
{
	uint8_t *out = v->names + *used;

	if (sizeof(v->names) - *used < NAME_WIRE_MAX) {
		*error = -E2BIG;
		return NULL;
	}
	size_t n = message_name(v->answer.message, v->answer.message_length, at, out, NULL, end);
	if (!n) {
		*error = -EBADMSG;
		return NULL;
	}
	name_lower(out, n, out);
	*used += n;
	*length = (uint8_t)n;
	return out;
}

/* Where the target's name begins in the rdata of the types that have one, else 0. */
static size_t target_at(const struct message_record *r)
{
	switch (r->type) {
	case TYPE_CNAME:
	case TYPE_DNAME:
		return r->rdata_at;
	case TYPE_SVCB:
	case TYPE_HTTPS:
		return r->rdata_at + 2;
	default:
		return 0;
	}
}

/* Most owners are the question's name or repeat the one before: two octets of pointer. */
static bool points_to_question(const uint8_t *owner)
{
	return owner[0] == 0xc0 && owner[1] == MESSAGE_HEADER_SIZE;
}

static bool same_owner(const uint8_t *a, const uint8_t *b)
{
	return a[0] >= 0xc0 && a[0] == b[0] && a[1] == b[1];
}

int answer_view_make(struct answer_view *v, const uint8_t *message, size_t size, bool from_cache,
		     bool stale)
{
	struct message_walk walk = {.data = message, .size = size};
	struct message_record r;
	struct message_header header;
	struct message_question question;
	struct baleen_record *last = NULL;
	size_t last_at = 0;
	size_t used;
	size_t end;
	int error = 0;
	int more;

	if (size > MESSAGE_SIZE_MAX || !message_header(message, size, &header) ||
	    header.questions != 1 || !(walk.at = message_question(message, size, &question)))
		return -EBADMSG;
	memcpy(walk.left, header.records, sizeof(walk.left));
	v->answer = (struct baleen_answer){
		.size = sizeof(v->answer),
		.rcode = header.flags & MESSAGE_RCODE,
		.from_cache = from_cache,
		.stale = stale,
		.message_length = (uint16_t)size,
		.records = v->records,
		.message = message,
	};
	name_lower(question.name, question.length, v->names);
	used = question.length;
	while ((more = message_walk_next(&walk, &r)) > 0 && r.section == SECTION_ANSWER) {
		if (v->answer.record_count == ANSWER_VIEW_RECORDS)
			return -E2BIG;
		struct baleen_record *out = &v->records[v->answer.record_count++];
		*out = (struct baleen_record){
			.type = r.type,
			.rrclass = r.rrclass,
			.ttl = message_ttl(r.ttl),
			.rdata = message + r.rdata_at,
			.rdata_length = r.rdata_length,
		};
		if (points_to_question(message + r.at)) {
			out->owner = v->names;
			out->owner_length = question.length;
		} else if (last && same_owner(message + r.at, message + last_at)) {
			out->owner = last->owner;
			out->owner_length = last->owner_length;
		} else {
			out->owner = take_name(v, &used, r.at, &out->owner_length, &end, &error);
			if (!out->owner)
				return error;
		}
		last = out;
		last_at = r.at;
		size_t at = target_at(&r);
		if (!at)
			continue;
		out->target = take_name(v, &used, at, &out->target_length, &end, &error);
		if (!out->target)
			return error;
		if (end > r.end)
			return -EBADMSG;
	}
	return more < 0 ? -EBADMSG : 0;
}
