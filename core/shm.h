/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared-memory segment: one memfd, made by the supervisor, mapped by every process, kept over
 * reloads and (with an equal layout hash) over upgrades. Nobody trusts it after a crash.
 *
 *   header | metric names | cells[slot][metric] | breadcrumbs[slot] | block_for table |
 *   named plugin regions | event rings[slot] | answer cache
 *
 * A slot belongs to one worker process at a time. SHM_GENERATIONS generations may live at once, so
 * there are workers * SHM_GENERATIONS slots: slot = (generation % SHM_GENERATIONS) * workers +
 * index.
 */
#ifndef BALEEN_CORE_SHM_H
#define BALEEN_CORE_SHM_H

#include "base/name.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_GENERATIONS	 3 /* one that serves, two that drain */
#define SHM_METRICS_MAX	 2048
#define SHM_METRIC_NAME	 120
#define SHM_RING_BYTES	 ((size_t)1 << 20)
#define SHM_REGIONS_MAX	 64
#define SHM_REGION_BYTES ((size_t)64 << 20) /* address space; pages appear when touched */
#define SHM_BLOCKS_MAX	 4096		    /* block_for entries */
#define SHM_QOD_MAX	 64		    /* queries of death remembered */

struct shm;

/* Where a worker is, for the crash report and the watchdog. Written by that worker only. */
enum breadcrumb_hook {
	CRUMB_NONE,
	CRUMB_CLIENT,
	CRUMB_QUERY,
	CRUMB_ANSWER,
	CRUMB_START,
	CRUMB_CORE,
	CRUMB_SET /* died reading the domain set: its file was cut under it */
};
struct breadcrumb {
	_Atomic uint32_t pid;	 /* 0: slot is free */
	_Atomic uint32_t hook;	 /* enum breadcrumb_hook, CRUMB_NONE outside */
	_Atomic uint32_t plugin; /* chain index */
	uint16_t type;
	uint8_t name_length;
	uint8_t reserved;
	_Atomic uint64_t entered; /* counts hook entries: unchanged + inside = hangs */
	_Atomic uint64_t ticks;	  /* counts loop turns: alive */
	uint8_t name[NAME_WIRE_MAX + 1];
};

/* A name blocked for a while by a detector, or a query that killed a worker. Seqlock. */
struct shm_block {
	_Atomic uint32_t sequence; /* odd: being written */
	uint32_t group;		   /* UINT32_MAX: all */
	int64_t until_ms;	   /* monotonic; past: free */
	uint16_t type;		   /* queries of death only; 0: any */
	uint8_t length;
	uint8_t name[NAME_WIRE_MAX];
	char why[64];
	char plugin[32];
	uint32_t check; /* crc32c of all but sequence and check */
};

/* Make the segment. Sizes are fixed for its life. -ENOMEM... */
int shm_create(unsigned workers, uint64_t cache_bytes, int *memfd);
/* Map it; -EPROTO if the layout hash is not ours. */
int shm_map(int memfd, struct shm **out);
void shm_unmap(struct shm *s);
/* Private anonymous memory of the same shape, for tests and offline commands. */
struct shm *shm_private(unsigned workers, uint64_t cache_bytes);

unsigned shm_workers(const struct shm *s);
unsigned shm_slot(const struct shm *s, uint32_t generation, unsigned worker);
unsigned shm_slots(const struct shm *s);

void *shm_cache(struct shm *s, size_t *size);
void *shm_ring(struct shm *s, unsigned slot); /* SHM_RING_BYTES, core/ring.h */
struct breadcrumb *shm_breadcrumb(struct shm *s, unsigned slot);
void *shm_region(struct shm *s, const char *name, size_t size); /* NULL: no room */
struct shm_block *shm_blocks(struct shm *s);			/* SHM_BLOCKS_MAX, for block_for */
struct shm_block *shm_deaths(struct shm *s);			/* SHM_QOD_MAX */
/* When the last entry ends, monotonic ms: later than that nobody needs to look. */
_Atomic uint64_t *shm_blocks_used(struct shm *s);
_Atomic uint64_t *shm_deaths_used(struct shm *s);

/* The number of the set file that is to be served (sets/domains.<n>.mdb); 0: none yet. */
_Atomic uint64_t *shm_set_number(struct shm *s);
/* The number of a set whose file a worker found damaged: the fetcher looks, and makes a new one. */
_Atomic uint64_t *shm_set_suspect(struct shm *s);

/* Counters. Names carry Prometheus labels: `queries_total{transport="udp"}`. Find or add; only the
 * template and the supervisor add. Returns SHM_METRICS_MAX when full. */
unsigned shm_metric(struct shm *s, const char *name);
/* The slot's cells, single writer; sum over slots to read. */
_Atomic uint64_t *shm_cells(struct shm *s, unsigned slot);
/* The same for the logger of a generation: sinks count too. */
_Atomic uint64_t *shm_logger_cells(struct shm *s, uint32_t generation);
unsigned shm_metric_count(const struct shm *s);
const char *shm_metric_name(const struct shm *s, unsigned metric);
uint64_t shm_metric_sum(const struct shm *s, unsigned metric);

static inline void shm_count(_Atomic uint64_t *cells, unsigned metric, uint64_t add)
{
	uint64_t v = atomic_load_explicit(&cells[metric], memory_order_relaxed);
	atomic_store_explicit(&cells[metric], v + add, memory_order_relaxed);
}

/* Process table for `status`: written by supervisor and template, read by admin. */
enum shm_role {
	ROLE_NONE,
	ROLE_SUPERVISOR,
	ROLE_TEMPLATE,
	ROLE_WORKER,
	ROLE_FETCHER,
	ROLE_LOGGER,
	ROLE_ADMIN
};
struct shm_process {
	_Atomic uint32_t pid; /* 0: free */
	uint32_t role;
	uint32_t generation;
	uint32_t index;		   /* worker number */
	_Atomic uint32_t state;	   /* 0 starting, 1 serving, 2 draining */
	_Atomic uint32_t restarts; /* of this place, in this generation */
	int64_t started_us;	   /* wall clock */
};
#define SHM_PROCESSES_MAX 256
struct shm_process *shm_processes(struct shm *s);

/* Plugins out of the chain, by chain index of a generation: the chain reads one word a phase. */
struct shm_breaker {
	_Atomic uint32_t open;	   /* 1: out of the chain */
	_Atomic uint32_t crashes;  /* in the window */
	_Atomic int64_t window_ms; /* when the window began, monotonic */
	_Atomic int64_t retry_ms;  /* when it comes back, monotonic */
};
struct shm_breaker *shm_breakers(struct shm *s, uint32_t generation); /* CONFIG_CHAIN_MAX */

#endif
