/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core/event.c and event_json.c: a query through the ring into words, strict JSON whatever octets a
 * name holds, and damaged records. The tables of policy and chain are stood in for here.
 */
#include "core/event.h"

#include "core/chain/chain.h"
#include "core/query.h"
#include "core/shm.h"
#include "core/worker.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

size_t policy_rule_count(const struct policy *p)
{
	(void)p;
	return 2;
}

const struct policy_rule_place *policy_rule_place(const struct policy *p, uint32_t rule)
{
	static const struct policy_rule_place places[2] = {
		{.file = "policies/staff.yaml", .line = 8},
		{.file = "policies/staff.yaml", .line = 9},
	};
	(void)p;
	return &places[rule];
}

size_t policy_group_count(const struct policy *p)
{
	(void)p;
	return 2;
}

const char *policy_group_name(const struct policy *p, uint32_t group)
{
	(void)p;
	return group ? "staff" : "default";
}

size_t chain_count(const struct chain *c)
{
	(void)c;
	return 2;
}

const char *chain_instance(const struct chain *c, size_t index)
{
	(void)c;
	return index ? "blocklist" : "ratelimit";
}

static struct feed feeds[2] = {{.name = "hagezi-tif", .number = 0}, {.name = "ours", .number = 1}};
static struct config_upstream upstream = {.name = "default", .server_count = 1};
static struct generation generation;
static struct worker worker = {.generation = &generation};
static uint8_t ring_memory[65536] __attribute__((aligned(64)));
static uint8_t record[RING_RECORD_MAX];

static void name_in(struct query *q, const uint8_t *wire, size_t length)
{
	memcpy(q->name, wire, length);
	q->view.name = q->name;
	q->view.name_length = (uint8_t)length;
}

static struct query *query_new(const char *name)
{
	struct query *q = calloc(1, sizeof(*q));
	struct name n;
	assert_non_null(q);
	assert_int_equal(name_parse(name, strlen(name), &n), 0);
	q->worker = &worker;
	name_in(q, n.wire, n.length);
	q->view.type = 1;
	q->view.rrclass = 1;
	q->view.id = 4660;
	q->view.group = 1;
	q->view.wall_us = 1796079001123456; /* 2026-11-30T22:50:01.123456Z */
	q->received_us = 1000;
	q->finished_us = 1014;
	q->client[10] = q->client[11] = 0xff;
	memcpy(q->client + 12, "\x0a\x14\x01\x01", 4);
	q->decided_by = EVENT_NO_PLUGIN;
	q->upstream_server = EVENT_NO_UPSTREAM;
	return q;
}

/* Through the ring, into a record. */
static size_t pass(const struct query *q)
{
	struct ring_writer w;
	struct ring_reader r;
	ring_init(ring_memory, sizeof(ring_memory));
	ring_writer_open(ring_memory, &w);
	ring_reader_open(ring_memory, &r);
	event_write(&w, q, 0);
	int size = ring_read(&r, record, sizeof(record));
	assert_true(size > 0);
	return (size_t)size;
}

static void json_is(struct query *q, const char *want)
{
	struct event_storage *s = event_storage_new(&generation);
	struct baleen_event e;
	char text[8192];
	assert_int_equal(event_read(s, record, pass(q), &e), 0);
	size_t n = event_json(&e, text, sizeof(text));
	assert_in_range(n, 1, sizeof(text) - 1);
	text[n] = '\0';
	assert_string_equal(text, want);
	event_storage_free(s);
	free(q);
}

static void a_block_reads_as_the_interface_says(void **state)
{
	(void)state;
	struct query *q = query_new("bad.example.");
	q->verdict = EVENT_BLOCK;
	q->decided_by = 1;
	q->why = (struct baleen_why){.rule = 0, .feed = 0, .category = "malware"};
	assert_int_equal(name_parse("bad.example", 11, &q->match), 0);
	q->rcode = 3;
	q->reply_size = 113;
	q->looked_up = true;
	feedmask_add(&q->lookup.feeds, 0);
	json_is(q,
		"{\"schema\":1,\"time\":\"2026-11-30T22:50:01.123456Z\",\"client\":\"10.20.1.1\","
		"\"group\":\"staff\",\"transport\":\"udp\",\"id\":4660,\"name\":\"bad.example.\","
		"\"type\":\"A\",\"class\":\"IN\",\"verdict\":\"block\",\"plugin\":\"blocklist\","
		"\"rule\":\"policies/staff.yaml:8\",\"hop\":\"question\",\"feed\":\"hagezi-tif\","
		"\"feeds\":[\"hagezi-tif\"],\"category\":\"malware\",\"match\":\"bad.example.\","
		"\"mode\":\"enforce\",\"would\":[],\"rcode\":\"NXDOMAIN\",\"cache\":\"none\","
		"\"upstream\":null,\"answers\":[],\"size\":113,\"latency_us\":14,\"worker\":0}");
}

static void an_answer_shows_records_upstream_and_would(void **state)
{
	(void)state;
	struct query *q = query_new("www.example");
	static const uint8_t answers[] = "\x01\x00\x04\x00\xc0\x00\x02\x01"
					 "\x05\x00\x03\x00\x01x\x00"
					 "\x41\x00\x02\x00\x00\x01";
	memcpy(q->event_answers, answers, sizeof(answers) - 1);
	q->event_answers_size = sizeof(answers) - 1;
	q->event_answer_count = 3;
	q->upstream_server = 0;
	q->cache = EVENT_CACHE_MISS;
	q->view.transport = BALEEN_TCP;
	q->view.type = 65280;
	q->would_count = 1;
	q->would[0].plugin = 1;
	q->would[0].verdict = BALEEN_BLOCK;
	q->would[0].rule = 1;
	json_is(q,
		"{\"schema\":1,\"time\":\"2026-11-30T22:50:01.123456Z\",\"client\":\"10.20.1.1\","
		"\"group\":\"staff\",\"transport\":\"tcp\",\"id\":4660,\"name\":\"www.example.\","
		"\"type\":\"TYPE65280\",\"class\":\"IN\",\"verdict\":\"allow\",\"plugin\":null,"
		"\"rule\":null,\"hop\":\"question\",\"feed\":null,\"feeds\":[],\"category\":null,"
		"\"match\":null,\"mode\":\"monitor\",\"would\":[{\"plugin\":\"blocklist\","
		"\"rule\":\"policies/staff.yaml:9\",\"verdict\":\"block\"}],\"rcode\":\"NOERROR\","
		"\"cache\":\"miss\",\"upstream\":\"9.9.9.9:53\",\"answers\":[\"A 192.0.2.1\","
		"\"CNAME x.\",\"HTTPS \\\\# 2 0001\"],\"size\":0,\"latency_us\":14,\"worker\":0}");
}

/* A8-02: control octets or quotes in a name gave invalid JSON. Strict: cJSON is lenient about
 * control characters, so they are looked for by hand. */
static void hostile_names_stay_one_line_of_strict_json(void **state)
{
	(void)state;
	struct event_storage *s = event_storage_new(&generation);
	for (unsigned octet = 0; octet < 256; octet++) {
		struct query *q = query_new("x.example");
		uint8_t wire[NAME_WIRE_MAX] = {3, 'a', 0, 'b', 1, 'z', 0};
		wire[2] = (uint8_t)octet;
		uint8_t lower[NAME_WIRE_MAX];
		name_lower(wire, 7, lower);
		name_in(q, lower, 7);
		q->why.text = "tab\there \"quoted\" \xff caf\xc3\xa9";
		q->why.category = "back\\slash";
		struct baleen_event e;
		char text[8192];
		assert_int_equal(event_read(s, record, pass(q), &e), 0);
		size_t n = event_json(&e, text, sizeof(text) - 1);
		text[n] = '\0';
		for (size_t i = 0; i < n; i++)
			assert_true((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
		cJSON *json = cJSON_ParseWithLengthOpts(text, n + 1, NULL, true);
		assert_non_null(json);
		struct name back;
		const char *name = cJSON_GetObjectItem(json, "name")->valuestring;
		assert_int_equal(name_parse(name, strlen(name), &back), 0);
		assert_int_equal(back.length, 7);
		assert_memory_equal(back.wire, lower, 7);
		assert_string_equal(cJSON_GetObjectItem(json, "text")->valuestring,
				    "tab\there \"quoted\" \xc3\xbf caf\xc3\xa9");
		assert_string_equal(cJSON_GetObjectItem(json, "category")->valuestring,
				    "back\\slash");
		cJSON_Delete(json);
		free(q);
	}
	event_storage_free(s);
}

static void what_does_not_fit_says_how_long_it_is(void **state)
{
	(void)state;
	struct event_storage *s = event_storage_new(&generation);
	struct query *q = query_new("bad.example.");
	struct baleen_event e;
	char whole[4096], part[4096];
	assert_int_equal(event_read(s, record, pass(q), &e), 0);
	size_t n = event_json(&e, whole, sizeof(whole));
	for (size_t size = 0; size < n; size += 13) {
		memset(part, '#', sizeof(part));
		assert_int_equal(event_json(&e, part, size), n);
		assert_memory_equal(part, whole, size);
		assert_int_equal(part[size], '#');
	}
	event_storage_free(s);
	free(q);
}

static void a_damaged_record_is_refused_or_harmless(void **state)
{
	(void)state;
	struct event_storage *s = event_storage_new(&generation);
	struct query *q = query_new("bad.example.");
	struct baleen_event e;
	uint8_t bad[RING_RECORD_MAX];
	char text[8192];
	unsigned refused = 0;
	q->decided_by = 1;
	q->match.length = 1;
	size_t size = pass(q);
	srand(7);
	for (int i = 0; i < 20000; i++) {
		memcpy(bad, record, size);
		for (int k = 0; k < 3; k++)
			bad[(size_t)rand() % size] = (uint8_t)rand();
		size_t cut = rand() % 3 ? size : (size_t)rand() % size;
		int r = event_read(s, bad, cut, &e);
		assert_true(r == 0 || r == -EBADMSG);
		if (r == 0)
			(void)event_json(&e, text, sizeof(text));
		else
			refused++;
	}
	assert_in_range(refused, 5000, 19999);
	/* Another generation's record would be read with the wrong tables. */
	generation.number++;
	assert_int_equal(event_read(s, record, size, &e), -EBADMSG);
	generation.number--;
	event_storage_free(s);
	free(q);
}

static int setup(void **state)
{
	(void)state;
	generation.number = 5;
	generation.policy = (struct policy *)&generation; /* only looked at by the stand-ins */
	generation.chain = (struct chain *)&generation;
	generation.config.feeds.items = feeds;
	generation.config.feeds.count = 2;
	generation.config.upstreams = &upstream;
	generation.config.upstream_count = 1;
	return endpoint_parse("9.9.9.9:53", 53, &upstream.servers[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_reads_as_the_interface_says),
		cmocka_unit_test(an_answer_shows_records_upstream_and_would),
		cmocka_unit_test(hostile_names_stay_one_line_of_strict_json),
		cmocka_unit_test(what_does_not_fit_says_how_long_it_is),
		cmocka_unit_test(a_damaged_record_is_refused_or_harmless),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
