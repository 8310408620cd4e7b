/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses, prefixes and endpoints, in one normal form: 16 octets, IPv4 as ::ffff:a.b.c.d. A
 * client that arrives as ::ffff:10.0.0.1 on an IPv6 socket and as 10.0.0.1 on an IPv4 one is the
 * same `struct addr`: normalised at the edge, once. Leaf file.
 */
#ifndef BALEEN_BASE_ADDR_H
#define BALEEN_BASE_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct addr {
	uint8_t octets[16];
};

struct prefix {
	struct addr addr; /* host bits are zero */
	uint8_t bits;	  /* of the 128-bit form: an IPv4 /24 is 120 */
};

struct endpoint {
	struct addr addr;
	uint16_t port;	   /* host order */
	uint32_t scope_id; /* of a link-local IPv6 address, else 0 */
};

#define ADDR_TEXT_MAX	  64 /* room for any addr_format or prefix_format */
#define ENDPOINT_TEXT_MAX 80

bool addr_is_v4(const struct addr *a);
bool addr_equal(const struct addr *a, const struct addr *b);
bool addr_is_unspecified(const struct addr *a); /* 0.0.0.0 or :: */
bool addr_is_loopback(const struct addr *a);
int addr_parse(const char *text, struct addr *out);			/* 0 or -EINVAL */
const char *addr_format(const struct addr *a, char out[ADDR_TEXT_MAX]); /* v4 dotted, v6 RFC 5952 */

/* "10.0.0.0/8", "fc00::/7", or an address alone. -EINVAL; -EDOM when host bits are set. */
int prefix_parse(const char *text, struct prefix *out);
const char *prefix_format(const struct prefix *p, char out[ADDR_TEXT_MAX]);
bool prefix_contains(const struct prefix *p, const struct addr *a);

/* "1.2.3.4", "1.2.3.4:53", "[::1]:53", "::1", "fe80::1%eth0". */
int endpoint_parse(const char *text, uint16_t default_port, struct endpoint *out);
const char *endpoint_format(const struct endpoint *e, char out[ENDPOINT_TEXT_MAX]);
bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

/* To and from what the kernel speaks: AF_INET for IPv4, AF_INET6 for the rest. */
socklen_t endpoint_to_sockaddr(const struct endpoint *e, struct sockaddr_storage *out);
void endpoint_from_sockaddr(const struct sockaddr *sa, struct endpoint *out);

#endif
