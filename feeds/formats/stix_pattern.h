/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STIX patterns (STIX 2.1 section 9), as far as a name alone can fulfil one:
 *
 *   [domain-name:value = 'x' OR domain-name:value IN ('y', 'z')] OR [url:value = 'http://u/']
 *
 * Every alternative is an entry; an alternative about something else is counted as not applied.
 * With AND, FOLLOWEDBY or a qualifier (WITHIN, REPEATS, START) the pattern as a whole is not
 * applied: a name would be too little. Runs where the parsers run.
 */
#ifndef BALEEN_FEEDS_FORMATS_STIX_PATTERN_H
#define BALEEN_FEEDS_FORMATS_STIX_PATTERN_H

#include "feeds/formats/format.h"

/* `line` has the pattern. 0 or the sink's error. */
int stix_pattern(struct feed_body *body, const struct feed_line *line);

#endif
