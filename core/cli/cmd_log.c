/* SPDX-License-Identifier: Apache-2.0 */
/* `baleen log tail`: live events, as lines for people or as JSON. Runs in the user's process. */
#include "core/cli/cli.h"
#include "core/cli/cmd.h"
#include "core/process/control.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char log_usage[] = "log tail [--json] [--client ADDRESS] [--name SUFFIX] "
				"[--verdict VERDICT] [-c FILE]";

struct log_tail {
	bool json;
	bool refused;
};

/* 22:50:01.123 10.20.1.1 staff block bad.example. A NXDOMAIN (blocklist policies/staff.yaml:8 ours)
 */
static void log_print(const cJSON *e)
{
	const char *time = strchr(cli_text(e, "time"), 'T');
	const char *keys[] = {"client", "group", "verdict", "name", "type", "rcode"};
	const char *why[] = {"plugin", "rule", "feed"};
	bool any = false;

	printf("%.12s", time ? time + 1 : "");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		putchar(' ');
		cli_print_clean(cli_text(e, keys[i]));
	}
	for (size_t i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
		if (!*cli_text(e, why[i]))
			continue;
		fputs(any ? " " : " (", stdout);
		cli_print_clean(cli_text(e, why[i]));
		any = true;
	}
	puts(any ? ")" : "");
}

static int log_line(void *context, const char *line)
{
	struct log_tail *t = context;
	cJSON *e = cJSON_Parse(line);

	if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(e, "ok"))) {
		fprintf(stderr, "baleen: %s\n", cli_text(e, "error"));
		t->refused = true;
	} else if (t->json) {
		puts(line);
	} else if (cJSON_GetObjectItemCaseSensitive(e, "missed")) {
		printf("(%.0f events missed: too slow)\n", cli_number(e, "missed"));
	} else if (e) {
		log_print(e);
	}
	cJSON_Delete(e);
	/* Whoever reads us is gone: so are we. */
	return fflush(stdout) == EOF ? -EPIPE : t->refused;
}

static int log_tail(const char *config, cJSON *request, bool json)
{
	struct log_tail t = {.json = json};
	char *control = cli_control_path(config), *line = cJSON_PrintUnformatted(request);
	int code = CLI_FAILED;

	cJSON_Delete(request);
	if (control && line) {
		int r = control_stream(control, line, log_line, &t);
		if (r < 0 && r != -EPIPE)
			code = cli_unreachable(control, r);
		else
			code = t.refused ? CLI_FAILED : CLI_FINE;
	}
	free(control);
	cJSON_free(line);
	return code;
}

int cmd_log(int argc, char **argv)
{
	static const char *const filters[] = {"client", "name", "verdict"};
	const char *values[3] = {NULL};
	const struct cli_option own[] = {{filters[0], NULL, &values[0]},
					 {filters[1], NULL, &values[1]},
					 {filters[2], NULL, &values[2]},
					 {0}};
	struct cli_options o;
	int code = cli_options(argc, argv, log_usage, own, 1, 1, &o);
	if (code >= 0)
		return code;
	if (strcmp(argv[optind], "tail") != 0)
		return cli_usage(log_usage);
	cJSON *request = cli_request("log");
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (values[i])
			cJSON_AddStringToObject(request, filters[i], values[i]);
	return log_tail(o.config, request, o.json);
}
