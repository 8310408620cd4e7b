/* SPDX-License-Identifier: Apache-2.0 */
/* `baleen feeds`: which subcommand is meant. Runs in the user's process; owns nothing. */
#include "core/cli/cmd_feeds.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *word;
	int (*run)(int argc, char **argv);
	const char *usage;
} cmd_feeds_rows[] = {
	{"list", cmd_feeds_list, "list [-c FILE] [--json]"},
	{"show", cmd_feeds_show, "show NAME [-c FILE] [--json]"},
	{"refresh", cmd_feeds_act, "refresh [NAME] [-c FILE]"},
	{"promote", cmd_feeds_act, "promote NAME [-c FILE]"},
	{"rollback", cmd_feeds_act, "rollback NAME [-c FILE]"},
	{"release", cmd_feeds_act, "release NAME [-c FILE]"},
	{"catalogue", cmd_feeds_catalogue, "catalogue [--json]"},
	{"compile", cmd_feeds_compile,
	 "compile -o OUT.mdb [--format F] [--column C] [--path P] [--url-host] [--json] FILE..."},
	{"lookup", cmd_feeds_lookup, "lookup NAME [--set FILE.mdb] [-c FILE] [--json]"},
};

static int cmd_feeds_usage(FILE *out)
{
	for (size_t i = 0; i < sizeof(cmd_feeds_rows) / sizeof(cmd_feeds_rows[0]); i++)
		fprintf(out, "%s baleen feeds %s\n",
			i ? "      " : "usage:", cmd_feeds_rows[i].usage);
	return out == stdout ? 0 : 2;
}

int cmd_feeds(int argc, char **argv)
{
	if (argc < 2)
		return cmd_feeds_usage(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return cmd_feeds_usage(stdout);
	for (size_t i = 0; i < sizeof(cmd_feeds_rows) / sizeof(cmd_feeds_rows[0]); i++)
		if (strcmp(cmd_feeds_rows[i].word, argv[1]) == 0)
			return cmd_feeds_rows[i].run(argc - 1, argv + 1);
	fprintf(stderr, "baleen feeds: unknown command \"%s\"\n", argv[1]);
	return cmd_feeds_usage(stderr);
}
