/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be asked over the control socket: one row a command. A row that changes something asks
 * for the right to; the rest only look. Admin process.
 */
#include "base/clock.h"
#include "base/name.h"
#include "core/dns/cache.h"
#include "core/event.h"
#include "core/process/admin.h"
#include "feeds/fetcher.h"
#include "feeds/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *request_text(const cJSON *request, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, key));
}

static bool request_may_change(struct admin_connection *c)
{
	if (!c->may_change)
		admin_reply_error(c, "uid %u may look, but not change anything", (unsigned)c->uid);
	return c->may_change;
}

static cJSON *reply_ok(void)
{
	cJSON *reply = cJSON_CreateObject();
	cJSON_AddBoolToObject(reply, "ok", true);
	return reply;
}

static void command_status(struct admin_connection *c, const cJSON *request)
{
	(void)request;
	admin_reply(c, admin_status(c->admin));
}

static void command_stats(struct admin_connection *c, const cJSON *request)
{
	(void)request;
	admin_reply(c, admin_stats(c->admin));
}

static void command_reload(struct admin_connection *c, const cJSON *request)
{
	static struct link_message m;
	(void)request;
	if (!request_may_change(c))
		return;
	link_message_init(&m, LINK_RELOAD, "%s", "");
	m.serial = c->serial = ++c->admin->next_serial;
	if (link_send(c->admin->child->admin_to_template, &m, -1) < 0)
		admin_reply_error(c, "the template is just being replaced; try again");
}

void admin_on_template(evutil_socket_t fd, short what, void *context)
{
	static struct link_message m;
	struct admin *a = context;
	(void)what;
	while (link_receive(fd, &m, NULL) == 1) {
		struct admin_connection *c = admin_waiting(a, m.serial);
		if (!c || m.kind != LINK_OUTCOME || m.serial == 0)
			continue;
		if (m.code == 0)
			admin_reply(c, reply_ok());
		else
			admin_reply_error(c, "%s", m.text);
	}
}

/* ---- feeds ---- */

static void feeds_list(struct admin_connection *c, const char *name)
{
	cJSON *reply = reply_ok();
	if (name) {
		cJSON *feed = feed_name_is_valid(name) ? state_json(".", name) : NULL;
		if (!feed) {
			cJSON_Delete(reply);
			admin_reply_error(c, "there is no feed \"%s\"", name);
			return;
		}
		cJSON_AddItemToObject(reply, "feed", feed);
	} else {
		cJSON_AddItemToObject(reply, "feeds", state_json_all("."));
	}
	admin_reply(c, reply);
}

static void command_feeds(struct admin_connection *c, const cJSON *request)
{
	static struct link_message m;
	const char *action = request_text(request, "action"), *name = request_text(request, "name");

	if (!action || strcmp(action, "list") == 0 || strcmp(action, "show") == 0) {
		feeds_list(c, action && *action == 's' ? name : NULL);
		return;
	}
	unsigned verb = FETCHER_REFRESH;
	while (verb <= FETCHER_RELEASE && strcmp(fetcher_verbs[verb], action) != 0)
		verb++;
	if (verb > FETCHER_RELEASE || (name && strlen(name) > FEED_NAME_MAX)) {
		admin_reply_error(c, "feeds cannot be asked to \"%.60s\"", action);
		return;
	}
	if (!request_may_change(c))
		return;
	link_message_init(&m, LINK_FEEDS, "%s", "");
	m.action = verb;
	m.serial = c->serial = ++c->admin->next_serial;
	snprintf(m.name, sizeof(m.name), "%s", name ? name : "");
	if (link_send(c->admin->child->admin_to_fetcher, &m, -1) < 0)
		admin_reply_error(c, "the fetcher is busy");
}

void admin_on_fetcher(evutil_socket_t fd, short what, void *context)
{
	static struct link_message m;
	struct admin *a = context;
	(void)what;
	while (link_receive(fd, &m, NULL) == 1) {
		struct admin_connection *c = admin_waiting(a, m.serial);
		if (!c || m.kind != LINK_FEEDS_DONE || m.serial == 0)
			continue;
		if (m.code < 0) {
			admin_reply_error(c, "%s", m.text[0] ? m.text : strerror(-m.code));
			continue;
		}
		cJSON *reply = reply_ok();
		cJSON_AddStringToObject(reply, "message", m.text);
		admin_reply(c, reply);
	}
}

/* ---- cache ---- */

static void cache_show(struct admin_connection *c)
{
	struct cache_stats s;
	size_t size;
	void *memory = shm_cache(c->admin->shm, &size);
	cache_stats(memory, size, clock_monotonic_ms(), &s);
	cJSON *reply = reply_ok();
	cJSON_AddNumberToObject(reply, "octets", (double)s.octets);
	cJSON_AddNumberToObject(reply, "slots", (double)s.slots);
	cJSON_AddNumberToObject(reply, "used", (double)s.used);
	cJSON_AddNumberToObject(reply, "used_octets", (double)s.used_octets);
	admin_reply(c, reply);
}

static void command_cache(struct admin_connection *c, const cJSON *request)
{
	const char *action = request_text(request, "action"), *text = request_text(request, "name");
	struct name name;
	size_t size;

	if (!action || strcmp(action, "stats") == 0) {
		cache_show(c);
		return;
	}
	if (strcmp(action, "flush") != 0) {
		admin_reply_error(c, "the cache cannot be asked to \"%.60s\"", action);
		return;
	}
	if (!request_may_change(c))
		return;
	if (text && name_from_unicode(text, strlen(text), &name) < 0) {
		admin_reply_error(c, "\"%.255s\" is not a domain name", text);
		return;
	}
	void *memory = shm_cache(c->admin->shm, &size);
	bool subtree = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(request, "subtree"));
	size_t gone =
		cache_flush(memory, size, text ? name.wire : NULL, text ? name.length : 0, subtree);
	cJSON *reply = reply_ok();
	cJSON_AddNumberToObject(reply, "flushed", (double)gone);
	admin_reply(c, reply);
}

/* ---- log tail ---- */

/* A filter that is not understood would show everything, or nothing for ever. */
static bool log_filter_fits(struct admin_connection *c, const cJSON *request)
{
	const char *client = request_text(request, "client");
	const char *text = request_text(request, "name");
	const char *verdict = request_text(request, "verdict");
	struct prefix prefix;
	struct name name;

	if (client && prefix_parse(client, &prefix) < 0) {
		admin_reply_error(c, "\"%.60s\" is no address or prefix", client);
		return false;
	}
	if (text && name_from_unicode(text, strlen(text), &name) < 0) {
		admin_reply_error(c, "\"%.60s\" is no domain name", text);
		return false;
	}
	for (size_t i = 0; verdict && i < EVENT_VERDICTS; i++)
		if (strcmp(verdict, event_verdict_words[i]) == 0)
			return true;
	if (verdict)
		admin_reply_error(c, "\"%.60s\" is no verdict (expected allow, block, ...)",
				  verdict);
	return !verdict;
}

static void command_log(struct admin_connection *c, const cJSON *request)
{
	static struct link_message m;
	static const char *const keys[] = {"client", "name", "verdict"};
	struct admin *a = c->admin;

	if (!log_filter_fits(c, request))
		return;
	cJSON *filter = cJSON_CreateObject();
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (request_text(request, keys[i]))
			cJSON_AddStringToObject(filter, keys[i], request_text(request, keys[i]));
	char *text = cJSON_PrintUnformatted(filter);
	cJSON_Delete(filter);
	if (!text || strlen(text) >= LINK_TEXT_MAX) {
		cJSON_free(text);
		admin_reply_error(c, "the filter is too long");
		return;
	}
	link_message_init(&m, LINK_TAIL, "%s", text);
	cJSON_free(text);
	int fd = admin_detach(c);
	if (fd < 0)
		return;
	(void)link_send(a->child->admin_to_logger, &m, fd);
	close(fd);
}

static const struct {
	const char *word;
	void (*run)(struct admin_connection *c, const cJSON *request);
} commands[] = {
	{"status", command_status}, {"stats", command_stats},	{"reload", command_reload},
	{"feeds", command_feeds},   {"explain", admin_explain}, {"cache", command_cache},
	{"log", command_log},
};

void admin_command(struct admin_connection *c, const cJSON *request)
{
	const char *word = request_text(request, "command");
	for (size_t i = 0; word && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(word, commands[i].word) == 0) {
			commands[i].run(c, request);
			return;
		}
	admin_reply_error(c, "there is no command \"%.60s\"", word ? word : "");
}
