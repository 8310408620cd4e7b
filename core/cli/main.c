/* SPDX-License-Identifier: Apache-2.0 */
/* The program `baleen`: one table of commands. Also where a template begins, which is exec'd by the
 * supervisor with an argument of its own. */
#include "core/cli/cli.h"
#include "core/cli/cmd.h"
#include "core/process/handover.h"
#include "core/process/template.h"
#include "core/process/title.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *word;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"run", cmd_run, "run in the foreground; SIGHUP reloads, SIGTERM drains and stops"},
	{"check", cmd_check, "check configuration and policies, and run the policies' tests"},
	{"explain", cmd_explain, "say what is decided for a query, and why"},
	{"status", cmd_status, "processes, feeds, plugins, and what is degraded"},
	{"stats", cmd_stats, "counters"},
	{"reload", cmd_reload, "read the configuration anew, and say how it went"},
	{"feeds", cmd_feeds, "list, show, refresh, compile, look up"},
	{"cache", cmd_cache, "stats, flush"},
	{"log", cmd_log, "tail: live events"},
	{"plugin", cmd_plugin, "list: what is there, with options and metrics"},
};

static int main_usage(FILE *out)
{
	fprintf(out, "usage: baleen COMMAND [options]\n\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "  %-8s  %s\n", commands[i].word, commands[i].help);
	fprintf(out, "\nMost take -c FILE (default /etc/baleen/baleen.yaml) and --json.\n"
		     "Exit codes: 0 fine, 1 did not hold, 2 wrong usage, 3 no daemon.\n");
	return out == stdout ? CLI_FINE : CLI_USAGE;
}

int main(int argc, char **argv)
{
	title_init(argc, argv);
	if (argc < 2)
		return main_usage(stderr);
	if (argc >= 3 && strcmp(argv[1], HANDOVER_ARGUMENT) == 0)
		return template_run(argv[2]);
	if (strcmp(argv[1], "--version") == 0) {
		printf("baleen %s\n", BALEEN_VERSION);
		return CLI_FINE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return main_usage(stdout);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].word) == 0)
			return commands[i].run(argc - 1, argv + 1);
	fprintf(stderr, "baleen: there is no command \"%s\"\n", argv[1]);
	return main_usage(stderr);
}
