/* Compares complete agents with the same training by the model's code alone. If gradients are
 * counted in the same order, the weights must have the same bits. */
#include <string.h>

#include "agent/tests/cluster.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/tests/test.h"

static void check_training(enum tensor_format wire, enum tensor_format sum_wire)
{
	struct cluster *c = cluster_make(6, cluster_six);

	c->options.wire = wire;
	c->options.sum_wire = sum_wire;
	cluster_gather(c);
	cluster_route_six(c);
	for (int i = 0; i < 3; i++)
		cluster_iterate(c);
	cluster_evaluate(c, 4);
	for (uint32_t k = 0; k < 4; k++)
		assert_true(c->now.evaluated[k] == cluster_twin_evaluation(c, k));
	cluster_iterate(c);
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}

TEST(test_training)
{
	check_training(FORMAT_FP32, FORMAT_FP32);
}

TEST(test_training_in_other_formats)
{
	check_training(FORMAT_BF16, FORMAT_FP32);
	check_training(FORMAT_Q8, FORMAT_Q4);
	check_training(FORMAT_Q6, FORMAT_Q6);
}

/* Each iteration uses its own formats for tensors, and so does an evaluation. */
TEST(test_formats_change_during_the_run)
{
	static const enum tensor_format formats[][2] = { { FORMAT_FP32, FORMAT_Q4 },
							 { FORMAT_Q6, FORMAT_Q4 },
							 { FORMAT_Q6, FORMAT_FP32 },
							 { FORMAT_BF16, FORMAT_Q8 },
							 { FORMAT_FP32, FORMAT_FP32 } };
	struct cluster *c = cluster_make(6, cluster_six);

	cluster_gather(c);
	cluster_route_six(c);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		c->options.wire = formats[i][0];
		c->options.sum_wire = formats[i][1];
		cluster_iterate(c);
		cluster_evaluate(c, 4);
		for (uint32_t k = 0; k < 4; k++)
			assert_true(c->now.evaluated[k] == cluster_twin_evaluation(c, k));
	}
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}

/* ---- unnecessary reroutes ---- */

TEST(test_random_reroutes)
{
	struct cluster *c = cluster_of_six();
	struct rng g;

	rng_init(&g, (uint64_t)clock_wall_us());
	for (int i = 0; i < 4; i++) {
		cluster_start(c);
		for (int k = 0; k < 12; k++) {
			cluster_turns(c, (int)rng_below(&g, 4));
			cluster_reroute(c, rng_below(&g, 256) & rng_below(&g, 256), -1);
		}
		cluster_until(c, cluster_all_through, "all microbatches");
		cluster_reduce(c, 1);
		cluster_check_twins(c);
		cluster_commit(c, 1);
	}
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}

/* ---- a reduction that restarts ---- */

static bool four_complains(struct cluster *c)
{
	return c->nodes[4].troubles > 0;
}

TEST(test_reduction_retry)
{
	static const uint16_t both[] = { 4, 5 };
	struct cluster *c = cluster_of_six();
	struct msg m = { .type = MSG_REDUCE };

	cluster_start(c);
	cluster_until(c, cluster_all_through, "all microbatches");
	/* Only node 4 gets the order with attempt 1, so a commit of attempt 1 must be refused. */
	m.u.reduce = (struct msg_reduce){
		.iteration = 1, .attempt = 1, .stage = 2, .n_nodes = 2, .nodes = both
	};
	cluster_send(c, 4, &m);
	cluster_turns(c, 20);
	m.type = MSG_COMMIT;
	m.u.commit = (struct msg_commit) { .iteration = 1, .attempt = 1, .scale = 1 };
	cluster_send(c, 4, &m);
	cluster_until(c, four_complains, "a refusal");
	assert_non_null(strstr(c->nodes[4].trouble, "not complete"));
	cluster_reduce(c, 2);
	cluster_check_twins(c);
	/* A commit of a wrong attempt is refused. Then the valid commit is sent twice. */
	m.u.commit.attempt = 1;
	cluster_send(c, 4, &m);
	cluster_commit(c, 2);
	assert_int_equal(c->nodes[4].troubles, 2);
	c->nodes[4].committed.iteration = 0;
	cluster_commit(c, 2);
	cluster_iterate(c);
	cluster_unmake(c);
}
