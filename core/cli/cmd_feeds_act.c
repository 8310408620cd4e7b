/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baleen feeds refresh`, `promote`, `rollback`, `release`: asked of the running daemon over the
 * control socket. Runs in the user's process.
 */
#include "core/cli/cmd_feeds.h"

#include "core/cli/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/* {"ok":true,"message":...} */
static void act_print(const cJSON *reply)
{
	const char *message = cli_text(reply, "message");
	cli_print_clean(*message ? message : "done");
	putchar('\n');
}

int cmd_feeds_act(int argc, char **argv)
{
	const char *action = argv[0];
	bool refresh = strcmp(action, "refresh") == 0;
	char usage[64];
	struct cli_options o;
	cJSON *reply;

	snprintf(usage, sizeof(usage), "feeds %s %s [-c FILE] [--json]", action,
		 refresh ? "[NAME]" : "NAME");
	int code = cli_options(argc, argv, usage, NULL, refresh ? 0 : 1, 1, &o);
	if (code >= 0)
		return code;
	cJSON *request = cli_request("feeds");
	cJSON_AddStringToObject(request, "action", action);
	if (optind < argc)
		cJSON_AddStringToObject(request, "name", argv[optind]);
	code = cli_ask(o.config, request, &reply);
	if (code == CLI_FINE && o.json)
		cli_print_json(reply);
	else if (code == CLI_FINE)
		act_print(reply);
	cJSON_Delete(reply);
	return code;
}
