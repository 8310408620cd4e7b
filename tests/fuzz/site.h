/* SPDX-License-Identifier: Apache-2.0 */
/* A small generation for fuzz targets that need one: no plugins, one feed, the built-in policy. */
#ifndef BALEEN_TESTS_FUZZ_SITE_H
#define BALEEN_TESTS_FUZZ_SITE_H

#include "base/diag.h"
#include "base/log.h"
#include "base/source.h"
#include "core/generation.h"
#include "core/metrics.h"
#include "core/shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void site_write(const char *folder, const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
}

static struct generation *site_load(void)
{
	static char folder[] = "/tmp/baleen-fuzz-XXXXXX";
	static const char config[] = "listen: [{address: \"127.0.0.1:5353\"}]\nworkers: 1\n"
				     "upstreams: {default: {servers: [127.0.0.9]}}\nplugins: []\n"
				     "feeds: [{name: ours, file: ours.txt, format: domains}]\n"
				     "state: .\ncontrol: control.sock\n";
	struct generation *g = NULL;
	struct diags d;
	char path[64];

	if (!mkdtemp(folder))
		abort();
	site_write(folder, "ours.txt", "ads.test\n");
	site_write(folder, "baleen.yaml", config);
	snprintf(path, sizeof(path), "%s/baleen.yaml", folder);
	struct shm *shm = shm_private(1, 1 << 20);
	if (!shm)
		abort();
	metrics_register(shm);
	diag_init(&d);
	if (generation_load(source_disk(), path, shm, 1, &d, &g) < 0) {
		diag_print(&d, stderr);
		abort();
	}
	diag_fini(&d); /* warnings, if any */
	(void)unlink(path);
	snprintf(path, sizeof(path), "%s/ours.txt", folder);
	(void)unlink(path);
	(void)rmdir(folder);
	return g;
}

#endif
