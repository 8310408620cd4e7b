/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building and rebuilding DNS messages. Workers call it for made answers and once for each answer
 * that came from upstream; policy tests and `explain` for answers made from text. Owns nothing.
 * Invariant: what message_clean lets out holds only names that were read whole and pointers that
 * this file wrote, always backwards, so a cleaned message may be cut after any record.
 */
#include "base/message_build.h"

#include <errno.h>

void message_build_start(struct message_builder *b, void *out, size_t size, uint16_t id,
			 uint16_t flags, const struct message_question *question)
{
	b->w = writer_make(out, size);
	b->name_count = 0;
	memset(b->counts, 0, sizeof(b->counts));
	writer_u16(&b->w, id);
	writer_u16(&b->w, flags);
	(void)writer_reserve(&b->w, 8);
	if (!question || !question->name)
		return;
	b->counts[0] = 1;
	message_build_name(b, question->name, question->length);
	writer_u16(&b->w, question->type);
	writer_u16(&b->w, question->rrclass);
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

/* Does the name we wrote at `at` equal the wire name, but for case? Our own pointers only. */
static bool written_equals(const uint8_t *data, size_t at, const uint8_t *name)
{
	for (;;) {
		while (data[at] >= 0xc0)
			at = (size_t)(data[at] & 0x3f) << 8 | data[at + 1];
		uint8_t n = data[at];
		if (n != *name)
			return false;
		if (!n)
			return true;
		for (unsigned i = 1; i <= n; i++)
			if (lower(data[at + i]) != lower(name[i]))
				return false;
		at += (size_t)n + 1;
		name += n + 1;
	}
}

static uint32_t label_hash(uint32_t hash, const uint8_t *label)
{
	for (unsigned i = 0; i <= label[0]; i++)
		hash = (hash ^ lower(label[i])) * 16777619u;
	return hash;
}

void message_build_name(struct message_builder *b, const uint8_t *name, size_t length)
{
	uint8_t at[NAME_LABELS_MAX]; /* where each label begins */
	uint32_t hash[NAME_LABELS_MAX + 1];
	unsigned labels = 0;
	unsigned own; /* labels to write; the suffix behind them stands at `found` */
	size_t found = 0;
	size_t base = b->w.at;

	for (size_t i = 0; i < length && name[i] && labels < NAME_LABELS_MAX; i += name[i] + 1u)
		at[labels++] = (uint8_t)i;
	hash[labels] = 2166136261u;
	for (unsigned i = labels; i-- > 0;)
		hash[i] = label_hash(hash[i + 1], name + at[i]);

	for (own = 0; own < labels; own++) {
		for (unsigned k = 0; k < b->name_count && !found; k++)
			if (b->names[k].hash == hash[own] &&
			    written_equals(b->w.data, b->names[k].at, name + at[own]))
				found = b->names[k].at;
		if (found)
			break;
	}
	if (found) {
		writer_bytes(&b->w, name, at[own]);
		writer_u16(&b->w, (uint16_t)(0xc000 | found));
	} else {
		writer_bytes(&b->w, name, length);
	}
	/* A pointer has 14 bits; and only a name that is there whole may be pointed to. */
	for (unsigned i = 0; i < own && !b->w.failed; i++) {
		if (b->name_count == BUILDER_NAMES || base + at[i] > 0x3fff)
			break;
		b->names[b->name_count].hash = hash[i];
		b->names[b->name_count++].at = (uint16_t)(base + at[i]);
	}
}

size_t message_build_begin(struct message_builder *b, enum message_section section,
			   const uint8_t *owner, size_t owner_length, uint16_t type,
			   uint16_t rrclass, uint32_t ttl)
{
	message_build_name(b, owner, owner_length);
	writer_u16(&b->w, type);
	writer_u16(&b->w, rrclass);
	writer_u32(&b->w, ttl);
	writer_u16(&b->w, 0);
	b->counts[section]++;
	return b->w.at;
}

void message_build_end(struct message_builder *b, size_t mark)
{
	if (b->w.failed)
		return;
	size_t length = b->w.at - mark;
	if (length > UINT16_MAX) {
		b->w.failed = true;
		return;
	}
	b->w.data[mark - 2] = (uint8_t)(length >> 8);
	b->w.data[mark - 1] = (uint8_t)length;
}

void message_build_record(struct message_builder *b, enum message_section section,
			  const uint8_t *owner, size_t owner_length, uint16_t type, uint32_t ttl,
			  const void *rdata, size_t rdata_length)
{
	size_t mark = message_build_begin(b, section, owner, owner_length, type, CLASS_IN, ttl);
	writer_bytes(&b->w, rdata, rdata_length);
	message_build_end(b, mark);
}

void message_build_opt(struct message_builder *b, uint16_t udp_size, uint8_t extended_rcode,
		       bool want_dnssec, uint16_t ede, const char *text, size_t text_length)
{
	uint32_t ttl = (uint32_t)extended_rcode << 24 | (want_dnssec ? 0x8000u : 0);

	if (text_length > MESSAGE_EDE_TEXT_MAX)
		text_length = MESSAGE_EDE_TEXT_MAX;
	size_t rdata = ede ? 6 + text_length : 0;
	const uint8_t opt[MESSAGE_OPT_SIZE] = {
		[2] = TYPE_OPT,
		[3] = (uint8_t)(udp_size >> 8),
		[4] = (uint8_t)udp_size,
		[5] = (uint8_t)(ttl >> 24),
		[6] = (uint8_t)(ttl >> 16),
		[7] = (uint8_t)(ttl >> 8),
		[8] = (uint8_t)ttl,
		[9] = (uint8_t)(rdata >> 8),
		[10] = (uint8_t)rdata,
	};
	writer_bytes(&b->w, opt, sizeof(opt));
	b->counts[SECTION_ADDITIONAL]++;
	if (!ede)
		return;
	writer_u16(&b->w, EDNS_OPTION_EDE);
	writer_u16(&b->w, (uint16_t)(2 + text_length));
	writer_u16(&b->w, ede);
	writer_bytes(&b->w, text, text_length);
}

size_t message_build_finish(struct message_builder *b)
{
	if (b->w.failed)
		return 0;
	for (unsigned i = 0; i < 4; i++) {
		b->w.data[4 + 2 * i] = (uint8_t)(b->counts[i] >> 8);
		b->w.data[5 + 2 * i] = (uint8_t)b->counts[i];
	}
	return b->w.at;
}

/*
 * The rdata of the types that hold names or have a size: `head` octets, `strings` character
 * strings, `names` names, then `tail` octets (TAIL_ANY: whatever is left). Compression on output
 * only where RFC 1035 defined the type (RFC 3597 section 4); on input everywhere.
 */
#define TAIL_ANY 0xff
static const struct rdata_shape {
	uint16_t type;
	uint8_t head, strings, names, tail;
	bool compress;
} shapes[] = {
	{TYPE_A, 4, 0, 0, 0, false},
	{TYPE_NS, 0, 0, 1, 0, true},
	{3, 0, 0, 1, 0, true}, /* MD */
	{4, 0, 0, 1, 0, true}, /* MF */
	{TYPE_CNAME, 0, 0, 1, 0, true},
	{TYPE_SOA, 0, 0, 2, 20, true},
	{7, 0, 0, 1, 0, true}, /* MB */
	{8, 0, 0, 1, 0, true}, /* MG */
	{9, 0, 0, 1, 0, true}, /* MR */
	{TYPE_PTR, 0, 0, 1, 0, true},
	{14, 0, 0, 2, 0, true}, /* MINFO */
	{TYPE_MX, 2, 0, 1, 0, true},
	{17, 0, 0, 2, 0, false},	 /* RP */
	{18, 2, 0, 1, 0, false},	 /* AFSDB */
	{21, 2, 0, 1, 0, false},	 /* RT */
	{24, 18, 0, 1, TAIL_ANY, false}, /* SIG */
	{26, 2, 0, 2, 0, false},	 /* PX */
	{TYPE_AAAA, 16, 0, 0, 0, false},
	{30, 0, 0, 1, TAIL_ANY, false}, /* NXT */
	{TYPE_SRV, 6, 0, 1, 0, false},
	{TYPE_NAPTR, 4, 3, 1, 0, false},
	{36, 2, 0, 1, 0, false}, /* KX */
	{TYPE_DNAME, 0, 0, 1, 0, false},
	{TYPE_RRSIG, 18, 0, 1, TAIL_ANY, false},
	{TYPE_NSEC, 0, 0, 1, TAIL_ANY, false},
	{TYPE_SVCB, 2, 0, 1, TAIL_ANY, false},
	{TYPE_HTTPS, 2, 0, 1, TAIL_ANY, false},
};

static const struct rdata_shape *shape_of(uint16_t type)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (shapes[i].type == type)
			return &shapes[i];
	return NULL;
}

/* SvcParams (RFC 9460 section 2.2): keys ascend, lengths add up, hints are whole addresses. */
static bool params_valid(struct cursor c)
{
	int last = -1;

	while (cursor_left(&c)) {
		uint16_t key = cursor_u16(&c);
		uint16_t length = cursor_u16(&c);
		cursor_skip(&c, length);
		if (!cursor_ok(&c) || key <= last || (key == 4 && (!length || length % 4)) ||
		    (key == 6 && (!length || length % 16)))
			return false;
		last = key;
	}
	return cursor_ok(&c);
}

/* Copy one rdata, names rewritten. False: it does not fit its type. */
static bool clean_rdata(struct message_builder *b, const uint8_t *in, size_t size,
			const struct message_record *r)
{
	const struct rdata_shape *shape = shape_of(r->type);
	struct cursor c = cursor_make(in, r->end);
	uint8_t name[NAME_WIRE_MAX];

	c.at = r->rdata_at;
	if (shape) {
		size_t fixed = c.at;
		cursor_skip(&c, shape->head);
		for (unsigned i = 0; i < shape->strings; i++)
			cursor_skip(&c, cursor_u8(&c));
		if (!cursor_ok(&c))
			return false;
		writer_bytes(&b->w, in + fixed, c.at - fixed);
		for (unsigned i = 0; i < shape->names; i++) {
			size_t end;
			size_t length = message_name(in, size, c.at, name, NULL, &end);
			if (!length || end > r->end)
				return false;
			c.at = end;
			if (shape->compress)
				message_build_name(b, name, length);
			else
				writer_bytes(&b->w, name, length);
		}
		if (shape->tail != TAIL_ANY && cursor_left(&c) != shape->tail)
			return false;
		if ((r->type == TYPE_SVCB || r->type == TYPE_HTTPS) && !params_valid(c))
			return false;
	}
	size_t rest = cursor_left(&c);
	writer_bytes(&b->w, in + c.at, rest);
	return true;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Append one record of `in`, its TTL within the limits. Returns where the TTL stands, or -errno. */
static int append_record(struct message_builder *b, const uint8_t *in, size_t size,
			 const struct message_record *r, uint32_t ttl)
{
	uint8_t name[NAME_WIRE_MAX];
	size_t length = message_name(in, size, r->at, name, NULL, NULL);

	if (!length)
		return -EBADMSG;
	size_t mark = message_build_begin(b, r->section, name, length, r->type, r->rrclass, ttl);
	if (!clean_rdata(b, in, size, r))
		return -EBADMSG;
	message_build_end(b, mark);
	return b->w.failed ? -EMSGSIZE : (int)mark - 6;
}

int message_append(struct message_builder *b, const uint8_t *in, size_t size)
{
	struct message_walk walk;
	struct message_record r;
	int more;

	if (message_walk_start(&walk, in, size) < 0)
		return -EBADMSG;
	while ((more = message_walk_next(&walk, &r)) > 0) {
		if (r.type == TYPE_OPT)
			continue;
		int at = append_record(b, in, size, &r, message_ttl(r.ttl));
		if (at < 0)
			return at;
	}
	return more;
}

/* RFC 2308 section 3: a negative answer's SOA lives no longer than its MINIMUM says. */
static uint32_t note_soa(struct message_facts *facts, const uint8_t *in,
			 const struct message_record *r, uint32_t ttl)
{
	struct cursor c = cursor_make(in, r->end);

	if (r->section != SECTION_AUTHORITY || r->type != TYPE_SOA || facts->has_soa ||
	    r->rdata_length < 22)
		return ttl;
	cursor_skip(&c, r->end - 4);
	uint32_t negative = smaller(ttl, message_ttl(cursor_u32(&c)));
	facts->has_soa = true;
	facts->negative_ttl = negative;
	return facts->has_answer ? ttl : negative;
}

/*
 * What a policy looks at is the answer section. An address of another name beside it (glue, what an
 * HTTPS or SRV record leads to) would be a way around: whoever needs it asks for it, and is judged.
 * In authority there is what negative answers and their proofs consist of.
 */
static bool goes_on(const struct message_record *r)
{
	switch (r->section) {
	case SECTION_ANSWER:
		return true;
	case SECTION_AUTHORITY:
		return r->type == TYPE_NS || r->type == TYPE_SOA || r->type == TYPE_DS ||
		       r->type == TYPE_RRSIG || r->type == TYPE_NSEC || r->type == TYPE_NSEC3;
	default:
		return false;
	}
}

int message_clean(const uint8_t *in, size_t size, uint8_t *out, size_t max, uint32_t ttl_min,
		  uint32_t ttl_max, struct message_facts *facts)
{
	struct message_builder b;
	struct message_header header;
	struct message_question question;
	struct message_walk walk;
	struct message_record r;
	struct message_opt opt = {.present = false};
	int more;

	if (!message_header(in, size, &header) || header.questions != 1 ||
	    !message_question(in, size, &question) || message_walk_start(&walk, in, size) < 0)
		return -EBADMSG;
	message_build_start(&b, out, max, header.id, header.flags, &question);
	facts->flags = header.flags;
	facts->has_answer = facts->has_soa = false;
	facts->min_ttl = UINT32_MAX;
	facts->negative_ttl = 0;
	facts->ttl_count = 0;
	while ((more = message_walk_next(&walk, &r)) > 0) {
		if (r.type == TYPE_OPT) {
			if (opt.present || r.section != SECTION_ADDITIONAL ||
			    message_opt(in, &r, &opt) < 0)
				return -EBADMSG;
			continue;
		}
		if (!goes_on(&r))
			continue;
		uint32_t ttl = smaller(message_ttl(r.ttl), ttl_max);
		if (ttl && ttl < ttl_min)
			ttl = ttl_min;
		if (r.section == SECTION_ANSWER &&
		    (r.type == question.type || question.type == TYPE_ANY))
			facts->has_answer = true;
		ttl = note_soa(facts, in, &r, ttl);
		int ttl_at = append_record(&b, in, size, &r, ttl);
		if (ttl_at < 0)
			return ttl_at;
		if (facts->ttl_count < MESSAGE_TTLS_MAX)
			facts->ttls[facts->ttl_count++] = (uint16_t)ttl_at;
		else
			facts->ttl_count = MESSAGE_TTLS_MAX + 1;
		facts->min_ttl = smaller(facts->min_ttl, ttl);
	}
	if (more < 0)
		return -EBADMSG;
	facts->rcode = (uint16_t)((header.flags & MESSAGE_RCODE) | opt.extended_rcode << 4);
	facts->ede = opt.has_ede ? opt.ede : 0;
	memcpy(facts->records, &b.counts[1], sizeof(facts->records));
	size_t done = message_build_finish(&b);
	return done ? (int)done : -EMSGSIZE;
}

size_t message_cut(uint8_t *data, size_t size, size_t limit)
{
	struct message_walk walk;
	struct message_record r;
	uint8_t owner[2][NAME_WIRE_MAX];
	size_t length[2] = {0, 0};
	struct {
		size_t at;
		uint16_t type;
		unsigned section;
		uint16_t records[3];
	} set = {0, 0, 0, {0, 0, 0}};
	uint16_t records[3] = {0, 0, 0};
	int more;

	if (size <= limit)
		return size;
	if (message_walk_start(&walk, data, size) < 0)
		return 0;
	set.at = walk.at; /* where the RRset begins that is being read: it goes whole or stays whole
			   */
	while ((more = message_walk_next(&walk, &r)) > 0) {
		unsigned k = length[0] ? 1 : 0;
		length[k] = message_name(data, size, r.at, owner[k], NULL, NULL);
		if (!length[k])
			return 0;
		name_lower(owner[k], length[k], owner[k]);
		if (!k || r.section != set.section || r.type != set.type ||
		    length[0] != length[1] || memcmp(owner[0], owner[1], length[0])) {
			set.at = r.at;
			set.section = r.section;
			set.type = r.type;
			memcpy(set.records, records, sizeof(records));
			memcpy(owner[0], owner[k], length[k]);
			length[0] = length[k];
		}
		if (r.end > limit)
			break;
		records[r.section - 1]++;
	}
	if (more <= 0 || set.at > limit)
		return 0;
	/* RFC 2181 section 9: what is left out of the additional section is no truncation. */
	if (r.section != SECTION_ADDITIONAL)
		data[2] |= MESSAGE_TC >> 8;
	for (unsigned i = 0; i < 3; i++) {
		data[6 + 2 * i] = (uint8_t)(set.records[i] >> 8);
		data[7 + 2 * i] = (uint8_t)set.records[i];
	}
	return set.at;
}
