/* SPDX-License-Identifier: Apache-2.0 */
/* core/process/logger_tail.c: filters, many subscribers, and one that does not read. */
#include "core/process/logger_tail.h"

#include "base/name.h"
#include "core/process/link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct event_base *base;
static struct tail *tail;
static int links[2];
static const uint8_t client[16] = {[10] = 0xff, [11] = 0xff, 10, 20, 1, 1};

static struct baleen_event event(struct name *n, const char *name, const char *verdict)
{
	static const char *const none[] = {NULL};
	assert_int_equal(name_parse(name, strlen(name), n), 0);
	return (struct baleen_event){.size = sizeof(struct baleen_event),
				     .type = 1,
				     .rrclass = 1,
				     .client = client,
				     .group = "default",
				     .name = n->wire,
				     .name_length = n->length,
				     .verdict = verdict,
				     .feeds = none,
				     .answers = none,
				     .mode = "enforce",
				     .cache = "none"};
}

static int subscribe(const char *filter)
{
	static struct link_message m;
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	link_message_init(&m, LINK_TAIL, "%s", filter);
	assert_int_equal(link_send(links[0], &m, pair[1]), 0);
	close(pair[1]);
	event_base_loop(base, EVLOOP_NONBLOCK);
	return pair[0];
}

static void put(const char *name, const char *verdict)
{
	struct name n;
	struct baleen_event e = event(&n, name, verdict);
	tail_events(tail, &e, 1);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static unsigned lines(int fd)
{
	char text[65536];
	unsigned n = 0;
	ssize_t length;
	while ((length = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < length; i++)
			n += text[i] == '\n';
	return n;
}

static void filters_hold(void **state)
{
	(void)state;
	int all = subscribe("{}"), verdict = subscribe("{\"verdict\":\"block\"}");
	int name = subscribe("{\"name\":\"Example\"}");
	int here = subscribe("{\"client\":\"10.20.0.0/16\"}");
	int there = subscribe("{\"client\":\"10.21.0.0/16\",\"name\":\"example\"}");
	put("a.example", "allow");
	put("b.example", "block");
	put("notexample", "block");
	assert_int_equal(lines(all), 3);
	assert_int_equal(lines(verdict), 2);
	assert_int_equal(lines(name), 2);
	assert_int_equal(lines(here), 3);
	assert_int_equal(lines(there), 0);
	int fds[] = {all, verdict, name, here, there};
	for (size_t i = 0; i < 5; i++)
		close(fds[i]);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static void too_many_are_told_so(void **state)
{
	(void)state;
	int fds[TAIL_MAX];
	char text[256] = "";
	for (int i = 0; i < TAIL_MAX; i++)
		fds[i] = subscribe("{}");
	int late = subscribe("{}");
	assert_true(read(late, text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "\"ok\":false"));
	assert_int_equal(read(late, text, 1), 0);
	close(late);
	for (int i = 0; i < TAIL_MAX; i++)
		close(fds[i]);
	event_base_loop(base, EVLOOP_NONBLOCK);
	/* Their places are free again. */
	int next = subscribe("{}");
	put("a.example", "allow");
	assert_int_equal(lines(next), 1);
	close(next);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static void who_does_not_read_misses_and_is_told(void **state)
{
	(void)state;
	int slow = subscribe("{}");
	static char text[4 << 20];
	size_t used = 0;
	for (int i = 0; i < 20000; i++)
		put("a.example", "allow");
	for (int turn = 0; turn < 2000; turn++) {
		ssize_t n = read(slow, text + used, sizeof(text) - 1 - used);
		if (n > 0)
			used += (size_t)n;
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	put("b.example", "allow");
	ssize_t n = read(slow, text + used, sizeof(text) - 1 - used);
	assert_true(n > 0);
	used += (size_t)n;
	text[used] = '\0';
	assert_true(used < 2 << 20);
	const char *missed = strstr(text, "\"missed\":");
	assert_non_null(missed);
	/* What arrived and what is said to be missing make up the whole. */
	unsigned got = 0;
	for (size_t i = 0; i < used; i++)
		got += text[i] == '\n';
	assert_int_equal(got - 1 + (unsigned)atoi(missed + 9), 20001);
	close(slow);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static int setup(void **state)
{
	(void)state;
	base = event_base_new();
	return link_pair(links) || tail_new(base, links[1], &tail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters_hold),
		cmocka_unit_test(too_many_are_told_so),
		cmocka_unit_test(who_does_not_read_misses_and_is_told),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
