/* replay_commands_test.c - commands that a console gives to a replay. Alerts are acknowledged.
 * Plans with other nodes, algorithms and formats are made for the time of the cursor. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/skip_schedule.h"
#include "base/tests/test.h"
#include "controller/operator/console_messages.h"
#include "controller/tests/replayed.h"

TEST(alerts_are_acknowledged)
{
	struct replayed g;
	struct seen *s, said = { 0 };

	replayed_begin(&g, NULL);
	free(replayed_at(g.replay, 3440));
	/* At this time of the record, the fault's alert does not exist yet */
	assert_int_equal(replay_acknowledge(g.replay, 0, replayed_see, &said), 0);
	free(replayed_at(g.replay, 3460));
	assert_int_equal(replay_acknowledge(g.replay, 77, replayed_see, &said), 0);
	assert_int_equal(replay_acknowledge(g.replay, 2, replayed_see, &said), 1);
	assert_int_equal(said.n_notes, 1);
	assert_int_equal(said.notes[0].id, 2);
	assert_int_equal(said.notes[0].acknowledged, 1);
	assert_int_equal(replay_acknowledge(g.replay, 0, replayed_see, &said), 0);
	s = replayed_at(g.replay, REPLAYED_LAST_MS);
	assert_int_equal(s->notes[1].acknowledged, 1);
	free(s);
	replayed_end(&g);
}

struct comparison {
	struct msg_command m;
	bool excluded[RECORDED_NODES];
	struct planner_request q;
	char name[32];
	struct error err;
};

/* Turns the command into a request to the planner. */
static int compare(struct comparison *c, const char *text)
{
	snprintf(c->m.text, sizeof(c->m.text), "%s", text);
	c->m.verb = COMMAND_COMPARE;
	c->q.excluded = c->excluded;
	return compare_request(&c->m, 2, 1, RECORDED_NODES, c->excluded, &c->q, c->name,
			       sizeof(c->name), &c->err);
}

TEST(the_present_can_be_planned_from)
{
	struct comparison with = { .m = { .node = 1, .value = 1 } };
	const struct plan *plan;
	struct cluster *c;
	struct error err;
	struct replayed g;

	replayed_begin(&g, NULL);
	free(replayed_at(g.replay, 1500));
	assert_int_equal(replay_present(g.replay, &plan, with.excluded, &c, &err), -EAGAIN);
	free(replayed_at(g.replay, 4800));
	assert_int_equal(replay_present(g.replay, &plan, with.excluded, &c, &err), 0);
	assert_false(with.excluded[0] || with.excluded[1] || with.excluded[3]);
	assert_true(with.excluded[2]);
	assert_int_equal(cluster_validate(c, &err), 0);
	assert_int_equal(c->nodes[0].stage, 0);
	assert_int_equal(c->nodes[3].stage, 1);
	assert_true(c->nodes[1].forward_s == 0.3 && c->delay_s[1 * RECORDED_NODES] == 0.5);
	with.q.from = plan;
	assert_int_equal(compare(&with, "best"), 0);
	assert_true(with.excluded[1]);
	assert_int_equal(with.q.path_length, 1);
	assert_ptr_equal(with.q.from, plan);
	assert_string_equal(with.name, "best 1/2 -n01");
	with.m.value = skip_share_pack(40, 1);
	assert_int_equal(compare(&with, "best"), 0);
	assert_int_equal(with.q.skip_share, 40);
	assert_string_equal(with.name, "best 1/2 in 40% -n01");
	assert_int_equal(compare(&with, "cbs"), -EINVAL);
	assert_non_null(
		strstr(with.err.text, "cbs gives all microbatches paths of one length"));
	with.m.value = 2;
	assert_int_equal(compare(&with, "best"), -EINVAL);
	with.m.value = 0;
	with.m.node = RECORDED_NODES;
	assert_int_equal(compare(&with, "best"), -EINVAL);
	with.m.node = -1;
	assert_int_equal(compare(&with, "magic"), -EINVAL);
	cluster_free(c);
	replayed_end(&g);
}

/* A comparison with another format keeps the algorithm and the path length of the plan in force. */
TEST(a_format_can_be_compared)
{
	static const char *const wrong[] = { "wire",    "wire ",   "wire q4",  "wire q6 ",
					     "wireq6",  "sums q6", "sum-wire", "sum-wire bf16",
					     "wire 2",  "q6" };
	struct plan *plan = plan_alloc(2, RECORDED_NODES, 1, 1);
	struct comparison with = { .m = { .node = -1 }, .excluded = { true }, .q.from = plan };
	const struct planner_request *q = &with.q;

	assert_non_null(plan);
	with.q.formats = (struct tensor_formats){ FORMAT_Q8, FORMAT_Q6 };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(compare(&with, wrong[i]), -EINVAL);
		assert_true(q->formats.wire == FORMAT_Q8 && q->formats.sum_wire == FORMAT_Q6);
	}
	assert_int_equal(compare(&with, "wire q6"), 0);
	assert_string_equal(with.name, "wire q6");
	assert_true(q->formats.wire == FORMAT_Q6 && q->formats.sum_wire == FORMAT_Q6);
	assert_int_equal(q->path_length, 1);
	assert_true(q->kind == PLANNER_COMPARE && q->algorithm == PLAN_BEST && q->from == plan);
	assert_int_equal(compare(&with, "sum-wire q4"), 0);
	assert_string_equal(with.name, "sums q4");
	assert_true(q->formats.wire == FORMAT_Q6 && q->formats.sum_wire == FORMAT_Q4);
	plan->search.algorithm = strdup("dtfm");
	assert_int_equal(compare(&with, "sum-wire q4"), 0);
	assert_true(q->algorithm == PLAN_DTFM && !q->from);
	plan_free(plan);
}

/* After "branch", the text may list other nodes to exclude. */
TEST(the_excluded_nodes_can_be_chosen)
{
	static const char *const wrong[] = { "branch ",   "branch 1,", "branch x", "branch 1 2",
					     "branch 1,,2", "branch 99", "branch --", "branchy 1" };
	struct comparison with = { .m = { .node = -1, .value = 1 }, .excluded = { true } };
	const bool *excluded = with.excluded;

	assert_int_equal(compare(&with, "branch"), 0);
	assert_true(excluded[0]);
	assert_int_equal(with.q.algorithm, PLAN_BEST);
	assert_string_equal(with.name, "branch 1/2");
	with.m.node = 3;
	assert_int_equal(compare(&with, "branch 1,2"), 0);
	assert_true(!excluded[0] && excluded[1] && excluded[2] && excluded[3]);
	assert_string_equal(with.name, "branch 1/2 -n03");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(compare(&with, wrong[i]), -EINVAL);
	with.m.node = -1;
	assert_int_equal(compare(&with, "branch -"), 0);
	assert_true(!excluded[1] && !excluded[2] && !excluded[3]);
}
