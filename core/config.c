/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baleen.yaml into `struct config`: listeners, clients, cache, paths, admin; upstreams and chain
 * are read next door. Runs in check, explain, the compile child and the template, on the disk or on
 * a snapshot alike. Everything lives in the caller's arena. Invariant: with 0 returned every field
 * is set and within its bounds; every error of the file is reported, not only the first.
 */
#include "core/config.h"

#include "base/file.h"
#include "core/config_internal.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define CONFIG_FILE_MAX	    ((size_t)4 << 20)
#define CONFIG_STATE	    "/var/lib/baleen"
#define CONFIG_CONTROL	    "/run/baleen/control.sock"
#define CONFIG_USER	    "baleen"
#define CONFIG_LISTEN	    "127.0.0.1:53"
#define CONFIG_ADMIN_LISTEN "127.0.0.1:9153"
#define CONFIG_ADMIN_PORT   9153
#define CONFIG_PORT	    53
#define CONFIG_CACHE_BYTES  ((uint64_t)64 << 20)
#define CONFIG_CACHE_MIN    ((uint64_t)1 << 20)
#define CONFIG_CACHE_MAX    ((uint64_t)64 << 30)
#define CONFIG_DAY_S	    86400
#define CONFIG_TTL_MAX_S    (7 * CONFIG_DAY_S) /* RFC 8767 section 4: stale for days, not more */
#define CONFIG_HANG_MS	    1000
#define CONFIG_HANG_MIN_MS  100
#define CONFIG_HANG_MAX_MS  60000
#define CONFIG_NAME_MAX	    63
#define CONFIG_SOCKET_MAX   (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

static const char *const config_keys[] = {"listen",    "allow-clients", "trusted",  "workers",
					  "upstreams", "cache",		"plugins",  "hang-timeout",
					  "feeds",     "protected",	"policies", "state",
					  "user",      "control",	"admin",    "plugin-folder",
					  NULL};

/* Private networks, loopback and link-local: who may ask when nothing is said. */
static const char *const config_default_clients[] = {"127.0.0.0/8",    "::1/128",
						     "10.0.0.0/8",     "172.16.0.0/12",
						     "192.168.0.0/16", "169.254.0.0/16",
						     "100.64.0.0/10",  "fc00::/7",
						     "fe80::/10"};

/* ---- shared with the other files ---- */

bool config_name_is_valid(const char *name)
{
	size_t n =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
	return n > 0 && n <= CONFIG_NAME_MAX && name[n] == '\0' && !strchr("_.-", name[0]);
}

bool config_endpoint(struct config_loader *l, const struct node *n, struct endpoint *out)
{
	const char *text;
	if (n && n->kind == NODE_SCALAR && strstr(n->text, "://")) {
		node_error(n, l->d,
			   "%.*s is not in this version (expected an address such as "
			   "192.0.2.53 or 192.0.2.53:5300, for plain DNS)",
			   (int)(strstr(n->text, "://") - n->text + 3), n->text);
		return false;
	}
	return node_text(n, l->d, &text) && node_endpoint(n, l->d, CONFIG_PORT, out);
}

const struct node *config_items(struct config_loader *l, const struct node *n)
{
	if (node_is_null(n))
		return NULL;
	if (n->kind == NODE_LIST)
		return n->children;
	node_error(n, l->d, "%s must be a list ([a, b])", n->key ? n->key : "this");
	return NULL;
}

/* ---- paths ---- */

/* An input: beside the configuration, unless absolute. */
static const char *config_input(struct config_loader *l, const char *path)
{
	char *absolute = file_relative_to(l->config->path, path);
	if (!absolute) {
		diag_error(l->d, l->config->path, 0, 0, "out of memory");
		return path;
	}
	const char *out = arena_strdup(l->arena, absolute);
	free(absolute);
	return out;
}

/* A path that must not be empty. */
static bool config_path(struct config_loader *l, const struct node *n, const char **out)
{
	const char *text;
	if (!node_text(n, l->d, &text))
		return false;
	if (text[0] == '\0' || strlen(text) >= PATH_MAX / 2) {
		node_error(n, l->d, "%s is not a path", n->key ? n->key : "this");
		return false;
	}
	*out = text;
	return true;
}

static void config_load_paths(struct config_loader *l, const struct node *root)
{
	struct config *c = l->config;
	const char *text;
	if (config_path(l, node_get(root, "policies"), &text))
		c->policies = config_input(l, text);
	c->state = CONFIG_STATE;
	if (config_path(l, node_get(root, "state"), &text))
		c->state = config_input(l, text);
	const struct node *control = node_get(root, "control");
	c->control = CONFIG_CONTROL;
	if (config_path(l, control, &text))
		c->control =
			text[0] == '/' ? text : arena_printf(l->arena, "%s/%s", c->state, text);
	if (strlen(c->control) > CONFIG_SOCKET_MAX && control)
		node_error(control, l->d, "%s is too long for a socket (at most %zu octets)",
			   c->control, CONFIG_SOCKET_MAX);
	c->user = CONFIG_USER;
	const struct node *user = node_get(root, "user");
	c->user_given = node_text(user, l->d, &c->user);
	if (c->user_given && c->user[0] == '\0')
		node_error(user, l->d, "user is empty (expected the name of an account)");
	if (config_path(l, node_get(root, "plugin-folder"), &text))
		c->plugin_folder = config_input(l, text);
}

static void config_load_protected(struct config_loader *l, const struct node *n)
{
	const struct node *first = config_items(l, n);
	if (!first)
		return;
	l->config->protected_files = arena_alloc(l->arena, n->count * sizeof(char *));
	for (const struct node *item = first; item; item = item->next) {
		const char *text;
		struct source_file file;
		if (!config_path(l, item, &text))
			continue;
		text = config_input(l, text);
		int result = source_read(l->source, text, &file);
		if (result < 0)
			node_error(item, l->d, "%s cannot be read: %s", text, strerror(-result));
		else
			l->config->protected_files[l->config->protected_count++] = text;
	}
}

/* ---- who asks, and where ---- */

static void config_listener(struct config_loader *l, const struct node *n)
{
	static const char *const keys[] = {"address", "name", NULL};
	struct config *c = l->config;
	const struct node *address = n;
	struct config_listener new = {.line = n->line, .column = n->column};
	if (n->kind != NODE_SCALAR) {
		if (!node_check_keys(n, keys, l->d) && n->kind != NODE_MAP)
			return;
		address = node_get(n, "address");
		if (!address) {
			node_error(n, l->d, "a listener needs an address");
			return;
		}
		const struct node *name = node_get(n, "name");
		if (node_text(name, l->d, &new.name) && !config_name_is_valid(new.name))
			node_error(name, l->d,
				   "\"%s\" is no name for a listener (expected letters, "
				   "digits, . _ -)",
				   new.name);
	}
	if (!config_endpoint(l, address, &new.endpoint))
		return;
	for (size_t i = 0; i < c->listener_count; i++) {
		const struct config_listener *old = &c->listeners[i];
		if (endpoint_equal(&old->endpoint, &new.endpoint)) {
			node_error(address, l->d, "%s is listened on already, line %d",
				   address->text, old->line);
			return;
		}
		if (old->name && new.name && strcmp(old->name, new.name) == 0)
			node_error(n, l->d, "a listener named \"%s\" is there already, line %d",
				   new.name, old->line);
	}
	if (c->listener_count == CONFIG_LISTENERS_MAX) {
		node_error(n, l->d, "too many listeners (at most %d)", CONFIG_LISTENERS_MAX);
		return;
	}
	c->listeners[c->listener_count++] = new;
}

static void config_load_listeners(struct config_loader *l, const struct node *n)
{
	struct config *c = l->config;
	size_t errors = l->d->errors;
	for (const struct node *item = config_items(l, n); item; item = item->next)
		config_listener(l, item);
	if (c->listener_count > 0 || l->d->errors > errors)
		return;
	endpoint_parse(CONFIG_LISTEN, CONFIG_PORT, &c->listeners[0].endpoint);
	c->listener_count = 1;
}

static void config_prefixes(struct config_loader *l, const struct node *n, struct prefix **out,
			    size_t *count)
{
	const struct node *first = config_items(l, n);
	if (!first)
		return;
	*out = arena_alloc(l->arena, n->count * sizeof(**out));
	for (const struct node *item = first; item; item = item->next) {
		if (item->kind == NODE_SCALAR && strncmp(item->text, "id:", 3) == 0)
			node_error(item, l->d,
				   "id: is not in this version (expected a prefix such as "
				   "10.0.0.0/8)");
		else if (node_prefix(item, l->d, &(*out)[*count]))
			(*count)++;
	}
}

static void config_load_clients(struct config_loader *l, const struct node *root)
{
	struct config *c = l->config;
	const struct node *n = node_get(root, "allow-clients");
	config_prefixes(l, node_get(root, "trusted"), &c->trusted, &c->trusted_count);
	if (!node_is_null(n)) {
		config_prefixes(l, n, &c->allow_clients, &c->allow_client_count);
		return;
	}
	c->allow_client_count = sizeof(config_default_clients) / sizeof(config_default_clients[0]);
	c->allow_clients = arena_alloc(l->arena, c->allow_client_count * sizeof(*c->allow_clients));
	for (size_t i = 0; i < c->allow_client_count; i++)
		prefix_parse(config_default_clients[i], &c->allow_clients[i]);
}

static void config_load_workers(struct config_loader *l, const struct node *n)
{
	int64_t workers;
	if (node_is_null(n) || (n->kind == NODE_SCALAR && strcmp(n->text, "auto") == 0)) {
		cpu_set_t set;
		workers = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
		if (workers > CONFIG_WORKERS_MAX)
			workers = CONFIG_WORKERS_MAX;
	} else if (!node_integer(n, l->d, 1, CONFIG_WORKERS_MAX, &workers)) {
		return;
	}
	l->config->workers = (unsigned)workers;
}

/* ---- cache, times ---- */

/* Whole seconds, at most `max_s`. */
static void config_seconds(struct config_loader *l, const struct node *n, uint32_t max_s,
			   uint32_t *out)
{
	uint64_t ms;
	if (!node_duration(n, l->d, &ms))
		return;
	if (ms % 1000 != 0)
		node_error(n, l->d, "%s counts in whole seconds", n->key);
	else if (ms / 1000 > max_s)
		node_error(n, l->d, "%s is out of range (expected at most %ud)", n->key,
			   max_s / CONFIG_DAY_S);
	else
		*out = (uint32_t)(ms / 1000);
}

static void config_load_cache(struct config_loader *l, const struct node *n)
{
	static const char *const keys[] = {"size", "min-ttl", "max-ttl", "stale", NULL};
	struct config *c = l->config;
	c->cache_bytes = CONFIG_CACHE_BYTES;
	c->max_ttl_s = CONFIG_DAY_S;
	c->stale_s = CONFIG_DAY_S;
	node_check_keys(n, keys, l->d);
	const struct node *size = node_get(n, "size");
	if (node_size(size, l->d, &c->cache_bytes) && c->cache_bytes != 0 &&
	    (c->cache_bytes < CONFIG_CACHE_MIN || c->cache_bytes > CONFIG_CACHE_MAX))
		node_error(size, l->d,
			   "size is out of range (expected 1MiB to 64GiB, or 0 for none)");
	const struct node *min = node_get(n, "min-ttl");
	config_seconds(l, min, CONFIG_DAY_S, &c->min_ttl_s);
	config_seconds(l, node_get(n, "max-ttl"), CONFIG_TTL_MAX_S, &c->max_ttl_s);
	config_seconds(l, node_get(n, "stale"), CONFIG_TTL_MAX_S, &c->stale_s);
	if (c->min_ttl_s > c->max_ttl_s && l->d->errors == 0)
		node_error(min ? min : n, l->d, "min-ttl is above max-ttl");
}

static void config_load_hang_timeout(struct config_loader *l, const struct node *n)
{
	uint64_t ms = CONFIG_HANG_MS;
	if (node_duration(n, l->d, &ms) && (ms < CONFIG_HANG_MIN_MS || ms > CONFIG_HANG_MAX_MS))
		node_error(n, l->d, "hang-timeout is out of range (expected %dms to %ds)",
			   CONFIG_HANG_MIN_MS, CONFIG_HANG_MAX_MS / 1000);
	l->config->hang_timeout_ms = (uint32_t)ms;
}

/* ---- admin ---- */

static void config_admin_token(struct config_loader *l, const struct node *n)
{
	const char *path;
	struct source_file file;
	if (!config_path(l, n, &path))
		return;
	path = config_input(l, path);
	int result = source_read(l->source, path, &file);
	if (result < 0) {
		node_error(n, l->d, "%s cannot be read: %s", path, strerror(-result));
		return;
	}
	const char *text = (const char *)file.data;
	size_t lead = strspn(text, " \t\r\n");
	size_t length = strcspn(text + lead, " \t\r\n");
	if (length == 0 || lead + length + strspn(text + lead + length, " \t\r\n") != file.size) {
		node_error(n, l->d, "%s does not hold a token (expected one word)", path);
		return;
	}
	l->config->admin_token = arena_strndup(l->arena, text + lead, length);
}

static void config_load_admin(struct config_loader *l, const struct node *n)
{
	static const char *const keys[] = {"listen", "token-file", NULL};
	struct config *c = l->config;
	if (!n)
		return;
	if (!node_check_keys(n, keys, l->d) && n->kind != NODE_MAP)
		return;
	c->admin_enabled = true;
	endpoint_parse(CONFIG_ADMIN_LISTEN, CONFIG_ADMIN_PORT, &c->admin_listen);
	const struct node *listen = node_get(n, "listen");
	const struct node *token = node_get(n, "token-file");
	node_endpoint(listen, l->d, CONFIG_ADMIN_PORT, &c->admin_listen);
	if (token)
		config_admin_token(l, token);
	else if (!addr_is_loopback(&c->admin_listen.addr))
		node_warning(
			listen ? listen : n, l->d,
			"anybody who reaches %s reads the metrics (token-file: asks for a token)",
			listen ? listen->text : CONFIG_ADMIN_LISTEN);
}

/* ---- all of it ---- */

static const char *config_absolute(struct arena *a, const char *path)
{
	char folder[PATH_MAX];
	if (path[0] == '/' || !getcwd(folder, sizeof(folder)))
		return arena_strdup(a, path);
	return arena_printf(a, "%s/%s", folder, path);
}

static const struct node *config_read(struct config_loader *l)
{
	struct source_file file;
	struct node *root = NULL;
	const char *path = l->config->path;
	int result = source_read(l->source, path, &file);
	if (result < 0) {
		diag_error(l->d, path, 0, 0, "cannot be read: %s", strerror(-result));
		return NULL;
	}
	if (node_parse(path, (const char *)file.data, file.size, l->arena, l->d, &root) < 0 &&
	    !root)
		return NULL;
	if (root->kind != NODE_MAP) {
		node_error(root, l->d, "a configuration is a map (key: value)");
		return NULL;
	}
	return root;
}

int config_load(struct source *source, const char *path, struct arena *a, struct diags *d,
		struct config *out)
{
	struct config_loader l = {.source = source, .arena = a, .d = d, .config = out};
	size_t errors = d->errors;
	memset(out, 0, sizeof(*out));
	out->path = config_absolute(a, path);
	const char *slash = strrchr(out->path, '/');
	out->folder = slash == out->path ? "/"
		      : slash		 ? arena_strndup(a, out->path, (size_t)(slash - out->path))
					 : ".";
	const struct node *root = config_read(&l);
	if (!root)
		return -EINVAL;
	node_check_keys(root, config_keys, d);
	size_t before = d->errors;
	config_load_listeners(&l, node_get(root, "listen"));
	config_load_chain(&l, node_get(root, "plugins"));
	out->checkable = d->errors == before;
	config_load_clients(&l, root);
	config_load_workers(&l, node_get(root, "workers"));
	config_load_upstreams(&l, node_get(root, "upstreams"));
	config_load_cache(&l, node_get(root, "cache"));
	config_load_hang_timeout(&l, node_get(root, "hang-timeout"));
	config_load_paths(&l, root);
	config_load_protected(&l, node_get(root, "protected"));
	config_load_admin(&l, node_get(root, "admin"));
	const struct node *feeds = node_get(root, "feeds");
	if (feeds_load(node_is_null(feeds) ? NULL : feeds, out->path, source, a, d, &out->feeds) <
	    0)
		out->checkable = false;
	feeds_promote(&out->feeds, source, out->state);
	return d->errors > errors ? -EINVAL : 0;
}

/* What is no YAML as a whole may still be in these two lines: whoever breaks a file of a running
 * daemon should hear what is wrong with it, not that there is no daemon. */
static struct node *config_two_lines(struct config_loader *l, const char *text)
{
	char *kept = arena_strdup(l->arena, "");
	struct node *root = NULL;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, "control:", 8) == 0 || strncmp(line, "state:", 6) == 0)
			kept = arena_printf(l->arena, "%s%.*s\n", kept, (int)strcspn(line, "\n"),
					    line);
	}
	node_parse(l->config->path, kept, strlen(kept), l->arena, l->d, &root);
	return root;
}

int config_find_paths(const char *path, char **control, char **state)
{
	struct arena arena;
	struct diags ignored;
	struct config c = {.state = CONFIG_STATE, .control = CONFIG_CONTROL};
	struct node *root = NULL;
	char *text = NULL;
	size_t size = 0;
	arena_init(&arena);
	diag_init(&ignored);
	struct config_loader l = {.arena = &arena, .d = &ignored, .config = &c};
	c.path = config_absolute(&arena, path);
	int result = file_read(c.path, CONFIG_FILE_MAX, &text, &size);
	if (result == 0) {
		node_parse(c.path, text, size, &arena, &ignored, &root);
		if (!root)
			root = config_two_lines(&l, text);
		if (root)
			config_load_paths(&l, root);
	}
	*control = strdup(c.control);
	*state = strdup(c.state);
	if (!*control || !*state) {
		free(*control);
		free(*state);
		*control = *state = NULL;
		result = -ENOMEM;
	}
	free(text);
	diag_fini(&ignored);
	arena_fini(&arena);
	return result;
}
