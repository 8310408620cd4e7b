/* SPDX-License-Identifier: Apache-2.0 */
/* Policies from texts, with feeds made by hand: shared by the tests of policies/. */
#ifndef BALEEN_TESTS_POLICY_FIXTURE_H
#define BALEEN_TESTS_POLICY_FIXTURE_H

#include "policies/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
	char folder[64];
	struct arena arena;
	struct diags diags;
	struct source *source;
	struct feeds feeds;
	struct policy *policy;
	int result;
};

/* ads, tracking: blocklists; ours: a blocklist without category; c2: a threat; new: in shadow. */
static const struct feed fixture_feeds[] = {
	{.name = "ads", .number = 0, .category = "advertising", .confidence = 100},
	{.name = "tracking", .number = 1, .category = "tracking", .confidence = 50},
	{.name = "ours", .number = 2, .category = "", .confidence = 100},
	{.name = "c2",
	 .number = 3,
	 .category = "malware",
	 .threat_type = "botnet",
	 .kind = FEED_KIND_THREAT,
	 .confidence = 80},
	{.name = "new", .number = 4, .category = "fresh", .mode = FEED_MODE_SHADOW},
};
enum { FEED_ADS, FEED_TRACKING, FEED_OURS, FEED_C2, FEED_NEW, FIXTURE_FEEDS };

static inline void fixture_begin(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	strcpy(f->folder, "/tmp/test_policy.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	arena_init(&f->arena);
	diag_init(&f->diags);
	f->source = source_disk();
	f->feeds.items = arena_memdup(&f->arena, fixture_feeds, sizeof(fixture_feeds));
	f->feeds.count = FIXTURE_FEEDS;
	for (unsigned i = 0; i < FIXTURE_FEEDS; i++) {
		if (fixture_feeds[i].mode != FEED_MODE_ENFORCE)
			continue;
		feedmask_add(&f->feeds.enforced, i);
		if (fixture_feeds[i].kind == FEED_KIND_BLOCKLIST)
			feedmask_add(&f->feeds.enforced_blocklists, i);
	}
}

static inline void fixture_file(struct fixture *f, const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/policies", f->folder);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/policies/%s", f->folder, name);
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static inline void fixture_load(struct fixture *f, const char *folder)
{
	static const char *const plugins[] = {"ratelimit", "blocklist", "threatfeed", NULL};
	static const char *const listeners[] = {"lab", NULL};
	struct policy_context context = {.feeds = &f->feeds,
					 .config_folder = f->folder,
					 .plugin_names = plugins,
					 .listener_names = listeners,
					 .blocklist_in_chain = true};
	f->result = policy_load(f->source, folder, &context, &f->arena, &f->diags, &f->policy);
}

/* One file, which must be good. */
static inline void fixture_policy(struct fixture *f, const char *text)
{
	char path[128];
	fixture_begin(f);
	fixture_file(f, "default.yaml", text);
	snprintf(path, sizeof(path), "%s/policies/", f->folder);
	fixture_load(f, path);
	if (f->result < 0)
		diag_print(&f->diags, stderr);
	assert_int_equal(f->result, 0);
}

static inline void fixture_end(struct fixture *f)
{
	char command[128];
	source_free(f->source);
	arena_fini(&f->arena);
	diag_fini(&f->diags);
	snprintf(command, sizeof(command), "rm -rf %s", f->folder);
	assert_int_equal(system(command), 0);
}

/* A question, and which feeds list its name. */
struct fixture_ask {
	struct name name;
	struct domset_result feeds;
	struct policy_question q;
};

static inline void fixture_ask(struct fixture_ask *a, const char *name, uint16_t type,
			       unsigned feeds, int64_t wall_s)
{
	assert_int_equal(name_parse(name, strlen(name), &a->name), 0);
	memset(&a->feeds, 0, offsetof(struct domset_result, at));
	a->feeds.labels = a->name.labels;
	a->feeds.feeds.words[0] = feeds;
	a->q = (struct policy_question){.name = a->name.wire,
					.length = a->name.length,
					.labels = a->name.labels,
					.type = type,
					.wall_s = wall_s,
					.feeds = &a->feeds};
}

/* The outcome for a name that the feeds of the mask list. */
static inline struct policy_outcome fixture_outcome(const struct fixture *f, uint32_t group,
						    const char *name, uint16_t type, unsigned feeds)
{
	struct fixture_ask a;
	struct policy_outcome out;
	fixture_ask(&a, name, type, feeds, 1772445600); /* Monday 2026-03-02 10:00 UTC */
	policy_question(f->policy, group, &a.q, &out);
	return out;
}

#endif
