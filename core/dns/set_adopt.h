/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The domain set that new queries use. A worker looks at the published number at each loop tick and
 * opens what it names; queries that wait keep the set they began with, and the old one is closed
 * when the last of them is done. A set that cannot be opened leaves the old one in place.
 */
#ifndef BALEEN_CORE_DNS_SET_ADOPT_H
#define BALEEN_CORE_DNS_SET_ADOPT_H

#include "core/worker.h"

#define SET_FOLDER "sets" /* below the state folder, which is where a worker stands */

/* Adopt the published set if it is another than w->set. Costs one load when it is not. */
void set_adopt(struct worker *w);

/* Let set_adopt try again what it could not open. */
void set_retry(struct worker *w);

/* Have the fetcher look at a set's file, and make a new one if it is damaged. */
void set_suspect(struct worker *w, uint64_t number);

/* Is this an address in the file of an open set? Safe in a signal. */
bool set_maps(const struct worker *w, const void *address);

/* A query that waits holds on to its set. NULL is allowed and does nothing. */
void set_pin(struct worker *w, const struct domset *set);
void set_unpin(struct worker *w, const struct domset *set);

/* Close all of them, pinned or not. */
void set_close_all(struct worker *w);

#endif
