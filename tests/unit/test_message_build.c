/* SPDX-License-Identifier: Apache-2.0 */
/* Building, cleaning, cutting: what comes out is well formed, whatever came in. */
#include "base/message_build.h"
#include "base/message_text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t qname[] = "\3www\7Example\4test";
#define QNAME_SIZE sizeof(qname)

static struct message_question question(uint16_t type)
{
	return (struct message_question){.name = qname,
					 .length = QNAME_SIZE,
					 .type = type,
					 .rrclass = CLASS_IN};
}

/* A response with these records, by hand, so that the builder is not judged by itself. */
static size_t raw(uint8_t *out, uint16_t type, unsigned answers, unsigned authorities,
		  unsigned additionals, const uint8_t *records, size_t size)
{
	const uint8_t head[12] = {0,	7,
				  0x81, 0x80,
				  0,	1,
				  0,	(uint8_t)answers,
				  0,	(uint8_t)authorities,
				  0,	(uint8_t)additionals};
	const uint8_t tail[4] = {(uint8_t)(type >> 8), (uint8_t)type, 0, 1};

	memcpy(out, head, 12);
	memcpy(out + 12, qname, QNAME_SIZE);
	memcpy(out + 12 + QNAME_SIZE, tail, 4);
	memcpy(out + 16 + QNAME_SIZE, records, size);
	return 16 + QNAME_SIZE + size;
}

/* Clean in buffers of exactly the size, so that ASan sees a step over the edge. */
static int clean(const uint8_t *in, size_t size, uint8_t *out, size_t max,
		 struct message_facts *facts)
{
	uint8_t *copy = malloc(size);
	memcpy(copy, in, size);
	int n = message_clean(copy, size, out, max, 0, UINT32_MAX, facts);
	free(copy);
	return n;
}

static void test_names_are_compressed(void **state)
{
	(void)state;
	uint8_t out[512];
	uint8_t name[NAME_WIRE_MAX];
	struct message_builder b;
	struct message_question q = question(TYPE_CNAME);
	static const uint8_t target[] = "\1a\7eXample\4TEST";

	message_build_start(&b, out, sizeof(out), 1, MESSAGE_QR, &q);
	size_t mark = message_build_begin(&b, SECTION_ANSWER, qname, QNAME_SIZE, TYPE_CNAME,
					  CLASS_IN, 60);
	message_build_name(&b, target, sizeof(target));
	message_build_end(&b, mark);
	size_t size = message_build_finish(&b);
	/* owner: a pointer; target: one label and a pointer. */
	assert_int_equal(size, 12 + QNAME_SIZE + 4 + 2 + 10 + 4);
	assert_int_equal(message_name(out, size, mark, name, NULL, NULL), sizeof(target));
	name_lower(name, sizeof(target), name);
	assert_memory_equal(name, "\1a\7example\4test", sizeof(target));
	assert_int_equal(out[7], 1);
}

static void test_too_small_is_zero(void **state)
{
	(void)state;
	uint8_t out[64];
	struct message_builder b;
	struct message_question q = question(TYPE_A);

	for (size_t max = 0; max < 12 + QNAME_SIZE + 4; max++) {
		message_build_start(&b, out, max, 1, 0, &q);
		assert_int_equal(message_build_finish(&b), 0);
	}
	message_build_start(&b, out, 12 + QNAME_SIZE + 4, 1, 0, &q);
	assert_int_equal(message_build_finish(&b), 12 + QNAME_SIZE + 4);
}

static void test_clean_drops_opt_and_what_trails(void **state)
{
	(void)state;
	static const uint8_t records[] = {
		0xc0, 12,  0,	1,   0,	  1, 0, 0, 0, 60, 0,  4, 192, 0, 2, 1, /* A */
		0,    0,   41,	4,   0,	  0, 0, 0, 0, 0,  10, 0, 15,  0, 6, 0,
		22,   'g', 'o', 'n', 'e', 1, 2, 3, /* trailing */
	};
	uint8_t in[256], out[256];
	struct message_facts facts;
	size_t size = raw(in, TYPE_A, 1, 0, 1, records, sizeof(records));
	int n = clean(in, size, out, sizeof(out), &facts);

	assert_int_equal(n, 16 + QNAME_SIZE + 16);
	assert_int_equal(out[11], 0);
	assert_int_equal(facts.ede, 22);
	assert_true(facts.has_answer);
	assert_int_equal(facts.min_ttl, 60);
	assert_int_equal(facts.ttl_count, 1);
	assert_int_equal(out[facts.ttls[0] + 3], 60);
}

static void test_ttls(void **state)
{
	(void)state;
	static const struct {
		uint32_t sent, min, max, expect;
	} rows[] = {
		{60, 0, 86400, 60},	   {0, 300, 86400, 0},		 {5, 300, 86400, 300},
		{100000, 0, 86400, 86400}, {0x80000000u, 300, 86400, 0}, {0xffffffffu, 0, 86400, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t records[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 1};
		uint8_t in[256], out[256];
		struct message_facts facts;
		for (unsigned k = 0; k < 4; k++)
			records[6 + k] = (uint8_t)(rows[i].sent >> (24 - 8 * k));
		size_t size = raw(in, TYPE_A, 1, 0, 0, records, sizeof(records));
		assert_true(message_clean(in, size, out, sizeof(out), rows[i].min, rows[i].max,
					  &facts) > 0);
		assert_int_equal(facts.min_ttl, rows[i].expect);
	}
}

static void test_negative_ttl(void **state)
{
	(void)state;
	/* SOA of the root: TTL 86400, MINIMUM 300. */
	static const uint8_t records[] = {0, 0, 6, 0, 1, 0, 1, 0x51, 0x80, 0, 22, 0, 0, 0, 0, 0, 1,
					  0, 0, 0, 2, 0, 0, 0, 3,    0,	   0, 0,  4, 0, 0, 1, 44};
	uint8_t in[256], out[256];
	struct message_facts facts;
	size_t size = raw(in, TYPE_A, 0, 1, 0, records, sizeof(records));
	int n = clean(in, size, out, sizeof(out), &facts);

	assert_int_equal(n, size);
	assert_true(facts.has_soa);
	assert_false(facts.has_answer);
	assert_int_equal(facts.negative_ttl, 300);
	/* What is passed on says 300 too, so that the next cache does not begin anew. */
	assert_int_equal(facts.min_ttl, 300);
}

/* One answer record of a type with rdata that does not fit it, or does. */
static void test_rdata(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		uint16_t type;
		uint8_t size;
		bool good;
		uint8_t rdata[40];
	} rows[] = {
		{"A of 4", TYPE_A, 4, true, {1, 2, 3, 4}},
		{"A of 3", TYPE_A, 3, false, {1, 2, 3}},
		{"A of 5", TYPE_A, 5, false, {1, 2, 3, 4, 5}},
		{"A of 0", TYPE_A, 0, false, {0}},
		{"AAAA of 15", TYPE_AAAA, 15, false, {0}},
		{"CNAME", TYPE_CNAME, 2, true, {0xc0, 12}},
		{"CNAME and more", TYPE_CNAME, 3, false, {0xc0, 12, 0}},
		{"CNAME cut", TYPE_CNAME, 3, false, {5, 'a', 'b'}},
		{"CNAME forward", TYPE_CNAME, 2, false, {0xc0, 200}},
		{"MX", TYPE_MX, 4, true, {0, 10, 0xc0, 12}},
		{"MX without name", TYPE_MX, 2, false, {0, 10}},
		{"SOA cut", TYPE_SOA, 10, false, {0, 0}},
		{"SRV", TYPE_SRV, 7, true, {0, 1, 0, 2, 0, 3, 0}},
		{"NAPTR", TYPE_NAPTR, 9, true, {0, 1, 0, 2, 1, 's', 0, 0, 0}},
		{"NAPTR string over the end", TYPE_NAPTR, 9, false, {0, 1, 0, 2, 9, 's', 0, 0, 0}},
		{"HTTPS alias", TYPE_HTTPS, 3, true, {0, 0, 0}},
		{"HTTPS hint", TYPE_HTTPS, 11, true, {0, 1, 0, 0, 4, 0, 4, 1, 2, 3, 4}},
		{"HTTPS hint of 3", TYPE_HTTPS, 10, false, {0, 1, 0, 0, 4, 0, 3, 1, 2, 3}},
		{"HTTPS keys fall", TYPE_HTTPS, 11, false, {0, 1, 0, 0, 4, 0, 0, 0, 3, 0, 0}},
		{"HTTPS param over the end", TYPE_HTTPS, 8, false, {0, 1, 0, 0, 1, 0, 9, 1}},
		{"unknown type", 65280, 3, true, {0xc0, 12, 0xff}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t records[64] = {0xc0,
				       12,
				       (uint8_t)(rows[i].type >> 8),
				       (uint8_t)rows[i].type,
				       0,
				       1,
				       0,
				       0,
				       0,
				       60,
				       0,
				       rows[i].size};
		uint8_t in[256], out[256];
		struct message_facts facts;
		memcpy(records + 12, rows[i].rdata, rows[i].size);
		size_t size = raw(in, rows[i].type, 1, 0, 0, records, 12u + rows[i].size);
		print_message("%s\n", rows[i].what);
		int n = clean(in, size, out, sizeof(out), &facts);
		if (rows[i].good)
			assert_true(n > 0);
		else
			assert_int_equal(n, -EBADMSG);
	}
}

/* parse -> write -> parse is a fixed point: cleaning what is clean changes nothing. */
static void test_clean_is_idempotent(void **state)
{
	(void)state;
	static const char *const rrs[] = {
		"www.example.test 60 CNAME b.example.test",
		"b.example.test 30 A 192.0.2.1",
		"b.example.test 30 A 192.0.2.2",
		"b.example.test TXT \"a b\" c",
		"b.example.test HTTPS 1 svc.example.test alpn=h2,h3 ipv4hint=192.0.2.9",
		"b.example.test MX 5 mail.example.test",
		"b.example.test TYPE65280 \\# 3 010203",
		NULL,
	};
	uint8_t in[1024], once[1024], twice[1024];
	char error[128];
	struct message_facts facts;
	ssize_t size = message_from_text(rrs, qname, QNAME_SIZE, TYPE_A, in, sizeof(in), error,
					 sizeof(error));
	assert_true(size > 0);
	int a = clean(in, (size_t)size, once, sizeof(once), &facts);
	assert_true(a > 0);
	assert_int_equal(facts.records[0], 7);
	int b = clean(once, (size_t)a, twice, sizeof(twice), &facts);
	assert_int_equal(a, b);
	assert_memory_equal(once, twice, (size_t)a);
	/* However it is cut, it is refused or shorter, never worse. */
	for (size_t n = 0; n < (size_t)size; n++)
		assert_true(clean(in, n, twice, sizeof(twice), &facts) < 0);
	for (size_t max = 0; max < (size_t)a; max++)
		assert_int_equal(message_clean(in, (size_t)size, twice, max, 0, UINT32_MAX, &facts),
				 -EMSGSIZE);
}

static unsigned count16(const uint8_t *p)
{
	return (unsigned)(p[0] << 8 | p[1]);
}

static void test_cut_at_whole_rrsets(void **state)
{
	(void)state;
	static const char *const rrs[] = {
		"www.example.test CNAME b.example.test",
		"b.example.test A 192.0.2.1",
		"b.example.test A 192.0.2.2",
		"b.example.test A 192.0.2.3",
		NULL,
	};
	uint8_t whole[512], cut[512];
	char error[128];
	ssize_t size = message_from_text(rrs, qname, QNAME_SIZE, TYPE_A, whole, sizeof(whole),
					 error, sizeof(error));
	size_t question_end = 12 + QNAME_SIZE + 4;
	size_t cname_end = question_end + 2 + 10 + 4;

	assert_true(size > 0);
	for (size_t limit = 0; limit <= (size_t)size; limit++) {
		memcpy(cut, whole, (size_t)size);
		size_t n = message_cut(cut, (size_t)size, limit);
		if (limit < question_end) {
			assert_int_equal(n, 0);
		} else if (limit < cname_end) {
			assert_int_equal(n, question_end);
			assert_int_equal(count16(cut + 6), 0);
			assert_true(cut[2] & 2);
		} else if (limit < (size_t)size) {
			assert_int_equal(n, cname_end);
			assert_int_equal(count16(cut + 6), 1);
			assert_true(cut[2] & 2);
		} else {
			assert_int_equal(n, size);
			assert_false(cut[2] & 2);
		}
	}
}

static void test_cut_of_additional_is_no_truncation(void **state)
{
	(void)state;
	uint8_t out[512];
	struct message_builder b;
	struct message_question q = question(TYPE_MX);
	static const uint8_t other[] = "\4mail\4test";

	message_build_start(&b, out, sizeof(out), 1, MESSAGE_QR, &q);
	message_build_record(&b, SECTION_ANSWER, qname, QNAME_SIZE, 65280, 60, "x", 1);
	message_build_record(&b, SECTION_ADDITIONAL, other, sizeof(other), TYPE_A, 60, "abcd", 4);
	size_t size = message_build_finish(&b);
	size_t n = message_cut(out, size, size - 1);
	assert_true(n > 0 && n < size);
	assert_false(out[2] & 2);
	assert_int_equal(count16(out + 6), 1);
	assert_int_equal(count16(out + 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_compressed),
		cmocka_unit_test(test_too_small_is_zero),
		cmocka_unit_test(test_clean_drops_opt_and_what_trails),
		cmocka_unit_test(test_ttls),
		cmocka_unit_test(test_negative_ttl),
		cmocka_unit_test(test_rdata),
		cmocka_unit_test(test_clean_is_idempotent),
		cmocka_unit_test(test_cut_at_whole_rrsets),
		cmocka_unit_test(test_cut_of_additional_is_no_truncation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
