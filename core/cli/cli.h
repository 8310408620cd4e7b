/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands have in common: options, asking the daemon, and texts for people. A command is
 * `int cmd_x(int argc, char **argv)`, argv[0] its word; it returns the interface's exit code.
 */
#ifndef BALEEN_CORE_CLI_CLI_H
#define BALEEN_CORE_CLI_CLI_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct generation;

enum cli_exit { CLI_FINE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_NO_DAEMON = 3 };

struct cli_options {
	const char *config; /* -c FILE, default CONFIG_DEFAULT_PATH */
	bool json;
};

/* An option that one command takes: `--word`, or `--word VALUE`. */
struct cli_option {
	const char *word;
	bool *given;	    /* NULL: not asked for */
	const char **value; /* NULL: it takes none */
};
#define CLI_OPTIONS_MAX 8

/*
 * Read -c FILE, --json and the command's `own` options (up to a row without a word; NULL: none),
 * leaving operands from argv[optind] on, between `least` and `most` of them. -1: go on; else the
 * exit code, after the usage was printed.
 */
int cli_options(int argc, char **argv, const char *usage, const struct cli_option *own, int least,
		int most, struct cli_options *out);
/* Print "usage: baleen ..." to stderr: CLI_USAGE. */
int cli_usage(const char *usage);

/* Load what a configuration means, without a daemon: CLI_FINE, or CLI_FAILED after its errors. */
int cli_load(const char *config, struct generation **out);

/* The control socket of that configuration, malloc'd; NULL after a line on stderr. */
char *cli_control_path(const char *config);

/* Say that nobody is there: CLI_NO_DAEMON, or CLI_FAILED for another error. */
int cli_unreachable(const char *control, int error);

/*
 * Ask the daemon; `request` is consumed. CLI_FINE with the whole reply in `*reply`; else after a
 * line on stderr CLI_NO_DAEMON, or CLI_FAILED with what the daemon said (`*reply` NULL).
 */
int cli_ask(const char *config, cJSON *request, cJSON **reply);
/* The same over this socket. */
int cli_ask_at(const char *control, cJSON *request, cJSON **reply);
/* {"command": word} */
cJSON *cli_request(const char *word);

/* Reading replies: "" and 0 where there is nothing. */
const char *cli_text(const cJSON *o, const char *key);
double cli_number(const cJSON *o, const char *key);

#define CLI_TEXT_MAX 32
/* "1,234,567" */
const char *cli_count(double n, char out[CLI_TEXT_MAX]);
/* "12 s", "5 min", "3 h 12 min", "2 d 4 h" */
const char *cli_duration(double seconds, char out[CLI_TEXT_MAX]);
/* "64.0 MiB" */
const char *cli_octets(double n, char out[CLI_TEXT_MAX]);
/* Print a foreign text: control characters become \DDD, so that none reaches the terminal. */
void cli_print_clean(const char *text);
void cli_print_json(const cJSON *o);

#endif
