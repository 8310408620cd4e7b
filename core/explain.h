/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision for one query, step by step, by the code that the daemon runs: the same chain, the
 * same policy, the same set; only that hooks are told it is a rehearsal (dry_run) and that no reply
 * is sent. Used by `baleen explain`, by the policies' tests in `baleen check`, and by the daemon's
 * throw-away explain child. Never in a worker.
 */
#ifndef BALEEN_CORE_EXPLAIN_H
#define BALEEN_CORE_EXPLAIN_H

#include "base/addr.h"
#include "base/arena.h"
#include "base/name.h"
#include "core/event.h"
#include "core/generation.h"
#include "feeds/set/domset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EXPLAIN_ERROR_MAX 256

struct cJSON;

/* A place to rehearse in: a worker that has no sockets. Starts the chain's plugins. */
struct explain;

/* `set` may be NULL (nothing is listed) and must be bound to the generation's feeds; both stay the
 * caller's and must outlive it. `state` (may be NULL) is where feeds' own files say since when an
 * entry is there. One at a time in a process: plugins are started in it. 0, or -errno. */
int explain_new(struct generation *g, const struct domset *set, uint64_t set_number,
		const char *state, struct explain **out, char error[EXPLAIN_ERROR_MAX]);
void explain_free(struct explain *e);

struct explain_request {
	struct name name;
	uint16_t type;
	struct addr client;
	bool any_client; /* allow-clients does not matter */
	bool has_group;	 /* this group, whoever the client is; no allow-clients either */
	uint32_t group;
	const char *listener; /* its name, or NULL: the first */
	uint8_t transport;    /* enum baleen_transport */
	bool has_time;	      /* else now */
	int64_t wall_s;
	/* Records in presentation format, NULL-terminated. NULL or none: answer hooks do not run.
	 */
	const char *const *answers;
};

/* One step: what stood there and what came of it. */
struct explain_step {
	const char *stage;   /* client, question, answer */
	const char *plugin;  /* chain instance */
	const char *outcome; /* a verdict's word; "off", "out of the chain", "after allow" */
	bool monitor;	     /* its verdict was only recorded */
	bool decided;
	const char *text; /* more, or "" */
};

/* A policy rule that was looked at for the question, in order. */
struct explain_rule {
	const char *place; /* policies/staff.yaml:8 */
	const char *text;  /* as in struct policy_rule_place */
	bool matches;
	const char *why;
};

/* A feed that lists the name or an ancestor of it. */
struct explain_feed {
	const char *name;
	const char *category;
	const char *match; /* the listed name, presentation format */
	const char *how;   /* exact, subtree, below */
	bool threat;
	bool shadow;
	int64_t since_s; /* wall clock; 0: not known */
};

struct explain_result {
	struct arena arena; /* backs every text below */

	enum event_verdict verdict;
	const char *word; /* event_verdict_words[verdict] */
	const char *name; /* presentation format */
	const char *type;
	const char *client;
	const char *group;
	const char *group_why; /* the client entry that put it there; "no other group" */

	const char *plugin; /* that decided, or NULL */
	const char *rule;   /* policies/staff.yaml:8, or NULL */
	const char *rule_text;
	const char *feed; /* or NULL */
	const char *category;
	const char *match; /* the entry that matched, presentation format, or NULL */
	bool match_exact;
	int64_t since_s; /* the feed lists it since then; 0: not known */
	const char *hop; /* question, cname, address, hint, payload */
	const char *text;

	const char *answer; /* what the client gets, one phrase: "NXDOMAIN, EDE 15 (malware)" */
	uint64_t set_number;

	struct explain_step *steps;
	size_t step_count;
	struct explain_rule *rules;
	size_t rule_count;
	struct explain_feed *feeds;
	size_t feed_count;
	const char **would; /* "threatfeed: block", NULL-terminated */
};

/* 0; -EINVAL with a sentence (an answer record that cannot be read, a listener that is not there).
 * Free `out` with explain_fini in either case. */
int explain_decide(struct explain *e, const struct explain_request *request,
		   struct explain_result *out, char error[EXPLAIN_ERROR_MAX]);
void explain_fini(struct explain_result *r);

/* One screen, for people; and all of it, for programs. */
void explain_print(const struct explain_result *r, FILE *out);
struct cJSON *explain_json(const struct explain_result *r);

/*
 * A request as JSON, as it comes over the control socket, to its reply (explain_request.c):
 *   {"name": "x.example", "type": "A", "client": "10.0.0.1", "listener": "lab", "transport": "udp",
 *    "at": "2026-03-02T10:00:00+01:00", "answers": ["x.example CNAME y.example"]}
 * Only `name` must be there. The reply is explain_json's object with `ok` true and `screen`, what
 * explain_print prints; or {"ok": false, "error": a sentence}. Free with cJSON_Delete.
 */
struct cJSON *explain_reply(struct explain *e, const struct cJSON *request);

#endif
