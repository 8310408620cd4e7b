/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a packet to a query: parse, refuse who may not ask, find the group. Worker process. Owns
 * nothing. Invariant: what is not a well-formed query of class IN from an allowed client is
 * answered, or ignored, right here, and no plugin ever sees it.
 */
#include "core/dns/path_internal.h"

#include "base/clock.h"
#include "core/dns/query_of_death.h"
#include "core/event.h"

#include <string.h>

void path_tick(struct path *p)
{
	p->monotonic_us = clock_monotonic_us();
	p->wall_us = clock_wall_us();
}

/* Our own packets, come back by spoofing or a loop; and port 0, which cannot be answered. */
static bool from_ourselves(const struct path *p, const struct query_origin *origin)
{
	const struct config *config = &p->worker->generation->config;

	if (!origin->client.port)
		return true;
	for (size_t i = 0; i < config->listener_count; i++) {
		const struct endpoint *e = &config->listeners[i].endpoint;
		if (e->port == origin->client.port &&
		    (addr_equal(&e->addr, &origin->client.addr) ||
		     (origin->wildcard && addr_equal(&origin->local, &origin->client.addr))))
			return true;
	}
	return false;
}

/* Strangers get no reply that they could aim at someone else. */
static void reply_malformed(struct path *p, const struct query_origin *origin, bool allowed,
			    enum message_result result, const struct message_query *parsed)
{
	size_t max;
	uint8_t *room = path_reply_room(p, origin, &max);

	path_reply_send(p, origin, room, allowed ? answer_malformed(result, parsed, room, max) : 0);
	path_count(p, METRIC_MALFORMED);
}

static uint16_t effective_udp_size(const struct message_opt *opt)
{
	if (!opt->present || opt->udp_size < MESSAGE_UDP_MIN)
		return MESSAGE_UDP_MIN;
	return opt->udp_size > MESSAGE_UDP_MAX ? MESSAGE_UDP_MAX : opt->udp_size;
}

static uint8_t view_flags(const struct message_query *m)
{
	return (uint8_t)((m->header.flags & MESSAGE_RD ? BALEEN_QUERY_RD : 0) |
			 (m->header.flags & MESSAGE_CD ? BALEEN_QUERY_CD : 0) |
			 (m->header.flags & MESSAGE_AD ? BALEEN_QUERY_AD : 0) |
			 (m->opt.want_dnssec ? BALEEN_QUERY_DO : 0) |
			 (m->opt.present ? BALEEN_QUERY_EDNS : 0));
}

/* Every field that anyone reads before writing; the big arrays are guarded by their lengths. */
static void query_init(struct path *p, struct path_query *pq, const struct message_query *m,
		       const struct query_origin *origin)
{
	struct query *q = &pq->q;

	q->worker = p->worker;
	memcpy(q->name_as_asked, m->question.name, m->question.length);
	name_lower(m->question.name, m->question.length, q->name);
	memcpy(q->client, origin->client.addr.octets, 16);
	q->header_flags = m->header.flags;
	q->origin = *origin;
	q->edns = (struct query_edns){
		.present = m->opt.present,
		.version = m->opt.version,
		.udp_size = effective_udp_size(&m->opt),
		.want_dnssec = m->opt.want_dnssec,
	};
	q->received_us = p->monotonic_us;
	q->finished_us = 0;
	q->view = (struct baleen_query){
		.size = sizeof(q->view),
		.type = m->question.type,
		.rrclass = m->question.rrclass,
		.name = q->name,
		.name_length = m->question.length,
		.name_labels = m->question.labels,
		.transport = origin->transport,
		.flags = view_flags(m),
		.id = m->header.id,
		.client_port = origin->client.port,
		.udp_size = q->edns.udp_size,
		.client = q->client,
		.monotonic_ms = p->monotonic_us / 1000,
		.wall_us = p->wall_us,
	};
	q->set = p->worker->set;
	q->hashes.count = 0;
	q->looked_up = false;
	q->policy_done = false;
	q->phase = PHASE_CLIENT;
	q->next = 0;
	q->allowed = false;
	q->chain_begun = false;
	q->resumed = false;
	q->keep_used = 0;
	q->would_count = 0;
	path_forget_decision(q);
	q->failed_closed = false;
	q->cache = EVENT_CACHE_NONE;
	q->upstream_group = 0;
	q->upstream_server = EVENT_NO_UPSTREAM;
	q->rcode = 0;
	q->reply_size = 0;
	q->event_answer_count = 0;
	q->event_answers_size = 0;
	q->ticket = 0;
	q->parked_next = NULL;
	pq->parked = false;
	pq->has_stale = false;
	pq->final = false;
	pq->rewrites = 0;
	pq->held.message = NULL;
}

/* Answer what is no plugin's decision, and have it in the log. */
static void refuse(struct path_query *pq, enum event_verdict verdict, uint16_t ede)
{
	pq->q.verdict = verdict;
	pq->q.why.ede = ede;
	path_reply_decided(pq);
}

/* Types that are no data: zone transfers and what never was meant for a forwarder. */
static bool is_meta(uint16_t type)
{
	return type >= 128 && type < TYPE_ANY;
}

struct path_query *path_begin(struct path *p, const uint8_t *data, size_t size,
			      const struct query_origin *origin)
{
	struct worker *w = p->worker;
	struct message_query m;
	uint32_t group;
	enum message_result result = message_parse_query(data, size, &m);

	if (result == MESSAGE_SILENCE || from_ourselves(p, origin)) {
		path_count(p, METRIC_IGNORED);
		path_reply_send(p, origin, NULL, 0);
		return NULL;
	}
	bool allowed = client_memo_find(&p->clients, w->generation, &origin->client.addr,
					origin->listener, &group);
	if (result != MESSAGE_OK) {
		reply_malformed(p, origin, allowed, result, &m);
		return NULL;
	}
	path_count(p, origin->transport == BALEEN_TCP ? METRIC_QUERIES_TCP : METRIC_QUERIES_UDP);
	struct path_query *pq = path_slot(p);
	if (!pq) {
		path_count(p, METRIC_PARKED_SHED);
		path_reply_send(p, origin, NULL, 0);
		return NULL;
	}
	query_init(p, pq, &m, origin);
	pq->q.view.group = group;
	if (!allowed) {
		path_count(p, METRIC_ACL_REFUSED);
		refuse(pq, EVENT_REFUSE, EDE_PROHIBITED);
		return NULL;
	}
	if (m.question.rrclass != CLASS_IN || is_meta(m.question.type)) {
		refuse(pq, EVENT_REFUSE, EDE_NOT_SUPPORTED);
		return NULL;
	}
	if (query_of_death_listed(w->shm, pq->q.name, pq->q.view.name_length, pq->q.view.type,
				  pq->q.view.monotonic_ms)) {
		path_count(p, METRIC_QUERY_OF_DEATH);
		refuse(pq, EVENT_ERROR, EDE_NONE);
		return NULL;
	}
	if (pq->q.set)
		domset_prefetch(pq->q.set, pq->q.name, pq->q.view.name_length,
				pq->q.view.name_labels, &pq->q.hashes);
	path_key(pq);
	return pq;
}
