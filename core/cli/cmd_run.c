/* SPDX-License-Identifier: Apache-2.0 */
/* `baleen run`: this process becomes the supervisor. */
#include "core/cli/cli.h"
#include "core/cli/cmd.h"
#include "core/process/supervisor.h"

int cmd_run(int argc, char **argv)
{
	static const char usage[] = "run [-c FILE]";
	struct cli_options o;
	int code = cli_options(argc, argv, usage, NULL, 0, 0, &o);
	if (code < 0 && o.json)
		return cli_usage(usage);
	return code >= 0 ? code : supervisor_run(o.config);
}
