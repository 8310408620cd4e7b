/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baleen explain` and `baleen plugin`. argv[0] is the command's word. Returns the exit code of the
 * interface: 0, 1 (did not hold), 2 (usage), 3 (no daemon).
 */
#ifndef BALEEN_CORE_CLI_CMD_EXPLAIN_H
#define BALEEN_CORE_CLI_CMD_EXPLAIN_H

int cmd_explain(int argc, char **argv);
int cmd_plugin(int argc, char **argv);

#endif
