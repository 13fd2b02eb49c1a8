/* Tests which copies between a device and its host are made while a task runs. An output leaves
 * the device during the next task, and an input is copied in during the previous task. The stage
 * takes encoded activations. */
#include "agent/execution/compute.h"
#include "agent/execution/tasks.h"
#include "agent/tests/lone_agent.h"
#include "base/tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 64 };

/* Makes node 0 with stage 1. Node 1 has stage 0, and sends its activations in q8. */
static struct agent *begin(void)
{
	struct agent *a = lone_agent_new(0, 2);

	a->held.standing = STAND_READY;
	a->held.stage = 1;
	a->held.activation = N;
	a->held.takes_encoded = true;
	a->run.config.dim = N;
	a->progress.wire = FORMAT_Q8;
	assert_int_equal(tasks_begin_run(a->modules.tasks, 2), 0);
	return a;
}

static struct route route_of(uint32_t microbatch)
{
	return (struct route){
		.microbatch = microbatch, .n_hops = 2, .nodes = { 1, 0 }, .stages = { 0, 1 }
	};
}

static void arrive(struct agent *a, uint32_t microbatch, int64_t at_us)
{
	struct route r = route_of(microbatch);
	struct tensor_bytes input = { calloc(N, 2), codec_of_activation(FORMAT_Q8, N) };

	assert_non_null(input.at);
	memset(input.at, (int)microbatch, 2 * N);
	tasks_arrive(a->modules.tasks, &r, 1, false, input, at_us);
}

/* The controller may restart a microbatch while the worker copies its input ahead. The input must
 * stay until the copy has ended. */
TEST(an_input_that_is_copied_ahead_outlives_its_task)
{
	struct agent *a = begin();
	struct job job;

	arrive(a, 4, 10);
	arrive(a, 5, 11);
	assert_true(tasks_next_job(a->modules.tasks, &job, 20));
	assert_true(job.task.in_number && job.task.next_number);
	assert_true(job.task.in_number != job.task.next_number);
	queue_clear(tasks_queue(a->modules.tasks));
	for (int i = 0; i < 2 * N; i++)
		assert_int_equal(((char *)job.task.next.at)[i], 5);
	job_clear(&job);
	assert_null(job.task.next_owner);
	lone_agent_free(a);
}

TEST(other_devices_get_no_input_ahead)
{
	struct agent *a = begin();
	struct job job;

	a->held.takes_encoded = false;
	arrive(a, 4, 10);
	arrive(a, 5, 11);
	assert_true(tasks_next_job(a->modules.tasks, &job, 20));
	assert_true(!job.task.next_number && !job.task.leaves);
	assert_int_equal(job.task.out.codec.format, FORMAT_FP32);
	job_clear(&job);
	lone_agent_free(a);
}

static bool leaves(const struct agent *a, uint32_t position, enum tensor_format format)
{
	struct route r = route_of(4);
	struct codec codec;
	bool does = links_output_leaves(&a->modules.links, &r, position, false, &codec);

	assert_int_equal(codec.format, does ? format : FORMAT_FP32);
	return does;
}

/* The device gives floats, not encoded bytes, if this node reads the numbers or the output stays on
 * this node. */
TEST(outputs_leave_unless_they_are_read)
{
	struct agent *a = begin();
	struct peer *peer = &a->peers.list[1];

	/* This node measures the noise of the first output, and needs the output's floats for the
	 * measurement. */
	assert_false(leaves(a, 1, FORMAT_Q8));
	peer->n_outputs[0] = peer->n_outputs[1] = 1;
	assert_true(leaves(a, 1, FORMAT_Q8));
	a->progress.wire = FORMAT_FP32;
	/* With the counts at 0, the next output counts as the first output again. In fp32 the
	 * output has no noise to measure, so it leaves. */
	peer->n_outputs[0] = peer->n_outputs[1] = 0;
	assert_true(leaves(a, 1, FORMAT_FP32));
	assert_false(leaves(a, 4, FORMAT_FP32)); /* the last task has no output */
	a->run.welcome.node = 1;
	assert_false(leaves(a, 1, FORMAT_FP32)); /* the next task runs on this node */
	a->run.welcome.node = 0;
	a->faults.active[0].kind = FAULT_CORRUPT;
	a->faults.n = 1;
	/* An injected fault spoils the output's floats, so this node needs them. */
	assert_false(leaves(a, 1, FORMAT_FP32));
	lone_agent_free(a);
}
