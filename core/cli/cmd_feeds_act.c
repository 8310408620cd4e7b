/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baleen feeds refresh`, `promote`, `rollback`, `release`: asked of the running daemon over the
 * control socket. Runs in the user's process.
 */
#include "core/cli/cmd_feeds.h"

#include "core/config.h"
#include "core/process/control.h"

#include <cjson/cJSON.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *act_request(const char *action, const char *name)
{
	cJSON *root = cJSON_CreateObject();
	cJSON_AddStringToObject(root, "command", "feeds");
	cJSON_AddStringToObject(root, "action", action);
	if (name)
		cJSON_AddStringToObject(root, "name", name);
	char *text = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	return text;
}

/* {"ok":true,"message":...} or {"ok":false,"error":...} */
static int act_report(const char *reply, bool json)
{
	cJSON *root = cJSON_Parse(reply);
	const cJSON *message = cJSON_GetObjectItemCaseSensitive(root, "message");
	const cJSON *error = cJSON_GetObjectItemCaseSensitive(root, "error");
	bool ok = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "ok"));
	if (json)
		puts(reply);
	else if (ok)
		puts(cJSON_IsString(message) ? message->valuestring : "done");
	else
		fprintf(stderr, "baleen feeds: %s\n",
			cJSON_IsString(error) ? error->valuestring : "not understood");
	cJSON_Delete(root);
	return ok ? 0 : 1;
}

static int act_ask(const char *config, const char *action, const char *name, bool json)
{
	char *control = NULL, *state = NULL, *reply = NULL;
	int code = 1;
	int result = config_find_paths(config, &control, &state);
	if (result < 0) {
		fprintf(stderr, "%s: %s\n", config, strerror(-result));
	} else {
		char *request = act_request(action, name);
		result = control_request(control, request, &reply);
		free(request);
		if (result < 0) {
			fprintf(stderr, "baleen: the daemon cannot be reached at %s: %s\n", control,
				strerror(-result));
			code = 3;
		} else {
			code = act_report(reply, json);
		}
	}
	free(reply);
	free(control);
	free(state);
	return code;
}

int cmd_feeds_act(int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'}, {0}};
	const char *config = CONFIG_DEFAULT_PATH;
	bool json = false;
	int option;
	optind = 1;
	while ((option = getopt_long(argc, argv, "c:", options, NULL)) != -1) {
		if (option == 'c')
			config = optarg;
		else if (option == 'j')
			json = true;
		else
			return 2;
	}
	bool all = strcmp(argv[0], "refresh") == 0 && optind == argc;
	if (!all && optind + 1 != argc) {
		fprintf(stderr, "usage: baleen feeds %s %s [-c FILE] [--json]\n", argv[0],
			strcmp(argv[0], "refresh") == 0 ? "[NAME]" : "NAME");
		return 2;
	}
	return act_ask(config, argv[0], all ? NULL : argv[optind], json);
}
