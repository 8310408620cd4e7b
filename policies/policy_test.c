/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tests:` of a policy file: read here, run by core/policy_tests.c. Part of the loader; the arena
 * owns them. Invariant: a test that could not be understood is an error, never a test that passes.
 */
#include "policies/policy_internal.h"

#include "base/message_text.h"

#include <string.h>

#define POLICY_TESTS_MAX 10000 /* over all files */

static const char *const policy_verdict_words[] = {"allow",    "block",	 "answer",
						   "rewrite",  "refuse", "drop",
						   "truncate", "error",	 NULL};

/* "bad.example A"; without a type: A. */
static bool policy_test_query(struct policy_loader *l, const struct node *n,
			      struct policy_test *test)
{
	const char *text;
	if (!node_text(n, l->d, &text))
		return false;
	size_t name = strcspn(text, " \t");
	const char *type = text + name + strspn(text + name, " \t");
	test->type = 1;
	if (name_from_unicode(text, name, &test->name) < 0) {
		node_error(n, l->d, "\"%.*s\" is not a domain name", (int)name, text);
		return false;
	}
	if (*type && message_type_parse(type, strlen(type), &test->type) < 0) {
		node_error(n, l->d, "\"%s\" is no record type (expected query: \"name.example A\")",
			   type);
		return false;
	}
	return true;
}

/* Who asks when the test does not say: the first address that the file's group lists. */
static void policy_test_default_client(struct policy_loader *l, const struct policy_group *g,
				       struct policy_test *test)
{
	for (size_t i = 0; i < l->policy->client_count; i++) {
		const struct policy_client_entry *e = &l->policy->clients[i];
		if (e->group != g->number)
			continue;
		if (e->who == POLICY_WHO_PREFIX) {
			test->client = e->prefix.addr;
			return;
		}
		if (e->who == POLICY_WHO_LISTENER && !test->listener)
			test->listener = e->text;
	}
	addr_parse("127.0.0.1", &test->client);
}

static bool policy_listener_exists(const struct policy_loader *l, const char *name)
{
	for (const char *const *p = l->context->listener_names; p && *p; p++)
		if (strcmp(*p, name) == 0)
			return true;
	return false;
}

static void policy_test_answers(struct policy_loader *l, const struct node *n,
				struct policy_test *test)
{
	size_t count = node_is_null(n) ? 0 : n->kind == NODE_LIST ? n->count : 1, used = 0;
	const char **list = arena_alloc(l->arena, (count + 1) * sizeof(*list));
	test->answers = list;
	if (count == 0)
		return;
	if (n->kind != NODE_LIST) {
		if (node_text(n, l->d, &list[0]))
			used = 1;
	} else {
		for (const struct node *item = n->children; item; item = item->next)
			used += node_text(item, l->d, &list[used]);
	}
	for (size_t i = 0; i < used; i++) {
		char error[128];
		uint8_t message[512];
		const char *one[] = {list[i], NULL};
		if (message_from_text(one, test->name.wire, test->name.length, test->type, message,
				      sizeof(message), error, sizeof(error)) < 0)
			node_error(n, l->d, "\"%s\" is no record: %s", list[i], error);
	}
}

static void policy_parse_test(struct policy_loader *l, const struct policy_group *g,
			      const struct node *n)
{
	static const char *const keys[] = {"query",  "client", "listener", "answer",
					   "expect", "at",     NULL};
	struct policy_test test = {.file = g->file,
				   .line = n->line,
				   .column = n->column,
				   .group = g->number};
	const struct node *query = node_get(n, "query"), *expect = node_get(n, "expect");
	const struct node *client = node_get(n, "client"), *at = node_get(n, "at");
	const struct node *listener = node_get(n, "listener");
	size_t errors = l->d->errors;
	const char *text;
	int word;
	if (!node_check_keys(n, keys, l->d) || n->kind != NODE_MAP)
		return;
	if (!query || !expect) {
		node_error(n, l->d, "a test needs query: and expect:");
		return;
	}
	if (!policy_test_query(l, query, &test))
		return;
	if (node_choice(expect, l->d, policy_verdict_words, &word))
		test.expect = policy_verdict_words[word];
	if (node_text(listener, l->d, &test.listener) && !policy_listener_exists(l, test.listener))
		node_error(listener, l->d, "there is no listener named \"%s\"", test.listener);
	if (client)
		node_address(client, l->d, &test.client);
	else
		policy_test_default_client(l, g, &test);
	if (node_text(at, l->d, &text)) {
		test.has_time = true;
		if (policy_time_parse(text, false, &test.wall_s) < 0)
			node_error(at, l->d,
				   "\"%s\" is no time (expected "
				   "\"2026-03-02T10:00:00+01:00\")",
				   text);
	}
	policy_test_answers(l, node_get(n, "answer"), &test);
	test.text = policy_render(l->arena, n, true);
	if (l->d->errors == errors)
		l->policy->tests[l->policy->test_count++] = test;
}

void policy_parse_tests(struct policy_loader *l, const struct policy_group *g, const struct node *n)
{
	struct policy *p = l->policy;
	if (node_is_null(n))
		return;
	if (n->kind != NODE_LIST) {
		node_error(n, l->d, "tests must be a list (- {query: ..., expect: ...})");
		return;
	}
	if (p->test_count + n->count > POLICY_TESTS_MAX) {
		node_error(n, l->d, "too many tests (at most %d)", POLICY_TESTS_MAX);
		return;
	}
	struct policy_test *grown =
		arena_alloc(l->arena, (p->test_count + n->count) * sizeof(*grown));
	if (p->test_count > 0)
		memcpy(grown, p->tests, p->test_count * sizeof(*grown));
	p->tests = grown;
	for (const struct node *item = n->children; item; item = item->next)
		policy_parse_test(l, g, item);
}
