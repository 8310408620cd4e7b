/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of the control socket; see the header. Runs in commands, never in the daemon.
 * Invariant: bounded in time (until a stream's first line) and in memory, whatever the peer sends.
 */
#include "core/process/control.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct control_buffer {
	char *data;
	size_t used, size;
};

static int control_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

static int control_send(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t n = send(fd, text, length, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		length -= (size_t)n;
	}
	return 0;
}

/* Wait for octets and append them: their number, 0 at the end, -errno. */
static ssize_t control_receive(int fd, struct control_buffer *b, int64_t deadline_ms)
{
	if (b->size - b->used < 2) {
		size_t size = b->size ? b->size * 2 : 4096;
		if (size > CONTROL_REPLY_MAX)
			return -EFBIG;
		char *data = realloc(b->data, size);
		if (!data)
			return -ENOMEM;
		b->data = data;
		b->size = size;
	}
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int wait = -1;
		if (deadline_ms) {
			int64_t left = deadline_ms - clock_monotonic_ms();
			if (left <= 0)
				return -ETIMEDOUT;
			wait = (int)left;
		}
		int ready = poll(&p, 1, wait);
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready <= 0)
			continue;
		ssize_t n = read(fd, b->data + b->used, b->size - b->used - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ECONNRESET ? 0 : -errno;
		b->used += (size_t)n;
		b->data[b->used] = '\0';
		return n;
	}
}

static int control_ask(const char *path, const char *request)
{
	size_t length = strlen(request);
	if (length + 1 > CONTROL_REQUEST_MAX)
		return -EFBIG;
	int fd = control_connect(path);
	if (fd < 0)
		return fd;
	int r = control_send(fd, request, length);
	if (r == 0)
		r = control_send(fd, "\n", 1);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

int control_request(const char *socket_path, const char *request_json, char **reply_json)
{
	struct control_buffer b = {0};
	int fd = control_ask(socket_path, request_json);
	if (fd < 0)
		return fd;

	int64_t deadline = clock_monotonic_ms() + CONTROL_TIMEOUT_MS;
	char *end = NULL;
	ssize_t n = 1;
	while (!end && n > 0) {
		size_t from = b.used;
		n = control_receive(fd, &b, deadline);
		if (n > 0)
			end = memchr(b.data + from, '\n', (size_t)n);
	}
	close(fd);
	if (!end) {
		free(b.data);
		return n < 0 ? (int)n : -EPROTO;
	}
	*end = '\0';
	*reply_json = b.data;
	return 0;
}

/* Hand on every whole line and keep the rest. */
static int control_lines(struct control_buffer *b, control_line *each, void *context)
{
	char *at = b->data, *end;
	size_t left = b->used;
	int r = 0;

	while (r == 0 && (end = memchr(at, '\n', left))) {
		*end = '\0';
		r = each(context, at);
		left -= (size_t)(end + 1 - at);
		at = end + 1;
	}
	memmove(b->data, at, left);
	b->used = left;
	return r;
}

int control_stream(const char *socket_path, const char *request_json, control_line *each,
		   void *context)
{
	struct control_buffer b = {0};
	int fd = control_ask(socket_path, request_json);
	if (fd < 0)
		return fd;

	int64_t deadline = clock_monotonic_ms() + CONTROL_TIMEOUT_MS;
	ssize_t n;
	int r = 0;
	while (r == 0 && (n = control_receive(fd, &b, deadline)) != 0) {
		if (n < 0) {
			r = (int)n;
			break;
		}
		size_t before = b.used;
		r = control_lines(&b, each, context);
		if (b.used != before)
			deadline = 0;
	}
	free(b.data);
	close(fd);
	return r;
}
