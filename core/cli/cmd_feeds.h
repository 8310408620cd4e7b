/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baleen feeds ...`: one file a group of subcommands. Each gets its arguments with its own word
 * first and returns the exit code of the interface: 0, 1 (did not hold), 2 (usage), 3 (no daemon).
 */
#ifndef BALEEN_CORE_CLI_CMD_FEEDS_H
#define BALEEN_CORE_CLI_CMD_FEEDS_H

/* argv[0] is "feeds". */
int cmd_feeds(int argc, char **argv);

int cmd_feeds_compile(int argc, char **argv);
int cmd_feeds_lookup(int argc, char **argv);
int cmd_feeds_list(int argc, char **argv);
int cmd_feeds_show(int argc, char **argv);
int cmd_feeds_act(int argc, char **argv); /* refresh, promote, rollback, release */
int cmd_feeds_catalogue(int argc, char **argv);

#endif
