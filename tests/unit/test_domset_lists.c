/* SPDX-License-Identifier: Apache-2.0 */
/* Combinations: shared, numbered by use, and still right when there are too many to share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/key.h"
#include "feeds/set/domset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/test_domset_lists.XXXXXX";

/* Names n0000000.example...; the list of each follows from its number. */
struct source {
	unsigned at, count;
	unsigned distinct; /* lists repeat after this many */
	uint8_t key[KEY_MAX];
	struct domset_entry entries[3];
};

static size_t list_of(const struct source *s, unsigned i, struct domset_entry out[3])
{
	unsigned v = i % s->distinct;
	/* The odd ones of the first few are what most names have. */
	if (s->distinct < 100)
		v = i % 10 ? 7 : v;
	out[0] = (struct domset_entry){0, (uint16_t)(1 + v % 1000)};
	out[1] = (struct domset_entry){1, (uint16_t)(1 + v / 1000)};
	out[2] = (struct domset_entry){2, DOMSET_EXACT};
	return 2 + v % 2;
}

static void name_of(unsigned i, struct name *out)
{
	char text[64];
	snprintf(text, sizeof text, "n%07u.example", i);
	assert_int_equal(name_parse(text, strlen(text), out), 0);
}

static int next(void *context, struct domset_record *out)
{
	struct source *s = context;
	struct name n;
	if (s->at == s->count)
		return 0;
	name_of(s->at, &n);
	size_t octets = key_from_wire(n.wire, n.length, n.labels, s->key);
	*out = (struct domset_record){s->key, octets, s->entries, list_of(s, s->at, s->entries)};
	s->at++;
	return 1;
}

static int again(void *context)
{
	((struct source *)context)->at = 0;
	return 0;
}

static struct domset *build(struct source *s, struct domset_stats *stats)
{
	static const char *const feeds[] = {"a", "b", "c"};
	struct domset_build options = {feeds, 3, 0};
	struct domset_stream stream = {next, again, s};
	struct domset *set;
	struct feeds none = {0};
	char error[DOMSET_ERROR_MAX];
	unlink(path);
	assert_int_equal(domset_build(path, &options, &stream, stats), 0);
	assert_int_equal(domset_open(path, DOMSET_CHECK_ALL, &set, error), 0);
	assert_int_equal(domset_bind(set, &none), 0);
	return set;
}

static uint32_t check(const struct domset *set, const struct source *s, unsigned i)
{
	struct name n;
	struct domset_result r;
	struct domset_entry expected[3];
	size_t count, wanted = list_of(s, i, expected);
	name_of(i, &n);
	domset_lookup(set, n.wire, n.length, n.labels, &r);
	assert_int_equal(r.count, 1);
	const struct domset_entry *e = domset_combination(set, r.at[0].combination, &count);
	assert_int_equal(count, wanted);
	assert_memory_equal(e, expected, count * sizeof *e);
	assert_false(feedmask_any(&r.feeds)); /* nobody subscribed */
	return r.at[0].combination;
}

static void test_shared_and_numbered_by_use(void **state)
{
	(void)state;
	struct source s = {.count = 5000, .distinct = 50};
	struct domset_stats stats;
	struct domset *set = build(&s, &stats);
	assert_in_range(stats.combinations, 2, 50);
	for (unsigned i = 0; i < s.count; i++) {
		uint32_t combination = check(set, &s, i);
		if (i % 10)
			assert_int_equal(combination, 0); /* the most frequent one */
	}
	domset_close(set);
}

static void test_too_many_to_share(void **state)
{
	(void)state;
	struct source s = {.count = 620000, .distinct = 300000};
	struct domset_stats stats;
	struct domset *set = build(&s, &stats);
	assert_in_range(stats.combinations, 300001, s.count); /* some were not shared */
	for (unsigned i = 0; i < s.count; i += 7)
		check(set, &s, i);
	domset_close(set);
}

static int begin(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int end(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared_and_numbered_by_use),
		cmocka_unit_test(test_too_many_to_share),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
