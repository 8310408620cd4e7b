/* SPDX-License-Identifier: Apache-2.0 */
/* base/lpm.c: equal to trying every prefix; and fast enough for a query's first step. */
#include "base/lpm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static uint64_t seed = 88172645463325252u;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint32_t naive(const struct lpm_entry *e, size_t count, const struct addr *a)
{
	int best = -1;
	uint32_t value = LPM_NONE;
	for (size_t i = 0; i < count; i++)
		if (prefix_contains(&e[i].prefix, a) && e[i].prefix.bits >= best) {
			best = e[i].prefix.bits;
			value = e[i].value;
		}
	return value;
}

/* Octets from few values, so that prefixes nest and meet; `family` 0: IPv4, 1: IPv6, 2: any. */
static void random_addr(struct addr *a, int family, unsigned spread)
{
	for (int i = 0; i < 16; i++)
		a->octets[i] = (uint8_t)(next() % spread * (next() % 3 ? 1 : 255));
	if (family == 0 || (family == 2 && next() % 2)) {
		memset(a->octets, 0, 10);
		a->octets[10] = a->octets[11] = 0xff;
	}
}

static void mask(struct prefix *p)
{
	for (int i = p->bits; i < 128; i++)
		p->addr.octets[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
}

static void test_equals_trying_every_prefix(void **state)
{
	(void)state;
	static struct lpm_entry entries[400];
	for (int round = 0; round < 300; round++) {
		size_t count = next() % (round % 3 ? 40 : 400);
		int family = (int)(next() % 3);
		unsigned spread = round % 2 ? 3 : 256;
		for (size_t i = 0; i < count; i++) {
			struct prefix *p = &entries[i].prefix;
			random_addr(&p->addr, family, spread);
			p->bits = (uint8_t)(addr_is_v4(&p->addr) ? 96 + next() % 33 : next() % 129);
			mask(p);
			entries[i].value = (uint32_t)i;
			if (next() % 10 == 0 && i > 0)
				entries[i].prefix = entries[next() % i].prefix;
		}
		struct arena arena;
		struct lpm l;
		arena_init(&arena);
		lpm_build(&l, entries, count, &arena);
		for (int k = 0; k < 500; k++) {
			struct addr a;
			random_addr(&a, family, spread);
			/* Borders are where it goes wrong. */
			if (count > 0 && k % 2) {
				a = entries[next() % count].prefix.addr;
				if (k % 4 == 1)
					for (int i = 15; i >= 0 && a.octets[i]-- == 0;)
						i--;
				else
					a.octets[15] |= (uint8_t)next();
			}
			assert_int_equal(lpm_find(&l, &a), naive(entries, count, &a));
		}
		arena_fini(&arena);
	}
}

static void test_ends_of_the_address_space(void **state)
{
	(void)state;
	static const char *const texts[] = {"::/0",	 "8000::/1",  "ffff:ffff:ffff:ffff::/64",
					    "::/128",	 "0.0.0.0/0", "255.255.255.255/32",
					    "0.0.0.0/32"};
	struct lpm_entry entries[7];
	for (uint32_t i = 0; i < 7; i++) {
		assert_int_equal(prefix_parse(texts[i], &entries[i].prefix), 0);
		entries[i].value = i;
	}
	static const struct {
		const char *addr;
		uint32_t value;
	} rows[] = {{"::", 3},
		    {"::1", 0},
		    {"7fff::", 0},
		    {"8000::", 1},
		    {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 2},
		    {"ffff:ffff:ffff:fffe:ffff:ffff:ffff:ffff", 1},
		    {"0.0.0.0", 6},
		    {"0.0.0.1", 4},
		    {"255.255.255.254", 4},
		    {"255.255.255.255", 5}};
	struct arena arena;
	struct lpm l;
	arena_init(&arena);
	lpm_build(&l, entries, 7, &arena);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct addr a;
		assert_int_equal(addr_parse(rows[i].addr, &a), 0);
		assert_int_equal(lpm_find(&l, &a), rows[i].value);
	}
	lpm_build(&l, entries, 0, &arena);
	struct addr a;
	assert_int_equal(addr_parse("10.0.0.1", &a), 0);
	assert_int_equal(lpm_find(&l, &a), LPM_NONE);
	arena_fini(&arena);
}

/* 100,000 prefixes of a site that stands close together. Prints; no time is asserted here. */
static void test_speed(void **state)
{
	(void)state;
	enum { COUNT = 100000, LOOKUPS = 2000000 };
	struct lpm_entry *entries = calloc(COUNT, sizeof(*entries));
	struct addr *clients = calloc(LOOKUPS, sizeof(*clients));
	struct arena arena;
	arena_init(&arena);
	for (int v4 = 0; v4 < 2; v4++) {
		for (size_t i = 0; i < COUNT; i++) {
			struct prefix *p = &entries[i].prefix;
			memset(p->addr.octets, 0, 16);
			uint64_t r = next();
			if (v4) {
				p->addr.octets[10] = p->addr.octets[11] = 0xff;
				p->addr.octets[12] = 10;
				memcpy(p->addr.octets + 13, &r, 3);
				p->bits = (uint8_t)(96 + 20 + r % 13);
			} else {
				memcpy(p->addr.octets, "\x20\x01\x0d\xb8", 4);
				memcpy(p->addr.octets + 4, &r, 4);
				p->bits = (uint8_t)(48 + r % 17);
			}
			mask(p);
			entries[i].value = (uint32_t)i;
		}
		struct lpm l;
		lpm_build(&l, entries, COUNT, &arena);
		for (size_t i = 0; i < LOOKUPS; i++) {
			clients[i] = entries[next() % COUNT].prefix.addr;
			clients[i].octets[15] |= 1;
		}
		uint32_t found = 0;
		clock_t begin = clock();
		for (size_t i = 0; i < LOOKUPS; i++)
			found += lpm_find(&l, &clients[i]) != LPM_NONE;
		double ns = (double)(clock() - begin) * 1e9 / CLOCKS_PER_SEC / LOOKUPS;
		print_message("lpm: %d prefixes, %s, %.0f ns\n", COUNT, v4 ? "IPv4" : "IPv6", ns);
		assert_true(found > LOOKUPS / 2);
	}
	free(clients);
	free(entries);
	arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equals_trying_every_prefix),
		cmocka_unit_test(test_ends_of_the_address_space),
		cmocka_unit_test(test_speed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
