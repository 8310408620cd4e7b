/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners: packets spread over all receivers, none ever reaches a sender, nobody joins silently.
 */
#include "core/dns/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WORKERS 3

static uint16_t free_port(int family)
{
	struct sockaddr_storage a = {.ss_family = (sa_family_t)family};
	socklen_t length = sizeof(a);
	int fd = socket(family, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a,
			      family == AF_INET ? sizeof(struct sockaddr_in)
						: sizeof(struct sockaddr_in6)),
			 0);
	getsockname(fd, (struct sockaddr *)&a, &length);
	close(fd);
	struct endpoint e;
	endpoint_from_sockaddr((struct sockaddr *)&a, &e);
	return e.port;
}

static unsigned drain(int fd)
{
	char octet;
	unsigned n = 0;

	while (recv(fd, &octet, 1, MSG_DONTWAIT) >= 0)
		n++;
	return n;
}

static void test_spread(void **state)
{
	(void)state;
	struct config_listener listener = {.name = NULL};
	struct listener_sockets s;
	struct sockaddr_storage to;
	char error[SOCKET_ERROR_MAX] = "";
	unsigned got[WORKERS], sum = 0;

	endpoint_parse("127.0.0.1", free_port(AF_INET), &listener.endpoint);
	assert_int_equal(socket_open_listener(&listener, WORKERS, &s, error), 0);
	assert_int_equal(s.udp_count, WORKERS);
	assert_false(s.wildcard);
	assert_false(s.v6);

	/* One client socket, which plain reuseport would send to one receiver. */
	int client = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t length = endpoint_to_sockaddr(&listener.endpoint, &to);
	for (unsigned i = 0; i < 600; i++)
		assert_int_equal(sendto(client, "x", 1, 0, (struct sockaddr *)&to, length), 1);
	for (unsigned i = 0; i < WORKERS; i++) {
		got[i] = drain(s.udp[i]);
		sum += got[i];
		assert_in_range(got[i], 100, 300);
		assert_int_equal(drain(s.udp_send[i]), 0);
	}
	assert_int_equal(sum, 600);
	close(client);
	socket_close_listener(&s);
}

static void test_second_daemon_is_told(void **state)
{
	(void)state;
	struct config_listener listener = {.name = NULL};
	struct listener_sockets s, other;
	char error[SOCKET_ERROR_MAX] = "";

	endpoint_parse("127.0.0.1", free_port(AF_INET), &listener.endpoint);
	assert_int_equal(socket_open_listener(&listener, 1, &s, error), 0);
	assert_int_equal(socket_open_listener(&listener, 1, &other, error), -EADDRINUSE);
	assert_non_null(strstr(error, "127.0.0.1:"));
	assert_non_null(strstr(error, "in use"));
	socket_close_listener(&s);
	/* And afterwards the place is free again. */
	assert_int_equal(socket_open_listener(&listener, 1, &s, error), 0);
	socket_close_listener(&s);
}

static void test_both_families_on_one_port(void **state)
{
	(void)state;
	struct config_listener v6 = {.name = NULL}, v4 = {.name = NULL};
	struct listener_sockets a, b;
	char error[SOCKET_ERROR_MAX] = "";

	endpoint_parse("::", free_port(AF_INET6), &v6.endpoint);
	v4.endpoint = v6.endpoint;
	addr_parse("0.0.0.0", &v4.endpoint.addr);
	if (socket_open_listener(&v6, 2, &a, error) == -EAFNOSUPPORT)
		skip();
	assert_true(a.wildcard && a.v6);
	assert_int_equal(socket_open_listener(&v4, 2, &b, error), 0);
	assert_true(b.wildcard && !b.v6);
	socket_close_listener(&a);
	socket_close_listener(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_second_daemon_is_told),
		cmocka_unit_test(test_both_families_on_one_port),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
