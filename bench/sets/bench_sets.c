/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a domain set costs: octets a name by part, seconds and memory to build, nanoseconds a
 * lookup.
 *
 *   bench_sets [-n NAMES]... [-f FEEDS]... [FILE]
 *
 * FILE holds one name a line, optionally TAB and class bits (a number), which become feeds; "-" is
 * stdin. -n: the set is made that large, by taking some names or adding generated ones (leaf labels
 * spliced from real ones, or from a small alphabet without FILE). -f: names are listed by that many
 * feeds instead: 2,000 combinations of 1 to 6 feeds, the frequent ones most often, whatever the
 * name. Building runs in a child, whose anonymous memory is watched.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/key.h"
#include "feeds/set/domset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FEEDS_GENERATED_MAX 250
#define LOOKUPS		    500000
#define COMBINATIONS	    2000
#define PASSES		    10
#define STRETCHES	    25

struct record {
	uint64_t key; /* offset in keys */
	uint16_t octets;
	uint16_t bits;
};

struct names {
	uint8_t *keys;
	size_t octets, room;
	struct record *records;
	size_t count, records_room;
};

static uint64_t seed = 42;

static uint32_t draw(uint32_t below)
{
	seed = hash_bytes(seed, "x", 1);
	return (uint32_t)((seed >> 32) * below >> 32);
}

static void *grow(void *p, size_t *room, size_t wanted, size_t each)
{
	if (wanted <= *room)
		return p;
	*room = wanted * 2;
	p = realloc(p, *room * each);
	if (!p) {
		perror("realloc");
		exit(1);
	}
	return p;
}

static void names_add(struct names *n, const struct name *name, unsigned bits)
{
	n->keys = grow(n->keys, &n->room, n->octets + KEY_MAX, 1);
	n->records = grow(n->records, &n->records_room, n->count + 1, sizeof *n->records);
	size_t octets = key_from_wire(name->wire, name->length, name->labels, n->keys + n->octets);
	n->records[n->count++] = (struct record){n->octets, (uint16_t)octets, (uint16_t)bits};
	n->octets += octets;
}

static const struct names *sorting;

static int by_key(const void *a, const void *b)
{
	const struct record *x = a, *y = b;
	return key_compare(sorting->keys + x->key, x->octets, sorting->keys + y->key, y->octets);
}

static void names_sort(struct names *n)
{
	sorting = n;
	qsort(n->records, n->count, sizeof *n->records, by_key);
	size_t kept = 0;
	for (size_t i = 0; i < n->count; i++)
		if (!kept || by_key(&n->records[kept - 1], &n->records[i]))
			n->records[kept++] = n->records[i];
	n->count = kept;
}

static void names_read(struct names *n, FILE *f)
{
	char line[2048];
	while (fgets(line, sizeof line, f)) {
		struct name name;
		size_t length = strcspn(line, "\t\r\n");
		unsigned bits = line[length] == '\t' ? (unsigned)atoi(line + length + 1) : 1;
		if (length && !name_parse(line, length, &name))
			names_add(n, &name, bits & 0xff ? bits & 0xff : 1);
	}
}

/* A name like those there are: the leaf of one, cut in two and joined to another's end, below the
 * parent of a third. */
static void names_splice(const struct names *n, size_t from, struct name *out)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	uint8_t leaf[3][NAME_WIRE_MAX], wire[NAME_WIRE_MAX];
	size_t length = 1;
	for (unsigned i = 0; i < 3 && from; i++) {
		const struct record *r = &n->records[draw((uint32_t)from)];
		length = key_to_wire(n->keys + r->key, r->octets, leaf[i]);
	}
	uint8_t *at = wire + 1;
	if (from) {
		size_t a = leaf[0][0], b = leaf[1][0];
		size_t first = 1 + draw((uint32_t)a), second = draw((uint32_t)b + 1);
		if (first + second > NAME_LABEL_MAX)
			second = NAME_LABEL_MAX - first;
		memcpy(at, leaf[0] + 1, first);
		memcpy(at + first, leaf[1] + 1 + b - second, second);
		wire[0] = (uint8_t)(first + second);
		size_t parent = leaf[2][0] + 1u;
		if (wire[0] + 1u + length - parent > NAME_WIRE_MAX)
			parent = length - 1;
		memcpy(at + wire[0], leaf[2] + parent, length - parent);
		length = wire[0] + 1u + length - parent;
	} else {
		wire[0] = (uint8_t)(6 + draw(12));
		for (unsigned i = 0; i < wire[0]; i++)
			at[i] = (uint8_t)letters[draw(draw(4) ? 26 : 37)];
		memcpy(at + wire[0], draw(2) ? "\3com" : "\3net", 5);
		length = wire[0] + 6u;
	}
	unsigned labels;
	length = name_measure(wire, length, &labels);
	name_set(out, wire, length, labels);
}

/* So many of the names, evenly chosen. The keys stay shared. */
static void names_thin(const struct names *n, size_t wanted, struct names *out)
{
	*out = *n;
	out->records = malloc((wanted + 1) * sizeof *out->records);
	if (!out->records)
		exit(1);
	out->count = wanted;
	for (size_t i = 0; i < wanted; i++)
		out->records[i] =
			n->records[(size_t)((double)i * (double)n->count / (double)wanted)];
}

/* ---- the stream ---- */

struct source {
	const struct names *names;
	size_t at;
	unsigned feeds; /* 0: class bits are the feeds */
	struct domset_entry entries[FEEDS_GENERATED_MAX];
};

static int next(void *context, struct domset_record *out)
{
	struct source *s = context;
	if (s->at == s->names->count)
		return 0;
	const struct record *r = &s->names->records[s->at++];
	size_t count = 0;
	if (s->feeds > 1) {
		/* Squared: the k-th combination has about 1/sqrt(k) of the names of the first. */
		uint64_t h = hash_bytes(9, s->names->keys + r->key, r->octets) >> 32;
		uint64_t k = (h * h >> 32) * COMBINATIONS >> 32;
		h = hash_bytes(10, &k, sizeof k);
		unsigned feed = (unsigned)((h & 0xffff) * s->feeds >> 17);
		for (h >>= 16; feed < s->feeds && count < 6; h >>= 8) {
			s->entries[count++] = (struct domset_entry){(uint16_t)feed, DOMSET_SUBTREE};
			feed += 1 + (unsigned)(h & 0xff) % s->feeds;
		}
	} else {
		for (uint16_t f = 0; f < 8; f++)
			if (s->feeds ? !f : r->bits >> f & 1)
				s->entries[count++] = (struct domset_entry){f, DOMSET_SUBTREE};
	}
	*out = (struct domset_record){s->names->keys + r->key, r->octets, s->entries, count};
	return 1;
}

static int again(void *context)
{
	((struct source *)context)->at = 0;
	return 0;
}

/* ---- measuring ---- */

static char feed_names_text[FEEDS_GENERATED_MAX][8];
static const char *feed_names[FEEDS_GENERATED_MAX];
static struct feed feed_items[FEEDS_GENERATED_MAX];

struct built {
	int rc;
	double seconds;
	long anonymous_kib; /* at its peak, over the start */
	struct domset_stats stats;
};

/* Resident memory of a process that is no file's, now. */
static long anonymous_kib(pid_t pid)
{
	long value = 0;
	char line[256];
	snprintf(line, sizeof line, "/proc/%d/status", (int)pid);
	FILE *f = fopen(line, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "RssAnon: %ld kB", &value) == 1)
			break;
	if (f)
		fclose(f);
	return value;
}

static void build_in_child(const char *path, struct source *source, int start, int result)
{
	struct domset_build options = {feed_names, source->feeds > 1 ? source->feeds : 8, 0};
	struct domset_stream stream = {next, again, source};
	struct built b = {0};
	char go;
	if (read(start, &go, 1) != 1)
		_exit(1);
	int64_t from = clock_monotonic_us();
	b.rc = domset_build(path, &options, &stream, &b.stats);
	b.seconds = (double)(clock_monotonic_us() - from) / 1e6;
	_exit(write(result, &b, sizeof b) == sizeof b ? 0 : 1);
}

static struct built build(const char *path, struct source *source)
{
	struct built b = {.rc = -EIO};
	int start[2], result[2];
	unlink(path);
	if (pipe(start) < 0 || pipe(result) < 0)
		exit(1);
	pid_t child = fork();
	if (!child)
		build_in_child(path, source, start[0], result[1]);
	long before = anonymous_kib(child), most = before;
	if (write(start[1], "", 1) != 1)
		exit(1);
	while (waitpid(child, NULL, WNOHANG) != child) {
		long now = anonymous_kib(child);
		most = now > most ? now : most;
		usleep(2000);
	}
	if (read(result[0], &b, sizeof b) != sizeof b)
		b.rc = -EIO;
	b.anonymous_kib = most - before;
	close(start[0]);
	close(start[1]);
	close(result[0]);
	close(result[1]);
	return b;
}

/* Names to ask for, packed, so that reading them costs next to nothing: length, labels, wire. */
struct asked {
	uint8_t *data;
	size_t octets, room, count;
};

static void asked_add(struct asked *a, const struct name *n)
{
	a->data = grow(a->data, &a->room, a->octets + 2 + NAME_WIRE_MAX, 1);
	a->data[a->octets++] = n->length;
	a->data[a->octets++] = n->labels;
	memcpy(a->data + a->octets, n->wire, n->length);
	a->octets += n->length;
	a->count++;
}

/* The least time of each stretch over all passes, summed: other processes come and go. */
static void time_lookups(const struct domset *s, struct asked *a, const char *what)
{
	int64_t best[STRETCHES];
	unsigned matched = 0;
	size_t each = a->count / STRETCHES;
	memset(best, 0x7f, sizeof best);
	for (unsigned pass = 0; pass < PASSES; pass++) {
		const uint8_t *p = a->data;
		matched = 0;
		for (unsigned stretch = 0; stretch < STRETCHES; stretch++) {
			struct domset_result r;
			int64_t start = clock_monotonic_us();
			for (size_t i = 0; i < each; i++) {
				domset_lookup(s, p + 2, p[0], p[1], &r);
				matched += feedmask_any(&r.feeds);
				p += 2 + p[0];
			}
			int64_t us = clock_monotonic_us() - start;
			best[stretch] = us < best[stretch] ? us : best[stretch];
		}
	}
	int64_t sum = 0;
	for (unsigned stretch = 0; stretch < STRETCHES; stretch++)
		sum += best[stretch];
	printf("  %-8s %7.1f ns a lookup (%u of %zu matched)\n", what,
	       (double)sum * 1000 / (double)(each * STRETCHES), matched, each * STRETCHES);
	a->octets = a->count = 0;
}

static void name_of(const struct names *n, size_t i, struct name *out)
{
	uint8_t wire[NAME_WIRE_MAX];
	unsigned labels;
	size_t length = key_to_wire(n->keys + n->records[i].key, n->records[i].octets, wire);
	(void)name_measure(wire, length, &labels);
	name_set(out, wire, length, labels);
}

static void bench_lookups(const struct domset *s, const struct names *n)
{
	struct asked a = {0};
	struct name name;
	for (size_t i = 0; i < LOOKUPS; i++) {
		name_of(n, draw((uint32_t)n->count), &name);
		asked_add(&a, &name);
	}
	time_lookups(s, &a, "listed");
	for (size_t i = 0; a.count < LOOKUPS && i < 4 * LOOKUPS; i++) {
		struct domset_result r;
		names_splice(n, n->count, &name);
		domset_lookup(s, name.wire, name.length, name.labels, &r);
		if (!r.count)
			asked_add(&a, &name);
	}
	time_lookups(s, &a, "clean");
	free(a.data);
}

static void bench(struct names *n, unsigned feeds)
{
	const char *path = "bench_sets.mdb";
	struct source source = {.names = n, .feeds = feeds};
	struct built b = build(path, &source);
	if (b.rc) {
		printf("build failed: %s\n", strerror(-b.rc));
		exit(1);
	}
	double names = (double)b.stats.names;
	printf("%zu names, %s, %llu combinations\n", n->count,
	       feeds ? "generated feeds" : "class bits as feeds",
	       (unsigned long long)b.stats.combinations);
	printf("  octets a name %.3f = blocks %.3f + filter %.3f + index %.3f + rest %.3f\n",
	       (double)b.stats.file_octets / names, (double)b.stats.block_octets / names,
	       (double)b.stats.filter_octets / names, (double)b.stats.index_octets / names,
	       (double)(b.stats.file_octets - b.stats.block_octets - b.stats.filter_octets -
			b.stats.index_octets) /
		       names);
	printf("  build %.2f s, anonymous memory at its peak %.1f MiB\n", b.seconds,
	       (double)b.anonymous_kib / 1024);
	struct feeds site = {.items = feed_items, .count = FEEDS_GENERATED_MAX};
	for (unsigned check = DOMSET_CHECK_HEADER; check <= DOMSET_CHECK_ALL; check++) {
		struct domset *s;
		char error[DOMSET_ERROR_MAX];
		int64_t start = clock_monotonic_us();
		if (domset_open(path, check, &s, error) || domset_bind(s, &site)) {
			printf("open failed: %s\n", error);
			exit(1);
		}
		printf("  open and bind, %s %.1f ms\n",
		       check == DOMSET_CHECK_ALL ? "all checked" : "header checked",
		       (double)(clock_monotonic_us() - start) / 1000);
		if (check == DOMSET_CHECK_HEADER)
			bench_lookups(s, n);
		domset_close(s);
	}
	unlink(path);
}

int main(int argc, char **argv)
{
	struct names n = {0};
	size_t sizes[16];
	unsigned feeds[16], size_count = 0, feed_count = 0;
	for (int option; (option = getopt(argc, argv, "n:f:")) != -1;) {
		if (option == 'n' && size_count < 16)
			sizes[size_count++] = (size_t)atof(optarg);
		else if (option == 'f' && feed_count < 16)
			feeds[feed_count++] = (unsigned)atoi(optarg);
		else
			return 2;
	}
	for (unsigned i = 0; i < FEEDS_GENERATED_MAX; i++) {
		snprintf(feed_names_text[i], sizeof feed_names_text[i], "f%03u", i);
		feed_names[i] = feed_names_text[i];
		feed_items[i] = (struct feed){.name = feed_names[i], .number = i};
	}
	if (!feed_count)
		feeds[feed_count++] = 0;
	if (optind < argc && argv[optind][0]) {
		FILE *f = strcmp(argv[optind], "-") ? fopen(argv[optind], "re") : stdin;
		if (!f) {
			perror(argv[optind]);
			return 1;
		}
		names_read(&n, f);
		names_sort(&n);
		for (unsigned i = 0; i < feed_count && !size_count; i++)
			bench(&n, feeds[i]);
	}
	size_t real = n.count;
	for (unsigned i = 0; i < size_count; i++) {
		while (n.count < sizes[i]) {
			for (size_t missing = sizes[i] - n.count; missing; missing--) {
				struct name name;
				names_splice(&n, real, &name);
				names_add(&n, &name, 1u << draw(3));
			}
			names_sort(&n);
		}
		struct names part = n;
		if (sizes[i] < n.count)
			names_thin(&n, sizes[i], &part);
		for (unsigned k = 0; k < feed_count; k++)
			bench(&part, feeds[k]);
		if (part.records != n.records)
			free(part.records);
	}
	free(n.keys);
	free(n.records);
	return 0;
}
