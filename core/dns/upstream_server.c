/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which server of a group is asked, and what is known of its health. Each worker learns for itself;
 * probing rides on real questions, sent a second time, so that nobody waits for a probe. Invariant:
 * a server that is down is only ever the first choice when all of its group are.
 */
#include "core/dns/upstream_internal.h"

#include "base/hash.h"
#include "base/log.h"

#define FALL		4   /* signs of trouble in a row until a server is down */
#define RISE		2   /* answers in a row until it is up again */
#define SILENCE_MS	500 /* and for how long nothing must have been heard */
#define PROBE_MS	1000
#define EXPLORE_ONE_IN	32
#define WAIT_UNKNOWN_US 400000
#define WAIT_MIN_US	50000

static bool eligible(const struct flight *f, const struct server *s)
{
	return f->state[s->index] == SERVER_FRESH && s->out < FLIGHTS_SERVER_MAX;
}

/* Lower is better. One that was never asked comes first, so that it is. */
static uint64_t cost(const struct server *s)
{
	uint64_t order = s->group->config->strategy == STRATEGY_ORDERED ? s->index : s->srtt_us;

	return (uint64_t)s->down << 40 | order;
}

struct server *server_choose(struct flight *f)
{
	struct group *g = f->group;
	struct server *best = NULL;

	for (size_t i = 0; i < g->server_count; i++) {
		struct server *s = &g->servers[i];
		if (eligible(f, s) && (!best || cost(s) < cost(best)))
			best = s;
	}
	return best;
}

struct server *server_to_probe(struct flight *f, const struct server *chosen, int64_t now_ms)
{
	struct group *g = f->group;

	for (size_t i = 0; i < g->server_count; i++) {
		struct server *s = &g->servers[i];
		if (s == chosen || !eligible(f, s))
			continue;
		if (s->down && now_ms >= s->probe_ms) {
			s->probe_ms = now_ms + PROBE_MS;
			return s;
		}
	}
	if (g->config->strategy != STRATEGY_FASTEST || g->server_count < 2 ||
	    hash_random() % EXPLORE_ONE_IN)
		return NULL;
	struct server *s = &g->servers[hash_random() % g->server_count];
	return s != chosen && !s->down && eligible(f, s) ? s : NULL;
}

static void say(struct server *s, const char *what, int64_t now_ms)
{
	char text[ENDPOINT_TEXT_MAX];
	uint64_t held;

	if (log_limit(&s->log, now_ms, &held))
		log_info("upstream %s (%s) is %s", endpoint_format(&s->endpoint, text),
			 s->group->config->name, what);
}

/* RFC 6298's estimator. */
void server_answered(struct server *s, int64_t rtt_us, int64_t now_ms)
{
	uint32_t rtt = rtt_us < 1 ? 1 : rtt_us > 10000000 ? 10000000 : (uint32_t)rtt_us;

	if (!s->srtt_us) {
		s->srtt_us = rtt;
		s->rttvar_us = rtt / 2;
	} else {
		uint32_t off = s->srtt_us > rtt ? s->srtt_us - rtt : rtt - s->srtt_us;
		s->rttvar_us = s->rttvar_us - s->rttvar_us / 4 + off / 4;
		s->srtt_us = s->srtt_us - s->srtt_us / 8 + rtt / 8;
		if (!s->srtt_us)
			s->srtt_us = 1;
	}
	s->falls = 0;
	if (s->down && ++s->rises >= RISE) {
		s->down = false;
		say(s, "back", now_ms);
	}
}

/* A slow server is late often, but it is heard between; one that the kernel cannot reach is not. */
void server_troubled(struct server *s, bool unreachable, int64_t now_ms)
{
	s->rises = 0;
	if (s->down) {
		s->probe_ms = now_ms + PROBE_MS;
		return;
	}
	if (!s->falls++)
		s->fell_ms = now_ms;
	if (s->falls < FALL || (!unreachable && now_ms - s->fell_ms < SILENCE_MS))
		return;
	s->down = true;
	s->probe_ms = now_ms + PROBE_MS;
	say(s, "down", now_ms);
}

uint32_t server_wait_us(const struct server *s)
{
	uint32_t most = s->group->config->timeout_ms * 1000 / 4;
	uint32_t wait = s->srtt_us ? s->srtt_us + 4 * s->rttvar_us : WAIT_UNKNOWN_US;

	if (wait < WAIT_MIN_US)
		wait = WAIT_MIN_US;
	return wait > most ? most : wait;
}
