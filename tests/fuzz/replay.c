/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one fuzz target over its corpus without a fuzzer: every file of the folders named, once.
 * Linked with each tests/fuzz/fuzz_*.c by `make test`; test program only. No corpus is a failure:
 * a replay that replays nothing must not look like a pass.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat st;

	if (!file || fstat(fileno(file), &st) != 0) {
		perror(path);
		return -1;
	}
	/* Exactly as large as the input, so that a sanitizer sees the first octet beyond it. */
	size_t size = (size_t)st.st_size;
	uint8_t *data = malloc(size ? size : 1);
	if (!data || fread(data, 1, size, file) != size) {
		perror(path);
		free(data);
		fclose(file);
		return -1;
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

static int replay_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	int count = 0;

	if (!dir) {
		perror(folder);
		return -1;
	}
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		char path[4096];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (replay_file(path) != 0) {
			closedir(dir);
			return -1;
		}
		count++;
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int count = replay_folder(argv[i]);
		if (count < 0)
			return 1;
		total += count;
	}
	printf("%d inputs\n", total);
	return total > 0 ? 0 : 1;
}
