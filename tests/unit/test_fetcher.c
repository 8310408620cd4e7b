/* SPDX-License-Identifier: Apache-2.0 */
/* feeds/fetcher*.c: whatever comes, the last good set stays; what is good gets in. On a real state
 * folder, with a scripted server, on one loop. */
#include "feeds/fetcher.h"

#include "base/file.h"
#include "feeds/feedfile.h"
#include "feeds/set/domset.h"
#include "feeds/setfiles.h"
#include "feeds/state.h"
#include "scripted_server.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static struct event_base *base;
static struct scripted_server server;
static struct source *source;
static struct fetcher *fetcher;
static uint64_t published;
static unsigned publications;

static struct feed items[8];
static struct feeds feeds = {.items = items};
static struct fetcher_folder lists;
static struct name zone;

static const char *answer_text;
static const char *answer(const char *request)
{
	(void)request;
	return answer_text;
}

static void on_publish(void *context, uint64_t number)
{
	(void)context;
	published = number;
	publications++;
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_fetcher.XXXXXX");
	if (!mkdtemp(folder) || chdir(folder) < 0 || mkdir("lists", 0700) < 0)
		return -1;
	base = event_base_new();
	source = source_disk();
	server = (struct scripted_server){.answer = answer};
	scripted_start(&server, base);
	lists = (struct fetcher_folder){"lists", open("lists", O_PATH | O_DIRECTORY)};
	published = publications = 0;
	feeds = (struct feeds){.items = items};
	return 0;
}

static void stop(void)
{
	fetcher_free(fetcher);
	fetcher = NULL;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	stop();
	evconnlistener_free(server.listener);
	event_base_free(base);
	source_free(source);
	close(lists.fd);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") == 0 ? system(command) : -1;
}

static struct feed *subscribe(const char *name, const char *file, const char *const *urls)
{
	struct feed *f = &items[feeds.count];
	*f = (struct feed){
		.name = name,
		.number = (unsigned)feeds.count++,
		.file = file,
		.urls = urls,
		.match = FEED_MATCH_FORMAT,
		.category = "",
		.refresh_ms = 3600000,
		.max_bytes = 1 << 20,
		.shrink_limit = 0.5,
		.grow_limit = 3,
	};
	feedmask_add(&feeds.enforced, f->number);
	return f;
}

static const char *const *server_urls(void)
{
	static char url[64];
	static const char *urls[2];
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/list", server.port);
	urls[0] = url;
	return urls;
}

static struct fetcher_options options(void)
{
	return (struct fetcher_options){
		.base = base,
		.state = "state",
		.feeds = &feeds,
		.source = source,
		.zones = &zone,
		.zone_count = zone.length ? 1 : 0,
		.folders = &lists,
		.folder_count = 1,
		.publish = on_publish,
	};
}

static void start(void)
{
	struct fetcher_options o = options();
	assert_int_equal(fetcher_new(&o, &fetcher), 0);
	assert_int_equal(fetcher_first_pass(fetcher), 0);
}

static void write_list(const char *path, const char *text)
{
	assert_int_equal(file_replace(path, text, strlen(text), 0600), 0);
}

/* Is `name` in the published set, by which feeds? */
static bool listed(const char *text)
{
	struct domset *set;
	struct domset_result r;
	struct name name;
	char error[DOMSET_ERROR_MAX];
	char *path = setfiles_path("state", published, "mdb");
	assert_int_equal(domset_open(path, DOMSET_CHECK_ALL, &set, error), 0);
	free(path);
	assert_int_equal(domset_bind(set, &feeds), 0);
	assert_int_equal(name_parse(text, strlen(text), &name), 0);
	domset_lookup(set, name.wire, name.length, name.labels, &r);
	domset_close(set);
	return feedmask_any(&r.feeds);
}

static struct state state_of(const char *feed)
{
	struct state s;
	state_read("state", feed, &s);
	return s;
}

/* Run the loop until `count` more publications, or for `ms`. */
static void on_timeout(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	*(bool *)context = true;
}

static bool run_until(unsigned want_publications, unsigned want_requests, unsigned ms)
{
	bool late = false;
	struct event *timer = evtimer_new(base, on_timeout, &late);
	const struct timeval wait = {ms / 1000, ms % 1000 * 1000};
	evtimer_add(timer, &wait);
	while (!late && (publications < want_publications || server.requests < want_requests))
		event_base_loop(base, EVLOOP_ONCE);
	event_free(timer);
	return !late;
}

static void settle(unsigned ms)
{
	run_until(UINT32_MAX, 0, ms);
}

static void no_feeds_give_an_empty_set(void **state)
{
	(void)state;
	start();
	assert_int_equal(published, 1);
	assert_false(listed("bad.test"));
}

static void local_list_and_its_changes(void **state)
{
	(void)state;
	subscribe("ours", "lists/ours.txt", NULL);
	write_list("lists/ours.txt", "one.test\ncom\n");
	start();
	assert_true(listed("www.one.test"));
	assert_false(listed("x.com"));
	assert_int_equal(state_of("ours").entries, 1);
	assert_int_equal(state_of("ours").rejects[FEED_REJECT_SUFFIX].count, 1);
	write_list("lists/ours.txt", "two.test\n");
	assert_true(run_until(2, 0, 5000));
	assert_true(listed("two.test"));
	assert_false(listed("one.test"));
	assert_int_equal(state_of("ours").version, 2);
}

static void a_restart_builds_nothing_anew(void **state)
{
	(void)state;
	subscribe("ours", "lists/ours.txt", NULL);
	write_list("lists/ours.txt", "one.test\n");
	start();
	assert_int_equal(published, 1);
	stop();
	start();
	assert_int_equal(published, 1);
	assert_int_equal(publications, 2);
	assert_int_equal(state_of("ours").version, 1);
	/* Another match is another reading of the same list. */
	stop();
	items[0].match = FEED_MATCH_EXACT;
	start();
	assert_int_equal(published, 2);
	assert_false(listed("www.one.test"));
	assert_true(listed("one.test"));
}

/* A list that is no list keeps the last good one, and says why. */
static void bad_local_lists(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"<!DOCTYPE html>\n<html><a href='http://x.test/'>x.test</a></html>\n",
		"",
		"# only comments\n",
		"not a name at all\n@@@\n",
		"\x1f\x8b rubbish",
		"\xff\xfe\0\0",
	};
	subscribe("ours", "lists/ours.txt", NULL);
	write_list("lists/ours.txt", "one.test\n");
	start();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char message[FETCHER_ANSWER_MAX];
		write_list("lists/ours.txt", bad[i]);
		assert_int_equal(fetcher_command(fetcher, FETCHER_REFRESH, "ours", message), 0);
		struct state s = state_of("ours");
		assert_int_equal(s.status, STATE_FAILED);
		assert_true(s.error[0]);
		assert_int_equal(s.entries, 1);
		assert_true(listed("one.test"));
	}
	unlink("lists/ours.txt");
	settle(600);
	assert_non_null(strstr(state_of("ours").error, "No such file"));
	assert_true(listed("one.test"));
	write_list("lists/ours.txt", "one.test\n");
	settle(600);
	assert_int_equal(state_of("ours").status, STATE_OK);
	assert_string_equal(state_of("ours").error, "");
}

static void one_bad_list_costs_itself_only(void **state)
{
	(void)state;
	subscribe("bad", "lists/bad.txt", NULL);
	subscribe("ours", "lists/ours.txt", NULL);
	subscribe("missing", "lists/missing.txt", NULL);
	write_list("lists/bad.txt", "<html>\n");
	write_list("lists/ours.txt", "one.test\n");
	start();
	assert_true(listed("one.test"));
	assert_int_equal(state_of("bad").status, STATE_FAILED);
	assert_int_equal(state_of("missing").status, STATE_FAILED);
	assert_int_equal(state_of("ours").status, STATE_OK);
}

static void own_zones_are_never_taken_in(void **state)
{
	(void)state;
	name_parse("corp.test", 9, &zone);
	subscribe("ours", "lists/ours.txt", NULL);
	write_list("lists/ours.txt", "corp.test\n*.corp.test\nbad.test\ntest\n");
	start();
	zone.length = 0;
	assert_true(listed("bad.test"));
	assert_false(listed("www.corp.test"));
	assert_int_equal(state_of("ours").rejects[FEED_REJECT_PROTECTED].count, 2);
	assert_int_equal(state_of("ours").rejects[FEED_REJECT_SUFFIX].count, 1);
}

static void remote_list(void **state)
{
	(void)state;
	subscribe("net", NULL, server_urls());
	answer_text = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nETag: \"1\"\r\n\r\none.test\n";
	start();
	assert_false(listed("one.test"));
	assert_true(run_until(2, 1, 5000));
	assert_true(listed("one.test"));
	assert_string_equal(state_of("net").etag, "\"1\"");

	/* Restarted soon after, it does not ask at all; asked to refresh, without validators. */
	stop();
	server.requests = 0;
	start();
	settle(300);
	assert_int_equal(server.requests, 0);
	char message[FETCHER_ANSWER_MAX];
	assert_int_equal(fetcher_command(fetcher, FETCHER_REFRESH, NULL, message), 0);
	assert_true(run_until(0, 1, 5000));
	assert_null(strstr(server.request, "If-None-Match"));
	settle(100);
	assert_int_equal(state_of("net").version, 1);
}

static void refresh_now(void)
{
	char message[FETCHER_ANSWER_MAX];
	server.requests = 0;
	assert_int_equal(fetcher_command(fetcher, FETCHER_REFRESH, "net", message), 0);
	assert_true(run_until(0, 1, 5000));
	settle(700);
}

static void bad_remote_answers(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ntwo.test\ngoogle",
		"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 25\r\n\r\n"
		"<html><p>two.test</html>\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 500 Oops\r\nContent-Length: 9\r\n\r\ntwo.test\n",
		"HTTP/1.0 200 OK\r\n\r\ntwo.test.."
		"\n",
		"no http at all\r\n\r\n",
	};
	subscribe("net", NULL, server_urls())->format = NULL;
	answer_text = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none.test\n";
	start();
	assert_true(run_until(2, 1, 5000));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		answer_text = bad[i];
		refresh_now();
		struct state s = state_of("net");
		assert_int_equal(s.status, STATE_FAILED);
		assert_true(s.error[0]);
		assert_int_equal(s.failures, i + 1);
		assert_true(listed("one.test"));
		assert_false(listed("two.test"));
		assert_false(listed("google"));
	}
	answer_text = "HTTP/1.0 200 OK\r\n\r\none.test\ntwo.test\ngoogle.te";
	refresh_now(); /* not vouched for: the last line is dropped */
	assert_int_equal(state_of("net").status, STATE_OK);
	assert_int_equal(state_of("net").entries, 2);
	assert_false(listed("google.te"));
	/* Nothing left lying about. */
	assert_int_equal(system("ls state/feeds/net | grep -q tmp"), 1 << 8);
}

static void a_mirror_takes_over(void **state)
{
	(void)state;
	static const char *urls[3] = {"http://127.0.0.1:1/list"};
	urls[1] = server_urls()[0];
	subscribe("net", NULL, urls);
	answer_text = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none.test\n";
	start();
	assert_true(run_until(2, 1, 5000));
	assert_true(listed("one.test"));
	assert_string_equal(state_of("net").url, urls[1]);
}

static char *numbered(unsigned first, unsigned count)
{
	static char text[200000];
	char *p = text + sprintf(text, "HTTP/1.0 200 OK\r\n\r\n");
	for (unsigned i = 0; i < count; i++)
		p += sprintf(p, "n%u.test\n", first + i);
	return text;
}

static void shrinking_is_held_released_and_rolled_back(void **state)
{
	(void)state;
	char message[FETCHER_ANSWER_MAX];
	subscribe("net", NULL, server_urls());
	answer_text = numbered(0, 2000);
	start();
	assert_true(run_until(2, 1, 5000));
	answer_text = numbered(0, 900);
	refresh_now();
	assert_int_equal(state_of("net").status, STATE_QUARANTINED);
	assert_true(listed("n1999.test"));
	assert_int_equal(fetcher_command(fetcher, FETCHER_RELEASE, "net", message), 0);
	settle(700);
	assert_false(listed("n1999.test"));
	assert_true(listed("n899.test"));
	assert_int_equal(state_of("net").status, STATE_OK);
	assert_int_equal(fetcher_command(fetcher, FETCHER_RELEASE, "net", message), -ESRCH);
	assert_int_equal(fetcher_command(fetcher, FETCHER_ROLLBACK, "net", message), 0);
	settle(700);
	assert_true(listed("n1999.test"));
	assert_int_equal(fetcher_command(fetcher, FETCHER_ROLLBACK, "net", message), 0);
	settle(700);
	assert_false(listed("n1999.test"));
	assert_int_equal(fetcher_command(fetcher, FETCHER_ROLLBACK, "none", message), -ENOENT);
}

static void popular_names_hold_back_a_threat_feed(void **state)
{
	(void)state;
	static const char *const protected[] = {"lists/protected.txt"};
	write_list("lists/protected.txt", "a.test\nb.test\nc.test\nwww.d.test\n");
	write_list("lists/ours.txt", "bad.test\n");
	subscribe("ours", "lists/ours.txt", NULL)->kind = FEED_KIND_THREAT;
	struct fetcher_options o = options();
	o.protected_files = protected;
	o.protected_count = 1;
	assert_int_equal(fetcher_new(&o, &fetcher), 0);
	assert_int_equal(fetcher_first_pass(fetcher), 0);
	write_list("lists/ours.txt", "bad.test\na.test\nb.test\nc.test\n");
	assert_true(run_until(2, 0, 5000)); /* three are allowed */
	write_list("lists/ours.txt", "bad.test\nworse.test\n");
	assert_true(run_until(3, 0, 5000));
	write_list("lists/ours.txt", "bad.test\na.test\nb.test\nc.test\nd.test\n");
	settle(800);
	assert_int_equal(state_of("ours").status, STATE_QUARANTINED);
	assert_non_null(strstr(state_of("ours").error, "4 popular names: a.test."));
	assert_false(listed("a.test"));
	assert_true(listed("worse.test"));
}

static void damaged_files_are_rebuilt(void **state)
{
	(void)state;
	subscribe("ours", "lists/ours.txt", NULL);
	write_list("lists/ours.txt", "one.test\n");
	start();
	stop();
	assert_int_equal(truncate("state/sets/domains.1.mdb", 100), 0);
	start();
	assert_true(listed("one.test"));
	stop();
	assert_int_equal(truncate("state/feeds/ours/entries", 70), 0);
	start();
	assert_true(listed("one.test")); /* at no time let through */
	settle(800);
	assert_true(listed("one.test"));
	assert_int_equal(state_of("ours").status, STATE_OK);
	stop();
	write_list("state/feeds/ours/state.json", "{\"entries\": [[[");
	start();
	assert_true(listed("one.test"));
	assert_int_equal(state_of("ours").entries, 1);
}

/* A3-10: the disk is full at every point of a rebuild (a limit on files' sizes stands in). */
static void a_full_disk_costs_nothing(void **state)
{
	(void)state;
	static char text[200000];
	struct rlimit before, limit;
	char message[FETCHER_ANSWER_MAX];
	signal(SIGXFSZ, SIG_IGN);
	subscribe("ours", "lists/ours.txt", NULL);
	write_list("lists/ours.txt", "one.test\n");
	start();
	getrlimit(RLIMIT_FSIZE, &before);
	for (rlim_t octets = 64; octets < 120000; octets = octets * 3 / 2) {
		char *p = text + sprintf(text, "one.test\n");
		for (unsigned i = 0; i < 5000; i++)
			p += sprintf(p, "n%u.x%u.test\n", i, (unsigned)octets);
		write_list("lists/ours.txt", text);
		limit = (struct rlimit){octets, before.rlim_max};
		setrlimit(RLIMIT_FSIZE, &limit);
		fetcher_command(fetcher, FETCHER_REFRESH, "ours", message);
		settle(350);
		setrlimit(RLIMIT_FSIZE, &before);
		assert_true(listed("one.test"));
		assert_int_equal(system("ls -R state | grep -q 'tmp\\.'"), 1 << 8);
		stop();
		start();
		assert_true(listed("one.test"));
	}
	settle(800);
	assert_int_equal(state_of("ours").entries, 5001);
	assert_int_equal(state_of("ours").status, STATE_OK);
}

static void only_two_sets_are_kept(void **state)
{
	(void)state;
	char text[64];
	subscribe("ours", "lists/ours.txt", NULL);
	write_list("lists/ours.txt", "n.test\n");
	start();
	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "n%d.test\n", i);
		write_list("lists/ours.txt", text);
		assert_true(run_until((unsigned)i + 2, 0, 5000));
	}
	assert_int_equal(published, 5);
	assert_int_equal(system("test \"$(ls state/sets | tr '\\n' ' ')\" = "
				"'domains.4.json domains.4.mdb domains.5.json domains.5.mdb '"),
			 0);
}

static void the_newer_generation_writes(void **state)
{
	(void)state;
	char message[FETCHER_ANSWER_MAX];
	subscribe("ours", "lists/ours.txt", NULL);
	write_list("lists/ours.txt", "one.test\n");
	start();
	struct fetcher *old = fetcher;
	start();
	assert_int_equal(fetcher_command(old, FETCHER_REFRESH, NULL, message), -EBUSY);
	assert_int_equal(fetcher_command(fetcher, FETCHER_REFRESH, NULL, message), 0);
	/* And when it goes, the older one is back. */
	stop();
	fetcher = old;
	write_list("lists/ours.txt", "two.test\n");
	publications = 0;
	assert_true(run_until(2, 0, 8000));
	assert_true(listed("two.test"));
}

static void promote_is_remembered(void **state)
{
	(void)state;
	char message[FETCHER_ANSWER_MAX];
	subscribe("ours", "lists/ours.txt", NULL)->mode = FEED_MODE_SHADOW;
	write_list("lists/ours.txt", "one.test\n");
	start();
	assert_int_equal(fetcher_command(fetcher, FETCHER_PROMOTE, "ours", message), 0);
	feeds_promote(&feeds, source, "state");
	assert_int_equal(items[0].mode, FEED_MODE_ENFORCE);
	assert_true(feedmask_has(&feeds.enforced_blocklists, 0));
	assert_int_equal(fetcher_command(fetcher, FETCHER_PROMOTE, "ours", message), -ESRCH);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_feeds_give_an_empty_set),
		TEST(local_list_and_its_changes),
		TEST(a_restart_builds_nothing_anew),
		TEST(bad_local_lists),
		TEST(one_bad_list_costs_itself_only),
		TEST(own_zones_are_never_taken_in),
		TEST(remote_list),
		TEST(bad_remote_answers),
		TEST(a_mirror_takes_over),
		TEST(shrinking_is_held_released_and_rolled_back),
		TEST(popular_names_hold_back_a_threat_feed),
		TEST(damaged_files_are_rebuilt),
		TEST(a_full_disk_costs_nothing),
		TEST(only_two_sets_are_kept),
		TEST(the_newer_generation_writes),
		TEST(promote_is_remembered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
