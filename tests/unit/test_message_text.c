/* SPDX-License-Identifier: Apache-2.0 */
/* Records from text: understood whole, or refused with a reason; and what hooks see of them. */
#include "base/message_text.h"
#include "core/dns/answer_view.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t qname[] = "\4shop\7example";

static ssize_t make(const char *rr, uint8_t *out, size_t max, char *error)
{
	const char *const rrs[] = {rr, NULL};
	return message_from_text(rrs, qname, sizeof(qname), TYPE_A, out, max, error, 200);
}

static void test_types(void **state)
{
	(void)state;
	static const struct {
		const char *word;
		uint16_t type;
	} rows[] = {{"A", 1},	  {"aaaa", 28},		{"CNAME", 5}, {"HTTPS", 65},
		    {"ANY", 255}, {"TYPE65280", 65280}, {"TYPE1", 1}, {"type0", 0}};
	char out[MESSAGE_TYPE_TEXT];
	uint16_t type;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(message_type_parse(rows[i].word, strlen(rows[i].word), &type), 0);
		assert_int_equal(type, rows[i].type);
	}
	assert_string_equal(message_type_format(65280, out), "TYPE65280");
	assert_string_equal(message_type_format(65, out), "HTTPS");
	static const char *const bad[] = {"", "AA", "TYPE", "TYPE65536", "TYPE-1", "TYPE1x", "A "};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(message_type_parse(bad[i], strlen(bad[i]), &type), -EINVAL);
	/* Every word comes back. */
	for (unsigned t = 0; t <= UINT16_MAX; t++) {
		const char *word = message_type_format((uint16_t)t, out);
		assert_int_equal(message_type_parse(word, strlen(word), &type), 0);
		assert_int_equal(type, t);
	}
}

static void test_bad_records_have_a_reason(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"shop.example",
		"shop.example BOGUS x",
		"shop..example A 192.0.2.1",
		"shop.example A 192.0.2",
		"shop.example A 2001:db8::1",
		"shop.example AAAA 192.0.2.1",
		"shop.example A 192.0.2.1 x",
		"shop.example CNAME",
		"shop.example CNAME a b",
		"shop.example TXT",
		"shop.example TXT \"open",
		"shop.example MX mail",
		"shop.example HTTPS 1 . bogus=1",
		"shop.example HTTPS 1 . ipv4hint=2001:db8::1",
		"shop.example HTTPS 1 . ipv4hint=192.0.2.1 alpn=h2",
		"shop.example TYPE65280 \\# 3 0102",
		"shop.example TYPE65280 \\# 1 0",
		"shop.example SOA a b 1 2 3 4 5",
	};
	uint8_t out[1024];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char error[200] = "";
		print_message("%s\n", bad[i]);
		assert_int_equal(make(bad[i], out, sizeof(out), error), -EINVAL);
		assert_true(strlen(error) > 10);
	}
}

static void test_view(void **state)
{
	(void)state;
	static const char *const rrs[] = {
		"Shop.example 20 IN CNAME Tracker.Bad.example",
		"tracker.bad.example A 192.0.2.1",
		"tracker.bad.example AAAA 2001:db8::1",
		"tracker.bad.example HTTPS 0 Alias.example",
		"tracker.bad.example TXT \"x;y\" z\\\"",
		NULL,
	};
	uint8_t message[1024];
	char error[200];
	ssize_t size = message_from_text(rrs, qname, sizeof(qname), TYPE_A, message,
					 sizeof(message), error, sizeof(error));
	struct answer_view *v = answer_view_new();

	assert_true(size > 0);
	assert_non_null(v);
	assert_int_equal(answer_view_make(v, message, (size_t)size, true, false), 0);
	assert_int_equal(v->answer.record_count, 5);
	assert_int_equal(v->answer.from_cache, 1);
	const struct baleen_record *r = v->answer.records;
	assert_int_equal(r[0].ttl, 20);
	assert_memory_equal(r[0].owner, qname, sizeof(qname));
	assert_memory_equal(r[0].target, "\7tracker\3bad\7example", 21);
	assert_int_equal(r[0].target_length, 21);
	assert_int_equal(r[1].rdata_length, 4);
	assert_memory_equal(r[1].rdata, "\300\0\2\1", 4);
	assert_int_equal(r[1].ttl, MESSAGE_TEXT_TTL);
	assert_memory_equal(r[2].owner, "\7tracker\3bad\7example", 21);
	assert_memory_equal(r[3].target, "\5alias\7example", 15);
	assert_int_equal(r[4].target_length, 0);
	assert_memory_equal(r[4].rdata, "\3x;y\2z\"", 7);
	/* Cut anywhere: never a shorter answer. */
	for (size_t n = 0; n < (size_t)size; n++)
		assert_int_equal(answer_view_make(v, message, n, false, false), -EBADMSG);
	answer_view_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_bad_records_have_a_reason),
		cmocka_unit_test(test_view),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
