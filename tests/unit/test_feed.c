/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/feed.c and feeds/catalogue.c: subscriptions as configured, and every error of theirs. */
#include "feeds/catalogue.h"
#include "feeds/feed.h"
#include "feeds/formats/format.h"

#include "base/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static char config[128];
static struct arena arena;
static struct diags d;
static struct source *source;
static struct feeds feeds;

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_feed.XXXXXX");
	if (!mkdtemp(folder) || chdir(folder) < 0)
		return -1;
	snprintf(config, sizeof(config), "%s/baleen.yaml", folder);
	source = source_disk();
	return file_replace("ca.pem", "x", 1, 0600);
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	source_free(source);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") == 0 ? system(command) : -1;
}

static int load(const char *text)
{
	struct node *root;
	arena_init(&arena);
	diag_init(&d);
	assert_int_equal(node_parse("baleen.yaml", text, strlen(text), &arena, &d, &root), 0);
	return feeds_load(node_get(root, "feeds"), config, source, &arena, &d, &feeds);
}

static void done(void)
{
	diag_fini(&d);
	arena_fini(&arena);
}

static void everything_given(void **state)
{
	(void)state;
	int result = load(
		"feeds:\n"
		"  - name: ours\n"
		"    file: lists/ours.txt\n"
		"    format: domains\n"
		"    match: exact\n"
		"    kind: threat\n"
		"    category: malware\n"
		"    threat-type: c2\n"
		"    confidence: 70\n"
		"    refresh: 30m\n"
		"    mode: shadow\n"
		"    max-size: 1MiB\n"
		"    admission: {shrink: 0.1, grow: 10}\n"
		"  - {name: net, url: 'https://l.example/x', mirrors: ['http://m.example/x'],\n"
		"     ca-file: ca.pem, header-file: ca.pem, allow-private: yes}\n"
		"  - {name: plain, file: /abs/list}\n");
	diag_print(&d, stderr);
	assert_int_equal(result, 0);
	assert_int_equal(feeds.count, 3);
	const struct feed *f = &feeds.items[0];
	char path[128];
	snprintf(path, sizeof(path), "%s/lists/ours.txt", folder);
	assert_string_equal(f->file, path);
	assert_null(f->urls);
	assert_ptr_equal(f->format, &feed_format_domains);
	assert_int_equal(f->match, FEED_MATCH_EXACT);
	assert_int_equal(f->kind, FEED_KIND_THREAT);
	assert_string_equal(f->category, "malware");
	assert_string_equal(f->threat_type, "c2");
	assert_int_equal(f->confidence, 70);
	assert_int_equal(f->refresh_ms, 1800000);
	assert_int_equal(f->mode, FEED_MODE_SHADOW);
	assert_int_equal(f->max_bytes, 1 << 20);
	assert_true(f->shrink_limit > 0.09 && f->shrink_limit < 0.11 && f->grow_limit > 9.9);
	f = &feeds.items[1];
	assert_string_equal(f->urls[1], "http://m.example/x");
	assert_null(f->urls[2]);
	snprintf(path, sizeof(path), "%s/ca.pem", folder);
	assert_string_equal(f->ca_file, path);
	assert_string_equal(f->header_file, path);
	assert_true(f->allow_private);
	f = feeds_find(&feeds, "plain");
	assert_int_equal(f->number, 2);
	assert_null(f->format);
	assert_string_equal(f->category, "");
	assert_int_equal(f->refresh_ms, 86400000);
	assert_true(feedmask_has(&feeds.enforced, 1));
	assert_false(feedmask_has(&feeds.enforced, 0));
	done();
}

static void none(void **state)
{
	(void)state;
	assert_int_equal(load("other: 1\n"), 0);
	assert_int_equal(feeds.count, 0);
	done();
	assert_int_equal(load("feeds:\n"), 0);
	done();
}

static void errors(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int line;
		const char *error;
	} rows[] = {
		{"feeds: x\n", 1, "expected a list of feeds"},
		{"feeds:\n  - file: x\n", 2, "a feed without name"},
		{"feeds:\n  - {name: Ours, file: x}\n", 2, "no feed name"},
		{"feeds:\n  - {name: ../x, file: x}\n", 2, "no feed name"},
		{"feeds:\n  - {name: a, file: x}\n  - {name: a, file: y}\n", 3, "first on line 2"},
		{"feeds:\n  - {name: a, file: x, url: 'http://x/'}\n", 2, "one of them"},
		{"feeds:\n  - {name: no-such-feed}\n", 2, "neither file nor url"},
		{"feeds:\n  - no-such-feed\n", 2, "neither file nor url"},
		{"feeds:\n  - {name: a, url: 'ftp://x/'}\n", 2, "is no URL that feeds come from"},
		{"feeds:\n  - {name: a, url: 'http://x/ y'}\n", 2, "blank"},
		{"feeds:\n  - {name: a, file: x, mirrors: ['http://x/']}\n", 2,
		 "mirrors without url"},
		{"feeds:\n  - {name: a, file: x, format: host}\n", 2, "did you mean \"hosts\"?"},
		{"feeds:\n  - {name: a, file: x, format: dnsmsq}\n", 2, "did you mean \"dnsmasq\""},
		{"feeds:\n  - {name: a, file: x, format: domains, column: b}\n", 2,
		 "column goes with format: csv"},
		{"feeds:\n  - {name: a, file: x, column: b}\n", 2, "column goes with format: csv"},
		{"feeds:\n  - {name: a, file: x, format: csv, column: 0}\n", 2, "from 1"},
		{"feeds:\n  - {name: a, file: x, format: csv, path: b}\n", 2,
		 "path goes with format: json"},
		{"feeds:\n  - {name: a, file: x, format: json, path: \"a..b\"}\n", 2, "no path"},
		{"feeds:\n  - {name: a, file: x, format: hosts, url-host: true}\n", 2,
		 "url-host goes with format: urls"},
		{"feeds:\n  - {name: a, file: x, format: misp, match: exact}\n", 2,
		 "says itself what each rule matches"},
		{"feeds:\n  - {name: a, file: x, format: adblock, match: exact}\n", 2,
		 "says itself"},
		{"feeds:\n  - {name: a, file: x, match: all}\n", 2, "subtree"},
		{"feeds:\n  - {name: a, file: x, categroy: y}\n", 2, "did you mean \"category\"?"},
		{"feeds:\n  - {name: a, file: x, ca-file: none.pem}\n", 2,
		 "none.pem cannot be read"},
		{"feeds:\n  - {name: a, file: x, confidence: 101}\n", 2, "100"},
		{"feeds:\n  - {name: a, file: x, refresh: soon}\n", 2, "soon"},
		{"feeds:\n  - {name: a, file: x, admission: {shrnk: 1}}\n", 2, "shrink"},
		{"feeds:\n  - [a]\n", 2, "expected a feed"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool found = false;
		assert_int_equal(load(rows[i].text), -EINVAL);
		for (size_t j = 0; j < d.count; j++)
			found = found ||
				(d.items[j].line == rows[i].line && d.items[j].column > 0 &&
				 strstr(d.items[j].text, rows[i].error));
		if (!found) {
			print_error("expected: %s\n", rows[i].error);
			diag_print(&d, stderr);
		}
		assert_true(found);
		done();
	}
}

static void all_errors_at_once(void **state)
{
	(void)state;
	assert_int_equal(load("feeds:\n  - {name: A, file: x}\n  - {name: b}\n"
			      "  - {name: c, file: x, kind: bad, mode: bad}\n"),
			 -EINVAL);
	assert_int_equal(d.errors, 4);
	done();
}

/* The shipped catalogue, if this test runs in a build tree. */
static void shipped_catalogue(void **state)
{
	(void)state;
	struct catalogue c;
	arena_init(&arena);
	diag_init(&d);
	int result = catalogue_load(source, &arena, &d, &c);
	diag_print(&d, stderr);
	if (result == -ENOENT) {
		done();
		skip();
	}
	assert_int_equal(result, 0);
	assert_true(c.count >= 30);
	for (size_t i = 0; i < c.count; i++) {
		assert_ptr_equal(catalogue_find(&c, c.items[i].name), &c.items[i]);
		assert_true(c.items[i].refresh_ms >= 300000);
	}
	done();
	assert_int_equal(load("feeds:\n  - hagezi-tif\n  - {name: oisd-big, refresh: 1m}\n"), 0);
	assert_int_equal(feeds.items[0].kind, FEED_KIND_THREAT);
	assert_int_equal(feeds.items[0].match, FEED_MATCH_SUBTREE);
	assert_non_null(feeds.items[0].urls[1]);
	assert_int_equal(feeds.items[1].refresh_ms, 86400000);
	assert_int_equal(d.warnings, 1);
	done();
	assert_int_equal(load("feeds: [hagezi-tfi]\n"), -EINVAL);
	assert_non_null(strstr(d.items[0].text, "did you mean \"hagezi-tif\"?"));
	done();
	assert_int_equal(load("feeds: [urlhaus-hosts]\n"), -EINVAL);
	assert_non_null(strstr(d.items[0].text, "needs a key"));
	done();
	assert_int_equal(load("feeds: [{name: urlhaus-hosts, header-file: ca.pem}]\n"), 0);
	done();
}

static void masks(void **state)
{
	(void)state;
	struct feedmask a = {{0}}, b = {{0}};
	assert_int_equal(feedmask_first(&a, &b), FEED_NONE);
	feedmask_add(&a, 3);
	feedmask_add(&a, 255);
	feedmask_add(&b, 255);
	assert_int_equal(feedmask_first(&a, &b), 255);
	feedmask_add(&b, 3);
	assert_int_equal(feedmask_first(&a, &b), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_given),
		cmocka_unit_test(none),
		cmocka_unit_test(errors),
		cmocka_unit_test(all_errors_at_once),
		cmocka_unit_test(shipped_catalogue),
		cmocka_unit_test(masks),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
