/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses, prefixes and endpoints in their one normal form. Pure functions, any process.
 * Invariant: an IPv4 address is ::ffff:a.b.c.d and nothing else, so that equal clients are equal
 * octets; and a prefix shorter than /96 never contains an IPv4 address, so that `::/0` means IPv6.
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t addr_v4_lead[12] = {[10] = 0xff, [11] = 0xff};

bool addr_is_v4(const struct addr *a)
{
	return memcmp(a->octets, addr_v4_lead, sizeof(addr_v4_lead)) == 0;
}

bool addr_equal(const struct addr *a, const struct addr *b)
{
	return memcmp(a->octets, b->octets, sizeof(a->octets)) == 0;
}

bool addr_is_unspecified(const struct addr *a)
{
	static const uint8_t zero[16];
	if (addr_is_v4(a))
		return memcmp(a->octets + 12, zero, 4) == 0;
	return memcmp(a->octets, zero, sizeof(zero)) == 0;
}

bool addr_is_loopback(const struct addr *a)
{
	static const uint8_t one[16] = {[15] = 1};
	if (addr_is_v4(a))
		return a->octets[12] == 127;
	return memcmp(a->octets, one, sizeof(one)) == 0;
}

int addr_parse(const char *text, struct addr *out)
{
	struct addr a;
	memcpy(a.octets, addr_v4_lead, sizeof(addr_v4_lead));
	if (inet_pton(AF_INET, text, a.octets + 12) != 1 &&
	    inet_pton(AF_INET6, text, a.octets) != 1)
		return -EINVAL;
	*out = a;
	return 0;
}

const char *addr_format(const struct addr *a, char out[ADDR_TEXT_MAX])
{
	if (addr_is_v4(a))
		inet_ntop(AF_INET, a->octets + 12, out, ADDR_TEXT_MAX);
	else
		inet_ntop(AF_INET6, a->octets, out, ADDR_TEXT_MAX);
	return out;
}

/* A plain decimal of at most `max`, no sign, no leading zero; -1 if it is not one. */
static int addr_decimal(const char *text, int max)
{
	if (text[0] == '0' && text[1] != '\0')
		return -1;
	int value = 0;
	const char *p = text;
	for (; *p >= '0' && *p <= '9'; p++) {
		value = value * 10 + (*p - '0');
		if (value > max)
			return -1;
	}
	return *p == '\0' && p > text ? value : -1;
}

int prefix_parse(const char *text, struct prefix *out)
{
	char address[ADDR_TEXT_MAX];
	size_t n = strcspn(text, "/");
	if (n >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, n);
	address[n] = '\0';

	struct prefix p;
	if (addr_parse(address, &p.addr) < 0)
		return -EINVAL;
	/* What was written counts: ::ffff:10.0.0.0/104 is an IPv6 text. */
	bool dotted = !strchr(address, ':');
	int bits = 128;
	if (text[n] == '/') {
		bits = addr_decimal(text + n + 1, dotted ? 32 : 128);
		if (bits < 0)
			return -EINVAL;
		if (dotted)
			bits += 96;
	}
	p.bits = (uint8_t)bits;
	for (int i = bits; i < 128; i++)
		if (p.addr.octets[i / 8] >> (7 - i % 8) & 1)
			return -EDOM;
	*out = p;
	return 0;
}

const char *prefix_format(const struct prefix *p, char out[ADDR_TEXT_MAX])
{
	addr_format(&p->addr, out);
	size_t n = strlen(out);
	unsigned bits = p->bits;
	if (addr_is_v4(&p->addr) && bits >= 96)
		bits -= 96;
	snprintf(out + n, ADDR_TEXT_MAX - n, "/%u", bits);
	return out;
}

bool prefix_contains(const struct prefix *p, const struct addr *a)
{
	if (p->bits < 96 && addr_is_v4(a))
		return false;
	unsigned whole = p->bits / 8;
	unsigned rest = p->bits % 8;
	if (memcmp(p->addr.octets, a->octets, whole) != 0)
		return false;
	return rest == 0 || ((p->addr.octets[whole] ^ a->octets[whole]) >> (8 - rest)) == 0;
}

/* The scope of "fe80::1%eth0": an interface's name or number. 0: there is no such interface. */
static uint32_t endpoint_scope(const char *text)
{
	int number = addr_decimal(text, 0x7ffffff);
	return number >= 0 ? (uint32_t)number : if_nametoindex(text);
}

int endpoint_parse(const char *text, uint16_t default_port, struct endpoint *out)
{
	char copy[ENDPOINT_TEXT_MAX + IF_NAMESIZE];
	size_t n = strlen(text);
	if (n >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, n + 1);

	char *address = copy;
	char *port = NULL;
	if (copy[0] == '[') {
		address = copy + 1;
		char *end = strchr(address, ']');
		if (!end || (end[1] != '\0' && end[1] != ':'))
			return -EINVAL;
		*end = '\0';
		if (end[1] == ':')
			port = end + 2;
		if (!strchr(address, ':'))
			return -EINVAL;
	} else {
		char *colon = strchr(copy, ':');
		if (colon && colon == strrchr(copy, ':')) {
			*colon = '\0';
			port = colon + 1;
		}
	}

	struct endpoint e = {.port = default_port};
	char *percent = strchr(address, '%');
	if (percent) {
		*percent = '\0';
		e.scope_id = endpoint_scope(percent + 1);
		if (e.scope_id == 0)
			return -EINVAL;
	}
	if (addr_parse(address, &e.addr) < 0 || (percent && addr_is_v4(&e.addr)))
		return -EINVAL;
	if (port) {
		int number = addr_decimal(port, 65535);
		if (number <= 0)
			return -EINVAL;
		e.port = (uint16_t)number;
	}
	*out = e;
	return 0;
}

const char *endpoint_format(const struct endpoint *e, char out[ENDPOINT_TEXT_MAX])
{
	char address[ADDR_TEXT_MAX];
	char scope[IF_NAMESIZE + 1] = "";
	addr_format(&e->addr, address);
	if (addr_is_v4(&e->addr)) {
		snprintf(out, ENDPOINT_TEXT_MAX, "%.*s:%u", INET_ADDRSTRLEN, address, e->port);
		return out;
	}
	if (e->scope_id != 0) {
		char name[IF_NAMESIZE];
		if (if_indextoname(e->scope_id, name))
			snprintf(scope, sizeof(scope), "%%%.*s", IF_NAMESIZE - 1, name);
		else
			snprintf(scope, sizeof(scope), "%%%u", e->scope_id);
	}
	snprintf(out, ENDPOINT_TEXT_MAX, "[%.*s%s]:%u", INET6_ADDRSTRLEN, address, scope, e->port);
	return out;
}

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
	return a->port == b->port && a->scope_id == b->scope_id && addr_equal(&a->addr, &b->addr);
}

socklen_t endpoint_to_sockaddr(const struct endpoint *e, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (addr_is_v4(&e->addr)) {
		struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(e->port)};
		memcpy(&v4.sin_addr, e->addr.octets + 12, 4);
		memcpy(out, &v4, sizeof(v4));
		return sizeof(v4);
	}
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
				  .sin6_port = htons(e->port),
				  .sin6_scope_id = e->scope_id};
	memcpy(&v6.sin6_addr, e->addr.octets, 16);
	memcpy(out, &v6, sizeof(v6));
	return sizeof(v6);
}

void endpoint_from_sockaddr(const struct sockaddr *sa, struct endpoint *out)
{
	memset(out, 0, sizeof(*out));
	if (sa->sa_family == AF_INET) {
		struct sockaddr_in v4;
		memcpy(&v4, sa, sizeof(v4));
		memcpy(out->addr.octets, addr_v4_lead, sizeof(addr_v4_lead));
		memcpy(out->addr.octets + 12, &v4.sin_addr, 4);
		out->port = ntohs(v4.sin_port);
	} else if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 v6;
		memcpy(&v6, sa, sizeof(v6));
		memcpy(out->addr.octets, &v6.sin6_addr, 16);
		out->port = ntohs(v6.sin6_port);
		/* The kernel fills the scope for link-local addresses only; keep it for those only.
		 */
		if (out->addr.octets[0] == 0xfe && (out->addr.octets[1] & 0xc0) == 0x80)
			out->scope_id = v6.sin6_scope_id;
	}
}
