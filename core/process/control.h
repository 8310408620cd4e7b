/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of the control socket: one JSON object a line out, one JSON object a line back
 * (many for `log tail`). Used by the commands; every wait has a bound.
 *
 *   {"command":"status"}                          -> {"ok":true, ...}
 *   anything that did not work                    -> {"ok":false,"error":"a sentence"}
 *
 * Commands and their further fields (core/process/admin_commands.c has the table):
 *   status | stats | reload | feeds (action: list|show|refresh|promote|rollback|release, name)
 *   explain (name, type, client, at, answers: [..]) | cache (action: stats|flush, name, subtree)
 *   log (then lines without end; client, name, verdict narrow them)
 */
#ifndef BALEEN_CORE_PROCESS_CONTROL_H
#define BALEEN_CORE_PROCESS_CONTROL_H

#define CONTROL_REQUEST_MAX 65536
#define CONTROL_REPLY_MAX   (64 << 20)
#define CONTROL_TIMEOUT_MS  120000 /* a reload compiles lists of rules and runs policy tests */

/*
 * Ask once. `*reply_json` is malloc'd, NUL-terminated, without the newline. 0, or -errno:
 * -ENOENT and -ECONNREFUSED (no daemon), -EACCES, -ETIMEDOUT, -EFBIG, -EPROTO (closed without one).
 */
int control_request(const char *socket_path, const char *request_json, char **reply_json);

/* Called for each line; a value other than 0 ends the stream and is returned. */
typedef int control_line(void *context, const char *line);

/* Ask, then hand on lines until the daemon closes (0), `each` ends it, or -errno. No time-out once
 * the first line is there: a quiet network has quiet logs. */
int control_stream(const char *socket_path, const char *request_json, control_line *each,
		   void *context);

#endif
