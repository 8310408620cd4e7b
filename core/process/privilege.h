/* SPDX-License-Identifier: Apache-2.0 */
/* From root to the user that all processes but the supervisor run as. */
#ifndef BALEEN_CORE_PROCESS_PRIVILEGE_H
#define BALEEN_CORE_PROCESS_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct privilege {
	bool drop; /* false: an ordinary user started us, and stays who he is */
	uid_t uid;
	gid_t gid;
};

/* Who it will be. Not root: nobody else. Root: `user` must exist; -ENOENT with a sentence. */
int privilege_find(const char *user, bool user_given, struct privilege *out, char *error,
		   size_t error_size);

/* Give up groups, user, capabilities and the way back; no_new_privs. Checks that it worked. */
int privilege_drop(const struct privilege *p, char *error, size_t error_size);

#endif
