/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of findings about a user's input. Used by every process that reads configuration; the
 * caller of diag_init owns the list and all texts in it. Invariant: a finding once added is never
 * lost; when memory ends, the process ends with a message, because a configuration of which the
 * errors are not known must not be taken for a good one.
 */
#include "base/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void *diag_must(void *p)
{
	if (!p) {
		fputs("baleen: out of memory\n", stderr);
		abort();
	}
	return p;
}

void diag_init(struct diags *d)
{
	memset(d, 0, sizeof(*d));
}

void diag_fini(struct diags *d)
{
	for (size_t i = 0; i < d->count; i++) {
		free(d->items[i].file);
		free(d->items[i].text);
	}
	free(d->items);
	memset(d, 0, sizeof(*d));
}

static void diag_add(struct diags *d, enum diag_level level, const char *file, int line, int column,
		     const char *format, va_list arguments)
{
	/* Doubling at each power of two keeps the struct free of a capacity. */
	if ((d->count & (d->count - 1)) == 0) {
		size_t room = d->count ? d->count * 2 : 1;
		d->items = diag_must(realloc(d->items, room * sizeof(*d->items)));
	}
	struct diag *one = &d->items[d->count];
	memset(one, 0, sizeof(*one));
	one->level = level;
	one->line = line;
	one->column = column;
	one->found = d->count;
	if (file)
		one->file = diag_must(strdup(file));
	if (vasprintf(&one->text, format, arguments) < 0)
		diag_must(NULL);
	d->count++;
	if (level == DIAG_ERROR)
		d->errors++;
	else
		d->warnings++;
}

void diag_error(struct diags *d, const char *file, int line, int column, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	diag_add(d, DIAG_ERROR, file, line, column, format, arguments);
	va_end(arguments);
}

void diag_warning(struct diags *d, const char *file, int line, int column, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	diag_add(d, DIAG_WARNING, file, line, column, format, arguments);
	va_end(arguments);
}

static int diag_compare(const void *left, const void *right)
{
	const struct diag *a = left, *b = right;
	int files = strcmp(a->file ? a->file : "", b->file ? b->file : "");
	if (files)
		return files;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->column != b->column)
		return a->column < b->column ? -1 : 1;
	return a->found < b->found ? -1 : 1;
}

void diag_sort(struct diags *d)
{
	if (d->count > 1)
		qsort(d->items, d->count, sizeof(*d->items), diag_compare);
}

/* Texts quote what the user wrote: no control character of it may reach a terminal or a log. */
static void diag_put(const char *text, FILE *out)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p < 0x20 || *p == 0x7f)
			fprintf(out, "\\%03u", *p);
		else
			putc(*p, out);
	}
}

void diag_print(const struct diags *d, FILE *out)
{
	for (size_t i = 0; i < d->count; i++) {
		const struct diag *one = &d->items[i];
		if (one->file) {
			diag_put(one->file, out);
			if (one->line > 0)
				fprintf(out, ":%d", one->line);
			if (one->line > 0 && one->column > 0)
				fprintf(out, ":%d", one->column);
			fputs(": ", out);
		}
		fputs(one->level == DIAG_ERROR ? "error: " : "warning: ", out);
		diag_put(one->text, out);
		putc('\n', out);
	}
}
