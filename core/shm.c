/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared-memory segment: where things lie in it, making it, mapping it, and the small tables
 * that many processes write (metric names, plugin regions). Made by the supervisor, mapped by every
 * process. Invariant: offsets and sizes come from this process's own arithmetic over `workers` and
 * `cache_bytes`, checked once at mapping against the layout hash; nothing read later from the
 * segment is used as an offset without a bound.
 */
#include "core/shm.h"

#include "base/clock.h"
#include "base/hash.h"
#include "core/config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHM_MAGIC	    0x4e45454c41424d53ULL
#define SHM_VERSION	    1 /* raise it when the meaning of a field changes but its shape does not */
#define SHM_ALIGN	    4096
#define SHM_REGION_NAME	    64
#define SHM_LOCK_LIMIT_MS   1000
#define SHM_CACHE_BYTES_MAX ((uint64_t)1 << 40)

struct shm_region_entry {
	_Atomic uint32_t ready;
	uint32_t reserved;
	char name[SHM_REGION_NAME];
	uint64_t offset; /* into the regions */
	uint64_t size;
};

struct shm_header {
	uint64_t magic;
	uint64_t total;
	uint64_t cache_bytes;
	uint32_t layout;
	uint32_t workers;
	/* Guards the two tables below; holds the owner's pid. Cold: start of templates and workers.
	 */
	_Atomic uint32_t lock;
	_Atomic uint32_t metric_count;
	_Atomic uint64_t set_number;
	_Atomic uint64_t set_suspect;
	_Atomic uint64_t blocks_used;
	_Atomic uint64_t deaths_used;
	uint64_t regions_used; /* octets */
	struct shm_region_entry regions[SHM_REGIONS_MAX];
	struct shm_process processes[SHM_PROCESSES_MAX];
	struct shm_breaker breakers[SHM_GENERATIONS][CONFIG_CHAIN_MAX];
};

/* Offsets of the parts, in the order in which they lie. */
struct shm_layout {
	size_t names, cells, crumbs, blocks, deaths, regions, rings, cache, total;
};

struct shm {
	uint8_t *memory;
	struct shm_header *header;
	struct shm_layout at;
	unsigned workers; /* private copies: the header's may be overwritten */
	unsigned slots;
	uint64_t cache_bytes;
};

static size_t shm_place(size_t *end, size_t size)
{
	size_t at = *end;
	*end = (at + size + SHM_ALIGN - 1) & ~(size_t)(SHM_ALIGN - 1);
	return at;
}

static void shm_layout(unsigned workers, uint64_t cache_bytes, struct shm_layout *out)
{
	size_t slots = (size_t)workers * SHM_GENERATIONS;
	size_t end = 0;

	(void)shm_place(&end, sizeof(struct shm_header));
	out->names = shm_place(&end, (size_t)SHM_METRICS_MAX * SHM_METRIC_NAME);
	out->cells =
		shm_place(&end, (slots + SHM_GENERATIONS) * SHM_METRICS_MAX * sizeof(uint64_t));
	out->crumbs = shm_place(&end, slots * sizeof(struct breadcrumb));
	out->blocks = shm_place(&end, SHM_BLOCKS_MAX * sizeof(struct shm_block));
	out->deaths = shm_place(&end, SHM_QOD_MAX * sizeof(struct shm_block));
	out->regions = shm_place(&end, SHM_REGION_BYTES);
	out->rings = shm_place(&end, slots * SHM_RING_BYTES);
	out->cache = shm_place(&end, (size_t)cache_bytes);
	out->total = end;
}

/* Everything that another build could see differently. */
static uint32_t shm_layout_hash(void)
{
	const uint64_t shape[] = {
		SHM_VERSION,
		SHM_GENERATIONS,
		SHM_METRICS_MAX,
		SHM_METRIC_NAME,
		SHM_RING_BYTES,
		SHM_REGIONS_MAX,
		SHM_REGION_BYTES,
		SHM_BLOCKS_MAX,
		SHM_QOD_MAX,
		SHM_PROCESSES_MAX,
		CONFIG_CHAIN_MAX,
		CONFIG_WORKERS_MAX,
		sizeof(struct shm_header),
		offsetof(struct shm_header, regions),
		offsetof(struct shm_header, processes),
		offsetof(struct shm_header, breakers),
		sizeof(struct breadcrumb),
		offsetof(struct breadcrumb, entered),
		offsetof(struct breadcrumb, name),
		sizeof(struct shm_block),
		offsetof(struct shm_block, until_ms),
		offsetof(struct shm_block, name),
		offsetof(struct shm_block, check),
		sizeof(struct shm_process),
		offsetof(struct shm_process, started_us),
		sizeof(struct shm_breaker),
		offsetof(struct shm_breaker, retry_ms),
	};
	return hash_crc32c(0, shape, sizeof(shape));
}

static bool shm_sizes_ok(unsigned workers, uint64_t cache_bytes)
{
	return workers >= 1 && workers <= CONFIG_WORKERS_MAX && cache_bytes <= SHM_CACHE_BYTES_MAX;
}

static struct shm *shm_new(void *memory, unsigned workers, uint64_t cache_bytes)
{
	struct shm *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->memory = memory;
	s->header = memory;
	s->workers = workers;
	s->slots = workers * SHM_GENERATIONS;
	s->cache_bytes = cache_bytes;
	shm_layout(workers, cache_bytes, &s->at);
	return s;
}

static void shm_header_fill(struct shm_header *h, unsigned workers, uint64_t cache_bytes,
			    size_t total)
{
	h->magic = SHM_MAGIC;
	h->total = total;
	h->cache_bytes = cache_bytes;
	h->layout = shm_layout_hash();
	h->workers = workers;
}

int shm_create(unsigned workers, uint64_t cache_bytes, int *memfd)
{
	if (!shm_sizes_ok(workers, cache_bytes))
		return -EINVAL;
	struct shm_layout at;
	shm_layout(workers, cache_bytes, &at);

	int fd = memfd_create("baleen", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int r = 0;
	/* The size is sealed: a process that could shrink it would kill all others by SIGBUS. */
	if (ftruncate(fd, (off_t)at.total) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		r = -errno;
		goto fail;
	}
	struct shm_header *h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED) {
		r = -errno;
		goto fail;
	}
	shm_header_fill(h, workers, cache_bytes, at.total);
	munmap(h, sizeof(*h));
	*memfd = fd;
	return 0;
fail:
	close(fd);
	return r;
}

int shm_map(int memfd, struct shm **out)
{
	struct shm_header *h = NULL;
	struct stat st;

	if (fstat(memfd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)sizeof(*h))
		return -EPROTO;
	h = mmap(NULL, sizeof(*h), PROT_READ, MAP_SHARED, memfd, 0);
	if (h == MAP_FAILED)
		return -errno;
	unsigned workers = h->workers;
	uint64_t cache_bytes = h->cache_bytes;
	bool ours = h->magic == SHM_MAGIC && h->layout == shm_layout_hash() &&
		    shm_sizes_ok(workers, cache_bytes) && h->total == (uint64_t)st.st_size;
	munmap(h, sizeof(*h));
	if (!ours)
		return -EPROTO;
	struct shm_layout at;
	shm_layout(workers, cache_bytes, &at);
	if (at.total != (size_t)st.st_size)
		return -EPROTO;

	void *memory = mmap(NULL, at.total, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	struct shm *s = shm_new(memory, workers, cache_bytes);
	if (!s) {
		munmap(memory, at.total);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

struct shm *shm_private(unsigned workers, uint64_t cache_bytes)
{
	if (!shm_sizes_ok(workers, cache_bytes))
		return NULL;
	struct shm_layout at;
	shm_layout(workers, cache_bytes, &at);
	/* Shared and anonymous: tests fork, and children must see each other's writes. */
	void *memory = mmap(NULL, at.total, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	shm_header_fill(memory, workers, cache_bytes, at.total);
	struct shm *s = shm_new(memory, workers, cache_bytes);
	if (!s)
		munmap(memory, at.total);
	return s;
}

void shm_unmap(struct shm *s)
{
	if (!s)
		return;
	munmap(s->memory, s->at.total);
	free(s);
}

unsigned shm_workers(const struct shm *s)
{
	return s->workers;
}

unsigned shm_slots(const struct shm *s)
{
	return s->slots;
}

unsigned shm_slot(const struct shm *s, uint32_t generation, unsigned worker)
{
	return generation % SHM_GENERATIONS * s->workers + worker % s->workers;
}

void *shm_cache(struct shm *s, size_t *size)
{
	*size = (size_t)s->cache_bytes;
	return s->memory + s->at.cache;
}

void *shm_ring(struct shm *s, unsigned slot)
{
	return s->memory + s->at.rings + slot % s->slots * SHM_RING_BYTES;
}

struct breadcrumb *shm_breadcrumb(struct shm *s, unsigned slot)
{
	return (struct breadcrumb *)(s->memory + s->at.crumbs) + slot % s->slots;
}

struct shm_block *shm_blocks(struct shm *s)
{
	return (struct shm_block *)(s->memory + s->at.blocks);
}

struct shm_block *shm_deaths(struct shm *s)
{
	return (struct shm_block *)(s->memory + s->at.deaths);
}

_Atomic uint64_t *shm_blocks_used(struct shm *s)
{
	return &s->header->blocks_used;
}

_Atomic uint64_t *shm_deaths_used(struct shm *s)
{
	return &s->header->deaths_used;
}

_Atomic uint64_t *shm_set_number(struct shm *s)
{
	return &s->header->set_number;
}

_Atomic uint64_t *shm_set_suspect(struct shm *s)
{
	return &s->header->set_suspect;
}

struct shm_process *shm_processes(struct shm *s)
{
	return s->header->processes;
}

struct shm_breaker *shm_breakers(struct shm *s, uint32_t generation)
{
	return s->header->breakers[generation % SHM_GENERATIONS];
}

/*
 * A lock that cannot be held by the dead for ever: its holder needs microseconds, so whoever waited
 * a second takes it over.
 */
static void shm_lock(struct shm *s)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const uint32_t me = (uint32_t)getpid();
	int64_t until = 0;
	uint32_t seen = 0;

	while (!atomic_compare_exchange_strong(&s->header->lock, &seen, me)) {
		int64_t now = clock_monotonic_ms();
		if (until == 0)
			until = now + SHM_LOCK_LIMIT_MS;
		if (now >= until && atomic_compare_exchange_strong(&s->header->lock, &seen, me))
			return;
		seen = 0;
		nanosleep(&pause, NULL);
	}
}

static void shm_unlock(struct shm *s)
{
	uint32_t me = (uint32_t)getpid();
	atomic_compare_exchange_strong(&s->header->lock, &me, 0);
}

void *shm_region(struct shm *s, const char *name, size_t size)
{
	if (strlen(name) >= SHM_REGION_NAME || size == 0 || size > SHM_REGION_BYTES)
		return NULL;
	void *found = NULL;

	shm_lock(s);
	for (unsigned i = 0; i < SHM_REGIONS_MAX; i++) {
		struct shm_region_entry *e = &s->header->regions[i];
		if (!e->ready) {
			uint64_t used = s->header->regions_used;
			size_t room = (size + 63) & ~(size_t)63;
			if (used > SHM_REGION_BYTES || room > SHM_REGION_BYTES - used)
				break;
			strcpy(e->name, name);
			e->offset = used;
			e->size = size;
			s->header->regions_used = used + room;
			e->ready = 1;
		}
		if (e->size != size || strncmp(e->name, name, SHM_REGION_NAME) != 0)
			continue;
		if (e->offset <= SHM_REGION_BYTES - size && e->offset % 64 == 0)
			found = s->memory + s->at.regions + e->offset;
		break;
	}
	shm_unlock(s);
	return found;
}

static char *shm_name_at(const struct shm *s, unsigned metric)
{
	return (char *)s->memory + s->at.names + (size_t)metric * SHM_METRIC_NAME;
}

unsigned shm_metric_count(const struct shm *s)
{
	unsigned n = s->header->metric_count;
	return n < SHM_METRICS_MAX ? n : SHM_METRICS_MAX;
}

const char *shm_metric_name(const struct shm *s, unsigned metric)
{
	if (metric >= SHM_METRICS_MAX)
		return "";
	char *name = shm_name_at(s, metric);
	/* Another process may have scribbled over the terminator; this page is not worth a copy. */
	name[SHM_METRIC_NAME - 1] = '\0';
	return name;
}

unsigned shm_metric(struct shm *s, const char *name)
{
	if (strlen(name) >= SHM_METRIC_NAME)
		return SHM_METRICS_MAX;
	shm_lock(s);
	unsigned n = shm_metric_count(s), i;
	for (i = 0; i < n; i++)
		if (strcmp(shm_metric_name(s, i), name) == 0)
			break;
	if (i == n && n < SHM_METRICS_MAX) {
		strcpy(shm_name_at(s, n), name);
		atomic_store(&s->header->metric_count, n + 1);
	}
	shm_unlock(s);
	return i;
}

_Atomic uint64_t *shm_cells(struct shm *s, unsigned slot)
{
	return (_Atomic uint64_t *)(s->memory + s->at.cells) +
	       (size_t)(slot % s->slots) * SHM_METRICS_MAX;
}

_Atomic uint64_t *shm_logger_cells(struct shm *s, uint32_t generation)
{
	return (_Atomic uint64_t *)(s->memory + s->at.cells) +
	       (size_t)(s->slots + generation % SHM_GENERATIONS) * SHM_METRICS_MAX;
}

uint64_t shm_metric_sum(const struct shm *s, unsigned metric)
{
	const _Atomic uint64_t *cells = (const _Atomic uint64_t *)(s->memory + s->at.cells);
	uint64_t sum = 0;

	if (metric >= SHM_METRICS_MAX)
		return 0;
	for (unsigned slot = 0; slot < s->slots + SHM_GENERATIONS; slot++)
		sum += atomic_load_explicit(&cells[(size_t)slot * SHM_METRICS_MAX + metric],
					    memory_order_relaxed);
	return sum;
}
