/* SPDX-License-Identifier: Apache-2.0 */
/* name.c: text and wire, IDNA, limits, borders, canonical order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void test_parse_and_format(void **state)
{
	(void)state;
	static const struct {
		const char *text, *back;
		unsigned labels;
	} good[] = {
		{".", ".", 0},
		{"com", "com.", 1},
		{"WWW.Example.COM.", "www.example.com.", 3},
		{"_dmarc.a-b.example", "_dmarc.a-b.example.", 3},
		{"a\\.b.example", "a\\.b.example.", 2},
		{"a\\046b.example", "a\\.b.example.", 2},
		{"\\000\\001\\255.x", "\\000\\001\\255.x.", 2},
		{"a\\ b", "a\\032b.", 1},
		{"\\065.b", "a.b.", 2}, /* an escaped upper-case letter is one all the same */
		{"\\\\.b", "\\\\.b.", 2},
		{"*.example.org", "*.example.org.", 3},
		{"a\\@b\\$.c", "a\\@b\\$.c.", 2},
	};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		struct name n, again;
		char text[NAME_TEXT_MAX];
		unsigned labels = 99;
		assert_int_equal(name_parse(good[i].text, strlen(good[i].text), &n), 0);
		assert_int_equal(n.labels, good[i].labels);
		assert_int_equal(name_measure(n.wire, n.length, &labels), n.length);
		assert_int_equal(labels, n.labels);
		size_t length = name_format(n.wire, text);
		assert_string_equal(text, good[i].back);
		assert_int_equal(length, strlen(text));
		assert_int_equal(name_parse(text, length, &again), 0);
		assert_true(name_equal(n.wire, n.length, again.wire, again.length));
	}
}

static void test_parse_refuses(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"", "..", ".a", "a..b", "a..", "a\\", "a\\25", "a\\256", "a\\2x5",
	};
	struct name n;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(name_parse(bad[i], strlen(bad[i]), &n), -EINVAL);
}

static void test_limits(void **state)
{
	(void)state;
	char text[300];
	struct name n;
	memset(text, 'a', sizeof text);
	assert_int_equal(name_parse(text, 63, &n), 0);
	assert_int_equal(name_parse(text, 64, &n), -EINVAL);
	text[63] = text[127] = text[191] = '.';
	assert_int_equal(name_parse(text, 253, &n), 0); /* 255 octets of wire */
	assert_int_equal(n.length, 255);
	assert_int_equal(name_parse(text, 254, &n), -EINVAL);
	text[253] = '.';
	assert_int_equal(name_parse(text, 254, &n), 0);
	for (unsigned i = 0; i < sizeof text; i++)
		text[i] = i & 1 ? '.' : 'x';
	assert_int_equal(name_parse(text, 253, &n), 0);
	assert_int_equal(n.labels, 127);
	assert_int_equal(n.length, 255);
	assert_int_equal(name_parse(text, 255, &n), -EINVAL);
}

static void test_format_longest(void **state)
{
	(void)state;
	uint8_t wire[NAME_WIRE_MAX];
	memset(wire, 0xff, sizeof wire);
	wire[0] = wire[64] = wire[128] = 63;
	wire[192] = 61;
	wire[254] = 0;
	char text[NAME_TEXT_MAX];
	assert_int_equal(name_format(wire, text), 250 * 4 + 4);
}

static void test_measure_refuses(void **state)
{
	(void)state;
	unsigned labels;
	uint8_t wire[300] = {0};
	assert_int_equal(name_measure(wire, 0, &labels), 0);
	assert_int_equal(name_measure((const uint8_t *)"\3com", 4, &labels), 0); /* no root */
	assert_int_equal(name_measure((const uint8_t *)"\3co", 3, &labels), 0);
	assert_int_equal(name_measure((const uint8_t *)"\300\14", 2, &labels), 0); /* a pointer */
	assert_int_equal(name_measure((const uint8_t *)"\100", 1, &labels), 0);
	for (unsigned i = 0; i < 128; i++)
		wire[2 * i] = 1;
	assert_int_equal(name_measure(wire, sizeof wire, &labels), 0); /* 257 octets */
}

static void test_unicode(void **state)
{
	(void)state;
	static const struct {
		const char *text, *back;
	} good[] = {
		{"b\xc3\xbc"
		 "cher.example",
		 "xn--bcher-kva.example."},
		{"B\xc3\x9c"
		 "CHER.Example.",
		 "xn--bcher-kva.example."},
		{"fa\xc3\x9f.de", "xn--fa-hia.de."}, /* non-transitional */
		{"_dmarc.b\xc3\xbc"
		 "cher.example",
		 "_dmarc.xn--bcher-kva.example."},
		{"a_b.\xe4\xbe\x8b\xe3\x81\x88.\xe3\x83\x86\xe3\x82\xb9\xe3\x83\x88",
		 "a_b.xn--r8jz45g.xn--zckzah."},
		{"\xe4\xbe\x8b\xe3\x80\x82jp", "xn--fsq.jp."}, /* ideographic full stop */
		{"xn--bcher-kva.\xc3\xbc", "xn--bcher-kva.xn--tda."},
		{"plain.example", "plain.example."},
		{"\\000.\xc3\xbc", "\\000.xn--tda."},
	};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		struct name n;
		char text[NAME_TEXT_MAX];
		assert_int_equal(name_from_unicode(good[i].text, strlen(good[i].text), &n), 0);
		name_format(n.wire, text);
		assert_string_equal(text, good[i].back);
	}
	static const char *const bad[] = {
		"\xc3\xbc..de",		  ".\xc3\xbc", "\xff\xfe.de", "\xc3",
		"a\xe2\x80\xa4.\xc3\xbc", /* a character that decomposes to a dot */
	};
	struct name n;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(name_from_unicode(bad[i], strlen(bad[i]), &n), -EINVAL);
}

static void test_lower_all_octets(void **state)
{
	(void)state;
	for (unsigned shift = 0; shift < 9; shift++) {
		uint8_t in[256 + 9], out[256 + 9];
		for (unsigned i = 0; i < sizeof in; i++)
			in[i] = (uint8_t)(i + shift);
		name_lower(in, sizeof in - shift, out);
		for (unsigned i = 0; i < sizeof in - shift; i++)
			assert_int_equal(out[i], in[i] >= 'A' && in[i] <= 'Z' ? in[i] + 32 : in[i]);
	}
}

static struct name parse(const char *text)
{
	struct name n;
	assert_int_equal(name_parse(text, strlen(text), &n), 0);
	return n;
}

static void test_under_at_label_borders(void **state)
{
	(void)state;
	struct name name = parse("www.example.com"), root = parse(".");
	struct name yes = parse("example.com"), no = parse("ample.com"), self = name;
	assert_true(name_is_under(name.wire, name.length, yes.wire, yes.length));
	assert_true(name_is_under(name.wire, name.length, self.wire, self.length));
	assert_true(name_is_under(name.wire, name.length, root.wire, root.length));
	assert_false(name_is_under(name.wire, name.length, no.wire, no.length));
	assert_false(name_is_under(yes.wire, yes.length, name.wire, name.length));
	/* The octets of an ancestor inside a label: "\003com" as the end of one. */
	struct name odd = parse("x\\003com"), com = parse("com");
	assert_false(name_is_under(odd.wire, odd.length, com.wire, com.length));
	assert_int_equal(name_suffix_offset(name.wire, 3, 3), 0);
	assert_int_equal(name_suffix_offset(name.wire, 3, 2), 4);
	assert_int_equal(name_suffix_offset(name.wire, 3, 0), 16);
}

/* RFC 4034 section 6.1 */
static void test_canonical_order(void **state)
{
	(void)state;
	static const char *const order[] = {
		"example",	   "a.example",	     "yljkjljk.a.example",
		"z.a.example",	   "zabc.a.example", "z.example",
		"\\001.z.example", "*.z.example",    "\\200.z.example",
	};
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
		for (size_t k = 0; k < sizeof order / sizeof order[0]; k++) {
			struct name a = parse(order[i]), b = parse(order[k]);
			int c = name_compare(a.wire, b.wire);
			assert_int_equal((c > 0) - (c < 0), (i > k) - (i < k));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_and_format),
		cmocka_unit_test(test_parse_refuses),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_format_longest),
		cmocka_unit_test(test_measure_refuses),
		cmocka_unit_test(test_unicode),
		cmocka_unit_test(test_lower_all_octets),
		cmocka_unit_test(test_under_at_label_borders),
		cmocka_unit_test(test_canonical_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
