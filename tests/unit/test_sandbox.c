/* SPDX-License-Identifier: Apache-2.0 */
/* core/process/sandbox.c and privilege.c, each in a child: what a role may not do any more. Where
 * the kernel (or a sanitizer) has no sandbox, there is nothing to assert and the tests are skipped.
 */
#include "core/process/privilege.h"
#include "core/process/sandbox.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/baleen-sandbox-XXXXXX";

/* The number of the first check that failed, 0 if none; 77: no sandbox here. */
static int in_child(int (*run)(void))
{
	int status = 0;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(run());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static long landlock_abi; /* < 0: the kernel has none */

static bool sandboxed(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2 && landlock_abi > 0;
}

static int connects(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int r = connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? errno : 0;
	close(fd);
	return r;
}

static int worker(void)
{
	const struct sandbox_path paths[] = {{.path = "sets"}};
	const uint16_t ports[] = {5353};
	const struct sandbox s = {.role = ROLE_WORKER,
				  .paths = paths,
				  .path_count = 1,
				  .tcp_ports = ports,
				  .tcp_port_count = 1};
	int listening = socket(AF_INET, SOCK_STREAM, 0);
	char *const arguments[] = {"true", NULL};
	sandbox_enter(&s);
	if (!sandboxed())
		return 77;
	if (open("sets/one", O_RDONLY) < 0)
		return 1;
	if (open("sets/one", O_RDWR) >= 0 || open("sets/two", O_WRONLY | O_CREAT, 0600) >= 0)
		return 2;
	if (open("other", O_RDONLY) >= 0 || open("/etc/passwd", O_RDONLY) >= 0)
		return 3;
	if (execv("/bin/true", arguments) == 0 || errno != EPERM)
		return 4;
	if (fork() >= 0)
		return 5;
	if (listen(listening, 1) == 0)
		return 6;
	if (kill(getppid(), 0) == 0)
		return 7;
	if (landlock_abi >= 4 && (connects(22) != EACCES || connects(5353) == EACCES))
		return 8;
	if (socket(AF_INET, SOCK_DGRAM, 0) < 0)
		return 9;
	return 0;
}

static void a_worker_reads_sets_and_nothing_else(void **state)
{
	(void)state;
	int r = in_child(worker);
	if (r == 77)
		skip();
	assert_int_equal(r, 0);
}

static int logger(void)
{
	const struct sandbox_path paths[] = {{.path = "log", .write = true}};
	const struct sandbox s = {.role = ROLE_LOGGER,
				  .paths = paths,
				  .path_count = 1,
				  .any_tcp = true};
	sandbox_enter(&s);
	if (!sandboxed())
		return 77;
	int fd = open("log/a", O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || write(fd, "x", 1) != 1 || rename("log/a", "log/b") < 0)
		return 1;
	if (open("sets/one", O_RDONLY) >= 0)
		return 2;
	if (open("outside", O_WRONLY | O_CREAT, 0600) >= 0)
		return 3;
	return unlink("log/b") < 0 ? 4 : 0;
}

static void a_logger_writes_its_folder_and_no_other(void **state)
{
	(void)state;
	int r = in_child(logger);
	if (r == 77)
		skip();
	assert_int_equal(r, 0);
}

static int admin(void)
{
	const struct sandbox_path paths[] = {{.path = "."}};
	const struct sandbox s = {.role = ROLE_ADMIN, .paths = paths, .path_count = 1};
	sandbox_enter(&s);
	if (!sandboxed())
		return 77;
	if (open("other", O_RDONLY) < 0 || open("other", O_WRONLY) >= 0)
		return 1;
	if (socket(AF_INET, SOCK_STREAM, 0) >= 0)
		return 2;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, NULL, 0) == pid ? 0 : 3;
}

static void admin_looks_forks_and_connects_to_nobody(void **state)
{
	(void)state;
	int r = in_child(admin);
	if (r == 77)
		skip();
	assert_int_equal(r, 0);
}

static int dropped(void)
{
	struct privilege p;
	char error[256];
	if (privilege_find("nobody", true, &p, error, sizeof(error)) < 0 || !p.drop)
		return 1;
	if (privilege_drop(&p, error, sizeof(error)) < 0)
		return 2;
	if (geteuid() != p.uid || getegid() != p.gid || getgroups(0, NULL) > 1)
		return 3;
	if (setuid(0) == 0 || setgid(0) == 0)
		return 4;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 5;
}

static void root_becomes_somebody_for_good(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(in_child(dropped), 0);
}

static void who_it_runs_as_must_exist_and_not_be_root(void **state)
{
	(void)state;
	struct privilege p;
	char error[256] = "";
	if (geteuid() != 0) {
		assert_int_equal(privilege_find("no-such-user", true, &p, error, sizeof(error)), 0);
		assert_false(p.drop);
		return;
	}
	assert_int_equal(privilege_find("no-such-user", true, &p, error, sizeof(error)), -ENOENT);
	assert_non_null(strstr(error, "no-such-user"));
	assert_int_equal(privilege_find("no-such-user", false, &p, error, sizeof(error)), -ENOENT);
	assert_non_null(strstr(error, "useradd"));
	assert_int_equal(privilege_find("root", true, &p, error, sizeof(error)), -EINVAL);
}

static int setup(void **state)
{
	(void)state;
	landlock_abi =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (!mkdtemp(folder) || chdir(folder) < 0 || mkdir("sets", 0755) < 0 ||
	    mkdir("log", 0755) < 0)
		return -1;
	close(open("sets/one", O_CREAT | O_WRONLY, 0644));
	close(open("other", O_CREAT | O_WRONLY, 0644));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlink("sets/one");
	(void)unlink("other");
	(void)rmdir("sets");
	(void)rmdir("log");
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_reads_sets_and_nothing_else),
		cmocka_unit_test(a_logger_writes_its_folder_and_no_other),
		cmocka_unit_test(admin_looks_forks_and_connects_to_nobody),
		cmocka_unit_test(root_becomes_somebody_for_good),
		cmocka_unit_test(who_it_runs_as_must_exist_and_not_be_root),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
