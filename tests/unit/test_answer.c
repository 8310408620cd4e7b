/* SPDX-License-Identifier: Apache-2.0 */
/* Replies, form by form: what a blocked client gets, and what of an upstream's answer passes. */
#include "core/dns/answer.h"

#include "base/message_build.h"
#include "base/message_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t as_asked[] = "\3WwW\7Example\4test";
#define NAME_SIZE sizeof(as_asked)

static struct query q;
static uint8_t out[MESSAGE_SIZE_MAX];

static void ask(uint16_t type, bool edns)
{
	memset(&q, 0, sizeof(q));
	memcpy(q.name_as_asked, as_asked, NAME_SIZE);
	name_lower(as_asked, NAME_SIZE, q.name);
	q.view.name = q.name;
	q.view.name_length = NAME_SIZE;
	q.view.name_labels = 3;
	q.view.type = type;
	q.view.rrclass = CLASS_IN;
	q.view.id = 0x1234;
	q.header_flags = MESSAGE_RD | MESSAGE_CD | MESSAGE_AD;
	q.edns.present = edns;
	q.edns.udp_size = edns ? MESSAGE_UDP_MAX : MESSAGE_UDP_MIN;
	q.why = (struct baleen_why){.size = sizeof(q.why),
				    .rule = BALEEN_NONE,
				    .feed = BALEEN_NONE};
	q.decided_by = 0;
}

struct reply {
	struct message_header header;
	struct message_question question;
	struct message_opt opt;
	unsigned records[4];
	struct message_record first[4]; /* of each section */
};

static void read_reply(size_t size, struct reply *r)
{
	struct message_walk walk;
	struct message_record record;
	int more;

	memset(r, 0, sizeof(*r));
	assert_true(message_header(out, size, &r->header));
	assert_int_not_equal(message_question(out, size, &r->question), 0);
	assert_int_equal(message_walk_start(&walk, out, size), 0);
	while ((more = message_walk_next(&walk, &record)) > 0) {
		if (record.type == TYPE_OPT) {
			assert_false(r->opt.present);
			assert_int_equal(message_opt(out, &record, &r->opt), 0);
			continue;
		}
		if (!r->records[record.section]++)
			r->first[record.section] = record;
	}
	assert_int_equal(more, 0);
	assert_int_equal(walk.at, size);

	/* What holds for every reply. */
	assert_int_equal(r->header.id, 0x1234);
	assert_int_equal(r->header.flags & (MESSAGE_QR | MESSAGE_RA | MESSAGE_RD | MESSAGE_CD),
			 MESSAGE_QR | MESSAGE_RA | MESSAGE_RD | MESSAGE_CD);
	assert_int_equal(r->header.flags & MESSAGE_AA, 0);
	assert_int_equal(r->question.length, NAME_SIZE);
	assert_memory_equal(r->question.name, as_asked, NAME_SIZE);
	assert_int_equal(r->opt.present, q.edns.present);
	assert_true(size <= answer_limit(&q));
}

static void check_soa(const struct reply *r, size_t size, uint32_t ttl)
{
	uint8_t owner[NAME_WIRE_MAX];
	const struct message_record *soa = &r->first[SECTION_AUTHORITY];

	assert_int_equal(r->records[SECTION_AUTHORITY], 1);
	assert_int_equal(soa->type, TYPE_SOA);
	assert_int_equal(soa->ttl, ttl);
	assert_int_equal(message_name(out, size, soa->at, owner, NULL, NULL), NAME_SIZE - 4);
	name_lower(owner, NAME_SIZE - 4, owner);
	assert_memory_equal(owner, "\7example\4test", NAME_SIZE - 4);
	uint32_t minimum = (uint32_t)out[soa->end - 4] << 24 | (uint32_t)out[soa->end - 3] << 16 |
			   (uint32_t)out[soa->end - 2] << 8 | out[soa->end - 1];
	assert_int_equal(minimum, ttl);
}

/* The forms of a policy's answer, by question type. */
static void test_policy_forms(void **state)
{
	(void)state;
	static const struct {
		enum policy_form form;
		uint16_t type;
		bool exact, below;
		uint16_t rcode;
		unsigned answers;
		bool soa, tc;
	} rows[] = {
		{POLICY_FORM_NXDOMAIN, TYPE_A, false, false, RCODE_NXDOMAIN, 0, true, false},
		{POLICY_FORM_NXDOMAIN, TYPE_HTTPS, false, false, RCODE_NXDOMAIN, 0, true, false},
		{POLICY_FORM_NXDOMAIN, TYPE_A, true, false, RCODE_NOERROR, 0, true, false},
		{POLICY_FORM_NXDOMAIN, TYPE_A, false, true, RCODE_NOERROR, 0, true, false},
		{POLICY_FORM_NODATA, TYPE_A, false, false, RCODE_NOERROR, 0, true, false},
		{POLICY_FORM_ZERO_IP, TYPE_A, false, false, RCODE_NOERROR, 1, false, false},
		{POLICY_FORM_ZERO_IP, TYPE_AAAA, false, false, RCODE_NOERROR, 1, false, false},
		{POLICY_FORM_ZERO_IP, TYPE_TXT, false, false, RCODE_NOERROR, 0, true, false},
		{POLICY_FORM_REFUSED, TYPE_A, false, false, RCODE_REFUSED, 0, false, false},
		{POLICY_FORM_TRUNCATE, TYPE_A, false, false, RCODE_NOERROR, 0, false, true},
		{POLICY_FORM_CNAME, TYPE_A, false, false, RCODE_NOERROR, 1, false, false},
		{POLICY_FORM_ADDRESSES, TYPE_A, false, false, RCODE_NOERROR, 2, false, false},
		{POLICY_FORM_ADDRESSES, TYPE_AAAA, false, false, RCODE_NOERROR, 1, false, false},
		{POLICY_FORM_ADDRESSES, TYPE_MX, false, false, RCODE_NOERROR, 0, true, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned edns = 0; edns < 2; edns++) {
			struct policy_answer answer = {.form = rows[i].form,
						       .ttl_s = 77,
						       .ede = 17,
						       .a_count = 2,
						       .aaaa_count = 1};
			struct reply r;
			addr_parse("192.0.2.80", &answer.a[0]);
			addr_parse("192.0.2.81", &answer.a[1]);
			addr_parse("2001:db8::80", &answer.aaaa[0]);
			name_parse("walled.example", 14, &answer.target);
			ask(rows[i].type, edns);
			q.verdict = EVENT_BLOCK;
			q.policy_answer = &answer;
			q.policy_done = true;
			q.policy.match_exact = rows[i].exact;
			q.policy.allow_below = rows[i].below;
			q.why.category = "malware";
			print_message("row %zu\n", i);
			size_t size = answer_decided(&q, out, sizeof(out));
			read_reply(size, &r);
			assert_int_equal(r.header.flags & MESSAGE_RCODE, rows[i].rcode);
			assert_int_equal(r.header.flags & MESSAGE_AD, 0);
			assert_int_equal(!!(r.header.flags & MESSAGE_TC), rows[i].tc);
			assert_int_equal(r.records[SECTION_ANSWER], rows[i].answers);
			if (rows[i].answers)
				assert_int_equal(r.first[SECTION_ANSWER].ttl, 77);
			if (rows[i].soa)
				check_soa(&r, size, 77);
			else
				assert_int_equal(r.records[SECTION_AUTHORITY], 0);
			if (edns) {
				assert_true(r.opt.has_ede);
				assert_int_equal(r.opt.ede, 17);
				assert_int_equal(r.opt.ede_text_length, 7);
				assert_memory_equal(r.opt.ede_text, "malware", 7);
			}
		}
}

static void test_drop_is_silence(void **state)
{
	(void)state;
	struct policy_answer answer = {.form = POLICY_FORM_DROP};

	ask(TYPE_A, true);
	q.verdict = EVENT_BLOCK;
	q.policy_answer = &answer;
	assert_int_equal(answer_decided(&q, out, sizeof(out)), 0);
	ask(TYPE_A, true);
	q.verdict = EVENT_DROP;
	assert_int_equal(answer_decided(&q, out, sizeof(out)), 0);
}

/* A plugin's own verdict, without a rule behind it. */
static void test_plugin_verdicts(void **state)
{
	(void)state;
	static const uint8_t addresses[32] = {0,    0,	 0, 0, 0, 0,	0, 0,	0,    0,       0xff,
					      0xff, 192, 0, 2, 9, 0x20, 1, 0xd, 0xb8, [31] = 9};
	static const struct {
		enum event_verdict verdict;
		uint16_t ede, expect_ede, rcode;
		unsigned answers;
	} rows[] = {
		{EVENT_BLOCK, 0, 15, RCODE_NXDOMAIN, 0}, {EVENT_BLOCK, 16, 16, RCODE_NXDOMAIN, 0},
		{EVENT_REFUSE, 0, 18, RCODE_REFUSED, 0}, {EVENT_ERROR, 22, 22, RCODE_SERVFAIL, 0},
		{EVENT_ERROR, 0, 0, RCODE_SERVFAIL, 0},	 {EVENT_ANSWER, 0, 0, RCODE_NOERROR, 1},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct reply r;
		ask(TYPE_A, true);
		q.verdict = rows[i].verdict;
		q.why.ede = rows[i].ede;
		q.why.address = addresses;
		q.why.address_count = 2;
		read_reply(answer_decided(&q, out, sizeof(out)), &r);
		assert_int_equal(r.header.flags & MESSAGE_RCODE, rows[i].rcode);
		assert_int_equal(r.records[SECTION_ANSWER], rows[i].answers);
		assert_int_equal(r.opt.has_ede ? r.opt.ede : 0, rows[i].expect_ede);
		if (rows[i].answers)
			assert_int_equal(r.first[SECTION_ANSWER].ttl, ANSWER_TTL_DEFAULT);
	}
}

/* ---- content ---- */

static uint8_t message[MESSAGE_SIZE_MAX];

static struct answer_content content_of(const char *const *rrs, uint16_t flags,
					struct message_facts *facts)
{
	uint8_t raw[MESSAGE_SIZE_MAX];
	char error[128];
	ssize_t n = message_from_text(rrs, q.name, NAME_SIZE, q.view.type, raw, sizeof(raw), error,
				      sizeof(error));
	assert_true(n > 0);
	raw[2] |= (uint8_t)(flags >> 8);
	raw[3] |= (uint8_t)flags;
	int size = message_clean(raw, (size_t)n, message, sizeof(message), 0, UINT32_MAX, facts);
	assert_true(size > 0);
	return (struct answer_content){.message = message,
				       .size = (size_t)size,
				       .ttls = facts->ttls,
				       .ttl_count = facts->ttl_count};
}

static const char *const two[] = {"www.example.test 100 A 192.0.2.1",
				  "www.example.test 100 A 192.0.2.2", NULL};

static void test_ttls_count_down(void **state)
{
	(void)state;
	static const struct {
		uint32_t age;
		bool stale;
		uint32_t expect;
	} rows[] = {{0, false, 100},
		    {40, false, 60},
		    {100, false, 0},
		    {500, false, 0},
		    {500, true, 30}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct message_facts facts;
		struct reply r;
		ask(TYPE_A, true);
		struct answer_content c = content_of(two, 0, &facts);
		c.age_s = rows[i].age;
		c.stale = rows[i].stale;
		read_reply(answer_content(&q, &c, out, sizeof(out)), &r);
		assert_int_equal(r.first[SECTION_ANSWER].ttl, rows[i].expect);
		assert_int_equal(r.records[SECTION_ANSWER], 2);
	}
}

/* AD passes only if upstream set it, somebody asked, and nothing was changed. AA never. */
static void test_ad(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 16; bits++) {
		bool upstream = bits & 1, asked = bits & 2, dnssec = bits & 4, changed = bits & 8;
		struct message_facts facts;
		struct reply r;
		ask(TYPE_A, true);
		q.header_flags = MESSAGE_RD | MESSAGE_CD | (asked ? MESSAGE_AD : 0);
		q.edns.want_dnssec = dnssec;
		struct answer_content c =
			content_of(two, MESSAGE_AA | (upstream ? MESSAGE_AD : 0), &facts);
		c.changed = changed;
		read_reply(answer_content(&q, &c, out, sizeof(out)), &r);
		assert_int_equal(!!(r.header.flags & MESSAGE_AD),
				 upstream && (asked || dnssec) && !changed);
		assert_int_equal(r.opt.want_dnssec, dnssec);
	}
}

static void test_truncation(void **state)
{
	(void)state;
	char text[100][64];
	const char *rrs[101] = {NULL};
	static const struct {
		uint16_t size;
		bool edns, tcp;
		bool tc;
	} rows[] = {{512, false, false, true}, {512, true, false, true},  {1231, true, false, true},
		    {1232, true, false, true}, {512, false, true, false}, {512, true, true, false}};

	for (unsigned i = 0; i < 100; i++) {
		snprintf(text[i], sizeof(text[i]), "www.example.test A 10.0.0.%u", i);
		rrs[i] = text[i];
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct message_facts facts;
		struct reply r;
		ask(TYPE_A, rows[i].edns);
		q.edns.udp_size = rows[i].size;
		q.origin.transport = rows[i].tcp ? BALEEN_TCP : BALEEN_UDP;
		struct answer_content c = content_of(rrs, 0, &facts);
		read_reply(answer_content(&q, &c, out, sizeof(out)), &r);
		assert_int_equal(!!(r.header.flags & MESSAGE_TC), rows[i].tc);
		/* One RRset: all or nothing. */
		assert_int_equal(r.records[SECTION_ANSWER], rows[i].tc ? 0 : 100);
	}
}

static void test_upstreams_ede_passes_alone(void **state)
{
	(void)state;
	for (unsigned edns = 0; edns < 2; edns++) {
		struct message_facts facts;
		struct reply r;
		ask(TYPE_A, edns);
		struct answer_content c = content_of(two, 0, &facts);
		c.ede = 9;
		read_reply(answer_content(&q, &c, out, sizeof(out)), &r);
		assert_int_equal(r.opt.has_ede, edns);
		if (edns)
			assert_int_equal(r.opt.ede, 9);
	}
}

static void test_malformed(void **state)
{
	(void)state;
	static const struct {
		enum message_result result;
		uint16_t rcode;
		bool opt;
	} rows[] = {{MESSAGE_FORMERR, 1, false},
		    {MESSAGE_NOTIMP, 4, false},
		    {MESSAGE_BADVERS, 16, true}};
	struct message_query m = {.header = {.id = 7, .flags = 0x2800 | MESSAGE_RD},
				  .question = {.name = as_asked,
					       .length = NAME_SIZE,
					       .type = TYPE_A,
					       .rrclass = CLASS_IN}};

	assert_int_equal(answer_malformed(MESSAGE_SILENCE, &m, out, sizeof(out)), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct message_header h;
		size_t n = answer_malformed(rows[i].result, &m, out, sizeof(out));
		assert_true(message_header(out, n, &h));
		assert_int_equal(h.id, 7);
		assert_int_equal(h.flags & MESSAGE_OPCODE, 0x2800);
		assert_true(h.flags & MESSAGE_QR);
		assert_int_equal(h.records[2], rows[i].opt);
		unsigned rcode = h.flags & MESSAGE_RCODE;
		if (rows[i].opt)
			rcode |= (unsigned)out[n - 6] << 4;
		assert_int_equal(rcode, rows[i].rcode);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policy_forms),
		cmocka_unit_test(test_drop_is_silence),
		cmocka_unit_test(test_plugin_verdicts),
		cmocka_unit_test(test_ttls_count_down),
		cmocka_unit_test(test_ad),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_upstreams_ede_passes_alone),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
