/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing DNS messages: a builder that compresses names (RFC 1035 section 4.1.4), and
 * message_clean, which rebuilds what an upstream sent into a form that is safe to keep and to cut:
 * every name checked and compressed by us, OPT and trailing octets gone, TTLs with the top bit
 * set to 0, known rdata measured. Leaf file; no allocation.
 */
#ifndef BALEEN_BASE_MESSAGE_BUILD_H
#define BALEEN_BASE_MESSAGE_BUILD_H

#include "base/cursor.h"
#include "base/message.h"

#define BUILDER_NAMES	     64	 /* suffixes remembered for compression; the rest stays long */
#define MESSAGE_TTLS_MAX     120 /* TTL offsets remembered; a message with more is not cached */
#define MESSAGE_EDE_TEXT_MAX 64

struct message_builder {
	struct writer w;
	uint16_t counts[4];
	unsigned name_count;
	struct {
		uint32_t hash;
		uint16_t at;
	} names[BUILDER_NAMES];
};

/* Header now, counts at the end. `question` may be NULL. */
void message_build_start(struct message_builder *b, void *out, size_t size, uint16_t id,
			 uint16_t flags, const struct message_question *question);

/* A name, compressed if a suffix was written before. For rdata as well. */
void message_build_name(struct message_builder *b, const uint8_t *name, size_t length);

/* Begin a record and end it again; between them write the rdata to b->w. */
size_t message_build_begin(struct message_builder *b, enum message_section section,
			   const uint8_t *owner, size_t owner_length, uint16_t type,
			   uint16_t rrclass, uint32_t ttl);
void message_build_end(struct message_builder *b, size_t mark);

/* A record whose rdata holds no name that is to be compressed. */
void message_build_record(struct message_builder *b, enum message_section section,
			  const uint8_t *owner, size_t owner_length, uint16_t type, uint32_t ttl,
			  const void *rdata, size_t rdata_length);

/* OPT; `ede` 0: none. What does not fit is the caller's to have left room for. */
#define MESSAGE_OPT_SIZE     11
#define MESSAGE_OPT_EDE_SIZE (MESSAGE_OPT_SIZE + 6 + MESSAGE_EDE_TEXT_MAX)
void message_build_opt(struct message_builder *b, uint16_t udp_size, uint8_t extended_rcode,
		       bool want_dnssec, uint16_t ede, const char *text, size_t text_length);

/* Write the counts: the size, or 0 if something did not fit. */
size_t message_build_finish(struct message_builder *b);

/* What is to know of a cleaned message. */
struct message_facts {
	uint16_t rcode; /* extended bits included */
	uint16_t flags; /* of the header as received */
	uint16_t ede;	/* 0: none */
	uint16_t records[3];
	bool has_answer;       /* the answer section holds the asked type (any record, for ANY) */
	bool has_soa;	       /* in authority */
	uint32_t min_ttl;      /* of answer and authority; UINT32_MAX: no record */
	uint32_t negative_ttl; /* min(SOA's TTL, its MINIMUM), RFC 2308; only with has_soa */
	uint16_t ttl_count;    /* MESSAGE_TTLS_MAX + 1: more than were kept */
	uint16_t ttls[MESSAGE_TTLS_MAX]; /* offsets of TTLs in the cleaned message */
};

/*
 * Rebuild a response that has one question. TTLs are brought between ttl_min and ttl_max, but 0
 * stays 0. Additional records stay behind, and what has no place in authority. Returns the new
 * size, or -EBADMSG (malformed), -EMSGSIZE (does not fit `max`). `in` and `out` must not overlap.
 * The question's case is kept.
 */
int message_clean(const uint8_t *in, size_t size, uint8_t *out, size_t max, uint32_t ttl_min,
		  uint32_t ttl_max, struct message_facts *facts);

/* Append every record of a message but OPT, each to its own section: sections must not have been
 * begun out of order. 0, -EBADMSG or -EMSGSIZE. */
int message_append(struct message_builder *b, const uint8_t *in, size_t size);

/* Shorten a cleaned message to `limit` octets at the end of a whole RRset and set TC if anything
 * but additional records had to go. Returns the new size; 0: cannot. */
size_t message_cut(uint8_t *data, size_t size, size_t limit);

#endif
