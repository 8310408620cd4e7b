/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies: one file per client group, ordered rules, first match wins. Loaded from YAML through a
 * `struct source`, compiled into flat tables, evaluated without touching strings. Read-only once
 * loaded: built in the template, shared by fork with every worker. Rules compile to masks of feed
 * numbers and do not depend on which set file is open.
 */
#ifndef BALEEN_POLICIES_POLICY_H
#define BALEEN_POLICIES_POLICY_H

#include "base/addr.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/name.h"
#include "base/node.h"
#include "base/source.h"
#include "feeds/feed.h"
#include "feeds/set/domset.h"

#include <stdbool.h>
#include <stdint.h>

#define POLICY_GROUP_DEFAULT 0 /* the group `default` always exists and is number 0 */
#define POLICY_RULE_NONE     UINT32_MAX
#define POLICY_MONITORED_MAX 4
#define POLICY_ANSWERS_MAX   8

enum policy_action { POLICY_PASS, POLICY_ALLOW, POLICY_BLOCK, POLICY_MONITOR, POLICY_REWRITE };

enum policy_form {
	POLICY_FORM_NXDOMAIN,
	POLICY_FORM_NODATA,
	POLICY_FORM_ZERO_IP,
	POLICY_FORM_REFUSED,
	POLICY_FORM_DROP,
	POLICY_FORM_TRUNCATE,
	POLICY_FORM_CNAME,
	POLICY_FORM_ADDRESSES
};

/* What a blocked query gets. The core builds the packet (core/dns/answer.h). */
struct policy_answer {
	enum policy_form form;
	uint32_t ttl_s;	      /* default 60 */
	uint16_t ede;	      /* RFC 8914 info code, default 15; 0: none */
	const char *ede_text; /* NULL: the category, else none */
	struct name target;   /* CNAME and rewrite */
	unsigned a_count, aaaa_count;
	struct addr a[POLICY_ANSWERS_MAX], aaaa[POLICY_ANSWERS_MAX];
};

/* Where a rule stands, for explain, events and errors. Numbered over all files. */
struct policy_rule_place {
	const char *file; /* relative to the configuration's folder: policies/staff.yaml */
	int line;
	enum policy_action action;
	const char *text; /* one line, normalised: "block: {feeds: [ours]}" */
};

struct policy;

/* What the loader must know of the rest of the configuration. */
struct policy_context {
	const struct feeds *feeds;
	const char *config_folder;	   /* to shorten paths */
	const char *const *plugin_names;   /* chain instances, for `plugins:`; NULL-terminated */
	const char *const *listener_names; /* for "listener:x"; NULL-terminated */
	bool blocklist_in_chain;	   /* rules without it are an error */
};

/* Load every *.yaml in `folder` (NULL: none, the built-in default group). 0, or -EINVAL with `d`.
 */
int policy_load(struct source *source, const char *folder, const struct policy_context *context,
		struct arena *a, struct diags *d, struct policy **out);

/* ---- who ---- */

struct policy_client {
	struct addr addr;
	const uint8_t *mac;   /* 6 octets, or NULL */
	const char *listener; /* its name, or NULL */
};

/* MAC, then address (longest prefix over all files), then listener; else POLICY_GROUP_DEFAULT. */
uint32_t policy_group_of(const struct policy *p, const struct policy_client *client);
size_t policy_group_count(const struct policy *p);
const char *policy_group_name(const struct policy *p, uint32_t group);
const char *policy_group_file(const struct policy *p, uint32_t group); /* NULL: built in */
uint32_t policy_group_find(const struct policy *p, const char *name);  /* UINT32_MAX: none */
/* Explain: the client entry that put it there ("10.20.0.0/16"), or NULL for the default. */
const char *policy_group_why(const struct policy *p, const struct policy_client *client,
			     char out[ADDR_TEXT_MAX]);

/* A group's own options for a chain instance: the YAML map, `*off` if it is `off`. NULL: as base.
 */
const struct node *policy_group_options(const struct policy *p, uint32_t group,
					const char *instance, bool *off);

/* ---- what ---- */

struct policy_question {
	const uint8_t *name; /* lower-cased wire */
	uint8_t length;
	uint8_t labels;
	uint16_t type;
	int64_t wall_s;			   /* for `when` */
	const struct domset_result *feeds; /* of this name; NULL: no set */
	const struct domset *set;
};

struct policy_outcome {
	enum policy_action action;
	uint32_t rule;	      /* POLICY_RULE_NONE with POLICY_PASS */
	uint16_t feed;	      /* that decided, or FEED_NONE */
	uint8_t match_labels; /* labels of the suffix of the name that matched */
	bool match_exact;     /* the entry covers the asked name alone (NODATA, RFC 8020) */
	bool allow_below;     /* an allow rule lies below the name: NODATA too */
	const char *category; /* of the feed; NULL: none */
	const struct policy_answer *answer; /* BLOCK and REWRITE */
	unsigned monitored_count;
	uint32_t monitored[POLICY_MONITORED_MAX]; /* monitor rules that would have matched */
};

/* Question rules of the group, in order. Also for CNAME targets (`type` stays the asked one). */
void policy_question(const struct policy *p, uint32_t group, const struct policy_question *q,
		     struct policy_outcome *out);

/* True if the group has rules over answers' addresses at all. */
bool policy_has_answer_rules(const struct policy *p, uint32_t group);

/* Answer rules over one address, in order; `q` describes the question. */
void policy_address(const struct policy *p, uint32_t group, const struct policy_question *q,
		    const struct addr *address, struct policy_outcome *out);

/* For explain: called for every rule in order with whether it would have matched and why (not).
 * `why` is a short text: "feeds: ours (exact bad.example)", "when: outside Mon-Fri 09:00-17:00". */
typedef void policy_trace(void *context, uint32_t rule, bool matches, const char *why);
void policy_trace_question(const struct policy *p, uint32_t group, const struct policy_question *q,
			   policy_trace *each, void *context);

size_t policy_rule_count(const struct policy *p);
const struct policy_rule_place *policy_rule_place(const struct policy *p, uint32_t rule);

/* Warnings: unreachable rules, order that differs from question-first, unknown categories, ... */
void policy_lint(const struct policy *p, struct diags *d);

/* ---- tests: of the files ---- */

struct policy_test {
	const char *file;
	int line, column;
	uint32_t group; /* whose file holds it */
	struct name name;
	uint16_t type;
	struct addr client;
	const char *listener; /* or NULL */
	bool has_time;
	int64_t wall_s;
	const char *const *answers; /* presentation RRs, NULL-terminated, may be empty */
	const char *expect;	    /* an event verdict: allow, block, answer, rewrite, ... */
	const char *text;	    /* as written, one line */
};
size_t policy_test_count(const struct policy *p);
const struct policy_test *policy_test(const struct policy *p, size_t index);

#endif
