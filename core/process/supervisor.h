/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor: what `baleen run` is. Returns the program's exit code. */
#ifndef BALEEN_CORE_PROCESS_SUPERVISOR_H
#define BALEEN_CORE_PROCESS_SUPERVISOR_H

int supervisor_run(const char *config_path);

#endif
