/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that main.c dispatches to. argv[0] is the command's word; each returns an exit code
 * of the interface. */
#ifndef BALEEN_CORE_CLI_CMD_H
#define BALEEN_CORE_CLI_CMD_H

int cmd_run(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_reload(int argc, char **argv);
int cmd_feeds(int argc, char **argv);
int cmd_cache(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_plugin(int argc, char **argv);

#endif
