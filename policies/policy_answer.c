/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a blocked query gets: `answer:`, `ede:` and `ede-text:` of a rule. Part of the loader; the
 * arena owns the result. Invariant: what comes out can be built into a packet as it stands: a CNAME
 * has a target, ADDRESSES has at least one address of the right family.
 */
#include "policies/policy_internal.h"

#include <stdio.h>
#include <string.h>

#define POLICY_TTL_MAX_S (7 * 86400)

static const char *const policy_form_words[] = {"nxdomain", "nodata",	"zero-ip", "refused",
						"drop",	    "truncate", NULL};

static bool policy_parse_ttl(struct policy_loader *l, const struct node *n, uint32_t *out)
{
	uint64_t ms;
	if (!node_duration(n, l->d, &ms))
		return false;
	if (ms % 1000 != 0 || ms / 1000 > POLICY_TTL_MAX_S) {
		node_error(n, l->d, "\"%s\" is no TTL (expected whole seconds, at most 7d)",
			   n->text);
		return false;
	}
	*out = (uint32_t)(ms / 1000);
	return true;
}

static void policy_one_address(struct policy_loader *l, const struct node *n, bool v4,
			       struct addr *list, unsigned *count)
{
	struct addr a;
	if (!node_address(n, l->d, &a))
		return;
	if (addr_is_v4(&a) != v4)
		node_error(n, l->d, "\"%s\" is no IPv%c address", n->text, v4 ? '4' : '6');
	else if (*count == POLICY_ANSWERS_MAX)
		node_error(n, l->d, "too many addresses (at most %d)", POLICY_ANSWERS_MAX);
	else
		list[(*count)++] = a;
}

static void policy_addresses(struct policy_loader *l, const struct node *n, bool v4,
			     struct addr *list, unsigned *count)
{
	if (!n)
		return;
	if (n->kind != NODE_LIST) {
		policy_one_address(l, n, v4, list, count);
		return;
	}
	for (const struct node *item = n->children; item; item = item->next)
		policy_one_address(l, item, v4, list, count);
}

static void policy_answer_map(struct policy_loader *l, const struct node *n,
			      struct policy_answer *out)
{
	static const char *const keys[] = {"cname", "a", "aaaa", "ttl", NULL};
	if (!node_check_keys(n, keys, l->d))
		return;
	const struct node *cname = node_get(n, "cname"), *a = node_get(n, "a");
	const struct node *aaaa = node_get(n, "aaaa");
	const char *text;
	policy_parse_ttl(l, node_get(n, "ttl"), &out->ttl_s);
	if (cname && (a || aaaa)) {
		node_error(n, l->d, "an answer is a cname or addresses, not both");
	} else if (cname) {
		out->form = POLICY_FORM_CNAME;
		if (node_text(cname, l->d, &text) &&
		    (name_from_unicode(text, strlen(text), &out->target) < 0 ||
		     out->target.labels == 0))
			node_error(cname, l->d, "\"%s\" is not a domain name", text);
	} else if (a || aaaa) {
		out->form = POLICY_FORM_ADDRESSES;
		policy_addresses(l, a, true, out->a, &out->a_count);
		policy_addresses(l, aaaa, false, out->aaaa, &out->aaaa_count);
		if (out->a_count + out->aaaa_count == 0)
			node_error(n, l->d, "no address is given");
	} else {
		node_error(n, l->d, "an answer needs cname:, a: or aaaa:");
	}
}

static void policy_ede(struct policy_loader *l, const struct node *rule, struct policy_answer *out)
{
	const struct node *text = node_get(rule, "ede-text");
	int64_t number;
	if (node_integer(node_get(rule, "ede"), l->d, 0, UINT16_MAX, &number))
		out->ede = (uint16_t)number;
	if (!node_text(text, l->d, &out->ede_text))
		return;
	for (const char *p = out->ede_text; *p; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e) {
			node_error(text, l->d, "ede-text must be printable ASCII");
			return;
		}
	if (strlen(out->ede_text) > POLICY_EDE_TEXT_MAX)
		node_error(text, l->d, "ede-text is too long (at most %d characters)",
			   POLICY_EDE_TEXT_MAX);
}

struct policy_answer *policy_parse_answer(struct policy_loader *l, const struct node *rule,
					  bool has_types)
{
	struct policy_answer *out = arena_alloc(l->arena, sizeof(*out));
	const struct node *n = node_get(rule, "answer");
	int word;
	out->ttl_s = POLICY_TTL_S;
	out->ede = POLICY_EDE;
	/* A rule for some types leaves the others: the name must go on existing (RFC 8020). */
	out->form = has_types ? POLICY_FORM_NODATA : POLICY_FORM_NXDOMAIN;
	policy_ede(l, rule, out);
	if (!n)
		return out;
	if (n->kind == NODE_MAP)
		policy_answer_map(l, n, out);
	else if (node_choice(n, l->d, policy_form_words, &word))
		out->form = (enum policy_form)word;
	return out;
}
