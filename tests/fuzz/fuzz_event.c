/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event record as it stands in shared memory: whatever it holds, event_read refuses it or gives
 * an event whose JSON is one line of strict JSON.
 */
#include "core/event.h"
#include "tests/fuzz/site.h"

#include <cjson/cJSON.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event_storage *storage;
	static char text[65536];
	struct baleen_event e;

	if (!storage)
		storage = event_storage_new(site_load());
	if (event_read(storage, data, size, &e) < 0)
		return 0;
	size_t n = event_json(&e, text, sizeof(text) - 1);
	if (n >= sizeof(text))
		abort();
	text[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20)
			abort();
	cJSON *json = cJSON_ParseWithLengthOpts(text, n + 1, NULL, true);
	if (!json)
		abort();
	cJSON_Delete(json);
	return 0;
}
