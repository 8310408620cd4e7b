/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event as the JSON object of the interface: written by hand, because it is written for every
 * query, and in the interface's order of keys. Logger process (and any sink through the host).
 * Invariant: whatever octets a name or a text holds, the result is one line of strict JSON in
 * UTF-8.
 */
#include "base/addr.h"
#include "base/message_text.h"
#include "base/name.h"
#include "core/event.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Counts on when the room ends, so that the caller learns how much it takes. */
struct event_out {
	char *data;
	size_t size, at;
};

static void out_raw(struct event_out *o, const char *text, size_t length)
{
	if (o->at < o->size) {
		size_t room = o->size - o->at;
		memcpy(o->data + o->at, text, length < room ? length : room);
	}
	o->at += length;
}

static void out_text(struct event_out *o, const char *text)
{
	out_raw(o, text, strlen(text));
}

static void out_number(struct event_out *o, uint64_t n)
{
	char digits[20];
	size_t at = sizeof(digits);
	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	out_raw(o, digits + at, sizeof(digits) - at);
}

/* Length of the well-formed UTF-8 sequence at `p` (RFC 3629), or 0. */
static unsigned utf8_length(const unsigned char *p)
{
	unsigned n = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
		     : (p[0] & 0xf0) == 0xe0	    ? 3
		     : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
						    : 0;
	for (unsigned i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static void out_string(struct event_out *o, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	char escape[8];

	out_raw(o, "\"", 1);
	while (*p) {
		const unsigned char *run = p;
		while (*p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\')
			p++;
		out_raw(o, (const char *)run, (size_t)(p - run));
		if (!*p)
			break;
		unsigned n = *p >= 0x80 ? utf8_length(p) : 0;
		if (n > 0) {
			out_raw(o, (const char *)p, n);
			p += n;
			continue;
		}
		if (*p == '"' || *p == '\\')
			snprintf(escape, sizeof(escape), "\\%c", *p);
		else
			snprintf(escape, sizeof(escape), "\\u%04x", *p);
		out_text(o, escape);
		p++;
	}
	out_raw(o, "\"", 1);
}

static void out_key(struct event_out *o, const char *key)
{
	out_raw(o, o->at == 1 ? "\"" : ",\"", o->at == 1 ? 1 : 2);
	out_text(o, key);
	out_raw(o, "\":", 2);
}

static void out_pair(struct event_out *o, const char *key, const char *text)
{
	out_key(o, key);
	if (text)
		out_string(o, text);
	else
		out_text(o, "null");
}

static void out_pair_number(struct event_out *o, const char *key, uint64_t n)
{
	out_key(o, key);
	out_number(o, n);
}

static void out_pair_name(struct event_out *o, const char *key, const uint8_t *wire)
{
	char text[NAME_TEXT_MAX];
	if (wire)
		name_format(wire, text);
	out_pair(o, key, wire ? text : NULL);
}

static void out_pair_list(struct event_out *o, const char *key, const char *const *items)
{
	out_key(o, key);
	out_raw(o, "[", 1);
	for (size_t i = 0; items && items[i]; i++) {
		if (i > 0)
			out_raw(o, ",", 1);
		out_string(o, items[i]);
	}
	out_raw(o, "]", 1);
}

/* RFC 3339, UTC, microseconds. Seconds change rarely: the broken-down form is kept. */
static void out_pair_time(struct event_out *o, int64_t wall_us)
{
	static int64_t kept_second = INT64_MIN;
	static char kept[32];
	int64_t second = wall_us / 1000000, rest = wall_us % 1000000;
	char text[64];

	if (rest < 0) {
		second--;
		rest += 1000000;
	}
	if (second != kept_second) {
		time_t t = (time_t)second;
		struct tm tm;
		if (!gmtime_r(&t, &tm))
			memset(&tm, 0, sizeof(tm));
		strftime(kept, sizeof(kept), "%Y-%m-%dT%H:%M:%S", &tm);
		kept_second = second;
	}
	snprintf(text, sizeof(text), "%s.%06dZ", kept, (int)rest);
	out_pair(o, "time", text);
}

static const char *event_rcode(uint16_t rcode, char out[16])
{
	static const char *const words[] = {
		[0] = "NOERROR",  [1] = "FORMERR", [2] = "SERVFAIL",  [3] = "NXDOMAIN",
		[4] = "NOTIMP",	  [5] = "REFUSED", [6] = "YXDOMAIN",  [7] = "YXRRSET",
		[8] = "NXRRSET",  [9] = "NOTAUTH", [10] = "NOTZONE",  [11] = "DSOTYPENI",
		[16] = "BADVERS", [17] = "BADKEY", [18] = "BADTIME",  [19] = "BADMODE",
		[20] = "BADNAME", [21] = "BADALG", [22] = "BADTRUNC", [23] = "BADCOOKIE",
	};
	if (rcode < sizeof(words) / sizeof(words[0]) && words[rcode])
		return words[rcode];
	snprintf(out, 16, "RCODE%u", rcode);
	return out;
}

static const char *event_class(uint16_t rrclass, char out[16])
{
	switch (rrclass) {
	case 1:
		return "IN";
	case 3:
		return "CH";
	case 4:
		return "HS";
	case 254:
		return "NONE";
	case 255:
		return "ANY";
	default:
		snprintf(out, 16, "CLASS%u", rrclass);
		return out;
	}
}

static const char *const event_hop_words[] = {"question", "cname", "address", "hint", "payload"};

static const char *const event_would_words[BALEEN_VERDICTS] = {
	[BALEEN_PASS] = "pass",	    [BALEEN_ALLOW] = "allow",	    [BALEEN_BLOCK] = "block",
	[BALEEN_ANSWER] = "answer", [BALEEN_REWRITE] = "rewrite",   [BALEEN_REFUSE] = "refuse",
	[BALEEN_DROP] = "drop",	    [BALEEN_TRUNCATE] = "truncate", [BALEEN_WAIT] = "wait",
	[BALEEN_FAIL] = "fail",
};

static void out_pair_would(struct event_out *o, const struct baleen_event *e)
{
	out_key(o, "would");
	out_raw(o, "[", 1);
	for (uint32_t i = 0; i < e->would_count; i++) {
		const struct baleen_would *w = &e->would[i];
		out_text(o, i ? ",{\"plugin\":" : "{\"plugin\":");
		out_string(o, w->plugin ? w->plugin : "");
		out_text(o, ",\"rule\":");
		if (w->rule)
			out_string(o, w->rule);
		else
			out_text(o, "null");
		out_text(o, ",\"verdict\":");
		out_string(o, event_would_words[w->verdict % BALEEN_VERDICTS]);
		out_raw(o, "}", 1);
	}
	out_raw(o, "]", 1);
}

size_t event_json(const struct baleen_event *event, char *out, size_t size)
{
	struct event_out o = {.data = out, .size = size};
	char client[ADDR_TEXT_MAX], type[MESSAGE_TYPE_TEXT], word[16];
	struct addr addr;

	memcpy(addr.octets, event->client, sizeof(addr.octets));
	addr_format(&addr, client);
	out_raw(&o, "{", 1);
	out_pair_number(&o, "schema", 1);
	out_pair_time(&o, event->wall_us);
	out_pair(&o, "client", client);
	out_pair(&o, "group", event->group);
	out_pair(&o, "transport", event->transport == BALEEN_TCP ? "tcp" : "udp");
	out_pair_number(&o, "id", event->id);
	out_pair_name(&o, "name", event->name);
	out_pair(&o, "type", message_type_format(event->type, type));
	out_pair(&o, "class", event_class(event->rrclass, word));
	out_pair(&o, "verdict", event->verdict);
	out_pair(&o, "plugin", event->plugin);
	out_pair(&o, "rule", event->rule);
	out_pair(&o, "hop", event_hop_words[event->hop <= BALEEN_HOP_PAYLOAD ? event->hop : 0]);
	out_pair(&o, "feed", event->feed);
	out_pair_list(&o, "feeds", event->feeds);
	out_pair(&o, "category", event->category);
	out_pair_name(&o, "match", event->match);
	out_pair(&o, "mode", event->mode);
	out_pair_would(&o, event);
	out_pair(&o, "rcode", event_rcode(event->rcode, word));
	out_pair(&o, "cache", event->cache);
	out_pair(&o, "upstream", event->upstream);
	out_pair_list(&o, "answers", event->answers);
	out_pair_number(&o, "size", event->answer_size);
	out_pair_number(&o, "latency_us", event->latency_us);
	out_pair_number(&o, "worker", event->worker);
	if (event->text)
		out_pair(&o, "text", event->text);
	out_raw(&o, "}", 1);
	return o.at;
}
