/* stacking_test.c - how long a phase waits for the standby copies from which its stages start. */

#include "base/tests/test.h"
#include "controller/tests/under_way.h"
#include "controller/weights/stacking.h"

enum { FROM = 20 };

/* The second stage starts from the first stage in iteration FROM. The nodes of the second stage
 * fetch their copies. */
static int begin(void **state)
{
	struct controller *c = *state = under_way_of(NODES, EACH, 1);

	c->run.options.stack = c->run.wanted.stack = true;
	c->run.wanted.schedule =
		(struct skip_schedule){ 2, { { .from = 1, .skip = 1 }, { .from = FROM } } };
	c->run.committed = FROM - 3;
	c->run.iteration = FROM - 2;
	for (int i = 0; i < NODES; i++)
		under_way_keep_messages(c, &c->members.list[i]);
	stacking_turn(&c->backups);
	for (int i = DATA; i < NODES; i++)
		assert_int_equal(c->members.list[i].copy.stage, 0);
	return 0;
}

static void complete(struct controller *c, int node)
{
	c->members.list[node].copy.state = COPY_WHOLE;
	c->members.list[node].copy.iterations = c->run.committed;
}

TEST_WITH(a_phase_waits_three_iterations_for_all_copies, begin, under_way_end)
{
	struct controller *c = *state;

	complete(c, DATA);
	complete(c, DATA + 1);
	assert_false(stacking_ready(&c->backups));
	c->run.iteration = FROM + 1;
	assert_false(stacking_ready(&c->backups));
	c->run.iteration = FROM + 2;
	assert_true(stacking_ready(&c->backups));
	c->run.iteration = FROM - 2;
	complete(c, DATA + 2);
	assert_true(stacking_ready(&c->backups));
}

TEST_WITH(a_phase_waits_for_the_first_copy_of_a_stage, begin, under_way_end)
{
	struct controller *c = *state;

	c->run.iteration = FROM + 100;
	assert_false(stacking_ready(&c->backups));
	complete(c, DATA);
	assert_true(stacking_ready(&c->backups));
}
