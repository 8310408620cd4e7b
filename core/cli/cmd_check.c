/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baleen check`: everything that a start would refuse, and what it would accept but should not be
 * there, without a daemon: configuration, policies, plugins and their options, the policies' own
 * tests. Runs in the user's process; the checks themselves are those of the daemon's compile child.
 */
#include "base/diag.h"
#include "base/log.h"
#include "base/source.h"
#include "core/cli/check_schema.h"
#include "core/cli/cli.h"
#include "core/cli/cmd.h"
#include "core/generation.h"
#include "core/policy_tests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "check [-c FILE] [--sets SET.mdb] [--json] [--schema]";

/* A daemon starts without a list that is not there, for it may come; its author wants to know. */
static void warn_of_missing_lists(const struct feeds *feeds, const char *config, struct diags *d)
{
	for (size_t i = 0; i < feeds->count; i++) {
		const struct feed *f = &feeds->items[i];
		if (f->file && access(f->file, R_OK) != 0)
			diag_warning(d, config, f->line, f->column, "feed \"%s\": %s: %s", f->name,
				     f->file, strerror(errno));
	}
}

static int check(const char *config, const char *sets, struct diags *d,
		 struct policy_tests_count *tests)
{
	struct generation *g = NULL;
	struct source *source = source_disk();
	if (!source)
		return -ENOMEM;
	int r = generation_load(source, config, NULL, 0, d, &g);
	if (r < 0)
		return r;
	warn_of_missing_lists(&g->config.feeds, config, d);
	policy_lint(g->policy, d);
	r = policy_tests_run(g, sets, d, tests);
	generation_free(g);
	return r;
}

static void add_findings(cJSON *to, const struct diags *d, enum diag_level level)
{
	for (size_t i = 0; i < d->count; i++) {
		const struct diag *item = &d->items[i];
		if (item->level != level)
			continue;
		cJSON *o = cJSON_CreateObject();
		cJSON_AddItemToArray(to, o);
		if (item->file)
			cJSON_AddStringToObject(o, "file", item->file);
		else
			cJSON_AddNullToObject(o, "file");
		cJSON_AddNumberToObject(o, "line", item->line);
		cJSON_AddNumberToObject(o, "column", item->column);
		cJSON_AddStringToObject(o, "message", item->text);
	}
}

static void print_json(bool ok, const struct diags *d, const struct policy_tests_count *tests)
{
	cJSON *o = cJSON_CreateObject();
	cJSON_AddBoolToObject(o, "ok", ok);
	add_findings(cJSON_AddArrayToObject(o, "errors"), d, DIAG_ERROR);
	add_findings(cJSON_AddArrayToObject(o, "warnings"), d, DIAG_WARNING);
	cJSON *t = cJSON_AddObjectToObject(o, "tests");
	cJSON_AddNumberToObject(t, "passed", (double)tests->passed);
	cJSON_AddNumberToObject(t, "failed", (double)tests->failed);
	cli_print_json(o);
	cJSON_Delete(o);
}

static void print_text(bool ok, const char *config, const struct diags *d,
		       const struct policy_tests_count *tests)
{
	diag_print(d, stderr);
	printf("%s: %s: %zu error%s, %zu warning%s, %zu of %zu policy tests passed\n", config,
	       ok ? "fine" : "not fine", d->errors, d->errors == 1 ? "" : "s", d->warnings,
	       d->warnings == 1 ? "" : "s", tests->passed, tests->passed + tests->failed);
}

/* The plugins of the configuration give their options; one that does not load gives none. */
static int print_schema(const char *config)
{
	struct generation *g = NULL;
	struct source *source = source_disk();
	struct diags ignored;

	diag_init(&ignored);
	if (!source || generation_load(source, config, NULL, 0, &ignored, &g) < 0)
		g = NULL;
	cJSON *schema = check_schema(g);
	cli_print_json(schema);
	cJSON_Delete(schema);
	generation_free(g);
	diag_fini(&ignored);
	return CLI_FINE;
}

int cmd_check(int argc, char **argv)
{
	struct cli_options o;
	const char *sets = NULL;
	bool schema = false;
	const struct cli_option own[] = {
		{"sets", NULL, &sets},
		{"schema", &schema, NULL},
		{0},
	};
	struct policy_tests_count tests = {0};
	struct diags d;
	int code = cli_options(argc, argv, usage, own, 0, 0, &o);
	if (code >= 0)
		return code;

	log_set_level(LOG_WARN_);
	if (schema)
		return print_schema(o.config);
	diag_init(&d);
	int r = check(o.config, sets, &d, &tests);
	if (r < 0 && d.errors == 0)
		diag_error(&d, o.config, 0, 0, "%s", strerror(-r));
	diag_sort(&d);
	bool ok = r == 0 && d.errors == 0;
	if (o.json)
		print_json(ok, &d, &tests);
	else
		print_text(ok, o.config, &d, &tests);
	diag_fini(&d);
	return ok ? CLI_FINE : CLI_FAILED;
}
