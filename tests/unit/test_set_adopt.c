/* SPDX-License-Identifier: Apache-2.0 */
/* Adopting sets: the new one for new queries, the old one until the last who began with it is done.
 */
#include "core/dns/set_adopt.h"

#include "base/key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct worker w;
static struct generation g;
static struct feed feed = {.name = "ours", .number = 0};
static char folder[] = "/tmp/baleen-set-adopt-XXXXXX";

/* A stream of one name. */
struct one {
	struct domset_entry entry;
	uint8_t key[KEY_MAX];
	size_t length;
	bool done;
};

static int one_next(void *context, struct domset_record *out)
{
	struct one *o = context;
	if (o->done)
		return 0;
	o->done = true;
	*out = (struct domset_record){.key = o->key,
				      .key_length = o->length,
				      .entries = &o->entry,
				      .count = 1};
	return 1;
}

static int one_rewind(void *context)
{
	((struct one *)context)->done = false;
	return 0;
}

static void publish(unsigned number, const char *listed)
{
	struct one o = {.entry = {.feed = 0, .flags = DOMSET_SUBTREE}};
	struct domset_stream stream = {.next = one_next, .rewind = one_rewind, .context = &o};
	const char *const names[] = {"ours"};
	struct domset_build options = {.feed_names = names, .feed_count = 1};
	struct domset_stats stats;
	struct name name;
	char path[64];

	assert_int_equal(name_parse(listed, strlen(listed), &name), 0);
	o.length = key_from_wire(name.wire, name.length, name.labels, o.key);
	snprintf(path, sizeof(path), "sets/domains.%u.mdb", number);
	assert_int_equal(domset_build(path, &options, &stream, &stats), 0);
	atomic_store(shm_set_number(w.shm), number);
}

static bool lists(const struct domset *set, const char *text)
{
	struct domset_result r;
	struct name name;

	assert_int_equal(name_parse(text, strlen(text), &name), 0);
	domset_lookup(set, name.wire, name.length, name.labels, &r);
	return r.count > 0;
}

static unsigned mapped(void)
{
	char line[512];
	unsigned count = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "/sets/domains.") != NULL;
	fclose(maps);
	return count;
}

static int begin(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || chdir(folder) < 0 || mkdir("sets", 0700) < 0)
		return -1;
	g.config.feeds.items = &feed;
	g.config.feeds.count = 1;
	w.generation = &g;
	w.shm = shm_private(1, 0);
	return !w.shm;
}

static int end(void **state)
{
	(void)state;
	char path[64];

	shm_unmap(w.shm);
	for (unsigned i = 1; i < 8; i++) {
		snprintf(path, sizeof(path), "sets/domains.%u.mdb", i);
		unlink(path);
	}
	rmdir("sets");
	return chdir("/") < 0 || rmdir(folder) < 0;
}

static void test_life_of_sets(void **state)
{
	(void)state;

	set_adopt(&w);
	assert_null(w.set);

	publish(1, "one.test");
	set_adopt(&w);
	assert_non_null(w.set);
	assert_true(lists(w.set, "a.one.test"));
	const struct domset *first = w.set;
	set_adopt(&w);
	assert_ptr_equal(w.set, first);

	/* Two queries wait with the first; the second set is for those that come now. */
	set_pin(&w, first);
	set_pin(&w, first);
	publish(2, "two.test");
	set_adopt(&w);
	assert_ptr_not_equal(w.set, first);
	assert_true(lists(w.set, "two.test"));
	assert_true(lists(first, "one.test"));
	assert_false(lists(first, "two.test"));
	unsigned both = mapped();
	set_unpin(&w, first);
	assert_true(lists(first, "one.test"));
	assert_int_equal(mapped(), both);
	set_unpin(&w, first);
	assert_true(mapped() < both);

	/* What cannot be opened leaves the old one, and is tried again when asked to. */
	const struct domset *second = w.set;
	FILE *f = fopen("sets/domains.3.mdb", "w");
	fputs("this is no set", f);
	fclose(f);
	atomic_store(shm_set_number(w.shm), 3);
	set_adopt(&w);
	set_adopt(&w);
	assert_ptr_equal(w.set, second);
	atomic_store(shm_set_number(w.shm), 4); /* not there at all */
	set_adopt(&w);
	assert_ptr_equal(w.set, second);
	publish(4, "four.test");
	set_adopt(&w);
	assert_ptr_equal(w.set, second);
	set_retry(&w);
	set_adopt(&w);
	assert_true(lists(w.set, "four.test"));

	/* Pinning nothing, or something unknown, does nothing. */
	set_pin(&w, NULL);
	set_unpin(&w, NULL);
	set_close_all(&w);
	assert_int_equal(mapped(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_life_of_sets, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
