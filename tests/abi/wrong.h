/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin in which one thing is wrong: the file that includes this says what, by defining some of
 * the words below before.
 */
#include <baleen/plugin.h>

#include <stdio.h>

#ifndef WRONG_SIZE
#define WRONG_SIZE sizeof(struct baleen_plugin)
#endif
#ifndef WRONG_MAJOR
#define WRONG_MAJOR BALEEN_PLUGIN_MAJOR
#endif
#ifndef WRONG_MINOR
#define WRONG_MINOR BALEEN_PLUGIN_MINOR
#endif
#ifndef WRONG_NAME
#define WRONG_NAME "wrong"
#endif
#ifndef WRONG_KIND
#define WRONG_KIND BALEEN_FILTER
#endif
#ifndef WRONG_FIELDS
#define WRONG_FIELDS .on_query = pass
#endif
#ifndef WRONG_DESCRIPTOR
#define WRONG_DESCRIPTOR &plugin
#endif

__attribute__((unused)) static enum baleen_verdict pass(struct baleen_call *call)
{
	(void)call;
	return BALEEN_PASS;
}

__attribute__((unused)) static enum baleen_verdict block(struct baleen_call *call)
{
	(void)call;
	return BALEEN_BLOCK;
}

__attribute__((unused)) static int refuse(const struct baleen_host *host, const void *config,
					  void *worker, char *error, size_t error_size)
{
	(void)host;
	(void)config;
	(void)worker;
	snprintf(error, error_size, "the sun is not out");
	return -1;
}

__attribute__((unused)) static int refuse_options(const struct baleen_host *host, void *config,
						  char *error, size_t error_size)
{
	(void)host;
	(void)config;
	snprintf(error, error_size, "the moon is not out");
	return -1;
}

#ifdef WRONG_OPTIONS
static const struct baleen_option options[] = {WRONG_OPTIONS, {0}};
#endif

__attribute__((unused)) static const struct baleen_plugin plugin = {
	.size = WRONG_SIZE,
	.major = WRONG_MAJOR,
	.minor = WRONG_MINOR,
	.name = WRONG_NAME,
	.version = "1",
	.summary = "Wrong on purpose",
	.kind = WRONG_KIND,
#ifdef WRONG_OPTIONS
	.options = options,
	.config_size = 8,
#endif
	WRONG_FIELDS,
};

const struct baleen_plugin *baleen_plugin_entry(const struct baleen_host *host)
{
	(void)host;
	return WRONG_DESCRIPTOR;
}
