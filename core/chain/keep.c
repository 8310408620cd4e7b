/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The octets that plugins keep with a query. Owned by the query, gone with it; worker process.
 * Invariant: keep_used never passes QUERY_KEEP_BYTES.
 */
#include "core/chain/keep.h"

#include <string.h>

const void *keep_copy(struct query *q, const void *data, size_t size)
{
	size_t at = (q->keep_used + 7u) & ~(size_t)7;

	if (at > QUERY_KEEP_BYTES || size > QUERY_KEEP_BYTES - at)
		return NULL;
	memcpy(q->keep + at, data, size);
	q->keep_used = (uint16_t)(at + size);
	return q->keep + at;
}

static bool copy(struct query *q, const void *data, size_t size, const void **out)
{
	if (!data || !size)
		return true;
	*out = keep_copy(q, data, size);
	return *out != NULL;
}

bool keep_why(struct query *q, const struct baleen_why *why, struct baleen_why *out)
{
	const void *match = NULL, *target = NULL, *address = NULL, *text = NULL;

	*out = (struct baleen_why){.size = sizeof(*out), .rule = BALEEN_NONE, .feed = BALEEN_NONE};
	if (!why)
		return true;
	bool ok = copy(q, why->match, why->match_length, &match) &&
		  copy(q, why->target, why->target_length, &target) &&
		  copy(q, why->address, 16 * (size_t)why->address_count, &address) &&
		  copy(q, why->text, why->text ? strlen(why->text) + 1 : 0, &text);
	memcpy(out, why, why->size < sizeof(*out) ? why->size : sizeof(*out));
	out->size = sizeof(*out);
	out->match = match;
	out->target = target;
	out->address = address;
	out->text = text;
	return ok;
}
