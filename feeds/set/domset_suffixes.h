/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public suffixes (libpsl's list on disk), so that the builder can test that none of them takes
 * the slow path for every query. Read once a process and kept: the fetcher may be locked into its
 * folders later.
 */
#ifndef BALEEN_FEEDS_SET_DOMSET_SUFFIXES_H
#define BALEEN_FEEDS_SET_DOMSET_SUFFIXES_H

#include <stddef.h>
#include <stdint.h>

/* Call `each` with the wire form of every suffix; none if there is no list. */
void domset_suffixes_each(void (*each)(void *context, const uint8_t *wire, unsigned labels),
			  void *context);

#endif
