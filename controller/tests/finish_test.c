/* finish_test.c - when the controller reports to its supervisor that the run has ended, so that
 * the supervisor does not restart it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "controller/history/finish.h"
#include "controller/tests/under_way.h"

static int heard;

static struct controller *with_supervisor(void **state)
{
	struct controller *c = *state;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	heard = ends[0];
	c->run.supervisor = ends[1];
	c->run.options.iterations = 9;
	c->run.committed = 9;
	return c;
}

/* Returns true if the supervisor was notified before the controller exited. Closes
 * c->run.supervisor. */
static bool was_notified(struct controller *c)
{
	char line[16];
	ssize_t n;

	close(c->run.supervisor);
	c->run.supervisor = -1;
	n = read(heard, line, sizeof(line));
	close(heard);
	return n >= 4;
}

/* A new controller would find that the run is done, and end. */
static void a_finished_run_may_die_until_all_is_written(void **state)
{
	struct controller *c = with_supervisor(state);

	controller_finish(&c->members, 0, "done");
	assert_false(was_notified(c));
	c = with_supervisor(state);
	controller_closed(&c->run);
	assert_true(was_notified(c));
}

/* A new controller would wait for agents that have already received the order to end. */
static void a_stopped_run_ends_at_once(void **state)
{
	struct controller *c = with_supervisor(state);

	c->run.committed = 8;
	controller_finish(&c->members, 0, "stopped by a signal");
	assert_true(was_notified(c));
}

static void a_failed_run_ends_at_once(void **state)
{
	struct controller *c = with_supervisor(state);

	controller_finish(&c->members, 1, "out of memory");
	assert_true(was_notified(c));
}

/* A controller that cannot write its record is restarted, because the next one may be able to
 * write. */
static void a_run_that_cannot_be_recorded_may_be_resumed(void **state)
{
	struct controller *c = with_supervisor(state);

	controller_unrecorded(&c->members, "no space");
	controller_closed(&c->run);
	assert_false(was_notified(c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, under_way_begin, under_way_end)
		TEST(a_finished_run_may_die_until_all_is_written),
		TEST(a_stopped_run_ends_at_once),
		TEST(a_failed_run_ends_at_once),
		TEST(a_run_that_cannot_be_recorded_may_be_resumed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
