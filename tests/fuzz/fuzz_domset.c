/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set file with octets overwritten. The input is patches, 4 octets each: u24 place, u8 value.
 * With an even first octet the CRCs of the patched file are put right again, so that the checks
 * behind them are reached. What LMDB itself reads is left wrong: it is trusted once its CRC is
 * right.
 */
#include "base/hash.h"
#include "base/key.h"
#include "feeds/set/domset.h"
#include "feeds/set/domset_block.h"
#include "feeds/set/domset_layout.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAMES 400

static uint8_t keys[NAMES][KEY_MAX];
static size_t lengths[NAMES];
static struct name names[NAMES];
static uint8_t *good;
static size_t good_octets;
static char path[64];

struct source {
	size_t at;
	struct domset_entry entries[2];
};

static int next(void *context, struct domset_record *out)
{
	struct source *s = context;
	if (s->at == NAMES)
		return 0;
	s->entries[0] = (struct domset_entry){0, DOMSET_SUBTREE};
	s->entries[1] = (struct domset_entry){1, DOMSET_EXCEPT(DOMSET_EXACT)};
	*out = (struct domset_record){keys[s->at], lengths[s->at], s->entries, 1 + s->at % 2};
	s->at++;
	return 1;
}

static int again(void *context)
{
	((struct source *)context)->at = 0;
	return 0;
}

static void remove_file(void)
{
	unlink(path);
}

/* The root, then names in order: www.nNNN.example below nNNN.example, some with odd octets. */
static void prepare(void)
{
	static const char *const feeds[] = {"a", "b"};
	struct source source = {0};
	struct domset_stream stream = {next, again, &source};
	struct domset_build options = {feeds, 2, 0};
	for (unsigned i = 0; i < NAMES; i++) {
		char text[64] = ".";
		if (i)
			snprintf(text, sizeof text,
				 i % 2 ? "n%03u.example" : "www\\001.n%03u.example", (i - 1) / 2);
		if (name_parse(text, strlen(text), &names[i]))
			abort();
		lengths[i] =
			key_from_wire(names[i].wire, names[i].length, names[i].labels, keys[i]);
	}
	snprintf(path, sizeof path, "/tmp/fuzz_domset.%d", (int)getpid());
	unlink(path);
	if (domset_build(path, &options, &stream, NULL))
		abort();
	atexit(remove_file);
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		abort();
	good_octets = (size_t)st.st_size;
	good = malloc(good_octets);
	if (!good || read(fd, good, good_octets) != (ssize_t)good_octets)
		abort();
	close(fd);
}

static const struct domset_extent *extent_of(const struct domset_extent *e, uint32_t count,
					     uint32_t kind)
{
	for (uint32_t i = 0; i < count; i++)
		if (e[i].kind == kind)
			return &e[i];
	return NULL;
}

/* The CRCs of the blocks, by the places that the (only) leaf now holds. */
static void repair_blocks(uint8_t *file, const struct domset_extent *e, uint32_t count)
{
	const struct domset_extent *leaves = extent_of(e, count, DOMSET_LEAVES);
	const struct domset_extent *blocks = extent_of(e, count, DOMSET_NAMES);
	struct domset_leaf leaf;
	if (!leaves || !blocks || leaves->octets < sizeof leaf ||
	    blocks->octets < DOMSET_CHUNK_SLACK)
		return;
	memcpy(&leaf, file + leaves->offset, sizeof leaf);
	uint64_t last = blocks->octets - DOMSET_CHUNK_SLACK;
	for (unsigned i = 0; i < (NAMES + DOMSET_BLOCK_NAMES - 1) / DOMSET_BLOCK_NAMES; i++) {
		uint64_t from = leaf.at[i], to = i < 31 && leaf.at[i + 1] ? leaf.at[i + 1] : last;
		if (from + DOMSET_BLOCK_HEADER > to || to > last)
			continue;
		uint16_t crc = domset_block_crc(file + blocks->offset + from, to - from);
		memcpy(file + blocks->offset + from, &crc, sizeof crc);
	}
}

/* Make all CRCs fit what is there, as far as footer and directory still make sense. */
static void repair(uint8_t *file)
{
	struct domset_footer f;
	struct domset_extent e[64];
	memcpy(&f, file + good_octets - sizeof f, sizeof f);
	if (f.pages_octets > good_octets || f.extents > 64 ||
	    good_octets - f.pages_octets != f.extents * sizeof *e + sizeof f)
		return;
	memcpy(e, file + f.pages_octets, f.extents * sizeof *e);
	for (uint32_t i = 0; i < f.extents; i++)
		if (e[i].octets > f.pages_octets || e[i].offset > f.pages_octets - e[i].octets)
			return;
	repair_blocks(file, e, f.extents);
	for (uint32_t i = 0; i < f.extents; i++)
		e[i].crc32c = hash_crc32c(0, file + e[i].offset, e[i].octets);
	memcpy(file + f.pages_octets, e, f.extents * sizeof *e);
	f.directory_crc32c = hash_crc32c(0, e, f.extents * sizeof *e);
	f.crc32c = hash_crc32c(0, &f, offsetof(struct domset_footer, crc32c));
	memcpy(file + good_octets - sizeof f, &f, sizeof f);
}

static void use(struct domset *s)
{
	struct feed items[2] = {{.name = "a", .number = 3}, {.name = "b", .number = 200}};
	struct feeds site = {.items = items, .count = 2};
	struct domset_walk *w;
	struct name name;
	uint32_t combination;
	if (domset_bind(s, &site))
		abort();
	for (unsigned i = 0; i < NAMES; i++) {
		struct domset_result r;
		uint16_t flags;
		domset_lookup(s, names[i].wire, names[i].length, names[i].labels, &r);
		for (unsigned feed = 0; feed < FEEDS_MAX; feed += 100)
			(void)domset_match_of(s, &r, feed, &flags);
	}
	if (domset_walk_new(s, &w))
		abort();
	while (domset_walk_next(w, &name, &combination) > 0)
		;
	domset_walk_free(w);
	domset_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[DOMSET_ERROR_MAX];
	struct domset *s;
	if (!good)
		prepare();
	uint8_t *file = malloc(good_octets);
	if (!file)
		abort();
	memcpy(file, good, good_octets);
	for (size_t i = 1; i + 4 <= size; i += 4) {
		size_t at = (size_t)data[i] << 16 | (size_t)data[i + 1] << 8 | data[i + 2];
		file[at % good_octets] = data[i + 3];
	}
	if (size && !(data[0] & 1))
		repair(file);
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0 || write(fd, file, good_octets) != (ssize_t)good_octets || close(fd))
		abort();
	free(file);
	if (!domset_open(path, DOMSET_CHECK_HEADER, &s, error))
		use(s);
	if (!domset_open(path, DOMSET_CHECK_ALL, &s, error))
		use(s);
	return 0;
}
