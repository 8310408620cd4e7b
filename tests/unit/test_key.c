/* SPDX-License-Identifier: Apache-2.0 */
/* key.c: round trip, order and ancestry agree with name.c on random names with odd octets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/key.h"
#include "base/name.h"

#include <string.h>

static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
	seed = hash_bytes(seed, "draw", 4);
	return (unsigned)(seed >> 33) % below;
}

/* Few labels and few octets, so that names are often ancestors or neighbours of one another. */
static void random_name(struct name *out)
{
	static const uint8_t octets[] = {0, 1, 2, '-', '.', 'a', 'b', 0xff};
	uint8_t wire[NAME_WIRE_MAX];
	size_t n = 0;
	unsigned labels = draw(5);
	for (unsigned i = 0; i < labels; i++) {
		unsigned size = 1 + draw(3);
		wire[n++] = (uint8_t)size;
		while (size--)
			wire[n++] = octets[draw(sizeof octets)];
	}
	wire[n++] = 0;
	name_set(out, wire, n, labels);
}

static int sign(int v)
{
	return (v > 0) - (v < 0);
}

static void test_round_trip_order_ancestry(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		struct name a, b;
		random_name(&a);
		random_name(&b);
		uint8_t ka[KEY_MAX], kb[KEY_MAX], back[NAME_WIRE_MAX];
		size_t na = key_from_wire(a.wire, a.length, a.labels, ka);
		size_t nb = key_from_wire(b.wire, b.length, b.labels, kb);
		assert_int_equal(key_to_wire(ka, na, back), a.length);
		assert_memory_equal(back, a.wire, a.length);
		assert_int_equal(sign(key_compare(ka, na, kb, nb)),
				 sign(name_compare(a.wire, b.wire)));
		bool prefix = na <= nb && !memcmp(ka, kb, na);
		assert_int_equal(prefix, name_is_under(b.wire, b.length, a.wire, a.length));
	}
}

static void test_longest(void **state)
{
	(void)state;
	uint8_t wire[NAME_WIRE_MAX], key[KEY_MAX], back[NAME_WIRE_MAX];
	/* 63+63+63+61 octets of 0x01, each of which doubles */
	memset(wire, 1, sizeof wire);
	wire[0] = wire[64] = wire[128] = 63;
	wire[192] = 61;
	wire[254] = 0;
	unsigned labels;
	assert_int_equal(name_measure(wire, sizeof wire, &labels), 255);
	size_t n = key_from_wire(wire, 255, labels, key);
	assert_int_equal(n, 504);
	assert_int_equal(key_to_wire(key, n, back), 255);
	assert_memory_equal(back, wire, 255);
	/* 127 labels of one octet */
	for (unsigned i = 0; i < 127; i++) {
		wire[2 * i] = 1;
		wire[2 * i + 1] = 'x';
	}
	n = key_from_wire(wire, 255, 127, key);
	assert_int_equal(n, 254);
	assert_int_equal(key_to_wire(key, n, back), 255);
	assert_memory_equal(back, wire, 255);
}

static void test_no_key(void **state)
{
	(void)state;
	uint8_t out[NAME_WIRE_MAX], key[600];
	assert_int_equal(key_to_wire((const uint8_t *)"", 0, out), 1); /* the root */
	assert_int_equal(key_to_wire((const uint8_t *)"com", 3, out), 0);
	assert_int_equal(key_to_wire((const uint8_t *)"\0", 1, out), 0);
	assert_int_equal(key_to_wire((const uint8_t *)"com\0\0", 5, out), 0);
	assert_int_equal(key_to_wire((const uint8_t *)"\1\3\0", 3, out), 0);
	assert_int_equal(key_to_wire((const uint8_t *)"a\1", 2, out), 0);
	memset(key, 'a', sizeof key);
	key[64] = 0;
	assert_int_equal(key_to_wire(key, 65, out), 0); /* label of 64 */
	for (unsigned i = 0; i < sizeof key; i++)
		key[i] = i & 1 ? 0 : 'a';
	assert_int_equal(key_to_wire(key, 254, out), 255);
	assert_int_equal(key_to_wire(key, 256, out), 0); /* too long */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip_order_ancestry),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_no_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
