/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who belongs to which group: `clients:` of all files in one table a kind. Parsed by the loader,
 * asked by workers for every query; the arena owns the tables. Invariant: a MAC, a prefix or a
 * listener belongs to one group at most, so which file is read first never matters.
 */
#include "policies/policy_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLICY_CLIENTS_MAX 1000000

static bool policy_parse_mac(const char *text, uint8_t out[6])
{
	static const char digits[] = "0123456789abcdef";
	if (strlen(text) != 17)
		return false;
	for (int i = 0; i < 17; i++) {
		char c = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] + 32) : text[i];
		if (i % 3 == 2) {
			if (c != text[2] || (c != ':' && c != '-'))
				return false;
			continue;
		}
		const char *digit = strchr(digits, c);
		if (!digit)
			return false;
		uint8_t value = (uint8_t)(digit - digits);
		out[i / 3] = (uint8_t)(i % 3 == 0 ? value << 4 : out[i / 3] | value);
	}
	return true;
}

static bool policy_listener_known(const struct policy_loader *l, const char *name)
{
	for (const char *const *p = l->context->listener_names; p && *p; p++)
		if (strcmp(*p, name) == 0)
			return true;
	return false;
}

static bool policy_parse_client(struct policy_loader *l, const struct node *n,
				struct policy_client_entry *out)
{
	if (!node_text(n, l->d, &out->text))
		return false;
	out->node = n;
	if (strncmp(out->text, "mac:", 4) == 0) {
		out->who = POLICY_WHO_MAC;
		if (policy_parse_mac(out->text + 4, out->mac))
			return true;
		node_error(n, l->d, "\"%s\" is no MAC (expected mac:aa:bb:cc:dd:ee:ff)", out->text);
		return false;
	}
	if (strncmp(out->text, "listener:", 9) == 0) {
		out->who = POLICY_WHO_LISTENER;
		out->text += 9;
		if (policy_listener_known(l, out->text))
			return true;
		node_error(n, l->d,
			   "there is no listener named \"%s\" (expected the name: of one in "
			   "listen:)",
			   out->text);
		return false;
	}
	if (strncmp(out->text, "id:", 3) == 0) {
		node_error(n, l->d,
			   "id: is not in this version (expected a prefix, mac: or "
			   "listener:)");
		return false;
	}
	out->who = POLICY_WHO_PREFIX;
	return node_prefix(n, l->d, &out->prefix);
}

void policy_parse_clients(struct policy_loader *l, struct policy_group *g, const struct node *n)
{
	struct policy *p = l->policy;
	if (node_is_null(n))
		return;
	if (n->kind != NODE_LIST) {
		node_error(n, l->d, "clients must be a list ([10.20.0.0/16, ...])");
		return;
	}
	if (p->client_count + n->count > POLICY_CLIENTS_MAX) {
		node_error(n, l->d, "too many clients (at most %d)", POLICY_CLIENTS_MAX);
		return;
	}
	if (p->client_count + n->count > l->client_room) {
		l->client_room = 2 * (p->client_count + n->count);
		struct policy_client_entry *grown =
			arena_alloc(l->arena, l->client_room * sizeof(*grown));
		if (p->client_count > 0)
			memcpy(grown, p->clients, p->client_count * sizeof(*grown));
		p->clients = grown;
	}
	for (const struct node *item = n->children; item; item = item->next) {
		struct policy_client_entry *e = &p->clients[p->client_count];
		memset(e, 0, sizeof(*e));
		e->group = g->number;
		if (policy_parse_client(l, item, e))
			p->client_count++;
	}
}

/* Equal entries stand beside one another; of equal ones, in the order of the files. */
static int policy_client_compare(const struct policy_client_entry *a,
				 const struct policy_client_entry *b)
{
	if (a->who != b->who)
		return a->who < b->who ? -1 : 1;
	if (a->who == POLICY_WHO_MAC)
		return memcmp(a->mac, b->mac, sizeof(a->mac));
	if (a->who == POLICY_WHO_LISTENER)
		return strcmp(a->text, b->text);
	int c = memcmp(a->prefix.addr.octets, b->prefix.addr.octets, 16);
	return c ? c : (int)a->prefix.bits - (int)b->prefix.bits;
}

static int policy_client_order(const void *a, const void *b)
{
	const struct policy_client_entry *x = a, *y = b;
	int c = policy_client_compare(x, y);
	if (c != 0)
		return c;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->node->line != y->node->line ? x->node->line - y->node->line
					      : x->node->column - y->node->column;
}

static void policy_refuse_duplicates(struct policy_loader *l)
{
	const struct policy *p = l->policy;
	for (size_t i = 1; i < p->client_count; i++) {
		const struct policy_client_entry *a = &p->clients[i - 1], *b = &p->clients[i];
		if (policy_client_compare(a, b) == 0)
			node_error(b->node, l->d, "%s belongs to group \"%s\" already (%s:%d)",
				   b->node->text, p->groups[a->group].name,
				   p->groups[a->group].file, a->node->line);
	}
}

/* Sorted by kind, then value: each kind's entries are one stretch of the table. */
void policy_build_groups(struct policy_loader *l)
{
	struct policy *p = l->policy;
	if (p->client_count == 0)
		return;
	qsort(p->clients, p->client_count, sizeof(*p->clients), policy_client_order);
	policy_refuse_duplicates(l);
	p->macs = arena_alloc(l->arena, p->client_count * sizeof(*p->macs));
	p->listeners = arena_alloc(l->arena, p->client_count * sizeof(*p->listeners));
	struct lpm_entry *entries = arena_alloc(l->arena, p->client_count * sizeof(*entries));
	size_t prefixes = 0;
	for (uint32_t i = 0; i < p->client_count; i++) {
		const struct policy_client_entry *e = &p->clients[i];
		if (e->who == POLICY_WHO_MAC)
			p->macs[p->mac_count++] = i;
		else if (e->who == POLICY_WHO_LISTENER)
			p->listeners[p->listener_count++] = i;
		else
			entries[prefixes++] = (struct lpm_entry){.prefix = e->prefix, .value = i};
	}
	lpm_build(&p->lpm, entries, prefixes, l->arena);
}

static uint32_t policy_find_mac(const struct policy *p, const uint8_t *mac)
{
	size_t low = 0, high = p->mac_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c = memcmp(p->clients[p->macs[middle]].mac, mac, 6);
		if (c == 0)
			return p->macs[middle];
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return LPM_NONE;
}

/* The entry that decides, or LPM_NONE. */
static uint32_t policy_client_find(const struct policy *p, const struct policy_client *client)
{
	uint32_t found = LPM_NONE;
	if (client->mac && p->mac_count > 0)
		found = policy_find_mac(p, client->mac);
	if (found == LPM_NONE)
		found = lpm_find(&p->lpm, &client->addr);
	/* Few: a name for each listener at most. */
	for (size_t i = 0; found == LPM_NONE && client->listener && i < p->listener_count; i++)
		if (strcmp(p->clients[p->listeners[i]].text, client->listener) == 0)
			found = p->listeners[i];
	return found;
}

uint32_t policy_group_of(const struct policy *p, const struct policy_client *client)
{
	uint32_t entry = policy_client_find(p, client);
	return entry == LPM_NONE ? POLICY_GROUP_DEFAULT : p->clients[entry].group;
}

const char *policy_group_why(const struct policy *p, const struct policy_client *client,
			     char out[ADDR_TEXT_MAX])
{
	uint32_t entry = policy_client_find(p, client);
	if (entry == LPM_NONE)
		return NULL;
	const struct policy_client_entry *e = &p->clients[entry];
	if (e->who == POLICY_WHO_PREFIX)
		return prefix_format(&e->prefix, out);
	snprintf(out, ADDR_TEXT_MAX, "%.*s", ADDR_TEXT_MAX - 1, e->node->text);
	return out;
}
