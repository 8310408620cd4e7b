/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `baleen feeds compile`: list files into a set, without a daemon. Runs in the user's process; owns
 * a folder of feed files beside the output, which is gone at the end. Invariant: the output appears
 * only when every list was read.
 */
#include "core/cli/cmd_feeds.h"

#include "base/clock.h"
#include "base/file.h"
#include "feeds/admission.h"
#include "feeds/compile.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct compile_list {
	const char *file;
	char name[FEED_NAME_MAX + 1];
	char *feedfile;
	struct parse_report report;
	uint64_t entries;
};

struct compile_job {
	const char *out;
	const struct feed_format *format;
	struct feed_hints hints;
	bool json;
	char *folder;
	struct compile_list *lists;
	size_t count;
	struct domset_stats stats;
	double seconds;
	double peak_mib;
};

/* A list's feed name is its file name up to the first dot. */
static int compile_name_list(struct compile_job *job, size_t index, const char *file)
{
	struct compile_list *list = &job->lists[index];
	const char *slash = strrchr(file, '/');
	const char *base = slash ? slash + 1 : file;
	size_t length = strcspn(base, ".");
	list->file = file;
	if (length == 0 || length > FEED_NAME_MAX) {
		fprintf(stderr, "baleen feeds compile: %s: no feed name in the file name\n", file);
		return 2;
	}
	memcpy(list->name, base, length);
	for (size_t i = 0; i < index; i++) {
		if (strcmp(job->lists[i].name, list->name) == 0) {
			fprintf(stderr, "baleen feeds compile: %s and %s are both feed %s\n",
				job->lists[i].file, file, list->name);
			return 2;
		}
	}
	return asprintf(&list->feedfile, "%s/%zu", job->folder, index) < 0 ? 1 : 0;
}

static int compile_one_list(struct compile_job *job, struct compile_list *list)
{
	struct feedfile_writer *writer = NULL;
	struct parse *parse = NULL;
	struct feedfile_change change;
	const struct feed feed = {.name = list->name, .shrink_limit = 0, .grow_limit = 1e9};
	const struct parse_options options = {
		.format = job->format,
		.match = FEED_MATCH_FORMAT,
		.hints = job->hints,
		.max_bytes = UINT64_MAX,
	};
	char why[ADMISSION_WHY_MAX] = "";
	int fd = open(list->file, O_RDONLY | O_CLOEXEC);
	int result = fd < 0 ? -errno : 0;
	if (result == 0)
		result = feedfile_begin(list->feedfile, NULL, (uint64_t)time(NULL), &writer);
	if (result == 0)
		result = parse_new(&options, writer, &parse);
	if (result == 0)
		result = compile_read_body(fd, parse);
	if (result == 0)
		result = parse_finish(parse, true);
	if (parse)
		list->report = *parse_report(parse);
	if (result == 0)
		result = feedfile_finish(writer, NULL, NULL, &change);
	if (result == 0 && admission_judge(&feed, &list->report, &change, NULL, why) != ADMIT)
		result = -EBADMSG;
	if (result == 0) {
		list->entries = change.entries;
		result = feedfile_publish(writer, list->feedfile);
	} else {
		feedfile_abandon(writer);
	}
	if (result < 0)
		fprintf(stderr, "%s: %s\n", list->file,
			list->report.error[0] ? list->report.error
			: why[0]	      ? why
					      : strerror(-result));
	parse_free(parse);
	if (fd >= 0)
		close(fd);
	return result;
}

/* This program's own: getrusage's figure begins with that of the program that started it. */
static double compile_peak_mib(void)
{
	char line[256];
	unsigned long long kib = 0;
	FILE *status = fopen("/proc/self/status", "re");
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
			break;
	if (status)
		fclose(status);
	return (double)kib / 1024;
}

static int compile_all(struct compile_job *job)
{
	int64_t began = clock_monotonic_us();
	struct compile_feed *feeds = calloc(job->count, sizeof(*feeds));
	int result = feeds ? 0 : -ENOMEM;
	for (size_t i = 0; i < job->count && feeds; i++) {
		int one = compile_one_list(job, &job->lists[i]);
		result = result < 0 ? result : one;
		feeds[i] = (struct compile_feed){job->lists[i].name, job->lists[i].feedfile};
	}
	if (result == 0) {
		result = compile_set(job->out, feeds, job->count, 0, &job->stats, NULL);
		if (result < 0)
			fprintf(stderr, "%s: %s\n", job->out, strerror(-result));
	}
	free(feeds);
	job->peak_mib = compile_peak_mib();
	job->seconds = (double)(clock_monotonic_us() - began) / 1e6;
	return result;
}

static void compile_print_rejects(const struct parse_report *r)
{
	for (int i = 0; i < FEED_REJECT_REASONS; i++) {
		if (r->rejects[i].count == 0)
			continue;
		printf("    %-12s %8llu  line %llu: %s\n", feed_reject_words[i],
		       (unsigned long long)r->rejects[i].count,
		       (unsigned long long)r->rejects[i].examples[0].line,
		       r->rejects[i].examples[0].text);
	}
}

static double compile_octets_a_name(const struct compile_job *job)
{
	return job->stats.names ? (double)job->stats.file_octets / (double)job->stats.names : 0;
}

static void compile_print(const struct compile_job *job)
{
	for (size_t i = 0; i < job->count; i++) {
		const struct parse_report *r = &job->lists[i].report;
		printf("%s: format %s, %llu names, %llu rejected of %llu lines\n",
		       job->lists[i].name, r->format->name,
		       (unsigned long long)job->lists[i].entries, (unsigned long long)r->rejected,
		       (unsigned long long)r->lines);
		compile_print_rejects(r);
	}
	printf("names         %llu\n", (unsigned long long)job->stats.names);
	printf("entries       %llu\n", (unsigned long long)job->stats.entries);
	printf("octets        %llu\n", (unsigned long long)job->stats.file_octets);
	printf("octets a name %.2f\n", compile_octets_a_name(job));
	printf("seconds       %.2f\n", job->seconds);
	printf("peak memory   %.1f MiB\n", job->peak_mib);
}

static void compile_print_json(const struct compile_job *job)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *feeds = cJSON_AddArrayToObject(root, "feeds");
	for (size_t i = 0; i < job->count; i++) {
		const struct parse_report *r = &job->lists[i].report;
		cJSON *feed = cJSON_CreateObject();
		cJSON_AddItemToArray(feeds, feed);
		cJSON_AddStringToObject(feed, "name", job->lists[i].name);
		cJSON_AddStringToObject(feed, "format", r->format->name);
		cJSON_AddNumberToObject(feed, "names", (double)job->lists[i].entries);
		cJSON_AddNumberToObject(feed, "lines", (double)r->lines);
		cJSON_AddNumberToObject(feed, "rejected", (double)r->rejected);
		cJSON *rejects = cJSON_AddObjectToObject(feed, "rejects");
		for (int j = 0; j < FEED_REJECT_REASONS; j++)
			if (r->rejects[j].count)
				cJSON_AddNumberToObject(rejects, feed_reject_words[j],
							(double)r->rejects[j].count);
	}
	cJSON_AddNumberToObject(root, "names", (double)job->stats.names);
	cJSON_AddNumberToObject(root, "entries", (double)job->stats.entries);
	cJSON_AddNumberToObject(root, "octets", (double)job->stats.file_octets);
	cJSON_AddNumberToObject(root, "octets_a_name", compile_octets_a_name(job));
	cJSON_AddNumberToObject(root, "crc32c", job->stats.crc32c);
	cJSON_AddNumberToObject(root, "seconds", job->seconds);
	cJSON_AddNumberToObject(root, "peak_mib", job->peak_mib);
	char *text = cJSON_PrintUnformatted(root);
	if (text)
		puts(text);
	free(text);
	cJSON_Delete(root);
}

static int compile_options(int argc, char **argv, struct compile_job *job)
{
	static const struct option options[] = {
		{"format", required_argument, NULL, 'f'}, {"column", required_argument, NULL, 'c'},
		{"path", required_argument, NULL, 'p'},	  {"url-host", no_argument, NULL, 'u'},
		{"json", no_argument, NULL, 'j'},	  {0},
	};
	int option;
	optind = 1;
	while ((option = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (option == 'o') {
			job->out = optarg;
		} else if (option == 'j') {
			job->json = true;
		} else if (option == 'c') {
			job->hints.column = optarg;
		} else if (option == 'p') {
			job->hints.path = optarg;
		} else if (option == 'u') {
			job->hints.url_host = true;
		} else if (option == 'f') {
			job->format = feed_format_find(optarg);
			if (!job->format && strcmp(optarg, "auto") != 0) {
				fprintf(stderr, "baleen feeds compile: unknown format \"%s\"\n",
					optarg);
				return 2;
			}
		} else {
			return 2;
		}
	}
	if (!job->out || optind == argc) {
		fprintf(stderr, "usage: baleen feeds compile -o OUT.mdb [--format F] [--column C] "
				"[--path P] [--url-host] [--json] FILE...\n");
		return 2;
	}
	return 0;
}

static void compile_clean(struct compile_job *job)
{
	for (size_t i = 0; i < job->count && job->lists; i++) {
		if (job->lists[i].feedfile)
			unlink(job->lists[i].feedfile);
		free(job->lists[i].feedfile);
	}
	if (job->folder)
		rmdir(job->folder);
	free(job->folder);
	free(job->lists);
}

int cmd_feeds_compile(int argc, char **argv)
{
	struct compile_job job = {0};
	int code = compile_options(argc, argv, &job);
	if (code)
		return code;
	job.count = (size_t)(argc - optind);
	if (job.count > FEEDS_MAX) {
		fprintf(stderr, "baleen feeds compile: more than %d lists\n", FEEDS_MAX);
		return 2;
	}
	job.lists = calloc(job.count, sizeof(*job.lists));
	if (asprintf(&job.folder, "%s.tmp.XXXXXX", job.out) < 0)
		job.folder = NULL;
	if (!job.lists || !job.folder || !mkdtemp(job.folder)) {
		fprintf(stderr, "%s: %s\n", job.out, strerror(errno));
		code = 1;
	}
	for (size_t i = 0; i < job.count && code == 0; i++)
		code = compile_name_list(&job, i, argv[optind + (int)i]);
	if (code == 0 && compile_all(&job) < 0)
		code = 1;
	if (code == 0 && job.json)
		compile_print_json(&job);
	else if (code == 0)
		compile_print(&job);
	compile_clean(&job);
	return code;
}
