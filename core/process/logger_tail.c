/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live events for `log tail`; see the header. Logger process. The filter comes as a JSON object
 * that admin has taken from the request: client (address or prefix), name (a suffix), verdict.
 * Invariant: no subscriber can hold up the sinks or make the logger grow.
 */
#include "core/process/logger_tail.h"

#include "base/addr.h"
#include "base/clock.h"
#include "base/name.h"
#include "core/event.h"
#include "core/process/link.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tail_reader {
	struct bufferevent *out; /* NULL: free */
	struct prefix client;
	struct name name;
	char verdict[16];
	bool has_client, has_name;
	uint64_t missed;
	int64_t full_since_ms; /* 0: not full */
};

struct tail {
	struct event_base *base;
	struct event *link;
	struct tail_reader readers[TAIL_MAX];
	unsigned count;
};

static void tail_close(struct tail *t, struct tail_reader *r)
{
	bufferevent_free(r->out);
	memset(r, 0, sizeof(*r));
	t->count--;
}

static void tail_event(struct bufferevent *b, short what, void *context)
{
	struct tail *t = context;
	(void)what;
	for (unsigned i = 0; i < TAIL_MAX; i++)
		if (t->readers[i].out == b)
			tail_close(t, &t->readers[i]);
}

/* What a subscriber still says is nothing we want to hear. */
static void tail_read(struct bufferevent *b, void *context)
{
	struct evbuffer *in = bufferevent_get_input(b);
	(void)context;
	evbuffer_drain(in, evbuffer_get_length(in));
}

static void tail_filter(struct tail_reader *r, const char *json)
{
	cJSON *filter = cJSON_Parse(json);
	const char *client = cJSON_GetStringValue(cJSON_GetObjectItem(filter, "client"));
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(filter, "name"));
	const char *verdict = cJSON_GetStringValue(cJSON_GetObjectItem(filter, "verdict"));

	r->has_client = client && prefix_parse(client, &r->client) == 0;
	r->has_name = name && name_from_unicode(name, strlen(name), &r->name) == 0;
	if (verdict)
		snprintf(r->verdict, sizeof(r->verdict), "%s", verdict);
	cJSON_Delete(filter);
}

static void tail_refuse(int fd, const char *why)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "{\"ok\":false,\"error\":\"%s\"}\n", why);
	ssize_t written = write(fd, text, (size_t)n);
	(void)written;
	close(fd);
}

static void tail_add(struct tail *t, const struct link_message *m, int fd)
{
	struct tail_reader *r = NULL;
	for (unsigned i = 0; !r && i < TAIL_MAX; i++)
		if (!t->readers[i].out)
			r = &t->readers[i];
	if (!r) {
		tail_refuse(fd, "too many are reading the log already");
		return;
	}
	r->out = bufferevent_socket_new(t->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!r->out) {
		tail_refuse(fd, "out of memory");
		return;
	}
	tail_filter(r, m->text);
	bufferevent_setcb(r->out, tail_read, NULL, tail_event, t);
	bufferevent_enable(r->out, EV_READ | EV_WRITE);
	t->count++;
}

static void tail_on_link(evutil_socket_t fd, short what, void *context)
{
	static struct link_message m;
	struct tail *t = context;
	int client;
	(void)what;
	while (link_receive(fd, &m, &client) == 1) {
		if (client < 0)
			continue;
		if (m.kind == LINK_TAIL)
			tail_add(t, &m, client);
		else
			close(client);
	}
}

int tail_new(struct event_base *base, int link, struct tail **out)
{
	struct tail *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->base = base;
	t->link = event_new(base, link, EV_READ | EV_PERSIST, tail_on_link, t);
	if (!t->link || event_add(t->link, NULL) < 0) {
		free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

static bool tail_wants(const struct tail_reader *r, const struct baleen_event *e)
{
	struct addr client;
	if (r->verdict[0] && strcmp(r->verdict, e->verdict) != 0)
		return false;
	if (r->has_name && !name_is_under(e->name, e->name_length, r->name.wire, r->name.length))
		return false;
	if (!r->has_client)
		return true;
	memcpy(client.octets, e->client, sizeof(client.octets));
	return prefix_contains(&r->client, &client);
}

static void tail_put(struct tail *t, struct tail_reader *r, const char *line, size_t length)
{
	struct evbuffer *out = bufferevent_get_output(r->out);
	char note[64];

	if (evbuffer_get_length(out) + length > TAIL_BUFFER_MAX) {
		int64_t now = clock_monotonic_ms();
		r->missed++;
		if (r->full_since_ms == 0)
			r->full_since_ms = now;
		else if (now - r->full_since_ms > TAIL_PATIENCE_MS)
			tail_close(t, r);
		return;
	}
	r->full_since_ms = 0;
	if (r->missed) {
		int n = snprintf(note, sizeof(note), "{\"schema\":1,\"missed\":%llu}\n",
				 (unsigned long long)r->missed);
		evbuffer_add(out, note, (size_t)n);
		r->missed = 0;
	}
	evbuffer_add(out, line, length);
}

void tail_events(struct tail *t, const struct baleen_event *events, size_t count)
{
	static char line[16384];

	for (size_t i = 0; t->count > 0 && i < count; i++) {
		size_t length = 0;
		for (unsigned n = 0; n < TAIL_MAX; n++) {
			struct tail_reader *r = &t->readers[n];
			if (!r->out || !tail_wants(r, &events[i]))
				continue;
			if (length == 0) {
				length = event_json(&events[i], line, sizeof(line) - 1);
				if (length > sizeof(line) - 1)
					break;
				line[length++] = '\n';
			}
			tail_put(t, r, line, length);
		}
	}
}
