/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One query on its way through a worker: forward only, each step either decides or passes on. The
 * UDP batch holds them in place, so a query answered at once never touches the heap; one that must
 * wait (upstream, ticket) is moved to the heap with query_park (core/dns/path.h).
 * Owned by the worker; single-threaded.
 */
#ifndef BALEEN_CORE_QUERY_H
#define BALEEN_CORE_QUERY_H

#include "baleen/plugin.h"
#include "core/config.h"
#include "core/event.h"
#include "feeds/set/domset.h"
#include "policies/policy.h"

#include <stdbool.h>
#include <stdint.h>

#define QUERY_SLOT_BYTES 512  /* all plugins' slots together */
#define QUERY_KEEP_BYTES 1024 /* what plugins may keep with a query */

struct worker;
struct tcp_connection;

/* Where the reply goes. */
struct query_origin {
	uint8_t transport; /* enum baleen_transport */
	uint8_t listener;  /* index into config.listeners */
	bool mapped;	   /* client came as ::ffff:a.b.c.d on an IPv6 socket */
	bool wildcard;	   /* listener is a wildcard: `local` must be the source */
	struct endpoint client;
	struct addr local;
	uint32_t local_interface;
	struct tcp_connection *connection; /* TCP: weak, checked by `connection_serial` */
	uint64_t connection_serial;
};

/* What the client's OPT said (RFC 6891). */
struct query_edns {
	bool present;
	uint8_t version;
	uint16_t udp_size; /* effective: max(512, min(asked, 1232)); 512 without OPT */
	bool want_dnssec;  /* DO */
};

enum query_phase { PHASE_CLIENT, PHASE_QUERY, PHASE_ANSWER, PHASE_DONE };

struct query {
	struct worker *worker;
	struct baleen_query view;		  /* what plugins see; view.name points to `name` */
	uint8_t name[NAME_WIRE_MAX + 1];	  /* lower-cased */
	uint8_t name_as_asked[NAME_WIRE_MAX + 1]; /* case kept, for the reply */
	uint8_t client[16];
	uint16_t header_flags; /* of the query message, host order */
	struct query_origin origin;
	struct query_edns edns;
	int64_t received_us; /* monotonic */
	int64_t finished_us; /* monotonic, when the reply left; 0: event_write asks the clock */

	/* Policy and set: begun with, kept to the end (a set may be swapped meanwhile). */
	const struct domset *set;    /* pinned through worker_set_pin while parked; NULL: no set */
	struct domset_hashes hashes; /* of `name` in `set`; count 0: not known */
	bool looked_up;		     /* `lookup` is valid */
	bool policy_done;	     /* `policy` is valid */
	struct policy_outcome policy;

	/* The chain's state. */
	enum query_phase phase;
	uint8_t next;	  /* index into the phase's row of hooks */
	bool allowed;	  /* filters are over */
	bool chain_begun; /* the chain has zeroed its part: slots, keep */
	bool resumed;	  /* a ticket came back, with: */
	uint8_t resumed_verdict;
	uint16_t keep_used;
	uint8_t would_count;
	struct {
		uint8_t plugin; /* chain index */
		uint8_t verdict;
		uint32_t rule;
	} would[EVENT_WOULD_MAX];

	/* The decision. */
	enum event_verdict verdict; /* EVENT_ALLOW until something else decides */
	uint8_t decided_by;	    /* chain index, or EVENT_NO_PLUGIN */
	struct baleen_why why;
	struct name match;			   /* copy of why.match */
	struct name target;			   /* copy of why.target: CNAME form, rewrite */
	const struct policy_answer *policy_answer; /* of the policy's rule; NULL: `why` says */
	bool failed_closed; /* SERVFAIL because a plugin failed with on-failure: closed */

	/* What became of it, for the event. */
	enum event_cache cache;
	uint8_t upstream_group;
	uint8_t upstream_server; /* index, or EVENT_NO_UPSTREAM */
	uint16_t rcode;
	uint16_t reply_size;
	uint8_t event_answer_count; /* records kept for the event below */
	uint16_t event_answers_size;
	uint8_t event_answers[256]; /* {u16 type, u16 length, octets}* */

	uint64_t ticket; /* taken for this query, 0: none (core/chain/tickets.h) */
	struct baleen_why resumed_why;

	struct query *parked_next; /* worker's lists */
	struct domset_result lookup;
	uint8_t slots[QUERY_SLOT_BYTES]
		__attribute__((aligned(16))); /* zeroed by the first chain_run */
	uint8_t keep[QUERY_KEEP_BYTES];	      /* host->keep(); touched only when used */
};

#endif
