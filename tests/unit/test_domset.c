/* SPDX-License-Identifier: Apache-2.0 */
/* domset: lookup == brute force over random sets; determinism; damage is found and never crashes;
 * bad streams are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/key.h"
#include "feeds/set/domset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = hash_bytes(seed, "draw", 4);
	return (uint32_t)((seed >> 32) * below >> 32);
}

/* ---- a set in memory: the oracle ---- */

#define FEEDS	 7
#define LIST_MAX 4

struct item {
	struct name name;
	uint8_t key[KEY_MAX];
	size_t key_length;
	struct domset_entry entries[LIST_MAX];
	size_t count;
};

struct oracle {
	struct item *items;
	size_t count;
	size_t at; /* of the stream */
};

static const char *const feed_names[FEEDS] = {"ads", "b", "c", "malware", "n", "ours", "z-last"};

static int by_key(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return key_compare(x->key, x->key_length, y->key, y->key_length);
}

static void oracle_finish(struct oracle *o)
{
	for (size_t i = 0; i < o->count; i++) {
		struct item *it = &o->items[i];
		it->key_length =
			key_from_wire(it->name.wire, it->name.length, it->name.labels, it->key);
	}
	qsort(o->items, o->count, sizeof *o->items, by_key);
	size_t kept = 0;
	for (size_t i = 0; i < o->count; i++)
		if (!kept || by_key(&o->items[kept - 1], &o->items[i]))
			o->items[kept++] = o->items[i];
	o->count = kept;
}

static int next(void *context, struct domset_record *out)
{
	struct oracle *o = context;
	if (o->at == o->count)
		return 0;
	const struct item *it = &o->items[o->at++];
	*out = (struct domset_record){it->key, it->key_length, it->entries, it->count};
	return 1;
}

static int rewind_(void *context)
{
	((struct oracle *)context)->at = 0;
	return 0;
}

static struct domset_stream stream_of(struct oracle *o)
{
	return (struct domset_stream){next, rewind_, o};
}

/* ---- random names ---- */

/* From a small world, so that ancestors, neighbours and near misses are common. */
static void random_name(struct name *out, unsigned labels_max)
{
	static const char *const words[] = {"com", "net", "www", "ads",	 "a",	  "ab", "abc",
					    "abd", "x-1", "_",	 "mail", "track", "0"};
	uint8_t wire[NAME_WIRE_MAX];
	size_t n = 0;
	unsigned labels = draw(labels_max + 1), put = 0;
	for (; put < labels; put++) {
		uint8_t label[NAME_LABEL_MAX];
		size_t size;
		if (draw(4)) {
			const char *w = words[draw(sizeof words / sizeof words[0])];
			size = strlen(w);
			memcpy(label, w, size);
		} else {
			static const uint8_t odd[] = {0, 1, 2, '.', '-', 0xff, 0x80, 'q', '*'};
			size = 1 + draw(draw(8) ? 4 : NAME_LABEL_MAX);
			for (size_t i = 0; i < size; i++)
				label[i] = odd[draw(sizeof odd)];
		}
		if (n + size + 2 > NAME_WIRE_MAX)
			break;
		wire[n++] = (uint8_t)size;
		memcpy(wire + n, label, size);
		n += size;
	}
	wire[n++] = 0;
	name_set(out, wire, n, put);
}

static void random_entries(struct item *it, bool rules)
{
	unsigned feed = draw(3);
	it->count = 0;
	while (it->count < LIST_MAX && feed < FEEDS) {
		uint16_t flags = (uint16_t)(1u << draw(3));
		if (!draw(4))
			flags |= (uint16_t)(1u << draw(3));
		if (rules && !draw(3))
			flags = (uint16_t)(flags << 3 * draw(4));
		if (rules && !draw(6))
			flags |= (uint16_t)(1u << draw(12));
		it->entries[it->count++] = (struct domset_entry){(uint16_t)feed, flags};
		feed += 1 + draw(4);
	}
}

static void oracle_random(struct oracle *o, size_t count, unsigned labels_max, bool rules)
{
	*o = (struct oracle){.items = calloc(count, sizeof *o->items), .count = count};
	for (size_t i = 0; i < count; i++) {
		random_name(&o->items[i].name, labels_max);
		random_entries(&o->items[i], rules);
	}
	oracle_finish(o);
}

static void oracle_free(struct oracle *o)
{
	free(o->items);
}

/* ---- files ---- */

static char folder[] = "/tmp/test_domset.XXXXXX";

static char *path_of(const char *name)
{
	static char path[4][256];
	static unsigned turn;
	char *p = path[turn++ % 4];
	snprintf(p, 256, "%s/%s", folder, name);
	return p;
}

static void build(struct oracle *o, const char *path, uint64_t site_key)
{
	struct domset_build options = {feed_names, FEEDS, site_key};
	struct domset_stream stream = stream_of(o);
	struct domset_stats stats;
	unlink(path);
	assert_int_equal(domset_build(path, &options, &stream, &stats), 0);
	assert_int_equal(stats.names, o->count);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(stats.file_octets, st.st_size);
}

/* Feeds of the site: all but one of the file's, in another order, and one the file lacks. */
static struct feed site_items[FEEDS];
static struct feeds site;

static void site_init(void)
{
	static const char *const names[FEEDS] = {"z-last",  "ours", "absent", "n",
						 "malware", "b",    "ads"};
	for (unsigned i = 0; i < FEEDS; i++)
		site_items[i] = (struct feed){.name = names[i], .number = i * 40};
	site = (struct feeds){.items = site_items, .count = FEEDS};
}

static unsigned number_of(unsigned file_feed)
{
	for (unsigned i = 0; i < FEEDS; i++)
		if (!strcmp(site_items[i].name, feed_names[file_feed]))
			return site_items[i].number;
	return FEED_NONE;
}

static struct domset *open_bound(const char *path, enum domset_check check)
{
	struct domset *s;
	char error[DOMSET_ERROR_MAX];
	assert_int_equal(domset_open(path, check, &s, error), 0);
	assert_int_equal(domset_bind(s, &site), 0);
	return s;
}

/* ---- brute force ---- */

static bool applies(uint16_t flags, unsigned shift, bool here)
{
	return flags >> shift &
	       (here ? DOMSET_EXACT | DOMSET_SUBTREE : DOMSET_SUBTREE | DOMSET_BELOW);
}

static void check_name(const struct domset *s, const struct oracle *o, const struct name *n)
{
	struct domset_result r;
	bool on[4][FEEDS] = {{false}};
	int deepest[4][FEEDS];
	unsigned count = 0;
	memset(deepest, 0xff, sizeof deepest);
	struct domset_result plain;
	struct domset_hashes hashes;
	domset_prefetch(s, n->wire, n->length, n->labels, &hashes);
	domset_lookup_hashed(s, n->wire, n->length, n->labels, &hashes, &r);
	domset_lookup(s, n->wire, n->length, n->labels, &plain);
	assert_int_equal(plain.count, r.count);
	for (unsigned i = 0; i < r.count; i++) {
		assert_int_equal(plain.at[i].labels, r.at[i].labels);
		assert_int_equal(plain.at[i].combination, r.at[i].combination);
	}
	assert_memory_equal(&plain.feeds, &r.feeds, sizeof r.feeds);
	assert_false(r.damaged);
	assert_int_equal(r.labels, n->labels);
	for (unsigned keep = n->labels + 1; keep--;) {
		struct item wanted;
		size_t from = name_suffix_offset(n->wire, n->labels, keep);
		wanted.key_length =
			key_from_wire(n->wire + from, n->length - from, keep, wanted.key);
		const struct item *it =
			bsearch(&wanted, o->items, o->count, sizeof *o->items, by_key);
		if (!it)
			continue;
		assert_true(count < r.count);
		assert_int_equal(r.at[count].labels, keep);
		size_t entries;
		const struct domset_entry *e =
			domset_combination(s, r.at[count].combination, &entries);
		assert_int_equal(entries, it->count);
		assert_memory_equal(e, it->entries, entries * sizeof *e);
		count++;
		for (size_t i = 0; i < entries; i++)
			for (unsigned layer = 0; layer < 4; layer++)
				if (applies(e[i].flags, 3 * layer, keep == n->labels)) {
					on[layer][e[i].feed] = true;
					if (deepest[layer][e[i].feed] < 0)
						deepest[layer][e[i].feed] = (int)keep;
				}
	}
	assert_int_equal(count, r.count);
	struct feedmask expected = {0};
	for (unsigned f = 0; f < FEEDS; f++) {
		unsigned number = number_of(f);
		if (number == FEED_NONE)
			continue;
		bool match = ((on[0][f] && !on[1][f]) || on[2][f]) && !on[3][f];
		uint16_t flags = 0;
		int at = domset_match_of(s, &r, number, &flags);
		if (!match) {
			assert_int_equal(at, -1);
			continue;
		}
		feedmask_add(&expected, number);
		int best =
			on[1][f] || deepest[2][f] > deepest[0][f] ? deepest[2][f] : deepest[0][f];
		assert_int_equal(at, best);
		assert_int_equal(flags & (flags - 1), 0);
		assert_true(flags && (applies(flags, 0, at == (int)n->labels) ||
				      applies(flags, 6, at == (int)n->labels)));
	}
	assert_memory_equal(&expected, &r.feeds, sizeof expected);
}

/* A name near a listed one: a label more, an octet more or less, a label less. */
static void near(const struct name *n, struct name *out)
{
	struct name m = *n;
	unsigned labels;
	switch (draw(5)) {
	case 0:
		if (n->length + 2 <= NAME_WIRE_MAX) {
			m.wire[0] = 1;
			m.wire[1] = (uint8_t)draw(256);
			memcpy(m.wire + 2, n->wire, n->length);
			m.length += 2;
		}
		break;
	case 1:
		if (n->labels) {
			size_t from = name_suffix_offset(n->wire, n->labels, n->labels - 1);
			memcpy(m.wire, n->wire + from, n->length - from);
			m.length -= (uint8_t)from;
		}
		break;
	case 2:
		if (n->labels && n->wire[0] > 1) {
			m.wire[0]--;
			memcpy(m.wire + 1, n->wire + 2, n->length - 2u);
			m.length--;
		}
		break;
	case 3:
		if (n->labels)
			m.wire[1 + draw(n->wire[0])] = (uint8_t)draw(256);
		break;
	default:
		break;
	}
	size_t length = name_measure(m.wire, m.length, &labels);
	assert_int_equal(length, m.length);
	name_set(out, m.wire, length, labels);
}

static void check_many(const struct domset *s, const struct oracle *o, size_t count)
{
	for (size_t i = 0; i < o->count; i++)
		check_name(s, o, &o->items[i].name);
	for (size_t i = 0; i < count; i++) {
		struct name n;
		if (i & 1 && o->count)
			near(&o->items[draw((uint32_t)o->count)].name, &n);
		else
			random_name(&n, 6);
		check_name(s, o, &n);
	}
}

static void check_walk(const struct domset *s, const struct oracle *o)
{
	struct domset_walk *w;
	struct name name;
	uint32_t combination;
	assert_int_equal(domset_walk_new(s, &w), 0);
	for (size_t i = 0; i < o->count; i++) {
		size_t count;
		assert_int_equal(domset_walk_next(w, &name, &combination), 1);
		assert_true(name_equal(name.wire, name.length, o->items[i].name.wire,
				       o->items[i].name.length));
		const struct domset_entry *e = domset_combination(s, combination, &count);
		assert_int_equal(count, o->items[i].count);
		assert_memory_equal(e, o->items[i].entries, count * sizeof *e);
	}
	assert_int_equal(domset_walk_next(w, &name, &combination), 0);
	domset_walk_free(w);
}

static void test_lookup_is_brute_force(void **state)
{
	(void)state;
	static const struct {
		size_t count;
		unsigned labels_max;
		bool rules;
	} sizes[] = {
		{0, 3, false},	 {1, 0, true},	   {1, 3, false},     {2, 2, true},
		{64, 3, true},	 {65, 3, true},	   {500, 4, true},    {3000, 5, true},
		{3000, 9, true}, {20000, 4, true}, {100000, 6, true}, {2000, 127, true},
	};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct oracle o;
		const char *path = path_of("property");
		oracle_random(&o, sizes[i].count, sizes[i].labels_max, sizes[i].rules);
		build(&o, path, i);
		struct domset *s = open_bound(path, DOMSET_CHECK_ALL);
		check_many(s, &o, 20000);
		check_walk(s, &o);
		domset_close(s);
		oracle_free(&o);
	}
}

/* The limits: 255 octets, labels of 63, 127 labels, octets that double in the key. */
static void test_longest_names(void **state)
{
	(void)state;
	struct oracle o = {.items = calloc(400, sizeof(struct item)), .count = 400};
	for (size_t i = 0; i < o.count; i++) {
		uint8_t wire[NAME_WIRE_MAX];
		unsigned labels;
		if (i & 1) {
			memset(wire, i % 3 ? 1 : 0, sizeof wire);
			wire[0] = wire[64] = wire[128] = 63;
			wire[192] = 61;
			wire[254] = 0;
			wire[1 + draw(63)] = (uint8_t)draw(4);
			wire[193 + draw(61)] = (uint8_t)draw(4);
		} else {
			for (unsigned k = 0; k < 127; k++) {
				wire[2 * k] = 1;
				wire[2 * k + 1] = k < 3 ? (uint8_t)draw(256) : 'x';
			}
			wire[254] = 0;
		}
		size_t from = i % 4 < 2 ? 0 : wire[0] + 1u;
		size_t length = name_measure(wire + from, 255 - from, &labels);
		assert_int_not_equal(length, 0);
		name_set(&o.items[i].name, wire + from, length, labels);
		random_entries(&o.items[i], true);
	}
	oracle_finish(&o);
	const char *path = path_of("longest");
	build(&o, path, 0);
	struct domset *s = open_bound(path, DOMSET_CHECK_ALL);
	check_many(s, &o, 5000);
	check_walk(s, &o);
	domset_close(s);
	oracle_free(&o);
}

/* Long runs of names that share more than an index key holds. */
static void test_ties_in_the_index(void **state)
{
	(void)state;
	size_t count = 60000;
	struct oracle o = {.items = calloc(count, sizeof(struct item)), .count = count};
	for (size_t i = 0; i < count; i++) {
		char text[256];
		const char *tail = i % 3 ? "that-share-a-long-tail-in-front" : "x";
		int n = snprintf(text, sizeof text, "%s%u.%s%u.example.com",
				 i % 2 ? "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" : "b", draw(1000000),
				 tail, draw(i % 5 ? 3 : 1000));
		assert_int_equal(name_parse(text, (size_t)n, &o.items[i].name), 0);
		random_entries(&o.items[i], false);
	}
	oracle_finish(&o);
	const char *path = path_of("ties");
	build(&o, path, 7);
	struct domset *s = open_bound(path, DOMSET_CHECK_HEADER);
	check_many(s, &o, 100000);
	domset_close(s);
	oracle_free(&o);
}

static char *slurp(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	struct stat st;
	assert_int_equal(fstat(fileno(f), &st), 0);
	*size = (size_t)st.st_size;
	char *data = malloc(*size);
	assert_int_equal(fread(data, 1, *size, f), *size);
	fclose(f);
	return data;
}

static void spill(const char *path, const char *data, size_t size)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static void test_same_input_same_octets(void **state)
{
	(void)state;
	struct oracle o;
	size_t a_size, b_size, c_size;
	oracle_random(&o, 50000, 5, true);
	const char *a = path_of("a"), *b = path_of("b"), *c = path_of("c");
	build(&o, a, 3);
	build(&o, b, 3);
	build(&o, c, 4);
	char *x = slurp(a, &a_size), *y = slurp(b, &b_size), *z = slurp(c, &c_size);
	assert_int_equal(a_size, b_size);
	assert_memory_equal(x, y, a_size);
	assert_true(a_size != c_size || memcmp(x, z, a_size)); /* another site, another filter */
	free(x);
	free(y);
	free(z);
	oracle_free(&o);
}

/* Look every name up in a damaged set: whatever is not reported as damaged must be right. */
static void check_damaged(struct domset *s, const struct oracle *o)
{
	for (size_t i = 0; i < o->count; i++) {
		struct domset_result r;
		const struct name *n = &o->items[i].name;
		domset_lookup(s, n->wire, n->length, n->labels, &r);
		if (!r.damaged)
			check_name(s, o, n);
	}
	struct domset_walk *w;
	struct name name;
	uint32_t combination;
	int rc;
	assert_int_equal(domset_walk_new(s, &w), 0);
	while ((rc = domset_walk_next(w, &name, &combination)) == 1)
		;
	domset_walk_free(w);
	assert_true(rc == 0 || rc == -EBADMSG);
}

static void test_bit_flips_are_found(void **state)
{
	(void)state;
	struct oracle o;
	size_t size;
	oracle_random(&o, 1500, 5, true);
	const char *path = path_of("whole"), *bad = path_of("bad");
	build(&o, path, 0);
	char *data = slurp(path, &size);
	unsigned opened = 0;
	for (unsigned i = 0; i < 3000; i++) {
		/* The first and last octets one by one, the rest by chance. */
		size_t at = i < 200 ? i : i < 400 ? size - 1 - (i - 200) : draw((uint32_t)size);
		char error[DOMSET_ERROR_MAX];
		struct domset *s = NULL;
		data[at] ^= (char)(1 << draw(8));
		spill(bad, data, size);
		int rc = domset_open(bad, DOMSET_CHECK_ALL, &s, error);
		assert_true(rc == -EBADMSG || rc == -EINVAL);
		if (!domset_open(bad, DOMSET_CHECK_HEADER, &s, error)) {
			opened++;
			assert_int_equal(domset_bind(s, &site), 0);
			check_damaged(s, &o);
			domset_close(s);
		}
		data[at] = 0;
		char *again = slurp(path, &size);
		data[at] = again[at];
		free(again);
	}
	assert_true(opened > 100); /* or nothing was tested */
	free(data);
	oracle_free(&o);
}

static void test_cut_off_files_are_found(void **state)
{
	(void)state;
	struct oracle o;
	size_t size;
	oracle_random(&o, 1500, 5, true);
	const char *path = path_of("whole"), *bad = path_of("cut");
	build(&o, path, 0);
	char *data = slurp(path, &size);
	for (unsigned i = 0; i < 300; i++) {
		size_t left = i < 100 ? i : i < 200 ? size - 1 - (i - 100) : draw((uint32_t)size);
		char error[DOMSET_ERROR_MAX];
		struct domset *s;
		spill(bad, data, left);
		for (unsigned check = DOMSET_CHECK_HEADER; check <= DOMSET_CHECK_ALL; check++) {
			int rc = domset_open(bad, check, &s, error);
			assert_true(rc == -EBADMSG || rc == -EINVAL);
			assert_int_not_equal(strlen(error), 0);
		}
	}
	free(data);
	oracle_free(&o);
}

static void test_not_a_set(void **state)
{
	(void)state;
	char error[DOMSET_ERROR_MAX];
	struct domset *s;
	assert_int_equal(domset_open(path_of("absent"), DOMSET_CHECK_ALL, &s, error), -ENOENT);
	assert_int_equal(domset_open(folder, DOMSET_CHECK_ALL, &s, error), -EINVAL);
	spill(path_of("empty"), "", 0);
	assert_int_equal(domset_open(path_of("empty"), DOMSET_CHECK_ALL, &s, error), -EINVAL);
	char text[10000];
	memset(text, 'x', sizeof text);
	spill(path_of("text"), text, sizeof text);
	assert_int_equal(domset_open(path_of("text"), DOMSET_CHECK_ALL, &s, error), -EINVAL);
}

static void test_bad_streams_are_refused(void **state)
{
	(void)state;
	struct oracle o;
	oracle_random(&o, 500, 4, false);
	const char *path = path_of("refused");
	struct domset_build options = {feed_names, FEEDS, 0};
	struct domset_stream stream = stream_of(&o);
	struct item saved = o.items[100];

	o.items[100] = o.items[99]; /* twice the same */
	assert_int_equal(domset_build(path, &options, &stream, NULL), -EILSEQ);
	o.items[100] = o.items[98]; /* backwards */
	assert_int_equal(domset_build(path, &options, &stream, NULL), -EILSEQ);
	o.items[100] = saved;
	o.items[100].entries[0].feed = FEEDS;
	assert_int_equal(domset_build(path, &options, &stream, NULL), -EINVAL);
	o.items[100] = saved;
	o.items[100].entries[0].flags = 0;
	assert_int_equal(domset_build(path, &options, &stream, NULL), -EINVAL);
	o.items[100] = saved;
	o.items[100].count = 0;
	assert_int_equal(domset_build(path, &options, &stream, NULL), -EINVAL);
	o.items[100] = saved;
	o.items[100].key[0] = 1;
	o.items[100].key[1] = 7; /* no key */
	assert_int_equal(domset_build(path, &options, &stream, NULL), -EINVAL);
	o.items[100] = saved;
	assert_int_equal(access(path, F_OK), -1); /* nothing is left lying about */

	assert_int_equal(domset_build(path, &options, &stream, NULL), 0);
	assert_int_equal(domset_build(path, &options, &stream, NULL), -EEXIST);
	assert_int_equal(access(path, F_OK), 0); /* and the older file is not touched */

	const char *const unsorted[] = {"b", "a"};
	struct domset_build wrong = {unsorted, 2, 0};
	assert_int_equal(domset_build(path_of("wrong"), &wrong, &stream, NULL), -EINVAL);
	assert_int_equal(domset_build(path_of("no/such/folder"), &options, &stream, NULL), -ENOENT);
	oracle_free(&o);
}

static void test_feeds_by_name(void **state)
{
	(void)state;
	struct oracle o;
	oracle_random(&o, 10, 3, false);
	const char *path = path_of("feeds");
	build(&o, path, 0);
	struct domset *s = open_bound(path, DOMSET_CHECK_ALL);
	assert_int_equal(domset_feed_count(s), FEEDS);
	for (unsigned i = 0; i < FEEDS; i++) {
		assert_string_equal(domset_feed_name(s, i), feed_names[i]);
		assert_int_equal(domset_feed_number(s, i), number_of(i));
	}
	assert_int_equal(domset_feed_number(s, 2), FEED_NONE); /* "c" is not subscribed */
	size_t count;
	assert_null(domset_combination(s, UINT32_MAX, &count));
	domset_close(s);
	oracle_free(&o);
}

static int make_folder(void **state)
{
	(void)state;
	site_init();
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	char command[300];
	snprintf(command, sizeof command, "rm -r '%s'", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookup_is_brute_force),
		cmocka_unit_test(test_longest_names),
		cmocka_unit_test(test_ties_in_the_index),
		cmocka_unit_test(test_same_input_same_octets),
		cmocka_unit_test(test_bit_flips_are_found),
		cmocka_unit_test(test_cut_off_files_are_found),
		cmocka_unit_test(test_not_a_set),
		cmocka_unit_test(test_bad_streams_are_refused),
		cmocka_unit_test(test_feeds_by_name),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
