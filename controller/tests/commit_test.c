/* commit_test.c - the controller computes the figures of a committed iteration from the agents'
 * reports. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/iteration/iteration.h"
#include "controller/loop.h"
#include "controller/members/member_record.h"
#include "controller/planning/spares.h"
#include "controller/tests/under_way.h"
#include "controller/trust/exclude.h"

#define FIXTURE_TEST(name) TEST_WITH(name, under_way_begin, under_way_end)

/* Six nodes work for 5.04 s in total within 2 s, on twelve microbatches whose loss is 3. The sums
 * take another second. */
FIXTURE_TEST(the_numbers_follow_from_the_tasks)
{
	struct controller *c = *state;
	const struct msg_see_iteration *shown;

	c->iteration.progress.started_us = c->run.committed_us = c->run.now_us - 1900000;
	under_way_all_is_done(c);
	c->run.now_us += 1100000;
	under_way_all_tell_their_sums(c);
	assert_int_equal(c->run.committed, 1);
	assert_int_equal(c->run.record.curves.n_iterations, 1);
	shown = &c->run.record.curves.iterations[0];
	assert_int_equal(shown->iteration, 1);
	assert_float_equal(shown->loss, 3, 1e-6);
	assert_float_equal(shown->iteration_s, 2, 1e-3);
	assert_float_equal(shown->sync_s, 1, 1e-3);
	assert_float_equal(shown->real_s, 3, 1e-3);
	assert_float_equal(shown->idle_fraction, 0.58f, 1e-3);
	/* the squared norm of each of the two stages is 1 */
	assert_float_equal(shown->gradient_norm, (float)sqrt(2) / N, 1e-6);
	assert_int_equal(shown->alive, NODES);
	assert_int_equal(shown->path_length, 2);
	assert_int_equal(shown->rerun, 0);
}

/* Makes the data node of the microbatch report the end of a first forward pass. named: the
 * microbatch that the report names. */
static void report_first_pass(struct controller *c, uint32_t microbatch, uint32_t named,
			      uint32_t attempt)
{
	struct msg_task_event event = { .type = WORK_ENDS,
					.kind = TASK_FORWARD,
					.microbatch = named,
					.attempt = attempt,
					.blocker = UINT32_MAX,
					.at_us = c->run.now_us };
	struct msg_report r = { .iteration = 1, .n_events = 1, .events = &event };

	iteration_report(
		&c->iteration,
		&c->members.list[c->iteration.routes.microbatches[microbatch].route.nodes[0]], &r);
	loop_act(&c->iteration);
}

/* The controller ignores events of a microbatch that does not exist, and events of an attempt under
 * an earlier controller. */
FIXTURE_TEST(events_of_unknown_microbatches_are_ignored)
{
	struct controller *c = *state;

	/* The iteration has one microbatch fewer than the array holds */
	c->iteration.routes.n = N - 1;
	report_first_pass(c, N - 1, N - 1, FIRST);
	report_first_pass(c, 0, UINT32_MAX, FIRST);
	report_first_pass(c, 0, 0, FIRST - 1);
	assert_int_equal(c->iteration.progress.n_events, 0);
	assert_int_equal(c->iteration.routes.microbatches[N - 1].passed, 0);
	assert_int_equal(c->iteration.routes.microbatches[0].passed, 0);
	c->iteration.routes.n = N;
	report_first_pass(c, N - 1, N - 1, FIRST);
	assert_int_equal(c->iteration.progress.n_events, 1);
	assert_int_equal(c->iteration.routes.microbatches[N - 1].passed, 1);
}

/* The node died during the task. Another node repeats the task, so its time does not count as
 * work. */
FIXTURE_TEST(a_task_that_does_not_end_is_not_counted_as_work)
{
	struct controller *c = *state;
	struct msg_task_event event = { .type = WORK_STARTS,
					.kind = TASK_EVALUATE,
					.attempt = FIRST,
					.blocker = UINT32_MAX,
					.at_us = c->run.now_us };
	struct msg_report r = { .iteration = 1, .n_events = 1, .events = &event };

	iteration_report(&c->iteration,
			 &c->members.list[c->iteration.routes.microbatches[0].route.nodes[0]], &r);
	c->run.now_us += SECOND;
	under_way_all_is_done(c);
	under_way_all_tell_their_sums(c);
	assert_int_equal(c->run.committed, 1);
	assert_float_equal((float)c->iteration.progress.busy_s, N * 0.42f, 1e-3);
}

/* The first weights were trained for 7 of the 10 steps of the warm-up. The first commit, and the
 * message about a run that diverges, give the learning rate of step 8. */
FIXTURE_TEST(the_learning_rate_continues_that_of_the_first_weights)
{
	struct controller *c = *state;
	const struct journal *journal = &c->run.journal;

	c->run.training.origin.steps = 7;
	c->run.training.hyper = (struct hyperparameters){ .warmup = 10, .iterations = 100 };
	c->run.training.hyper.adamw.lr = 0.01f;
	under_way_all_is_done(c);
	training_diverged(&c->members, "a test");
	assert_non_null(strstr(journal->notes[journal->n_notes - 1].text,
			       "in iteration 1: a test; the learning rate of 0.008 may"));
	c->run.phase = PHASE_REDUCING;
	under_way_all_tell_their_sums(c);
	assert_float_equal(c->run.last_commit.lr, 0.008f, 1e-9);
}

/* Node 1 and the spare node 4 join with the same commit. Plans need node 1, so the controller
 * requests a plan. For node 4 alone, the controller would only request a better plan. This weaker
 * request must not replace the first request. */
FIXTURE_TEST(a_late_spare_does_not_replace_the_request_for_a_needed_node)
{
	struct controller *c = *state;

	under_way_all_is_done(c);
	c->members.list[1].state = c->members.list[4].state = MEMBER_SUMMING;
	c->members.list[4].move.use = USE_SPARE;
	under_way_all_tell_their_sums(c);
	assert_int_equal(c->run.committed, 1);
	assert_int_equal(c->members.list[1].state, MEMBER_LIVE);
	assert_true(spares_wait(&c->members, &c->members.list[4]));
	assert_string_equal(c->planning.reason, "a node joined");
	assert_false(c->planning.only_if_better);
}

/* A node reports its device's times for the commit twice. The first report claims more time than
 * the 4 s since the run began, so the controller reduces it to 4 s. The second report is
 * ignored. */
FIXTURE_TEST(device_times_are_taken_once_and_at_most_as_long_as_the_period)
{
	struct controller *c = *state;
	struct member *m = &c->members.list[4];
	struct msg_committed r = { .iteration = 1,
				   .stage = 1,
				   .hash = 7,
				   .spent = { { 30 * UINT64_C(864000000000), 0, 0,
						10 * UINT64_C(864000000000) } } };

	c->run.committed_us = c->run.now_us;
	under_way_all_is_done(c);
	under_way_all_tell_their_sums(c);
	c->run.now_us = m->compute.spent_from_us + 4 * SECOND;
	iteration_committed(&c->members, m, &r);
	assert_int_equal(m->compute.spent.us[0], 3 * SECOND);
	assert_int_equal(m->compute.spent.us[3], SECOND);
	r.spent = (struct device_time){ { SECOND } };
	iteration_committed(&c->members, m, &r);
	assert_int_equal(m->compute.spent.us[0], 3 * SECOND);
}

/* One event has the times of all nodes that reported the commit. */
FIXTURE_TEST(an_iteration_has_one_event_with_the_times_of_all_devices)
{
	struct controller *c = *state;
	static const char nodes[] =
		"\"iteration\":1,\"nodes\":["
		"{\"busy_s\":1.0,\"host_s\":0.0,\"network_s\":0.0,\"others_s\":0.0,\"node\":3},"
		"{\"busy_s\":1.0,\"host_s\":0.0,\"network_s\":0.0,\"others_s\":0.0,\"node\":4}]";
	struct msg_committed r = { .iteration = 1, .stage = 1, .hash = 7, .spent = { { SECOND } } };
	char *text;
	size_t size;
	FILE *was = c->run.record.jsonl, *events = open_memstream(&text, &size);

	c->run.record.jsonl = events;
	c->run.committed_us = c->run.now_us;
	under_way_all_is_done(c);
	under_way_all_tell_their_sums(c);
	c->run.now_us += 4 * SECOND;
	fflush(events);
	assert_null(strstr(text, "\"device\""));
	for (int i = 3; i <= 4; i++)
		iteration_committed(&c->members, &c->members.list[i], &r);
	record_devices_event(&c->members);
	c->run.committed++; /* a later iteration, which no node has reported */
	record_devices_event(&c->members);
	c->run.record.jsonl = was;
	fclose(events);
	assert_non_null(strstr(text, nodes));
	assert_null(strstr(strstr(text, "\"device\"") + 1, "\"device\""));
	free(text);
}
