/* predict_test.c - the predicted time of sums on measured links depends on the bytes of their
 * format. */

#include <math.h>
#include <stdlib.h>

#include "base/tests/test.h"
#include "controller/network/link_table.h"
#include "controller/planning/predict.h"
#include "controller/tests/bare.h"

enum { NODES = 4, STAGES = 2, PARAMETERS = 1 << 20 };

static const double bandwidth = 1e6;

/* Returns the predicted time of the sums, in a cluster of two stages with two replicas each. All
 * nodes have tasks. */
static double find_sum_s(enum tensor_format format)
{
	struct cluster *cluster = cluster_alloc(NODES, STAGES, true);
	struct plan_request q;
	struct planned answer = { 0 };
	struct controller *c;
	struct error err;
	double sum_s;

	assert_non_null(cluster);
	cluster->stages[0] = cluster->stages[1] = 2;
	cluster->microbatches_per_data_node = 2;
	for (int i = 0; i < NODES * NODES; i++)
		cluster->delay_s[i] = 0.1;
	for (int i = 0; i < NODES; i++) {
		cluster->nodes[i].forward_s = cluster->nodes[i].backward_s = 1;
		cluster->nodes[i].stage = i / 2;
	}
	c = bare_controller(cluster, STAGES);
	c->run.cluster->formats.sum_wire = answer.formats.sum_wire = format;
	c->members.links = link_table_new(NODES);
	for (uint32_t i = 0; i < NODES * NODES; i++)
		c->members.links->links[i] =
			(struct link_seen){ .known = true, .bandwidth = bandwidth };
	for (int s = 0; s < STAGES; s++)
		c->run.training.stage_parameters[s] = PARAMETERS;
	plan_request_init(&q);
	q.path_length = STAGES;
	q.evaluations = 100;
	assert_int_equal(plan_search(cluster, &q, &answer.plan, &err), 0);
	predict(&c->members, &answer);
	sum_s = answer.plan->predicted.sync_s;
	assert_true(answer.plan->predicted.total_s ==
		    answer.plan->predicted.iteration_s + sum_s);
	plan_free(answer.plan);
	simulation_free(answer.trace);
	link_table_free(c->members.links);
	bare_free(c);
	return sum_s;
}

/* The last task ends in stage 0. Then each replica of stage 0 sends half of the gradient to the
 * other replica, which returns the sum. */
TEST(a_sum_takes_the_bytes_of_its_format)
{
	static const enum tensor_format formats[] = { FORMAT_FP32, FORMAT_Q8, FORMAT_Q6,
						      FORMAT_Q4 };

	for (int i = 0; i < 4; i++) {
		double bytes = (double)tensor_format_sum_bytes(formats[i], PARAMETERS / 2);

		assert_true(fabs(find_sum_s(formats[i]) - 2 * bytes / (0.75 * bandwidth)) < 1e-6);
	}
}
