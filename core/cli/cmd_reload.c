/* SPDX-License-Identifier: Apache-2.0 */
/* `baleen reload`: as SIGHUP, but waits for the outcome. Runs in the user's process. */
#include "core/cli/cli.h"
#include "core/cli/cmd.h"

#include <stdio.h>

int cmd_reload(int argc, char **argv)
{
	struct cli_options o;
	cJSON *reply;
	int code = cli_options(argc, argv, "reload [-c FILE] [--json]", NULL, 0, 0, &o);
	if (code >= 0)
		return code;
	code = cli_ask(o.config, cli_request("reload"), &reply);
	if (code == CLI_FINE && o.json)
		cli_print_json(reply);
	else if (code == CLI_FINE)
		puts("reloaded");
	cJSON_Delete(reply);
	return code;
}
