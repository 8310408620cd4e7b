/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared answer cache. Every worker reads and writes it; supervisor and admin sweep, flush and
 * count. Nobody owns a slot for longer than one write. Invariant: nothing read from a slot is used
 * before sequence, bounds and hash were checked on a private copy, so that a writer that was
 * killed, or stopped and continued, costs a miss and never a wrong answer.
 */
#include "core/dns/cache.h"

#include "base/hash.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES	      4
#define WAYS	      8
#define SLOT_MAX      4352
#define FAILURES      1024
#define MEMORY_MIN    ((size_t)64 << 10)
#define TICK_MS	      16384 /* of the tags' clock */
#define FREQUENCY_MAX 3	    /* so that a popular entry is not written at every hit */
#define FETCH_OCTETS  256   /* of a slot, ahead of the look-up: most answers whole */
#define OWNER_SHIFT   48
#define COUNT_MASK    (((uint64_t)1 << OWNER_SHIFT) - 1)

/* A class's slot size and its share of the memory, in sixteenths. Most answers are small. */
static const struct {
	uint16_t slot_size;
	uint8_t share;
} class_rows[CLASSES] = {{256, 8}, {512, 4}, {1280, 2}, {SLOT_MAX, 2}};

struct head {
	_Atomic uint64_t seed; /* 0: nobody has opened it yet */
	uint64_t reserved[7];
	_Atomic uint64_t
		failures[FAILURES]; /* upper 40 bits: of the hash; lower 24: until, 0.1 s */
};

/* tag 32 | dead at, in ticks 24 | frequency 8. 0: free. */
typedef _Atomic uint64_t tag_word;

struct facts {
	uint64_t hash;
	int64_t stored_ms;
	int64_t expires_ms;
	uint32_t group;
	uint16_t type;
	uint16_t rrclass;
	uint16_t size;
	uint16_t ttl_count;
	uint16_t ede;
	uint8_t length;
	uint8_t flags; /* 1: CD, 2: DO */
};

_Static_assert(sizeof(struct facts) == 40, "no padding: it is hashed as octets");

/* sequence: owner 16 | count 48. Behind `facts`: ttls, then the message, its question lower-cased.
 */
struct slot {
	_Atomic uint64_t sequence;
	uint64_t check;
	struct facts facts;
	uint8_t data[];
};

struct class
{
	uint32_t sets;
	size_t slot_size;
	tag_word *tags;
	uint8_t *slots;
};

struct layout {
	struct head *head; /* NULL: no cache */
	struct class classes[CLASSES];
};

struct cache {
	struct layout l;
	struct head *private_head; /* failures are remembered also without memory */
	uint64_t owner;
	uint64_t seed;
	int64_t stale_ms;
	uint32_t turn; /* where the search for a victim begins */
	uint8_t buffer[SLOT_MAX + 8] __attribute__((aligned(16)));
};

/* The layout follows from the size alone, so every process finds the same. */
static void layout_make(void *memory, size_t size, struct layout *l)
{
	uint8_t *at = (uint8_t *)memory + sizeof(struct head);

	l->head = NULL;
	if (!memory || size < MEMORY_MIN)
		return;
	l->head = memory;
	size_t left = size - sizeof(struct head);
	for (unsigned i = 0; i < CLASSES; i++) {
		struct class *c = &l->classes[i];
		c->slot_size = class_rows[i].slot_size;
		size_t set_size = WAYS * (sizeof(tag_word) + c->slot_size);
		c->sets = (uint32_t)(left / 16 * class_rows[i].share / set_size);
		c->tags = (tag_word *)at;
		at += (size_t)c->sets * WAYS * sizeof(tag_word);
		c->slots = at;
		at += (size_t)c->sets * WAYS * c->slot_size;
	}
}

static struct slot *slot_at(const struct class *c, size_t index)
{
	return (struct slot *)(c->slots + index * c->slot_size);
}

static size_t set_of(const struct class *c, uint64_t hash)
{
	return (size_t)((hash >> 32) * c->sets >> 32) * WAYS;
}

static uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)hash | 1;
}

static uint64_t tag_make(uint32_t tag, uint32_t dead_tick, unsigned frequency)
{
	return (uint64_t)tag << 32 | (uint64_t)(dead_tick & 0xffffff) << 8 | frequency;
}

static uint32_t tag_dead(uint64_t word)
{
	return (uint32_t)(word >> 8) & 0xffffff;
}

struct cache *cache_open(void *memory, size_t size, unsigned owner, uint32_t stale_s)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	layout_make(memory, size, &c->l);
	if (!c->l.head) {
		c->private_head = calloc(1, sizeof(*c->private_head));
		if (!c->private_head) {
			free(c);
			return NULL;
		}
	}
	struct head *head = c->l.head ? c->l.head : c->private_head;
	uint64_t none = 0;
	atomic_compare_exchange_strong(&head->seed, &none, hash_random() | 1);
	c->seed = atomic_load(&head->seed);
	c->owner = (uint64_t)(owner + 1) << OWNER_SHIFT;
	c->stale_ms = (int64_t)stale_s * 1000;
	return c;
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	free(c->private_head);
	free(c);
}

static uint8_t key_flags(const struct cache_key *key)
{
	return (uint8_t)((key->checking_disabled ? 1 : 0) | (key->want_dnssec ? 2 : 0));
}

void cache_key_finish(const struct cache *c, struct cache_key *key)
{
	uint64_t rest = (uint64_t)key->group << 32 | (uint64_t)key->type << 16 | key->rrclass;

	/* An odd factor keeps different values different; hash_bytes does the mixing. */
	rest = (rest ^ (uint64_t)key_flags(key) << 60) * 0x9e3779b97f4a7c15u;
	key->hash = hash_bytes(c->seed + rest, key->name, key->length);
	if (!c->l.head)
		return;
	for (unsigned i = 0; i < CLASSES; i++)
		if (c->l.classes[i].sets)
			__builtin_prefetch(
				&c->l.classes[i].tags[set_of(&c->l.classes[i], key->hash)]);
}

void cache_fetch(const struct cache *c, const struct cache_key *key)
{
	if (!c->l.head)
		return;
	for (unsigned i = 0; i < CLASSES; i++) {
		const struct class *class = &c->l.classes[i];
		if (!class->sets)
			continue;
		size_t set = set_of(class, key->hash);
		for (size_t k = set; k < set + WAYS; k++) {
			uint64_t word = atomic_load_explicit(&class->tags[k], memory_order_relaxed);
			if ((uint32_t)(word >> 32) != tag_of(key->hash))
				continue;
			const uint8_t *slot = class->slots + k * class->slot_size;
			for (unsigned line = 0; line < FETCH_OCTETS; line += 64)
				__builtin_prefetch(slot + line);
			return;
		}
	}
}

static uint64_t check_of(uint64_t seed, const struct facts *facts, const uint8_t *data)
{
	size_t size = facts->ttl_count * sizeof(uint16_t) + facts->size;

	return hash_bytes(hash_bytes(seed, facts, sizeof(*facts)), data, size);
}

static bool facts_fit(const struct facts *f, size_t slot_size)
{
	return f->ttl_count <= MESSAGE_TTLS_MAX &&
	       f->size >= MESSAGE_HEADER_SIZE + f->length + 4u &&
	       sizeof(struct slot) + f->ttl_count * sizeof(uint16_t) + f->size <= slot_size;
}

static bool facts_match(const struct facts *f, const struct cache_key *key)
{
	return f->hash == key->hash && f->group == key->group && f->type == key->type &&
	       f->rrclass == key->rrclass && f->length == key->length && f->flags == key_flags(key);
}

/* Copy a slot out and believe it only if it is whole and ours. */
static bool slot_read(struct cache *c, const struct class *class, size_t index,
		      const struct cache_key *key, struct facts *facts)
{
	struct slot *slot = slot_at(class, index);
	uint64_t before = atomic_load_explicit(&slot->sequence, memory_order_acquire);

	if (before & 1)
		return false;
	uint64_t check = slot->check;
	memcpy(facts, &slot->facts, sizeof(*facts));
	if (!facts_match(facts, key) || !facts_fit(facts, class->slot_size))
		return false;
	memcpy(c->buffer, slot->data, facts->ttl_count * sizeof(uint16_t) + facts->size);
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&slot->sequence, memory_order_relaxed) != before ||
	    check != check_of(c->seed, facts, c->buffer))
		return false;
	const uint8_t *message = c->buffer + facts->ttl_count * sizeof(uint16_t);
	return !memcmp(message + MESSAGE_HEADER_SIZE, key->name, key->length);
}

enum cache_result cache_lookup(struct cache *c, const struct cache_key *key, int64_t now_ms,
			       struct cache_entry *out)
{
	struct facts facts;

	if (!c->l.head)
		return CACHE_MISS;
	for (unsigned i = 0; i < CLASSES; i++) {
		const struct class *class = &c->l.classes[i];
		if (!class->sets)
			continue;
		size_t set = set_of(class, key->hash);
		for (size_t k = set; k < set + WAYS; k++) {
			uint64_t word = atomic_load_explicit(&class->tags[k], memory_order_relaxed);
			if ((uint32_t)(word >> 32) != tag_of(key->hash) ||
			    !slot_read(c, class, k, key, &facts))
				continue;
			if (now_ms >= facts.expires_ms + c->stale_ms)
				return CACHE_MISS;
			if ((word & 0xff) < FREQUENCY_MAX)
				atomic_store_explicit(&class->tags[k], word + 1,
						      memory_order_relaxed);
			out->ttls = (const uint16_t *)c->buffer;
			out->ttl_count = facts.ttl_count;
			out->message = c->buffer + facts.ttl_count * sizeof(uint16_t);
			out->size = facts.size;
			out->age_s = (uint32_t)((now_ms - facts.stored_ms) / 1000);
			out->ede = facts.ede;
			return now_ms < facts.expires_ms ? CACHE_HIT : CACHE_STALE;
		}
	}
	return CACHE_MISS;
}

/*
 * The way to overwrite: the same name's, else a free or dead one, else the least asked for. Among
 * equals the search begins at a turning place. When nobody is unpopular all sink by one, so that
 * yesterday's favourites go; a name asked for once goes before any that came back.
 */
static size_t choose_way(struct cache *c, const struct class *class, size_t set, uint32_t tag,
			 uint32_t tick, bool *evicted)
{
	uint64_t words[WAYS];
	unsigned best = 0;
	unsigned best_frequency = 256;
	unsigned start = c->turn++;

	*evicted = false;
	for (unsigned i = 0; i < WAYS; i++) {
		words[i] = atomic_load_explicit(&class->tags[set + i], memory_order_relaxed);
		if ((uint32_t)(words[i] >> 32) == tag)
			return set + i;
	}
	for (unsigned n = 0; n < WAYS; n++) {
		unsigned i = (start + n) % WAYS;
		if (!words[i] || ((tick - tag_dead(words[i])) & 0xffffff) < 0x800000)
			return set + i;
		if ((words[i] & 0xff) < best_frequency) {
			best_frequency = words[i] & 0xff;
			best = i;
		}
	}
	for (unsigned i = 0; best_frequency && i < WAYS; i++)
		if (i != best)
			atomic_store_explicit(&class->tags[set + i], words[i] - 1,
					      memory_order_relaxed);
	*evicted = true;
	return set + best;
}

/* An answer that has changed its size class leaves its old self behind: forget that. */
static void forget_elsewhere(struct cache *c, unsigned kept, uint64_t hash)
{
	for (unsigned i = 0; i < CLASSES; i++) {
		const struct class *class = &c->l.classes[i];
		if (i == kept || !class->sets)
			continue;
		size_t set = set_of(class, hash);
		for (size_t k = set; k < set + WAYS; k++) {
			uint64_t word = atomic_load_explicit(&class->tags[k], memory_order_relaxed);
			if ((uint32_t)(word >> 32) == tag_of(hash))
				atomic_compare_exchange_strong(&class->tags[k], &word, 0);
		}
	}
}

static bool slot_write(struct cache *c, struct slot *slot, const struct facts *facts,
		       uint64_t check, const uint8_t *data, size_t size)
{
	uint64_t before = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
	uint64_t count = before & COUNT_MASK;

	if (before & 1 ||
	    !atomic_compare_exchange_strong_explicit(&slot->sequence, &before,
						     c->owner | ((count + 1) & COUNT_MASK),
						     memory_order_acquire, memory_order_relaxed))
		return false;
	atomic_thread_fence(memory_order_release);
	slot->check = check;
	memcpy(&slot->facts, facts, sizeof(*facts));
	memcpy(slot->data, data, size);
	atomic_store_explicit(&slot->sequence, c->owner | ((count + 2) & COUNT_MASK),
			      memory_order_release);
	return true;
}

int cache_insert(struct cache *c, const struct cache_key *key, const uint8_t *message, size_t size,
		 const struct message_facts *known, uint32_t ttl_s, int64_t now_ms, bool *evicted)
{
	size_t ttl_octets = known->ttl_count * sizeof(uint16_t);
	unsigned i;

	*evicted = false;
	if (!c->l.head || !ttl_s || known->ttl_count > MESSAGE_TTLS_MAX ||
	    size > CACHE_MESSAGE_MAX || size < MESSAGE_HEADER_SIZE + key->length + 4u)
		return -ENOSPC;
	for (i = 0; i < CLASSES; i++)
		if (c->l.classes[i].sets &&
		    sizeof(struct slot) + ttl_octets + size <= c->l.classes[i].slot_size)
			break;
	if (i == CLASSES)
		return -ENOSPC;

	struct facts facts = {
		.hash = key->hash,
		.stored_ms = now_ms,
		.expires_ms = now_ms + (int64_t)ttl_s * 1000,
		.group = key->group,
		.type = key->type,
		.rrclass = key->rrclass,
		.size = (uint16_t)size,
		.ttl_count = known->ttl_count,
		.ede = known->ede,
		.length = key->length,
		.flags = key_flags(key),
	};
	memcpy(c->buffer, known->ttls, ttl_octets);
	memcpy(c->buffer + ttl_octets, message, size);
	memcpy(c->buffer + ttl_octets + MESSAGE_HEADER_SIZE, key->name, key->length);
	uint64_t check = check_of(c->seed, &facts, c->buffer);

	const struct class *class = &c->l.classes[i];
	size_t set = set_of(class, key->hash);
	size_t way =
		choose_way(c, class, set, tag_of(key->hash), (uint32_t)(now_ms / TICK_MS), evicted);
	if (!slot_write(c, slot_at(class, way), &facts, check, c->buffer, ttl_octets + size))
		return -EBUSY;
	uint32_t dead = (uint32_t)((facts.expires_ms + c->stale_ms) / TICK_MS + 1);
	uint64_t old = atomic_load_explicit(&class->tags[way], memory_order_relaxed);
	unsigned frequency =
		(uint32_t)(old >> 32) == tag_of(key->hash) ? (unsigned)(old & 0xff) : 0;
	atomic_store_explicit(&class->tags[way], tag_make(tag_of(key->hash), dead, frequency),
			      memory_order_release);
	forget_elsewhere(c, i, key->hash);
	return 0;
}

uint32_t cache_ttl(const struct message_facts *facts)
{
	bool positive = facts->rcode == RCODE_NOERROR && facts->has_answer;

	if ((facts->rcode != RCODE_NOERROR && facts->rcode != RCODE_NXDOMAIN) ||
	    (!positive && !facts->has_soa) || facts->min_ttl == UINT32_MAX)
		return 0;
	if (!positive && facts->negative_ttl < facts->min_ttl)
		return facts->negative_ttl;
	return facts->min_ttl;
}

/* ---- failures ---- */

static _Atomic uint64_t *failure_cell(const struct cache *c, const struct cache_key *key)
{
	struct head *head = c->l.head ? c->l.head : c->private_head;

	return &head->failures[key->hash % FAILURES];
}

static uint64_t failure_word(const struct cache_key *key, int64_t until_ms)
{
	return (key->hash & ~(uint64_t)0xffffff) | ((uint64_t)(until_ms / 100 + 1) & 0xffffff);
}

void cache_failure_set(struct cache *c, const struct cache_key *key, int64_t now_ms,
		       uint32_t for_ms)
{
	atomic_store_explicit(failure_cell(c, key), failure_word(key, now_ms + for_ms),
			      memory_order_relaxed);
}

bool cache_failure_get(const struct cache *c, const struct cache_key *key, int64_t now_ms)
{
	uint64_t word = atomic_load_explicit(failure_cell(c, key), memory_order_relaxed);
	uint64_t now = failure_word(key, now_ms - 100);

	/* Same question, and `until` ahead of now by less than half of the 24-bit clock. */
	return (word ^ now) >> 24 == 0 && ((word - now - 1) & 0xffffff) < 0x800000;
}

void cache_failure_clear(struct cache *c, const struct cache_key *key)
{
	_Atomic uint64_t *cell = failure_cell(c, key);
	uint64_t word = atomic_load_explicit(cell, memory_order_relaxed);

	if (word && (word ^ key->hash) >> 24 == 0)
		atomic_store_explicit(cell, 0, memory_order_relaxed);
}

/* ---- from other processes ---- */

/* Empty a slot whose sequence is `before`; someone else's write in between wins. */
static bool slot_clear(struct slot *slot, uint64_t before)
{
	uint64_t taken = before & 1 ? before : before + 1;

	if (!(before & 1) && !atomic_compare_exchange_strong(&slot->sequence, &before, taken))
		return false;
	slot->facts.hash = 0;
	slot->facts.size = 0;
	return atomic_compare_exchange_strong(&slot->sequence, &taken, taken + 1);
}

static bool slot_holds(const struct class *class, const struct slot *slot, const uint8_t *name,
		       size_t length, bool subtree)
{
	struct facts facts;
	uint8_t own[NAME_WIRE_MAX];
	unsigned labels;

	memcpy(&facts, &slot->facts, sizeof(facts));
	if (!facts.size || !facts_fit(&facts, class->slot_size))
		return false;
	if (!name)
		return true;
	memcpy(own, slot->data + facts.ttl_count * sizeof(uint16_t) + MESSAGE_HEADER_SIZE,
	       facts.length);
	/* Torn octets may be no name at all: measure before comparing label by label. */
	if (name_measure(own, facts.length, &labels) != facts.length)
		return false;
	return subtree ? name_is_under(own, facts.length, name, length)
		       : name_equal(own, facts.length, name, length);
}

size_t cache_flush(void *memory, size_t size, const uint8_t *name, size_t length, bool subtree)
{
	struct layout l;
	size_t gone = 0;

	layout_make(memory, size, &l);
	if (!l.head)
		return 0;
	for (unsigned i = 0; i < CLASSES; i++) {
		const struct class *class = &l.classes[i];
		for (size_t k = 0; k < (size_t) class->sets * WAYS; k++) {
			/* No tag, no entry: empty memory stays untouched. */
			if (!atomic_load_explicit(&class->tags[k], memory_order_acquire))
				continue;
			struct slot *slot = slot_at(class, k);
			uint64_t before =
				atomic_load_explicit(&slot->sequence, memory_order_acquire);
			if (before & 1 || !slot_holds(class, slot, name, length, subtree))
				continue;
			if (slot_clear(slot, before)) {
				atomic_store_explicit(&class->tags[k], 0, memory_order_release);
				gone++;
			}
		}
	}
	for (unsigned i = 0; i < FAILURES; i++)
		atomic_store_explicit(&l.head->failures[i], 0, memory_order_relaxed);
	return gone;
}

size_t cache_sweep(void *memory, size_t size, unsigned owner)
{
	struct layout l;
	size_t freed = 0;

	layout_make(memory, size, &l);
	if (!l.head)
		return 0;
	for (unsigned i = 0; i < CLASSES; i++)
		for (size_t k = 0; k < (size_t)l.classes[i].sets * WAYS; k++) {
			struct slot *slot = slot_at(&l.classes[i], k);
			uint64_t at = atomic_load_explicit(&slot->sequence, memory_order_acquire);
			if (at & 1 && at >> OWNER_SHIFT == owner + 1)
				freed += slot_clear(slot, at);
		}
	return freed;
}

void cache_stats(void *memory, size_t size, int64_t now_ms, struct cache_stats *out)
{
	struct layout l;
	uint32_t tick = (uint32_t)(now_ms / TICK_MS);

	*out = (struct cache_stats){.octets = size};
	layout_make(memory, size, &l);
	if (!l.head)
		return;
	for (unsigned i = 0; i < CLASSES; i++) {
		const struct class *class = &l.classes[i];
		out->slots += (uint64_t) class->sets * WAYS;
		for (size_t k = 0; k < (size_t) class->sets * WAYS; k++) {
			uint64_t word = atomic_load_explicit(&class->tags[k], memory_order_relaxed);
			if (!word || ((tick - tag_dead(word)) & 0xffffff) < 0x800000)
				continue;
			out->used++;
			out->used_octets += class->slot_size;
		}
	}
}
