/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baleen plugin list`: what a configuration loads, with every option, its default and its help,
 * and every metric, from the rows that the plugins themselves carry. Runs in the user's process;
 * the plugins are loaded and configured as in the daemon, not started.
 */
#include "core/chain/chain.h"
#include "core/chain/options.h"
#include "core/cli/cli.h"
#include "core/cli/cmd.h"
#include "core/generation.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {"filter", "guard", "sink"};

static const char *default_of(const struct baleen_option *o)
{
	if (!o->initial)
		return "-";
	return strcmp(o->initial, "!") == 0 ? "(must be given)" : o->initial;
}

/* "integer, 1 to 100", "drop|refuse": what may stand there. */
static const char *range_of(const struct baleen_option *o, char *out, size_t size)
{
	size_t n = 0;

	if (o->type == BALEEN_CHOICE) {
		out[0] = '\0';
		for (const char *const *w = o->words; *w && n < size; w++)
			n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "|" : "", *w);
		return out;
	}
	bool number = o->type == BALEEN_INTEGER || o->type == BALEEN_NUMBER;
	if (number && (o->min != 0 || o->max != 0))
		snprintf(out, size, "%s, %.15g to %.15g", options_type_word(o->type), o->min,
			 o->max);
	else
		snprintf(out, size, "%s", options_type_word(o->type));
	return out;
}

static void print_plugin(const struct chain *c, size_t i)
{
	const struct baleen_plugin *p = chain_plugin(c, i);
	char range[256];

	printf("%zu  %s%s%s%s  %s, version %s%s\n", i + 1, chain_instance(c, i),
	       strcmp(chain_instance(c, i), p->name) ? " (" : "",
	       strcmp(chain_instance(c, i), p->name) ? p->name : "",
	       strcmp(chain_instance(c, i), p->name) ? ")" : "", kinds[p->kind], p->version,
	       chain_is_monitor(c, i) ? ", monitor" : "");
	printf("   %s\n   %s, interface %u.%u; hooks:%s%s%s%s\n", p->summary, chain_path(c, i),
	       p->major, p->minor, p->on_client ? " on_client" : "", p->on_query ? " on_query" : "",
	       p->on_answer ? " on_answer" : "", p->on_events ? " on_events" : "");
	for (const struct baleen_option *o = p->options; o && o->type != BALEEN_END; o++)
		printf("   %-20s %-24s default %s\n   %-20s %s\n", o->name,
		       range_of(o, range, sizeof(range)), default_of(o), "",
		       o->help ? o->help : "");
	for (const struct baleen_metric *m = p->metrics; m && m->name; m++)
		printf("   metric %-13s %s\n", m->name, m->help ? m->help : "");
}

static void add_text(cJSON *object, const char *key, const char *text)
{
	cJSON_AddStringToObject(object, key, text ? text : "");
}

static cJSON *plugin_json(const struct chain *c, size_t i)
{
	const struct baleen_plugin *p = chain_plugin(c, i);
	cJSON *root = cJSON_CreateObject();
	char range[256];

	add_text(root, "instance", chain_instance(c, i));
	add_text(root, "plugin", p->name);
	add_text(root, "version", p->version);
	add_text(root, "summary", p->summary);
	add_text(root, "kind", kinds[p->kind]);
	add_text(root, "file", chain_path(c, i));
	add_text(root, "mode", chain_is_monitor(c, i) ? "monitor" : "enforce");
	cJSON_AddNumberToObject(root, "major", p->major);
	cJSON_AddNumberToObject(root, "minor", p->minor);
	cJSON *hooks = cJSON_AddArrayToObject(root, "hooks");
	const bool has[] = {p->on_client, p->on_query, p->on_answer, p->on_events};
	static const char *const names[] = {"on_client", "on_query", "on_answer", "on_events"};
	for (size_t h = 0; h < sizeof(has) / sizeof(has[0]); h++)
		if (has[h])
			cJSON_AddItemToArray(hooks, cJSON_CreateString(names[h]));
	cJSON *options = cJSON_AddArrayToObject(root, "options");
	for (const struct baleen_option *o = p->options; o && o->type != BALEEN_END; o++) {
		cJSON *option = cJSON_CreateObject();
		cJSON_AddItemToArray(options, option);
		add_text(option, "name", o->name);
		add_text(option, "type", range_of(o, range, sizeof(range)));
		add_text(option, "default", default_of(o));
		add_text(option, "help", o->help);
	}
	cJSON *metrics = cJSON_AddArrayToObject(root, "metrics");
	for (const struct baleen_metric *m = p->metrics; m && m->name; m++) {
		cJSON *metric = cJSON_CreateObject();
		cJSON_AddItemToArray(metrics, metric);
		add_text(metric, "name", m->name);
		add_text(metric, "type", m->type == BALEEN_GAUGE ? "gauge" : "counter");
		add_text(metric, "help", m->help);
	}
	return root;
}

static void print_json(const struct chain *c)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *plugins = cJSON_AddArrayToObject(root, "plugins");

	for (size_t i = 0; i < chain_count(c); i++)
		cJSON_AddItemToArray(plugins, plugin_json(c, i));
	cli_print_json(root);
	cJSON_Delete(root);
}

static void print_all(const struct chain *c)
{
	for (size_t i = 0; i < chain_count(c); i++) {
		if (i)
			putchar('\n');
		print_plugin(c, i);
	}
}

int cmd_plugin(int argc, char **argv)
{
	static const char usage[] = "plugin list [-c FILE] [--json]";
	struct generation *g;
	struct cli_options o;
	int code = cli_options(argc, argv, usage, NULL, 1, 1, &o);
	if (code >= 0)
		return code;
	if (strcmp(argv[optind], "list") != 0)
		return cli_usage(usage);
	code = cli_load(o.config, &g);
	if (code == CLI_FINE && o.json)
		print_json(g->chain);
	else if (code == CLI_FINE)
		print_all(g->chain);
	generation_free(g);
	return code;
}
