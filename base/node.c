/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML text to a tree of nodes, on libyaml's events, with a stack of our own. Used by the loader of
 * every process; nodes and their texts belong to the caller's arena, libyaml's memory is gone when
 * node_parse returns. Invariant: every node knows where it stands, and nothing that YAML would
 * silently turn into something else (alias, tag, merge key, second value of a key) gets through.
 */
#include "base/node.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define NODE_DEPTH_MAX	  32
#define NODE_DOCUMENT_MAX ((size_t)4 << 20)
#define NODE_KEYS_MAX	  4096 /* of one map: duplicates are looked for pairwise */
#define NODE_WORD_MAX	  40   /* of the user's text, quoted in an error */

/* A list or map that is still open. */
struct node_frame {
	struct node *node;
	struct node **tail; /* where its next child hangs */
	const char *key;    /* map: read, its value not yet */
	int key_line, key_column;
};

struct node_builder {
	const char *file;
	const char *text;
	size_t size;
	struct arena *arena;
	struct diags *diags;
	struct node *root;
	struct node_frame stack[NODE_DEPTH_MAX];
	size_t depth;
	unsigned documents;
	bool failed; /* cannot go on */
};

static int node_line(yaml_mark_t mark)
{
	return (int)mark.line + 1;
}

static int node_column(yaml_mark_t mark)
{
	return (int)mark.column + 1;
}

/* ---- errors of the syntax ---- */

/* The word at line:column of the text (columns count characters, and so does libyaml). */
static void node_word_at(const struct node_builder *b, int line, int column,
			 char out[NODE_WORD_MAX + 1])
{
	const char *p = b->text, *end = b->text + b->size;
	for (int i = 1; i < line && p < end; i++) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		p = newline ? newline + 1 : end;
	}
	for (int i = 1; i < column && p < end; i++)
		do
			p++;
		while (p < end && ((unsigned char)*p & 0xc0) == 0x80);
	size_t n = 0;
	while (p < end && n < NODE_WORD_MAX && !strchr(" \t\r\n,]}", *p))
		out[n++] = *p++;
	out[n] = '\0';
}

static void node_must_quote(struct node_builder *b, yaml_mark_t mark, const char *what)
{
	char word[NODE_WORD_MAX + 1];
	node_word_at(b, node_line(mark), node_column(mark), word);
	diag_error(b->diags, b->file, node_line(mark), node_column(mark),
		   "%s begins %s in YAML (quote it: \"%s\")", word[0] ? word : "this", what, word);
}

/* libyaml marks a bad alias where it stopped reading; the star is where the token began. */
static void node_syntax_error(struct node_builder *b, const yaml_parser_t *parser)
{
	const char *problem = parser->problem ? parser->problem : "cannot be read";
	const char *context = parser->context ? parser->context : "";
	if (parser->error == YAML_READER_ERROR) {
		int line = 1;
		for (size_t i = 0; i < parser->problem_offset && i < b->size; i++)
			line += b->text[i] == '\n';
		diag_error(b->diags, b->file, line, 0, "not a text in UTF-8: %s", problem);
		return;
	}
	if (strstr(context, "alias")) {
		node_must_quote(b, parser->context_mark, "an alias");
		return;
	}
	if (strstr(context, "anchor")) {
		node_must_quote(b, parser->context_mark, "an anchor");
		return;
	}
	if (strstr(problem, "cannot start any token")) {
		char word[NODE_WORD_MAX + 1];
		int line = node_line(parser->problem_mark);
		int column = node_column(parser->problem_mark);
		node_word_at(b, line, column, word);
		if (word[0])
			diag_error(b->diags, b->file, line, column,
				   "a value cannot begin like %s in YAML (quote it: \"%s\")", word,
				   word);
		else
			diag_error(b->diags, b->file, line, column,
				   "a tab cannot stand here (indent with spaces)");
		return;
	}
	diag_error(b->diags, b->file, node_line(parser->problem_mark),
		   node_column(parser->problem_mark), "not well-formed YAML: %s%s%s", problem,
		   context[0] ? ", " : "", context);
}

/* ---- building ---- */

static struct node *node_new(struct node_builder *b, enum node_kind kind, yaml_mark_t mark)
{
	struct node *n = arena_alloc(b->arena, sizeof(*n));
	n->kind = kind;
	n->file = b->file;
	n->line = node_line(mark);
	n->column = node_column(mark);
	n->text = kind == NODE_SCALAR ? "" : NULL;
	return n;
}

/* Take the scalar as the key of the map in `f`. */
static void node_take_key(struct node_builder *b, struct node_frame *f, const struct node *scalar)
{
	f->key = scalar->text;
	f->key_line = scalar->line;
	f->key_column = scalar->column;
	if (strcmp(f->key, "<<") == 0 && !scalar->quoted)
		node_error(scalar, b->diags, "merge keys are not supported (write the keys out)");
	for (const struct node *n = f->node->children; n; n = n->next)
		if (strcmp(n->key, f->key) == 0) {
			node_error(scalar, b->diags,
				   "duplicate key \"%s\" (first given at line %d)", f->key,
				   n->key_line);
			break;
		}
	if (f->node->count == NODE_KEYS_MAX) {
		node_error(scalar, b->diags, "too many keys in one map (at most %d)",
			   NODE_KEYS_MAX);
		b->failed = true;
	}
}

/* Hang a finished or opened node under what is open. */
static void node_attach(struct node_builder *b, struct node *n)
{
	if (b->depth == 0) {
		b->root = n;
		return;
	}
	struct node_frame *f = &b->stack[b->depth - 1];
	if (f->node->kind == NODE_MAP) {
		if (!f->key) {
			if (n->kind == NODE_SCALAR) {
				node_take_key(b, f, n);
				return;
			}
			node_error(n, b->diags, "a key must be a plain text");
			b->failed = true;
			return;
		}
		n->key = f->key;
		n->key_line = f->key_line;
		n->key_column = f->key_column;
		f->key = NULL;
	}
	*f->tail = n;
	f->tail = &n->next;
	f->node->count++;
}

static void node_open(struct node_builder *b, enum node_kind kind, yaml_mark_t mark)
{
	struct node *n = node_new(b, kind, mark);
	node_attach(b, n);
	if (b->failed)
		return;
	if (b->depth == NODE_DEPTH_MAX) {
		node_error(n, b->diags, "nested too deeply (at most %d levels)", NODE_DEPTH_MAX);
		b->failed = true;
		return;
	}
	b->stack[b->depth++] = (struct node_frame){.node = n, .tail = &n->children};
}

static void node_scalar(struct node_builder *b, const yaml_event_t *e)
{
	struct node *n = node_new(b, NODE_SCALAR, e->start_mark);
	const char *value = (const char *)e->data.scalar.value;
	size_t length = e->data.scalar.length;
	if (memchr(value, '\0', length))
		node_error(n, b->diags, "a text cannot hold a NUL");
	n->text = arena_strndup(b->arena, value, length);
	n->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	node_attach(b, n);
}

/* Anchors and tags may stand on scalars, lists and maps alike. */
static void node_refuse_properties(struct node_builder *b, const yaml_event_t *e)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;
	if (e->type == YAML_SCALAR_EVENT) {
		anchor = e->data.scalar.anchor;
		tag = e->data.scalar.tag;
	} else if (e->type == YAML_SEQUENCE_START_EVENT) {
		anchor = e->data.sequence_start.anchor;
		tag = e->data.sequence_start.tag;
	} else if (e->type == YAML_MAPPING_START_EVENT) {
		anchor = e->data.mapping_start.anchor;
		tag = e->data.mapping_start.tag;
	}
	if (anchor)
		node_must_quote(b, e->start_mark, "an anchor");
	else if (tag)
		node_must_quote(b, e->start_mark, "a tag");
}

static void node_event(struct node_builder *b, const yaml_event_t *e)
{
	node_refuse_properties(b, e);
	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (++b->documents > 1) {
			diag_error(b->diags, b->file, node_line(e->start_mark),
				   node_column(e->start_mark),
				   "a second document begins here (one a file)");
			b->failed = true;
		}
		break;
	case YAML_ALIAS_EVENT: {
		node_must_quote(b, e->start_mark, "an alias");
		/* Something stands there, so that the rest can be read. */
		struct node *n = node_new(b, NODE_SCALAR, e->start_mark);
		n->quoted = true;
		n->text = arena_printf(b->arena, "*%s", (const char *)e->data.alias.anchor);
		node_attach(b, n);
		break;
	}
	case YAML_SCALAR_EVENT:
		node_scalar(b, e);
		break;
	case YAML_SEQUENCE_START_EVENT:
		node_open(b, NODE_LIST, e->start_mark);
		break;
	case YAML_MAPPING_START_EVENT:
		node_open(b, NODE_MAP, e->start_mark);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		if (b->depth > 0)
			b->depth--;
		break;
	default:
		break;
	}
}

int node_parse(const char *file, const char *text, size_t size, struct arena *a, struct diags *d,
	       struct node **out)
{
	size_t errors_before = d->errors;
	*out = NULL;
	if (size > NODE_DOCUMENT_MAX) {
		diag_error(d, file, 0, 0, "too large (at most %zu MiB)", NODE_DOCUMENT_MAX >> 20);
		return -EINVAL;
	}
	yaml_parser_t parser;
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);

	struct node_builder b = {
		.file = arena_strdup(a, file), .text = text, .size = size, .arena = a, .diags = d};
	bool whole = false;
	while (!whole && !b.failed) {
		yaml_event_t event;
		if (!yaml_parser_parse(&parser, &event)) {
			node_syntax_error(&b, &parser);
			break;
		}
		node_event(&b, &event);
		whole = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	if (!whole)
		return -EINVAL;
	if (!b.root || node_is_null(b.root))
		b.root = node_new(&b, NODE_MAP, (yaml_mark_t){0});
	*out = b.root;
	return d->errors > errors_before ? -EINVAL : 0;
}

/* ---- looking ---- */

const struct node *node_get(const struct node *map, const char *key)
{
	if (!map || map->kind != NODE_MAP)
		return NULL;
	for (const struct node *n = map->children; n; n = n->next)
		if (strcmp(n->key, key) == 0)
			return n;
	return NULL;
}

bool node_is_null(const struct node *n)
{
	return !n || (n->kind == NODE_SCALAR && !n->quoted && n->text[0] == '\0');
}

static void node_tell(const struct node *n, struct diags *d, enum diag_level level,
		      const char *format, va_list arguments)
{
	char *text;
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	const char *said = text ? text : format;
	if (level == DIAG_ERROR)
		diag_error(d, n->file, n->line, n->column, "%s", said);
	else
		diag_warning(d, n->file, n->line, n->column, "%s", said);
	free(text);
}

void node_error(const struct node *n, struct diags *d, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	node_tell(n, d, DIAG_ERROR, format, arguments);
	va_end(arguments);
}

void node_warning(const struct node *n, struct diags *d, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	node_tell(n, d, DIAG_WARNING, format, arguments);
	va_end(arguments);
}
