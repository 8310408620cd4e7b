/* SPDX-License-Identifier: Apache-2.0 */
/* core/process/process_table.c: rows are claimed once, and only children are taken for children. */
#include "core/process/process_table.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void rows_come_and_go(void **state)
{
	(void)state;
	struct shm *s = shm_private(2, 0);
	struct shm_process *a = process_add(s, ROLE_WORKER, 3, 1, 100);
	assert_non_null(a);
	assert_ptr_equal(process_find(s, 100), a);
	assert_int_equal(a->state, PROCESS_STARTING);
	process_state(a, PROCESS_SERVING);
	process_replace(a, 101);
	assert_int_equal(a->restarts, 1);
	assert_int_equal(a->state, PROCESS_STARTING);
	assert_null(process_find(s, 100));
	process_remove(a);
	assert_null(process_find(s, 101));
	/* A full table is no harm. */
	for (int i = 0; i < SHM_PROCESSES_MAX; i++)
		assert_non_null(process_add(s, ROLE_WORKER, 1, 0, 1000 + i));
	struct shm_process *none = process_add(s, ROLE_WORKER, 1, 0, 5000);
	assert_null(none);
	process_replace(none, 1);
	process_state(none, PROCESS_SERVING);
	process_remove(none);
	shm_unmap(s);
}

static void each_claims_its_own_row(void **state)
{
	(void)state;
	struct shm *s = shm_private(2, 0);
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			for (int k = 0; k < 20; k++)
				process_add(s, ROLE_WORKER, 1, 0, 1000 + i * 100 + k);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 20; k++)
			assert_non_null(process_find(s, 1000 + i * 100 + k));
	shm_unmap(s);
}

static void only_a_child_is_a_child(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		/* A name that looks like the end of the field. */
		prctl(PR_SET_NAME, ") S 1 (");
		pause();
		_exit(0);
	}
	assert_true(process_is_child(pid));
	assert_false(process_is_child(getpid()));
	assert_false(process_is_child(1));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(process_is_child(pid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_and_go),
		cmocka_unit_test(each_claims_its_own_row),
		cmocka_unit_test(only_a_child_is_a_child),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
