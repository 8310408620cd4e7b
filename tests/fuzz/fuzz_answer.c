/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What leaves the house of what upstream sent: the first octets choose the asker (transport, EDNS,
 * its size, DO, AD), the rest is upstream's message. A reply fits what the asker takes, reads
 * whole, carries OPT exactly if the asker did, never AA, and the question as it was asked.
 */
#include "base/message_build.h"
#include "core/dns/answer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t cleaned[MESSAGE_SIZE_MAX], reply[MESSAGE_SIZE_MAX];
static struct query q;

static void check(size_t size, size_t limit)
{
	struct message_walk walk;
	struct message_record record;
	struct message_question question;
	unsigned opts = 0;
	int more;

	if (size > limit || message_walk_start(&walk, reply, size) != 0)
		abort();
	while ((more = message_walk_next(&walk, &record)) == 1)
		opts += record.type == TYPE_OPT;
	if (more < 0 || walk.at != size || opts != q.edns.present || reply[2] & MESSAGE_AA >> 8)
		abort();
	if (!message_question(reply, size, &question) ||
	    memcmp(question.name, q.name_as_asked, q.view.name_length))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct message_facts facts;
	struct message_question question;

	if (size < 4)
		return 0;
	int length = message_clean(data + 4, size - 4, cleaned, sizeof(cleaned), 0, 86400, &facts);
	if (length < 0 || !message_question(cleaned, (size_t)length, &question))
		return 0;
	memcpy(q.name_as_asked, question.name, question.length);
	q.view.name_length = question.length;
	q.view.name_labels = question.labels;
	q.view.type = question.type;
	q.view.rrclass = question.rrclass;
	q.origin.transport = data[0] & 1 ? BALEEN_TCP : BALEEN_UDP;
	q.edns.present = data[0] & 2;
	q.edns.want_dnssec = data[0] & 4;
	q.header_flags = data[0] & 8 ? MESSAGE_AD : 0;
	q.edns.udp_size = MESSAGE_UDP_MIN;
	if (q.edns.present)
		q.edns.udp_size += (uint16_t)((data[1] << 8 | data[2]) % 721);
	struct answer_content content = {
		.message = cleaned,
		.size = (size_t)length,
		.ttls = facts.ttls,
		.ttl_count = facts.ttl_count <= MESSAGE_TTLS_MAX ? facts.ttl_count : 0,
		.age_s = data[3],
		.ede = facts.ede,
	};
	size_t n = answer_content(&q, &content, reply, sizeof(reply));
	/* Only a message that fills the last octet has no room left for OPT. */
	if (n)
		check(n, answer_limit(&q));
	else if (length < MESSAGE_SIZE_MAX - MESSAGE_OPT_EDE_SIZE)
		abort();
	return 0;
}
