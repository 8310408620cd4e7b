/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a query's way: the reply is written, sent, counted and told to the event ring, and the
 * slot is free again. Worker process. Invariant: a query passes here exactly once, and nothing of
 * it is read after path_settle.
 */
#include "core/dns/path_internal.h"

#include "base/clock.h"
#include "core/dns/listen_tcp.h"
#include "core/dns/listen_udp.h"
#include "core/event.h"

#include <stdlib.h>
#include <string.h>

uint8_t *path_reply_room(struct path *p, const struct query_origin *origin, size_t *max)
{
	if (origin->transport == BALEEN_UDP)
		return udp_reply_room(p->worker->udp, origin->listener, max);
	*max = sizeof(p->reply);
	return p->reply;
}

void path_reply_send(struct path *p, const struct query_origin *origin, const uint8_t *data,
		     size_t size)
{
	if (!size) {
		if (origin->transport == BALEEN_TCP)
			tcp_reply_none(p->worker->tcp, origin);
		return;
	}
	if (origin->transport == BALEEN_UDP)
		udp_reply_send(p->worker->udp, origin, data, size);
	else
		tcp_reply_send(p->worker->tcp, origin, data, size);
	if (data[2] & MESSAGE_TC >> 8)
		path_count(p, METRIC_TRUNCATED);
	if (!p->in_batch)
		event_active(&p->settle, EV_TIMEOUT, 0);
}

/* The query is over; what is left is done with the batch. */
static void finish(struct path_query *pq, const uint8_t *reply, size_t size)
{
	struct path *p = path_of(pq);
	struct query *q = &pq->q;

	q->phase = PHASE_DONE;
	q->reply_size = (uint16_t)size;
	if (size)
		q->rcode = reply[3] & MESSAGE_RCODE;
	path_reply_send(p, &q->origin, reply, size);
	p->finished[p->finished_count++] = pq;
	if (p->finished_count == PATH_FINISHED_MAX)
		path_settle(p);
	else if (!p->in_batch)
		event_active(&p->settle, EV_TIMEOUT, 0);
}

void path_settle(struct path *p)
{
	udp_flush(p->worker->udp);
	if (!p->finished_count)
		return;
	int64_t now_us = clock_monotonic_us();
	for (unsigned i = 0; i < p->finished_count; i++) {
		struct path_query *pq = p->finished[i];
		pq->q.finished_us = now_us;
		path_count(p, (enum metric)(METRIC_VERDICT_ALLOW + pq->q.verdict));
		event_write(&p->worker->ring, &pq->q, p->worker->index);
		free(pq->held.message);
		pq->held.message = NULL;
		path_slot_free(p, pq);
	}
	p->finished_count = 0;
}

void path_restore_question(struct path_query *pq)
{
	struct query *q = &pq->q;
	unsigned labels;

	if (!pq->rewrites)
		return;
	/* The asked name was measured when it came; its length follows from its octets. */
	size_t length = name_measure(q->name_as_asked, NAME_WIRE_MAX, &labels);
	name_lower(q->name_as_asked, length, q->name);
	q->view.name_length = (uint8_t)length;
	q->view.name_labels = (uint8_t)labels;
	q->hashes.count = 0;
	q->looked_up = false;
}

void path_reply_decided(struct path_query *pq)
{
	struct path *p = path_of(pq);
	size_t max;

	path_restore_question(pq);
	uint8_t *room = path_reply_room(p, &pq->q.origin, &max);
	finish(pq, room, answer_decided(&pq->q, room, max));
}

void path_reply_servfail(struct path_query *pq, uint16_t ede)
{
	struct query *q = &pq->q;

	q->verdict = EVENT_ERROR;
	q->decided_by = EVENT_NO_PLUGIN;
	q->policy_answer = NULL;
	q->why.ede = ede;
	path_reply_decided(pq);
}

/* What the event tells of the answer: names and addresses, as far as there is room. */
static bool note_answer(struct writer *w, struct query *q, uint16_t type, const uint8_t *data,
			uint16_t length)
{
	const uint16_t head[2] = {type, length};
	size_t mark = w->at;

	writer_bytes(w, head, sizeof(head));
	writer_bytes(w, data, length);
	if (w->failed) {
		q->event_answers_size = (uint16_t)mark;
		return false;
	}
	q->event_answer_count++;
	q->event_answers_size = (uint16_t)w->at;
	return true;
}

static bool is_name_type(uint16_t type)
{
	return type == TYPE_CNAME || type == TYPE_DNAME || type == TYPE_NS || type == TYPE_PTR;
}

static void note_answers(struct query *q, const struct answer_content *content)
{
	struct writer w = writer_make(q->event_answers, sizeof(q->event_answers));
	struct message_walk walk;
	struct message_record r;
	uint8_t name[NAME_WIRE_MAX];

	if (message_walk_start(&walk, content->message, content->size) < 0)
		return;
	while (message_walk_next(&walk, &r) > 0 && r.section == SECTION_ANSWER) {
		const uint8_t *data = content->message + r.rdata_at;
		size_t length = r.rdata_length;
		if (r.type == TYPE_RRSIG)
			continue;
		if (is_name_type(r.type)) {
			length = message_name(content->message, content->size, r.rdata_at, name,
					      NULL, NULL);
			name_lower(name, length, name);
			data = name;
		}
		if (!note_answer(&w, q, r.type, data, (uint16_t)length))
			return;
	}
}

/* The same from the view, where the hooks' look at it has left one. */
static void note_viewed(struct query *q, const struct baleen_answer *answer)
{
	struct writer w = writer_make(q->event_answers, sizeof(q->event_answers));
	uint8_t name[NAME_WIRE_MAX];

	for (unsigned i = 0; i < answer->record_count; i++) {
		const struct baleen_record *r = &answer->records[i];
		const uint8_t *data = r->rdata;
		size_t length = r->rdata_length;
		if (r->type == TYPE_RRSIG)
			continue;
		if (is_name_type(r->type)) {
			length = message_name(answer->message, answer->message_length,
					      (size_t)(r->rdata - answer->message), name, NULL,
					      NULL);
			name_lower(name, length, name);
			data = name;
		}
		if (!note_answer(&w, q, r->type, data, (uint16_t)length))
			return;
	}
}

void path_reply_content(struct path_query *pq, const struct answer_content *content)
{
	struct path *p = path_of(pq);
	struct query *q = &pq->q;
	size_t max;
	uint8_t *room = path_reply_room(p, &q->origin, &max);
	size_t size;

	if (content->viewed)
		note_viewed(q, &p->view->answer);
	else
		note_answers(q, content);
	if (content->size + MESSAGE_OPT_EDE_SIZE <= max) {
		size = answer_content(q, content, room, max);
	} else {
		/* Larger than a datagram of ours: cut it elsewhere, then move what is left. */
		size = answer_content(q, content, p->reply, sizeof(p->reply));
		if (size > max)
			size = 0;
		memmove(room, p->reply, size);
	}
	if (!size) {
		path_reply_servfail(pq, EDE_NONE);
		return;
	}
	finish(pq, room, size);
}

bool path_combine(struct path_query *pq, struct answer_content *content)
{
	struct path *p = path_of(pq);
	struct query *q = &pq->q;
	struct message_builder b;
	struct message_question question = {
		.name = q->name,
		.length = q->view.name_length,
		.labels = q->view.name_labels,
		.type = q->view.type,
		.rrclass = q->view.rrclass,
	};
	const uint8_t *owner = q->name;
	size_t owner_length = q->view.name_length;

	message_build_start(&b, p->combined, sizeof(p->combined), 0,
			    (uint16_t)(content->message[2] << 8 | content->message[3]), &question);
	for (unsigned i = 0; i < pq->rewrites; i++) {
		const struct name *target = &pq->rewritten[i];
		size_t mark = message_build_begin(&b, SECTION_ANSWER, owner, owner_length,
						  TYPE_CNAME, CLASS_IN, pq->rewrite_ttl[i]);
		message_build_name(&b, target->wire, target->length);
		message_build_end(&b, mark);
		owner = target->wire;
		owner_length = target->length;
	}
	if (message_append(&b, content->message, content->size) < 0)
		return false;
	size_t size = message_build_finish(&b);
	if (!size)
		return false;
	content->message = p->combined;
	content->size = size;
	content->changed = true;
	return true;
}
