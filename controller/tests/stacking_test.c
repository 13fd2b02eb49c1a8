/* stacking_test.c - when stages may start from their neighbours, and which replicas lack the copy
 * for it. The cluster has two stages; the second one starts from the first. */

#include "base/tests/test.h"
#include "controller/tests/under_way.h"
#include "controller/weights/stacking.h"

enum { SOURCE = 0, STACKED = 1, FROM = 1 << SOURCE };

static void give_copy(struct controller *c, int node)
{
	struct member_copy *copy = &c->members.list[node].copy;

	copy->stage = SOURCE;
	copy->state = COPY_WHOLE;
	copy->iterations = c->run.committed;
	copy->sum_state = COPY_SUM_REPORTED;
}

/* All replicas of the second stage have a copy of the first, and the next commit may stack. */
static struct controller *complete(void **state)
{
	struct controller *c = *state;

	c->run.committed = 7;
	c->run.wanted.stack = true;
	c->run.wanted.path_length = 2;
	for (int i = DATA; i < NODES; i++)
		give_copy(c, i);
	return c;
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

FIXTURE_TEST(the_stages_start_when_each_has_a_copy)
{
	struct controller *c = complete(state);

	assert_true(stacking_ready(&c->weights));
	assert_int_equal(stacking_due(&c->weights), FROM);
	c->run.wanted.path_length = 1; /* the next iteration does not visit the second stage */
	assert_int_equal(stacking_due(&c->weights), 0);
}

FIXTURE_TEST(one_replica_with_a_copy_is_enough)
{
	struct controller *c = complete(state);

	for (int i = DATA + 1; i < NODES; i++)
		c->members.list[i].copy.stage = -1;
	assert_int_equal(stacking_due(&c->weights), FROM);
	assert_false(stacking_ready(&c->weights)); /* the others can still fetch theirs */
	c->members.list[DATA].copy.stage = -1;
	assert_int_equal(stacking_due(&c->weights), 0);
}

/* A copy without the last sum, or of an earlier commit, would start the stage from other weights
 * than the copies of its other replicas. */
FIXTURE_TEST(a_replica_lacks_a_copy_that_is_not_up_to_date)
{
	struct controller *c = complete(state);
	struct member *m = &c->members.list[DATA];

	assert_false(stacking_lacks(&c->run, m, FROM));
	m->copy.sum_state = COPY_SUM_ORDERED;
	assert_true(stacking_lacks(&c->run, m, FROM));
	m->copy.sum_state = COPY_SUM_REPORTED;
	m->copy.iterations--;
	assert_true(stacking_lacks(&c->run, m, FROM));
	m->copy.iterations++;
	m->copy.state = COPY_FETCHING;
	assert_true(stacking_lacks(&c->run, m, FROM));
	m->copy.stage = -1;
	assert_true(stacking_lacks(&c->run, m, FROM));
	assert_false(stacking_lacks(&c->run, m, 0)); /* an ordinary commit needs no copy */
	assert_false(stacking_lacks(&c->run, &c->members.list[0], FROM)); /* of the first stage */
}

FIXTURE_TEST(a_copy_for_stacking_is_kept_until_the_commit)
{
	struct controller *c = complete(state);
	struct member *m = &c->members.list[DATA];

	assert_false(stacking_needs(&c->run, m)); /* it is an ordinary standby copy */
	m->copy.is_for_stacking = true;
	assert_true(stacking_needs(&c->run, m));
	m->weights.hash = 77; /* the node has reported the weights of the commit that stacked */
	c->run.wanted.stack = false;
	assert_false(stacking_needs(&c->run, m));
}
