/* Tests the list of plans that a run has used. */

#include <stdio.h>
#include <string.h>

#include "base/tests/test.h"
#include "tui/run/used_plans.h"

static void hear(struct state *s, struct msg *m)
{
	m->sequence = s->stream.sequence + 1;
	state_apply(s, m);
}

static struct state *begun(void)
{
	struct state *s;
	struct msg m = { .type = MSG_SEE_RUN };

	s = state_new();
	m.u.see_run = (struct msg_see_run){ .run = 1, .n_nodes = 2, .n_stages = 2 };
	hear(s, &m);
	return s;
}

static void plan_takes_over(struct state *s, uint64_t epoch, const char *algorithm,
			    float predicted_s)
{
	struct msg m = { .type = MSG_SEE_PLAN };

	m.u.see_plan = (struct msg_see_plan){ .epoch = epoch,
					      .n_stages = 2,
					      .path_length = 1,
					      .iteration_s = predicted_s,
					      .sync_s = 1 };
	snprintf(m.u.see_plan.algorithm, sizeof(m.u.see_plan.algorithm), "%s", algorithm);
	hear(s, &m);
}

static void runs(struct state *s, uint64_t n, uint64_t epoch, float predicted_s, float measured_s)
{
	struct msg m = { .type = MSG_SEE_ITERATION };

	m.u.see_iteration = (struct msg_see_iteration){ .iteration = n,
							.epoch = epoch,
							.predicted_s = predicted_s,
							.iteration_s = measured_s,
							.predicted_sync_s = 1,
							.sync_s = measured_s / 10,
							.n_stages = 2,
							.path_length = 2,
							.algorithm = "dtfm" };
	hear(s, &m);
}

TEST(each_says_what_it_said_and_what_was_measured)
{
	struct state *s = begun();
	struct used_plan list[USED_PLANS_MOST];

	assert_int_equal(used_plans_list(s, list, USED_PLANS_MOST), 0);
	plan_takes_over(s, 3, "dtfm", 10);
	assert_int_equal(used_plans_list(s, list, USED_PLANS_MOST), 1);
	assert_int_equal(list[0].last, 0);
	assert_true(list[0].predicted_s == 10 && list[0].predicted_sync_s == 1);
	runs(s, 1, 3, 10, 30);
	runs(s, 2, 3, 10, 12);
	runs(s, 3, 3, 11, 14);
	assert_int_equal(used_plans_list(s, list, USED_PLANS_MOST), 1);
	assert_int_equal(list[0].first, 1);
	assert_int_equal(list[0].last, 3);
	assert_true(list[0].measured_s == 14);
	assert_true(list[0].measured_sync_s == 14.0f / 10);
	/* The prediction was corrected from 10 to 11 before the last iteration. */
	assert_true(list[0].predicted_s == 11);
	state_free(s);
}

/* A plan that no iteration followed is listed only if it is in force. */
TEST(the_newest_comes_first)
{
	struct state *s = begun();
	struct used_plan list[USED_PLANS_MOST];

	plan_takes_over(s, 3, "dtfm", 10);
	runs(s, 1, 3, 10, 12);
	plan_takes_over(s, 4, "best", 8);
	plan_takes_over(s, 5, "best", 7);
	assert_int_equal(used_plans_list(s, list, USED_PLANS_MOST), 2);
	assert_int_equal(list[0].epoch, 5);
	assert_string_equal(list[0].algorithm, "best");
	assert_int_equal(list[0].path_length, 1);
	assert_int_equal(list[0].last, 0);
	assert_int_equal(list[1].epoch, 3);
	assert_string_equal(list[1].algorithm, "dtfm");
	assert_int_equal(list[1].path_length, 2);
	runs(s, 2, 5, 7, 9);
	runs(s, 3, 5, 7, 8);
	assert_int_equal(used_plans_list(s, list, USED_PLANS_MOST), 2);
	assert_int_equal(list[0].first, 2);
	assert_true(list[0].measured_s == 8.5f);
	for (uint64_t i = 0; i < 2 * USED_PLANS_MOST; i++)
		runs(s, 4 + i, 6 + i, 7, 9);
	assert_int_equal(used_plans_list(s, list, 3), 3);
	/* The plan in force comes first, although no iteration has followed it. */
	assert_int_equal(list[0].epoch, 5);
	assert_int_equal(list[1].epoch, 5 + 2 * USED_PLANS_MOST);
	assert_int_equal(list[2].epoch, 4 + 2 * USED_PLANS_MOST);
	assert_int_equal(used_plans_list(s, list, USED_PLANS_MOST), USED_PLANS_MOST);
	state_free(s);
}

/* If the list is too short, a second plan of one skip ratio is dropped before the only plan of
 * another skip ratio. */
TEST(each_skip_ratio_is_there)
{
	struct state *s = begun();
	struct used_plan list[USED_PLANS_MOST];

	for (uint64_t i = 1; i <= 10; i++) {
		plan_takes_over(s, i, "dtfm", 10);
		runs(s, i, i, 10, 12);
		s->history.iterations[s->history.n_iterations - 1].path_length = i < 3 ? 1 : 2;
	}
	assert_int_equal(used_plans_list(s, list, 2), 2);
	assert_int_equal(list[0].epoch, 10);
	assert_int_equal(list[1].epoch, 2);
	assert_int_equal(used_plans_list(s, list, 3), 3);
	assert_int_equal(list[1].epoch, 9);
	assert_int_equal(list[2].epoch, 2);
	s->history.iterations[0].skip_share = 30;
	assert_int_equal(used_plans_list(s, list, 3), 3);
	assert_int_equal(list[1].epoch, 2);
	assert_int_equal(list[2].epoch, 1);
	s->history.iterations[2].n_stages = 3;
	assert_int_equal(used_plans_list(s, list, 3), 3);
	assert_int_equal(list[1].epoch, 3);
	assert_int_equal(list[1].n_stages, 3);
	assert_int_equal(used_plans_list(s, list, 1), 1);
	assert_int_equal(list[0].epoch, 10);
	assert_int_equal(used_plans_list(s, list, USED_PLANS_MOST), 10);
	state_free(s);
}
