/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dropping privileges, once, in the template, before any plugin is loaded. Invariant: returns 0
 * only in a process that cannot become root again.
 */
#include "core/process/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int privilege_find(const char *user, bool user_given, struct privilege *out, char *error,
		   size_t error_size)
{
	*out = (struct privilege){.drop = false, .uid = geteuid(), .gid = getegid()};
	if (geteuid() != 0)
		return 0;
	errno = 0;
	const struct passwd *entry = getpwnam(user);
	if (!entry) {
		if (user_given)
			snprintf(error, error_size, "user: there is no user \"%s\" on this machine",
				 user);
		else
			snprintf(error, error_size,
				 "started as root, but there is no user \"%s\" to run as: create "
				 "it (useradd --system --shell /usr/sbin/nologin %s), or name "
				 "another with \"user:\" in the configuration",
				 user, user);
		return -ENOENT;
	}
	if (entry->pw_uid == 0) {
		snprintf(error, error_size, "user: \"%s\" is root; name an unprivileged user",
			 user);
		return -EINVAL;
	}
	*out = (struct privilege){.drop = true, .uid = entry->pw_uid, .gid = entry->pw_gid};
	return 0;
}

static int privilege_clear_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	for (int cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL && errno != EPERM)
			return -errno;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int privilege_drop(const struct privilege *p, char *error, size_t error_size)
{
	int r = 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0 && p->drop) {
		/* The bounding set can only be emptied while we still may. */
		for (int cap = 0; cap <= 63; cap++)
			(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
		if (setgroups(1, &p->gid) < 0 || setresgid(p->gid, p->gid, p->gid) < 0 ||
		    setresuid(p->uid, p->uid, p->uid) < 0)
			r = -errno;
	}
	if (r == 0)
		r = privilege_clear_capabilities();
	if (r == 0 && p->drop && (setuid(0) == 0 || geteuid() != p->uid || getegid() != p->gid))
		r = -EPERM;
	if (r < 0)
		snprintf(error, error_size, "cannot give up privileges: %s", strerror(-r));
	return r;
}
