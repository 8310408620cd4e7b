/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with a user's input, and where: a growing list of `file:line:column: message (what
 * was expected)`. Parsers add to it and go on, so that all errors are reported, not only the first.
 * Leaf file: knows nothing of what it reports about. Owned by whoever called diag_init.
 */
#ifndef BALEEN_BASE_DIAG_H
#define BALEEN_BASE_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum diag_level { DIAG_ERROR, DIAG_WARNING };

struct diag {
	enum diag_level level;
	char *file; /* NULL: not about a file */
	int line;   /* from 1; 0: unknown */
	int column; /* from 1; 0: unknown */
	char *text;
	size_t found; /* from 0: a place's findings stay in the order they were made */
};

struct diags {
	struct diag *items;
	size_t count;
	size_t errors;
	size_t warnings;
};

void diag_init(struct diags *d);
void diag_fini(struct diags *d);

/* Add one finding. The texts are copied. */
void diag_error(struct diags *d, const char *file, int line, int column, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void diag_warning(struct diags *d, const char *file, int line, int column, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* By file (none first), line and column: findings about one place come from different readers. */
void diag_sort(struct diags *d);

/* Print every finding as `file:line:column: error|warning: text`, one a line. */
void diag_print(const struct diags *d, FILE *out);

#endif
