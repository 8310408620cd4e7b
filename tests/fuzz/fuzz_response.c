/* SPDX-License-Identifier: Apache-2.0 */
/* What upstream may send: walking, rebuilding, cutting, and the view that plugins get. A rebuilt
 * message is well formed, rebuilding it again changes nothing, and a cut one fits and still reads.
 */
#include "base/message.h"
#include "base/message_build.h"
#include "core/dns/answer_view.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t once[MESSAGE_SIZE_MAX], twice[MESSAGE_SIZE_MAX], third[MESSAGE_SIZE_MAX];

static void walk_whole(const uint8_t *data, size_t size)
{
	struct message_walk walk;
	struct message_record record;
	int more;

	if (message_walk_start(&walk, data, size) != 0)
		abort();
	while ((more = message_walk_next(&walk, &record)) == 1)
		if (record.end > size)
			abort();
	if (more < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct answer_view *view;
	struct message_facts facts, again;
	int length = message_clean(data, size, once, sizeof(once), 0, 86400, &facts);

	if (!view && !(view = answer_view_new()))
		abort();
	if (length < 0)
		return 0;
	walk_whole(once, (size_t)length);
	if (message_clean(once, (size_t)length, twice, sizeof(twice), 0, 86400, &again) != length ||
	    memcmp(once, twice, (size_t)length) != 0)
		abort();
	answer_view_make(view, once, (size_t)length, false, false);

	static const size_t limits[] = {512, 1232, 4096};
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		memcpy(third, once, (size_t)length);
		size_t cut = message_cut(third, (size_t)length, limits[i]);
		if (cut > limits[i])
			abort();
		if (cut)
			walk_whole(third, cut);
	}
	return 0;
}
