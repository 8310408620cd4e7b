/* SPDX-License-Identifier: Apache-2.0 */
/* core/process/control.c: the client against servers that answer, cut off, chatter or are not
 * there. */
#include "core/process/control.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/baleen-control-XXXXXX";
static char path[64];

/* A child that accepts once, reads a line, and sends `reply` in pieces of `piece` octets. */
static pid_t server(const char *reply, size_t piece)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, path);
	(void)unlink(path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int client = accept(fd, NULL, NULL);
		char c = 0;
		while (c != '\n' && read(client, &c, 1) == 1)
			;
		for (size_t left = strlen(reply); left > 0;) {
			size_t n = piece < left ? piece : left;
			if (write(client, reply, n) < 0)
				break;
			reply += n;
			left -= n;
		}
		_exit(0);
	}
	close(fd);
	return pid;
}

static void a_reply_in_pieces_is_one_reply(void **state)
{
	(void)state;
	char *reply = NULL;
	pid_t pid = server("{\"ok\":true,\"generation\":3}\nrest", 5);
	assert_int_equal(control_request(path, "{\"command\":\"status\"}", &reply), 0);
	assert_string_equal(reply, "{\"ok\":true,\"generation\":3}");
	free(reply);
	waitpid(pid, NULL, 0);
}

static void a_large_reply_fits(void **state)
{
	(void)state;
	size_t size = 3 << 20;
	char *text = malloc(size + 2), *reply = NULL;
	memset(text, 'x', size);
	strcpy(text + size, "\n");
	pid_t pid = server(text, size);
	assert_int_equal(control_request(path, "{}", &reply), 0);
	assert_int_equal(strlen(reply), size);
	free(reply);
	free(text);
	waitpid(pid, NULL, 0);
}

static void a_cut_off_reply_is_an_error(void **state)
{
	(void)state;
	char *reply = NULL;
	pid_t pid = server("{\"ok\":tr", 100);
	assert_int_equal(control_request(path, "{}", &reply), -EPROTO);
	assert_null(reply);
	waitpid(pid, NULL, 0);
}

static void nobody_there(void **state)
{
	(void)state;
	char *reply = NULL, long_path[256];
	(void)unlink(path);
	assert_int_equal(control_request(path, "{}", &reply), -ENOENT);
	waitpid(server("", 1), NULL, WNOHANG);
	memset(long_path, 'a', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	assert_int_equal(control_request(long_path, "{}", &reply), -ENAMETOOLONG);
	char *request = calloc(1, CONTROL_REQUEST_MAX + 1);
	memset(request, ' ', CONTROL_REQUEST_MAX);
	assert_int_equal(control_request(path, request, &reply), -EFBIG);
	free(request);
	/* Let the child of `server` go. */
	(void)control_request(path, "{}", &reply);
	while (wait(NULL) > 0)
		;
}

struct seen {
	unsigned lines;
	unsigned stop_at;
	size_t octets;
};

static int count(void *context, const char *line)
{
	struct seen *s = context;
	s->octets += strlen(line);
	return ++s->lines == s->stop_at ? 7 : 0;
}

static void a_stream_hands_on_every_line(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < 12; piece += 3) {
		struct seen s = {0};
		pid_t pid = server("{\"a\":1}\n{\"b\":22}\n\n{\"c\":3}\n{\"cut", piece);
		assert_int_equal(control_stream(path, "{}", count, &s), 0);
		assert_int_equal(s.lines, 4);
		assert_int_equal(s.octets, 22);
		waitpid(pid, NULL, 0);
	}
	struct seen s = {.stop_at = 2};
	pid_t pid = server("{\"a\":1}\n{\"b\":22}\n\n{\"c\":3}\n", 100);
	assert_int_equal(control_stream(path, "{}", count, &s), 7);
	assert_int_equal(s.lines, 2);
	waitpid(pid, NULL, 0);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/control", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reply_in_pieces_is_one_reply),
		cmocka_unit_test(a_large_reply_fits),
		cmocka_unit_test(a_cut_off_reply_is_an_error),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(a_stream_hands_on_every_line),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
