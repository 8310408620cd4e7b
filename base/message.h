/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages as they are on the wire (RFC 1035 section 4, RFC 6891), read in place through
 * base/cursor.h. Everything here takes foreign octets: nothing is trusted, nothing allocates,
 * compression pointers go strictly backwards and are bounded. Building is base/message_build.h.
 * Leaf file.
 */
#ifndef BALEEN_BASE_MESSAGE_H
#define BALEEN_BASE_MESSAGE_H

#include "base/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_HEADER_SIZE 12
#define MESSAGE_SIZE_MAX    65535
#define MESSAGE_UDP_MIN	    512	 /* what a client without EDNS takes */
#define MESSAGE_UDP_MAX	    1232 /* what we send and ask for: no fragments (DNS flag day 2020) */

enum message_flags {
	MESSAGE_QR = 0x8000,
	MESSAGE_OPCODE = 0x7800, /* mask */
	MESSAGE_AA = 0x0400,
	MESSAGE_TC = 0x0200,
	MESSAGE_RD = 0x0100,
	MESSAGE_RA = 0x0080,
	MESSAGE_AD = 0x0020,
	MESSAGE_CD = 0x0010,
	MESSAGE_RCODE = 0x000f, /* mask */
};

enum message_rcode {
	RCODE_NOERROR = 0,
	RCODE_FORMERR = 1,
	RCODE_SERVFAIL = 2,
	RCODE_NXDOMAIN = 3,
	RCODE_NOTIMP = 4,
	RCODE_REFUSED = 5,
	RCODE_BADVERS = 16,
};

enum message_type {
	TYPE_A = 1,
	TYPE_NS = 2,
	TYPE_CNAME = 5,
	TYPE_SOA = 6,
	TYPE_PTR = 12,
	TYPE_HINFO = 13,
	TYPE_MX = 15,
	TYPE_TXT = 16,
	TYPE_AAAA = 28,
	TYPE_SRV = 33,
	TYPE_NAPTR = 35,
	TYPE_DNAME = 39,
	TYPE_OPT = 41,
	TYPE_DS = 43,
	TYPE_RRSIG = 46,
	TYPE_NSEC = 47,
	TYPE_NSEC3 = 50,
	TYPE_SVCB = 64,
	TYPE_HTTPS = 65,
	TYPE_TKEY = 249,
	TYPE_TSIG = 250,
	TYPE_IXFR = 251,
	TYPE_AXFR = 252,
	TYPE_MAILB = 253,
	TYPE_MAILA = 254,
	TYPE_ANY = 255,
	CLASS_IN = 1,
};

enum message_section { SECTION_ANSWER = 1, SECTION_AUTHORITY = 2, SECTION_ADDITIONAL = 3 };

enum message_edns_option { EDNS_OPTION_EDE = 15 };

struct message_header {
	uint16_t id;
	uint16_t flags; /* enum message_flags */
	uint16_t questions;
	uint16_t records[3]; /* answer, authority, additional */
};

/* A question read in place: `name` points into the message, case as sent, never compressed. */
struct message_question {
	const uint8_t *name;
	uint8_t length; /* root label included */
	uint8_t labels;
	uint16_t type;
	uint16_t rrclass;
};

/* The OPT pseudo-record. Client options are checked for shape and otherwise ignored, never echoed.
 */
struct message_opt {
	bool present;
	bool want_dnssec; /* DO */
	uint8_t version;
	uint8_t extended_rcode; /* upper eight bits */
	uint16_t udp_size;	/* as sent */
	bool has_ede;		/* the first Extended DNS Error (RFC 8914) */
	uint16_t ede;
	uint16_t ede_text_length;
	const uint8_t *ede_text; /* into the message, UTF-8 says the RFC: foreign octets */
};

/* What to do with a packet that came to a listener. */
enum message_result {
	MESSAGE_OK,
	MESSAGE_SILENCE, /* too short, or a response: no reply at all */
	MESSAGE_FORMERR,
	MESSAGE_NOTIMP,	 /* another opcode */
	MESSAGE_BADVERS, /* EDNS version over 0; question and OPT are valid */
};

struct message_query {
	struct message_header header;	  /* valid except for SILENCE by shortness */
	struct message_question question; /* name NULL: there is none that could be read */
	struct message_opt opt;
};

/* One record of any section; `at` is where its owner name begins. */
struct message_record {
	enum message_section section;
	uint16_t type;
	uint16_t rrclass;
	uint32_t ttl; /* as sent */
	uint16_t rdata_length;
	size_t at;
	size_t ttl_at;
	size_t rdata_at;
	size_t end;
};

struct message_walk {
	const uint8_t *data;
	size_t size;
	size_t at;
	uint16_t left[3];
	unsigned section; /* 0..2 */
};

/* False if there are fewer than 12 octets. */
bool message_header(const uint8_t *data, size_t size, struct message_header *out);

/* The one question at offset 12: its end, or 0 if malformed or compressed. QDCOUNT is not looked
 * at. */
size_t message_question(const uint8_t *data, size_t size, struct message_question *out);

/* Read a query whole. Never reads past `size`; `out` is filled as far as it went. */
enum message_result message_parse_query(const uint8_t *data, size_t size,
					struct message_query *out);

/*
 * Decompress the name at `at` into `out`, case kept: its length, or 0 if malformed. Pointers must
 * go strictly backwards, behind the header, at most 127 of them. `*end` is where reading goes on.
 * `labels` and `end` may be NULL.
 */
size_t message_name(const uint8_t *data, size_t size, size_t at, uint8_t out[NAME_WIRE_MAX],
		    unsigned *labels, size_t *end);

/* Walk the records of all sections. start: 0 or -EBADMSG; next: 1, 0 at the end, -EBADMSG. */
int message_walk_start(struct message_walk *w, const uint8_t *data, size_t size);
int message_walk_next(struct message_walk *w, struct message_record *out);

/* Read an OPT record that the walker found. 0, or -EBADMSG (owner not root, options malformed). */
int message_opt(const uint8_t *data, const struct message_record *record, struct message_opt *out);

/* Is it a response to this question (name lower-cased)? Id, QR, opcode, QDCOUNT, question. */
bool message_answers(const uint8_t *data, size_t size, uint16_t id, const uint8_t *name,
		     size_t length, uint16_t type, uint16_t rrclass);

/* A TTL as it is meant: with the top bit set it is 0 (RFC 2181 section 8). */
static inline uint32_t message_ttl(uint32_t ttl)
{
	return ttl & 0x80000000u ? 0 : ttl;
}

#endif
