/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message as answer hooks see it: `struct baleen_answer` with one baleen_record per record of the
 * answer section, owners and targets decompressed and lower-cased. Used by workers for every answer
 * that a hook wants to see, and by `explain` and policy tests on messages made from text. What
 * cannot be read whole is an error, never a shorter answer.
 */
#ifndef BALEEN_CORE_DNS_ANSWER_VIEW_H
#define BALEEN_CORE_DNS_ANSWER_VIEW_H

#include "baleen/plugin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWER_VIEW_RECORDS 4096 /* more do not fit a message */
#define ANSWER_VIEW_NAMES   ((size_t)256 << 10)

/* One is enough for a worker: valid until the next answer_view_make. About 450 KiB of address
 * space, of which an ordinary answer touches a page or two. */
struct answer_view {
	struct baleen_answer answer;
	struct baleen_record records[ANSWER_VIEW_RECORDS];
	uint8_t names[ANSWER_VIEW_NAMES];
};

struct answer_view *answer_view_new(void); /* NULL: no memory */
void answer_view_free(struct answer_view *v);

/* Fill `v` from a message, which must outlive it. 0; -EBADMSG: malformed; -E2BIG: too many names.
 */
int answer_view_make(struct answer_view *v, const uint8_t *message, size_t size, bool from_cache,
		     bool stale);

#endif
