/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baleen explain`: the decision for one query, step by step. With -c by the code of the daemon in
 * this process, on the newest compiled set; without, by the running daemon. Runs in the user's
 * process. Invariant: both ways send the same request through core/explain_request.c.
 */
#include "core/cli/cli.h"
#include "core/cli/cmd.h"
#include "core/explain.h"
#include "core/rehearsal_set.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct explain_options {
	const char *config;
	const char *control;
	bool json;
	cJSON *request;
};

static int usage(FILE *out)
{
	fputs("usage: baleen explain NAME [TYPE] [--client ADDR] [--listener NAME] [--tcp]\n"
	      "                      [--at TIME] [--answer 'RECORD']... [--json]\n"
	      "                      [-c FILE | --control SOCKET]\n"
	      "\n"
	      "With -c offline, from the configuration; without, the running daemon is asked.\n"
	      "  baleen explain ads.example AAAA --client 10.20.1.1 -c baleen.yaml\n"
	      "  baleen explain shop.example --answer 'shop.example CNAME t.example' -c baleen.yaml\n"
	      "  baleen explain games.example --at 2026-03-02T10:00:00+01:00 -c baleen.yaml\n",
	      out);
	return out == stdout ? 0 : 2;
}

/* -1: go on; else an exit code. */
static int read_options(int argc, char **argv, struct explain_options *o)
{
	static const struct option options[] = {
		{"client", required_argument, NULL, 'a'},
		{"listener", required_argument, NULL, 'l'},
		{"tcp", no_argument, NULL, 't'},
		{"at", required_argument, NULL, 'w'},
		{"answer", required_argument, NULL, 'r'},
		{"json", no_argument, NULL, 'j'},
		{"control", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	cJSON *answers = cJSON_AddArrayToObject(o->request, "answers");
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "c:", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			o->config = optarg;
			break;
		case 's':
			o->control = optarg;
			break;
		case 'j':
			o->json = true;
			break;
		case 'a':
			cJSON_AddStringToObject(o->request, "client", optarg);
			break;
		case 'l':
			cJSON_AddStringToObject(o->request, "listener", optarg);
			break;
		case 't':
			cJSON_AddStringToObject(o->request, "transport", "tcp");
			break;
		case 'w':
			cJSON_AddStringToObject(o->request, "at", optarg);
			break;
		case 'r':
			cJSON_AddItemToArray(answers, cJSON_CreateString(optarg));
			break;
		case 'h':
			return usage(stdout);
		default:
			return usage(stderr);
		}
	}
	if (argc - optind < 1 || argc - optind > 2 || (o->config && o->control))
		return usage(stderr);
	cJSON_AddStringToObject(o->request, "command", "explain");
	cJSON_AddStringToObject(o->request, "name", argv[optind]);
	if (argc - optind == 2)
		cJSON_AddStringToObject(o->request, "type", argv[optind + 1]);
	return -1;
}

/* ---- offline ---- */

static int offline(const struct explain_options *o, cJSON **reply)
{
	struct generation *g = NULL;
	struct domset *set = NULL;
	struct explain *e = NULL;
	char set_error[DOMSET_ERROR_MAX] = "", error[EXPLAIN_ERROR_MAX] = "";
	uint64_t number = 0;
	int r = cli_load(o->config, &g);

	if (r != CLI_FINE)
		return r;
	r = rehearsal_set_open(g, NULL, &set, &number, set_error);
	if (r < 0)
		fprintf(stderr, "baleen: %s\n", set_error);
	if (r == 0) {
		r = explain_new(g, set, number, g->config.state, &e, error);
		if (r < 0)
			fprintf(stderr, "baleen: %s\n", error);
	}
	if (r == 0)
		*reply = explain_reply(e, o->request);
	explain_free(e);
	if (set)
		domset_close(set);
	generation_free(g);
	return r == 0 ? 0 : 1;
}

/* ---- the daemon ---- */

static int ask(struct explain_options *o, cJSON **reply)
{
	cJSON *request = o->request;

	o->request = NULL;
	return o->control ? cli_ask_at(o->control, request, reply)
			  : cli_ask(CONFIG_DEFAULT_PATH, request, reply);
}

/* ---- out ---- */

static int print(const struct explain_options *o, cJSON *reply)
{
	if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "ok"))) {
		const char *error = cli_text(reply, "error");
		fprintf(stderr, "baleen: %s\n", *error ? error : "no answer");
		return CLI_FAILED;
	}
	if (!o->json) {
		fputs(cli_text(reply, "screen"), stdout);
		return 0;
	}
	cJSON_DeleteItemFromObjectCaseSensitive(reply, "screen");
	cJSON_DeleteItemFromObjectCaseSensitive(reply, "ok");
	cli_print_json(reply);
	return CLI_FINE;
}

int cmd_explain(int argc, char **argv)
{
	struct explain_options o = {.request = cJSON_CreateObject()};
	cJSON *reply = NULL;

	int code = read_options(argc, argv, &o);
	if (code < 0)
		code = o.config ? offline(&o, &reply) : ask(&o, &reply);
	if (reply)
		code = print(&o, reply);
	cJSON_Delete(reply);
	cJSON_Delete(o.request);
	return code;
}
