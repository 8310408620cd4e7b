/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands have in common; see the header. Runs in the user's process, never in the
 * daemon; trusts neither the daemon's replies nor their texts. */
#include "core/cli/cli.h"

#include "base/diag.h"
#include "base/log.h"
#include "base/source.h"
#include "core/config.h"
#include "core/generation.h"
#include "core/process/control.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cli_usage(const char *usage)
{
	fprintf(stderr, "usage: baleen %s\n", usage);
	return CLI_USAGE;
}

/* The command's own rows behind the common ones; their numbers begin behind all letters. */
#define CLI_OWN 256

static void cli_rows(const struct cli_option *own, struct option rows[CLI_OPTIONS_MAX + 3])
{
	size_t n = 0;

	rows[n++] = (struct option){"json", no_argument, NULL, 'j'};
	rows[n++] = (struct option){"help", no_argument, NULL, 'h'};
	for (int i = 0; own && own[i].word && i < CLI_OPTIONS_MAX; i++)
		rows[n++] =
			(struct option){own[i].word, own[i].value ? required_argument : no_argument,
					NULL, CLI_OWN + i};
	rows[n] = (struct option){0};
}

int cli_options(int argc, char **argv, const char *usage, const struct cli_option *own, int least,
		int most, struct cli_options *out)
{
	struct option rows[CLI_OPTIONS_MAX + 3];
	int option;

	*out = (struct cli_options){.config = CONFIG_DEFAULT_PATH};
	cli_rows(own, rows);
	optind = 1;
	while ((option = getopt_long(argc, argv, "c:h", rows, NULL)) != -1) {
		if (option == 'c') {
			out->config = optarg;
		} else if (option == 'j') {
			out->json = true;
		} else if (option == 'h') {
			printf("usage: baleen %s\n", usage);
			return CLI_FINE;
		} else if (option >= CLI_OWN) {
			const struct cli_option *o = &own[option - CLI_OWN];
			if (o->given)
				*o->given = true;
			if (o->value)
				*o->value = optarg;
		} else {
			return cli_usage(usage);
		}
	}
	if (argc - optind < least || argc - optind > most)
		return cli_usage(usage);
	return -1;
}

int cli_load(const char *config, struct generation **out)
{
	struct source *source = source_disk();
	struct diags d;

	*out = NULL;
	diag_init(&d);
	log_set_level(LOG_WARN_);
	int r = source ? generation_load(source, config, NULL, 1, &d, out) : -ENOMEM;
	if (r < 0) {
		diag_print(&d, stderr);
		if (!d.errors)
			fprintf(stderr, "baleen: %s: %s\n", config, strerror(-r));
	}
	diag_fini(&d);
	return r < 0 ? CLI_FAILED : CLI_FINE;
}

char *cli_control_path(const char *config)
{
	char *control = NULL, *state = NULL;
	int r = config_find_paths(config, &control, &state);
	free(state);
	if (r == 0 && control)
		return control;
	free(control);
	fprintf(stderr, "baleen: %s: %s\n", config, strerror(r ? -r : EINVAL));
	return NULL;
}

int cli_unreachable(const char *control, int error)
{
	bool absent = error == -ENOENT || error == -ECONNREFUSED || error == -ENOTDIR;
	fprintf(stderr, "baleen: the daemon cannot be reached at %s: %s%s\n", control,
		strerror(-error), absent ? " (is it running?)" : "");
	return CLI_NO_DAEMON;
}

cJSON *cli_request(const char *word)
{
	cJSON *o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "command", word);
	return o;
}

static int cli_take_reply(const char *text, cJSON **reply)
{
	cJSON *o = cJSON_Parse(text);
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "ok"))) {
		*reply = o;
		return CLI_FINE;
	}
	const char *error = cli_text(o, "error");
	size_t length = strlen(error);
	/* The outcome of a reload is made of whole lines, file:line:column first: no prefix. */
	if (length > 0 && error[length - 1] == '\n')
		fputs(error, stderr);
	else
		fprintf(stderr, "baleen: %s\n", length ? error : "the daemon's reply is not JSON");
	cJSON_Delete(o);
	return CLI_FAILED;
}

int cli_ask_at(const char *control, cJSON *request, cJSON **reply)
{
	char *line = cJSON_PrintUnformatted(request), *text = NULL;
	int code = CLI_FAILED;

	*reply = NULL;
	cJSON_Delete(request);
	if (line) {
		int r = control_request(control, line, &text);
		code = r < 0 ? cli_unreachable(control, r) : cli_take_reply(text, reply);
	}
	free(text);
	cJSON_free(line);
	return code;
}

int cli_ask(const char *config, cJSON *request, cJSON **reply)
{
	char *control = cli_control_path(config);

	*reply = NULL;
	if (!control) {
		cJSON_Delete(request);
		return CLI_FAILED;
	}
	int code = cli_ask_at(control, request, reply);
	free(control);
	return code;
}

const char *cli_text(const cJSON *o, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
	return text ? text : "";
}

double cli_number(const cJSON *o, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);
	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

const char *cli_count(double n, char out[CLI_TEXT_MAX])
{
	char digits[CLI_TEXT_MAX];
	int length = snprintf(digits, sizeof(digits), "%.0f", n < 1e18 ? n : 1e18), at = 0;
	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = '\0';
	return out;
}

const char *cli_duration(double seconds, char out[CLI_TEXT_MAX])
{
	long s = seconds < 0 ? 0 : seconds > 1e10 ? 10000000000L : (long)seconds;
	if (s < 60)
		snprintf(out, CLI_TEXT_MAX, "%ld s", s);
	else if (s < 3600)
		snprintf(out, CLI_TEXT_MAX, "%ld min", s / 60);
	else if (s < 86400)
		snprintf(out, CLI_TEXT_MAX, "%ld h %ld min", s / 3600, s % 3600 / 60);
	else
		snprintf(out, CLI_TEXT_MAX, "%ld d %ld h", s / 86400, s % 86400 / 3600);
	return out;
}

const char *cli_octets(double n, char out[CLI_TEXT_MAX])
{
	static const char *const units[] = {"octets", "KiB", "MiB", "GiB", "TiB"};
	size_t unit = 0;
	while (n >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		n /= 1024;
		unit++;
	}
	snprintf(out, CLI_TEXT_MAX, unit ? "%.1f %s" : "%.0f %s", n, units[unit]);
	return out;
}

void cli_print_clean(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f))
			printf("\\%03u", *p);
		else
			putchar(*p);
	}
}

void cli_print_json(const cJSON *o)
{
	char *text = cJSON_Print(o);
	if (text)
		puts(text);
	cJSON_free(text);
}
