/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sort keys of names: labels root first, each followed by 00; inside a label 00 becomes 01 01 and
 * 01 becomes 01 02. Bytewise order of keys puts an ancestor before its subtree and keeps the
 * subtree contiguous; `a` is an ancestor of `b` exactly if key(a) is a prefix of key(b). The root's
 * key is empty. At most KEY_MAX octets. Bijective. Leaf file; no allocation.
 */
#ifndef BALEEN_BASE_KEY_H
#define BALEEN_BASE_KEY_H

#include <stddef.h>
#include <stdint.h>

#define KEY_MAX 508

/* From a lower-cased wire name; returns the key's length. */
size_t key_from_wire(const uint8_t *wire, size_t length, unsigned labels, uint8_t out[KEY_MAX]);

/* Back to wire: returns its length, or 0 for octets that are no key. */
size_t key_to_wire(const uint8_t *key, size_t length, uint8_t out[255]);

int key_compare(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length);

#endif
