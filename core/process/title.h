/* SPDX-License-Identifier: Apache-2.0 */
/* What `ps` and `top` show: "baleen: worker 1". */
#ifndef BALEEN_CORE_PROCESS_TITLE_H
#define BALEEN_CORE_PROCESS_TITLE_H

/* First thing in main: learn where the arguments lie, and move them (`argv` then points to copies)
 * and the environment out of the way. */
void title_init(int argc, char **argv);

/* "worker 1": the title becomes "baleen: worker 1", the thread and the log get the word itself. */
void title_set(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
