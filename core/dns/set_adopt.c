/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adopting domain sets. Worker process; owns every set that is open in it. Invariant: a set is
 * closed only when it is neither the current one nor pinned, so no query ever reads a closed map.
 */
#include "core/dns/set_adopt.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* One that is open; they are few: the current one and those that waiting queries began with. */
struct open_set {
	struct domset *set;
	unsigned pins;
	struct open_set *next;
};

static void close_idle(struct worker *w)
{
	struct open_set **link = &w->open_sets;

	while (*link) {
		struct open_set *s = *link;
		if (s->pins || s->set == w->set) {
			link = &s->next;
			continue;
		}
		*link = s->next;
		domset_close(s->set);
		free(s);
	}
}

void set_adopt(struct worker *w)
{
	uint64_t number = atomic_load_explicit(shm_set_number(w->shm), memory_order_acquire);
	char path[64];
	char error[DOMSET_ERROR_MAX] = "";
	struct domset *set;

	if (number == w->set_number || number == w->set_refused)
		return;
	struct open_set *s = calloc(1, sizeof(*s));
	if (!s)
		return; /* the next tick tries again */
	snprintf(path, sizeof(path), SET_FOLDER "/domains.%llu.mdb", (unsigned long long)number);
	int r = domset_open(path, DOMSET_CHECK_HEADER, &set, error);
	if (r == 0) {
		r = domset_bind(set, &w->generation->config.feeds);
		if (r < 0)
			domset_close(set);
	}
	if (r < 0) {
		/* Said once; tried again now and then, for it may have been memory that was short.
		 */
		if (w->set_complained != number)
			log_warn("domain set %s: %s; the one before stays", path,
				 *error ? error : "cannot be used");
		w->set_complained = w->set_refused = number;
		if (r != -ENOMEM)
			set_suspect(w, number);
		free(s);
		return;
	}
	s->set = set;
	s->next = w->open_sets;
	w->open_sets = s;
	w->set = set;
	w->set_number = number;
	close_idle(w);
}

void set_suspect(struct worker *w, uint64_t number)
{
	atomic_store_explicit(shm_set_suspect(w->shm), number, memory_order_release);
}

bool set_maps(const struct worker *w, const void *address)
{
	for (const struct open_set *s = w->open_sets; s; s = s->next)
		if (domset_maps(s->set, address))
			return true;
	return false;
}

void set_retry(struct worker *w)
{
	w->set_refused = 0;
}

static struct open_set *find(struct worker *w, const struct domset *set)
{
	struct open_set *s = w->open_sets;

	while (s && s->set != set)
		s = s->next;
	return s;
}

void set_pin(struct worker *w, const struct domset *set)
{
	struct open_set *s = set ? find(w, set) : NULL;

	if (s)
		s->pins++;
}

void set_unpin(struct worker *w, const struct domset *set)
{
	struct open_set *s = set ? find(w, set) : NULL;

	if (s && --s->pins == 0 && s->set != w->set)
		close_idle(w);
}

void set_close_all(struct worker *w)
{
	while (w->open_sets) {
		struct open_set *s = w->open_sets;
		w->open_sets = s->next;
		domset_close(s->set);
		free(s);
	}
	w->set = NULL;
	w->set_number = 0;
}
