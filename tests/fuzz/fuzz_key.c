/* SPDX-License-Identifier: Apache-2.0 */
/* key.c: any octets are either no key, or the key of exactly one name; order is the names' order.
 */
#include "base/key.h"
#include "base/name.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* True if it was a key. */
static int check(const uint8_t *key, size_t octets, uint8_t wire[NAME_WIRE_MAX])
{
	uint8_t back[KEY_MAX];
	unsigned labels;
	size_t length = key_to_wire(key, octets, wire);
	if (!length)
		return 0;
	if (name_measure(wire, length, &labels) != length)
		abort();
	if (key_from_wire(wire, length, labels, back) != octets || memcmp(back, key, octets))
		abort();
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t a[NAME_WIRE_MAX], b[NAME_WIRE_MAX];
	size_t half = size / 2;
	(void)check(data, size, a);
	if (!check(data, half, a) || !check(data + half, size - half, b))
		return 0;
	/* Keys order as names do, as far as neither has upper-case octets to fold. */
	int by_key = key_compare(data, half, data + half, size - half),
	    by_name = name_compare(a, b);
	if ((by_key > 0) - (by_key < 0) != (by_name > 0) - (by_name < 0))
		abort();
	return 0;
}
