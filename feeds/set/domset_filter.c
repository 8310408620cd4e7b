/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building and opening shards of the fuse filter; probing is inline in the header. Built in the
 * fetcher, read in every process. Invariant: every hash that was built in answers true.
 */
#include "feeds/set/domset_filter.h"

#include <errno.h>
#include <stdlib.h>

#define ATTEMPTS    64
#define SEGMENT_MAX (1u << 18)

int domset_filter_open(const void *value, size_t octets, struct domset_filter_shard *out)
{
	struct domset_shard s;
	if (octets < sizeof s)
		return -EBADMSG;
	memcpy(&s, value, sizeof s);
	if (octets - sizeof s != s.octets || !s.segment_octets || s.segment_octets > SEGMENT_MAX ||
	    s.segment_octets & (s.segment_octets - 1) || !s.segments_octets ||
	    s.segments_octets % s.segment_octets ||
	    (uint64_t)s.segments_octets + 3 * s.segment_octets != s.octets)
		return -EBADMSG;
	*out = (struct domset_filter_shard){
		.fingerprint = (const uint8_t *)value + sizeof s,
		.seed = s.seed,
		.segment_octets = s.segment_octets,
		.segments_octets = s.segments_octets,
	};
	return 0;
}

/*
 * The paper's sizes for four probes: segments of 2^floor(log_2.91(n) - 0.5) octets, and room for
 * max(1.075, 0.77 + 0.305 ln(600000) / ln(n)) times n. As tables, so that they are the same on
 * every machine: the least n for each power of two, and the factor in 1/1024 from an n on.
 */
static const uint32_t segment_least[] = {
	0, 5, 15, 43, 123, 356, 1036, 3015, 8772, 25527, 74281, 216158, 629017,
};
static const struct {
	uint32_t least;
	uint32_t factor;
} room[] = {
	{0, 6784},	{5, 3371},	{10, 2594},	{20, 2176},	{50, 1851},
	{100, 1691},	{300, 1517},	{1000, 1391},	{3000, 1308},	{10000, 1240},
	{25000, 1199},	{50000, 1173},	{100000, 1150}, {150000, 1138}, {200000, 1129},
	{250000, 1123}, {300000, 1118}, {400000, 1111}, {500000, 1106}, {629000, 1101},
};

static void choose_sizes(uint32_t count, struct domset_shard *out)
{
	unsigned log2 = 0, row = 0;
	while (log2 + 1 < sizeof segment_least / sizeof segment_least[0] &&
	       segment_least[log2 + 1] <= count)
		log2++;
	while (row + 1 < sizeof room / sizeof room[0] && room[row + 1].least <= count)
		row++;
	uint32_t segment = 1u << log2;
	uint64_t wanted = ((uint64_t)count * room[row].factor >> 10) + 1;
	uint64_t segments = (wanted + segment - 1) / segment;
	segments = segments > 4 ? segments - 3 : 1;
	*out = (struct domset_shard){
		.segment_octets = segment,
		.segments_octets = (uint32_t)segments * segment,
		.octets = (uint32_t)(segments + 3) * segment,
		.keys = count,
	};
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static size_t unique(uint64_t *hashes, size_t count)
{
	qsort(hashes, count, sizeof *hashes, by_value);
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (!kept || hashes[kept - 1] != hashes[i])
			hashes[kept++] = hashes[i];
	return kept;
}

/* Working memory of one shard: 32 MiB for 2^20 keys, with the hashes. */
struct peel {
	uint64_t *sum;	 /* per slot: xor of the keys that probe it */
	uint8_t *degree; /* per slot: keys << 2 | xor of which of their probes it is */
	uint32_t *alone; /* slots that one key probes */
	uint64_t *order; /* keys, as they were peeled */
	uint8_t *which;	 /* of each: the probe that peeled it */
};

static void peel_fini(struct peel *p)
{
	free(p->sum);
	free(p->degree);
	free(p->alone);
	free(p->order);
	free(p->which);
}

static int peel_init(struct peel *p, size_t slots, size_t count)
{
	*p = (struct peel){
		.sum = malloc(slots * sizeof *p->sum),
		.degree = malloc(slots),
		.alone = malloc(slots * sizeof *p->alone),
		.order = malloc(count * sizeof *p->order + 1),
		.which = malloc(count + 1),
	};
	return p->sum && p->degree && p->alone && p->order && p->which ? 0 : -ENOMEM;
}

/* True if all keys could be put in an order in which each has a slot of its own. */
static bool peel_run(struct peel *p, const uint64_t *hashes, size_t count,
		     const struct domset_shard *s)
{
	memset(p->sum, 0, s->octets * sizeof *p->sum);
	memset(p->degree, 0, s->octets);
	for (size_t i = 0; i < count; i++) {
		uint64_t key = domset_filter_key(hashes[i], s->seed);
		struct domset_probe probe =
			domset_probe_of(key, s->segment_octets, s->segments_octets);
		for (unsigned k = 0; k < 4; k++) {
			uint32_t at = probe.at[k];
			if (p->degree[at] >= 63 << 2)
				return false;
			p->degree[at] = (uint8_t)((p->degree[at] + 4) ^ k);
			p->sum[at] ^= key;
		}
	}
	size_t waiting = 0, peeled = 0;
	for (uint32_t at = 0; at < s->octets; at++)
		if (p->degree[at] >> 2 == 1)
			p->alone[waiting++] = at;
	while (waiting) {
		uint32_t slot = p->alone[--waiting];
		if (p->degree[slot] >> 2 != 1)
			continue;
		uint64_t key = p->sum[slot];
		unsigned which = p->degree[slot] & 3;
		p->order[peeled] = key;
		p->which[peeled++] = (uint8_t)which;
		struct domset_probe probe =
			domset_probe_of(key, s->segment_octets, s->segments_octets);
		for (unsigned k = 0; k < 4; k++) {
			uint32_t at = probe.at[k];
			p->degree[at] = (uint8_t)((p->degree[at] - 4) ^ k);
			p->sum[at] ^= key;
			if (k != which && p->degree[at] >> 2 == 1)
				p->alone[waiting++] = at;
		}
	}
	return peeled == count;
}

int domset_filter_build(uint64_t *hashes, size_t count, uint64_t seed, void **value, size_t *octets)
{
	struct domset_shard s;
	struct peel p;
	choose_sizes((uint32_t)count, &s);
	uint8_t *out = calloc(1, sizeof s + s.octets);
	int rc = peel_init(&p, s.octets, count);
	if (!out || rc) {
		peel_fini(&p);
		free(out);
		return -ENOMEM;
	}
	bool done = false;
	for (unsigned attempt = 0; attempt < ATTEMPTS && !done; attempt++) {
		s.seed = domset_mix(seed + attempt, 0xd6e8feb86659fd93u);
		done = peel_run(&p, hashes, count, &s);
		if (!done && !attempt) /* two equal hashes can never be peeled */
			count = unique(hashes, count);
	}
	s.keys = (uint32_t)count;
	uint8_t *f = out + sizeof s;
	memcpy(out, &s, sizeof s);
	for (size_t i = done ? count : 0; i--;) {
		struct domset_probe probe =
			domset_probe_of(p.order[i], s.segment_octets, s.segments_octets);
		uint8_t others = 0;
		for (unsigned k = 0; k < 4; k++)
			if (k != p.which[i])
				others ^= f[probe.at[k]];
		f[probe.at[p.which[i]]] = probe.fingerprint ^ others;
	}
	peel_fini(&p);
	if (!done) {
		free(out);
		return -EIO;
	}
	*value = out;
	*octets = sizeof s + s.octets;
	return 0;
}
