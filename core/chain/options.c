/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options: one reader per type of row. Defaults are written in the row as a user would write them
 * and go through the same readers, so that a default cannot mean something else than the same text
 * in a configuration. Template and offline commands. Invariant: a value that did not pass its row's
 * range never reaches the plugin; loader.c has checked that every row lies inside the struct.
 */
#include "core/chain/options.h"

#include "base/addr.h"
#include "base/file.h"
#include "base/name.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 256

/* A reader sets what `at` points to and returns true, or tells context->d. */
typedef bool options_reader(const struct options_context *x, const struct baleen_option *o,
			    const struct node *n, void *at);

static bool has_range(const struct baleen_option *o)
{
	return o->min != 0 || o->max != 0;
}

static bool in_range(const struct options_context *x, const struct baleen_option *o,
		     const struct node *n, double value, const char *unit)
{
	if (!has_range(o) || (value >= o->min && value <= o->max))
		return true;
	node_error(n, x->d, "\"%s\" is out of range (expected %.15g to %.15g%s)", n->text, o->min,
		   o->max, unit);
	return false;
}

static bool read_bool(const struct options_context *x, const struct baleen_option *o,
		      const struct node *n, void *at)
{
	(void)o;
	return node_bool(n, x->d, at);
}

static bool read_integer(const struct options_context *x, const struct baleen_option *o,
			 const struct node *n, void *at)
{
	int64_t min = has_range(o) ? (int64_t)o->min : INT64_MIN;
	int64_t max = has_range(o) ? (int64_t)o->max : INT64_MAX;
	return node_integer(n, x->d, min, max, at);
}

static bool read_number(const struct options_context *x, const struct baleen_option *o,
			const struct node *n, void *at)
{
	return node_number(n, x->d, has_range(o) ? o->min : -HUGE_VAL,
			   has_range(o) ? o->max : HUGE_VAL, at);
}

static bool read_duration(const struct options_context *x, const struct baleen_option *o,
			  const struct node *n, void *at)
{
	uint64_t ms;
	if (!node_duration(n, x->d, &ms) || !in_range(x, o, n, (double)ms, " milliseconds"))
		return false;
	*(uint64_t *)at = ms;
	return true;
}

static bool read_size(const struct options_context *x, const struct baleen_option *o,
		      const struct node *n, void *at)
{
	uint64_t octets;
	if (!node_size(n, x->d, &octets) || !in_range(x, o, n, (double)octets, " octets"))
		return false;
	*(uint64_t *)at = octets;
	return true;
}

static bool read_string(const struct options_context *x, const struct baleen_option *o,
			const struct node *n, void *at)
{
	const char *text;
	(void)o;
	if (!node_text(n, x->d, &text))
		return false;
	*(const char **)at = arena_strdup(x->arena, text);
	return true;
}

static bool read_choice(const struct options_context *x, const struct baleen_option *o,
			const struct node *n, void *at)
{
	return node_choice(n, x->d, o->words, at);
}

/* True if a part of the path is "..". */
static bool climbs(const char *path)
{
	for (const char *p = path; p;) {
		if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || p[2] == '\0'))
			return true;
		p = strchr(p, '/');
		if (p)
			p++;
	}
	return false;
}

static bool read_output(const struct options_context *x, const struct baleen_option *o,
			const struct node *n, void *at)
{
	const char *text;
	size_t length = x->state ? strlen(x->state) : 0;

	(void)o;
	if (!node_text(n, x->d, &text))
		return false;
	if (text[0] == '/' && length && strncmp(text, x->state, length) == 0 && text[length] == '/')
		text += length + 1;
	if (!*text || climbs(text)) {
		node_error(n, x->d, "\"%s\" is no path to write (expected one without `..`)", text);
		return false;
	}
	*(const char **)at = arena_strdup(x->arena, text);
	return true;
}

static bool read_file(const struct options_context *x, const struct baleen_option *o,
		      const struct node *n, void *at)
{
	struct source_file file;
	const char *text;

	(void)o;
	if (!node_text(n, x->d, &text))
		return false;
	char *origin = file_relative_to(x->config_file, n->file);
	char *path = origin ? file_relative_to(origin, text) : NULL;
	free(origin);
	if (!path) {
		node_error(n, x->d, "out of memory");
		return false;
	}
	int r = source_read(x->source, path, &file);
	if (r < 0) {
		node_error(n, x->d, "cannot read %s: %s", path, strerror(-r));
		free(path);
		return false;
	}
	*(struct baleen_file *)at = (struct baleen_file){.path = arena_strdup(x->arena, path),
							 .data = file.data,
							 .size = file.size};
	free(path);
	return true;
}

/* A list, or one value alone. `*count` nodes from the returned one on. */
static const struct node *items_of(const struct node *n, size_t *count)
{
	if (n->kind == NODE_LIST) {
		*count = n->count;
		return n->children;
	}
	*count = node_is_null(n) ? 0 : 1;
	return n;
}

static bool read_strings(const struct options_context *x, const struct baleen_option *o,
			 const struct node *n, void *at)
{
	size_t count;
	const struct node *item = items_of(n, &count);
	const char **items = arena_alloc(x->arena, (count + 1) * sizeof(*items));
	bool ok = true;

	for (size_t i = 0; i < count; i++, item = item->next)
		ok &= read_string(x, o, item, &items[i]);
	if (ok)
		*(struct baleen_strings *)at = (struct baleen_strings){count, items};
	return ok;
}

static bool read_prefixes(const struct options_context *x, const struct baleen_option *o,
			  const struct node *n, void *at)
{
	size_t count;
	const struct node *item = items_of(n, &count);
	struct baleen_prefix *items = arena_alloc(x->arena, (count + 1) * sizeof(*items));
	bool ok = true;

	(void)o;
	for (size_t i = 0; i < count; i++, item = item->next) {
		struct prefix prefix;
		if (!node_prefix(item, x->d, &prefix)) {
			ok = false;
			continue;
		}
		memcpy(items[i].octets, prefix.addr.octets, sizeof(items[i].octets));
		items[i].bits = prefix.bits;
	}
	if (ok)
		*(struct baleen_prefixes *)at = (struct baleen_prefixes){count, items};
	return ok;
}

static bool read_names(const struct options_context *x, const struct baleen_option *o,
		       const struct node *n, void *at)
{
	size_t count;
	const struct node *item = items_of(n, &count);
	const uint8_t **items = arena_alloc(x->arena, (count + 1) * sizeof(*items));
	bool ok = true;

	(void)o;
	for (size_t i = 0; i < count; i++, item = item->next) {
		struct name name;
		const char *text;
		if (!node_text(item, x->d, &text)) {
			ok = false;
		} else if (name_from_unicode(text, strlen(text), &name) < 0) {
			node_error(item, x->d, "\"%s\" is no domain name", text);
			ok = false;
		} else {
			items[i] = arena_memdup(x->arena, name.wire, name.length);
		}
	}
	if (ok)
		*(struct baleen_names *)at = (struct baleen_names){count, items};
	return ok;
}

/* Words and readers of the types; the word of a list names its items. */
static const struct options_row {
	const char *word;
	options_reader *read;
	const char *schema; /* JSON type */
	bool list;
} rows[] = {
	[BALEEN_BOOL] = {"bool", read_bool, "boolean", false},
	[BALEEN_INTEGER] = {"integer", read_integer, "integer", false},
	[BALEEN_NUMBER] = {"number", read_number, "number", false},
	[BALEEN_DURATION] = {"duration", read_duration, "string", false},
	[BALEEN_SIZE] = {"size", read_size, "string", false},
	[BALEEN_STRING] = {"text", read_string, "string", false},
	[BALEEN_CHOICE] = {"choice", read_choice, "string", false},
	[BALEEN_OUTPUT] = {"output path", read_output, "string", false},
	[BALEEN_FILE] = {"input file", read_file, "string", false},
	[BALEEN_STRINGS] = {"list of texts", read_strings, "string", true},
	[BALEEN_PREFIXES] = {"list of prefixes", read_prefixes, "string", true},
	[BALEEN_NAMES] = {"list of names", read_names, "string", true},
};

const char *options_type_word(enum baleen_type type)
{
	return (size_t)type < sizeof(rows) / sizeof(rows[0]) && rows[type].word ? rows[type].word
										: "?";
}

static bool read_value(const struct options_context *x, const struct baleen_option *o,
		       const struct node *n, void *config)
{
	if (!rows[o->type].list && n->kind != NODE_SCALAR) {
		node_error(n, x->d, "%s: %s is one value (expected a %s)", x->instance, o->name,
			   rows[o->type].word);
		return false;
	}
	if (rows[o->type].list && n->kind == NODE_MAP) {
		node_error(n, x->d, "%s: %s is a list (expected a %s)", x->instance, o->name,
			   rows[o->type].word);
		return false;
	}
	return rows[o->type].read(x, o, n, (char *)config + o->offset);
}

static bool read_default(const struct options_context *x, const struct baleen_plugin *p,
			 const struct baleen_option *o, void *config)
{
	struct node *n;

	if (!o->initial)
		return true;
	char *where = arena_printf(x->arena, "default of %s in plugin %s", o->name, p->name);
	if (node_parse(where, o->initial, strlen(o->initial), x->arena, x->d, &n) < 0)
		return false;
	return read_value(x, o, n, config);
}

/* The names of all rows and of the common keys: what may stand in the map. */
static void known_keys(const struct baleen_plugin *p, const char *const *common,
		       const char *out[2 * OPTIONS_MAX])
{
	size_t n = 0;

	for (const struct baleen_option *o = p->options; o && o->type != BALEEN_END; o++)
		if (n < OPTIONS_MAX)
			out[n++] = o->name;
	for (const char *const *c = common; *c && n < 2 * OPTIONS_MAX - 1; c++)
		out[n++] = *c;
	out[n] = NULL;
}

static bool check_keys(const struct options_context *x, const struct baleen_plugin *p,
		       const struct node *given, const char *const *common)
{
	const char *known[2 * OPTIONS_MAX];

	if (!given || node_is_null(given))
		return true;
	known_keys(p, common, known);
	return node_check_keys(given, known, x->d);
}

static const struct node *value_of(const struct node *given, const struct baleen_option *o)
{
	return given && given->kind == NODE_MAP ? node_get(given, o->name) : NULL;
}

int options_fill(const struct options_context *context, const struct baleen_plugin *plugin,
		 const struct node *given, const char *const *common, void *config)
{
	bool ok = check_keys(context, plugin, given, common);

	memset(config, 0, plugin->config_size);
	for (const struct baleen_option *o = plugin->options; o && o->type != BALEEN_END; o++) {
		const struct node *n = value_of(given, o);
		bool required = o->initial && strcmp(o->initial, "!") == 0;
		if (n) {
			ok &= read_value(context, o, n, config);
		} else if (required) {
			diag_error(context->d, context->config_file, context->line, context->column,
				   "%s: %s must be given (%s: %s)", context->instance, o->name,
				   rows[o->type].word, o->help ? o->help : "");
			ok = false;
		} else {
			ok &= read_default(context, plugin, o, config);
		}
	}
	return ok ? 0 : -EINVAL;
}

int options_override(const struct options_context *context, const struct baleen_plugin *plugin,
		     const void *base, const struct node *given, const char *const *common,
		     void *config)
{
	bool ok = check_keys(context, plugin, given, common);

	memcpy(config, base, plugin->config_size);
	for (const struct baleen_option *o = plugin->options; o && o->type != BALEEN_END; o++) {
		const struct node *n = value_of(given, o);
		if (n)
			ok &= read_value(context, o, n, config);
	}
	return ok ? 0 : -EINVAL;
}

void options_outputs(const struct baleen_plugin *plugin, const void *config, options_output *each,
		     void *context)
{
	for (const struct baleen_option *o = plugin->options; o && o->type != BALEEN_END; o++) {
		if (o->type != BALEEN_OUTPUT)
			continue;
		const char *path = *(const char *const *)((const char *)config + o->offset);
		if (path && strcmp(path, "-") != 0)
			each(context, path);
	}
}

static cJSON *schema_of(const struct baleen_option *o)
{
	cJSON *s = cJSON_CreateObject();
	cJSON *item = s;

	if (o->help)
		cJSON_AddStringToObject(s, "description", o->help);
	if (rows[o->type].list) {
		cJSON_AddStringToObject(s, "type", "array");
		item = cJSON_AddObjectToObject(s, "items");
	}
	cJSON_AddStringToObject(item, "type", rows[o->type].schema);
	if (o->type == BALEEN_CHOICE) {
		cJSON *words = cJSON_AddArrayToObject(item, "enum");
		for (const char *const *w = o->words; *w; w++)
			cJSON_AddItemToArray(words, cJSON_CreateString(*w));
	}
	if (has_range(o) && (o->type == BALEEN_INTEGER || o->type == BALEEN_NUMBER)) {
		cJSON_AddNumberToObject(item, "minimum", o->min);
		cJSON_AddNumberToObject(item, "maximum", o->max);
	}
	if (o->initial && strcmp(o->initial, "!") != 0)
		cJSON_AddStringToObject(s, "default", o->initial);
	return s;
}

cJSON *options_schema(const struct baleen_plugin *plugin)
{
	cJSON *properties = cJSON_CreateObject();

	for (const struct baleen_option *o = plugin->options; o && o->type != BALEEN_END; o++)
		cJSON_AddItemToObject(properties, o->name, schema_of(o));
	return properties;
}
