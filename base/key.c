/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sort keys of names. Leaf file, pure functions, used wherever names are ordered. Invariant:
 * key_to_wire(key_from_wire(n)) == n, and anything key_to_wire accepts is the key of exactly the
 * name it returns.
 */
#include "base/key.h"

#include "base/name.h"

#include <stdbool.h>
#include <string.h>

/* Does a label hold 00 or 01? Eight octets at once: one of (v & fe) is zero exactly if so. */
static bool must_escape(const uint8_t *label)
{
	const uint64_t ones = 0x0101010101010101u;
	const uint8_t *p = label + 1;
	unsigned left = label[0];
	uint64_t v, found = 0;
	for (; left >= 8; p += 8, left -= 8) {
		memcpy(&v, p, 8);
		v &= ~ones;
		found |= (v - ones) & ~v & 0x80 * ones;
	}
	for (; left; p++, left--)
		found |= *p <= 1;
	return found;
}

static size_t escape(const uint8_t *label, uint8_t *out)
{
	size_t n = 0;
	for (unsigned i = 1; i <= label[0]; i++) {
		if (label[i] <= 1) {
			out[n++] = 1;
			out[n++] = label[i] + 1;
		} else {
			out[n++] = label[i];
		}
	}
	return n;
}

size_t key_from_wire(const uint8_t *wire, size_t length, unsigned labels, uint8_t out[KEY_MAX])
{
	uint8_t at[NAME_LABELS_MAX];
	unsigned count = 0;
	for (size_t i = 0; i < length && wire[i] && count < NAME_LABELS_MAX; i += wire[i] + 1u)
		at[count++] = (uint8_t)i;
	if (count > labels)
		count = labels;
	size_t n = 0;
	while (count--) {
		const uint8_t *label = wire + at[count];
		memcpy(out + n, label + 1, label[0]);
		n += must_escape(label) ? escape(label, out + n) : label[0];
		out[n++] = 0;
	}
	return n;
}

size_t key_to_wire(const uint8_t *key, size_t length, uint8_t out[255])
{
	/* Built from the back, because the key's first label is the name's last. */
	uint8_t back[NAME_WIRE_MAX];
	size_t start = NAME_WIRE_MAX;
	back[--start] = 0;
	for (size_t i = 0; i < length;) {
		uint8_t label[NAME_LABEL_MAX];
		unsigned n = 0;
		for (;; i++) {
			if (i >= length)
				return 0;
			uint8_t c = key[i];
			if (c == 0)
				break;
			if (n == NAME_LABEL_MAX)
				return 0;
			if (c == 1) {
				if (++i >= length || (key[i] != 1 && key[i] != 2))
					return 0;
				c = key[i] - 1;
			}
			label[n++] = c;
		}
		i++;
		if (!n || start < n + 1u)
			return 0;
		start -= n;
		memcpy(back + start, label, n);
		back[--start] = (uint8_t)n;
	}
	memcpy(out, back + start, NAME_WIRE_MAX - start);
	return NAME_WIRE_MAX - start;
}

int key_compare(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length)
{
	int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
	if (order)
		return order;
	return (a_length > b_length) - (a_length < b_length);
}
