/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One policy file into one group: clients, rules, options of plugins, tests. Part of the loader;
 * the arena owns everything. Invariant: every error of a file is told, and a file with one is not
 * used.
 */
#include "policies/policy_internal.h"

#include <string.h>

static const char *const policy_file_keys[] = {"group",	  "clients", "extends", "rules",
					       "plugins", "tests",   NULL};

struct policy_rule_place *policy_new_place(struct policy_loader *l)
{
	struct policy *p = l->policy;
	if (p->place_count == l->place_room) {
		l->place_room = l->place_room ? 2 * l->place_room : 64;
		struct policy_rule_place *grown =
			arena_alloc(l->arena, l->place_room * sizeof(*grown));
		if (p->place_count > 0)
			memcpy(grown, p->places, p->place_count * sizeof(*grown));
		p->places = grown;
	}
	return &p->places[p->place_count++];
}

static void policy_parse_rules(struct policy_loader *l, struct policy_group *g,
			       const struct node *n)
{
	if (node_is_null(n))
		return;
	if (n->kind != NODE_LIST) {
		node_error(n, l->d, "rules must be a list (- block: {...})");
		return;
	}
	if (n->count > POLICY_RULES_MAX) {
		node_error(n, l->d, "too many rules (at most %d a file)", POLICY_RULES_MAX);
		return;
	}
	if (n->count > 0 && !l->context->blocklist_in_chain)
		node_error(n->children, l->d,
			   "rules do nothing while \"blocklist\" is not in the chain (add it to "
			   "plugins: of the configuration)");
	g->rules = arena_alloc(l->arena, n->count * sizeof(*g->rules));
	for (const struct node *item = n->children; item; item = item->next)
		policy_parse_rule(l, g, item, &g->rules[g->rule_count++]);
}

static void policy_parse_plugins(struct policy_loader *l, const struct node *n)
{
	if (node_is_null(n))
		return;
	if (!node_check_keys(n, l->context->plugin_names, l->d))
		return;
	for (const struct node *p = n->children; p; p = p->next)
		if (p->kind == NODE_LIST || (p->kind == NODE_SCALAR && strcmp(p->text, "off") != 0))
			node_error(p, l->d,
				   "expected off, or the options that differ ({key: value})");
}

void policy_parse_group(struct policy_loader *l, struct policy_group *g)
{
	node_check_keys(g->root, policy_file_keys, l->d);
	policy_parse_clients(l, g, node_get(g->root, "clients"));
	policy_parse_rules(l, g, node_get(g->root, "rules"));
	policy_parse_plugins(l, node_get(g->root, "plugins"));
	policy_parse_tests(l, g, node_get(g->root, "tests"));
	g->extends = node_get(g->root, "extends");
	if (node_is_null(g->extends))
		g->extends = NULL;
}

/* `default` when no file defines it: block what the enforced lists of kind blocklist hold. */
void policy_built_in(struct policy_loader *l, struct policy_group *g)
{
	struct policy_answer *answer = arena_alloc(l->arena, sizeof(*answer));
	struct policy_rule_place *place;
	answer->form = POLICY_FORM_NXDOMAIN;
	answer->ttl_s = POLICY_TTL_S;
	answer->ede = POLICY_EDE;
	g->rules = arena_alloc(l->arena, sizeof(*g->rules));
	g->rule_count = 1;
	g->rules[0] = (struct policy_rule){.action = POLICY_BLOCK,
					   .id = (uint32_t)l->policy->place_count,
					   .has_feeds = true,
					   .feeds = l->context->feeds->enforced_blocklists,
					   .until_s = POLICY_NEVER,
					   .answer = answer};
	place = policy_new_place(l);
	place->file = "built-in";
	place->line = 0;
	place->action = POLICY_BLOCK;
	place->text = "built-in: block feeds: all";
}
