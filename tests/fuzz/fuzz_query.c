/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may send: message_parse_query. A query that is taken in has a question that spells
 * out, parses back to the same name, and stands where it says it does. */
#include "base/message.h"
#include "base/name.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct message_query query;

	memset(&query, 0, sizeof(query));
	if (message_parse_query(data, size, &query) != MESSAGE_OK)
		return 0;

	const struct message_question *q = &query.question;
	if (!q->name || q->name < data || q->name + q->length > data + size)
		abort();

	uint8_t lower[NAME_WIRE_MAX];
	char text[NAME_TEXT_MAX];
	struct name back;
	name_lower(q->name, q->length, lower);
	if (name_parse(text, name_format(lower, text), &back) != 0)
		abort();
	if (!name_equal(back.wire, back.length, lower, q->length) || back.labels != q->labels)
		abort();
	return 0;
}
