/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choosing the tokens for a set file from a sample of its suffixes, in the fetcher. Rounds of:
 * parse the sample with the tokens there are, count tokens and neighbouring pairs, keep what saves
 * most. Then Huffman codes of bounded length. Invariant: integers only, so that the same sample
 * gives the same table on every machine.
 */
#include "feeds/set/domset_tokens.h"

#include "base/key.h"

#include <errno.h>
#include <stdlib.h>

#define ROUNDS	     10
#define COUNT_ROUNDS 2 /* parses by the codes' real lengths, after the last round */
#define FIRST_TARGET 512
#define PAIR_MIN     3 /* seen less often, a pair is no candidate */

struct candidate {
	uint64_t gain; /* in 1/256 bits over the sample */
	uint64_t text;
	uint32_t cost;
	uint8_t octets;
};

struct trainer {
	struct domset_tokens *t;
	const uint8_t *sample;
	size_t octets;
	uint32_t count[DOMSET_TOKENS_MAX];
	uint32_t *pairs; /* [DOMSET_TOKENS_MAX][DOMSET_TOKENS_MAX] */
	struct candidate *candidates;
	size_t candidate_count;
};

#define CANDIDATES_MAX ((size_t)1 << 18)

/* log2(v) in 1/256, v >= 1. */
static uint32_t log2_256(uint64_t v)
{
	unsigned whole = 63 - (unsigned)__builtin_clzll(v);
	uint64_t x = whole >= 31 ? v >> (whole - 31) : v << (31 - whole); /* 1.31 fixed point */
	uint32_t result = whole;
	for (unsigned i = 0; i < 8; i++) {
		x = x * x >> 31;
		result = result << 1 | (x >> 32 != 0);
		if (x >> 32)
			x >>= 1;
	}
	return result;
}

/* What a token used `count` times out of `total` costs by entropy. */
static uint32_t entropy_cost(uint64_t count, uint64_t total)
{
	uint32_t cost = log2_256(total) - log2_256(count ? count : 1);
	uint32_t least = DOMSET_MIN_CODE_BITS * 256;
	return cost < least ? least : cost;
}

static uint64_t count_sample(struct trainer *r, bool pairs)
{
	uint16_t parsed[KEY_MAX];
	uint64_t total = 0;
	memset(r->count, 0, sizeof r->count);
	if (pairs)
		memset(r->pairs, 0, sizeof *r->pairs * DOMSET_TOKENS_MAX * DOMSET_TOKENS_MAX);
	for (size_t at = 0; at + 2 <= r->octets;) {
		uint16_t octets;
		memcpy(&octets, r->sample + at, 2);
		size_t n = domset_tokens_parse(r->t, r->sample + at + 2, octets, parsed);
		for (size_t i = 0; i < n; i++) {
			r->count[parsed[i]]++;
			if (pairs && i)
				r->pairs[(size_t)parsed[i - 1] * DOMSET_TOKENS_MAX + parsed[i]]++;
		}
		total += n;
		at += 2u + octets;
	}
	return total;
}

static void offer(struct trainer *r, uint64_t text, unsigned octets, uint64_t count,
		  uint32_t without, uint32_t with)
{
	if (without <= with || r->candidate_count == CANDIDATES_MAX)
		return;
	r->candidates[r->candidate_count++] = (struct candidate){
		.gain = count * (without - with),
		.text = text,
		.cost = with,
		.octets = (uint8_t)octets,
	};
}

/* What a token's text costs when the token itself may not be used. */
static uint32_t cost_without(const struct domset_tokens *t, size_t token)
{
	uint32_t cost[DOMSET_TOKEN_OCTETS + 1] = {0};
	unsigned octets = t->token[token].octets;
	uint16_t parsed[KEY_MAX];
	/* The best split in two, each half parsed freely. */
	uint32_t best = UINT32_MAX;
	for (unsigned cut = 1; cut < octets; cut++) {
		cost[0] = 0;
		size_t n = domset_tokens_parse(t, t->token[token].text, cut, parsed);
		for (size_t i = 0; i < n; i++)
			cost[0] += t->cost[parsed[i]];
		n = domset_tokens_parse(t, t->token[token].text + cut, octets - cut, parsed);
		for (size_t i = 0; i < n; i++)
			cost[0] += t->cost[parsed[i]];
		if (cost[0] < best)
			best = cost[0];
	}
	return best;
}

static int by_gain(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->gain != y->gain)
		return x->gain < y->gain ? 1 : -1;
	if (x->octets != y->octets)
		return x->octets - y->octets;
	return (x->text > y->text) - (x->text < y->text);
}

static int by_text(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->octets != y->octets)
		return x->octets - y->octets;
	if (x->text != y->text)
		return x->text < y->text ? -1 : 1;
	return by_gain(a, b);
}

/* The same text may be offered as a token and as several pairs: the best offer stands. */
static void candidates_unique(struct trainer *r)
{
	qsort(r->candidates, r->candidate_count, sizeof *r->candidates, by_text);
	size_t kept = 0;
	for (size_t i = 0; i < r->candidate_count; i++) {
		struct candidate *c = &r->candidates[i];
		if (kept && r->candidates[kept - 1].octets == c->octets &&
		    r->candidates[kept - 1].text == c->text)
			continue;
		r->candidates[kept++] = *c;
	}
	r->candidate_count = kept;
	qsort(r->candidates, kept, sizeof *r->candidates, by_gain);
}

static void collect(struct trainer *r, uint64_t total)
{
	const struct domset_tokens *t = r->t;
	r->candidate_count = 0;
	for (size_t i = 1; i < t->count; i++)
		if (t->token[i].octets > 1 && r->count[i])
			offer(r, t->text[i], t->token[i].octets, r->count[i], cost_without(t, i),
			      entropy_cost(r->count[i], total));
	for (size_t a = 1; a < t->count; a++) {
		for (size_t b = 1; r->count[a] && b < t->count; b++) {
			uint32_t count = r->pairs[a * DOMSET_TOKENS_MAX + b];
			unsigned octets = t->token[a].octets + t->token[b].octets;
			if (count < PAIR_MIN || octets > DOMSET_TOKEN_OCTETS)
				continue;
			offer(r, t->text[a] | t->text[b] << 8 * t->token[a].octets, octets, count,
			      t->cost[a] + t->cost[b], entropy_cost(count, total));
		}
	}
	candidates_unique(r);
}

static void add_token(struct domset_tokens *t, uint64_t text, unsigned octets)
{
	struct domset_token *token = &t->token[t->count++];
	memcpy(token->text, &text, sizeof text);
	token->octets = (uint8_t)octets;
}

/* Single octets come first and stay: whatever else is chosen, every text can be written. */
static size_t start(struct trainer *r)
{
	struct domset_tokens *t = r->t;
	bool seen[256] = {false};
	for (const char *p = "abcdefghijklmnopqrstuvwxyz0123456789-_"; *p; p++)
		seen[(uint8_t)*p] = true;
	seen[0] = true;
	size_t counts[256] = {0};
	for (size_t at = 0; at + 2 <= r->octets;) {
		uint16_t octets;
		memcpy(&octets, r->sample + at, 2);
		for (size_t i = 0; i < octets; i++)
			counts[r->sample[at + 2 + i]]++;
		at += 2u + octets;
	}
	t->count = 1;
	for (unsigned c = 0; c < 256; c++)
		if (seen[c] || counts[c] > r->octets >> 14)
			add_token(t, c, 1);
	for (size_t i = 0; i < t->count; i++)
		t->cost[i] = 6 * 256;
	t->cost[0] = 20 * 256;
	domset_tokens_index(t);
	return t->count;
}

static void costs_by_entropy(struct trainer *r, uint64_t total)
{
	for (size_t i = 1; i < r->t->count; i++)
		r->t->cost[i] = entropy_cost(r->count[i], total);
	r->t->cost[0] = entropy_cost(r->count[0], total) + 8 * 256;
}

struct leaf {
	uint64_t weight;
	uint16_t token;
};

static int by_weight(const void *a, const void *b)
{
	const struct leaf *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return x->token - y->token;
}

/*
 * Huffman lengths by the two-queue method over sorted leaves, clamped to the bounds, and then
 * repaired: lengthen the rarest that still can until the code fits.
 */
static void huffman(struct domset_tokens *t, const uint32_t *count)
{
	static_assert(DOMSET_TOKENS_MAX <= 1 << (DOMSET_MAX_CODE_BITS - 1), "room for every token");
	struct leaf leaves[DOMSET_TOKENS_MAX];
	uint64_t weight[DOMSET_TOKENS_MAX];
	uint16_t parent[2 * DOMSET_TOKENS_MAX];
	uint8_t depth[2 * DOMSET_TOKENS_MAX];
	size_t n = t->count, leaf = 0, inner = 0, made = 0;
	for (size_t i = 0; i < n; i++)
		leaves[i] = (struct leaf){count[i] ? count[i] : 1, (uint16_t)i};
	qsort(leaves, n, sizeof leaves[0], by_weight);
	while (made + 1 < n) {
		uint64_t sum = 0;
		for (unsigned side = 0; side < 2; side++) {
			if (leaf < n && (inner == made || leaves[leaf].weight <= weight[inner])) {
				sum += leaves[leaf].weight;
				parent[leaf++] = (uint16_t)(n + made);
			} else {
				sum += weight[inner];
				parent[n + inner++] = (uint16_t)(n + made);
			}
		}
		weight[made++] = sum;
	}
	assert(made); /* there are always more tokens than one */
	depth[n + made - 1] = 0;
	for (size_t i = n + made - 1; i-- > 0;)
		depth[i] = depth[parent[i]] < 254 ? depth[parent[i]] + 1 : 255;
	uint32_t room = 1u << DOMSET_MAX_CODE_BITS, used = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned bits = depth[i];
		bits = bits < DOMSET_MIN_CODE_BITS ? DOMSET_MIN_CODE_BITS : bits;
		bits = bits > DOMSET_MAX_CODE_BITS ? DOMSET_MAX_CODE_BITS : bits;
		t->token[leaves[i].token].bits = (uint8_t)bits;
		used += room >> bits;
	}
	for (unsigned bits = DOMSET_MAX_CODE_BITS - 1; used > room; bits--)
		for (size_t i = 0; i < n && used > room; i++) {
			struct domset_token *token = &t->token[leaves[i].token];
			if (token->bits != bits)
				continue;
			used -= (room >> bits) - (room >> (bits + 1));
			token->bits++;
		}
	/* Give what is left over to the most used that can become shorter. */
	for (size_t i = n; i-- > 0;) {
		struct domset_token *token = &t->token[leaves[i].token];
		uint32_t price = room >> token->bits;
		if (token->bits > DOMSET_MIN_CODE_BITS && used + price <= room) {
			token->bits--;
			used += price;
		}
	}
}

static void costs_by_codes(struct domset_tokens *t)
{
	for (size_t i = 0; i < t->count; i++)
		t->cost[i] = t->token[i].bits * 256u;
	t->cost[0] += 8 * 256;
}

int domset_train(struct domset_tokens *t, const uint8_t *sample, size_t octets)
{
	struct trainer *r = calloc(1, sizeof *r);
	if (!r)
		return -ENOMEM;
	r->t = t;
	r->sample = sample;
	r->octets = octets;
	r->pairs = malloc(sizeof *r->pairs * DOMSET_TOKENS_MAX * DOMSET_TOKENS_MAX);
	r->candidates = malloc(sizeof *r->candidates * CANDIDATES_MAX);
	int rc = r->pairs && r->candidates ? 0 : -ENOMEM;
	memset(t, 0, sizeof *t);
	size_t singles = rc ? 0 : start(r);
	for (unsigned round = 0; !rc && round < ROUNDS; round++) {
		uint64_t total = count_sample(r, true);
		costs_by_entropy(r, total + 1);
		collect(r, total + 1);
		size_t target = (size_t)FIRST_TARGET << round;
		if (target > DOMSET_TOKENS_MAX || target < singles)
			target = DOMSET_TOKENS_MAX;
		t->count = singles;
		for (size_t i = 0; i < r->candidate_count && t->count < target; i++) {
			struct candidate *c = &r->candidates[i];
			t->cost[t->count] = c->cost;
			add_token(t, c->text, c->octets);
		}
		domset_tokens_index(t);
	}
	for (unsigned round = 0; !rc && round <= COUNT_ROUNDS; round++) {
		uint64_t total = count_sample(r, false);
		if (!round) {
			costs_by_entropy(r, total + 1);
		} else {
			huffman(t, r->count);
			costs_by_codes(t);
		}
	}
	if (!rc)
		domset_tokens_assign(t);
	free(r->pairs);
	free(r->candidates);
	free(r);
	return rc;
}
