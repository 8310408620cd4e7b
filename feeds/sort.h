/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External sort of a feed's entries: any number in, sorted and each once out, in at most 32 MiB of
 * memory; more spills to an unlinked file in `folder`. Owned by its caller, used in one thread.
 */
#ifndef BALEEN_FEEDS_SORT_H
#define BALEEN_FEEDS_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort;

int sort_new(const char *folder, struct sort **out);
void sort_free(struct sort *s);

/* `cancel`: flags that are taken away from the key in the end. 0 or -errno (-ENOSPC...). */
int sort_add(struct sort *s, const uint8_t *key, size_t key_length, uint16_t flags,
	     uint16_t cancel);

/* No more sort_add. Then sort_next: 1, 0 at the end, -errno. Flags of equal keys are ORed; a key
 * whose flags were all cancelled does not appear. `*key` is valid until the next call. */
int sort_finish(struct sort *s);
int sort_next(struct sort *s, const uint8_t **key, size_t *key_length, uint16_t *flags);

#endif
