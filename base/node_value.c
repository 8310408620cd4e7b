/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed reads of nodes: texts into numbers, sizes, times, words and addresses, and words that are
 * nearly right. Any process that loads configuration; nothing is allocated. Invariant: `*out` is
 * written only when the whole text fitted, and when it did not, `d` says what was expected.
 */
#include "base/node.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_NEAR_MAX 48 /* longer words are not compared */

static const char *node_name_of(const struct node *n)
{
	return n->key ? n->key : "this item";
}

/* ---- words that are nearly right ---- */

static size_t node_least(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;
	return least < c ? least : c;
}

/* Edits from `a` to `b`: insert, delete, replace, swap of neighbours. */
static size_t node_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t rows[3][NODE_NEAR_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];
	for (size_t j = 0; j <= b_length; j++)
		last[j] = before[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		now[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t replaced = last[j - 1] + (a[i - 1] != b[j - 1]);
			now[j] = node_least(last[j] + 1, now[j - 1] + 1, replaced);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		size_t *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[b_length];
}

const char *node_nearest(const char *text, const char *const *known)
{
	size_t length = strlen(text);
	size_t best = length / 3 + 1;
	const char *found = NULL;
	if (length > NODE_NEAR_MAX)
		return NULL;
	for (; *known; known++) {
		size_t n = strlen(*known);
		if (n > NODE_NEAR_MAX)
			continue;
		size_t distance = node_distance(text, length, *known, n);
		if (distance < best) {
			best = distance;
			found = *known;
		}
	}
	return found;
}

/* "a, b, c" for an error; cut off when there are too many. */
static void node_list_words(const char *const *words, char *out, size_t size)
{
	size_t at = 0;
	out[0] = '\0';
	for (; *words; words++) {
		int n = snprintf(out + at, size - at, "%s%s", at ? ", " : "", *words);
		if (n < 0 || (size_t)n >= size - at) {
			memcpy(out + size - 4, "...", 4);
			return;
		}
		at += (size_t)n;
	}
}

bool node_check_keys(const struct node *map, const char *const *known, struct diags *d)
{
	if (node_is_null(map))
		return true;
	if (map->kind != NODE_MAP) {
		node_error(map, d, "%s must be a map (key: value)", node_name_of(map));
		return false;
	}
	bool clean = true;
	for (const struct node *n = map->children; n; n = n->next) {
		const char *const *k = known;
		while (*k && strcmp(*k, n->key) != 0)
			k++;
		if (*k)
			continue;
		clean = false;
		const char *near = node_nearest(n->key, known);
		char all[256];
		node_list_words(known, all, sizeof(all));
		if (near)
			diag_error(d, n->file, n->key_line, n->key_column,
				   "unknown key \"%s\" (did you mean \"%s\"?)", n->key, near);
		else
			diag_error(d, n->file, n->key_line, n->key_column,
				   "unknown key \"%s\" (expected one of %s)", n->key, all);
	}
	return clean;
}

/* ---- values ---- */

/* The text of a scalar that has one; else tells `d` what should stand there. */
static const char *node_scalar_text(const struct node *n, struct diags *d, const char *expected)
{
	if (!n)
		return NULL;
	if (n->kind == NODE_SCALAR && !node_is_null(n))
		return n->text;
	node_error(n, d, "%s %s (expected %s)", node_name_of(n),
		   n->kind == NODE_SCALAR ? "has no value" : "must be one value", expected);
	return NULL;
}

bool node_text(const struct node *n, struct diags *d, const char **out)
{
	const char *text = node_scalar_text(n, d, "a text");
	if (text)
		*out = text;
	return text != NULL;
}

bool node_bool(const struct node *n, struct diags *d, bool *out)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
	const char *text = node_scalar_text(n, d, "true or false");
	if (!text)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i]) == 0) {
			*out = i % 2;
			return true;
		}
	node_error(n, d, "\"%s\" is neither true nor false (expected true or false)", text);
	return false;
}

bool node_integer(const struct node *n, struct diags *d, int64_t min, int64_t max, int64_t *out)
{
	const char *text = node_scalar_text(n, d, "a whole number");
	if (!text)
		return false;
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	size_t digits = strspn(text + (text[0] == '-'), "0123456789");
	if (digits == 0 || *end != '\0' || strlen(text) != digits + (text[0] == '-')) {
		node_error(n, d, "\"%s\" is not a whole number", text);
		return false;
	}
	if (errno == ERANGE || value < min || value > max) {
		node_error(n, d, "%s is out of range (expected %lld to %lld)", text, (long long)min,
			   (long long)max);
		return false;
	}
	*out = value;
	return true;
}

bool node_number(const struct node *n, struct diags *d, double min, double max, double *out)
{
	const char *text = node_scalar_text(n, d, "a number");
	if (!text)
		return false;
	char *end;
	double value = strtod(text, &end);
	if (strspn(text, "0123456789.eE+-") != strlen(text) || end == text || *end != '\0' ||
	    !isfinite(value)) {
		node_error(n, d, "\"%s\" is not a number", text);
		return false;
	}
	if (value < min || value > max) {
		node_error(n, d, "%s is out of range (expected %g to %g)", text, min, max);
		return false;
	}
	*out = value;
	return true;
}

struct node_unit {
	const char *word;
	uint64_t factor;
};

/* Digits and one unit. -EINVAL: not of that form; -ERANGE: does not fit. */
static int node_quantity(const char *text, const struct node_unit *units, uint64_t *out)
{
	uint64_t value = 0;
	const char *p = text;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -ERANGE;
	if (p == text)
		return -EINVAL;
	while (*p == ' ')
		p++;
	for (; units->word; units++)
		if (strcmp(units->word, p) == 0)
			return __builtin_mul_overflow(value, units->factor, out) ||
					       *out > (uint64_t)INT64_MAX
				       ? -ERANGE
				       : 0;
	return -EINVAL;
}

static bool node_with_unit(const struct node *n, struct diags *d, const struct node_unit *units,
			   const char *what, const char *expected, uint64_t *out)
{
	const char *text = node_scalar_text(n, d, expected);
	if (!text)
		return false;
	uint64_t value = 0;
	/* Nothing is nothing in every unit. */
	int result = strcmp(text, "0") == 0 ? 0 : node_quantity(text, units, &value);
	if (result == -ERANGE)
		node_error(n, d, "\"%s\" is too large", text);
	else if (result < 0)
		node_error(n, d, "\"%s\" is not a %s (expected %s)", text, what, expected);
	else
		*out = value;
	return result == 0;
}

bool node_size(const struct node *n, struct diags *d, uint64_t *out_bytes)
{
	static const struct node_unit units[] = {{"", 1},
						 {"KiB", (uint64_t)1 << 10},
						 {"MiB", (uint64_t)1 << 20},
						 {"GiB", (uint64_t)1 << 30},
						 {NULL, 0}};
	return node_with_unit(n, d, units, "size",
			      "octets, or a number with KiB, MiB or GiB such as 64MiB", out_bytes);
}

bool node_duration(const struct node *n, struct diags *d, uint64_t *out_ms)
{
	static const struct node_unit units[] = {{"ms", 1},	 {"s", 1000},	  {"m", 60000},
						 {"h", 3600000}, {"d", 86400000}, {NULL, 0}};
	return node_with_unit(n, d, units, "time", "a number with ms, s, m, h or d such as 2s",
			      out_ms);
}

bool node_choice(const struct node *n, struct diags *d, const char *const *words, int *out)
{
	char all[256];
	node_list_words(words, all, sizeof(all));
	const char *text = node_scalar_text(n, d, all);
	if (!text)
		return false;
	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], text) == 0) {
			*out = i;
			return true;
		}
	const char *near = node_nearest(text, words);
	if (near)
		node_error(n, d, "\"%s\" is not known here (did you mean \"%s\"?)", text, near);
	else
		node_error(n, d, "\"%s\" is not known here (expected one of %s)", text, all);
	return false;
}

bool node_address(const struct node *n, struct diags *d, struct addr *out)
{
	const char *text = node_scalar_text(n, d, "an address");
	if (!text)
		return false;
	if (addr_parse(text, out) == 0)
		return true;
	node_error(n, d, "\"%s\" is not an address (expected IPv4 or IPv6, such as 192.0.2.1)",
		   text);
	return false;
}

bool node_prefix(const struct node *n, struct diags *d, struct prefix *out)
{
	const char *text = node_scalar_text(n, d, "a prefix");
	if (!text)
		return false;
	int result = prefix_parse(text, out);
	if (result == -EDOM)
		node_error(n, d, "\"%s\" has bits set behind the prefix length", text);
	else if (result < 0)
		node_error(n, d,
			   "\"%s\" is not a prefix (expected an address, or one with a length such "
			   "as 10.0.0.0/8)",
			   text);
	return result == 0;
}

bool node_endpoint(const struct node *n, struct diags *d, uint16_t default_port,
		   struct endpoint *out)
{
	const char *text = node_scalar_text(n, d, "an address and port");
	if (!text)
		return false;
	if (endpoint_parse(text, default_port, out) == 0)
		return true;
	node_error(n, d,
		   "\"%s\" is not an address and port (expected 192.0.2.1:53 or [2001:db8::1]:53)",
		   text);
	return false;
}
