/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request on the control socket, through the admin process's own code: accepted, read,
 * dispatched, answered with one line of JSON or closed. What it would forward goes into links that
 * nobody reads.
 */
#include "core/process/admin.h"
#include "tests/fuzz/site.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct admin admin;
static struct handover handover;
static struct child child = {.handover = &handover};
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int links[3][2];

static void admin_begin(void)
{
	child.generation = admin.generation = site_load();
	child.shm = admin.shm = admin.generation->shm;
	for (int i = 0; i < 3; i++)
		if (link_pair(links[i]) < 0)
			abort();
	child.admin_to_template = links[0][0];
	child.admin_to_fetcher = links[1][0];
	child.admin_to_logger = links[2][0];
	admin.child = &child;
	admin.base = event_base_new();
	/* Abstract: leaves no file behind. */
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "baleen-fuzz-%d", getpid());
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 16) < 0 ||
	    admin_control_start(&admin, fd) < 0)
		abort();
}

/* `explain` forks: that is for the end-to-end tests, not for a million runs. */
static bool forks(const uint8_t *data, size_t size)
{
	return memmem(data, size, "explain", 7) || memchr(data, '\\', size);
}

static void drain_links(void)
{
	static struct link_message m;
	int fd;
	for (int i = 0; i < 3; i++)
		while (link_receive(links[i][1], &m, &fd) == 1)
			if (fd >= 0)
				close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char reply[65536];
	if (!admin.base)
		admin_begin();
	if (size > 60000 || forks(data, size))
		return 0;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		abort();
	if (send(fd, data, size, MSG_NOSIGNAL) < 0 || send(fd, "\n", 1, MSG_NOSIGNAL) < 0)
		abort();
	for (int turn = 0; turn < 8; turn++)
		event_base_loop(admin.base, EVLOOP_NONBLOCK);
	ssize_t n = recv(fd, reply, sizeof(reply) - 1, MSG_DONTWAIT);
	if (n > 0) {
		reply[n] = '\0';
		cJSON *json = cJSON_Parse(reply);
		if (!json || !cJSON_GetObjectItem(json, "ok"))
			abort();
		cJSON_Delete(json);
	}
	close(fd);
	for (unsigned i = 0; i < ADMIN_CONNECTIONS_MAX; i++)
		if (admin.connections[i].admin)
			admin_close(&admin.connections[i]);
	drain_links();
	return 0;
}
