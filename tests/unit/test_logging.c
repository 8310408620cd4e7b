/* SPDX-License-Identifier: Apache-2.0 */
/* The logging plugin, fed as the logger feeds it: whole lines, rotation, a disk that is full. */
#include "chain_rig.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char folder[64];

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/baleen-logging-XXXXXX");
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	if (chdir("/") < 0)
		return -1;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static struct rig *logger(const char *yaml)
{
	struct rig *r = rig_new(true);
	char error[256];

	rig_add(r, "logging", "logging", yaml);
	assert_int_equal(rig_load(r), 0);
	if (chain_start_logger(r->chain, NULL, error) < 0)
		fail_msg("%s", error);
	return r;
}

static void stop(struct rig *r)
{
	chain_stop_logger(r->chain);
	rig_free(r);
}

static struct baleen_event event(const char *client, const char *verdict)
{
	static const char *const none[] = {NULL};
	static struct addr addresses[64];
	static unsigned next;
	struct addr *a = &addresses[next++ % 64];

	assert_int_equal(addr_parse(client, a), 0);
	return (struct baleen_event){
		.size = sizeof(struct baleen_event),
		.type = TYPE_A,
		.rrclass = CLASS_IN,
		.wall_us = 1700000000000000,
		.client = a->octets,
		.group = "default",
		/* A quote, a newline, a backslash and an octet that is no UTF-8. */
		.name = (const uint8_t *)"\5a\"\n\\\xff\4test",
		.name_length = 12,
		.verdict = verdict,
		.feeds = none,
		.mode = "enforce",
		.cache = "none",
	};
}

static void send_events(struct rig *r, unsigned count, const char *client, const char *verdict)
{
	struct baleen_event many[64];

	while (count) {
		unsigned n = count < 64 ? count : 64;
		for (unsigned i = 0; i < n; i++)
			many[i] = event(client, verdict);
		chain_events(r->chain, many, n, 0);
		count -= n;
	}
}

/* Every line must be JSON; returns how many, and the last one's client. */
static unsigned lines(const char *path, char client[64])
{
	static char line[65536];
	FILE *in = fopen(path, "r");
	unsigned n = 0;

	if (!in)
		return 0;
	while (fgets(line, sizeof(line), in)) {
		assert_true(line[strlen(line) - 1] == '\n');
		cJSON *o = cJSON_Parse(line);
		if (!o)
			fail_msg("%s: not JSON: %s", path, line);
		if (client)
			snprintf(client, 64, "%s",
				 cJSON_GetStringValue(cJSON_GetObjectItem(o, "client")));
		cJSON_Delete(o);
		n++;
	}
	fclose(in);
	return n;
}

static void test_one_line_per_event(void **state)
{
	(void)state;
	struct rig *r = logger(NULL);

	send_events(r, 1000, "192.0.2.77", "block");
	assert_int_equal(lines("log/queries.log", NULL), 1000);
	assert_int_equal(rig_metric(r, "logging_written_total{instance=\"logging\"}"), 1000);
	stop(r);
	/* A restart goes on behind them. */
	r = logger(NULL);
	send_events(r, 1, "192.0.2.77", "block");
	assert_int_equal(lines("log/queries.log", NULL), 1001);
	stop(r);
}

static void test_decided_only(void **state)
{
	(void)state;
	struct rig *r = logger("{what: decided}");

	send_events(r, 5, "192.0.2.77", "allow");
	send_events(r, 3, "192.0.2.77", "refuse");
	assert_int_equal(lines("log/queries.log", NULL), 3);
	stop(r);
}

/* A8-08, for this file: in whichever way the client's address is spelled. */
static void test_clients_are_masked(void **state)
{
	(void)state;
	static const struct {
		const char *mode, *client, *shown;
	} rows[] = {
		{"{clients: full}", "192.0.2.77", "192.0.2.77"},
		{"{clients: truncate}", "192.0.2.77", "192.0.2.0"},
		{"{clients: truncate}", "::ffff:192.0.2.77", "192.0.2.0"},
		{"{clients: truncate}", "2001:db8:1:2:3::4", "2001:db8:1::"},
		{"{clients: hide}", "192.0.2.77", "0.0.0.0"},
		{"{clients: hide}", "2001:db8::4", "::"},
	};
	char client[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig *r = logger(rows[i].mode);
		send_events(r, 1, rows[i].client, "allow");
		assert_true(lines("log/queries.log", client) > 0);
		assert_string_equal(client, rows[i].shown);
		stop(r);
	}
}

static void test_rotation(void **state)
{
	(void)state;
	struct rig *r = logger("{file: q.log, max-size: 20KiB, keep: 2}");
	struct stat st;

	for (int i = 0; i < 40; i++)
		send_events(r, 10, "192.0.2.77", "block");
	assert_int_equal(stat("q.log", &st), 0);
	assert_true(st.st_size <= 20 * 1024);
	assert_int_equal(stat("q.log.1", &st), 0);
	assert_true(st.st_size <= 20 * 1024);
	assert_int_equal(stat("q.log.2", &st), 0);
	assert_true(stat("q.log.3", &st) < 0);
	assert_true(lines("q.log", NULL) > 0 && lines("q.log.1", NULL) > 0 &&
		    lines("q.log.2", NULL) > 0);
	assert_true(rig_metric(r, "logging_rotated_total{instance=\"logging\"}") > 2);
	stop(r);
}

static void test_moved_away_by_logrotate(void **state)
{
	(void)state;
	struct rig *r = logger("{file: q.log}");

	send_events(r, 3, "192.0.2.77", "block");
	assert_int_equal(rename("q.log", "q.old"), 0);
	usleep(1100000);
	send_events(r, 2, "192.0.2.77", "block");
	assert_int_equal(lines("q.old", NULL), 3);
	assert_int_equal(lines("q.log", NULL), 2);
	stop(r);
}

/* A limit on file sizes stands in for the full disk: a write is cut short, then refused. */
static void test_full_disk_loses_whole_lines_and_recovers(void **state)
{
	(void)state;
	struct rig *r = logger("{file: q.log}");
	struct rlimit was, tight = {.rlim_cur = 5000, .rlim_max = RLIM_INFINITY};

	signal(SIGXFSZ, SIG_IGN);
	log_set_level(LOG_ERROR_);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	tight.rlim_max = was.rlim_max;
	send_events(r, 2, "192.0.2.77", "block");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	send_events(r, 64, "192.0.2.77", "block");
	send_events(r, 64, "192.0.2.77", "block");
	assert_int_equal(lines("q.log", NULL), 2);
	assert_int_equal(rig_metric(r, "logging_lost_total{instance=\"logging\"}"), 128);
	assert_int_equal(rig_metric(r, "plugin_lost_events_total{plugin=\"logging\"}"), 128);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	send_events(r, 64, "192.0.2.77", "block");
	assert_int_equal(lines("q.log", NULL), 66);
	assert_int_equal(rig_metric(r, "logging_written_total{instance=\"logging\"}"), 66);
	stop(r);
}

static void test_a_place_that_cannot_be_written_does_not_stop_the_start(void **state)
{
	(void)state;
	assert_int_equal(mkdir("blocked", 0700), 0);
	struct rig *r = logger("{file: blocked}");

	send_events(r, 4, "192.0.2.77", "block");
	assert_int_equal(rig_metric(r, "logging_lost_total{instance=\"logging\"}"), 4);
	assert_int_equal(rmdir("blocked"), 0);
	send_events(r, 4, "192.0.2.77", "block");
	assert_int_equal(lines("blocked", NULL), 4);
	stop(r);
}

static void test_a_sink_has_no_group(void **state)
{
	(void)state;
	struct rig *r = rig_new(false);

	rig_add(r, "logging", "logging", NULL);
	rig_policy.options[1] = rig_yaml(r, "{logging: off}");
	assert_true(rig_load(r) < 0);
	assert_true(rig_told(r, "sees the queries of all groups"));
	rig_free(r);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOLDER(test_one_line_per_event),
		WITH_FOLDER(test_decided_only),
		WITH_FOLDER(test_clients_are_masked),
		WITH_FOLDER(test_rotation),
		WITH_FOLDER(test_moved_away_by_logrotate),
		WITH_FOLDER(test_full_disk_loses_whole_lines_and_recovers),
		WITH_FOLDER(test_a_place_that_cannot_be_written_does_not_stop_the_start),
		cmocka_unit_test(test_a_sink_has_no_group),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
