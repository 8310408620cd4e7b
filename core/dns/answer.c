/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies: made from a decision, or from what upstream said. Worker process. Owns nothing: writes
 * into the caller's buffer. Invariant: a reply never exceeds what the asker takes, and OPT is in it
 * exactly if the asker sent one; upstream's options never pass, but for its EDE code.
 */
#include "core/dns/answer.h"

#include "base/message_build.h"

#include <string.h>

size_t answer_limit(const struct query *q)
{
	return q->origin.transport == BALEEN_TCP ? MESSAGE_SIZE_MAX : q->edns.udp_size;
}

static uint16_t reply_flags(const struct query *q, uint16_t rcode)
{
	return (uint16_t)(MESSAGE_QR | MESSAGE_RA | (q->header_flags & (MESSAGE_RD | MESSAGE_CD)) |
			  (rcode & MESSAGE_RCODE));
}

/*
 * Header and question. Nothing that is made here is compressed but by put_asked, so the builder
 * need not know the question's names (which costs more than all the rest).
 */
static void start(struct message_builder *b, const struct query *q, uint16_t flags, uint8_t *out,
		  size_t max)
{
	message_build_start(b, out, max, q->view.id, flags, NULL);
	b->counts[0] = 1;
	writer_bytes(&b->w, q->name_as_asked, q->view.name_length);
	writer_u16(&b->w, q->view.type);
	writer_u16(&b->w, q->view.rrclass);
}

static void put_opt(struct message_builder *b, const struct query *q, uint16_t rcode, uint16_t ede,
		    const char *text)
{
	if (q->edns.present)
		message_build_opt(b, MESSAGE_UDP_MAX, (uint8_t)(rcode >> 4), q->edns.want_dnssec,
				  ede, text, text ? strlen(text) : 0);
}

size_t answer_error(const struct query *q, uint16_t rcode, uint16_t ede, const char *text,
		    uint8_t *out, size_t max)
{
	struct message_builder b;

	start(&b, q, reply_flags(q, rcode), out, max);
	put_opt(&b, q, rcode, ede, text);
	return message_build_finish(&b);
}

/* ---- what was decided, in the policy's words ---- */

static enum policy_form decided_form(const struct query *q)
{
	static const enum policy_form forms[] = {
		[BALEEN_FORM_DEFAULT] = POLICY_FORM_NXDOMAIN,
		[BALEEN_FORM_NXDOMAIN] = POLICY_FORM_NXDOMAIN,
		[BALEEN_FORM_NODATA] = POLICY_FORM_NODATA,
		[BALEEN_FORM_ZERO_IP] = POLICY_FORM_ZERO_IP,
		[BALEEN_FORM_CNAME] = POLICY_FORM_CNAME,
		[BALEEN_FORM_ADDRESSES] = POLICY_FORM_ADDRESSES,
	};

	switch (q->verdict) {
	case EVENT_REWRITE:
		return POLICY_FORM_CNAME;
	case EVENT_ANSWER:
		return POLICY_FORM_ADDRESSES;
	case EVENT_REFUSE:
		return POLICY_FORM_REFUSED;
	case EVENT_DROP:
		return POLICY_FORM_DROP;
	case EVENT_TRUNCATE:
		return POLICY_FORM_TRUNCATE;
	default:
		break;
	}
	if (q->policy_answer)
		return q->policy_answer->form;
	return q->why.form < sizeof(forms) / sizeof(forms[0]) ? forms[q->why.form]
							      : POLICY_FORM_NXDOMAIN;
}

const struct name *answer_target(const struct query *q)
{
	if ((q->verdict != EVENT_REWRITE && q->verdict != EVENT_BLOCK) ||
	    decided_form(q) != POLICY_FORM_CNAME)
		return NULL;
	if (q->policy_answer)
		return &q->policy_answer->target;
	return q->target.length ? &q->target : NULL;
}

uint32_t answer_ttl(const struct query *q)
{
	uint32_t ttl = q->policy_answer ? q->policy_answer->ttl_s : q->why.ttl;

	/* A policy may say 0 and mean it; a plugin that says nothing says 0. */
	return ttl || q->policy_answer ? ttl : ANSWER_TTL_DEFAULT;
}

uint16_t answer_ede(const struct query *q, const char **text)
{
	*text = NULL;
	if (q->verdict == EVENT_ERROR)
		return q->why.ede;
	if (q->policy_answer) {
		*text = q->policy_answer->ede_text ? q->policy_answer->ede_text : q->why.category;
		return q->policy_answer->ede;
	}
	*text = q->why.text ? q->why.text : q->why.category;
	if (q->why.ede)
		return q->why.ede;
	if (q->verdict == EVENT_BLOCK)
		return EDE_BLOCKED;
	return q->verdict == EVENT_REFUSE ? EDE_PROHIBITED : EDE_NONE;
}

/* NXDOMAIN denies all names below (RFC 8020): only right if all of them are blocked as well. */
static bool must_be_nodata(const struct query *q)
{
	if (q->why.exact)
		return true;
	return q->policy_answer && q->policy_done &&
	       (q->policy.match_exact || q->policy.allow_below);
}

/* The asked name from its octet `at` on, as an owner: a pointer into the question. */
static void put_asked(struct message_builder *b, const struct query *q, size_t at)
{
	if (q->name_as_asked[at])
		writer_u16(&b->w, (uint16_t)(0xc000 | (MESSAGE_HEADER_SIZE + at)));
	else
		writer_u8(&b->w, 0);
}

static void put_soa(struct message_builder *b, const struct query *q, uint32_t ttl)
{
	static const uint8_t mname[] = "\7blocked\7invalid";
	static const uint8_t rname[] = "\12hostmaster"; /* .invalid: a pointer */
	static const uint8_t times[16] = {0, 0, 0,    1,    0, 0, 0x0e, 0x10,  /* serial, refresh */
					  0, 0, 0x02, 0x58, 0, 1, 0x51, 0x80}; /* retry, expire */

	/* Of the parent; the root has none. */
	put_asked(b, q, *q->name_as_asked ? *q->name_as_asked + 1u : 0);
	writer_u16(&b->w, TYPE_SOA);
	writer_u16(&b->w, CLASS_IN);
	writer_u32(&b->w, ttl);
	writer_u16(&b->w, sizeof(mname) + sizeof(rname) - 1 + 2 + sizeof(times) + 4);
	size_t invalid = b->w.at + 8;
	writer_bytes(&b->w, mname, sizeof(mname));
	writer_bytes(&b->w, rname, sizeof(rname) - 1);
	writer_u16(&b->w, (uint16_t)(0xc000 | invalid));
	writer_bytes(&b->w, times, sizeof(times));
	writer_u32(&b->w, ttl); /* minimum: what negative caching goes by (RFC 2308) */
	b->counts[SECTION_AUTHORITY]++;
}

/* The addresses of the asked family; returns how many. `octets`: 16 each, IPv4 mapped. */
static unsigned put_addresses(struct message_builder *b, const struct query *q, uint32_t ttl,
			      const uint8_t *octets, unsigned count)
{
	struct addr a;
	unsigned put = 0;

	for (unsigned i = 0; i < count; i++) {
		memcpy(a.octets, octets + 16 * (size_t)i, 16);
		bool v4 = addr_is_v4(&a);
		if (q->view.type != (v4 ? TYPE_A : TYPE_AAAA))
			continue;
		put_asked(b, q, 0);
		writer_u16(&b->w, q->view.type);
		writer_u16(&b->w, CLASS_IN);
		writer_u32(&b->w, ttl);
		writer_u16(&b->w, v4 ? 4 : 16);
		writer_bytes(&b->w, v4 ? a.octets + 12 : a.octets, v4 ? 4 : 16);
		b->counts[SECTION_ANSWER]++;
		put++;
	}
	return put;
}

static unsigned put_decided_addresses(struct message_builder *b, const struct query *q,
				      uint32_t ttl)
{
	const struct policy_answer *p = q->policy_answer;

	if (!p)
		return put_addresses(b, q, ttl, q->why.address,
				     q->why.address ? q->why.address_count : 0);
	return put_addresses(b, q, ttl, p->a[0].octets, p->a_count) +
	       put_addresses(b, q, ttl, p->aaaa[0].octets, p->aaaa_count);
}

static unsigned put_zero(struct message_builder *b, const struct query *q, uint32_t ttl)
{
	static const uint8_t zeros[32] = {[10] = 0xff, [11] = 0xff}; /* ::ffff:0.0.0.0, then :: */

	return put_addresses(b, q, ttl, zeros, 2);
}

size_t answer_decided(const struct query *q, uint8_t *out, size_t max)
{
	enum policy_form form = decided_form(q);
	struct message_builder b;
	const struct name *target;
	uint32_t ttl = answer_ttl(q);
	uint16_t rcode = RCODE_NOERROR;
	uint16_t flags = 0;
	bool soa = false;
	const char *text;
	uint16_t ede = answer_ede(q, &text);

	if (q->verdict == EVENT_ERROR)
		return answer_error(q, RCODE_SERVFAIL, ede, text, out, max);
	if (form == POLICY_FORM_DROP)
		return 0;
	if (form == POLICY_FORM_NXDOMAIN) {
		soa = true;
		rcode = must_be_nodata(q) ? RCODE_NOERROR : RCODE_NXDOMAIN;
	} else if (form == POLICY_FORM_NODATA) {
		soa = true;
	} else if (form == POLICY_FORM_REFUSED) {
		rcode = RCODE_REFUSED;
	} else if (form == POLICY_FORM_TRUNCATE) {
		flags = MESSAGE_TC;
	}
	start(&b, q, (uint16_t)(reply_flags(q, rcode) | flags), out, max);
	if (form == POLICY_FORM_CNAME) {
		target = answer_target(q);
		soa = !target;
		if (target) {
			put_asked(&b, q, 0);
			writer_u16(&b.w, TYPE_CNAME);
			writer_u16(&b.w, CLASS_IN);
			writer_u32(&b.w, ttl);
			writer_u16(&b.w, target->length);
			writer_bytes(&b.w, target->wire, target->length);
			b.counts[SECTION_ANSWER]++;
		}
	} else if (form == POLICY_FORM_ADDRESSES) {
		soa = !put_decided_addresses(&b, q, ttl);
	} else if (form == POLICY_FORM_ZERO_IP) {
		soa = !put_zero(&b, q, ttl);
	}
	if (soa)
		put_soa(&b, q, ttl);
	put_opt(&b, q, rcode, ede, text);
	return message_build_finish(&b);
}

/* ---- what upstream said ---- */

void answer_age(uint8_t *message, const uint16_t *ttls, unsigned count, uint32_t age_s, bool stale)
{
	for (unsigned i = 0; i < count; i++) {
		uint8_t *p = message + ttls[i];
		uint32_t ttl =
			(uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
		ttl = stale ? ANSWER_TTL_STALE : ttl > age_s ? ttl - age_s : 0;
		p[0] = (uint8_t)(ttl >> 24);
		p[1] = (uint8_t)(ttl >> 16);
		p[2] = (uint8_t)(ttl >> 8);
		p[3] = (uint8_t)ttl;
	}
}

size_t answer_content(const struct query *q, const struct answer_content *content, uint8_t *out,
		      size_t max)
{
	size_t limit = answer_limit(q);
	size_t text = content->ede && content->ede_text ? strlen(content->ede_text) : 0;
	size_t opt = 0;
	size_t size = content->size;

	if (text > MESSAGE_EDE_TEXT_MAX)
		text = MESSAGE_EDE_TEXT_MAX;
	if (q->edns.present)
		opt = MESSAGE_OPT_SIZE + (content->ede ? 6 + text : 0);
	if (size > max || size < MESSAGE_HEADER_SIZE + q->view.name_length + 4u)
		return 0;
	memcpy(out, content->message, size);
	if (content->age_s || content->stale)
		answer_age(out, content->ttls, content->ttl_count, content->age_s, content->stale);

	/* AD: only to those who asked for it one way or the other (RFC 6840 section 5.8). */
	uint16_t was = (uint16_t)(out[2] << 8 | out[3]);
	uint16_t flags = reply_flags(q, was & MESSAGE_RCODE);
	if (!content->changed && was & MESSAGE_AD &&
	    (q->header_flags & MESSAGE_AD || q->edns.want_dnssec))
		flags |= MESSAGE_AD;
	out[0] = (uint8_t)(q->view.id >> 8);
	out[1] = (uint8_t)q->view.id;
	out[2] = (uint8_t)(flags >> 8);
	out[3] = (uint8_t)flags;
	memcpy(out + MESSAGE_HEADER_SIZE, q->name_as_asked, q->view.name_length);

	if (limit > max)
		limit = max;
	if (size + opt > limit) {
		size = message_cut(out, size, limit - opt);
		if (!size)
			return 0;
	}
	if (!opt)
		return size;
	/* OPT goes behind everything; its count is the last of the header. */
	struct message_builder b; /* of which OPT needs no more than this */
	b.w = writer_make(out, max);
	b.w.at = size;
	b.counts[SECTION_ADDITIONAL] = 0;
	message_build_opt(&b, MESSAGE_UDP_MAX, 0, q->edns.want_dnssec, content->ede,
			  content->ede_text, text);
	if (b.w.failed)
		return 0;
	uint16_t additional = (uint16_t)((out[10] << 8 | out[11]) + 1);
	out[10] = (uint8_t)(additional >> 8);
	out[11] = (uint8_t)additional;
	return b.w.at;
}

size_t answer_malformed(enum message_result result, const struct message_query *parsed,
			uint8_t *out, size_t max)
{
	struct message_builder b;
	uint16_t rcode;

	switch (result) {
	case MESSAGE_FORMERR:
		rcode = RCODE_FORMERR;
		break;
	case MESSAGE_NOTIMP:
		rcode = RCODE_NOTIMP;
		break;
	case MESSAGE_BADVERS:
		rcode = RCODE_BADVERS;
		break;
	default:
		return 0;
	}
	uint16_t flags = (uint16_t)(MESSAGE_QR | (rcode & MESSAGE_RCODE) |
				    (parsed->header.flags & (MESSAGE_OPCODE | MESSAGE_RD)));
	message_build_start(&b, out, max, parsed->header.id, flags,
			    rcode == RCODE_BADVERS ? &parsed->question : NULL);
	if (rcode == RCODE_BADVERS)
		message_build_opt(&b, MESSAGE_UDP_MAX, (uint8_t)(rcode >> 4), false, EDE_NONE, NULL,
				  0);
	return message_build_finish(&b);
}
