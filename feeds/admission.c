/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hard list, the popular list and the verdict on a version. Runs in the fetcher; the hard list
 * also in `feeds compile`. Invariant: nothing here makes a list block more; it only drops entries
 * or keeps the version before.
 */
#include "feeds/admission.h"

#include "feeds/formats/entry.h"
#include "feeds/set/domset.h"

#include <errno.h>
#include <libpsl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADMISSION_SIZED		  1000 /* entries from which growth and shrinking are judged */
#define ADMISSION_POPULAR	  3    /* popular names that a refresh may add */
#define ADMISSION_RUBBISH	  100  /* lines from which "almost nothing understood" is judged */
#define ADMISSION_RUBBISH_PERCENT 10

static int hardlist_add_host(struct namelist *out, const char *url)
{
	const char *host = strstr(url, "://");
	if (!host)
		return 0;
	host += 3;
	size_t length = strcspn(host, "/?#");
	const char *at = memchr(host, '@', length);
	if (at) {
		length -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	if (host[0] == '[') /* an IPv6 literal */
		return 0;
	const char *port = memchr(host, ':', length);
	if (port)
		length = (size_t)(port - host);
	struct name name;
	if (entry_is_address(host, length) || name_from_unicode(host, length, &name) != 0)
		return 0;
	return namelist_add(out, &name, false);
}

int hardlist_init(struct namelist *out, const struct name *zones, size_t zone_count,
		  const struct feeds *feeds)
{
	*out = (struct namelist){0};
	int result = 0;
	for (size_t i = 0; i < zone_count && result == 0; i++)
		result = namelist_add(out, &zones[i], true);
	for (size_t i = 0; feeds && i < feeds->count; i++)
		for (const char *const *url = feeds->items[i].urls; url && *url; url++)
			if (result == 0)
				result = hardlist_add_host(out, *url);
	namelist_sort(out);
	return result;
}

static bool hardlist_is_suffix(const struct name *name)
{
	char text[NAME_TEXT_MAX];
	size_t length = name_format(name->wire, text);
	text[length - 1] = '\0'; /* libpsl wants no trailing dot */
	return psl_is_public_suffix2(psl_builtin(), text, PSL_TYPE_ICANN | PSL_TYPE_NO_STAR_RULE);
}

int hardlist_check(const struct namelist *protected, const struct name *name, uint16_t flags)
{
	uint16_t blocks = (flags | flags >> 6) & (DOMSET_EXACT | DOMSET_SUBTREE | DOMSET_BELOW);
	if (!blocks)
		return -1;
	if (name->labels < 2)
		return FEED_REJECT_SUFFIX;
	/* Public suffixes have few labels; most names end the question here. */
	if (blocks & (DOMSET_SUBTREE | DOMSET_BELOW) && name->labels < 6 &&
	    hardlist_is_suffix(name))
		return FEED_REJECT_SUFFIX;
	if (protected && protected->count > 0) {
		uint8_t key[KEY_MAX];
		size_t first;
		size_t length = key_from_wire(name->wire, name->length, name->labels, key);
		if (namelist_taken(protected, key, length, flags, &first) > 0)
			return FEED_REJECT_PROTECTED;
	}
	return -1;
}

/* ---- the popular list ---- */

static int popular_parse(const struct source_file *file, const char *path, struct diags *d,
			 struct namelist *out)
{
	const char *text = (const char *)file->data, *end = text + file->size;
	for (int line = 1; text < end; line++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = stop ? (size_t)(stop - text) : (size_t)(end - text);
		struct entry_text t = entry_without_comment(text, length);
		struct name name;
		text += length + (stop != NULL);
		if (t.length == 0)
			continue;
		if (name_from_unicode(t.at, t.length, &name) != 0)
			diag_error(d, path, line, 1,
				   "not a domain name (expected one name a line)");
		else if (namelist_add(out, &name, false) < 0)
			return -ENOMEM;
	}
	return 0;
}

int popular_load(struct source *source, const char *const *files, size_t count, struct diags *d,
		 struct namelist *out)
{
	size_t errors = d->errors;
	struct source_file file;
	*out = (struct namelist){0};
	int result = feed_data_read(source, "popular.txt", &file);
	if (result == 0)
		result = popular_parse(&file, file.path, d, out);
	else if (result == -ENOENT)
		diag_warning(d, NULL, 0, 0,
			     "popular.txt is not installed: threat feeds are checked against "
			     "the `protected:` files alone");
	for (size_t i = 0; i < count && result != -ENOMEM; i++) {
		result = source_read(source, files[i], &file);
		if (result == 0)
			result = popular_parse(&file, files[i], d, out);
		else
			diag_error(d, files[i], 0, 0, "cannot be read: %s", strerror(-result));
	}
	namelist_sort(out);
	return result == -ENOMEM ? result : d->errors > errors ? -EINVAL : 0;
}

int popular_hits_init(struct popular_hits *h, const struct namelist *popular)
{
	*h = (struct popular_hits){.popular = popular};
	h->hit = calloc(popular->count + 1, sizeof(*h->hit));
	return h->hit ? 0 : -ENOMEM;
}

void popular_hits_fini(struct popular_hits *h)
{
	free(h->hit);
	h->hit = NULL;
}

void popular_hits_added(void *hits, const uint8_t *key, size_t key_length, uint16_t flags)
{
	struct popular_hits *h = hits;
	size_t first;
	size_t n = namelist_taken(h->popular, key, key_length, flags, &first);
	for (size_t i = first; i < first + n; i++) {
		if (h->hit[i])
			continue;
		h->hit[i] = true;
		if (h->count < POPULAR_SHOWN)
			h->shown[h->count] = i;
		h->count++;
	}
}

/* ---- the verdict ---- */

static void admission_popular(const struct popular_hits *hits, char why[ADMISSION_WHY_MAX])
{
	int at = snprintf(why, ADMISSION_WHY_MAX, "adds %zu popular names:", hits->count);
	for (size_t i = 0; i < hits->count && i < POPULAR_SHOWN; i++) {
		const struct namelist_item *item = &hits->popular->items[hits->shown[i]];
		uint8_t wire[NAME_WIRE_MAX];
		char text[NAME_TEXT_MAX];
		if (key_to_wire(item->key, item->length, wire) == 0)
			continue;
		name_format(wire, text);
		if (at + strlen(text) + 8 >= ADMISSION_WHY_MAX)
			break;
		at += snprintf(why + at, ADMISSION_WHY_MAX - (size_t)at, " %s", text);
	}
	if (hits->count > POPULAR_SHOWN)
		snprintf(why + at, ADMISSION_WHY_MAX - (size_t)at, " ...");
}

enum admission admission_judge(const struct feed *feed, const struct parse_report *report,
			       const struct feedfile_change *change,
			       const struct popular_hits *hits, char why[ADMISSION_WHY_MAX])
{
	unsigned long long accepted = report->accepted, rejected = report->rejected;
	why[0] = '\0';
	if (report->lines == 0 || accepted + rejected == 0) {
		snprintf(why, ADMISSION_WHY_MAX, "empty: no entry in %llu lines",
			 (unsigned long long)report->lines);
		return ADMIT_REFUSE;
	}
	if (accepted == 0 || change->entries == 0) {
		snprintf(why, ADMISSION_WHY_MAX, "0 of %llu accepted", accepted + rejected);
		return ADMIT_REFUSE;
	}
	/* Rules that Baleen knows and does not apply are no rubbish. */
	unsigned long long rubbish = report->rejects[FEED_REJECT_SYNTAX].count +
				     report->rejects[FEED_REJECT_NAME].count +
				     report->rejects[FEED_REJECT_LONG].count +
				     report->rejects[FEED_REJECT_ENCODING].count;
	if (accepted + rubbish >= ADMISSION_RUBBISH &&
	    accepted * 100 < (accepted + rubbish) * ADMISSION_RUBBISH_PERCENT) {
		snprintf(why, ADMISSION_WHY_MAX, "only %llu of %llu understood", accepted,
			 accepted + rubbish);
		return ADMIT_REFUSE;
	}
	if (change->before > ADMISSION_SIZED) {
		double ratio = (double)change->entries / (double)change->before;
		if (ratio < feed->shrink_limit || ratio > feed->grow_limit) {
			snprintf(why, ADMISSION_WHY_MAX, "%s from %llu to %llu entries",
				 ratio < 1 ? "shrinks" : "grows",
				 (unsigned long long)change->before,
				 (unsigned long long)change->entries);
			return ADMIT_HOLD;
		}
	}
	if (feed->kind == FEED_KIND_THREAT && hits && hits->count > ADMISSION_POPULAR) {
		admission_popular(hits, why);
		return ADMIT_HOLD;
	}
	return ADMIT;
}
