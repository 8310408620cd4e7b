/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/feedfile.c: what went in comes out sorted, once, with its first-seen time; or not at all.
 */
#include "feeds/feedfile.h"

#include "feeds/formats/format.h"
#include "feeds/set/domset.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_feedfile.XXXXXX");
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") == 0 ? system(command) : -1;
}

static struct name name_of(const char *text)
{
	struct name name;
	assert_int_equal(name_parse(text, strlen(text), &name), 0);
	return name;
}

struct add {
	const char *name;
	uint16_t flags;
};

static struct feedfile_change write_file(const char *path, const char *previous, uint64_t now,
					 const struct add *adds, size_t count)
{
	struct feedfile_writer *w;
	struct feedfile_change change;
	assert_int_equal(feedfile_begin(path, previous, now, &w), 0);
	for (size_t i = 0; i < count; i++) {
		struct name name = name_of(adds[i].name);
		assert_int_equal(feedfile_add(w, &name, adds[i].flags), 0);
	}
	assert_int_equal(feedfile_finish(w, NULL, NULL, &change), 0);
	assert_int_equal(feedfile_publish(w, path), 0);
	return change;
}

static char listing[4096];

static const char *list(const char *path)
{
	struct feedfile f;
	assert_int_equal(feedfile_open(path, 0, &f), 0);
	listing[0] = '\0';
	while (feedfile_next(&f) == 1) {
		uint8_t wire[NAME_WIRE_MAX];
		char text[NAME_TEXT_MAX];
		assert_true(key_to_wire(f.records.now.key, f.records.now.key_length, wire) > 0);
		name_format(wire, text);
		sprintf(listing + strlen(listing), "%s %x %llu;", text, f.records.now.flags,
			(unsigned long long)feedfile_first_seen(&f));
	}
	feedfile_close(&f);
	return listing;
}

static void sorted_once_with_flags_joined(void **state)
{
	(void)state;
	const struct add adds[] = {
		{"b.test", DOMSET_SUBTREE}, {"a.test", DOMSET_EXACT}, {"x.b.test", DOMSET_EXACT},
		{"a.test", DOMSET_BELOW},   {"com", DOMSET_EXACT},    {"b-b.test", DOMSET_EXACT},
	};
	struct feedfile_change c = write_file("a", NULL, 1000, adds, 6);
	assert_string_equal(list("a"), "com. 1 1000;a.test. 5 1000;b.test. 2 1000;"
				       "x.b.test. 1 1000;b-b.test. 1 1000;");
	assert_int_equal(c.entries, 5);
	assert_int_equal(c.added, 5);
	assert_int_equal(c.before, 0);
}

static void first_seen_is_carried_over(void **state)
{
	(void)state;
	const struct add one[] = {{"a.test", 1}, {"b.test", 1}, {"c.test", 1}};
	const struct add two[] = {{"b.test", 1}, {"c.test", 2}, {"d.test", 1}};
	write_file("b", NULL, 1000, one, 3);
	struct feedfile_change c = write_file("b", "b", 2000, two, 3);
	assert_string_equal(list("b"), "b.test. 1 1000;c.test. 2 1000;d.test. 1 2000;");
	assert_int_equal(c.before, 3);
	assert_int_equal(c.added, 2);	       /* d, and c in another way */
	assert_int_equal(c.removed, 2);	       /* a, and c in the old way */
	c = write_file("b", "b", 500, two, 3); /* the clock stepped back */
	assert_string_equal(list("b"), "b.test. 1 500;c.test. 2 500;d.test. 1 500;");
	assert_int_equal(c.added + c.removed, 0);
}

static void cancel_takes_back_in_any_order(void **state)
{
	(void)state;
	const struct add adds[] = {
		{"a.test", DOMSET_SUBTREE | FEED_ENTRY_CANCEL},
		{"a.test", DOMSET_SUBTREE},
		{"b.test", DOMSET_SUBTREE},
		{"b.test", DOMSET_EXACT},
		{"b.test", DOMSET_SUBTREE | FEED_ENTRY_CANCEL},
		{"c.test", DOMSET_SUBTREE | FEED_ENTRY_CANCEL},
	};
	write_file("c", NULL, 1, adds, 6);
	assert_string_equal(list("c"), "b.test. 1 1;");
}

static void finds(void **state)
{
	(void)state;
	const struct add adds[] = {{"a.test", 1}, {"b.test", 2}};
	write_file("d", NULL, 77, adds, 2);
	uint16_t flags;
	uint64_t seen;
	struct name b = name_of("b.test"), aa = name_of("a.a.test"), z = name_of("z.test");
	assert_int_equal(feedfile_find("d", &b, &flags, &seen), 1);
	assert_int_equal(flags, 2);
	assert_int_equal(seen, 77);
	assert_int_equal(feedfile_find("d", &aa, &flags, &seen), 0);
	assert_int_equal(feedfile_find("d", &z, &flags, &seen), 0);
	assert_int_equal(feedfile_find("none", &z, &flags, &seen), -ENOENT);
}

/* Every single octet of a file, changed, and every cut: an error or (never) other contents. */
static void damage_is_seen(void **state)
{
	(void)state;
	const struct add adds[] = {{"a.test", 1}, {"bbb.test", 2}, {"c.example", 1}};
	write_file("e", NULL, 77, adds, 3);
	int fd = open("e", O_RDONLY);
	uint8_t data[4096];
	ssize_t size = read(fd, data, sizeof(data));
	close(fd);
	for (ssize_t i = 0; i <= size; i++) {
		for (int cut = 0; cut < 2; cut++) {
			uint8_t copy[4096];
			memcpy(copy, data, (size_t)size);
			if (i == size)
				copy[size] = 0;
			else
				copy[i] ^= 0x41;
			fd = open("damaged", O_WRONLY | O_CREAT | O_TRUNC, 0600);
			ssize_t n = cut ? i : i == size ? size + 1 : size;
			assert_int_equal(write(fd, copy, (size_t)n), n);
			close(fd);
			struct feedfile f;
			int result = feedfile_open("damaged", 0, &f);
			if (cut && i == size) {
				assert_int_equal(result, 0);
				feedfile_close(&f);
			} else {
				assert_true(result == -EINVAL || result == -EBADMSG);
			}
		}
	}
}

static void abandon_leaves_nothing(void **state)
{
	(void)state;
	struct feedfile_writer *w;
	struct name name = name_of("a.test");
	assert_int_equal(mkdir("empty", 0700), 0);
	assert_int_equal(feedfile_begin("empty/f", NULL, 1, &w), 0);
	assert_int_equal(feedfile_add(w, &name, 1), 0);
	feedfile_abandon(w);
	assert_int_equal(rmdir("empty"), 0);
	assert_int_equal(feedfile_begin("missing/f", NULL, 1, &w), -ENOENT);
}

/* So many that the sorter spills, against a bitmap. */
static void property_many(void **state)
{
	(void)state;
	enum { SPACE = 1 << 20, ADDS = 1200000 };
	uint8_t *expected = calloc(SPACE, 1);
	struct feedfile_writer *w;
	struct feedfile_change change;
	uint64_t x = 88172645463325252ull, distinct = 0;
	assert_int_equal(feedfile_begin("many", NULL, 1, &w), 0);
	for (int i = 0; i < ADDS; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		uint32_t n = (uint32_t)(x >> 20) % SPACE;
		uint16_t flags = 1 << (x & 1);
		char text[64];
		sprintf(text, "%x.%x.test", n & 15, n >> 4);
		struct name name = name_of(text);
		distinct += !expected[n];
		expected[n] |= flags;
		assert_int_equal(feedfile_add(w, &name, flags), 0);
	}
	assert_int_equal(feedfile_finish(w, NULL, NULL, &change), 0);
	assert_int_equal(feedfile_publish(w, "many"), 0);
	assert_int_equal(change.entries, distinct);
	struct feedfile f;
	assert_int_equal(feedfile_open("many", 4096, &f), 0);
	for (int pass = 0; pass < 2; pass++) {
		uint64_t seen = 0;
		int result;
		while ((result = feedfile_next(&f)) == 1) {
			uint8_t wire[NAME_WIRE_MAX];
			char text[NAME_TEXT_MAX];
			unsigned low, high;
			key_to_wire(f.records.now.key, f.records.now.key_length, wire);
			name_format(wire, text);
			assert_int_equal(sscanf(text, "%x.%x.test.", &low, &high), 2);
			assert_int_equal(expected[high << 4 | low], f.records.now.flags);
			seen++;
		}
		assert_int_equal(result, 0);
		assert_int_equal(seen, distinct);
		record_reader_rewind(&f.records);
	}
	feedfile_close(&f);
	free(expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorted_once_with_flags_joined),
		cmocka_unit_test(first_seen_is_carried_over),
		cmocka_unit_test(cancel_takes_back_in_any_order),
		cmocka_unit_test(finds),
		cmocka_unit_test(damage_is_seen),
		cmocka_unit_test(abandon_leaves_nothing),
		cmocka_unit_test(property_many),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
