/* SPDX-License-Identifier: Apache-2.0 */
/* Reading queries and responses: what is malformed is known as such, and nothing is read beyond. */
#include "base/message.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A? example.test, RD, id 0x1234 */
#define Q0                                                                                         \
	0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0, 7, 'e', 'x', 'a', 'm', 'p', 'l', 'e', 4,   \
		't', 'e', 's', 't', 0, 0, 1, 0, 1
#define Q0_SIZE 30

static enum message_result parse(const uint8_t *data, size_t size, struct message_query *q)
{
	/* A copy of exactly that size, so that ASan sees a read behind it. */
	uint8_t *copy = malloc(size ? size : 1);
	memcpy(copy, data, size);
	enum message_result result = message_parse_query(copy, size, q);
	if (q->question.name)
		q->question.name = data + (q->question.name - copy);
	free(copy);
	return result;
}

static void test_plain_query(void **state)
{
	(void)state;
	const uint8_t data[] = {Q0};
	struct message_query q;
	assert_int_equal(parse(data, sizeof(data), &q), MESSAGE_OK);
	assert_int_equal(q.header.id, 0x1234);
	assert_int_equal(q.header.flags, MESSAGE_RD);
	assert_int_equal(q.question.length, 14);
	assert_int_equal(q.question.labels, 2);
	assert_int_equal(q.question.type, TYPE_A);
	assert_int_equal(q.question.rrclass, CLASS_IN);
	assert_ptr_equal(q.question.name, data + 12);
	assert_false(q.opt.present);
}

static void test_every_cut_is_refused(void **state)
{
	(void)state;
	const uint8_t data[] = {Q0};
	struct message_query q;
	for (size_t n = 0; n < sizeof(data); n++)
		assert_int_equal(parse(data, n, &q), n < 12 ? MESSAGE_SILENCE : MESSAGE_FORMERR);
}

/* Change one octet of Q0 and append others: what becomes of it? */
static void test_odd_queries(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		uint8_t at, value;
		uint8_t tail[40];
		uint8_t tail_size;
		uint8_t additional;
		enum message_result expect;
	} rows[] = {
		{"response", 2, 0x81, {0}, 0, 0, MESSAGE_SILENCE},
		{"opcode NOTIFY", 2, 0x20, {0}, 0, 0, MESSAGE_NOTIMP},
		{"opcode UPDATE", 2, 0x28, {0}, 0, 0, MESSAGE_NOTIMP},
		{"two questions", 5, 2, {0}, 0, 0, MESSAGE_FORMERR},
		{"no question", 5, 0, {0}, 0, 0, MESSAGE_FORMERR},
		{"answer count without answer", 7, 1, {0}, 0, 0, MESSAGE_FORMERR},
		{"pointer to itself", 12, 0xc0, {0}, 0, 0, MESSAGE_FORMERR},
		{"label of type 01", 12, 0x47, {0}, 0, 0, MESSAGE_FORMERR},
		{"trailing octet", 0, 0x12, {0}, 1, 0, MESSAGE_FORMERR},
		{"type OPT as question", 27, 41, {0}, 0, 0, MESSAGE_FORMERR},
		{"OPT", 0, 0x12, {0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0}, 11, 1, MESSAGE_OK},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t data[Q0_SIZE + 40] = {Q0};
		struct message_query q;
		data[rows[i].at] = rows[i].value;
		data[11] = rows[i].additional;
		memcpy(data + Q0_SIZE, rows[i].tail, rows[i].tail_size);
		print_message("%s\n", rows[i].what);
		assert_int_equal(parse(data, Q0_SIZE + (size_t)rows[i].tail_size, &q),
				 rows[i].expect);
	}
}

static void put_opt(uint8_t *at, uint16_t size, uint32_t ttl, uint16_t length)
{
	const uint8_t opt[11] = {0,
				 0,
				 41,
				 (uint8_t)(size >> 8),
				 (uint8_t)size,
				 (uint8_t)(ttl >> 24),
				 (uint8_t)(ttl >> 16),
				 (uint8_t)(ttl >> 8),
				 (uint8_t)ttl,
				 (uint8_t)(length >> 8),
				 (uint8_t)length};
	memcpy(at, opt, sizeof(opt));
}

static void test_edns(void **state)
{
	(void)state;
	uint8_t data[100] = {Q0};
	struct message_query q;

	data[11] = 1;
	put_opt(data + 30, 4096, 0x8000, 0);
	assert_int_equal(parse(data, 41, &q), MESSAGE_OK);
	assert_true(q.opt.present);
	assert_true(q.opt.want_dnssec);
	assert_int_equal(q.opt.udp_size, 4096);

	put_opt(data + 30, 512, 0x10000, 0);
	assert_int_equal(parse(data, 41, &q), MESSAGE_BADVERS);
	assert_int_equal(q.opt.version, 1);
	assert_non_null(q.question.name);

	/* Options: NSID (empty), COOKIE of 8; then one that is longer than what is there. */
	const uint8_t options[] = {0, 3, 0, 0, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8};
	put_opt(data + 30, 1232, 0, sizeof(options));
	memcpy(data + 41, options, sizeof(options));
	assert_int_equal(parse(data, 41 + sizeof(options), &q), MESSAGE_OK);
	data[41 + 7] = 9;
	assert_int_equal(parse(data, 41 + sizeof(options), &q), MESSAGE_FORMERR);

	/* Two OPT records; an OPT that is not at the root. */
	data[11] = 2;
	put_opt(data + 30, 1232, 0, 0);
	put_opt(data + 41, 1232, 0, 0);
	assert_int_equal(parse(data, 52, &q), MESSAGE_FORMERR);
	data[11] = 1;
	memmove(data + 32, data + 31, 10);
	data[30] = 0xc0;
	data[31] = 12;
	assert_int_equal(parse(data, 42, &q), MESSAGE_FORMERR);
}

static void test_pointers(void **state)
{
	(void)state;
	uint8_t out[NAME_WIRE_MAX];
	unsigned labels;
	size_t end;
	uint8_t data[400] = {0};

	memcpy(data + 12, "\3www\4Test\0", 10);
	memcpy(data + 22, "\1a\xc0\x10", 4);
	assert_int_equal(message_name(data, 26, 22, out, &labels, &end), 8);
	assert_memory_equal(out, "\1a\4Test\0", 8);
	assert_int_equal(labels, 2);
	assert_int_equal(end, 26);

	memcpy(data + 30, "\xc0\x1e", 2); /* to itself */
	assert_int_equal(message_name(data, 40, 30, out, NULL, NULL), 0);
	memcpy(data + 30, "\xc0\x20\xc0\x1e", 4); /* forward, and at each other */
	assert_int_equal(message_name(data, 40, 30, out, NULL, NULL), 0);
	assert_int_equal(message_name(data, 40, 32, out, NULL, NULL), 0);
	memcpy(data + 30, "\xc0\x02", 2); /* into the header */
	assert_int_equal(message_name(data, 40, 30, out, NULL, NULL), 0);
	memcpy(data + 30, "\1a\xc0\x1e", 4); /* back into its own labels: would never end */
	assert_int_equal(message_name(data, 40, 30, out, NULL, NULL), 0);

	/* A ladder: each pointer to the one before. 127 are followed, more are not. */
	size_t at = 40;
	memcpy(data + at, "\xc0\x0c", 2);
	for (unsigned i = 1; i < 150; i++) {
		data[at + 2] = (uint8_t)(0xc0 | at >> 8);
		data[at + 3] = (uint8_t)at;
		at += 2;
	}
	assert_int_equal(message_name(data, 400, 40 + 2 * 126, out, NULL, NULL), 10);
	assert_int_equal(message_name(data, 400, 40 + 2 * 127, out, NULL, NULL), 0);
}

static void test_name_of_255_and_256(void **state)
{
	(void)state;
	uint8_t data[400] = {0};
	uint8_t out[NAME_WIRE_MAX];
	size_t at = 12;

	for (unsigned i = 0; i < 127; i++) {
		data[at++] = 1;
		data[at++] = 'x';
	}
	data[at++] = 0;
	assert_int_equal(message_name(data, at, 12, out, NULL, NULL), 255);
	/* The same behind one label more, by a pointer: 257. */
	memcpy(data + at, "\1y\xc0\x0c", 4);
	assert_int_equal(message_name(data, at + 4, at, out, NULL, NULL), 0);
}

static void test_answers_binds_to_the_question(void **state)
{
	(void)state;
	uint8_t data[] = {Q0};
	const uint8_t name[] = "\7example\4test";

	data[2] = 0x81;
	data[14] = 'X'; /* another case is the same name */
	assert_true(message_answers(data, 30, 0x1234, name, 14, TYPE_A, CLASS_IN));
	assert_false(message_answers(data, 30, 0x1235, name, 14, TYPE_A, CLASS_IN));
	assert_false(message_answers(data, 30, 0x1234, name, 14, TYPE_AAAA, CLASS_IN));
	assert_false(message_answers(data, 30, 0x1234, name, 14, TYPE_A, 3));
	assert_false(message_answers(data, 29, 0x1234, name, 14, TYPE_A, CLASS_IN));
	assert_false(message_answers(data, 30, 0x1234, (const uint8_t *)"\7exbmple\4test", 14,
				     TYPE_A, CLASS_IN));
	data[2] = 0x01; /* a query, not a response */
	assert_false(message_answers(data, 30, 0x1234, name, 14, TYPE_A, CLASS_IN));
	data[2] = 0xa1; /* opcode */
	assert_false(message_answers(data, 30, 0x1234, name, 14, TYPE_A, CLASS_IN));
	data[2] = 0x81;
	data[5] = 0; /* QDCOUNT 0 */
	assert_false(message_answers(data, 30, 0x1234, name, 14, TYPE_A, CLASS_IN));
}

static void test_walk(void **state)
{
	(void)state;
	uint8_t data[100] = {Q0};
	struct message_walk walk;
	struct message_record r;
	const uint8_t a[] = {0xc0, 12, 0, 1, 0, 1, 0x80, 0, 0, 1, 0, 4, 192, 0, 2, 1};

	data[7] = 1;
	data[9] = 1;
	memcpy(data + 30, a, 16);
	memcpy(data + 46, a, 16);
	assert_int_equal(message_walk_start(&walk, data, 62), 0);
	assert_int_equal(message_walk_next(&walk, &r), 1);
	assert_int_equal(r.section, SECTION_ANSWER);
	assert_int_equal(r.rdata_at, 42);
	assert_int_equal(r.ttl_at, 36);
	assert_int_equal(message_ttl(r.ttl), 0); /* RFC 2181: top bit set */
	assert_int_equal(message_walk_next(&walk, &r), 1);
	assert_int_equal(r.section, SECTION_AUTHORITY);
	assert_int_equal(message_walk_next(&walk, &r), 0);
	/* Cut inside the second record: the first still reads, the second fails. */
	for (size_t n = 46; n < 62; n++) {
		assert_int_equal(message_walk_start(&walk, data, n), 0);
		assert_int_equal(message_walk_next(&walk, &r), 1);
		assert_int_equal(message_walk_next(&walk, &r), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_query),
		cmocka_unit_test(test_every_cut_is_refused),
		cmocka_unit_test(test_odd_queries),
		cmocka_unit_test(test_edns),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_name_of_255_and_256),
		cmocka_unit_test(test_answers_binds_to_the_question),
		cmocka_unit_test(test_walk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
