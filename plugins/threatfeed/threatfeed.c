/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threatfeed: blocks names that feeds of kind `threat` list, by confidence, category and type of
 * threat; for the question and for every name that its answer leads to. Worker process. Owns its
 * table of feeds, built once per group that differs. Invariant: a shadow feed never blocks, and
 * what cannot be looked up fails instead of passing.
 */
#include <baleen/plugin.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MATCHES_MAX 32 /* feeds that hold one name and are weighed against each other */

enum { METRIC_MATCHES, METRIC_IGNORED };

struct options {
	int64_t min_confidence;
	struct baleen_strings categories;
	struct baleen_strings threat_types;
	int answer;
	uint64_t ttl_ms;

	/* By configure: feed number -> does it count? */
	uint32_t feed_count;
	const uint8_t *takes;
};

static const char *const answers[] = {"nxdomain", "nodata", "zero-ip", "refused", NULL};
static const uint8_t forms[] = {BALEEN_FORM_NXDOMAIN, BALEEN_FORM_NODATA, BALEEN_FORM_ZERO_IP,
				BALEEN_FORM_DEFAULT};
#define ANSWER_REFUSED 3

/* clang-format off */
static const struct baleen_option options[] = {
	{"min-confidence", BALEEN_INTEGER, offsetof(struct options, min_confidence), "60", 0, 100, NULL,
	 "feeds below this confidence do not count"},
	{"categories", BALEEN_STRINGS, offsetof(struct options, categories), NULL, 0, 0, NULL,
	 "only feeds of these categories; none given: all"},
	{"threat-types", BALEEN_STRINGS, offsetof(struct options, threat_types), NULL, 0, 0, NULL,
	 "only feeds of these types of threat; none given: all"},
	{"answer", BALEEN_CHOICE, offsetof(struct options, answer), "nxdomain", 0, 0, answers,
	 "nxdomain, nodata, zero-ip or refused"},
	{"ttl", BALEEN_DURATION, offsetof(struct options, ttl_ms), "60s", 1000, 86400000, NULL,
	 "how long clients may remember a block"},
	{0},
};
/* clang-format on */

static const struct baleen_metric metrics[] = {
	[METRIC_MATCHES] = {"matches", BALEEN_COUNTER, "Names that a feed which counts holds"},
	[METRIC_IGNORED] = {"ignored", BALEEN_COUNTER,
			    "Names that only feeds which do not count hold"},
	{0},
};

static bool among(const struct baleen_strings *list, const char *text)
{
	if (!list->count)
		return true;
	for (size_t i = 0; i < list->count; i++)
		if (strcasecmp(list->items[i], text) == 0)
			return true;
	return false;
}

static int configure(const struct baleen_host *host, void *config, char *error, size_t error_size)
{
	struct options *o = config;
	const struct baleen_feed *feed;
	uint32_t n = 0;

	while (host->feed(host, n))
		n++;
	uint8_t *takes = host->alloc(host, n + 1);
	if (!takes) {
		snprintf(error, error_size, "out of memory");
		return -1;
	}
	for (uint32_t i = 0; i < n; i++) {
		feed = host->feed(host, i);
		takes[i] = feed->kind == BALEEN_FEED_THREAT && !feed->shadow &&
			   feed->confidence >= o->min_confidence &&
			   among(&o->categories, feed->category) &&
			   among(&o->threat_types, feed->threat_type);
	}
	o->takes = takes;
	o->feed_count = n;
	return 0;
}

/* Of the feeds that count: the deepest match, of those the most confident. */
static const struct baleen_match *best_of(const struct baleen_host *host, const struct options *o,
					  const struct baleen_match *matches, uint32_t count)
{
	const struct baleen_match *best = NULL;

	for (uint32_t i = 0; i < count; i++) {
		const struct baleen_match *m = &matches[i];
		if (m->feed >= o->feed_count || !o->takes[m->feed])
			continue;
		if (!best || m->labels > best->labels ||
		    (m->labels == best->labels && host->feed(host, m->feed)->confidence >
							  host->feed(host, best->feed)->confidence))
			best = m;
	}
	return best;
}

/* The suffix of a wire name that has `labels` labels. */
static const uint8_t *suffix(const uint8_t *name, uint8_t labels)
{
	unsigned have = 0;

	for (const uint8_t *p = name; *p; p += *p + 1)
		have++;
	for (; have > labels; have--)
		name += *name + 1;
	return name;
}

static enum baleen_verdict judge(struct baleen_call *call, const uint8_t *name, uint8_t length,
				 enum baleen_hop hop)
{
	const struct options *o = call->config;
	const struct baleen_host *host = call->host;
	struct baleen_match matches[MATCHES_MAX];
	struct baleen_why *why = call->why;

	uint32_t count = host->lookup(call, name, length, matches, MATCHES_MAX);
	if (count == 0)
		return BALEEN_PASS;
	if (count == BALEEN_NONE) {
		why->text = "the domain set is damaged";
		return BALEEN_FAIL;
	}
	const struct baleen_match *m =
		best_of(host, o, matches, count < MATCHES_MAX ? count : MATCHES_MAX);
	if (!call->dry_run)
		host->count(host, m ? METRIC_MATCHES : METRIC_IGNORED, 1);
	if (!m)
		return BALEEN_PASS;
	const struct baleen_feed *feed = host->feed(host, m->feed);
	why->feed = m->feed;
	why->hop = (uint8_t)hop;
	why->match = suffix(name, m->labels);
	why->match_length = (uint8_t)(length - (why->match - name));
	why->exact = m->exact;
	why->category = feed->category[0] ? feed->category : NULL;
	why->text = feed->threat_type[0] ? feed->threat_type : NULL;
	why->form = forms[o->answer];
	why->ttl = (uint32_t)(o->ttl_ms / 1000);
	return o->answer == ANSWER_REFUSED ? BALEEN_REFUSE : BALEEN_BLOCK;
}

static enum baleen_verdict on_query(struct baleen_call *call)
{
	return judge(call, call->query->name, call->query->name_length, BALEEN_HOP_QUESTION);
}

static enum baleen_verdict on_answer(struct baleen_call *call)
{
	const struct baleen_answer *a = call->answer;

	for (unsigned i = 0; i < a->record_count; i++) {
		const struct baleen_record *r = &a->records[i];
		/* "." in HTTPS and SVCB means the owner. */
		if (r->target_length <= 1)
			continue;
		bool service = r->type == 64 || r->type == 65; /* SVCB, HTTPS */
		enum baleen_verdict verdict = judge(call, r->target, r->target_length,
						    service ? BALEEN_HOP_HINT : BALEEN_HOP_CNAME);
		if (verdict != BALEEN_PASS)
			return verdict;
	}
	return BALEEN_PASS;
}

static const struct baleen_plugin plugin = {
	.size = sizeof(plugin),
	.major = BALEEN_PLUGIN_MAJOR,
	.minor = BALEEN_PLUGIN_MINOR,
	.name = "threatfeed",
	.version = "1.0",
	.summary = "Block names that feeds of kind threat list, by confidence and category",
	.kind = BALEEN_FILTER,
	.options = options,
	.config_size = sizeof(struct options),
	.metrics = metrics,
	.configure = configure,
	.on_query = on_query,
	.on_answer = on_answer,
};

const struct baleen_plugin *baleen_plugin_entry(const struct baleen_host *host)
{
	(void)host;
	return &plugin;
}
