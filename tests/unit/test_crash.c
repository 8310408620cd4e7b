/* SPDX-License-Identifier: Apache-2.0 */
/* core/process/crash.c: breadcrumbs true and damaged, breakers, queries of death. The chain and the
 * cache are stood in for. */
#include "core/process/crash.h"

#include "base/log.h"
#include "core/chain/chain.h"
#include "core/dns/cache.h"
#include "core/shm_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned swept;

size_t chain_count(const struct chain *c)
{
	(void)c;
	return 2;
}

const char *chain_instance(const struct chain *c, size_t index)
{
	(void)c;
	return index ? "blocklist" : "ratelimit";
}

size_t cache_sweep(void *memory, size_t size, unsigned owner)
{
	(void)memory;
	(void)size;
	swept = owner;
	return 0;
}

static struct generation generation;

static struct breadcrumb *crumb(struct shm *s)
{
	static const uint8_t name[] = "\3bad\7example";
	struct breadcrumb *b = shm_breadcrumb(s, shm_slot(s, generation.number, 1));
	memset(b, 0, sizeof(*b));
	b->pid = 4242;
	b->hook = CRUMB_QUERY;
	b->plugin = 1;
	b->type = 28;
	b->name_length = sizeof(name);
	memcpy(b->name, name, sizeof(name));
	return b;
}

static void the_query_is_remembered_and_the_slot_is_free(void **state)
{
	(void)state;
	struct shm *s = shm_private(2, 0);
	struct breadcrumb *b = crumb(s);
	struct shm_block out;
	crash_account(s, &generation, 1, 4242, 11, false);
	assert_true(shm_block_read(&shm_deaths(s)[0], &out));
	assert_int_equal(out.type, 28);
	assert_int_equal(out.length, 13);
	assert_memory_equal(out.name, "\3bad\7example", 13);
	assert_true(*shm_deaths_used(s) != 0);
	assert_int_equal(b->pid, 0);
	assert_int_equal(b->hook, CRUMB_NONE);
	assert_int_equal(swept, shm_slot(s, generation.number, 1));
	/* The same again takes no second place. */
	(void)crumb(s);
	crash_account(s, &generation, 1, 4242, 11, false);
	assert_true(shm_block_read(&shm_deaths(s)[0], &out));
	assert_false(shm_block_read(&shm_deaths(s)[1], &out));
	shm_unmap(s);
}

static void the_table_keeps_the_newest(void **state)
{
	(void)state;
	struct shm *s = shm_private(2, 0);
	struct shm_block out;
	for (unsigned i = 0; i < SHM_QOD_MAX + 10; i++) {
		crumb(s)->type = (uint16_t)(100 + i);
		crash_account(s, &generation, 1, 4242, 11, false);
	}
	bool found = false;
	unsigned used = 0;
	for (unsigned i = 0; i < SHM_QOD_MAX; i++)
		if (shm_block_read(&shm_deaths(s)[i], &out)) {
			used++;
			found |= out.type == 100 + SHM_QOD_MAX + 9;
		}
	assert_int_equal(used, SHM_QOD_MAX);
	assert_true(found);
	shm_unmap(s);
}

static void a_plugin_leaves_the_chain_at_its_limit(void **state)
{
	(void)state;
	struct shm *s = shm_private(2, 0);
	struct shm_breaker *b = shm_breakers(s, generation.number);
	for (int i = 0; i < 2; i++) {
		(void)crumb(s);
		crash_account(s, &generation, 1, 4242, 11, i == 1);
		assert_int_equal(b[1].open, 0);
	}
	(void)crumb(s);
	crash_account(s, &generation, 1, 4242, 11, false);
	assert_int_equal(b[1].open, 1);
	assert_true(b[1].retry_ms > b[1].window_ms);
	assert_int_equal(b[0].crashes, 0);
	shm_unmap(s);
}

static void a_crash_outside_plugins_blames_none(void **state)
{
	(void)state;
	struct shm *s = shm_private(2, 0);
	struct shm_block out;
	crumb(s)->hook = CRUMB_NONE;
	crash_account(s, &generation, 1, 4242, 9, false);
	assert_int_equal(shm_breakers(s, generation.number)[1].crashes, 0);
	assert_false(shm_block_read(&shm_deaths(s)[0], &out));
	shm_unmap(s);
}

static void a_damaged_breadcrumb_is_harmless(void **state)
{
	(void)state;
	struct shm *s = shm_private(2, 0);
	srand(3);
	for (int i = 0; i < 5000; i++) {
		uint8_t *b = (uint8_t *)crumb(s);
		for (int k = 0; k < 1 + i % 8; k++)
			b[(size_t)rand() % sizeof(struct breadcrumb)] = (uint8_t)rand();
		crash_account(s, &generation, 1, 4242, rand() & 0x7f, false);
		shm_breakers(s, generation.number)[0].open = 0;
		shm_breakers(s, generation.number)[1].open = 0;
	}
	/* What was remembered is well formed. */
	for (unsigned i = 0; i < SHM_QOD_MAX; i++) {
		struct shm_block out;
		unsigned labels;
		if (shm_block_read(&shm_deaths(s)[i], &out))
			assert_int_equal(name_measure(out.name, out.length, &labels), out.length);
	}
	shm_unmap(s);
}

static int setup(void **state)
{
	(void)state;
	generation.number = 4;
	for (int i = 0; i < 2; i++) {
		generation.config.chain[i].max_crashes = 3;
		generation.config.chain[i].within_ms = 600000;
		generation.config.chain[i].retry_after_ms = 600000;
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_query_is_remembered_and_the_slot_is_free),
		cmocka_unit_test(the_table_keeps_the_newest),
		cmocka_unit_test(a_plugin_leaves_the_chain_at_its_limit),
		cmocka_unit_test(a_crash_outside_plugins_blames_none),
		cmocka_unit_test(a_damaged_breadcrumb_is_harmless),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
