/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One indicator of a threat feed, whatever the feed's format: a name, an address, a URL, defanged
 * (`hxxp`, `x[.]test`) or not. Runs where the parsers run.
 */
#ifndef BALEEN_FEEDS_FORMATS_INDICATOR_H
#define BALEEN_FEEDS_FORMATS_INDICATOR_H

#include "feeds/formats/entry.h"

/*
 * Deliver what of it is a name: a name with `name_flags`, `*.x` as what lies below x, `.x` as x and
 * all below; of a URL its host with `url_flags`, and only if the URL is nothing but its host, or if
 * the feed's configuration says `url-host: true`. Everything else is rejected. 0 or the sink's
 * error.
 */
int indicator_deliver(struct feed_body *body, const struct feed_line *line, const char *text,
		      size_t length, uint16_t name_flags, uint16_t url_flags);

#endif
