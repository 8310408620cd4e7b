/* SPDX-License-Identifier: Apache-2.0 */
/* core/process/link.c: whole messages of known kinds, with or without a descriptor, or nothing. */
#include "core/process/link.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int pair[2];

static int setup(void **state)
{
	(void)state;
	return link_pair(pair);
}

static int teardown(void **state)
{
	(void)state;
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static void a_message_arrives_whole(void **state)
{
	(void)state;
	static struct link_message m, got;
	link_message_init(&m, LINK_OUTCOME, "%s:%d: wrong", "x.yaml", 3);
	m.serial = 77;
	m.code = -EINVAL;
	assert_int_equal(link_receive(pair[1], &got, NULL), -EAGAIN);
	assert_int_equal(link_send(pair[0], &m, -1), 0);
	assert_int_equal(link_receive(pair[1], &got, NULL), 1);
	assert_string_equal(got.text, "x.yaml:3: wrong");
	assert_int_equal(got.serial, 77);
	assert_int_equal(got.code, -EINVAL);
}

static void a_text_too_long_is_cut(void **state)
{
	(void)state;
	static struct link_message m;
	static char text[LINK_TEXT_MAX * 2];
	memset(text, 'x', sizeof(text) - 1);
	link_message_init(&m, LINK_FAILED, "%s", text);
	assert_int_equal(strlen(m.text), LINK_TEXT_MAX - 1);
}

static void a_descriptor_travels(void **state)
{
	(void)state;
	static struct link_message m, got;
	int ends[2], fd = -1;
	char c = 0;
	assert_int_equal(pipe(ends), 0);
	link_message_init(&m, LINK_TAIL, "{}");
	assert_int_equal(link_send(pair[0], &m, ends[1]), 0);
	close(ends[1]);
	assert_int_equal(link_receive(pair[1], &got, &fd), 1);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "!", 1), 1);
	assert_int_equal(read(ends[0], &c, 1), 1);
	assert_int_equal(c, '!');
	close(fd);

	/* Nobody wants it: it must not stay open. */
	assert_int_equal(pipe(ends + 0), 0);
	assert_int_equal(link_send(pair[0], &m, ends[1]), 0);
	close(ends[1]);
	assert_int_equal(link_receive(pair[1], &got, NULL), 1);
	assert_int_equal(read(ends[0], &c, 1), 0);
	close(ends[0]);
}

static void damage_is_refused(void **state)
{
	(void)state;
	static struct link_message m, got;
	link_message_init(&m, LINK_READY, "%s", "");
	assert_int_equal(send(pair[0], &m, sizeof(m) - 1, 0), sizeof(m) - 1);
	assert_int_equal(link_receive(pair[1], &got, NULL), -EBADMSG);
	m.kind = LINK_KINDS;
	assert_int_equal(link_send(pair[0], &m, -1), 0);
	assert_int_equal(link_receive(pair[1], &got, NULL), -EBADMSG);
	/* Unterminated texts are terminated. */
	m.kind = LINK_READY;
	memset(m.text, 'x', sizeof(m.text));
	memset(m.name, 'x', sizeof(m.name));
	assert_int_equal(link_send(pair[0], &m, -1), 0);
	assert_int_equal(link_receive(pair[1], &got, NULL), 1);
	assert_int_equal(strlen(got.text), sizeof(got.text) - 1);
	assert_int_equal(strlen(got.name), sizeof(got.name) - 1);
}

static void the_end_is_seen_and_a_full_link_does_not_block(void **state)
{
	(void)state;
	static struct link_message m, got;
	int r = 0;
	link_message_init(&m, LINK_READY, "%s", "");
	for (int i = 0; r == 0 && i < 10000; i++)
		r = link_send(pair[0], &m, -1);
	assert_int_equal(r, -EAGAIN);
	close(pair[0]);
	while ((r = link_receive(pair[1], &got, NULL)) == 1)
		;
	assert_int_equal(r, 0);
	assert_true(link_send(pair[1], &m, -1) < 0);
	pair[0] = dup(pair[1]);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(a_message_arrives_whole),
		EACH(a_text_too_long_is_cut),
		EACH(a_descriptor_travels),
		EACH(damage_is_refused),
		EACH(the_end_is_seen_and_a_full_link_does_not_block),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
