/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/state.c, feeds/ownership.c, feeds/setfiles.c: what lies in the state folder. */
#include "feeds/ownership.h"
#include "feeds/setfiles.h"
#include "feeds/state.h"

#include "base/file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static const char *const urls[] = {"https://lists.example/x", NULL};
static const struct feed feed = {.name = "net",
				 .urls = urls,
				 .category = "ads",
				 .mode = FEED_MODE_SHADOW};

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_state.XXXXXX");
	return mkdtemp(folder) && chdir(folder) == 0 && file_make_folder("s/feeds/net", 0700) == 0
		       ? 0
		       : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") == 0 ? system(command) : -1;
}

static void written_and_read_back(void **state)
{
	(void)state;
	static struct state a, b;
	a = (struct state){
		.status = STATE_OK,
		.failures = 3,
		.entries = 123456789,
		.version = 7,
		.accepted = 9,
		.checked_s = 1800000000,
		.file_mtime_ns = 1800000000123456789,
		.file_inode = UINT64_MAX >> 1,
	};
	strcpy(a.error, "with \"quotes\", \x1b and \xc3\xbc");
	strcpy(a.etag, "W/\"x\"");
	a.rejects[FEED_REJECT_NAME].count = 5;
	a.rejects[FEED_REJECT_NAME].examples[1].line = 17;
	strcpy(a.rejects[FEED_REJECT_NAME].examples[1].text, "b..test");
	assert_int_equal(state_write("s", &feed, &a), 0);
	state_read("s", "net", &b);
	assert_memory_equal(&a, &b, sizeof(a));
}

static void as_shown(void **state)
{
	(void)state;
	static struct state s = {.status = STATE_OK};
	assert_int_equal(state_write("s", &feed, &s), 0);
	cJSON *one = state_json("s", "net");
	assert_string_equal(cJSON_GetObjectItem(one, "status")->valuestring, "shadow");
	assert_string_equal(cJSON_GetObjectItem(one, "origin")->valuestring, urls[0]);
	cJSON_Delete(one);
	s.status = STATE_FAILED;
	assert_int_equal(state_write("s", &feed, &s), 0);
	cJSON *all = state_json_all("s");
	assert_int_equal(cJSON_GetArraySize(all), 1);
	one = cJSON_GetArrayItem(all, 0);
	assert_string_equal(cJSON_GetObjectItem(one, "status")->valuestring, "failed");
	cJSON_Delete(all);
	assert_null(state_json("s", "none"));
}

static void damage_gives_a_fresh_state(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"7",
		"{\"entries\": \"x\", \"error\": 7, \"rejects\": [1, {}]}",
		"{\"checked\": 1e300, \"outcome\": {}}"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		static struct state s, none;
		memset(&s, 0xff, sizeof(s));
		assert_int_equal(file_replace("s/feeds/net/state.json", texts[i], strlen(texts[i]),
					      0600),
				 0);
		state_read("s", "net", &s);
		assert_memory_equal(&s, &none, sizeof(s));
	}
}

static void the_newest_owner_writes(void **state)
{
	(void)state;
	struct ownership a = {.fd = -1}, b = {.fd = -1};
	assert_int_equal(ownership_claim(&a, "lock", 100), 0);
	assert_int_equal(ownership_enter(&a, 100), 0);
	assert_int_equal(ownership_claim(&b, "lock", 100), -EBUSY); /* a writes now */
	ownership_leave(&a);
	assert_int_equal(ownership_claim(&b, "lock", 100), 0);
	assert_int_equal(ownership_enter(&a, 100), -ESTALE);
	assert_false(ownership_orphaned(&a));
	assert_int_equal(ownership_enter(&b, 100), 0);
	ownership_leave(&b);
	ownership_release(&b);
	assert_true(ownership_orphaned(&a));
	assert_int_equal(ownership_claim(&a, "lock", 100), 0);
	assert_int_equal(ownership_enter(&a, 100), 0);
	ownership_release(&a);
}

static void a_dead_owner_holds_nothing(void **state)
{
	(void)state;
	struct ownership a = {.fd = -1};
	pid_t child = fork();
	if (child == 0) {
		struct ownership c = {.fd = -1};
		if (ownership_claim(&c, "lock2", 100) == 0 && ownership_enter(&c, 100) == 0)
			abort(); /* in the midst of a write */
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(ownership_claim(&a, "lock2", 100), 0);
	assert_int_equal(a.ticket, 2);
	ownership_release(&a);
}

static void touch(const char *path)
{
	assert_int_equal(file_replace(path, "", 0, 0600), 0);
}

static void set_files(void **state)
{
	(void)state;
	assert_int_equal(setfiles_newest("t", UINT64_MAX), 0);
	assert_int_equal(file_make_folder("t/sets", 0700), 0);
	static const char *const names[] = {"domains.1.mdb",	    "domains.9.mdb",
					    "domains.10.mdb",	    "domains.10.json",
					    "domains.11.mdb.tmp.7", "domains.x.mdb",
					    "domains.0.mdb",	    "meta.77.mdb"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];
		snprintf(path, sizeof(path), "t/sets/%s", names[i]);
		touch(path);
	}
	assert_int_equal(setfiles_newest("t", UINT64_MAX), 10);
	assert_int_equal(setfiles_newest("t", 10), 9);
	assert_int_equal(setfiles_newest("t", 1), 0);
	setfiles_clean("t", 10);
	assert_int_equal(system("test \"$(ls t/sets | tr '\\n' ' ')\" = 'domains.0.mdb "
				"domains.10.json domains.10.mdb domains.9.mdb domains.x.mdb "
				"meta.77.mdb '"),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_and_read_back),
		cmocka_unit_test(as_shown),
		cmocka_unit_test(damage_gives_a_fresh_state),
		cmocka_unit_test(the_newest_owner_writes),
		cmocka_unit_test(a_dead_owner_holds_nothing),
		cmocka_unit_test(set_files),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
