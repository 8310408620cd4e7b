/* SPDX-License-Identifier: Apache-2.0 */
/* base/addr.c: one normal form for addresses, prefixes and endpoints. */
#include "base/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct addr address(const char *text)
{
	struct addr a;
	assert_int_equal(addr_parse(text, &a), 0);
	return a;
}

static void test_addresses(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out; /* out NULL: not an address */
	} rows[] = {
		{"10.0.0.1", "10.0.0.1"},
		{"::ffff:10.0.0.1", "10.0.0.1"},
		{"::FFFF:0a00:1", "10.0.0.1"},
		{"0.0.0.0", "0.0.0.0"},
		{"::", "::"},
		{"::1", "::1"},
		{"2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
		{"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
		{"", NULL},
		{"10.0.0", NULL},
		{"10.0.0.256", NULL},
		{"010.0.0.1", NULL},
		{"10.0.0.1 ", NULL},
		{"10.0.0.1/8", NULL},
		{"::g", NULL},
		{"1:2:3:4:5:6:7:8:9", NULL},
		{"bad.example", NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct addr a;
		char text[ADDR_TEXT_MAX];
		int result = addr_parse(rows[i].in, &a);
		if (!rows[i].out) {
			assert_int_equal(result, -EINVAL);
			continue;
		}
		assert_int_equal(result, 0);
		assert_string_equal(addr_format(&a, text), rows[i].out);
		struct addr again = address(text);
		assert_true(addr_equal(&a, &again));
	}
}

static void test_kinds(void **state)
{
	(void)state;
	struct addr a = address("127.1.2.3");
	assert_true(addr_is_v4(&a));
	assert_true(addr_is_loopback(&a));
	assert_false(addr_is_unspecified(&a));
	a = address("::1");
	assert_false(addr_is_v4(&a));
	assert_true(addr_is_loopback(&a));
	a = address("0.0.0.0");
	assert_true(addr_is_unspecified(&a));
	assert_false(addr_is_loopback(&a));
	a = address("::");
	assert_true(addr_is_unspecified(&a));
	a = address("2001:db8::1");
	assert_false(addr_is_loopback(&a));
	assert_false(addr_is_unspecified(&a));
}

static void test_prefixes(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
		int bits, result;
	} rows[] = {
		{"10.0.0.0/8", "10.0.0.0/8", 104, 0},
		{"::ffff:10.0.0.0/104", "10.0.0.0/8", 104, 0},
		{"0.0.0.0/0", "0.0.0.0/0", 96, 0},
		{"192.0.2.1", "192.0.2.1/32", 128, 0},
		{"fc00::/7", "fc00::/7", 7, 0},
		{"::/0", "::/0", 0, 0},
		{"2001:db8::1", "2001:db8::1/128", 128, 0},
		{"10.0.0.1/8", NULL, 0, -EDOM},
		{"fc00::1/7", NULL, 0, -EDOM},
		{"10.0.0.0/33", NULL, 0, -EINVAL},
		{"::/129", NULL, 0, -EINVAL},
		{"10.0.0.0/", NULL, 0, -EINVAL},
		{"10.0.0.0/08", NULL, 0, -EINVAL},
		{"10.0.0.0/+8", NULL, 0, -EINVAL},
		{"10.0.0.0/8x", NULL, 0, -EINVAL},
		{"10.0.0.0/99999999999999999999", NULL, 0, -EINVAL},
		{"/8", NULL, 0, -EINVAL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct prefix p;
		char text[ADDR_TEXT_MAX];
		assert_int_equal(prefix_parse(rows[i].in, &p), rows[i].result);
		if (rows[i].result < 0)
			continue;
		assert_int_equal(p.bits, rows[i].bits);
		assert_string_equal(prefix_format(&p, text), rows[i].out);
	}
}

static void test_prefix_contains(void **state)
{
	(void)state;
	static const struct {
		const char *prefix, *addr;
		bool inside;
	} rows[] = {
		{"10.0.0.0/8", "10.255.255.255", true},
		{"10.0.0.0/8", "11.0.0.0", false},
		{"10.20.0.0/15", "10.21.0.1", true},
		{"10.20.0.0/15", "10.22.0.1", false},
		{"192.0.2.1/32", "192.0.2.1", true},
		{"192.0.2.1/32", "192.0.2.0", false},
		{"0.0.0.0/0", "8.8.8.8", true},
		{"0.0.0.0/0", "2001:db8::1", false},
		{"::/0", "2001:db8::1", true},
		{"::/0", "8.8.8.8", false}, /* IPv6 is meant */
		{"fc00::/7", "fdff::1", true},
		{"fc00::/7", "fe00::1", false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct prefix p;
		struct addr a = address(rows[i].addr);
		assert_int_equal(prefix_parse(rows[i].prefix, &p), 0);
		assert_int_equal(prefix_contains(&p, &a), rows[i].inside);
	}
}

static void test_endpoints(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out; /* NULL: refused */
	} rows[] = {
		{"1.2.3.4", "1.2.3.4:53"},
		{"1.2.3.4:5353", "1.2.3.4:5353"},
		{"[::1]:5353", "[::1]:5353"},
		{"[::1]", "[::1]:53"},
		{"::1", "[::1]:53"},
		{"::ffff:1.2.3.4", "1.2.3.4:53"},
		{"fe80::1%lo", "[fe80::1%lo]:53"},
		{"[fe80::1%lo]:99", "[fe80::1%lo]:99"},
		{"1.2.3.4:0", NULL},
		{"1.2.3.4:65536", NULL},
		{"1.2.3.4:", NULL},
		{"1.2.3.4:53x", NULL},
		{"[::1]53", NULL},
		{"[::1", NULL},
		{"[1.2.3.4]:53", NULL},
		{"1.2.3.4%lo", NULL},
		{"fe80::1%", NULL},
		{"fe80::1%no-such-interface0", NULL},
		{"tls://1.2.3.4", NULL},
		{"dns.example:53", NULL},
		{"", NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct endpoint e, again;
		char text[ENDPOINT_TEXT_MAX];
		int result = endpoint_parse(rows[i].in, 53, &e);
		if (!rows[i].out) {
			assert_int_equal(result, -EINVAL);
			continue;
		}
		assert_int_equal(result, 0);
		assert_string_equal(endpoint_format(&e, text), rows[i].out);
		assert_int_equal(endpoint_parse(text, 1, &again), 0);
		assert_true(endpoint_equal(&e, &again));
	}
}

static void test_sockaddr(void **state)
{
	(void)state;
	static const char *const rows[] = {"1.2.3.4:5353", "[2001:db8::1]:53", "[fe80::1%lo]:53"};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct endpoint e, back;
		struct sockaddr_storage sa;
		assert_int_equal(endpoint_parse(rows[i], 53, &e), 0);
		socklen_t n = endpoint_to_sockaddr(&e, &sa);
		assert_int_equal(sa.ss_family, i == 0 ? AF_INET : AF_INET6);
		assert_int_equal(n,
				 i == 0 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		endpoint_from_sockaddr((struct sockaddr *)&sa, &back);
		assert_true(endpoint_equal(&e, &back));
	}
	/* A client that came as ::ffff:1.2.3.4 on an IPv6 socket is 1.2.3.4. */
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = htons(7)};
	inet_pton(AF_INET6, "::ffff:1.2.3.4", &mapped.sin6_addr);
	struct endpoint e;
	char text[ENDPOINT_TEXT_MAX];
	endpoint_from_sockaddr((struct sockaddr *)&mapped, &e);
	assert_string_equal(endpoint_format(&e, text), "1.2.3.4:7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses), cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_prefixes),  cmocka_unit_test(test_prefix_contains),
		cmocka_unit_test(test_endpoints), cmocka_unit_test(test_sockaddr),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
