/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer message from records in presentation format, for `explain --answer` and the policies'
 * tests: "shop.example CNAME tracker.bad.example", "x.example 60 IN A 192.0.2.1". Also the words of
 * record types. Offline and in the template; not on the DNS path. Leaf file; no allocation.
 */
#ifndef BALEEN_BASE_MESSAGE_TEXT_H
#define BALEEN_BASE_MESSAGE_TEXT_H

#include "base/message.h"

#include <sys/types.h>

#define MESSAGE_TEXT_TTL  300 /* of a record that gives none */
#define MESSAGE_TYPE_TEXT 12  /* room for "TYPE65535" and NUL */

/* "A", "https", "TYPE65280": 0 or -EINVAL. */
int message_type_parse(const char *text, size_t length, uint16_t *out);
/* The word, or "TYPEnnn" written to `out`. */
const char *message_type_format(uint16_t type, char out[MESSAGE_TYPE_TEXT]);

/*
 * A NOERROR response to the question with these records (NULL-terminated list) in its answer
 * section. Types A, AAAA, CNAME, DNAME, NS, PTR, MX, SRV, TXT, HTTPS, SVCB (alpn, port, ipv4hint,
 * ipv6hint), and `TYPEnnn \# LENGTH HEX`. Returns the size, or -EINVAL with a sentence in `error`.
 */
ssize_t message_from_text(const char *const *rrs, const uint8_t *name, size_t name_length,
			  uint16_t type, uint8_t *out, size_t max, char *error, size_t error_size);

#endif
