/* SPDX-License-Identifier: Apache-2.0 */
/* Any octets as a policy file: refused with errors, or loaded; then asked, traced and linted. */
#include "policies/policy.h"

#include "sealed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_rule(void *context, uint32_t rule, bool matches, const char *why)
{
	(void)matches;
	if (rule >= policy_rule_count(context) || !why)
		abort();
}

static void ask(const struct policy *p, const char *text)
{
	struct name name;
	struct domset_result feeds = {.feeds = {{3}}};
	struct policy_outcome o;
	struct addr address;
	if (name_parse(text, strlen(text), &name) < 0 || addr_parse("192.0.2.7", &address) < 0)
		abort();
	feeds.labels = name.labels;
	struct policy_question q = {.name = name.wire,
				    .length = name.length,
				    .labels = name.labels,
				    .type = 1,
				    .wall_s = 1772445600,
				    .feeds = &feeds};
	for (uint32_t g = 0; g < policy_group_count(p); g++) {
		policy_question(p, g, &q, &o);
		if (o.action != POLICY_PASS && o.rule >= policy_rule_count(p))
			abort();
		if (o.match_labels > name.labels)
			abort();
		if ((o.action == POLICY_BLOCK || o.action == POLICY_REWRITE) && !o.answer)
			abort();
		policy_address(p, g, &q, &address, &o);
		policy_trace_question(p, g, &q, on_rule, (void *)(uintptr_t)p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct feed items[] = {
		{.name = "ads", .number = 0, .category = "advertising", .confidence = 100},
		{.name = "c2", .number = 1, .category = "malware", .kind = FEED_KIND_THREAT}};
	static const struct feeds feeds = {.items = items,
					   .count = 2,
					   .enforced_blocklists = {{1}},
					   .enforced = {{3}}};
	static const char *const plugins[] = {"blocklist", "ratelimit", NULL};
	static const char *const listeners[] = {"lab", NULL};
	struct policy_context context = {.feeds = &feeds,
					 .plugin_names = plugins,
					 .listener_names = listeners,
					 .blocklist_in_chain = true};
	struct arena arena;
	struct diags d;
	struct policy *p = NULL;
	const char *path = sealed_path();
	struct source *source = sealed_source(path, sealed_folder, data, size);
	arena_init(&arena);
	diag_init(&d);
	context.config_folder = sealed_folder;
	int result = policy_load(source, sealed_folder, &context, &arena, &d, &p);
	sealed_check(&d, result);
	if (result == 0) {
		policy_lint(p, &d);
		ask(p, "www.example.com");
		ask(p, ".");
	}
	source_free(source);
	arena_fini(&arena);
	diag_fini(&d);
	return 0;
}
