/* Tests which orders to save its stage an agent accepts, and which it refuses. */

#include "agent/tests/lone_agent.h"
#include "base/tests/test.h"

enum { STAGE = 1, COMMITTED = 4 };

/* An agent without a worker or a controller. Only the number of its messages is checked. */
static int begin(void **state)
{
	struct agent *a = lone_agent_new(1, 3);
	struct error err;

	a->options.run_dir = "/run/dir";
	a->held.standing = STAND_READY;
	a->held.stage = STAGE;
	a->held.committed = COMMITTED;
	assert_int_equal(save_new(&a->modules.save, &err), 0);
	*state = a;
	return 0;
}

static int end(void **state)
{
	struct agent *a = *state;

	save_free(a->modules.save);
	lone_agent_free(a);
	return 0;
}

static void save(struct agent *a, uint64_t iteration)
{
	struct msg_save m = { .iteration = iteration };

	save_begin(a, &m, 0);
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, end)

FIXTURE_TEST(held_weights_are_saved)
{
	struct agent *a = *state;
	struct job job;

	save(a, COMMITTED);
	assert_true(save_wanted(a));
	assert_true(save_next_job(a, &job));
	assert_int_equal(job.kind, JOB_STATE);
	assert_true(job.for_checkpoint);
	assert_false(save_next_job(a, &job));
	assert_int_equal(a->tally.sequence, 0);
}

FIXTURE_TEST(other_weights_are_not_saved)
{
	struct agent *a = *state;

	save(a, COMMITTED - 1);
	assert_int_equal(a->tally.sequence, 1);
	assert_false(save_wanted(a));
}

/* A restarted controller repeats the order during the save. The agent answers when the file is
 * written. */
FIXTURE_TEST(a_repeated_order_during_a_save_is_not_refused)
{
	struct agent *a = *state;
	struct job job;

	save(a, COMMITTED);
	save(a, COMMITTED);
	assert_true(save_next_job(a, &job));
	save(a, COMMITTED);
	assert_int_equal(a->tally.sequence, 0);
	a->held.committed++;
	save(a, COMMITTED + 1);
	assert_int_equal(a->tally.sequence, 1);
}

/* The agent was assigned another stage before the worker was free. */
FIXTURE_TEST(replaced_weights_are_not_saved)
{
	struct agent *a = *state;
	struct job job;

	for (int other = 0; other < 2; other++) {
		a->held.stage = STAGE;
		a->held.committed = COMMITTED;
		save(a, COMMITTED);
		a->held.standing = STAND_PREPARING;
		assert_false(save_next_job(a, &job));
		assert_true(save_wanted(a));
		a->held.stage = other ? STAGE + 1 : STAGE;
		a->held.committed = other ? COMMITTED : COMMITTED - 2;
		a->held.standing = STAND_READY;
		assert_false(save_next_job(a, &job));
		assert_false(save_wanted(a));
		assert_int_equal(a->tally.sequence, other + 1);
	}
}
