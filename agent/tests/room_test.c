/* Tests the limits of memory for an iteration and for large activations on their way, and the limit
 * of a message's size. */

#include <stdlib.h>
#include <string.h>

#include "agent/execution/needs.h"
#include "agent/state.h"
#include "agent/tests/cluster.h"
#include "base/tests/test.h"

/* The node's memory suffices for the stage, but not for the stage and an iteration. The node must
 * report this before it computes anything. */
TEST(test_memory_is_checked_before_an_iteration)
{
	struct cluster *c = cluster_make(6, cluster_six);
	struct stage_options o = { .slots = CLUSTER_SLOTS, .batch = CLUSTER_BATCH,
				   .sequence = CLUSTER_SEQUENCE };
	struct stage *like;
	struct needs n;
	size_t bytes;

	assert_int_equal(stage_new(&like, &c->config, cluster_six[2], &o, NULL), 0);
	n = needs_of(stage_parameters(like), stage_activation(like), 8, UINT64_MAX, false);
	bytes = stage_memory_bytes(like);
	stage_free(like);
	cluster_kill(c, 2);
	c->options.memory_bytes = bytes + n.total;
	cluster_start_agent(c, 2);
	cluster_gather(c);
	cluster_route_six(c);
	cluster_start(c);
	cluster_until(c, cluster_all_through, "all microbatches, with enough");
	cluster_unmake(c);
	c = cluster_make(6, cluster_six);
	cluster_kill(c, 2);
	c->options.memory_bytes = bytes + 1024;
	c->options.may_give_up = true;
	cluster_start_agent(c, 2);
	cluster_gather(c);
	cluster_route_six(c);
	cluster_start(c);
	cluster_until(c, cluster_any_trouble, "what is missing");
	assert_int_equal(c->nodes[2].troubles, 1);
	assert_non_null(strstr(c->nodes[2].trouble, "an iteration needs"));
	assert_non_null(strstr(c->nodes[2].trouble, "MiB are free"));
	for (uint32_t i = 0; i < c->now.n_events; i++)
		assert_int_not_equal(c->now.events[i].node, 2);
	cluster_unmake(c);
}

static bool two_lines_arrived(struct cluster *c)
{
	return c->nodes[2].n_logs >= 2;
}

/* Warnings that the agent logs before its admission reach the controller later, the oldest first.
 * The agent has room for a few lines, and drops lines that come while the room is full. When there
 * is room again, the next line says how many were dropped. */
TEST(test_warnings_wait_for_the_controller)
{
	struct cluster *c = cluster_make(6, cluster_six);
	struct agent *a = c->nodes[2].agent;

	for (int i = 0; i < 11; i++)
		tell_log(&a->tell, i ? LOG_WARN : LOG_ERROR, "line %d", i);
	assert_int_equal(c->nodes[2].n_logs, 0);
	cluster_gather(c);
	cluster_until(c, two_lines_arrived, "two lines");
	assert_int_equal(c->nodes[2].logs[0].level, LOG_ERROR);
	assert_string_equal(c->nodes[2].logs[0].text, "line 0");
	assert_int_equal(c->nodes[2].logs[1].level, LOG_WARN);
	assert_string_equal(c->nodes[2].logs[1].text, "line 1");
	tell_log(&a->tell, LOG_WARN, "%0200d", 7);
	assert_int_equal(a->tell.lines.list[a->tell.lines.n - 1].dropped, 3);
	assert_int_equal(strlen(a->tell.lines.list[a->tell.lines.n - 1].text), 159);
	cluster_unmake(c);
}

/* Imitates a large model with small limits. An activation has six chunks, and is larger than the
 * limit of unacknowledged bytes. A slice is larger than the largest allowed message. */
static void check_large(enum tensor_format wire, size_t threads_from_bytes)
{
	enum { CHUNK = 4096, ACTIVATION = 6 * CHUNK };
	struct cluster *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->options.wire = wire;
	c->options.threads_from_bytes = threads_from_bytes;
	c->options.dim = ACTIVATION / sizeof(float) / (CLUSTER_BATCH * CLUSTER_SEQUENCE);
	c->options.chunk_bytes = CHUNK;
	c->options.message_bytes = ACTIVATION + LINKS_HEAD_BYTES;
	c->options.retained_bytes = ACTIVATION / 4;
	cluster_init(c, 6, cluster_six);
	cluster_gather(c);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(c->nodes[i].agent->held.activation * sizeof(float), ACTIVATION);
		assert_true(c->nodes[i].agent->held.parameters / 2 * sizeof(float) >
			    c->options.message_bytes);
	}
	cluster_route_six(c);
	for (int i = 0; i < 2; i++)
		cluster_iterate(c);
	cluster_evaluate(c, 2);
	for (uint32_t k = 0; k < 2; k++)
		assert_true(c->now.evaluated[k] == cluster_twin_evaluation(c, k));
	assert_int_equal(cluster_troubles(c), 0);
	cluster_unmake(c);
}

TEST(test_large_tensors_travel)
{
	check_large(FORMAT_FP32, 0);
	check_large(FORMAT_Q8, 0);
}

TEST(test_the_loop_decodes_pieces_without_threads)
{
	check_large(FORMAT_FP32, SIZE_MAX);
	check_large(FORMAT_Q8, SIZE_MAX);
}

/* If an activation is larger than the largest allowed message, the agent reports this before it
 * computes anything. */
TEST(test_too_large_tensors_are_reported)
{
	struct cluster *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->options.message_bytes = CLUSTER_BATCH * CLUSTER_SEQUENCE * 16 * sizeof(float);
	c->options.may_give_up = true;
	cluster_init(c, 6, cluster_six);
	cluster_gather(c);
	cluster_route_six(c);
	cluster_start(c);
	cluster_until(c, cluster_any_trouble, "what is too large");
	for (uint32_t i = 0; i < 6; i++)
		if (c->nodes[i].troubles > 0)
			assert_non_null(strstr(c->nodes[i].trouble, "smaller microbatches"));
	assert_int_equal(c->now.n_events, 0);
	cluster_unmake(c);
}
