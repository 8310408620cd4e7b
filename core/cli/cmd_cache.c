/* SPDX-License-Identifier: Apache-2.0 */
/* `baleen cache stats` and `cache flush [NAME [--subtree]]`. Runs in the user's process. */
#include "core/cli/cli.h"
#include "core/cli/cmd.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char cache_usage[] = "cache stats [-c FILE] [--json]\n"
				  "       baleen cache flush [NAME [--subtree]] [-c FILE] [--json]";

static void cache_print(const cJSON *reply, bool flushed)
{
	char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX], c[CLI_TEXT_MAX];
	if (flushed) {
		printf("%s answers flushed\n", cli_count(cli_number(reply, "flushed"), a));
		return;
	}
	printf("entries  %s of %s slots\n", cli_count(cli_number(reply, "used"), a),
	       cli_count(cli_number(reply, "slots"), b));
	printf("memory   %s of %s\n", cli_octets(cli_number(reply, "used_octets"), a),
	       cli_octets(cli_number(reply, "octets"), c));
}

int cmd_cache(int argc, char **argv)
{
	struct cli_options o;
	bool subtree = false;
	const struct cli_option own[] = {{"subtree", &subtree, NULL}, {0}};
	int code = cli_options(argc, argv, cache_usage, own, 1, 2, &o);
	if (code >= 0)
		return code;
	int operands = argc - optind;
	const char *action = argv[optind];
	bool flush = strcmp(action, "flush") == 0;
	if (!flush && !(strcmp(action, "stats") == 0 && operands == 1))
		return cli_usage(cache_usage);
	if (subtree && operands != 2)
		return cli_usage(cache_usage);

	cJSON *request = cli_request("cache"), *reply;
	cJSON_AddStringToObject(request, "action", action);
	if (operands == 2)
		cJSON_AddStringToObject(request, "name", argv[optind + 1]);
	if (subtree)
		cJSON_AddBoolToObject(request, "subtree", true);
	code = cli_ask(o.config, request, &reply);
	if (code == CLI_FINE && o.json)
		cli_print_json(reply);
	else if (code == CLI_FINE)
		cache_print(reply, flush);
	cJSON_Delete(reply);
	return code;
}
