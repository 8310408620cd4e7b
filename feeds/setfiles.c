/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and numbers of set files. Runs in the fetcher, which alone removes, and in offline
 * commands, which only look. Invariant: a number is never used for two different sets.
 */
#include "feeds/setfiles.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *setfiles_path(const char *state, uint64_t number, const char *ending)
{
	char *path;
	if (asprintf(&path, "%s/sets/domains.%" PRIu64 ".%s", state, number, ending) < 0)
		return NULL;
	return path;
}

static DIR *setfiles_open(const char *state)
{
	char *path;
	if (asprintf(&path, "%s/sets", state) < 0)
		return NULL;
	DIR *folder = opendir(path);
	free(path);
	return folder;
}

/* The number in "domains.N.<ending>"; 0: another file. */
static uint64_t setfiles_number(const char *name, const char **ending)
{
	char *end;
	if (strncmp(name, "domains.", 8) != 0 || name[8] < '1' || name[8] > '9')
		return 0;
	uint64_t number = strtoull(name + 8, &end, 10);
	if (*end != '.')
		return 0;
	*ending = end + 1;
	return number;
}

uint64_t setfiles_newest(const char *state, uint64_t below)
{
	DIR *folder = setfiles_open(state);
	uint64_t newest = 0;
	const char *ending;
	struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		uint64_t number = setfiles_number(entry->d_name, &ending);
		if (number > newest && number < below && strcmp(ending, "mdb") == 0)
			newest = number;
	}
	if (folder)
		closedir(folder);
	return newest;
}

void setfiles_clean(const char *state, uint64_t keep)
{
	uint64_t before = setfiles_newest(state, keep);
	DIR *folder = setfiles_open(state);
	const char *ending;
	struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		uint64_t number = setfiles_number(entry->d_name, &ending);
		if (number == 0)
			continue;
		bool whole = strcmp(ending, "mdb") == 0 || strcmp(ending, "json") == 0;
		if (!whole || (number < keep && number != before))
			unlinkat(dirfd(folder), entry->d_name, 0);
	}
	if (folder)
		closedir(folder);
}
