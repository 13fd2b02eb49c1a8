/* finish_test.c - when the controller reports to its supervisor that the run has ended. After this
 * report the supervisor does not restart the controller. */
#include <unistd.h>

#include "base/tests/test.h"
#include "controller/members/finish.h"
#include "controller/run/phase.h"
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

/* Returns true if the supervisor was notified that the run is over. Closes c->run.supervisor. */
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

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* If the controller dies before everything is written, the supervisor may restart it. The new
 * controller finds that the run is done, and ends. */
FIXTURE_TEST(a_finished_run_may_die_until_all_is_written)
{
	struct controller *c = with_supervisor(state);

	controller_finish(&c->members, 0, "done");
	assert_false(was_notified(c));
	c = with_supervisor(state);
	controller_closed(&c->run);
	assert_true(was_notified(c));
}

/* The agents have already been ordered to end, so a restarted controller would wait for them in
 * vain. */
FIXTURE_TEST(a_stopped_run_ends_at_once)
{
	struct controller *c = with_supervisor(state);

	c->run.committed = 8;
	controller_finish(&c->members, 0, "stopped by a signal");
	assert_true(was_notified(c));
}

FIXTURE_TEST(a_failed_run_ends_at_once)
{
	struct controller *c = with_supervisor(state);

	controller_finish(&c->members, 1, "out of memory");
	assert_true(was_notified(c));
}

/* If a controller cannot write its record, the supervisor restarts it, because the next controller
 * may be able to write. */
FIXTURE_TEST(a_run_that_cannot_be_recorded_may_be_resumed)
{
	struct controller *c = with_supervisor(state);

	controller_unrecorded(&c->members, "no space");
	controller_closed(&c->run);
	assert_false(was_notified(c));
}
