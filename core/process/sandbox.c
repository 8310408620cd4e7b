/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp (through libseccomp) and Landlock (raw system calls; Debian's libc has no wrappers). Each
 * child enters after everything is opened and every plugin is started. Limits: Landlock holds file
 * paths and, from ABI 4, TCP ports; neither addresses nor UDP. A refused call fails with EPERM and
 * does not kill: a plugin that tries more than its role allows sees an error.
 */
#include "core/process/sandbox.h"

#include "base/log.h"
#include "core/process/process_table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Headers of Debian 12 know ABI 2; these numbers are the kernel's for ever. */
#define ACCESS_FS_REFER	   (1ULL << 13)
#define ACCESS_FS_TRUNCATE (1ULL << 14)
#define ACCESS_NET_BIND	   (1ULL << 0)
#define ACCESS_NET_CONNECT (1ULL << 1)
#define RULE_NET_PORT	   2

struct sandbox_ruleset {
	uint64_t fs;
	uint64_t net; /* ABI 4 */
};

struct sandbox_net_port {
	uint64_t access;
	uint64_t port;
};

#define FS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_WRITE                                                                                   \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |                          \
	 LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_DIR |                             \
	 LANDLOCK_ACCESS_FS_MAKE_REG)
#define FS_ALL ((1ULL << 13) - 1) /* everything of ABI 1 */
#define FS_OF_FILES                                                                                \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_FS_TRUNCATE)

static int landlock_add_path(int ruleset, const struct sandbox_path *p, uint64_t handled)
{
	int fd = p->path ? open(p->path, O_PATH | O_CLOEXEC) : p->fd;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	struct stat st;
	uint64_t access = FS_READ;
	if (p->write)
		access |= FS_WRITE | ACCESS_FS_REFER | ACCESS_FS_TRUNCATE;
	if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
		access &= FS_OF_FILES;
	struct landlock_path_beneath_attr rule = {.allowed_access = access & handled,
						  .parent_fd = fd};
	int r = 0;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		r = -errno;
	if (p->path)
		close(fd);
	return r;
}

static int landlock_add_ports(int ruleset, const struct sandbox *s)
{
	for (size_t i = 0; i < s->tcp_port_count; i++) {
		struct sandbox_net_port rule = {.access = ACCESS_NET_CONNECT,
						.port = s->tcp_ports[i]};
		if (syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0) < 0)
			return -errno;
	}
	return 0;
}

static int landlock_enter(const struct sandbox *s)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 0)
		return -errno;
	struct sandbox_ruleset attr = {.fs = FS_ALL};
	if (abi >= 2)
		attr.fs |= ACCESS_FS_REFER;
	if (abi >= 3)
		attr.fs |= ACCESS_FS_TRUNCATE;
	if (abi >= 4 && !s->any_tcp)
		attr.net = ACCESS_NET_BIND | ACCESS_NET_CONNECT;
	size_t size = abi >= 4 ? sizeof(attr) : sizeof(attr.fs);
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (ruleset < 0)
		return -errno;
	int r = 0;
	for (size_t i = 0; r == 0 && i < s->path_count; i++)
		r = landlock_add_path(ruleset, &s->paths[i], attr.fs);
	if (r == 0 && attr.net)
		r = landlock_add_ports(ruleset, s);
	if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = -errno;
	close(ruleset);
	return r;
}

/* A library built with a sanitizer calls what it likes when it reports: no list can hold it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define SANDBOX_SANITIZER 1
#endif
#endif
#ifndef SANDBOX_SANITIZER
#define SANDBOX_SANITIZER 0
#endif

#define CALL(name) SCMP_SYS(name)

static const int sandbox_common[] = {
	CALL(read),
	CALL(write),
	CALL(readv),
	CALL(writev),
	CALL(pread64),
	CALL(pwrite64),
	CALL(close),
	CALL(fstat),
	CALL(newfstatat),
	CALL(stat),
	CALL(lstat),
	CALL(statx),
	CALL(lseek),
	CALL(mmap),
	CALL(munmap),
	CALL(mremap),
	CALL(mprotect),
	CALL(madvise),
	CALL(brk),
	CALL(rt_sigaction),
	CALL(rt_sigprocmask),
	CALL(rt_sigreturn),
	CALL(rt_sigtimedwait),
	CALL(sigaltstack),
	CALL(clock_gettime),
	CALL(clock_getres),
	CALL(clock_nanosleep),
	CALL(nanosleep),
	CALL(gettimeofday),
	CALL(time),
	CALL(getpid),
	CALL(gettid),
	CALL(getppid),
	CALL(getuid),
	CALL(geteuid),
	CALL(getgid),
	CALL(getegid),
	CALL(exit),
	CALL(exit_group),
	CALL(futex),
	CALL(epoll_create1),
	CALL(epoll_ctl),
	CALL(epoll_wait),
	CALL(epoll_pwait),
	CALL(epoll_pwait2),
	CALL(poll),
	CALL(ppoll),
	CALL(select),
	CALL(pselect6),
	CALL(eventfd2),
	CALL(pipe),
	CALL(pipe2),
	CALL(timerfd_create),
	CALL(timerfd_settime),
	CALL(fcntl),
	CALL(ioctl),
	CALL(getrandom),
	CALL(recvmsg),
	CALL(sendmsg),
	CALL(recvmmsg),
	CALL(sendmmsg),
	CALL(recvfrom),
	CALL(sendto),
	CALL(accept),
	CALL(accept4),
	CALL(shutdown),
	CALL(getsockname),
	CALL(getpeername),
	CALL(getsockopt),
	CALL(setsockopt),
	CALL(openat),
	CALL(open),
	CALL(access),
	CALL(faccessat),
	CALL(faccessat2),
	CALL(readlink),
	CALL(readlinkat),
	CALL(uname),
	CALL(sched_yield),
	CALL(sched_getaffinity),
	CALL(prctl),
	CALL(arch_prctl),
	CALL(tgkill),
	CALL(restart_syscall),
	CALL(setitimer),
	CALL(set_robust_list),
	CALL(rseq),
	CALL(membarrier),
	CALL(dup),
	CALL(dup2),
	CALL(dup3),
	CALL(sysinfo),
	CALL(prlimit64),
	CALL(getrlimit),
	CALL(getrusage),
	CALL(fstatfs),
	CALL(statfs),
	CALL(flock),
	CALL(getcwd),
	CALL(umask),
	CALL(getcpu),
	CALL(times),
	CALL(alarm),
};

/* Upstream sockets, and what plugins that need the network do. Never listen, never exec. */
static const int sandbox_network[] = {CALL(socket), CALL(connect), CALL(bind), CALL(socketpair)};

static const int sandbox_files[] = {
	CALL(rename),	       CALL(renameat),	      CALL(renameat2),
	CALL(unlink),	       CALL(unlinkat),	      CALL(mkdir),
	CALL(mkdirat),	       CALL(rmdir),	      CALL(fsync),
	CALL(fdatasync),       CALL(ftruncate),	      CALL(fallocate),
	CALL(chmod),	       CALL(fchmod),	      CALL(fchmodat),
	CALL(utimensat),       CALL(getdents64),      CALL(link),
	CALL(linkat),	       CALL(msync),	      CALL(fadvise64),
	CALL(sync_file_range), CALL(copy_file_range), CALL(sendfile),
	CALL(creat),	       CALL(pwritev),	      CALL(preadv),
	CALL(mincore),
};

/* libcurl resolves in threads; the engine lowers its own priority and watches files. */
static const int sandbox_fetching[] = {
	CALL(clone),
	CALL(wait4),
	CALL(inotify_init1),
	CALL(inotify_add_watch),
	CALL(inotify_rm_watch),
	CALL(setpriority),
	CALL(getpriority),
	CALL(ioprio_set),
	CALL(sched_setscheduler),
	CALL(sched_getscheduler),
	CALL(sched_getparam),
	CALL(sched_get_priority_max),
	CALL(sched_get_priority_min),
	CALL(sched_setaffinity),
	CALL(setrlimit),
	CALL(kill),
	CALL(getdents64),
	CALL(memfd_create),
	CALL(mlock),
};

/* Throw-away children for `explain`. */
static const int sandbox_forking[] = {CALL(clone),  CALL(fork), CALL(vfork),	 CALL(wait4),
				      CALL(waitid), CALL(kill), CALL(getdents64)};

static int seccomp_list(scmp_filter_ctx c, const int *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* Negative: this architecture does not have it. */
		if (calls[i] < 0)
			continue;
		int r = seccomp_rule_add(c, SCMP_ACT_ALLOW, calls[i], 0);
		if (r < 0 && r != -EEXIST)
			return r;
	}
	return 0;
}

#define LIST(c, name) seccomp_list(c, name, sizeof(name) / sizeof((name)[0]))

static int seccomp_enter(const struct sandbox *s)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!c)
		return -ENOMEM;
	int r = LIST(c, sandbox_common);
	/* libc falls back from clone3 to clone only if it seems not to exist. */
	if (r == 0)
		r = seccomp_rule_add(c, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (r == 0 && s->role != ROLE_ADMIN)
		r = LIST(c, sandbox_network);
	if (r == 0 && (s->role == ROLE_LOGGER || s->role == ROLE_FETCHER))
		r = LIST(c, sandbox_files);
	if (r == 0 && s->role == ROLE_FETCHER)
		r = LIST(c, sandbox_fetching);
	if (r == 0 && s->role == ROLE_ADMIN)
		r = LIST(c, sandbox_forking);
	if (r == 0)
		r = seccomp_load(c);
	seccomp_release(c);
	return r;
}

void sandbox_enter(const struct sandbox *s)
{
	if (SANDBOX_SANITIZER)
		return;
	/* Both ask for it; privilege_drop has set it already where it ran. */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	int r = landlock_enter(s);
	if (r < 0)
		log_warn("Landlock does not hold this process: %s", strerror(-r));
	r = seccomp_enter(s);
	if (r < 0)
		log_warn("seccomp does not hold this process: %s", strerror(-r));
}
