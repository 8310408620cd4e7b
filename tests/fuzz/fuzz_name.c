/* SPDX-License-Identifier: Apache-2.0 */
/* Names as people write them, and the sort keys made of them: what parses prints, parses back to
 * the same octets, and its key decodes to the same name. */
#include "base/key.h"
#include "base/name.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct name *name)
{
	char text[NAME_TEXT_MAX];
	struct name back;
	unsigned labels;

	if (name_measure(name->wire, name->length, &labels) != name->length ||
	    labels != name->labels)
		abort();
	if (name_parse(text, name_format(name->wire, text), &back) != 0)
		abort();
	if (!name_equal(back.wire, back.length, name->wire, name->length))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct name name;
	unsigned labels;

	if (name_parse((const char *)data, size, &name) == 0)
		round_trip(&name);
	if (name_from_unicode((const char *)data, size, &name) == 0)
		round_trip(&name);

	size_t length = name_measure(data, size, &labels);
	if (length) {
		uint8_t lower[NAME_WIRE_MAX];
		name_lower(data, length, lower);
		name_set(&name, lower, length, labels);
		round_trip(&name);
	}
	return 0;
}
