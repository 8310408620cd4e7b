/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this folder share. Nobody outside includes this.
 *
 * A group is a file. Its rules are numbered from 0 inside it; a query of the group walks the
 * group's own rules, then those of what it extends, and so on (`order`). Everything a rule asks of
 * names lies in one hash table for all groups, keyed by (group that holds the rule, suffix);
 * everything it asks of feeds (by name, category, kind, threat type, confidence) is one mask. Which
 * rules of a file can match at all is then a matter of a few words of bits:
 *
 *   can match = phase & (needs_names ? hit by name : yes) & (needs_feeds ? feeds meet : yes)
 */
#ifndef BALEEN_POLICIES_POLICY_INTERNAL_H
#define BALEEN_POLICIES_POLICY_INTERNAL_H

#include "base/lpm.h"
#include "policies/policy.h"
#include "policies/policy_when.h"

#include <limits.h>

#define POLICY_GROUPS_MAX   4096
#define POLICY_RULES_MAX    4096 /* a file */
#define POLICY_WORDS_MAX    (POLICY_RULES_MAX / 64)
#define POLICY_EXTENDS_MAX  16
#define POLICY_TYPES_MAX    64 /* a rule */
#define POLICY_TTL_S	    60
#define POLICY_EDE	    15
#define POLICY_EDE_TEXT_MAX 200
#define POLICY_NEVER	    INT64_MAX

/* What a name in a rule covers. */
enum { POLICY_SELF = 1, POLICY_BELOW = 2 };

struct policy_name {
	const uint8_t *wire;
	uint8_t length, labels;
	uint8_t covers; /* POLICY_SELF | POLICY_BELOW */
	const struct node *node;
};

struct policy_rule {
	enum policy_action action;
	uint32_t id;		 /* over all files: index of policy.places */
	const struct node *node; /* the rule's map; NULL: built in */

	/* Conditions, all of which must hold. */
	bool has_names, has_feeds, has_answers;
	struct policy_name *names;
	size_t name_count;
	struct feedmask feeds;
	const uint16_t *types;
	size_t type_count; /* 0: any */
	struct lpm answers;
	const struct policy_when *when; /* NULL: always */
	int64_t until_s;		/* POLICY_NEVER: no end */

	const struct policy_answer *answer; /* BLOCK and REWRITE */
};

enum policy_who { POLICY_WHO_MAC, POLICY_WHO_PREFIX, POLICY_WHO_LISTENER };

struct policy_client_entry {
	enum policy_who who;
	uint32_t group;
	uint8_t mac[6];
	struct prefix prefix;
	const char *text; /* as written; of a listener: its name */
	const struct node *node;
};

struct policy_group {
	const char *name;
	const char *file; /* relative to the configuration; NULL: built in */
	const struct node *root;
	const struct node *extends;
	uint32_t number;

	struct policy_rule *rules;
	size_t rule_count;
	const struct policy_group *order[POLICY_EXTENDS_MAX]; /* itself first */
	size_t order_count;

	/* Compiled: bits by rule number. */
	size_t words;
	uint64_t *question, *answer; /* which phase */
	uint64_t *needs_names, *needs_feeds;
	bool free;	       /* some question rule asks for neither names nor feeds */
	bool free_answer;      /* same of answer rules */
	bool lets_through;     /* some allow or rewrite names names */
	bool has_answer_rules; /* its own */
	struct feedmask feeds; /* of all its rules */
	uint64_t depths[2];    /* label counts of names in its rules */
	unsigned deepest;
};

/* One (group, suffix) of the names table. */
struct policy_slot {
	uint64_t hash;
	const uint8_t *wire; /* NULL: free */
	uint32_t group;
	uint32_t first; /* of policy.refs */
	uint32_t count;
	uint16_t allow_below; /* lowest rule that lets something below through, UINT16_MAX: none */
	uint8_t length, labels;
};

struct policy_ref {
	uint16_t rule;
	uint8_t covers;
};

struct policy {
	struct policy_group *groups;
	size_t group_count;
	struct policy_rule_place *places;
	size_t place_count;
	struct policy_test *tests;
	size_t test_count;
	const struct feeds *feeds;

	struct policy_slot *slots;
	size_t slot_mask;
	struct policy_ref *refs;

	struct policy_client_entry *clients;
	size_t client_count;
	struct lpm lpm; /* value: index of clients */
	uint32_t *macs; /* indices of clients, sorted by MAC */
	size_t mac_count;
	uint32_t *listeners; /* indices of clients */
	size_t listener_count;
};

/* While loading. */
struct policy_loader {
	struct source *source;
	const struct policy_context *context;
	struct arena *arena;
	struct diags *d;
	struct policy *policy;
	struct policy_zones zones;
	size_t client_room, place_room;
};

/* policy_parse.c */
void policy_parse_group(struct policy_loader *l, struct policy_group *g);
void policy_built_in(struct policy_loader *l, struct policy_group *g);
struct policy_rule_place *policy_new_place(struct policy_loader *l);
/* policy_rule.c */
void policy_parse_rule(struct policy_loader *l, const struct policy_group *g, const struct node *n,
		       struct policy_rule *rule);
const char *policy_render(struct arena *a, const struct node *n, bool braces);
/* policy_answer.c */
struct policy_answer *policy_parse_answer(struct policy_loader *l, const struct node *rule,
					  bool has_types);
/* policy_test.c */
void policy_parse_tests(struct policy_loader *l, const struct policy_group *g,
			const struct node *n);
/* policy_groups.c */
void policy_parse_clients(struct policy_loader *l, struct policy_group *g, const struct node *n);
void policy_build_groups(struct policy_loader *l);
/* policy_compile.c */
void policy_compile(struct policy_loader *l);
uint64_t policy_hash(uint64_t suffix, const uint8_t *label);
uint64_t policy_hash_group(uint64_t suffix, uint32_t group);
const struct policy_slot *policy_slot_find(const struct policy *p, uint32_t group, uint64_t hash,
					   const uint8_t *wire, uint8_t length);

/* policy_eval.c: a question on its way through a group's rules. */
struct policy_walk {
	const struct policy *policy;
	const struct policy_question *q;
	unsigned hashed; /* hash[0..hashed) are set, by label count */
	uint8_t offset[NAME_LABELS_MAX + 1];
	uint64_t hash[NAME_LABELS_MAX + 1];
};
void policy_walk_begin(struct policy_walk *w, const struct policy *p,
		       const struct policy_question *q);
/* Deepest name of the rule that covers the question: its slot's labels and what it covers; -1. */
int policy_name_hit(struct policy_walk *w, const struct policy_group *g,
		    const struct policy_rule *rule, uint8_t *covers);
bool policy_type_matches(const struct policy_rule *rule, uint16_t type);

#endif
