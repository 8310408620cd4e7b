/* SPDX-License-Identifier: Apache-2.0 */
/* The shared cache: what it keeps, for whom, how long; and that crashes never yield a wrong answer.
 */
#include "core/dns/cache.h"

#include "base/hash.h"
#include "base/message_text.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MEMORY ((size_t)4 << 20)

static void *memory;

static int setup(void **state)
{
	(void)state;
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED;
}

static int teardown(void **state)
{
	(void)state;
	return munmap(memory, MEMORY);
}

static struct cache_key key_of(const struct cache *c, const struct name *name)
{
	struct cache_key key = {.name = name->wire,
				.length = name->length,
				.type = TYPE_A,
				.rrclass = CLASS_IN,
				.group = 1};
	cache_key_finish(c, &key);
	return key;
}

/* An answer whose address says which name it is for, `copies` times. */
static size_t answer_for(const struct name *name, unsigned number, unsigned copies, uint8_t *out,
			 struct message_facts *facts)
{
	uint8_t raw[MESSAGE_SIZE_MAX];
	static char text[200][320];
	const char *rrs[201] = {NULL};
	char presentation[NAME_TEXT_MAX], error[128];

	name_format(name->wire, presentation);
	for (unsigned i = 0; i < copies; i++) {
		snprintf(text[i], sizeof(text[i]), "%.200s 60 A 10.%u.%u.%u", presentation,
			 number >> 16 & 255, number >> 8 & 255, number & 255);
		rrs[i] = text[i];
	}
	ssize_t n = message_from_text(rrs, name->wire, name->length, TYPE_A, raw, sizeof(raw),
				      error, sizeof(error));
	assert_true(n > 0);
	int size = message_clean(raw, (size_t)n, out, MESSAGE_SIZE_MAX, 0, UINT32_MAX, facts);
	assert_true(size > 0);
	return (size_t)size;
}

static void name_of(unsigned number, struct name *out)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "n%u.example.test", number);
	assert_int_equal(name_parse(text, (size_t)n, out), 0);
}

static int put(struct cache *c, unsigned number, unsigned copies, uint32_t ttl, int64_t now)
{
	static uint8_t message[MESSAGE_SIZE_MAX];
	struct message_facts facts;
	struct name name;
	bool evicted;

	name_of(number, &name);
	size_t size = answer_for(&name, number, copies, message, &facts);
	struct cache_key key = key_of(c, &name);
	return cache_insert(c, &key, message, size, &facts, ttl, now, &evicted);
}

static enum cache_result get(struct cache *c, unsigned number, int64_t now, struct cache_entry *out)
{
	struct name name;

	name_of(number, &name);
	struct cache_key key = key_of(c, &name);
	return cache_lookup(c, &key, now, out);
}

static bool is_for(const struct cache_entry *e, unsigned number)
{
	const uint8_t *a = e->message + e->size - 4;
	return a[0] == 10 && a[1] == (number >> 16 & 255) && a[2] == (number >> 8 & 255) &&
	       a[3] == (number & 255);
}

static void test_life(void **state)
{
	(void)state;
	struct cache *c = cache_open(memory, MEMORY, 0, 3600);
	struct cache_entry e;

	assert_int_equal(get(c, 1, 1000, &e), CACHE_MISS);
	assert_int_equal(put(c, 1, 1, 60, 1000), 0);
	assert_int_equal(get(c, 1, 1000, &e), CACHE_HIT);
	assert_true(is_for(&e, 1));
	assert_int_equal(e.age_s, 0);
	assert_int_equal(e.ttl_count, 1);
	assert_int_equal(get(c, 1, 41000, &e), CACHE_HIT);
	assert_int_equal(e.age_s, 40);
	assert_int_equal(get(c, 1, 60999, &e), CACHE_HIT);
	assert_int_equal(get(c, 1, 61000, &e), CACHE_STALE);
	assert_int_equal(get(c, 1, 61000 + 3600 * 1000 - 1, &e), CACHE_STALE);
	assert_int_equal(get(c, 1, 61000 + 3600 * 1000, &e), CACHE_MISS);
	assert_int_equal(put(c, 2, 1, 0, 1000), -ENOSPC); /* TTL 0 */
	assert_int_equal(get(c, 2, 1000, &e), CACHE_MISS);
	cache_close(c);
}

static void test_everything_is_in_the_key(void **state)
{
	(void)state;
	struct cache *c = cache_open(memory, MEMORY, 0, 0);
	static uint8_t message[MESSAGE_SIZE_MAX];
	struct message_facts facts;
	struct name name;
	struct cache_entry e;
	bool evicted;

	name_of(7, &name);
	size_t size = answer_for(&name, 7, 1, message, &facts);
	struct cache_key key = key_of(c, &name);
	assert_int_equal(cache_insert(c, &key, message, size, &facts, 60, 0, &evicted), 0);
	for (unsigned what = 0; what < 6; what++) {
		struct cache_key other = key;
		struct name changed = name;
		if (what == 0)
			other.checking_disabled = true;
		else if (what == 1)
			other.want_dnssec = true;
		else if (what == 2)
			other.group = 2;
		else if (what == 3)
			other.type = TYPE_AAAA;
		else if (what == 4)
			other.rrclass = 3;
		else
			changed.wire[1] = 'm';
		other.name = changed.wire;
		cache_key_finish(c, &other);
		assert_int_equal(cache_lookup(c, &other, 0, &e), CACHE_MISS);
	}
	assert_int_equal(cache_lookup(c, &key, 0, &e), CACHE_HIT);
	cache_close(c);
}

static void test_sizes(void **state)
{
	(void)state;
	struct cache *c = cache_open(memory, MEMORY, 0, 0);
	struct cache_entry e;

	/* One name grows and shrinks through the classes: the last answer is the one that counts.
	 */
	static const unsigned copies[] = {1, 10, 40, 110, 40, 1, 110, 10};
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		assert_int_equal(put(c, 5, copies[i], 60, 0), 0);
		assert_int_equal(get(c, 5, 0, &e), CACHE_HIT);
		assert_int_equal(e.ttl_count, copies[i]);
		assert_true(is_for(&e, 5));
	}
	/* More records than offsets are kept for: not cached, and the old answer is still right. */
	assert_int_equal(put(c, 6, MESSAGE_TTLS_MAX + 1, 60, 0), -ENOSPC);
	assert_int_equal(get(c, 6, 0, &e), CACHE_MISS);
	cache_close(c);
}

static void test_without_memory(void **state)
{
	(void)state;
	struct cache *c = cache_open(NULL, 0, 0, 0);
	struct cache_entry e;

	assert_non_null(c);
	assert_int_equal(put(c, 1, 1, 60, 0), -ENOSPC);
	assert_int_equal(get(c, 1, 0, &e), CACHE_MISS);
	cache_close(c);
}

/* A flood of names asked once does not push out those that are asked again and again. */
static void test_popular_names_stay(void **state)
{
	(void)state;
	struct cache *c = cache_open(memory, MEMORY, 0, 0);
	struct cache_entry e;
	unsigned kept = 0;

	for (unsigned i = 0; i < 500; i++) {
		assert_int_equal(put(c, i, 1, 3600, 0), 0);
		get(c, i, 0, &e);
		get(c, i, 0, &e);
	}
	for (unsigned i = 0; i < 100000; i++)
		put(c, 1000 + i, 1, 3600, 1);
	for (unsigned i = 0; i < 500; i++)
		kept += get(c, i, 2, &e) == CACHE_HIT;
	assert_true(kept >= 480);
	cache_close(c);
}

static void test_full_is_full(void **state)
{
	(void)state;
	struct cache *c = cache_open(memory, MEMORY, 0, 0);
	struct cache_stats stats;
	struct cache_entry e;
	unsigned found = 0;

	for (unsigned i = 0; i < 60000; i++)
		assert_int_equal(put(c, i, 1, 3600, 0), 0);
	for (unsigned i = 0; i < 60000; i++)
		if (get(c, i, 0, &e) == CACHE_HIT) {
			assert_true(is_for(&e, i));
			found++;
		}
	cache_stats(memory, MEMORY, 0, &stats);
	/* Half of the memory is slots of this size, and nearly every one is in use. */
	assert_true(found >= MEMORY / 2 / 264 * 95 / 100);
	assert_int_equal(stats.used, found);
	assert_true(stats.used_octets < MEMORY);
	cache_close(c);
}

static void test_flush(void **state)
{
	(void)state;
	struct cache *c = cache_open(memory, MEMORY, 0, 0);
	struct cache_entry e;
	struct name name;

	for (unsigned i = 0; i < 100; i++)
		put(c, i, 1 + i % 3 * 20, 60, 0);
	name_of(42, &name);
	assert_int_equal(cache_flush(memory, MEMORY, name.wire, name.length, false), 1);
	assert_int_equal(get(c, 42, 0, &e), CACHE_MISS);
	assert_int_equal(get(c, 43, 0, &e), CACHE_HIT);
	assert_int_equal(name_parse("ample.test", 10, &name), 0); /* a label border counts */
	assert_int_equal(cache_flush(memory, MEMORY, name.wire, name.length, true), 0);
	assert_int_equal(name_parse("example.test", 12, &name), 0);
	assert_int_equal(cache_flush(memory, MEMORY, name.wire, name.length, false), 0);
	assert_int_equal(cache_flush(memory, MEMORY, name.wire, name.length, true), 99);
	assert_int_equal(get(c, 43, 0, &e), CACHE_MISS);
	put(c, 1, 1, 60, 0);
	assert_int_equal(cache_flush(memory, MEMORY, NULL, 0, false), 1);
	assert_int_equal(put(c, 1, 1, 60, 0), 0);
	assert_int_equal(get(c, 1, 0, &e), CACHE_HIT);
	cache_close(c);
}

static void test_failures(void **state)
{
	(void)state;
	struct cache *c = cache_open(memory, MEMORY, 0, 0);
	struct name a, b;

	name_of(1, &a);
	name_of(2, &b);
	struct cache_key ka = key_of(c, &a), kb = key_of(c, &b);
	/* Also across the places where the 24-bit clock turns over. */
	static const int64_t starts[] = {0, 1000000, (int64_t)0xffffff * 100 - 2000,
					 (int64_t)0x7fffff * 100, (int64_t)0x1ffffff * 100 - 1};
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		int64_t t = starts[i];
		assert_false(cache_failure_get(c, &ka, t));
		cache_failure_set(c, &ka, t, 5000);
		assert_true(cache_failure_get(c, &ka, t));
		assert_true(cache_failure_get(c, &ka, t + 4900));
		assert_false(cache_failure_get(c, &ka, t + 5200));
		assert_false(cache_failure_get(c, &kb, t));
		cache_failure_clear(c, &kb);
		assert_true(cache_failure_get(c, &ka, t));
		cache_failure_clear(c, &ka);
		assert_false(cache_failure_get(c, &ka, t));
	}
	cache_close(c);
}

static void test_ttl_of_answers(void **state)
{
	(void)state;
	static const struct {
		uint16_t rcode;
		bool answer, soa;
		uint32_t min, negative, expect;
	} rows[] = {
		{RCODE_NOERROR, true, false, 60, 0, 60},
		{RCODE_NOERROR, true, true, 60, 5, 60},
		{RCODE_NOERROR, false, true, 300, 60, 60},
		{RCODE_NOERROR, false, true, 30, 60, 30}, /* a CNAME in front of it */
		{RCODE_NOERROR, false, false, 300, 0, 0},
		{RCODE_NOERROR, false, false, UINT32_MAX, 0, 0},
		{RCODE_NXDOMAIN, false, true, 86400, 300, 300},
		{RCODE_NXDOMAIN, false, false, UINT32_MAX, 0, 0},
		{RCODE_SERVFAIL, false, true, 300, 300, 0},
		{RCODE_REFUSED, true, true, 300, 300, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct message_facts f = {.rcode = rows[i].rcode,
					  .has_answer = rows[i].answer,
					  .has_soa = rows[i].soa,
					  .min_ttl = rows[i].min,
					  .negative_ttl = rows[i].negative};
		assert_int_equal(cache_ttl(&f), rows[i].expect);
	}
}

/* ---- several processes ---- */

#define NAMES 64

/* Write the same few names for ever, with changing sizes: readers meet every state of a slot. */
static void hammer(unsigned owner)
{
	struct cache *c = cache_open(memory, MEMORY, owner, 0);

	for (unsigned i = 0;; i++)
		put(c, hash_random() % NAMES, 1 + i % 9, 3600, 0);
}

static void test_killed_writers_never_lie(void **state)
{
	(void)state;
	struct cache *c = cache_open(memory, MEMORY, 50, 0);
	struct cache_entry e;
	uint64_t hits = 0;

	for (unsigned round = 0; round < 60; round++) {
		pid_t pids[2];
		for (unsigned i = 0; i < 2; i++) {
			pids[i] = fork();
			assert_true(pids[i] >= 0);
			if (!pids[i])
				hammer(i);
		}
		for (unsigned k = 0; k < 20000; k++) {
			unsigned number = k % NAMES;
			if (get(c, number, 0, &e) != CACHE_HIT)
				continue;
			hits++;
			/* Whole, and about what was asked. */
			assert_true(is_for(&e, number));
			assert_true(e.ttl_count >= 1 && e.ttl_count <= 9);
		}
		for (unsigned i = 0; i < 2; i++) {
			kill(pids[i], SIGKILL);
			waitpid(pids[i], NULL, 0);
			cache_sweep(memory, MEMORY, i);
		}
	}
	assert_true(hits > 1000);
	/* After the sweep nothing is left that cannot be written again. */
	for (unsigned number = 0; number < NAMES; number++) {
		assert_int_equal(put(c, number, 1, 60, 0), 0);
		assert_int_equal(get(c, number, 0, &e), CACHE_HIT);
	}
	assert_int_equal(cache_sweep(memory, MEMORY, 0), 0);
	cache_close(c);
}

/* Memory full of anything: look-ups miss, nothing reads out of bounds. */
static void test_hostile_memory(void **state)
{
	(void)state;
	struct cache *c = cache_open(memory, MEMORY, 0, 0);
	struct cache_entry e;
	struct cache_stats stats;
	uint64_t *words = memory;

	for (unsigned i = 0; i < 200; i++)
		put(c, i, 1, 60, 0);
	for (unsigned round = 0; round < 200; round++) {
		for (unsigned k = 0; k < 5000; k++)
			words[hash_random() % (MEMORY / 8)] ^= hash_random();
		for (unsigned i = 0; i < 200; i++)
			if (get(c, i, 0, &e) != CACHE_MISS)
				assert_true(is_for(&e, i));
	}
	cache_flush(memory, MEMORY, NULL, 0, false);
	cache_sweep(memory, MEMORY, 0);
	cache_stats(memory, MEMORY, 0, &stats);
	cache_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_life, setup, teardown),
		cmocka_unit_test_setup_teardown(test_everything_is_in_the_key, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
		cmocka_unit_test(test_without_memory),
		cmocka_unit_test_setup_teardown(test_popular_names_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_is_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flush, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
		cmocka_unit_test(test_ttl_of_answers),
		cmocka_unit_test_setup_teardown(test_killed_writers_never_lie, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_memory, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
