/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between processes; see the header. Invariant: a received message has its full size, a
 * known kind and terminated texts, or it is not handed on. */
#include "core/process/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int link_pair(int out[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, out) < 0)
		return -errno;
	return 0;
}

union link_control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

int link_send(int link, const struct link_message *m, int fd)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)m, .iov_len = sizeof(*m)};
	struct msghdr h = {.msg_iov = &part, .msg_iovlen = 1};
	union link_control control;

	memset(&control, 0, sizeof(control));
	if (fd >= 0) {
		h.msg_control = &control;
		h.msg_controllen = sizeof(control.room);
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	ssize_t n;
	do
		n = sendmsg(link, &h, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int link_receive(int link, struct link_message *m, int *fd)
{
	struct iovec part = {.iov_base = m, .iov_len = sizeof(*m)};
	union link_control control;
	struct msghdr h = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control.room)};
	int got = -1;
	ssize_t n;

	if (fd)
		*fd = -1;
	do
		n = recvmsg(link, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&got, CMSG_DATA(c), sizeof(int));
	if (n == 0)
		return 0;
	if (got >= 0 && (!fd || n != sizeof(*m))) {
		close(got);
		got = -1;
	}
	if (n != sizeof(*m) || m->kind == LINK_NONE || m->kind >= LINK_KINDS)
		return -EBADMSG;
	m->name[sizeof(m->name) - 1] = '\0';
	m->text[sizeof(m->text) - 1] = '\0';
	if (fd)
		*fd = got;
	return 1;
}

void link_message_init(struct link_message *m, enum link_kind kind, const char *format, ...)
{
	va_list arguments;
	memset(m, 0, sizeof(*m));
	m->kind = kind;
	va_start(arguments, format);
	vsnprintf(m->text, sizeof(m->text), format, arguments);
	va_end(arguments);
}
