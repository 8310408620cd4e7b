/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a set file: footer, directory and CRCs first, over a map of our own; only then LMDB,
 * which trusts its pages. In every process that looks names up. Owns all that hangs on struct
 * domset. Invariant: a file that opens can be looked up without a crash, whatever its octets; what
 * was not checked here (the blocks) is checked when it is first read.
 */
#include "feeds/set/domset_file.h"
#include "feeds/set/domset_reader.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LMDB_MAGIC_AT 16
#define LMDB_MAGIC    0xbeefc0deu

/* The whole file, while it is checked. */
struct image {
	int fd;
	struct stat stat;
	const uint8_t *data;
	size_t octets;
	struct domset_footer footer;
	const struct domset_extent *extents;
};

__attribute__((format(printf, 3, 4))) static int fail(char error[DOMSET_ERROR_MAX], int rc,
						      const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error, DOMSET_ERROR_MAX, format, arguments);
	va_end(arguments);
	return rc;
}

static int image_open(struct image *m, const char *path, char *error)
{
	*m = (struct image){.fd = open(path, O_RDONLY | O_CLOEXEC)};
	if (m->fd < 0 || fstat(m->fd, &m->stat) < 0)
		return fail(error, -errno, "cannot open: %s", strerror(errno));
	if (!S_ISREG(m->stat.st_mode) || m->stat.st_size < LMDB_MAGIC_AT + 4)
		return fail(error, -EINVAL, "not a domain set");
	m->octets = (size_t)m->stat.st_size;
	void *data = mmap(NULL, m->octets, PROT_READ, MAP_SHARED, m->fd, 0);
	if (data == MAP_FAILED)
		return fail(error, -errno, "cannot map: %s", strerror(errno));
	m->data = data;
	return 0;
}

static void image_close(struct image *m)
{
	if (m->data)
		munmap((void *)(uintptr_t)m->data, m->octets);
	if (m->fd >= 0)
		close(m->fd);
}

/* Footer and directory: sizes, order, CRCs. */
static int image_directory(struct image *m, char *error)
{
	struct domset_footer *f = &m->footer;
	uint32_t magic;
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): mapped, or we were not called */
	memcpy(&magic, m->data + LMDB_MAGIC_AT, sizeof magic);
	if (m->octets > sizeof *f)
		memcpy(f, m->data + m->octets - sizeof *f, sizeof *f);
	if (hash_crc32c(0, f, offsetof(struct domset_footer, crc32c)) != f->crc32c ||
	    f->magic != DOMSET_MAGIC)
		return magic == LMDB_MAGIC ? fail(error, -EBADMSG, "damaged or cut off: no footer")
					   : fail(error, -EINVAL, "not a domain set");
	if (f->version != DOMSET_VERSION)
		return fail(error, -EINVAL, "format version %u (this program reads %u)", f->version,
			    DOMSET_VERSION);
	uint64_t directory = (uint64_t)f->extents * sizeof *m->extents;
	if (f->pages_octets % sizeof(uint64_t) || f->pages_octets > m->octets ||
	    m->octets - f->pages_octets != directory + sizeof *f)
		return fail(error, -EBADMSG, "damaged: sizes do not fit");
	m->extents = (const struct domset_extent *)(const void *)(m->data + f->pages_octets);
	if (hash_crc32c(0, m->extents, directory) != f->directory_crc32c)
		return fail(error, -EBADMSG, "damaged: directory");
	uint64_t at = 0;
	for (uint32_t i = 0; i < f->extents; i++) {
		const struct domset_extent *e = &m->extents[i];
		if (e->offset < at || e->offset > f->pages_octets ||
		    e->octets > f->pages_octets - e->offset || e->octets > UINT32_MAX ||
		    e->kind >= DOMSET_KINDS || e->number >= f->extents)
			return fail(error, -EBADMSG, "damaged: directory");
		at = e->offset + e->octets;
	}
	return 0;
}

/* LMDB's own octets always; the values as asked. */
static int image_check(const struct image *m, enum domset_check check, char *error)
{
	uint32_t crc = 0;
	uint64_t at = 0;
	for (uint32_t i = 0; i < m->footer.extents; i++) {
		const struct domset_extent *e = &m->extents[i];
		crc = hash_crc32c(crc, m->data + at, e->offset - at);
		at = e->offset + e->octets;
		if (e->kind == DOMSET_NAMES && check != DOMSET_CHECK_ALL)
			continue;
		if (hash_crc32c(0, m->data + e->offset, e->octets) != e->crc32c)
			return fail(error, -EBADMSG, "damaged: octets %llu to %llu",
				    (unsigned long long)e->offset, (unsigned long long)at);
	}
	crc = hash_crc32c(crc, m->data + at, m->footer.pages_octets - at);
	if (crc != m->footer.pages_crc32c)
		return fail(error, -EBADMSG, "damaged: pages");
	return 0;
}

static int lmdb_open(struct domset *s, const char *path, const struct image *m, char *error)
{
	int fd;
	struct stat stat;
	int rc = mdb_env_create(&s->env);
	if (!rc)
		rc = mdb_env_set_mapsize(s->env, m->footer.pages_octets);
	if (!rc)
		rc = mdb_env_open(s->env, path, MDB_RDONLY | MDB_NOLOCK | MDB_NOSUBDIR | MDB_NOTLS,
				  0);
	if (!rc)
		rc = mdb_env_get_fd(s->env, &fd);
	if (!rc && (fstat(fd, &stat) < 0 || stat.st_ino != m->stat.st_ino ||
		    stat.st_dev != m->stat.st_dev))
		return fail(error, -EBADMSG, "replaced while it was being opened");
	if (!rc)
		rc = mdb_txn_begin(s->env, NULL, MDB_RDONLY, &s->txn);
	return rc ? fail(error, domset_lmdb_error(rc), "LMDB: %s", mdb_strerror(rc)) : 0;
}

static struct domset_run *run_of(struct domset *s, uint32_t kind)
{
	switch (kind) {
	case DOMSET_FILTER:
		return &s->filters;
	case DOMSET_LIST_AT:
		return &s->list_at;
	case DOMSET_LISTS:
		return &s->lists;
	case DOMSET_UPPER:
		return &s->uppers;
	case DOMSET_LEAVES:
		return &s->leaves;
	case DOMSET_NAMES:
		return &s->names;
	default:
		return NULL;
	}
}

static int run_init(struct domset_run *r)
{
	r->data = calloc(r->count + 1u, sizeof *r->data);
	r->octets = calloc(r->count + 1u, sizeof *r->octets);
	return r->data && r->octets ? 0 : -ENOMEM;
}

/* The values that stand alone. */
struct singles {
	MDB_val of[DOMSET_KINDS];
};

/*
 * LMDB aligns what fills pages of its own; small values lie between others at even octets. Those
 * are copied. The room for one more stands in s->copies.
 */
static const void *align(struct domset *s, size_t *copies, const void *data, size_t octets)
{
	if (!((uintptr_t)data % _Alignof(max_align_t)))
		return data;
	void *copy = malloc(octets + 1);
	if (copy)
		memcpy(copy, data, octets);
	s->copies[*copies] = copy;
	*copies += copy != NULL;
	return copy;
}

/*
 * Fetch every value of the directory through LMDB, once. What it returns must be where the
 * directory says, relative to the others: only there the CRCs were checked.
 */
static int fetch(struct domset *s, const struct image *m, struct singles *singles, char *error)
{
	MDB_dbi dbi;
	const uint8_t *base = NULL;
	size_t copies = 0;
	s->map_octets = m->footer.pages_octets;
	s->copies = calloc(m->footer.extents + 1u, sizeof *s->copies);
	if (!s->copies)
		return fail(error, -ENOMEM, "out of memory");
	int rc = mdb_dbi_open(s->txn, NULL, 0, &dbi);
	if (rc)
		return fail(error, domset_lmdb_error(rc), "LMDB: %s", mdb_strerror(rc));
	for (uint32_t i = 0; i < m->footer.extents; i++) {
		const struct domset_extent *e = &m->extents[i];
		struct domset_key name = domset_key_of(e->kind, e->number);
		MDB_val key = {sizeof name, &name}, value;
		rc = mdb_get(s->txn, dbi, &key, &value);
		if (rc)
			return fail(error, domset_lmdb_error(rc), "LMDB: %s", mdb_strerror(rc));
		if (!base)
			s->map = base = (const uint8_t *)value.mv_data - e->offset;
		if ((const uint8_t *)value.mv_data != base + e->offset ||
		    value.mv_size != e->octets)
			return fail(error, -EBADMSG, "damaged: a value is not in its place");
		const void *data = align(s, &copies, value.mv_data, value.mv_size);
		if (!data)
			return fail(error, -ENOMEM, "out of memory");
		struct domset_run *run = run_of(s, e->kind);
		if (!run) {
			singles->of[e->kind] = (MDB_val){e->octets, (void *)(uintptr_t)data};
			continue;
		}
		if (e->number >= run->count)
			return fail(error, -EBADMSG, "damaged: value %u of kind %u", e->number,
				    e->kind);
		run->data[e->number] = data;
		run->octets[e->number] = (uint32_t)value.mv_size;
	}
	return 0;
}

static int open_runs(struct domset *s, const struct image *m, struct singles *singles, char *error)
{
	for (uint32_t i = 0; i < m->footer.extents; i++) {
		struct domset_run *run = run_of(s, m->extents[i].kind);
		if (run)
			run->count++;
	}
	for (uint32_t kind = 0; kind < DOMSET_KINDS; kind++) {
		struct domset_run *run = run_of(s, kind);
		if (run && run_init(run))
			return fail(error, -ENOMEM, "out of memory");
	}
	int rc = fetch(s, m, singles, error);
	if (rc)
		return rc;
	/* As many as there are extents, each number below that: none missing if none is NULL. */
	for (uint32_t kind = 0; kind < DOMSET_KINDS; kind++) {
		struct domset_run *run = run_of(s, kind);
		for (uint32_t i = 0; run && i < run->count; i++)
			if (!run->data[i])
				return fail(error, -EBADMSG, "damaged: a value is missing");
	}
	return 0;
}

/* The tree's levels and leaves hold what the number of blocks asks for. */
static bool index_fits(struct domset *s)
{
	const struct domset_header *h = &s->header;
	uint64_t nodes = (h->blocks + DOMSET_FANOUT - 1) / DOMSET_FANOUT;
	uint64_t left = nodes;
	for (uint32_t i = 0; i < s->leaves.count; i++) {
		uint64_t here = left < DOMSET_LEAVES_PER_CHUNK ? left : DOMSET_LEAVES_PER_CHUNK;
		if (s->leaves.octets[i] != here * sizeof(struct domset_leaf))
			return false;
		left -= here;
	}
	if (left || h->levels > DOMSET_LEVELS_MAX || s->uppers.count != h->levels)
		return false;
	for (uint32_t i = 0; i < h->levels; i++) {
		nodes = (nodes + DOMSET_FANOUT - 1) / DOMSET_FANOUT;
		if (s->uppers.octets[i] != nodes * sizeof(struct domset_node))
			return false;
		s->upper[i] = (const struct domset_node *)(const void *)s->uppers.data[i];
	}
	return !h->blocks || nodes == 1;
}

/* Every combination lies inside its chunk and names only feeds there are. */
static bool lists_fit(const struct domset *s)
{
	const struct domset_header *h = &s->header;
	uint64_t room = 0;
	for (uint32_t i = 0; i < s->list_at.count; i++) {
		if (i + 1 < s->list_at.count &&
		    s->list_at.octets[i] != DOMSET_LIST_AT_PER_CHUNK * sizeof(uint32_t))
			return false;
		room += s->list_at.octets[i] / sizeof(uint32_t);
	}
	if (h->combinations > room || h->root > h->combinations)
		return false;
	for (uint32_t i = 0; i < h->combinations; i++) {
		uint32_t at, count;
		memcpy(&at,
		       s->list_at.data[i / DOMSET_LIST_AT_PER_CHUNK] +
			       4 * (size_t)(i % DOMSET_LIST_AT_PER_CHUNK),
		       4);
		uint32_t chunk = at >> DOMSET_CHUNK_SHIFT;
		uint32_t octet = at & ((1u << DOMSET_CHUNK_SHIFT) - 1);
		if (chunk >= s->lists.count || octet % 4 || octet + 4 > s->lists.octets[chunk])
			return false;
		memcpy(&count, s->lists.data[chunk] + octet, 4);
		if (count > (s->lists.octets[chunk] - octet - 4) / sizeof(struct domset_entry))
			return false;
		const struct domset_entry *e =
			(const struct domset_entry *)(const void *)(s->lists.data[chunk] + octet +
								    4);
		for (uint32_t k = 0; k < count; k++)
			if (e[k].feed >= h->feeds)
				return false;
	}
	return true;
}

static int open_feeds(struct domset *s, MDB_val names)
{
	s->feed_names = calloc(s->header.feeds + 1u, sizeof *s->feed_names);
	s->feed_numbers = calloc(s->header.feeds + 1u, sizeof *s->feed_numbers);
	if (!s->feed_names || !s->feed_numbers)
		return -ENOMEM;
	const char *p = names.mv_data;
	size_t left = names.mv_size;
	for (uint32_t i = 0; i < s->header.feeds; i++) {
		const char *end = left ? memchr(p, 0, left) : NULL;
		if (!end)
			return -EBADMSG;
		s->feed_names[i] = p;
		s->feed_numbers[i] = FEED_NONE;
		left -= (size_t)(end + 1 - p);
		p = end + 1;
	}
	return 0;
}

static int open_filter(struct domset *s, MDB_val suffixes)
{
	if (s->header.shards != s->filters.count || !s->filters.count ||
	    suffixes.mv_size != s->header.suffixes * sizeof(uint64_t))
		return -EBADMSG;
	s->suffixes = suffixes.mv_data;
	s->shards = calloc(s->filters.count, sizeof *s->shards);
	if (!s->shards)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->filters.count; i++) {
		int rc =
			domset_filter_open(s->filters.data[i], s->filters.octets[i], &s->shards[i]);
		if (rc)
			return rc;
	}
	return 0;
}

static int open_parts(struct domset *s, const struct singles *singles)
{
	MDB_val header = singles->of[DOMSET_HEADER], tokens = singles->of[DOMSET_TOKENS];
	if (header.mv_size != sizeof s->header ||
	    tokens.mv_size != DOMSET_TOKENS_MAX * sizeof(struct domset_token))
		return -EBADMSG;
	memcpy(&s->header, header.mv_data, sizeof s->header);
	if (s->header.tokens > DOMSET_TOKENS_MAX || s->header.feeds > UINT16_MAX ||
	    s->header.blocks > UINT32_MAX || s->header.combinations > INT32_MAX || !index_fits(s) ||
	    !lists_fit(s))
		return -EBADMSG;
	for (uint32_t i = 0; i < s->names.count; i++)
		if (s->names.octets[i] > DOMSET_CHUNK_OCTETS ||
		    s->names.octets[i] < DOMSET_CHUNK_SLACK)
			return -EBADMSG;
	s->decoder = malloc(sizeof *s->decoder);
	s->checked = calloc(s->header.blocks / 64 + 1, sizeof *s->checked);
	if (!s->decoder || !s->checked)
		return -ENOMEM;
	int rc = domset_decoder_init(s->decoder, tokens.mv_data, s->header.tokens);
	if (!rc)
		rc = open_feeds(s, singles->of[DOMSET_FEEDS]);
	if (!rc)
		rc = open_filter(s, singles->of[DOMSET_SUFFIXES]);
	return rc;
}

static uint64_t run_octets(const struct domset_run *r)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < r->count; i++)
		sum += r->octets[i];
	return sum;
}

int domset_open(const char *path, enum domset_check check, struct domset **out,
		char error[DOMSET_ERROR_MAX])
{
	struct image m;
	struct singles singles = {0};
	struct domset *s = calloc(1, sizeof *s);
	if (!s)
		return fail(error, -ENOMEM, "out of memory");
	int rc = image_open(&m, path, error);
	if (!rc)
		rc = image_directory(&m, error);
	if (!rc)
		rc = image_check(&m, check, error);
	if (!rc)
		rc = lmdb_open(s, path, &m, error);
	if (!rc)
		rc = open_runs(s, &m, &singles, error);
	if (!rc) {
		rc = open_parts(s, &singles);
		if (rc)
			fail(error, rc, "%s", rc == -ENOMEM ? "out of memory" : "damaged: parts");
	}
	if (!rc)
		s->stats = (struct domset_stats){
			.names = s->header.names,
			.entries = s->header.entries,
			.file_octets = m.octets,
			.filter_octets = run_octets(&s->filters),
			.index_octets = run_octets(&s->leaves) + run_octets(&s->uppers),
			.block_octets = s->header.block_octets,
			.combinations = s->header.combinations,
			.crc32c = m.footer.crc32c,
		};
	image_close(&m);
	if (rc) {
		domset_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

static void run_fini(struct domset_run *r)
{
	free(r->data);
	free(r->octets);
}

void domset_close(struct domset *s)
{
	if (!s)
		return;
	for (uint32_t kind = 0; kind < DOMSET_KINDS; kind++) {
		struct domset_run *run = run_of(s, kind);
		if (run)
			run_fini(run);
	}
	if (s->txn)
		mdb_txn_abort(s->txn);
	if (s->env)
		mdb_env_close(s->env);
	for (size_t i = 0; s->copies && s->copies[i]; i++)
		free(s->copies[i]);
	free(s->copies);
	free(s->decoder);
	free(s->shards);
	free(s->checked);
	free(s->masks);
	free(s->ruled);
	free(s->rules_of);
	free(s->rules);
	free(s->feed_names);
	free(s->feed_numbers);
	free(s);
}

bool domset_maps(const struct domset *s, const void *address)
{
	return (uintptr_t)address - (uintptr_t)s->map < s->map_octets;
}

void domset_stats(const struct domset *s, struct domset_stats *out)
{
	*out = s->stats;
}
