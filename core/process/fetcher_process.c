/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fetcher: the engine of feeds/fetcher.h in a process of its own. Publishes a set by storing
 * its number in shared memory; workers adopt it at their next loop tick. Takes commands from admin.
 * Invariant: the only process that writes below feeds/ and sets/, one at a time over generations.
 */
#include "feeds/fetcher.h"

#include "base/log.h"
#include "core/process/child.h"
#include "core/process/link.h"
#include "core/process/sandbox.h"
#include "core/process/title.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUSPECT_MS  500
#define SCRUB_TURNS 1200 /* that many times SUSPECT_MS: the set is read whole every 10 minutes */

struct fetcher_process {
	const struct child *child;
	struct event_base *base;
	struct fetcher *fetcher;
	unsigned turns;
};

static void fetcher_publish(void *context, uint64_t set_number)
{
	struct fetcher_process *p = context;
	atomic_store_explicit(shm_set_number(p->child->shm), set_number, memory_order_release);
	log_info("domain set %llu is published", (unsigned long long)set_number);
}

/* A worker could not read what it serves from; and disks go bad unasked. */
static void fetcher_on_suspect(evutil_socket_t fd, short what, void *context)
{
	struct fetcher_process *p = context;
	struct shm *shm = p->child->shm;
	uint64_t suspect = atomic_exchange(shm_set_suspect(shm), 0);
	(void)fd;
	(void)what;
	if ((suspect && suspect == atomic_load(shm_set_number(shm))) ||
	    ++p->turns % SCRUB_TURNS == 0)
		fetcher_check_set(p->fetcher);
}

static void fetcher_leave(void *context)
{
	struct fetcher_process *p = context;
	if (p->fetcher)
		fetcher_stop(p->fetcher);
	/* Whatever is half-written has a temporary name. */
	_exit(0);
}

static void fetcher_answer(struct fetcher_process *p, struct link_message *m)
{
	char answer[FETCHER_ANSWER_MAX] = "";
	m->code = fetcher_command(p->fetcher, (enum fetcher_verb)m->action,
				  m->name[0] ? m->name : NULL, answer);
	m->kind = LINK_FEEDS_DONE;
	memset(m->text, 0, sizeof(m->text));
	memcpy(m->text, answer, strnlen(answer, sizeof(answer) - 1));
	int r = link_send(p->child->fetcher_to_admin, m, -1);
	if (r < 0)
		log_warn("cannot answer a feeds command: %s", strerror(-r));
}

static void fetcher_on_link(evutil_socket_t fd, short what, void *context)
{
	static struct link_message m;
	struct fetcher_process *p = context;
	(void)what;
	while (link_receive(fd, &m, NULL) == 1)
		if (m.kind == LINK_FEEDS && m.action <= FETCHER_RELEASE)
			fetcher_answer(p, &m);
}

/* Its own folders, the local lists' folders, and what resolving and TLS read. */
static void fetcher_sandbox(const struct child *c)
{
	static const char *const system[] = {
		"/etc", "/usr", "/lib", "/lib64", "/run", "/dev", "/var/lib/ca-certificates",
		"/proc"};
	struct sandbox_path *paths =
		calloc(1 + sizeof(system) / sizeof(system[0]) + c->folder_count, sizeof(*paths));
	size_t n = 0;
	if (!paths)
		child_failed(c, "out of memory");
	paths[n++] = (struct sandbox_path){.path = ".", .write = true};
	for (size_t i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		paths[n++] = (struct sandbox_path){.path = system[i]};
	for (size_t i = 0; i < c->folder_count; i++)
		if (c->folders[i].fd >= 0)
			paths[n++] = (struct sandbox_path){.fd = c->folders[i].fd};
	struct sandbox s = {.role = ROLE_FETCHER, .paths = paths, .path_count = n, .any_tcp = true};
	sandbox_enter(&s);
	free(paths);
}

/* The hard list's zones: those that have upstreams of their own. */
static size_t fetcher_zones(const struct config *config, struct name **out)
{
	size_t n = 0, i = 0;
	for (size_t u = 0; u < config->upstream_count; u++)
		n += config->upstreams[u].zone_count;
	struct name *zones = calloc(n ? n : 1, sizeof(*zones));
	if (!zones)
		return 0;
	for (size_t u = 0; u < config->upstream_count; u++)
		for (size_t z = 0; z < config->upstreams[u].zone_count; z++)
			zones[i++] = config->upstreams[u].zones[z];
	*out = zones;
	return n;
}

/* Feed hosts are resolved by the upstreams, not by ourselves: at first start there is no set yet.
 */
static const char **fetcher_resolvers(const struct config *config)
{
	const struct config_upstream *u = &config->upstreams[0];
	const char **out = calloc(CONFIG_SERVERS_MAX + 1, sizeof(*out));
	for (size_t i = 0; out && i < u->server_count; i++) {
		char text[ENDPOINT_TEXT_MAX];
		out[i] = strdup(endpoint_format(&u->servers[i], text));
	}
	return out;
}

_Noreturn void fetcher_process(const struct child *c)
{
	static struct fetcher_process p;
	const struct config *config = &c->generation->config;
	struct name *zones = NULL;

	title_set("fetcher");
	p.child = c;
	p.base = child_begin(c, fetcher_leave, &p);
	fetcher_sandbox(c);

	struct fetcher_options options = {
		.base = p.base,
		.state = ".",
		.feeds = &config->feeds,
		.source = c->generation->source,
		.zone_count = fetcher_zones(config, &zones),
		.protected_files = config->protected_files,
		.protected_count = config->protected_count,
		.folders = c->folders,
		.folder_count = c->folder_count,
		.resolvers = fetcher_resolvers(config),
		.published = atomic_load(shm_set_number(c->shm)),
		.publish = fetcher_publish,
		.context = &p,
	};
	options.zones = zones;
	int r = fetcher_new(&options, &p.fetcher);
	if (r < 0)
		child_failed(c, "the fetcher cannot start: %s", strerror(-r));
	/* The first pass does not run the loop, so the word to leave ends us until then. */
	r = fetcher_first_pass(p.fetcher);
	child_on_leave(p.base, fetcher_leave, &p);
	if (r < 0)
		log_error("no domain set could be published: %s", strerror(-r));
	struct event *e =
		event_new(p.base, c->fetcher_to_admin, EV_READ | EV_PERSIST, fetcher_on_link, &p);
	struct event *suspect = event_new(p.base, -1, EV_PERSIST, fetcher_on_suspect, &p);
	const struct timeval every = {.tv_usec = SUSPECT_MS * 1000};
	if (!e || event_add(e, NULL) < 0 || !suspect || event_add(suspect, &every) < 0)
		child_failed(c, "out of memory");
	child_ready(c);
	event_base_dispatch(p.base);
	_exit(0);
}
