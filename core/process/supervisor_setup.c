/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor sets up before the first generation: state folder and its lock, user,
 * sockets, shared memory. All of it still privileged. Invariant: nothing is taken over from another
 * daemon: the lock, the listeners' probe and the control socket's probe each end the start.
 */
#include "base/file.h"
#include "base/log.h"
#include "core/dns/socket.h"
#include "core/metrics.h"
#include "core/process/supervisor_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SETUP_LISTEN_BACKLOG 64

static void setup_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* A folder below the state folder that belongs to the daemon's user. */
static int setup_folder(const struct supervisor *s, const char *path)
{
	if (mkdir(path, 0750) < 0 && errno != EEXIST)
		return -errno;
	if (s->privilege.drop && lchown(path, s->privilege.uid, s->privilege.gid) < 0)
		return -errno;
	return 0;
}

static int setup_state(struct supervisor *s)
{
	const char *state = s->facts.state;
	static const char *const folders[] = {".", "sets", "feeds", "log"};

	int r = file_make_folder(state, 0750);
	if (r == 0 && chdir(state) < 0)
		r = -errno;
	if (r < 0) {
		log_error("state: %s: %s", state, strerror(-r));
		return r;
	}
	s->lock = open("lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (s->lock < 0) {
		r = -errno;
		log_error("state: %s/lock: %s", state, strerror(-r));
		return r;
	}
	if (flock(s->lock, LOCK_EX | LOCK_NB) < 0) {
		log_error("another baleen runs with this state folder: %s", state);
		return -EBUSY;
	}
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (strcmp(folders[i], ".") != 0)
			r = setup_folder(s, folders[i]);
		else if (s->privilege.drop && chown(".", s->privilege.uid, s->privilege.gid) < 0)
			r = -errno;
		if (r < 0) {
			log_error("state: %s/%s: %s", state, folders[i], strerror(-r));
			return r;
		}
	}
	return 0;
}

static int setup_listeners(struct supervisor *s)
{
	for (unsigned i = 0; i < s->facts.listener_count; i++) {
		struct config_listener listener = {.endpoint = s->facts.listeners[i]};
		char error[SOCKET_ERROR_MAX] = "";
		int r = socket_open_listener(&listener, s->facts.workers, &s->sockets[i], error);
		if (r < 0) {
			log_error("%s", error);
			return r;
		}
	}
	return 0;
}

static int setup_shm(struct supervisor *s)
{
	int r = shm_create(s->facts.workers, s->facts.cache_bytes, &s->shm_fd);
	if (r == 0)
		r = shm_map(s->shm_fd, &s->shm);
	if (r < 0) {
		log_error("cannot make shared memory (cache: size): %s", strerror(-r));
		return r;
	}
	metrics_register(s->shm);
	process_state(process_add(s->shm, ROLE_SUPERVISOR, 0, 0, getpid()), PROCESS_SERVING);
	return 0;
}

/* ---- control socket and admin listener ---- */

static struct shared_socket *shared_free(struct shared_socket *rows)
{
	for (unsigned i = 0; i < SHARED_MAX; i++)
		if (rows[i].users == 0)
			return &rows[i];
	return NULL;
}

/* True if somebody answers there: then it is not ours to remove. */
static bool control_alive(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return true;
	int r = connect(fd, (const struct sockaddr *)address, sizeof(*address));
	bool alive = r == 0 || (errno != ECONNREFUSED && errno != ENOENT);
	close(fd);
	return alive;
}

static int control_bind(const struct supervisor *s, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char folder[sizeof(address.sun_path)];

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	snprintf(folder, sizeof(folder), "%s", path);
	char *slash = strrchr(folder, '/');
	if (slash && slash != folder) {
		*slash = '\0';
		mode_t strict = umask(022); /* the socket's rights decide, not its folder's */
		int r = file_make_folder(folder, 0755);
		umask(strict);
		if (r < 0)
			return r;
	}
	if (control_alive(&address))
		return -EADDRINUSE;
	(void)unlink(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* Group members may look; who may change things is decided by SO_PEERCRED. */
	mode_t old = umask(0117);
	int r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(old);
	if (r == 0 && s->privilege.drop && lchown(path, s->privilege.uid, s->privilege.gid) < 0)
		r = -errno;
	if (r == 0 && listen(fd, SETUP_LISTEN_BACKLOG) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

struct shared_socket *supervisor_control(struct supervisor *s, const char *path)
{
	for (unsigned i = 0; i < SHARED_MAX; i++)
		if (s->controls[i].users && strcmp(s->controls[i].path, path) == 0) {
			s->controls[i].users++;
			return &s->controls[i];
		}
	struct shared_socket *row = shared_free(s->controls);
	int fd = row ? control_bind(s, path) : -EMFILE;
	if (fd < 0) {
		log_error("control: %s: %s", path, strerror(-fd));
		return NULL;
	}
	row->fd = fd;
	row->users = 1;
	snprintf(row->path, sizeof(row->path), "%s", path);
	return row;
}

static int admin_bind(const struct endpoint *e)
{
	struct sockaddr_storage address;
	socklen_t length = endpoint_to_sockaddr(e, &address);
	const int on = 1;

	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, length) < 0 ||
	    listen(fd, SETUP_LISTEN_BACKLOG) < 0) {
		int r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

struct shared_socket *supervisor_admin(struct supervisor *s, const struct endpoint *e)
{
	for (unsigned i = 0; i < SHARED_MAX; i++)
		if (s->admins[i].users && endpoint_equal(&s->admins[i].endpoint, e)) {
			s->admins[i].users++;
			return &s->admins[i];
		}
	struct shared_socket *row = shared_free(s->admins);
	int fd = row ? admin_bind(e) : -EMFILE;
	if (fd < 0) {
		char text[ENDPOINT_TEXT_MAX];
		log_error("admin: listen: %s: %s", endpoint_format(e, text), strerror(-fd));
		return NULL;
	}
	row->fd = fd;
	row->users = 1;
	row->endpoint = *e;
	return row;
}

void supervisor_release(struct shared_socket *shared)
{
	if (!shared || shared->users == 0 || --shared->users > 0)
		return;
	close(shared->fd);
	shared->fd = -1;
	if (shared->path[0])
		(void)unlink(shared->path);
	memset(shared->path, 0, sizeof(shared->path));
}

void supervisor_cleanup(struct supervisor *s)
{
	for (unsigned i = 0; i < SHARED_MAX; i++)
		if (s->controls[i].users && s->controls[i].path[0])
			(void)unlink(s->controls[i].path);
}

int supervisor_setup(struct supervisor *s)
{
	char error[256];

	setup_descriptors();
	umask(027);
	int r = privilege_find(s->facts.user, s->facts.user_given, &s->privilege, error,
			       sizeof(error));
	if (r < 0) {
		log_error("%s", error);
		return r;
	}
	r = setup_state(s);
	if (r == 0)
		r = setup_listeners(s);
	if (r == 0)
		r = setup_shm(s);
	if (r == 0 && pipe2(s->lifeline, O_CLOEXEC) < 0) {
		r = -errno;
		log_error("cannot make a pipe: %s", strerror(-r));
	}
	return r;
}
