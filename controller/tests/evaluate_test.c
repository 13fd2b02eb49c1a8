/* evaluate_test.c - which nodes compute a validation's microbatches, and which answers count. */

#include "base/tests/test.h"
#include "controller/iteration/evaluate.h"
#include "controller/members/member.h"
#include "controller/network/failed_links.h"
#include "controller/tests/under_way.h"

enum { BATCHES = 5 };

static struct controller *validates(void **state)
{
	struct controller *c = *state;

	c->run.options.eval_batches = BATCHES;
	c->run.committed = 7;
	evaluation_begin(&c->iteration);
	assert_int_equal(c->run.phase, PHASE_EVALUATING);
	return c;
}

static uint16_t node_of(const struct controller *c, uint32_t i, int stage)
{
	return c->iteration.evaluation.microbatches[i].route.nodes[stage];
}

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

FIXTURE_TEST(replicas_take_turns)
{
	struct controller *c = validates(state);

	for (uint32_t i = 0; i < BATCHES; i++)
		for (int s = 0; s < 2; s++)
			assert_int_equal(node_of(c, i, s), s * DATA + (int)i % DATA);
}

FIXTURE_TEST(dead_and_excluded_nodes_get_no_validation)
{
	struct controller *c = *state;

	c->members.list[0].state = MEMBER_JOINING;
	c->members.list[4].is_marked = true;
	validates(state);
	for (uint32_t i = 0; i < BATCHES; i++) {
		assert_int_equal(node_of(c, i, 0), 1 + i % 2);
		assert_int_equal(node_of(c, i, 1), i % 2 ? 5 : 3);
	}
}

/* A validation needs links in both directions, because the last stage sends its answer back to the
 * data node. */
FIXTURE_TEST(validation_avoids_cut_links)
{
	struct controller *c = *state;
	struct link_failure cut[2] = { { .from = 0, .to = 3, .active = true },
				       { .from = 4, .to = 1, .active = true } };
	struct link_failure *was = c->members.failed_links.of;

	c->members.failed_links.of = cut;
	c->members.failed_links.n = 2;
	validates(state);
	assert_int_equal(node_of(c, 0, 1), 4);
	assert_int_equal(node_of(c, 1, 1), 5);
	assert_int_equal(node_of(c, 2, 1), 5);
	c->members.failed_links.of = was;
	c->members.failed_links.n = 0;
}

/* Some links could never be made, for example because of a closed port. Their delay in the cluster
 * is -1, and they are not in the list of cut links. Validations must avoid them, too. */
FIXTURE_TEST(validation_avoids_links_that_were_never_made)
{
	struct controller *c = *state;
	const int n = c->run.cluster->n_nodes;

	c->run.cluster->delay_s[0 * n + 3] = -1;
	c->run.cluster->delay_s[4 * n + 1] = -1;
	validates(state);
	assert_int_equal(node_of(c, 0, 1), 4);
	assert_int_equal(node_of(c, 1, 1), 5);
	assert_int_equal(node_of(c, 2, 1), 5);
}

FIXTURE_TEST(an_answer_needs_its_links)
{
	struct controller *c = validates(state);
	struct msg_evaluated r = { .iteration = 7, .microbatch = 2, .loss = 1 };

	assert_true(evaluation_needs(&c->iteration, 2, 5) && evaluation_needs(&c->iteration, 5, 2));
	assert_false(evaluation_needs(&c->iteration, 2, 4) ||
		     evaluation_needs(&c->iteration, 3, 4));
	iteration_evaluated(&c->iteration, &c->members.list[2], &r);
	/* This microbatch is already answered, so it does not need the link any more */
	assert_false(evaluation_needs(&c->iteration, 2, 5));
}

static void answer(struct controller *c, uint16_t from, uint64_t iteration, uint32_t microbatch)
{
	struct msg_evaluated r = { .iteration = iteration,
				   .microbatch = microbatch,
				   .loss = (float)microbatch };

	iteration_evaluated(&c->iteration, &c->members.list[from], &r);
}

FIXTURE_TEST(an_answer_of_the_data_node_counts_once)
{
	struct controller *c = validates(state);

	answer(c, 1, 7, 0);
	answer(c, 0, 6, 0);
	answer(c, 0, 7, BATCHES);
	assert_int_equal(c->iteration.evaluation.done, 0);
	for (uint32_t i = 0; i < BATCHES; i++) {
		assert_int_equal(c->run.phase, PHASE_EVALUATING);
		answer(c, (uint16_t)(i % DATA), 7, i);
		answer(c, (uint16_t)(i % DATA), 7, i);
	}
	assert_int_equal(c->run.phase, PHASE_PLANNING);
	assert_float_equal(c->iteration.evaluation.loss, 0 + 1 + 2 + 3 + 4, 1e-9);
}
