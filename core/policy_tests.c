/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies' own tests; see the header. Runs in the compile child and in the user's process,
 * never in the daemon's. Invariant: a test that could not be asked has failed.
 */
#include "core/policy_tests.h"

#include "core/explain.h"
#include "core/rehearsal_set.h"

#include <errno.h>
#include <string.h>

/* True when the test holds. */
static bool passes(struct explain *e, const struct policy_test *t, struct diags *d)
{
	struct explain_request request = {
		.name = t->name,
		.type = t->type,
		.client = t->client,
		/* Without a client the test speaks of the group whose file holds it. */
		.has_group = addr_is_unspecified(&t->client),
		.group = t->group,
		/* They are about the policy, whoever may ask at all. */
		.any_client = true,
		.listener = t->listener,
		.transport = BALEEN_UDP,
		.has_time = t->has_time,
		.wall_s = t->wall_s,
		.answers = t->answers,
	};
	char error[EXPLAIN_ERROR_MAX] = "";
	struct explain_result result;

	int r = explain_decide(e, &request, &result, error);
	bool holds = r == 0 && strcmp(result.word, t->expect) == 0;
	if (r < 0)
		diag_error(d, t->file, t->line, t->column, "test cannot run: %s",
			   error[0] ? error : strerror(-r));
	else if (!holds)
		diag_error(d, t->file, t->line, t->column,
			   "test failed: %s is %s for group %s by %s%s%s (expected %s)",
			   result.name, result.word, result.group,
			   result.rule	   ? result.rule
			   : result.plugin ? result.plugin
					   : "no rule",
			   result.feed ? ", feed " : "", result.feed ? result.feed : "", t->expect);
	explain_fini(&result);
	return holds;
}

int policy_tests_run(struct generation *g, const char *set_path, struct diags *d,
		     struct policy_tests_count *out)
{
	char error[DOMSET_ERROR_MAX] = "";
	struct policy_tests_count count = {0};
	struct domset *set = NULL;
	struct explain *e = NULL;
	uint64_t number = 0;

	size_t tests = policy_test_count(g->policy);
	if (!tests && !set_path) {
		if (out)
			*out = count;
		return 0;
	}
	int r = rehearsal_set_open(g, set_path, &set, &number, error);
	if (r == 0)
		r = explain_new(g, set, number, NULL, &e, error);
	if (r < 0)
		diag_error(d, g->config.path, 0, 0, "the policies' tests cannot run: %s",
			   error[0] ? error : strerror(-r));
	for (size_t i = 0; r == 0 && i < tests; i++) {
		if (passes(e, policy_test(g->policy, i), d))
			count.passed++;
		else
			count.failed++;
	}
	if (e)
		explain_free(e);
	if (set)
		domset_close(set);
	if (out)
		*out = count;
	return r < 0 ? r : count.failed ? -EINVAL : 0;
}
