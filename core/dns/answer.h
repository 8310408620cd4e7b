/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replies that leave the house. Made ones (blocks, refusals, errors: interface.md, "A blocked
 * answer") and those whose content came from upstream, fresh or from the cache. Every reply carries
 * the question as the asker spelled it, RA, the asker's RD and CD, and OPT exactly if the asker
 * sent one. AA is never set: we are nobody's authority. Worker process; no allocation.
 */
#ifndef BALEEN_CORE_DNS_ANSWER_H
#define BALEEN_CORE_DNS_ANSWER_H

#include "base/message.h"
#include "core/query.h"

#include <stddef.h>
#include <stdint.h>

#define ANSWER_TTL_DEFAULT 60 /* of a made answer that says nothing else */
#define ANSWER_TTL_STALE   30 /* RFC 8767 section 4 */

/* Extended DNS Errors that the core itself uses (RFC 8914). */
enum answer_ede {
	EDE_NONE = 0,
	EDE_STALE = 3,
	EDE_BLOCKED = 15,
	EDE_PROHIBITED = 18,
	EDE_STALE_NXDOMAIN = 19,
	EDE_NOT_SUPPORTED = 21,
	EDE_NO_REACHABLE_AUTHORITY = 22,
	EDE_NETWORK_ERROR = 23,
	EDE_INVALID_DATA = 24,
};

/* The most that may be sent back to this query. */
size_t answer_limit(const struct query *q);

/* An empty reply with an rcode: REFUSED, SERVFAIL, ... Returns its size. */
size_t answer_error(const struct query *q, uint16_t rcode, uint16_t ede, const char *text,
		    uint8_t *out, size_t max);

/*
 * The reply that q's decision (q->verdict, q->policy_answer or q->why) asks for. 0: none, DROP.
 * Forms with a CNAME are made as the CNAME alone: the path puts the target's records behind it.
 */
size_t answer_decided(const struct query *q, uint8_t *out, size_t max);

/* If the decision is a CNAME (a rewrite, or a block in that form): its target, else NULL. */
const struct name *answer_target(const struct query *q);
/* The TTL of what the decision makes. */
uint32_t answer_ttl(const struct query *q);
/* The EDE of the decision, and its text or NULL. */
uint16_t answer_ede(const struct query *q, const char **text);

/* Content from upstream: a cleaned message (base/message_build.h) and what is known of it. */
struct answer_content {
	const uint8_t *message;
	size_t size;
	const uint16_t *ttls; /* offsets; may be NULL with age 0 and not stale */
	unsigned ttl_count;
	uint32_t age_s;	      /* every TTL is this much older */
	bool stale;	      /* every TTL is ANSWER_TTL_STALE */
	bool changed;	      /* not as upstream sent it (rewritten): AD goes */
	bool viewed;	      /* the worker's answer_view shows this very message */
	uint16_t ede;	      /* upstream's, or ours */
	const char *ede_text; /* or NULL */
};
size_t answer_content(const struct query *q, const struct answer_content *content, uint8_t *out,
		      size_t max);

/* The reply to a packet that is no valid query: FORMERR, NOTIMP, BADVERS. 0: silence. */
size_t answer_malformed(enum message_result result, const struct message_query *parsed,
			uint8_t *out, size_t max);

/* Bring the TTLs of a cleaned message up to now: see answer_content. */
void answer_age(uint8_t *message, const uint16_t *ttls, unsigned count, uint32_t age_s, bool stale);

#endif
