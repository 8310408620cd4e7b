/* SPDX-License-Identifier: Apache-2.0 */
/* `baleen status`: is all well, and if not, what. One screen for whoever holds the telephone. Runs
 * in the user's process. */
#include "core/cli/cli.h"
#include "core/cli/cmd.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void status_head(const cJSON *o)
{
	char up[CLI_TEXT_MAX];
	const cJSON *item;

	printf("baleen ");
	cli_print_clean(cli_text(o, "version"));
	printf(", up %s, generation %.0f, domain set %.0f\n",
	       cli_duration(cli_number(o, "uptime_s"), up), cli_number(o, "generation"),
	       cli_number(o, "set"));
	printf("listening on");
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(o, "listen"))
	{
		putchar(' ');
		cli_print_clean(cJSON_IsString(item) ? item->valuestring : "");
	}
	printf("\nconfiguration ");
	cli_print_clean(cli_text(o, "configuration"));
	printf(", state ");
	cli_print_clean(cli_text(o, "state_folder"));
	printf("\n\n");
}

static void status_degraded(const cJSON *o)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, "degraded"), *item;
	if (cJSON_GetArraySize(list) == 0) {
		puts("all is well");
		return;
	}
	puts("DEGRADED");
	cJSON_ArrayForEach(item, list)
	{
		printf("  - ");
		cli_print_clean(cJSON_IsString(item) ? item->valuestring : "");
		putchar('\n');
	}
}

static void status_processes(const cJSON *o)
{
	const cJSON *p;
	char name[CLI_TEXT_MAX], up[CLI_TEXT_MAX];

	printf("\n%-12s %8s %10s %-9s %8s  %s\n", "PROCESS", "PID", "GENERATION", "STATE",
	       "RESTARTS", "UP");
	cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(o, "processes"))
	{
		if (cJSON_GetObjectItemCaseSensitive(p, "worker"))
			snprintf(name, sizeof(name), "worker %.0f", cli_number(p, "worker"));
		else
			snprintf(name, sizeof(name), "%.20s", cli_text(p, "role"));
		printf("%-12s %8.0f %10.0f %-9.9s %8.0f  %s\n", name, cli_number(p, "pid"),
		       cli_number(p, "generation"), cli_text(p, "state"), cli_number(p, "restarts"),
		       cli_duration(cli_number(p, "uptime_s"), up));
	}
}

static void status_plugins(const cJSON *o)
{
	const cJSON *p;
	printf("\n%-20s %-8s %-8s %7s  %s\n", "PLUGIN", "KIND", "MODE", "CRASHES", "STATE");
	cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(o, "plugins"))
		printf("%-20.40s %-8.8s %-8.8s %7.0f  %.20s\n", cli_text(p, "name"),
		       cli_text(p, "kind"), cli_text(p, "mode"), cli_number(p, "crashes"),
		       cli_text(p, "state"));
}

static void status_feeds(const cJSON *o)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, "feeds"), *f;
	char entries[CLI_TEXT_MAX], rejected[CLI_TEXT_MAX], age[CLI_TEXT_MAX];
	double now = (double)time(NULL);

	if (cJSON_GetArraySize(list) == 0) {
		puts("\nno feeds are subscribed");
		return;
	}
	printf("\n%-24s %-12s %12s %10s  %s\n", "FEED", "STATUS", "ENTRIES", "REJECTED", "CHECKED");
	cJSON_ArrayForEach(f, list)
	{
		double checked = cli_number(f, "checked");
		if (checked > 0)
			cli_duration(now - checked, age);
		else
			strcpy(age, "never");
		printf("%-24.63s %-12.12s %12s %10s  %s\n", cli_text(f, "name"),
		       cli_text(f, "status"), cli_count(cli_number(f, "entries"), entries),
		       cli_count(cli_number(f, "rejected"), rejected), age);
	}
}

int cmd_status(int argc, char **argv)
{
	struct cli_options o;
	cJSON *reply;
	int code = cli_options(argc, argv, "status [-c FILE] [--json]", NULL, 0, 0, &o);
	if (code >= 0)
		return code;
	code = cli_ask(o.config, cli_request("status"), &reply);
	if (code == CLI_FINE && o.json) {
		cli_print_json(reply);
	} else if (code == CLI_FINE) {
		status_head(reply);
		status_degraded(reply);
		status_processes(reply);
		status_plugins(reply);
		status_feeds(reply);
	}
	cJSON_Delete(reply);
	return code;
}
