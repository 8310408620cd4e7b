/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core/config.c and its neighbours: the files of tests/conf. A bad one begins with the errors that
 * it must give, one comment a line, in order; a good one gives none. Run from the tree's top.
 */
#include "core/config.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define EXPECT "# error: "

struct loaded {
	struct source *source;
	struct arena arena;
	struct diags diags;
	struct config config;
	int result;
};

static void load(struct loaded *l, const char *path)
{
	memset(l, 0, sizeof(*l));
	arena_init(&l->arena);
	diag_init(&l->diags);
	l->source = source_disk();
	l->result = config_load(l->source, path, &l->arena, &l->diags, &l->config);
}

static void unload(struct loaded *l)
{
	source_free(l->source);
	arena_fini(&l->arena);
	diag_fini(&l->diags);
}

/* Paths in texts begin with the folder the test runs in: take it out. */
static void print_errors(const struct diags *d, FILE *out)
{
	char here[512];
	assert_non_null(getcwd(here, sizeof(here)));
	for (size_t i = 0; i < d->count; i++) {
		const char *text = d->items[i].text;
		size_t n = strlen(here);
		if (d->items[i].level != DIAG_ERROR)
			continue;
		if (strncmp(text, here, n) == 0)
			text += n + 1;
		fprintf(out, "%d:%d: %s\n", d->items[i].line, d->items[i].column, text);
	}
}

static void print_expected(const char *path, FILE *out)
{
	char line[512];
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && strncmp(line, EXPECT, strlen(EXPECT)) == 0)
		fputs(line + strlen(EXPECT), out);
	fclose(f);
}

static unsigned each_file(const char *folder, void (*check)(const char *path))
{
	unsigned count = 0;
	DIR *d = opendir(folder);
	assert_non_null(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		char path[512];
		if (!strstr(e->d_name, ".yaml"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		check(path);
		count++;
	}
	closedir(d);
	return count;
}

static unsigned different; /* bad files whose errors are not those they name */

static void check_bad(const char *path)
{
	struct loaded l;
	char *found = NULL, *expected = NULL;
	size_t size;
	load(&l, path);
	FILE *out = open_memstream(&found, &size);
	print_errors(&l.diags, out);
	fclose(out);
	out = open_memstream(&expected, &size);
	print_expected(path, out);
	fclose(out);
	if (strcmp(found, expected) != 0) {
		print_error("%s: found\n%sexpected\n%s", path, found, expected);
		different++;
	}
	assert_int_equal(l.result, -EINVAL);
	assert_true(l.diags.errors > 0);
	free(found);
	free(expected);
	unload(&l);
}

static void check_good(const char *path)
{
	struct loaded l;
	load(&l, path);
	diag_print(&l.diags, stderr);
	assert_int_equal(l.diags.errors, 0);
	assert_int_equal(l.result, 0);
	unload(&l);
}

static void test_bad_files(void **state)
{
	(void)state;
	assert_true(each_file("tests/conf/bad", check_bad) >= 10);
	assert_int_equal(different, 0);
}

static void test_good_files(void **state)
{
	(void)state;
	assert_true(each_file("tests/conf/good", check_good) >= 2);
}

static void test_missing_file(void **state)
{
	(void)state;
	struct loaded l;
	load(&l, "tests/conf/none.yaml");
	assert_int_equal(l.result, -EINVAL);
	assert_int_equal(l.diags.errors, 1);
	assert_string_equal(l.diags.items[0].text, "cannot be read: No such file or directory");
	unload(&l);
}

static void test_defaults(void **state)
{
	(void)state;
	struct loaded l;
	char text[ENDPOINT_TEXT_MAX];
	load(&l, "tests/conf/good/minimal.yaml");
	const struct config *c = &l.config;
	assert_int_equal(c->listener_count, 1);
	assert_string_equal(endpoint_format(&c->listeners[0].endpoint, text), "127.0.0.1:53");
	static const struct {
		const char *client;
		bool allowed;
	} clients[] = {{"127.0.0.1", true},  {"::1", true},	     {"10.9.9.9", true},
		       {"172.31.1.1", true}, {"172.32.1.1", false},  {"192.168.1.1", true},
		       {"100.64.1.1", true}, {"100.128.1.1", false}, {"169.254.1.1", true},
		       {"fd00::1", true},    {"fe80::1", true},	     {"2001:db8::1", false},
		       {"9.9.9.9", false}};
	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		struct addr a;
		bool allowed = false;
		assert_int_equal(addr_parse(clients[i].client, &a), 0);
		for (size_t k = 0; k < c->allow_client_count; k++)
			allowed |= prefix_contains(&c->allow_clients[k], &a);
		assert_int_equal(allowed, clients[i].allowed);
	}
	assert_true(c->workers >= 1 && c->workers <= CONFIG_WORKERS_MAX);
	assert_int_equal(c->upstream_count, 1);
	assert_string_equal(c->upstreams[0].name, "default");
	assert_int_equal(c->upstreams[0].timeout_ms, 2000);
	assert_int_equal(c->upstreams[0].strategy, STRATEGY_FASTEST);
	assert_int_equal(c->cache_bytes, 64 << 20);
	assert_int_equal(c->min_ttl_s, 0);
	assert_int_equal(c->max_ttl_s, 86400);
	assert_int_equal(c->stale_s, 86400);
	assert_int_equal(c->chain_count, 1);
	assert_string_equal(c->chain[0].plugin, "blocklist");
	assert_int_equal(c->hang_timeout_ms, 1000);
	assert_null(c->policies);
	assert_string_equal(c->state, "/var/lib/baleen");
	assert_string_equal(c->control, "/run/baleen/control.sock");
	assert_string_equal(c->user, "baleen");
	assert_false(c->user_given);
	assert_false(c->admin_enabled);
	unload(&l);
}

static void test_every_key(void **state)
{
	(void)state;
	struct loaded l;
	char text[ENDPOINT_TEXT_MAX], name[NAME_TEXT_MAX], path[1024], here[512];
	assert_non_null(getcwd(here, sizeof(here)));
	load(&l, "tests/conf/good/whole.yaml");
	const struct config *c = &l.config;
	assert_int_equal(c->listener_count, 2);
	assert_string_equal(endpoint_format(&c->listeners[1].endpoint, text), "[::1]:5353");
	assert_string_equal(c->listeners[1].name, "lab");
	assert_null(c->listeners[0].name);
	assert_int_equal(c->allow_client_count, 3);
	assert_int_equal(c->trusted_count, 1);
	assert_int_equal(c->workers, 3);
	assert_int_equal(c->upstream_count, 2);
	assert_int_equal(c->upstreams[0].server_count, 2);
	assert_string_equal(endpoint_format(&c->upstreams[0].servers[0], text), "9.9.9.9:53");
	assert_string_equal(endpoint_format(&c->upstreams[0].servers[1], text), "192.0.2.53:5300");
	assert_int_equal(c->upstreams[0].strategy, STRATEGY_RACE);
	assert_int_equal(c->upstreams[0].timeout_ms, 3000);
	assert_string_equal(c->upstreams[1].name, "corp");
	assert_int_equal(c->upstreams[1].zone_count, 3);
	name_format(c->upstreams[1].zones[2].wire, name);
	assert_string_equal(name, "xn--bcher-kva.example.");
	assert_int_equal(c->cache_bytes, 8 << 20);
	assert_int_equal(c->min_ttl_s, 5);
	assert_int_equal(c->max_ttl_s, 3600);
	assert_int_equal(c->stale_s, 7200);
	assert_int_equal(c->chain_count, 5);
	assert_string_equal(c->chain[0].instance, "early");
	assert_string_equal(c->chain[1].instance, "ratelimit");
	assert_string_equal(node_get(c->chain[0].options, "burst")->text, "400");
	assert_null(c->chain[2].options);
	assert_true(c->chain[3].monitor);
	assert_int_equal(c->chain[3].on_failure, ON_FAILURE_CLOSED);
	assert_int_equal(c->chain[3].max_crashes, 5);
	assert_int_equal(c->chain[3].within_ms, 60000);
	assert_int_equal(c->chain[3].retry_after_ms, 120000);
	assert_int_equal(c->chain[2].on_failure, ON_FAILURE_OPEN);
	assert_int_equal(c->chain[2].max_crashes, 3);
	assert_int_equal(c->chain[2].within_ms, 600000);
	assert_int_equal(c->hang_timeout_ms, 2000);
	assert_int_equal(c->feeds.count, 1);
	snprintf(path, sizeof(path), "%s/tests/conf/good/lists/protected.txt", here);
	assert_int_equal(c->protected_count, 1);
	assert_string_equal(c->protected_files[0], path);
	snprintf(path, sizeof(path), "%s/tests/conf/good/policies/", here);
	assert_string_equal(c->policies, path);
	snprintf(path, sizeof(path), "%s/tests/conf/good/../state", here);
	assert_string_equal(c->state, path);
	strcat(path, "/control.sock");
	assert_string_equal(c->control, path);
	assert_string_equal(c->user, "nobody");
	assert_true(c->user_given);
	assert_true(c->admin_enabled);
	assert_string_equal(c->admin_token, "secret-token");
	snprintf(path, sizeof(path), "%s/tests/conf/good/plugins", here);
	assert_string_equal(c->plugin_folder, path);
	unload(&l);
}

/* A snapshot gives the same configuration, resolv.conf included. */
static void test_from_a_snapshot(void **state)
{
	(void)state;
	struct loaded disk, sealed;
	int memfd;
	load(&disk, "tests/conf/good/minimal.yaml");
	assert_int_equal(source_seal(disk.source, &memfd), 0);
	memset(&sealed, 0, sizeof(sealed));
	arena_init(&sealed.arena);
	diag_init(&sealed.diags);
	assert_int_equal(source_snapshot(memfd, &sealed.source), 0);
	close(memfd);
	assert_int_equal(config_load(sealed.source, "tests/conf/good/minimal.yaml", &sealed.arena,
				     &sealed.diags, &sealed.config),
			 0);
	assert_int_equal(sealed.config.upstreams[0].server_count,
			 disk.config.upstreams[0].server_count);
	for (size_t i = 0; i < disk.config.upstreams[0].server_count; i++)
		assert_true(endpoint_equal(&sealed.config.upstreams[0].servers[i],
					   &disk.config.upstreams[0].servers[i]));
	unload(&sealed);
	unload(&disk);
}

static void test_paths_for_client_commands(void **state)
{
	(void)state;
	char *control, *folder, path[1024], here[512];
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(config_find_paths("tests/conf/good/whole.yaml", &control, &folder), 0);
	snprintf(path, sizeof(path), "%s/tests/conf/good/../state/control.sock", here);
	assert_string_equal(control, path);
	free(control);
	free(folder);

	/* What else is wrong in the file does not matter here. */
	assert_int_equal(config_find_paths("tests/conf/bad/unknown-keys.yaml", &control, &folder),
			 0);
	assert_string_equal(control, "/run/baleen/control.sock");
	assert_string_equal(folder, "/var/lib/baleen");
	free(control);
	free(folder);
	assert_int_equal(config_find_paths("tests/conf/none.yaml", &control, &folder), -ENOENT);
	assert_string_equal(control, "/run/baleen/control.sock");
	free(control);
	free(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_good_files),
		cmocka_unit_test(test_missing_file),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_from_a_snapshot),
		cmocka_unit_test(test_paths_for_client_commands),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
