/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running the tests that policy files carry, by the code that decides in the daemon. `baleen check`
 * and the compile child (before every start and reload) call the same function: a policy whose own
 * tests fail is not activated.
 */
#ifndef BALEEN_CORE_POLICY_TESTS_H
#define BALEEN_CORE_POLICY_TESTS_H

#include "base/diag.h"
#include "core/generation.h"

#include <stddef.h>

struct policy_tests_count {
	size_t passed;
	size_t failed;
};

/*
 * Run them all on the set at `set_path` (NULL: core/rehearsal_set.h finds one). Each failure is an
 * error in `d` at the test's place. 0; -EINVAL when one failed; -errno when they could not run,
 * with an error in `d` too. `out` may be NULL.
 */
int policy_tests_run(struct generation *g, const char *set_path, struct diags *d,
		     struct policy_tests_count *out);

#endif
