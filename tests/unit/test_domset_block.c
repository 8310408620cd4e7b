/* SPDX-License-Identifier: Apache-2.0 */
/* One block: tokens and codes, what is written comes back, CRC, sizes at the limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "feeds/set/domset_block.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct domset_tokens tokens;
static struct domset_decoder decoder;

static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
	seed = hash_bytes(seed, "draw", 4);
	return (unsigned)(seed >> 33) % below;
}

static int train(void **state)
{
	(void)state;
	static const char *const words[] = {"example", "google", "ads",	  "tracking", "cdn",
					    "shop",    "online", "-the-", "best"};
	static uint8_t sample[200000];
	size_t at = 0;
	while (at + 100 < sizeof sample) {
		char text[64];
		uint16_t n = (uint16_t)snprintf(text, sizeof text, "%s%u%s", words[draw(9)],
						draw(100), words[draw(9)]);
		memcpy(sample + at, &n, 2);
		memcpy(sample + at + 2, text, n);
		at += 2u + n;
	}
	if (domset_train(&tokens, sample, at))
		return -1;
	return domset_decoder_init(&decoder, tokens.token, tokens.count);
}

static void test_frequent_strings_become_tokens(void **state)
{
	(void)state;
	uint16_t parsed[KEY_MAX];
	/* 7 + 2 + 8 octets: far fewer tokens, none of them the escape. */
	size_t n = domset_tokens_parse(&tokens, (const uint8_t *)"example42tracking", 17, parsed);
	assert_in_range(n, 2, 6);
	size_t octets = 0;
	for (size_t i = 0; i < n; i++) {
		assert_int_not_equal(parsed[i], 0);
		octets += tokens.token[parsed[i]].octets;
	}
	assert_int_equal(octets, 17);
	n = domset_tokens_parse(&tokens, (const uint8_t *)"\xff\xfe", 2, parsed);
	assert_int_equal(n, 2);
	assert_int_equal(parsed[0], 0);
}

static void test_training_on_nothing(void **state)
{
	(void)state;
	struct domset_tokens *t = malloc(sizeof *t);
	struct domset_decoder *d = malloc(sizeof *d);
	assert_int_equal(domset_train(t, NULL, 0), 0);
	assert_int_equal(domset_decoder_init(d, t->token, t->count), 0);
	free(t);
	free(d);
}

static void test_decoder_refuses_bad_lengths(void **state)
{
	(void)state;
	struct domset_decoder *d = malloc(sizeof *d);
	struct domset_token bad[40];
	for (unsigned i = 0; i < 40; i++)
		bad[i] = (struct domset_token){.octets = i != 0, .bits = 4};
	assert_int_equal(domset_decoder_init(d, bad, 16), 0);
	assert_int_equal(domset_decoder_init(d, bad, 17), -EBADMSG); /* 17 codes of 4 bits */
	assert_int_equal(domset_decoder_init(d, bad, 0), -EBADMSG);
	bad[3].bits = DOMSET_MIN_CODE_BITS - 1;
	assert_int_equal(domset_decoder_init(d, bad, 4), -EBADMSG);
	bad[3].bits = DOMSET_MAX_CODE_BITS + 1;
	assert_int_equal(domset_decoder_init(d, bad, 4), -EBADMSG);
	bad[3].bits = 4;
	bad[3].octets = 9;
	assert_int_equal(domset_decoder_init(d, bad, 4), -EBADMSG);
	bad[3].octets = 0; /* a second escape */
	assert_int_equal(domset_decoder_init(d, bad, 4), -EBADMSG);
	free(d);
}

struct key {
	size_t octets;
	uint8_t text[KEY_MAX + DOMSET_KEY_PAD];
};

static size_t common(const struct key *a, const struct key *b)
{
	size_t n = 0;
	while (n < a->octets && n < b->octets && a->text[n] == b->text[n])
		n++;
	return n;
}

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	return key_compare(x->text, x->octets, y->text, y->octets);
}

static void random_key(struct key *k)
{
	char text[200];
	struct name n;
	int length = snprintf(text, sizeof text, "%s%s%u.%s.com", draw(3) ? "" : "\\001x.\\255.",
			      draw(2) ? "ads" : "shop-tracking-online-and-much-more-of-that-",
			      draw(50), draw(3) ? "example" : "exa");
	if (!draw(9))
		length = snprintf(text, sizeof text, "%s.com", draw(2) ? "example" : "exa");
	assert_int_equal(name_parse(text, (size_t)length, &n), 0);
	memset(k, 0, sizeof *k);
	k->octets = key_from_wire(n.wire, n.length, n.labels, k->text);
}

static void test_what_is_written_comes_back(void **state)
{
	(void)state;
	struct domset_block_writer *w = calloc(1, sizeof *w);
	uint8_t *out = calloc(1, DOMSET_BLOCK_MAX + 8);
	for (unsigned round = 0; round < 2000; round++) {
		struct key keys[DOMSET_BLOCK_NAMES];
		unsigned wanted = 1 + draw(DOMSET_BLOCK_NAMES), count = 0;
		for (unsigned i = 0; i < wanted; i++)
			random_key(&keys[i]);
		qsort(keys, wanted, sizeof keys[0], by_key);
		for (unsigned i = 0; i < wanted; i++)
			if (!count || by_key(&keys[count - 1], &keys[i]))
				keys[count++] = keys[i];
		domset_block_begin(w, &tokens);
		w->inherited.count = round % 3;
		for (unsigned i = 0; i < w->inherited.count; i++)
			w->inherited.at[i] = (struct domset_hit){i ? 8 : 4, 1000 + i};
		uint32_t many = round % 4 ? 3 : 100000;
		uint32_t ids[DOMSET_BLOCK_NAMES];
		for (unsigned i = 0; i < count; i++) {
			ids[i] = draw(many);
			assert_true(domset_block_add(w, keys[i].text, keys[i].octets,
						     i ? common(&keys[i - 1], &keys[i]) : 0,
						     ids[i]));
		}
		size_t octets = domset_block_finish(w, out);
		assert_true(octets <= DOMSET_BLOCK_MAX);
		struct domset_block b;
		struct domset_block_cursor c = {0};
		uint32_t id;
		assert_int_equal(domset_block_open(out, octets, &b), 0);
		for (unsigned i = 0; i < count; i++) {
			struct domset_hits hits;
			assert_int_equal(domset_block_next(&b, &decoder, &c, &id), 1);
			assert_int_equal(c.octets, keys[i].octets);
			assert_memory_equal(c.key, keys[i].text, c.octets);
			assert_int_equal(id, ids[i]);
			assert_int_equal(domset_block_scan(&b, &decoder, keys[i].text,
							   keys[i].octets, &hits),
					 0);
			assert_true(hits.count > 0);
			assert_int_equal(hits.at[hits.count - 1].octets, keys[i].octets);
			assert_int_equal(hits.at[hits.count - 1].id, ids[i]);
			int order;
			assert_int_equal(domset_block_compare_first(&b, &decoder, keys[i].text,
								    keys[i].octets, &order),
					 0);
			assert_int_equal(order, i ? 1 : 0);
		}
		assert_int_equal(domset_block_next(&b, &decoder, &c, &id), 0);
	}
	free(w);
	free(out);
}

/* A suffix too long for a size field begins a block of its own. */
static void test_long_suffixes(void **state)
{
	(void)state;
	struct domset_block_writer *w = calloc(1, sizeof *w);
	struct key a = {4, "com"}, b = {0};
	struct name n;
	char text[NAME_TEXT_MAX];
	unsigned at = 0;
	for (unsigned i = 0; i < 240; i++)
		at += (unsigned)sprintf(text + at, "%s\\%03u", i && i % 60 == 0 ? "." : "",
					200 + i % 50);
	at += (unsigned)sprintf(text + at, ".com");
	assert_int_equal(name_parse(text, at, &n), 0);
	b.octets = key_from_wire(n.wire, n.length, n.labels, b.text);
	domset_block_begin(w, &tokens);
	assert_true(domset_block_add(w, a.text, a.octets, 0, 0));
	assert_false(domset_block_add(w, b.text, b.octets, 4, 0));
	domset_block_begin(w, &tokens);
	assert_true(domset_block_add(w, b.text, b.octets, 4, 0));
	uint8_t *out = calloc(1, DOMSET_BLOCK_MAX + 8);
	struct domset_block block;
	struct domset_block_cursor c = {0};
	uint32_t id;
	size_t octets = domset_block_finish(w, out);
	assert_int_equal(domset_block_open(out, octets, &block), 0);
	assert_int_equal(domset_block_next(&block, &decoder, &c, &id), 1);
	assert_memory_equal(c.key, b.text, b.octets);
	free(out);
	free(w);
}

/* Sixteen bits are left of the CRC: not one single flip in a block may slip through. */
static void test_every_flip_changes_the_crc(void **state)
{
	(void)state;
	static uint8_t data[DOMSET_BLOCK_MAX];
	for (size_t octets = 16; octets < sizeof data; octets += octets / 2) {
		uint16_t crc = domset_block_crc(data, octets);
		for (size_t bit = 16; bit < octets * 8; bit++) {
			data[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_int_not_equal(domset_block_crc(data, octets), crc);
			data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frequent_strings_become_tokens),
		cmocka_unit_test(test_training_on_nothing),
		cmocka_unit_test(test_decoder_refuses_bad_lengths),
		cmocka_unit_test(test_what_is_written_comes_back),
		cmocka_unit_test(test_long_suffixes),
		cmocka_unit_test(test_every_flip_changes_the_crc),
	};
	return cmocka_run_group_tests(tests, train, NULL);
}
