/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A response policy zone as a list: a zone file (RFC 1035 section 5) whose QNAME triggers are the
 * names. The zone's apex is cut off their owners; where the file never says how the zone is called,
 * relative owners are the names.
 *
 *   x    CNAME .  |  *.  |  rpz-drop.        x alone is blocked        *.x: what lies below x
 *   x    A 0.0.0.0 (also ::, 127.0.0.1)      the same
 *   x    CNAME rpz-passthru.  |  x.          an exception
 *   x    CNAME y.   A 192.0.2.1   TXT ...    leads elsewhere: rejected
 *   rpz-tcp-only., rpz-ip, rpz-client-ip, rpz-nsip, rpz-nsdname          not applied
 *
 * Apex records and DNSSEC say nothing. A wrong record is rejected alone: the next begins on the
 * next line, parentheses notwithstanding, once one is too long. State: the record that is being
 * joined, and what it is relative to. Runs in the fetcher and in `feeds compile`.
 */
#include "feeds/formats/entry.h"

#include "feeds/formats/lines.h"
#include "feeds/set/domset.h"

#include <string.h>
#include <strings.h>

#define RPZ_OWNER_MAX  1024 /* 255 octets, each written as an escape of four */
#define RPZ_RECORD_MAX (2 * LINES_MAX)
#define RPZ_LINES_MAX  64 /* of one record; more is an open parenthesis */

struct rpz_name {
	bool known; /* from the root; else relative to a zone without a name */
	bool overlong;
	size_t length;
	char text[RPZ_OWNER_MAX]; /* without the last dot */
};

struct rpz_state {
	struct rpz_name origin, owner, zone;
	bool has_zone;
	unsigned depth, lines;
	bool overlong;
	uint64_t line_number;
	size_t length;
	char text[RPZ_RECORD_MAX];
};

static bool rpz_is(struct entry_text t, const char *word)
{
	return t.length == strlen(word) && strncasecmp(t.at, word, t.length) == 0;
}

static bool rpz_is_one_of(struct entry_text t, const char *const *words)
{
	for (; *words; words++)
		if (rpz_is(t, *words))
			return true;
	return false;
}

/* Is the octet at `at` behind a backslash that is not itself behind one? */
static bool rpz_is_escaped(const char *text, size_t at)
{
	size_t n = 0;
	while (n < at && text[at - 1 - n] == '\\')
		n++;
	return n % 2 == 1;
}

static void rpz_resolve(const struct rpz_name *origin, struct entry_text t, struct rpz_name *out)
{
	if (rpz_is(t, "@")) {
		if (out != origin)
			*out = *origin;
		return;
	}
	struct rpz_name n = {.known = true};
	bool absolute = t.at[t.length - 1] == '.' && !rpz_is_escaped(t.at, t.length - 1);
	t.length -= absolute;
	size_t more = absolute || origin->length == 0 ? 0 : origin->length + 1;
	n.known = absolute || origin->known;
	n.overlong = t.length + more > sizeof(n.text) || (!absolute && origin->overlong);
	if (!n.overlong) {
		memcpy(n.text, t.at, t.length);
		n.length = t.length + more;
		if (more) {
			n.text[t.length] = '.';
			memcpy(n.text + t.length + 1, origin->text, origin->length);
		}
	}
	*out = n;
}

/* The owner without the zone: 1 and *out, 0 for the apex, -1 outside. */
static int rpz_trigger(const struct rpz_state *s, struct entry_text *out)
{
	const struct rpz_name *owner = &s->owner, *zone = &s->zone;
	*out = (struct entry_text){owner->text, owner->length};
	if (!s->has_zone)
		return owner->known ? -1 : owner->length > 0;
	if (owner->known != zone->known)
		return -1;
	if (zone->length == 0)
		return owner->length > 0;
	if (owner->length < zone->length ||
	    strncasecmp(owner->text + owner->length - zone->length, zone->text, zone->length) != 0)
		return -1;
	if (owner->length == zone->length)
		return 0;
	size_t dot = owner->length - zone->length - 1;
	if (dot == 0 || owner->text[dot] != '.' || rpz_is_escaped(owner->text, dot))
		return -1;
	out->length = dot;
	return 1;
}

static void rpz_reject(const struct feed_body *body, enum feed_reject reason)
{
	const struct rpz_state *s = body->state;
	body->sink->reject(body->sink->context, reason, s->line_number, s->text, s->length);
}

static bool rpz_is_other_trigger(struct entry_text t)
{
	static const char *const kinds[] = {"rpz-ip", "rpz-client-ip", "rpz-nsip", "rpz-nsdname",
					    NULL};
	const char *dot = memrchr(t.at, '.', t.length);
	if (dot)
		t = (struct entry_text){dot + 1, t.length - (size_t)(dot + 1 - t.at)};
	return rpz_is_one_of(t, kinds);
}

enum rpz_action { RPZ_BLOCK, RPZ_PASS, RPZ_ELSEWHERE, RPZ_NOT_APPLIED, RPZ_WRONG };

static enum rpz_action rpz_action(struct entry_text type, struct entry_text data,
				  struct entry_text trigger)
{
	static const char *const local[] = {"TXT", "MX",    "PTR",   "SRV", "HTTPS", "SVCB",
					    "CAA", "NAPTR", "DNAME", "SPF", "TLSA",  NULL};
	static const char *const blocks[] = {".", "*.", "rpz-drop.", NULL};
	struct entry_text target;
	if (rpz_is_one_of(type, local))
		return RPZ_ELSEWHERE;
	if (!entry_token(&data, &target))
		return RPZ_WRONG;
	if (rpz_is(type, "A") || rpz_is(type, "AAAA")) {
		int blocked = entry_is_block_address(target);
		return blocked < 0 ? RPZ_WRONG : blocked ? RPZ_BLOCK : RPZ_ELSEWHERE;
	}
	if (!rpz_is(type, "CNAME"))
		return RPZ_WRONG;
	if (rpz_is_one_of(target, blocks))
		return RPZ_BLOCK;
	if (rpz_is(target, "rpz-passthru."))
		return RPZ_PASS;
	if (rpz_is(target, "rpz-tcp-only."))
		return RPZ_NOT_APPLIED;
	/* A name that leads to itself: how passthru was written at first. */
	if (target.length == trigger.length + 1 &&
	    strncasecmp(target.at, trigger.at, trigger.length) == 0 &&
	    target.at[trigger.length] == '.')
		return RPZ_PASS;
	return RPZ_ELSEWHERE;
}

static int rpz_rule(struct feed_body *body, struct entry_text type, struct entry_text data)
{
	const struct rpz_state *s = body->state;
	struct entry_text trigger;
	const struct feed_line line = {s->text, s->length, s->line_number};
	int place = rpz_trigger(s, &trigger);
	if (place == 0)
		return 0;
	if (place < 0 || s->owner.overlong) {
		rpz_reject(body, s->owner.overlong ? FEED_REJECT_NAME : FEED_REJECT_ZONE);
		return 0;
	}
	enum rpz_action action =
		rpz_is_other_trigger(trigger) ? RPZ_NOT_APPLIED : rpz_action(type, data, trigger);
	static const enum feed_reject reasons[] = {
		[RPZ_ELSEWHERE] = FEED_REJECT_REDIRECT,
		[RPZ_NOT_APPLIED] = FEED_REJECT_UNSUPPORTED,
		[RPZ_WRONG] = FEED_REJECT_SYNTAX,
	};
	if (action >= RPZ_ELSEWHERE) {
		rpz_reject(body, reasons[action]);
		return 0;
	}
	uint16_t flags = DOMSET_EXACT;
	if (trigger.length > 2 && trigger.at[0] == '*' && trigger.at[1] == '.') {
		trigger = (struct entry_text){trigger.at + 2, trigger.length - 2};
		flags = DOMSET_BELOW;
	}
	if (action == RPZ_PASS)
		flags = DOMSET_EXCEPT(flags);
	return entry_deliver(body->sink, &line, trigger.at, trigger.length, flags);
}

static void rpz_directive(struct feed_body *body, struct entry_text rest)
{
	struct rpz_state *s = body->state;
	struct entry_text word, name;
	entry_token(&rest, &word);
	if (rpz_is(word, "$ORIGIN") && entry_token(&rest, &name))
		rpz_resolve(&s->origin, name, &s->origin);
	else if (!rpz_is(word, "$TTL"))
		rpz_reject(body, FEED_REJECT_UNSUPPORTED);
}

/* The first SOA record says how the zone is called; without one, the first origin does. */
static void rpz_name_zone(struct rpz_state *s, bool is_soa)
{
	if (s->has_zone || (!is_soa && !s->origin.known))
		return;
	s->has_zone = true;
	s->zone = is_soa ? s->owner : s->origin;
	if (!s->origin.known)
		s->origin = s->zone;
}

static int rpz_record(struct feed_body *body)
{
	static const char *const silent[] = {"SOA",	"NS",	      "RRSIG",	   "NSEC",
					     "NSEC3",	"NSEC3PARAM", "DNSKEY",	   "CDS",
					     "CDNSKEY", "ZONEMD",     "TYPE65534", NULL};
	static const char *const classes[] = {"IN", "CH", "HS", "ANY", NULL};
	struct rpz_state *s = body->state;
	struct entry_text rest = {s->text, s->length}, word;
	bool has_owner = s->text[0] != ' ' && s->text[0] != '\t';
	if (has_owner && s->text[0] == '$') {
		rpz_directive(body, rest);
		return 0;
	}
	if (has_owner) {
		entry_token(&rest, &word);
		rpz_resolve(&s->origin, word, &s->owner);
	}
	do {
		if (!entry_token(&rest, &word)) {
			rpz_reject(body, FEED_REJECT_SYNTAX);
			return 0;
		}
	} while ((word.at[0] >= '0' && word.at[0] <= '9') || rpz_is_one_of(word, classes));
	rpz_name_zone(s, rpz_is(word, "SOA"));
	return rpz_is_one_of(word, silent) ? 0 : rpz_rule(body, word, rest);
}

/* Append a line without its comment, parentheses as blanks. */
static void rpz_join(struct rpz_state *s, const struct feed_line *line)
{
	bool quoted = false, escaped = false;
	for (size_t i = 0; i < line->length; i++) {
		char c = line->text[i];
		if (!escaped && c == '"')
			quoted = !quoted;
		if (!escaped && !quoted) {
			if (c == ';')
				break;
			if (c == '(')
				s->depth++;
			else if (c == ')' && s->depth > 0)
				s->depth--;
			if (c == '(' || c == ')')
				c = ' ';
		}
		escaped = !escaped && c == '\\';
		if (s->length == sizeof(s->text))
			s->overlong = true;
		else
			s->text[s->length++] = c;
	}
}

static int rpz_line(struct feed_body *body, const struct feed_line *line)
{
	struct rpz_state *s = body->state;
	if (s->lines == 0)
		s->line_number = line->number;
	else if (s->length < sizeof(s->text))
		s->text[s->length++] = ' ';
	rpz_join(s, line);
	s->lines++;
	int result = 0;
	bool open = s->depth > 0;
	if (open && s->lines < RPZ_LINES_MAX && !s->overlong)
		return 0;
	if (open || s->overlong)
		rpz_reject(body, FEED_REJECT_LONG);
	else if (entry_trim(s->text, s->length).length > 0)
		result = rpz_record(body);
	s->length = s->lines = s->depth = 0;
	s->overlong = false;
	return result;
}

static int rpz_end(struct feed_body *body)
{
	const struct rpz_state *s = body->state;
	if (s->lines > 0)
		rpz_reject(body, FEED_REJECT_SYNTAX);
	return 0;
}

static int rpz_judge(struct entry_text line)
{
	static const char *const types[] = {"CNAME", "SOA", "NS", "A", "AAAA", "TXT", NULL};
	struct entry_text word;
	if (line.length == 0 || line.at[0] == ';')
		return -1;
	if (line.at[0] == '$')
		return 1;
	/* The numbers of a SOA record that stand on lines of their own. */
	if (line.at[0] == ')' || !entry_token(&line, &word))
		return -1;
	if (word.at[0] >= '0' && word.at[0] <= '9' && !memchr(word.at, '.', word.length) &&
	    (!entry_token(&line, &word) || word.at[0] == ';' || word.at[0] == ')'))
		return -1;
	for (int i = 0; i < 4; i++) {
		if (i > 0 && !entry_token(&line, &word))
			return 0;
		if (rpz_is_one_of(word, types))
			return 1;
	}
	return 0;
}

static int rpz_recognise(const char *head, size_t size)
{
	return entry_likeness(head, size, rpz_judge);
}

const struct feed_format feed_format_rpz = {
	.name = "rpz",
	.help = "a response policy zone file: its QNAME triggers",
	.default_match = FEED_MATCH_FORMAT,
	.state_size = sizeof(struct rpz_state),
	.line = rpz_line,
	.end = rpz_end,
	.recognise = rpz_recognise,
};
