/* SPDX-License-Identifier: Apache-2.0 */
/* core/shm_block.c: entries that are torn, half-written or left by the dead are not there.
 */
#include "core/shm_block.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct shm_block entry(uint8_t fill)
{
	struct shm_block b = {.group = fill, .until_ms = fill, .type = fill, .length = 200};
	memset(b.name, fill, sizeof(b.name));
	memset(b.why, fill, sizeof(b.why));
	memset(b.plugin, fill, sizeof(b.plugin));
	return b;
}

static void written_is_read(void **state)
{
	(void)state;
	struct shm_block slot = {0}, value = entry(7), out;
	assert_false(shm_block_read(&slot, &out));
	assert_true(shm_block_write(&slot, &value));
	assert_true(shm_block_read(&slot, &out));
	assert_int_equal(out.type, 7);
	assert_memory_equal(out.name, value.name, sizeof(out.name));
	assert_memory_equal(out.why, value.why, sizeof(out.why));
}

static void any_flipped_bit_is_noticed(void **state)
{
	(void)state;
	struct shm_block slot = {0}, value = entry(9), out;
	assert_true(shm_block_write(&slot, &value));
	/* Every field, by an octet of it; padding may do as it likes. */
	static const size_t fields[] = {
		offsetof(struct shm_block, sequence), offsetof(struct shm_block, group),
		offsetof(struct shm_block, until_ms), offsetof(struct shm_block, type),
		offsetof(struct shm_block, length),   offsetof(struct shm_block, name) + 100,
		offsetof(struct shm_block, why) + 60, offsetof(struct shm_block, plugin) + 31,
		offsetof(struct shm_block, check),
	};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		((uint8_t *)&slot)[fields[i]] ^= 1;
		assert_false(shm_block_read(&slot, &out));
		((uint8_t *)&slot)[fields[i]] ^= 1;
		assert_true(shm_block_read(&slot, &out));
	}
}

static void a_dead_writers_slot_is_busy_until_swept(void **state)
{
	(void)state;
	struct shm_block slots[3] = {0}, value = entry(3), out;
	assert_true(shm_block_write(&slots[1], &value));
	slots[1].sequence++;
	assert_false(shm_block_read(&slots[1], &out));
	assert_false(shm_block_write(&slots[1], &value));
	shm_block_sweep(slots, 3);
	assert_true(shm_block_read(&slots[1], &out));
	assert_true(shm_block_write(&slots[1], &value));
	assert_int_equal(slots[0].sequence, 0);
}

/* Two processes write, one of them is killed now and then, one reads: never a mixture. */
static void a_mixture_is_never_believed(void **state)
{
	(void)state;
	struct shm_block *slot = mmap(NULL, sizeof(*slot), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(slot != MAP_FAILED);
	pid_t writers[2] = {0};
	unsigned good = 0;
	for (int round = 0; round < 200; round++) {
		for (unsigned w = 0; w < 2; w++) {
			if (writers[w])
				continue;
			writers[w] = fork();
			assert_true(writers[w] >= 0);
			for (uint8_t n = 1; writers[w] == 0; n = n == 255 ? 1 : n + 1) {
				struct shm_block value = entry(n);
				(void)shm_block_write(slot, &value);
			}
		}
		for (int i = 0; i < 2000; i++) {
			struct shm_block out;
			if (!shm_block_read(slot, &out))
				continue;
			struct shm_block want = entry((uint8_t)out.type);
			assert_memory_equal(out.name, want.name, sizeof(want.name));
			assert_memory_equal(out.plugin, want.plugin, sizeof(want.plugin));
			good++;
		}
		unsigned victim = (unsigned)round % 2;
		kill(writers[victim], SIGKILL);
		waitpid(writers[victim], NULL, 0);
		writers[victim] = 0;
		shm_block_sweep(slot, 1);
	}
	/* kill(0) would be everyone: the last round's victim has no pid any more. */
	for (unsigned w = 0; w < 2; w++)
		if (writers[w] > 0)
			kill(writers[w], SIGKILL);
	while (wait(NULL) > 0)
		;
	assert_true(good > 0);
	munmap(slot, sizeof(*slot));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_is_read),
		cmocka_unit_test(any_flipped_bit_is_noticed),
		cmocka_unit_test(a_dead_writers_slot_is_busy_until_swept),
		cmocka_unit_test(a_mixture_is_never_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
