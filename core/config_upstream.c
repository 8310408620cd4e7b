/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `upstreams:` of baleen.yaml: groups of servers and the zones that go to them. Part of config.c's
 * work, same processes, same arena. Invariant: after it, group 0 is `default`, no zone belongs to
 * two groups, and no server is one of our own listeners (that would be a loop).
 */
#include "core/config_internal.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_RESOLV_CONF    "/etc/resolv.conf"
#define CONFIG_TIMEOUT_MS     2000
#define CONFIG_TIMEOUT_MIN_MS 50
#define CONFIG_TIMEOUT_MAX_MS 60000
#define CONFIG_ZONES_MAX      4096 /* a group */

/* Does the machine itself have this address? Asked of the kernel; "no" when it does not say. */
static bool config_is_local(const struct addr *a)
{
	struct ifaddrs *all = NULL;
	bool found = addr_is_loopback(a);
	if (found || getifaddrs(&all) < 0)
		return found;
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr ||
		    (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
			continue;
		struct endpoint e;
		endpoint_from_sockaddr(i->ifa_addr, &e);
		found = addr_equal(&e.addr, a);
	}
	freeifaddrs(all);
	return found;
}

/* The listener that a query to `server` would come back to, or NULL. */
static const struct config_listener *config_own_listener(const struct config *c,
							 const struct endpoint *server)
{
	for (size_t i = 0; i < c->listener_count; i++) {
		const struct endpoint *own = &c->listeners[i].endpoint;
		if (own->port != server->port)
			continue;
		if (addr_equal(&own->addr, &server->addr))
			return &c->listeners[i];
		/* [::] takes IPv4 as well; 0.0.0.0 takes only that. */
		if (addr_is_unspecified(&own->addr) &&
		    (!addr_is_v4(&own->addr) || addr_is_v4(&server->addr)) &&
		    config_is_local(&server->addr))
			return &c->listeners[i];
	}
	return NULL;
}

static void config_server(struct config_loader *l, struct config_upstream *u, const struct node *n)
{
	struct endpoint e;
	if (!config_endpoint(l, n, &e))
		return;
	if (addr_is_unspecified(&e.addr)) {
		node_error(n, l->d, "%s is no server's address", n->text);
		return;
	}
	const struct config_listener *own = config_own_listener(l->config, &e);
	if (own) {
		node_error(n, l->d,
			   "%s is our own listener of line %d: queries would go in a circle",
			   n->text, own->line);
		return;
	}
	for (size_t i = 0; i < u->server_count; i++)
		if (endpoint_equal(&u->servers[i], &e)) {
			node_error(n, l->d, "server %s is there twice", n->text);
			return;
		}
	if (u->server_count == CONFIG_SERVERS_MAX) {
		node_error(n, l->d, "too many servers (at most %d a group)", CONFIG_SERVERS_MAX);
		return;
	}
	u->servers[u->server_count++] = e;
}

static void config_servers(struct config_loader *l, struct config_upstream *u, const struct node *n)
{
	size_t errors = l->d->errors;
	for (const struct node *s = config_items(l, n); s; s = s->next)
		config_server(l, u, s);
	if (u->server_count == 0 && l->d->errors == errors)
		node_error(n, l->d, "no server is named (expected [192.0.2.53, ...])");
}

/* resolver(5): "nameserver ADDRESS", rest of the line ignored. */
static void config_servers_of_system(struct config_loader *l, struct config_upstream *u)
{
	struct source_file file;
	int result = source_read(l->source, CONFIG_RESOLV_CONF, &file);
	const char *p = result == 0 ? (const char *)file.data : "";
	while (*p) {
		size_t length = strcspn(p, "\n");
		char word[16], address[ENDPOINT_TEXT_MAX], line[160];
		struct endpoint e;
		snprintf(line, sizeof(line), "%.*s", (int)(length < 159 ? length : 159), p);
		p += length + (p[length] == '\n');
		if (sscanf(line, "%15s %79s", word, address) != 2 ||
		    strcmp(word, "nameserver") != 0 || endpoint_parse(address, 53, &e) < 0)
			continue;
		bool known = addr_is_unspecified(&e.addr) || config_own_listener(l->config, &e);
		for (size_t i = 0; i < u->server_count; i++)
			known |= endpoint_equal(&u->servers[i], &e);
		if (!known && u->server_count < CONFIG_SERVERS_MAX)
			u->servers[u->server_count++] = e;
	}
	/* Not an error: lists and policies work without, the rest gets SERVFAIL. */
	if (u->server_count == 0)
		diag_warning(l->d, l->config->path, 0, 0,
			     "no upstream server: none is named in upstreams, and %s %s",
			     CONFIG_RESOLV_CONF,
			     result < 0 ? strerror(-result) : "names none but ourselves");
}

static bool config_zone_is_taken(struct config_loader *l, const struct node *n,
				 const struct name *zone)
{
	for (size_t g = 0; g < l->config->upstream_count; g++) {
		const struct config_upstream *u = &l->config->upstreams[g];
		for (size_t i = 0; i < u->zone_count; i++)
			if (name_equal(u->zones[i].wire, u->zones[i].length, zone->wire,
				       zone->length)) {
				node_error(n, l->d, "zone %s belongs to upstream \"%s\" already",
					   n->text, u->name);
				return true;
			}
	}
	return false;
}

static void config_zones(struct config_loader *l, struct config_upstream *u, const struct node *n)
{
	const struct node *first = config_items(l, n);
	if (!first)
		return;
	size_t room = n->kind == NODE_LIST ? n->count : 1;
	if (room > CONFIG_ZONES_MAX) {
		node_error(n, l->d, "too many zones (at most %d)", CONFIG_ZONES_MAX);
		return;
	}
	u->zones = arena_alloc(l->arena, room * sizeof(*u->zones));
	for (const struct node *z = first; z; z = z->next) {
		const char *text;
		struct name zone;
		if (!node_text(z, l->d, &text))
			continue;
		if (name_from_unicode(text, strlen(text), &zone) < 0)
			node_error(z, l->d, "\"%s\" is not a domain name", text);
		else if (zone.labels == 0)
			node_error(z, l->d, "the root goes to \"default\"");
		else if (!config_zone_is_taken(l, z, &zone))
			u->zones[u->zone_count++] = zone;
	}
}

static void config_upstream(struct config_loader *l, struct config_upstream *u,
			    const struct node *n)
{
	static const char *const keys[] = {"servers", "zones", "strategy", "timeout", NULL};
	static const char *const strategies[] = {"fastest", "ordered", "race", NULL};
	bool is_default = u == &l->config->upstreams[0];
	if (!node_check_keys(n, keys, l->d) && n->kind != NODE_MAP)
		return;
	int word;
	if (node_choice(node_get(n, "strategy"), l->d, strategies, &word))
		u->strategy = (enum config_strategy)word;
	uint64_t timeout_ms;
	const struct node *timeout = node_get(n, "timeout");
	if (node_duration(timeout, l->d, &timeout_ms)) {
		if (timeout_ms < CONFIG_TIMEOUT_MIN_MS || timeout_ms > CONFIG_TIMEOUT_MAX_MS)
			node_error(timeout, l->d, "timeout is out of range (expected %dms to %ds)",
				   CONFIG_TIMEOUT_MIN_MS, CONFIG_TIMEOUT_MAX_MS / 1000);
		else
			u->timeout_ms = (uint32_t)timeout_ms;
	}
	const struct node *zones = node_get(n, "zones"), *servers = node_get(n, "servers");
	if (zones && is_default)
		node_error(zones, l->d,
			   "\"default\" has no zones: it gets what no other group has");
	else if (zones)
		config_zones(l, u, zones);
	else if (!is_default)
		node_error(n, l->d, "upstream \"%s\" has no zones (expected zones: [corp.example])",
			   u->name);
	if (!node_is_null(servers))
		config_servers(l, u, servers);
	else if (!is_default)
		node_error(n, l->d, "upstream \"%s\" has no servers", u->name);
}

/* The groups as they stand in the map, NULL: none. */
static const struct node *config_groups(struct config_loader *l, const struct node *n,
					size_t *count)
{
	*count = 0;
	if (!n || node_is_null(n))
		return NULL;
	if (n->kind != NODE_MAP) {
		node_error(n, l->d, "upstreams must be a map (default: {servers: [...]})");
		return NULL;
	}
	/* `default` is one of them, written or not. */
	if (n->count + (node_get(n, "default") ? 0 : 1) > CONFIG_UPSTREAMS_MAX) {
		node_error(n, l->d, "too many upstream groups (at most %d)", CONFIG_UPSTREAMS_MAX);
		return NULL;
	}
	*count = n->count;
	return n->children;
}

void config_load_upstreams(struct config_loader *l, const struct node *n)
{
	struct config *c = l->config;
	size_t errors = l->d->errors, count;
	const struct node *groups = config_groups(l, n, &count);
	c->upstreams = arena_alloc(l->arena, (1 + count) * sizeof(*c->upstreams));
	c->upstreams[0].name = "default";
	c->upstreams[0].timeout_ms = CONFIG_TIMEOUT_MS;
	c->upstream_count = 1;
	for (const struct node *g = groups; g; g = g->next) {
		struct config_upstream *u = &c->upstreams[0];
		if (strcmp(g->key, "default") != 0) {
			if (!config_name_is_valid(g->key))
				diag_error(l->d, g->file, g->key_line, g->key_column,
					   "\"%s\" is no name for an upstream", g->key);
			u = &c->upstreams[c->upstream_count++];
			u->name = g->key;
			u->timeout_ms = CONFIG_TIMEOUT_MS;
		}
		if (!node_is_null(g) || u != &c->upstreams[0])
			config_upstream(l, u, g);
	}
	if (c->upstreams[0].server_count == 0 && l->d->errors == errors)
		config_servers_of_system(l, &c->upstreams[0]);
}
