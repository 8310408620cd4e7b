/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process titles: Linux shows the memory in which the kernel laid the arguments and, behind them,
 * the environment; whoever overwrites it has a title. Every process. Invariant: writes only between
 * the first argument's begin and the end of what was contiguous at title_init.
 */
#include "core/process/title.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static char *title_begin;
static size_t title_room;

void title_init(int argc, char **argv)
{
	if (argc < 1)
		return;
	char *end = argv[0];
	for (int i = 0; i < argc && argv[i] == end; i++)
		end += strlen(argv[i]) + 1;
	size_t count = 0;
	while (environ[count]) {
		if (environ[count] == end)
			end += strlen(environ[count]) + 1;
		count++;
	}
	/* Arguments and variables must live on elsewhere before their memory becomes the title. */
	char **moved = calloc(count + 1, sizeof(*moved));
	if (!moved)
		return;
	for (size_t i = 0; i < count; i++) {
		moved[i] = strdup(environ[i]);
		if (!moved[i])
			abort();
	}
	char *begin = argv[0];
	for (int i = 0; i < argc; i++) {
		argv[i] = strdup(argv[i]);
		if (!argv[i])
			abort();
	}
	environ = moved;
	title_begin = begin;
	title_room = (size_t)(end - begin);
}

void title_set(const char *format, ...)
{
	char text[64];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);

	log_set_process(text);
	prctl(PR_SET_NAME, text);
	if (!title_begin || title_room < 2)
		return;
	memset(title_begin, 0, title_room);
	snprintf(title_begin, title_room - 1, "baleen: %s", text);
}
