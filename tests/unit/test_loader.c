/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that are wrong: each is refused, with a sentence that says what is wrong and where. */
#include "chain_rig.h"

#include "core/chain/loader.h"

#include <fcntl.h>
#include <sys/stat.h>

struct row {
	const char *plugin;
	const char *told;
};

static void test_wrong_plugins_are_refused(void **state)
{
	(void)state;
	char major[64], minor[64];
	const struct row rows[] = {
		{"wrong_size", "says that its descriptor has 12 octets"},
		{"wrong_major", major},
		{"wrong_minor", minor},
		{"wrong_entry", "does not export baleen_plugin_entry"},
		{"wrong_null", "refuses this program"},
		{"wrong_kind", "unknown kind 9"},
		{"wrong_hooks", "at least one of on_client, on_query, on_answer"},
		{"wrong_sink", "a sink has on_events and no other hook"},
		{"wrong_name", "its name is missing or not"},
		{"wrong_option", "option late lies outside of the options struct"},
		{"wrong_slot", "no room left for its per-query memory"},
		{"wrong_configure", "the moon is not out"},
		{"no-such-plugin", "No such file"},
	};

	snprintf(major, sizeof(major), "interface %d.%d, this program has %d.%d",
		 BALEEN_PLUGIN_MAJOR + 1, BALEEN_PLUGIN_MINOR, BALEEN_PLUGIN_MAJOR,
		 BALEEN_PLUGIN_MINOR);
	snprintf(minor, sizeof(minor), "interface %d.%d, this program has only %d.%d",
		 BALEEN_PLUGIN_MAJOR, BALEEN_PLUGIN_MINOR + 1, BALEEN_PLUGIN_MAJOR,
		 BALEEN_PLUGIN_MINOR);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig *r = rig_new(false);
		rig_add(r, rows[i].plugin, "it", NULL);
		assert_int_equal(rig_load(r), -EINVAL);
		if (!rig_told(r, rows[i].told))
			fail_msg("%s: not told: %s", rows[i].plugin, rows[i].told);
		/* The file and the place in the configuration. */
		assert_int_equal(r->d.items[0].line, 1);
		assert_int_equal(r->d.items[0].column, 5);
		assert_string_equal(r->d.items[0].file, "/etc/baleen/baleen.yaml");
		rig_free(r);
	}
}

static void test_all_errors_not_only_the_first(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "wrong_major", "one", NULL);
	rig_add(r, "scripted", "two", "{query: 101, nosuch: 1, asnwer: 2}");
	rig_add(r, "wrong_null", "three", NULL);
	assert_int_equal(rig_load(r), -EINVAL);
	assert_true(rig_told(r, "was built for plugin interface"));
	assert_true(rig_told(r, "101"));
	assert_true(rig_told(r, "nosuch"));
	assert_true(rig_told(r, "did you mean \"answer\"?"));
	assert_true(rig_told(r, "refuses this program"));
	rig_free(r);
}

static void test_older_plugin_misses_its_tail(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "older", "older", NULL);
	rig_start(r);
	assert_non_null(chain_plugin(r->chain, 0)->on_query);
	/* It has on_answer in its memory, but it was not there when its header was written. */
	assert_null(chain_plugin(r->chain, 0)->on_answer);
	rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_ANSWER, NULL), CHAIN_GO_ON);
	rig_free(r);
}

static void test_start_that_fails_says_why(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);
	char error[256];

	rig_add(r, "wrong_start", "grump", NULL);
	assert_int_equal(rig_load(r), 0);
	r->w.crumb = &r->crumb;
	assert_true(chain_start_worker(r->chain, &r->w, NULL, error) < 0);
	assert_string_equal(error, "plugin grump: the sun is not out");
	rig_free(r);
}

static void copy_file(const char *from, const char *to)
{
	static char data[1 << 20];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(in >= 0 && out >= 0);
	ssize_t n = read(in, data, sizeof(data));
	assert_true(n > 0 && n < (ssize_t)sizeof(data));
	assert_int_equal(write(out, data, (size_t)n), n);
	close(in);
	close(out);
}

/* `cp -f new.so loaded.so` keeps the inode: code that runs from the file would be pulled away. */
static void test_overwriting_a_loaded_file_hurts_nobody(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);
	char from[8192], path[] = "/tmp/baleen-plugin-XXXXXX.so";
	int fd = mkstemps(path, 3);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	snprintf(from, sizeof(from), "%s/scripted.so", r->abi);
	copy_file(from, path);
	rig_add(r, "scripted", "copy", "{query: 5}");
	r->g.config.chain[0].plugin = path;
	rig_start(r);
	assert_int_equal(ftruncate(fd, 0), 0);
	rig_query(r, "a.test", "192.0.2.1");
	assert_int_equal(rig_run(r, PHASE_QUERY, NULL), CHAIN_DECIDED);
	assert_int_equal(r->q.verdict, EVENT_REFUSE);
	close(fd);
	unlink(path);
	rig_free(r);
}

static void test_twice_needs_a_name(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "scripted", "same", NULL);
	rig_add(r, "scripted", "same", NULL);
	assert_int_equal(rig_load(r), -EINVAL);
	assert_true(rig_told(r, "is in the chain twice"));
	rig_free(r);
}

static void test_as_root_others_may_not_write_it(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	struct rig *r = rig_new(false);
	char from[8192], path[] = "/tmp/baleen-plugin-XXXXXX.so";
	int fd = mkstemps(path, 3);

	assert_true(fd >= 0);
	snprintf(from, sizeof(from), "%s/scripted.so", r->abi);
	copy_file(from, path);
	assert_int_equal(fchmod(fd, 0666), 0);
	rig_add(r, "scripted", "open", NULL);
	r->g.config.chain[0].plugin = path;
	assert_int_equal(rig_load(r), -EINVAL);
	assert_true(rig_told(r, "may be written by others"));
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(fchown(fd, 12345, 12345), 0);
	assert_int_equal(rig_load(r), -EINVAL);
	assert_true(rig_told(r, "belongs to user 12345"));
	close(fd);
	unlink(path);
	rig_free(r);
}

static void test_by_word_the_name_must_fit(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "blocklist", "blocklist", NULL);
	r->g.config.plugin_folder = r->plugins;
	r->g.config.chain[0].plugin = "blocklist";
	assert_int_equal(rig_load(r), 0);
	r->g.config.plugin_folder = r->abi;
	r->g.config.chain[0].plugin = "older";
	assert_int_equal(rig_load(r), 0);
	r->g.config.chain[0].plugin = "scripted_guard"; /* calls itself scripted-guard */
	assert_int_equal(rig_load(r), -EINVAL);
	assert_true(rig_told(r, "calls itself \"scripted-guard\""));
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_plugins_are_refused),
		cmocka_unit_test(test_all_errors_not_only_the_first),
		cmocka_unit_test(test_older_plugin_misses_its_tail),
		cmocka_unit_test(test_start_that_fails_says_why),
		cmocka_unit_test(test_overwriting_a_loaded_file_hurts_nobody),
		cmocka_unit_test(test_twice_needs_a_name),
		cmocka_unit_test(test_as_root_others_may_not_write_it),
		cmocka_unit_test(test_by_word_the_name_must_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
