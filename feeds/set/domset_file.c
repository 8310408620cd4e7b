/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a set's LMDB file and sealing it, in the fetcher. Never through a writable map: a full
 * disk must be an error, not a SIGBUS. Invariant: once sealed, every octet of the file is covered
 * by a CRC, and the same values put in the same order give the same octets.
 */
#include "feeds/set/domset_file.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define COMMIT_OCTETS ((size_t)4 << 20) /* LMDB keeps what is not committed on the heap */
#define COPY_OCTETS   ((size_t)256 << 10)
#define PAGE_HEADER   16 /* of LMDB; its first 8 octets are the page's number */

struct domset_key domset_key_of(uint32_t kind, uint32_t number)
{
	return (struct domset_key){{(uint8_t)(kind >> 24), (uint8_t)(kind >> 16),
				    (uint8_t)(kind >> 8), (uint8_t)kind, (uint8_t)(number >> 24),
				    (uint8_t)(number >> 16), (uint8_t)(number >> 8),
				    (uint8_t)number}};
}

int domset_lmdb_error(int rc)
{
	if (rc >= 0)
		return -rc;
	switch (rc) {
	case MDB_MAP_FULL:
	case MDB_TXN_FULL:
		return -EFBIG;
	case MDB_VERSION_MISMATCH:
	case MDB_INVALID:
		return -EINVAL;
	default:
		return -EBADMSG;
	}
}

static int begin_txn(struct domset_file *f)
{
	int rc = mdb_txn_begin(f->env, NULL, 0, &f->txn);
	if (!rc)
		rc = mdb_dbi_open(f->txn, NULL, 0, &f->dbi);
	return domset_lmdb_error(rc);
}

int domset_file_begin(struct domset_file *f, const char *path, size_t map_octets)
{
	*f = (struct domset_file){0};
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	close(fd);
	f->path = path; /* from here on it is ours to remove */
	int rc = mdb_env_create(&f->env);
	if (!rc)
		rc = mdb_env_set_mapsize(f->env, map_octets);
	if (!rc)
		rc = mdb_env_open(f->env, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC | MDB_NOTLS,
				  0644);
	rc = domset_lmdb_error(rc);
	if (!rc)
		rc = begin_txn(f);
	if (rc)
		domset_file_end(f, rc);
	return rc;
}

int domset_file_put(struct domset_file *f, uint32_t kind, uint32_t number, const void *data,
		    size_t octets)
{
	struct domset_key name = domset_key_of(kind, number);
	MDB_val key = {sizeof name, &name}, value = {octets, (void *)(uintptr_t)data};
	if (!(f->extent_count & (f->extent_count - 1))) {
		size_t room = f->extent_count ? 2 * f->extent_count : 1;
		void *grown = realloc(f->extents, room * sizeof *f->extents);
		if (!grown)
			return -ENOMEM;
		f->extents = grown;
	}
	int rc = domset_lmdb_error(mdb_put(f->txn, f->dbi, &key, &value, MDB_NOOVERWRITE));
	if (rc)
		return rc;
	f->extents[f->extent_count++] = (struct domset_extent){
		.octets = octets,
		.kind = kind,
		.number = number,
	};
	f->pending += octets;
	if (f->pending < COMMIT_OCTETS)
		return 0;
	f->pending = 0;
	rc = domset_lmdb_error(mdb_txn_commit(f->txn));
	f->txn = NULL;
	return rc ? rc : begin_txn(f);
}

static int by_offset(const void *a, const void *b)
{
	const struct domset_extent *x = a, *y = b;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/*
 * Where LMDB has put the values. It does not say; but a value of more than a page begins right
 * behind its page's header, which holds the page's number. From one such value the map's address
 * follows, and from that the place of all.
 */
static int locate(struct domset_file *f)
{
	const uint8_t **at = calloc(f->extent_count, sizeof *at);
	MDB_txn *txn = NULL;
	MDB_stat stat;
	const uint8_t *base = NULL;
	int rc = at ? mdb_txn_begin(f->env, NULL, MDB_RDONLY, &txn) : ENOMEM;
	if (!rc)
		rc = mdb_env_stat(f->env, &stat);
	for (size_t i = 0; !rc && i < f->extent_count; i++) {
		struct domset_key name = domset_key_of(f->extents[i].kind, f->extents[i].number);
		MDB_val key = {sizeof name, &name}, value;
		rc = mdb_get(txn, f->dbi, &key, &value);
		if (rc)
			break;
		at[i] = value.mv_data;
		if (!base && value.mv_size >= stat.ms_psize / 2)
			base = at[i] - PAGE_HEADER -
			       domset_load64(at[i] - PAGE_HEADER) * stat.ms_psize;
	}
	for (size_t i = 0; !rc && i < f->extent_count; i++)
		f->extents[i].offset = (uint64_t)(at[i] - base);
	if (txn)
		mdb_txn_abort(txn);
	free(at);
	qsort(f->extents, f->extent_count, sizeof *f->extents, by_offset);
	return domset_lmdb_error(rc);
}

static int append(int fd, const void *data, size_t octets, uint64_t *at)
{
	const uint8_t *p = data;
	while (octets) {
		ssize_t n = pwrite(fd, p, octets, (off_t)*at);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			octets -= (size_t)n;
			*at += (uint64_t)n;
		}
	}
	return 0;
}

/* Continue `*crc` over a stretch of the file. */
static int checksum(int fd, uint64_t at, uint64_t octets, uint8_t *buffer, uint32_t *crc)
{
	while (octets) {
		size_t wanted = octets < COPY_OCTETS ? octets : COPY_OCTETS;
		ssize_t n = pread(fd, buffer, wanted, (off_t)at);
		if (!n || (n < 0 && errno != EINTR))
			return n ? -errno : -EIO;
		if (n > 0) {
			*crc = hash_crc32c(*crc, buffer, (size_t)n);
			at += (uint64_t)n;
			octets -= (uint64_t)n;
		}
	}
	return 0;
}

/* The CRC of each extent, and of what lies between them. Read, not mapped: a map of the whole file
 * would count as this process's memory. */
static int checksums(struct domset_file *f, int fd, uint64_t pages_octets, uint32_t *between)
{
	uint8_t *buffer = malloc(COPY_OCTETS);
	uint64_t at = 0;
	int rc = buffer ? 0 : -ENOMEM;
	*between = 0;
	for (size_t i = 0; !rc && i < f->extent_count; i++) {
		struct domset_extent *e = &f->extents[i];
		rc = checksum(fd, at, e->offset - at, buffer, between);
		if (!rc)
			rc = checksum(fd, e->offset, e->octets, buffer, &e->crc32c);
		at = e->offset + e->octets;
	}
	if (!rc)
		rc = checksum(fd, at, pages_octets - at, buffer, between);
	free(buffer);
	return rc;
}

static int append_directory(struct domset_file *f, int fd, uint64_t pages_octets,
			    uint64_t *file_octets, uint32_t *crc32c)
{
	struct domset_footer footer = {
		.pages_octets = pages_octets,
		.extents = (uint32_t)f->extent_count,
		.version = DOMSET_VERSION,
		.magic = DOMSET_MAGIC,
	};
	int rc = checksums(f, fd, pages_octets, &footer.pages_crc32c);
	size_t directory = f->extent_count * sizeof *f->extents;
	footer.directory_crc32c = hash_crc32c(0, f->extents, directory);
	footer.crc32c = hash_crc32c(0, &footer, offsetof(struct domset_footer, crc32c));
	*file_octets = pages_octets;
	*crc32c = footer.crc32c;
	if (!rc)
		rc = append(fd, f->extents, directory, file_octets);
	if (!rc)
		rc = append(fd, &footer, sizeof footer, file_octets);
	if (!rc && fsync(fd) < 0)
		rc = -errno;
	return rc;
}

int domset_file_seal(struct domset_file *f, uint64_t *file_octets, uint32_t *crc32c)
{
	MDB_envinfo info;
	MDB_stat stat;
	int rc = domset_lmdb_error(mdb_txn_commit(f->txn));
	f->txn = NULL;
	if (!rc)
		rc = locate(f);
	if (!rc)
		rc = domset_lmdb_error(mdb_env_info(f->env, &info));
	if (!rc)
		rc = domset_lmdb_error(mdb_env_stat(f->env, &stat));
	mdb_env_close(f->env);
	f->env = NULL;
	if (rc)
		return rc;
	int fd = open(f->path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	uint64_t pages_octets = ((uint64_t)info.me_last_pgno + 1) * stat.ms_psize;
	/* Pages that were allocated and never written may be missing at the end. */
	if (ftruncate(fd, (off_t)pages_octets) < 0)
		rc = -errno;
	if (!rc)
		rc = append_directory(f, fd, pages_octets, file_octets, crc32c);
	if (close(fd) < 0 && !rc)
		rc = -errno;
	return rc;
}

void domset_file_end(struct domset_file *f, int outcome)
{
	if (f->txn)
		mdb_txn_abort(f->txn);
	if (f->env)
		mdb_env_close(f->env);
	if (outcome && f->path)
		unlink(f->path);
	free(f->extents);
	*f = (struct domset_file){0};
}

int domset_chunks_init(struct domset_chunks *c, struct domset_file *file, uint32_t kind,
		       size_t capacity)
{
	*c = (struct domset_chunks){.file = file, .kind = kind, .capacity = capacity};
	c->data = malloc(capacity);
	return c->data ? 0 : -ENOMEM;
}

int domset_chunks_flush(struct domset_chunks *c)
{
	if (!c->used)
		return 0;
	int rc = domset_file_put(c->file, c->kind, c->number, c->data, c->used);
	c->number++;
	c->used = 0;
	return rc;
}

int domset_chunks_reserve(struct domset_chunks *c, size_t octets, uint8_t **out, uint32_t *at)
{
	if (octets > c->capacity)
		return -EFBIG;
	if (c->used + octets > c->capacity) {
		int rc = domset_chunks_flush(c);
		if (rc)
			return rc;
	}
	if (c->number >> (32 - DOMSET_CHUNK_SHIFT))
		return -EFBIG;
	*out = c->data + c->used;
	*at = c->number << DOMSET_CHUNK_SHIFT | (uint32_t)c->used;
	c->used += octets;
	return 0;
}

void domset_chunks_fini(struct domset_chunks *c)
{
	free(c->data);
}
