/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain, on a real configuration with real policies, lists and shipped plugins: what it says of
 * a query, in its fields, on its screen and as JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/diag.h"
#include "base/log.h"
#include "core/explain.h"
#include "core/rehearsal_set.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	char folder[64];
	struct generation *g;
	struct domset *set;
	struct explain *e;
} fixture;

static void put(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static int setup(void **state)
{
	char plugins[4096], config[8192], error[DOMSET_ERROR_MAX] = "";
	struct diags d;
	uint64_t number;

	(void)state;
	ssize_t n = readlink("/proc/self/exe", plugins, sizeof(plugins) - 1);
	plugins[n > 0 ? n : 0] = '\0';
	*strrchr(plugins, '/') = '\0';
	log_set_level(LOG_ERROR_);
	strcpy(fixture.folder, "/tmp/baleen-explain-test-XXXXXX");
	if (!mkdtemp(fixture.folder) || chdir(fixture.folder) < 0 || mkdir("policies", 0700) < 0 ||
	    mkdir("state", 0700) < 0)
		return -1;
	put("ads.txt", "ads.example\ntrack.example\n");
	put("evil.txt", "0.0.0.0 evil.example\n");
	put("policies/default.yaml",
	    "group: default\n"
	    "rules:\n"
	    "  - allow: [good.ads.example]\n"
	    "  - block: {feeds: all}\n"
	    "    answer: zero-ip\n"
	    "  - monitor: [watched.example]\n"
	    "  - block: [games.example]\n"
	    "    when: {days: mon-fri, from: \"09:00\", to: \"17:00\","
	    " timezone: Europe/Zurich}\n"
	    "  - rewrite: {names: [\"=search.example\"], to: safe.example}\n"
	    "  - block: {answers: [203.0.113.0/24]}\n");
	put("policies/lab.yaml", "group: lab\n"
				 "clients: [10.9.0.0/16]\n"
				 "rules:\n"
				 "  - block: [lab-only.example]\n"
				 "plugins:\n"
				 "  threatfeed: off\n");
	snprintf(
		config, sizeof(config),
		"listen: [{address: 127.0.0.1:5399}]\n"
		"upstreams: {default: {servers: [127.0.0.1:9]}}\n"
		"plugin-folder: %s/../plugins\n"
		"plugins:\n  - ratelimit\n  - blocklist\n  - threatfeed: {min-confidence: 50}\n"
		"feeds:\n"
		"  - {name: ads, file: ads.txt, format: domains, category: advertising}\n"
		"  - {name: evil, file: evil.txt, format: hosts, kind: threat, category: malware}\n"
		"policies: policies/\nstate: state\ncontrol: state/control.sock\n",
		plugins);
	put("baleen.yaml", config);
	snprintf(config, sizeof(config), "%s/baleen.yaml", fixture.folder);
	diag_init(&d);
	if (generation_load(source_disk(), config, NULL, 1, &d, &fixture.g) < 0) {
		diag_print(&d, stderr);
		return -1;
	}
	diag_fini(&d);
	if (rehearsal_set_open(fixture.g, NULL, &fixture.set, &number, error) < 0 ||
	    explain_new(fixture.g, fixture.set, number, NULL, &fixture.e, error) < 0) {
		fprintf(stderr, "%s\n", error);
		return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	explain_free(fixture.e);
	domset_close(fixture.set);
	generation_free(fixture.g);
	if (chdir("/") < 0)
		return -1;
	snprintf(command, sizeof(command), "rm -rf %s", fixture.folder);
	return system(command);
}

static cJSON *ask(const char *request)
{
	cJSON *in = cJSON_Parse(request);

	assert_non_null(in);
	cJSON *reply = explain_reply(fixture.e, in);
	cJSON_Delete(in);
	return reply;
}

static const char *text(const cJSON *reply, const char *key)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(reply, key));
	return s ? s : "(null)";
}

static void test_decisions(void **state)
{
	(void)state;
	static const struct {
		const char *request, *verdict, *plugin, *rule, *feed, *hop;
	} rows[] = {
		{"{\"name\":\"clean.example\"}", "allow", "(null)", "(null)", "(null)", "question"},
		{"{\"name\":\"x.ads.example\"}", "block", "blocklist", "policies/default.yaml:4",
		 "ads", "question"},
		{"{\"name\":\"good.ads.example\"}", "allow", "blocklist", "policies/default.yaml:3",
		 "(null)", "question"},
		{"{\"name\":\"EVIL.example.\"}", "block", "threatfeed", "(null)", "evil",
		 "question"},
		{"{\"name\":\"evil.example\",\"client\":\"10.9.1.1\"}", "allow", "(null)", "(null)",
		 "(null)", "question"},
		{"{\"name\":\"lab-only.example\",\"client\":\"10.9.1.1\"}", "block", "blocklist",
		 "policies/lab.yaml:4", "(null)", "question"},
		{"{\"name\":\"games.example\",\"at\":\"2026-03-02T10:00:00+01:00\"}", "block",
		 "blocklist", "policies/default.yaml:7", "(null)", "question"},
		{"{\"name\":\"games.example\",\"at\":\"2026-03-02T08:59:00+01:00\"}", "allow",
		 "(null)", "(null)", "(null)", "question"},
		{"{\"name\":\"games.example\",\"at\":\"2026-03-02T08:30:00Z\"}", "block",
		 "blocklist", "policies/default.yaml:7", "(null)", "question"},
		{"{\"name\":\"shop.example\",\"answers\":[\"shop.example CNAME c.example\","
		 "\"c.example CNAME x.track.example\"]}",
		 "block", "blocklist", "policies/default.yaml:4", "ads", "cname"},
		{"{\"name\":\"shop.example\",\"answers\":[\"shop.example CNAME evil.example\"]}",
		 "block", "threatfeed", "(null)", "evil", "cname"},
		{"{\"name\":\"shop.example\",\"answers\":[\"shop.example A 203.0.113.7\"]}",
		 "block", "blocklist", "policies/default.yaml:10", "(null)", "address"},
		{"{\"name\":\"search.example\"}", "rewrite", "blocklist", "policies/default.yaml:9",
		 "(null)", "question"},
		{"{\"name\":\"a.example\",\"client\":\"8.8.8.8\"}", "refuse", "(null)", "(null)",
		 "(null)", "question"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cJSON *reply = ask(rows[i].request);
		if (strcmp(text(reply, "verdict"), rows[i].verdict) != 0)
			fail_msg("%s: %s\n%s", rows[i].request, text(reply, "verdict"),
				 text(reply, "screen"));
		assert_string_equal(text(reply, "plugin"), rows[i].plugin);
		assert_string_equal(text(reply, "rule"), rows[i].rule);
		assert_string_equal(text(reply, "feed"), rows[i].feed);
		assert_string_equal(text(reply, "hop"), rows[i].hop);
		cJSON_Delete(reply);
	}
}

static void test_the_answer_is_the_daemons(void **state)
{
	(void)state;
	cJSON *reply = ask("{\"name\":\"x.ads.example\"}");
	assert_string_equal(text(reply, "answer"),
			    "NOERROR, A 0.0.0.0, TTL 60, EDE 15 (advertising)");
	cJSON_Delete(reply);
	reply = ask("{\"name\":\"x.ads.example\",\"type\":\"TXT\"}");
	assert_string_equal(text(reply, "answer"),
			    "NOERROR without data, TTL 60, EDE 15 (advertising)");
	cJSON_Delete(reply);
	reply = ask("{\"name\":\"evil.example\"}");
	/* Listed for itself alone: names below it are not denied (RFC 8020). */
	assert_string_equal(text(reply, "answer"),
			    "NOERROR without data, TTL 60, EDE 15 (malware)");
	cJSON_Delete(reply);
	reply = ask("{\"name\":\"search.example\"}");
	assert_non_null(strstr(text(reply, "answer"), "CNAME safe.example."));
	cJSON_Delete(reply);
}

static void test_the_screen_says_it_all(void **state)
{
	(void)state;
	static const char *const words[] = {
		"x.ads.example. A for 127.0.0.1: BLOCK",
		"policies/default.yaml:4",
		"ads",
		"ads.example.",
		"blocklist",
		"ratelimit",
		"default",
		"steps",
		"rules over the question",
		"feeds that hold the name",
	};
	cJSON *reply = ask("{\"name\":\"x.ads.example\"}");
	const char *screen = text(reply, "screen");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strstr(screen, words[i]))
			fail_msg("no \"%s\" in:\n%s", words[i], screen);
	cJSON_Delete(reply);
}

static void test_steps_and_rules(void **state)
{
	(void)state;
	cJSON *reply = ask("{\"name\":\"evil.example\",\"client\":\"10.9.1.1\"}");
	const cJSON *steps = cJSON_GetObjectItem(reply, "steps");

	/* The filter that the group switched off is told, and who the client is. */
	const cJSON *first = cJSON_GetArrayItem(steps, 0);
	assert_string_equal(text(first, "plugin"), "threatfeed");
	assert_string_equal(text(first, "outcome"), "off");
	assert_string_equal(text(reply, "group"), "lab");
	assert_string_equal(text(reply, "group_why"), "10.9.0.0/16");
	cJSON_Delete(reply);

	reply = ask("{\"name\":\"a.watched.example\"}");
	const cJSON *would = cJSON_GetObjectItem(reply, "would");
	assert_int_equal(cJSON_GetArraySize(would), 1);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(would, 0)),
			    "blocklist: block, rule policies/default.yaml:6");
	cJSON_Delete(reply);

	/* Rules are listed in order, the ones that do not match with a reason. */
	reply = ask("{\"name\":\"games.example\",\"at\":\"2026-03-01T10:00:00+01:00\"}");
	const cJSON *rules = cJSON_GetObjectItem(reply, "rules");
	assert_true(cJSON_GetArraySize(rules) >= 4);
	const cJSON *rule = cJSON_GetArrayItem(rules, 3);
	assert_string_equal(text(rule, "rule"), "policies/default.yaml:7");
	assert_false(cJSON_IsTrue(cJSON_GetObjectItem(rule, "matches")));
	assert_true(strlen(text(rule, "why")) > 0);
	cJSON_Delete(reply);
}

static void test_questions_do_not_touch_each_other(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		/* More often than the rate limit allows: a rehearsal spends nothing. */
		for (int n = 0; n < 300; n++) {
			cJSON *reply = ask("{\"name\":\"clean.example\"}");
			assert_string_equal(text(reply, "verdict"), "allow");
			cJSON_Delete(reply);
		}
		cJSON *reply = ask("{\"name\":\"x.ads.example\"}");
		assert_string_equal(text(reply, "verdict"), "block");
		cJSON_Delete(reply);
	}
}

static void test_what_cannot_be_asked(void **state)
{
	(void)state;
	static const struct {
		const char *request, *error;
	} rows[] = {
		{"{}", "name"},
		{"{\"name\":\"a..b\"}", "name"},
		{"{\"name\":7}", "name"},
		{"{\"name\":\"a\",\"type\":\"NOSUCH\"}", "type"},
		{"{\"name\":\"a\",\"client\":\"300.1.1.1\"}", "\"300.1.1.1\" is no address"},
		{"{\"name\":\"a\",\"at\":\"yesterday\"}", "\"yesterday\" is no time"},
		{"{\"name\":\"a\",\"at\":\"2026-03-02 10:00\"}", "no time"}, /* whose? */
		{"{\"name\":\"a\",\"transport\":\"pigeon\"}", "transport"},
		{"{\"name\":\"a\",\"listener\":\"nowhere\"}", "nowhere"},
		{"{\"name\":\"a\",\"answers\":[7]}", "answers"},
		{"{\"name\":\"a\",\"answers\":[\"a A nonsense\"]}", "nonsense"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cJSON *reply = ask(rows[i].request);
		assert_true(cJSON_IsFalse(cJSON_GetObjectItem(reply, "ok")));
		if (!strstr(text(reply, "error"), rows[i].error))
			fail_msg("%s: %s", rows[i].request, text(reply, "error"));
		cJSON_Delete(reply);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decisions),
		cmocka_unit_test(test_the_answer_is_the_daemons),
		cmocka_unit_test(test_the_screen_says_it_all),
		cmocka_unit_test(test_steps_and_rules),
		cmocka_unit_test(test_questions_do_not_touch_each_other),
		cmocka_unit_test(test_what_cannot_be_asked),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
