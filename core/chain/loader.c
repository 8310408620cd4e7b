/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading plugins. The octets come from the source, are copied to a memfd, and that is what dlopen
 * sees: overwriting the file on disk cannot crash a process that runs it, and two instances of one
 * plugin do not share static variables. Runs in the template and in offline commands, never in the
 * supervisor. Invariant: no field of a descriptor is used that was not checked here.
 *
 * Who may write a plugin can do what the daemon can. So when started by root a plugin must belong
 * to root or to the owner of the configuration (who could name any file), and nobody else may write
 * it.
 */
#include "core/chain/loader.h"

#include "base/file.h"

#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* since Linux 6.3; needed where vm.memfd_noexec is 1 */
#endif

#define LOADER_PATH_MAX	   4096
#define LOADER_SLOT_MAX	   4096
#define LOADER_MEMORY_MAX  ((size_t)1 << 30)
#define LOADER_OPTIONS_MAX 256
#define LOADER_METRICS_MAX 64

/* What every plugin must have: all up to the functions, which may be missing at the end. */
#define LOADER_SIZE_MIN offsetof(struct baleen_plugin, configure)

/* One load: what error messages need. */
struct loading {
	const struct loader_request *request;
	struct diags *d;
	const char *path;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct loading *l, const char *format,
							...)
{
	char text[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	diag_error(l->d, l->request->config_file, l->request->line, l->request->column,
		   "plugin \"%s\": %s", l->request->word, text);
	return -EINVAL;
}

/* A path, not a name. */
static bool loader_is_path(const char *word)
{
	size_t n = strlen(word);
	return strchr(word, '/') || (n > 3 && strcmp(word + n - 3, ".so") == 0);
}

/* The folder of this program, for a build tree. */
static bool program_folder(char out[LOADER_PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", out, LOADER_PATH_MAX - 1);
	if (n <= 0)
		return false;
	out[n] = '\0';
	char *slash = strrchr(out, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

static int try_read(const struct loading *l, const char *path, struct source_file *file,
		    const char **found)
{
	int r = source_read(l->request->source, path, file);
	if (r == 0)
		*found = arena_strdup(l->request->arena, path);
	return r;
}

/* Find and read the file. The first place that has it wins. */
static int find(const struct loading *l, struct source_file *file, const char **found)
{
	const struct loader_request *q = l->request;
	char path[LOADER_PATH_MAX + 256];
	char folder[LOADER_PATH_MAX] = "";
	int r;

	if (loader_is_path(q->word)) {
		char *absolute = file_relative_to(q->config_file, q->word);
		if (!absolute)
			return -ENOMEM;
		r = try_read(l, absolute, file, found);
		if (r < 0)
			refuse(l, "cannot read %s: %s", absolute, strerror(-r));
		free(absolute);
		return r;
	}
	if (q->folder) {
		snprintf(path, sizeof(path), "%s/%s.so", q->folder, q->word);
		r = try_read(l, path, file, found);
		if (r < 0)
			refuse(l, "cannot read %s: %s", path, strerror(-r));
		return r;
	}
	if (program_folder(folder)) {
		snprintf(path, sizeof(path), "%s/plugins/%s.so", folder, q->word);
		r = try_read(l, path, file, found);
		if (r != -ENOENT && r != -ENOTDIR) {
			if (r < 0)
				refuse(l, "cannot read %s: %s", path, strerror(-r));
			return r;
		}
	}
	snprintf(path, sizeof(path), BALEEN_PREFIX "/lib/baleen/plugins/%s.so", q->word);
	r = try_read(l, path, file, found);
	if (r < 0)
		refuse(l,
		       "there is no such plugin (looked for %s/plugins/%s.so and %s; a file of your "
		       "own is given by its path)",
		       folder, q->word, path);
	return r;
}

/* Only root looks: anyone else could not gain anything by it. */
static int check_owner(const struct loading *l)
{
	struct stat plugin, config;

	if (geteuid() != 0 || stat(l->path, &plugin) < 0)
		return 0;
	uid_t trusted = stat(l->request->config_file, &config) == 0 ? config.st_uid : 0;
	if (plugin.st_uid != 0 && plugin.st_uid != trusted)
		return refuse(l,
			      "%s belongs to user %u; as root only files are loaded that belong to "
			      "root or to the owner of the configuration (chown root)",
			      l->path, plugin.st_uid);
	if (plugin.st_mode & (S_IWGRP | S_IWOTH))
		return refuse(l, "%s may be written by others than its owner (chmod go-w)",
			      l->path);
	return 0;
}

/* A sealed copy in memory; its descriptor stays open until dlopen is through. */
static int private_copy(const struct source_file *file)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	size_t done = 0;

	int fd = memfd_create("baleen-plugin", flags | MFD_EXEC);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("baleen-plugin", flags);
	if (fd < 0)
		return -errno;
	while (done < file->size) {
		ssize_t n = write(fd, file->data + done, file->size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int r = n < 0 ? -errno : -EIO;
			close(fd);
			return r;
		}
		done += (size_t)n;
	}
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	return fd;
}

/*
 * A path to the copy that no other copy had: glibc takes an equal path for the same library,
 * although descriptors are used again. The count goes into the path as a row of "/" and "/.", which
 * mean the same to the kernel.
 */
static void copy_path(int fd, char out[128])
{
	static unsigned count;
	size_t n = (size_t)snprintf(out, 128, "/proc/self/fd");

	count++;
	for (unsigned bit = 0; bit < 24; bit++)
		n += (size_t)snprintf(out + n, 128 - n, count >> bit & 1 ? "/." : "/");
	snprintf(out + n, 128 - n, "/%d", fd);
}

static int open_copy(const struct loading *l, const struct source_file *file, void **handle)
{
	char self[128];

	if (file->size < sizeof(Elf64_Ehdr) || memcmp(file->data, ELFMAG, SELFMAG) != 0)
		return refuse(l, "%s is not a shared object", l->path);
	int fd = private_copy(file);
	if (fd < 0)
		return refuse(l, "%s: cannot make a private copy: %s", l->path, strerror(-fd));
	copy_path(fd, self);
	*handle = dlopen(self, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	const char *error = *handle ? NULL : dlerror();
	close(fd);
	if (error) {
		/* It speaks of the copy's name, which nobody knows. */
		size_t n = strlen(self);
		if (strncmp(error, self, n) == 0 && error[n] == ':')
			error += n + 1 + (error[n + 1] == ' ');
		return refuse(l, "%s: %s", l->path, error);
	}
	return 0;
}

static bool is_word(const char *s, size_t max, char separator)
{
	size_t n = s ? strnlen(s, max + 1) : 0;
	if (n == 0 || n > max || !islower((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) &&
		    s[i] != separator)
			return false;
	return true;
}

static size_t option_size(enum baleen_type type)
{
	static const size_t sizes[] = {
		[BALEEN_BOOL] = sizeof(bool),
		[BALEEN_INTEGER] = sizeof(int64_t),
		[BALEEN_NUMBER] = sizeof(double),
		[BALEEN_DURATION] = sizeof(uint64_t),
		[BALEEN_SIZE] = sizeof(uint64_t),
		[BALEEN_STRING] = sizeof(const char *),
		[BALEEN_CHOICE] = sizeof(int),
		[BALEEN_OUTPUT] = sizeof(const char *),
		[BALEEN_FILE] = sizeof(struct baleen_file),
		[BALEEN_STRINGS] = sizeof(struct baleen_strings),
		[BALEEN_PREFIXES] = sizeof(struct baleen_prefixes),
		[BALEEN_NAMES] = sizeof(struct baleen_names),
	};
	return (size_t)type < sizeof(sizes) / sizeof(sizes[0]) ? sizes[type] : 0;
}

static int check_options(const struct loading *l, const struct baleen_plugin *p)
{
	size_t i = 0;

	for (const struct baleen_option *o = p->options; o && o->type != BALEEN_END; o++, i++) {
		if (i == LOADER_OPTIONS_MAX)
			return refuse(l,
				      "%s: more than %d options (is the BALEEN_END row missing?)",
				      l->path, LOADER_OPTIONS_MAX);
		size_t size = option_size(o->type);
		if (!is_word(o->name, 40, '-'))
			return refuse(l, "%s: option %zu has no proper name ([a-z][a-z0-9-]*)",
				      l->path, i);
		if (!size)
			return refuse(l, "%s: option %s is of unknown type %d", l->path, o->name,
				      (int)o->type);
		if (o->offset > p->config_size || size > p->config_size - o->offset)
			return refuse(l,
				      "%s: option %s lies outside of the options struct (offset "
				      "%zu, %zu octets; the struct has %zu)",
				      l->path, o->name, o->offset, size, p->config_size);
		if (o->type == BALEEN_CHOICE && (!o->words || !o->words[0]))
			return refuse(l, "%s: option %s is a choice without words", l->path,
				      o->name);
	}
	return 0;
}

static int check_metrics(const struct loading *l, const struct baleen_plugin *p)
{
	size_t i = 0;

	for (const struct baleen_metric *m = p->metrics; m && m->name; m++, i++) {
		if (i == LOADER_METRICS_MAX)
			return refuse(l,
				      "%s: more than %d metrics (is the last, empty row missing?)",
				      l->path, LOADER_METRICS_MAX);
		if (!is_word(m->name, 40, '_'))
			return refuse(l, "%s: metric %zu has no proper name ([a-z][a-z0-9_]*)",
				      l->path, i);
	}
	return 0;
}

static int check_hooks(const struct loading *l, const struct baleen_plugin *p)
{
	bool path = p->on_client || p->on_query || p->on_answer;

	if (p->kind > BALEEN_SINK)
		return refuse(l, "%s: unknown kind %d", l->path, (int)p->kind);
	if (p->kind == BALEEN_SINK && (path || !p->on_events))
		return refuse(l, "%s: a sink has on_events and no other hook", l->path);
	if (p->kind != BALEEN_SINK && (!path || p->on_events))
		return refuse(l,
			      "%s: a filter or guard has at least one of on_client, on_query, "
			      "on_answer, and no on_events",
			      l->path);
	return 0;
}

static int check_descriptor(const struct loading *l, const struct baleen_plugin *p)
{
	if (!is_word(p->name, 24, '-'))
		return refuse(l, "%s: its name is missing or not [a-z][a-z0-9-]* of at most 24",
			      l->path);
	if (!p->version || !p->summary)
		return refuse(l, "%s: version or summary is missing", l->path);
	if (!loader_is_path(l->request->word) && strcmp(p->name, l->request->word) != 0)
		return refuse(l, "%s holds a plugin that calls itself \"%s\"", l->path, p->name);
	if (p->slot_size > LOADER_SLOT_MAX || p->worker_size > LOADER_MEMORY_MAX ||
	    p->config_size > LOADER_MEMORY_MAX)
		return refuse(l, "%s: asks for too much memory (options %zu, worker %zu, slot %zu)",
			      l->path, p->config_size, p->worker_size, p->slot_size);
	if (p->needs & ~(uint32_t)(BALEEN_NEEDS_NETWORK | BALEEN_NEEDS_STATE_READ))
		return refuse(l, "%s: has needs that this version does not know (0x%x)", l->path,
			      p->needs);
	int r = check_options(l, p);
	if (r == 0)
		r = check_metrics(l, p);
	return r ? r : check_hooks(l, p);
}

/* Nothing but size, major and minor is looked at before they fit. */
static int take_descriptor(const struct loading *l, const struct baleen_plugin *given,
			   struct baleen_plugin *out)
{
	if (given->major != BALEEN_PLUGIN_MAJOR)
		return refuse(l,
			      "%s was built for plugin interface %u.%u, this program has %u.%u "
			      "(build it anew)",
			      l->path, given->major, given->minor, BALEEN_PLUGIN_MAJOR,
			      BALEEN_PLUGIN_MINOR);
	if (given->minor > BALEEN_PLUGIN_MINOR)
		return refuse(
			l,
			"%s needs plugin interface %u.%u, this program has only %u.%u (a newer "
			"Baleen is needed)",
			l->path, given->major, given->minor, BALEEN_PLUGIN_MAJOR,
			BALEEN_PLUGIN_MINOR);
	if (given->size < LOADER_SIZE_MIN ||
	    (given->minor == BALEEN_PLUGIN_MINOR && given->size > sizeof(*out)))
		return refuse(
			l,
			"%s says that its descriptor has %u octets; version %u.%u has %zu (is "
			".size set to sizeof?)",
			l->path, given->size, BALEEN_PLUGIN_MAJOR, BALEEN_PLUGIN_MINOR,
			sizeof(*out));
	memset(out, 0, sizeof(*out));
	memcpy(out, given, given->size < sizeof(*out) ? given->size : sizeof(*out));
	return check_descriptor(l, out);
}

int loader_load(const struct loader_request *request, const struct baleen_host *host,
		struct diags *d, struct baleen_plugin *out, const char **path)
{
	struct loading l = {.request = request, .d = d};
	struct source_file file;
	void *handle = NULL;

	int r = find(&l, &file, &l.path);
	if (r == 0)
		r = check_owner(&l);
	if (r == 0)
		r = open_copy(&l, &file, &handle);
	if (r != 0)
		return -EINVAL;
	/* The one cast that POSIX asks for. */
	union {
		void *symbol;
		const struct baleen_plugin *(*entry)(const struct baleen_host *);
	} at = {.symbol = dlsym(handle, BALEEN_PLUGIN_ENTRY)};
	if (!at.symbol)
		return refuse(&l, "%s does not export " BALEEN_PLUGIN_ENTRY, l.path);
	const struct baleen_plugin *given = at.entry(host);
	if (!given)
		return refuse(
			&l,
			"%s refuses this program (its entry returned NULL; host interface %u.%u)",
			l.path, BALEEN_PLUGIN_MAJOR, BALEEN_PLUGIN_MINOR);
	*path = l.path;
	return take_descriptor(&l, given, out);
}
