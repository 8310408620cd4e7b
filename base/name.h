/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain names. The normal form everywhere is wire format (RFC 1035 section 3.1), uncompressed,
 * ASCII lower case, with the root label: at most 255 octets, 127 labels. Any octet may stand in a
 * label (RFC 2181 section 11). Leaf file; no allocation.
 */
#ifndef BALEEN_BASE_NAME_H
#define BALEEN_BASE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_WIRE_MAX	255
#define NAME_LABELS_MAX 127
#define NAME_LABEL_MAX	63
#define NAME_TEXT_MAX	1025 /* every octet as \DDD, dots, NUL */

struct name {
	uint8_t length; /* octets of wire, root label included: 1..255 */
	uint8_t labels; /* without the root label: 0..127 */
	uint8_t wire[NAME_WIRE_MAX];
};

/*
 * Presentation format: labels, dots, \DDD and \X escapes, with or without the trailing dot; "."
 * is the root. Lower-cased. No IDNA: see name_from_unicode. Returns 0 or -EINVAL (empty label,
 * label over 63, name over 255, bad escape, empty text).
 */
int name_parse(const char *text, size_t length, struct name *out);

/*
 * As name_parse, but UTF-8 labels are turned into A-labels first (libidn2, UTS 46 lookup,
 * non-transitional). Pure ASCII input never reaches libidn2. -EINVAL also when IDNA refuses.
 */
int name_from_unicode(const char *text, size_t length, struct name *out);

/* Presentation format with the trailing dot and \DDD escapes (RFC 4343); returns its length. */
size_t name_format(const uint8_t *wire, char out[NAME_TEXT_MAX]);

/* Check and measure wire octets (no pointers): length incl. root, or 0 if malformed or too long. */
size_t name_measure(const uint8_t *wire, size_t available, unsigned *labels);

/* Copy `length` octets of a well-formed wire name, lower-cased. Blind over length octets is safe:
 * they are below 'A'. `out` may equal `in`. */
void name_lower(const uint8_t *in, size_t length, uint8_t *out);

/* Fill `out` from wire octets already measured. */
void name_set(struct name *out, const uint8_t *wire, size_t length, unsigned labels);

/* Both lower-cased: equality, and "is `name` equal to or below `ancestor`", at label borders. */
bool name_equal(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length);
bool name_is_under(const uint8_t *name, size_t length, const uint8_t *ancestor,
		   size_t ancestor_length);

/* The offset in wire of the suffix with `keep` labels; keep <= labels. */
size_t name_suffix_offset(const uint8_t *wire, unsigned labels, unsigned keep);

/* Order of RFC 4034 section 6.1 (canonical): root label first. <0, 0, >0. Inputs lower-cased. */
int name_compare(const uint8_t *a, const uint8_t *b);

#endif
