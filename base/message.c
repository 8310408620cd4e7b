/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading DNS messages. Called by workers on every packet from clients and upstreams, and by the
 * offline commands. Owns nothing. Invariant: no octet is read but through a cursor over the whole
 * message, so a hostile length or pointer can only make the reading fail.
 */
#include "base/message.h"

#include "base/cursor.h"

#include <errno.h>

#define NAME_HOPS_MAX 127 /* as many as a name can have labels */

static uint16_t load16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

bool message_header(const uint8_t *data, size_t size, struct message_header *out)
{
	struct cursor c = cursor_make(data, size);
	const uint8_t *p = cursor_take(&c, MESSAGE_HEADER_SIZE);

	if (!p) {
		*out = (struct message_header){0};
		return false;
	}
	out->id = load16(p);
	out->flags = load16(p + 2);
	out->questions = load16(p + 4);
	for (unsigned i = 0; i < 3; i++)
		out->records[i] = load16(p + 6 + 2 * i);
	return true;
}

size_t message_question(const uint8_t *data, size_t size, struct message_question *out)
{
	struct cursor c = cursor_make(data, size);
	unsigned labels;

	out->name = NULL;
	cursor_skip(&c, MESSAGE_HEADER_SIZE);
	if (!cursor_ok(&c))
		return 0;
	/* A pointer could only point into the header here, so none is legitimate. */
	size_t length = name_measure(data + c.at, cursor_left(&c), &labels);
	if (!length)
		return 0;
	const uint8_t *name = cursor_take(&c, length + 4);
	if (!name)
		return 0;
	out->type = load16(name + length);
	out->rrclass = load16(name + length + 2);
	out->name = name;
	out->length = (uint8_t)length;
	out->labels = (uint8_t)labels;
	return c.at;
}

size_t message_name(const uint8_t *data, size_t size, size_t at, uint8_t out[NAME_WIRE_MAX],
		    unsigned *labels, size_t *end)
{
	struct cursor c = cursor_make(data, size);
	size_t length = 0;
	size_t start = at; /* of the run of labels being read: a pointer must go before it */
	unsigned count = 0;
	unsigned hops = 0;

	cursor_skip(&c, at);
	for (;;) {
		uint8_t n = cursor_u8(&c);
		if (!cursor_ok(&c))
			return 0;
		if (n >= 0xc0) {
			size_t target = (size_t)(n & 0x3f) << 8 | cursor_u8(&c);
			if (!cursor_ok(&c) || target >= start || target < MESSAGE_HEADER_SIZE ||
			    ++hops > NAME_HOPS_MAX)
				return 0;
			if (hops == 1 && end)
				*end = c.at;
			start = target;
			c.at = target;
			continue;
		}
		if (n > NAME_LABEL_MAX || length + 1 + n + (n ? 1 : 0) > NAME_WIRE_MAX)
			return 0;
		const uint8_t *label = cursor_take(&c, n);
		if (!label)
			return 0;
		out[length++] = n;
		if (!n)
			break;
		memcpy(out + length, label, n);
		length += n;
		count++;
	}
	if (!hops && end)
		*end = c.at;
	if (labels)
		*labels = count;
	return length;
}

/* Step over a name without copying it: what it points to is looked at by who reads it. */
static void skip_name(struct cursor *c)
{
	size_t length = 0;

	for (;;) {
		uint8_t n = cursor_u8(c);
		if (n >= 0xc0) {
			cursor_skip(c, 1);
			return;
		}
		length += (size_t)n + 1;
		if (n > NAME_LABEL_MAX || length > NAME_WIRE_MAX)
			c->failed = true;
		cursor_skip(c, n);
		if (!n || !cursor_ok(c))
			return;
	}
}

int message_walk_start(struct message_walk *w, const uint8_t *data, size_t size)
{
	struct message_header header;
	struct cursor c = cursor_make(data, size);

	if (!message_header(data, size, &header))
		return -EBADMSG;
	cursor_skip(&c, MESSAGE_HEADER_SIZE);
	for (unsigned i = 0; i < header.questions && cursor_ok(&c); i++) {
		skip_name(&c);
		cursor_skip(&c, 4);
	}
	if (!cursor_ok(&c))
		return -EBADMSG;
	*w = (struct message_walk){.data = data, .size = size, .at = c.at};
	memcpy(w->left, header.records, sizeof(w->left));
	return 0;
}

int message_walk_next(struct message_walk *w, struct message_record *out)
{
	while (w->section < 3 && !w->left[w->section])
		w->section++;
	if (w->section == 3)
		return 0;
	w->left[w->section]--;

	struct cursor c = cursor_make(w->data, w->size);
	cursor_skip(&c, w->at);
	out->at = w->at;
	out->section = (enum message_section)(w->section + 1);
	skip_name(&c);
	const uint8_t *p = cursor_take(&c, 10);
	if (!p)
		return -EBADMSG;
	out->type = load16(p);
	out->rrclass = load16(p + 2);
	out->ttl_at = c.at - 6;
	out->ttl = (uint32_t)load16(p + 4) << 16 | load16(p + 6);
	out->rdata_length = load16(p + 8);
	out->rdata_at = c.at;
	if (!cursor_take(&c, out->rdata_length))
		return -EBADMSG;
	out->end = w->at = c.at;
	return 1;
}

int message_opt(const uint8_t *data, const struct message_record *record, struct message_opt *out)
{
	struct cursor c = cursor_make(data, record->end);

	*out = (struct message_opt){.present = true};
	cursor_skip(&c, record->at);
	if (cursor_u8(&c) != 0)
		return -EBADMSG;
	out->udp_size = record->rrclass;
	out->extended_rcode = (uint8_t)(record->ttl >> 24);
	out->version = (uint8_t)(record->ttl >> 16);
	out->want_dnssec = record->ttl & 0x8000;
	cursor_skip(&c, record->rdata_at - c.at);
	while (cursor_left(&c)) {
		uint16_t code = cursor_u16(&c);
		uint16_t length = cursor_u16(&c);
		const uint8_t *value = cursor_take(&c, length);
		if (!value)
			return -EBADMSG;
		if (code != EDNS_OPTION_EDE || out->has_ede || length < 2)
			continue;
		out->has_ede = true;
		out->ede = (uint16_t)(value[0] << 8 | value[1]);
		out->ede_text = value + 2;
		out->ede_text_length = (uint16_t)(length - 2);
	}
	return cursor_ok(&c) ? 0 : -EBADMSG;
}

enum message_result message_parse_query(const uint8_t *data, size_t size, struct message_query *out)
{
	struct message_walk walk = {.data = data, .size = size};
	struct message_record record;
	int more;

	out->question.name = NULL;
	out->opt = (struct message_opt){.present = false};
	if (!message_header(data, size, &out->header) || out->header.flags & MESSAGE_QR)
		return MESSAGE_SILENCE;
	if (out->header.flags & MESSAGE_OPCODE)
		return MESSAGE_NOTIMP;
	if (out->header.questions != 1)
		return MESSAGE_FORMERR;
	walk.at = message_question(data, size, &out->question);
	if (!walk.at)
		return MESSAGE_FORMERR;
	/* Only IXFR carries a record (its SOA) in front of the additional section. */
	if (out->header.records[0] || (out->header.records[1] && out->question.type != TYPE_IXFR))
		return MESSAGE_FORMERR;
	memcpy(walk.left, out->header.records, sizeof(walk.left));
	while ((more = message_walk_next(&walk, &record)) > 0) {
		if (record.type != TYPE_OPT)
			continue;
		if (record.section != SECTION_ADDITIONAL || out->opt.present ||
		    message_opt(data, &record, &out->opt) < 0)
			return MESSAGE_FORMERR;
	}
	if (more < 0 || walk.at != size || out->question.type == TYPE_OPT)
		return MESSAGE_FORMERR;
	return out->opt.present && out->opt.version ? MESSAGE_BADVERS : MESSAGE_OK;
}

bool message_answers(const uint8_t *data, size_t size, uint16_t id, const uint8_t *name,
		     size_t length, uint16_t type, uint16_t rrclass)
{
	struct message_header header;
	struct message_question question;
	uint8_t lower[NAME_WIRE_MAX];

	if (!message_header(data, size, &header) || header.id != id ||
	    (header.flags & (MESSAGE_QR | MESSAGE_OPCODE)) != MESSAGE_QR || header.questions != 1 ||
	    !message_question(data, size, &question))
		return false;
	if (question.type != type || question.rrclass != rrclass || question.length != length)
		return false;
	name_lower(question.name, question.length, lower);
	return !memcmp(lower, name, length);
}
