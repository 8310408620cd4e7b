/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening listeners. Supervisor process, while it is privileged; it owns the descriptors.
 * Invariant: nobody else holds the address when we join it, although SO_REUSEPORT would let us.
 */
#include "core/dns/socket.h"

#include "base/log.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TCP_BACKLOG 1024

static int fail(char error[SOCKET_ERROR_MAX], const struct endpoint *at, const char *what)
{
	int r = -errno;
	char text[ENDPOINT_TEXT_MAX];

	snprintf(error, SOCKET_ERROR_MAX, "%s: %s: %s%s", endpoint_format(at, text), what,
		 strerror(-r), r == -EACCES ? " (ports below 1024 are root's)" : "");
	return r;
}

static int set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value));
}

static int open_bound(const struct endpoint *at, int type, bool reuseport)
{
	struct sockaddr_storage sa;
	socklen_t length = endpoint_to_sockaddr(at, &sa);
	int fd = socket(sa.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if ((sa.ss_family == AF_INET6 && set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) < 0) ||
	    (type == SOCK_STREAM && set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) < 0) ||
	    (reuseport && set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1) < 0) ||
	    bind(fd, (struct sockaddr *)&sa, length) < 0) {
		int saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	return fd;
}

/* random mod N, for each packet: also a single client's queries reach every worker. */
static int attach_spread(int fd, unsigned workers)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM)),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, workers),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
}

/* The kernel caps SO_RCVBUF silently, so force it while we may, and read back what we got. */
static int receive_buffer(int fd)
{
	int got = 0;
	socklen_t length = sizeof(got);

	if (set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_RECEIVE_BYTES) < 0)
		(void)set_option(fd, SOL_SOCKET, SO_RCVBUF, SOCKET_RECEIVE_BYTES);
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &length) < 0)
		return -1;
	return got / 2; /* the kernel counts its own overhead in */
}

static int want_packet_info(int fd, bool v6)
{
	return v6 ? set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
		  : set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
}

static int open_udp(const struct endpoint *at, unsigned workers, struct listener_sockets *out,
		    char error[SOCKET_ERROR_MAX])
{
	int got = 0;

	for (unsigned i = 0; i < workers; i++) {
		int fd = open_bound(at, SOCK_DGRAM, true);
		if (fd < 0)
			return fail(error, at, "UDP receiver");
		out->udp[out->udp_count++] = fd;
		/* The first makes the group, so its program decides from the second on. */
		if (i == 0 && attach_spread(fd, workers) < 0)
			return fail(error, at, "spreading packets over workers");
		got = receive_buffer(fd);
		if (out->wildcard && want_packet_info(fd, out->v6) < 0)
			return fail(error, at, "packet information");
	}
	for (unsigned i = 0; i < workers; i++) {
		int fd = open_bound(at, SOCK_DGRAM, true);
		if (fd < 0)
			return fail(error, at, "UDP sender");
		out->udp_send[i] = fd;
		/* Nothing is to wait here should the program ever be gone. */
		(void)set_option(fd, SOL_SOCKET, SO_RCVBUF, 0);
	}
	char text[ENDPOINT_TEXT_MAX];
	log_info("listening on %s, receive buffer %d KiB a worker%s", endpoint_format(at, text),
		 got / 1024,
		 got < SOCKET_RECEIVE_BYTES ? " (less than asked for: net.core.rmem_max)" : "");
	return 0;
}

int socket_open_listener(const struct config_listener *listener, unsigned workers,
			 struct listener_sockets *out, char error[SOCKET_ERROR_MAX])
{
	struct endpoint at = listener->endpoint;
	int r;

	*out = (struct listener_sockets){
		.tcp = -1,
		.wildcard = addr_is_unspecified(&at.addr),
		.v6 = !addr_is_v4(&at.addr),
	};
	out->udp = calloc(workers, sizeof(*out->udp));
	out->udp_send = malloc(workers * sizeof(*out->udp_send));
	if (!out->udp || !out->udp_send) {
		errno = ENOMEM;
		r = fail(error, &at, "listener");
		goto fail;
	}
	for (unsigned i = 0; i < workers; i++)
		out->udp_send[i] = -1;
	out->udp_send_count = workers;

	/* SO_REUSEPORT would let a second daemon join and take half of the queries, silently. */
	int probe = open_bound(&at, SOCK_DGRAM, false);
	if (probe < 0) {
		r = fail(error, &at, "UDP");
		goto fail;
	}
	close(probe);
	r = open_udp(&at, workers, out, error);
	if (r < 0)
		goto fail;
	out->tcp = open_bound(&at, SOCK_STREAM, false);
	if (out->tcp < 0 || listen(out->tcp, TCP_BACKLOG) < 0) {
		r = fail(error, &at, "TCP");
		goto fail;
	}
	return 0;

fail:
	socket_close_listener(out);
	return r;
}

void socket_close_listener(struct listener_sockets *s)
{
	for (size_t i = 0; i < s->udp_count; i++)
		close(s->udp[i]);
	for (size_t i = 0; s->udp_send && i < s->udp_send_count; i++)
		if (s->udp_send[i] >= 0)
			close(s->udp_send[i]);
	if (s->tcp >= 0)
		close(s->tcp);
	free(s->udp);
	free(s->udp_send);
	*s = (struct listener_sockets){.tcp = -1};
}
