/* A whole controller and agents that are played: they compute nothing and say what honest ones
 * would say, but for one or two, which lie about their work. The run goes on, who lies is left out, and in the
 * end nobody else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "controller/tests/player.h"

static int open_evaluating(void **state, const char *every)
{
	const char *options[] = { "--eval-every", every, NULL };

	*state = world_new(options);
	return 0;
}

static int world_open(void **state)
{
	return open_evaluating(state, "0");
}

static int world_open_evaluating(void **state)
{
	return open_evaluating(state, "3");
}

static int world_close(void **state)
{
	return world_free(*state);
}

static bool only_liars_are_out(const struct world *w)
{
	for (int i = 0; i < PLAYERS; i++)
		if (w->states[i] != (w->lies[i] == HONEST ? NODE_LIVE : NODE_FAILED))
			return false;
	return true;
}

/* The first nodes of those stages lie, but for lie HONEST. Until they are out, all others are in, and
 * five more iterations are committed. The journal then says of them what `why` says. */
struct part {
	enum lie lie;
	uint8_t stage;
	const char *why;
};

static void said_of(const struct world *w, int node, const char *why)
{
	char words[128];

	snprintf(words, sizeof(words), "n%02d S%d %s", node, w->players[node].stage, why);
	if (!strstr(w->console.journal, words))
		fail_msg("no \"%s\" in the journal:\n%s", words, w->console.journal);
}

static void play_nodes(struct world *w, int one, struct part a, int two, struct part b)
{
	uint64_t enough;

	w->lies[one] = a.lie;
	w->lies[two] = b.lie;
	WORLD_UNTIL(w, w->console.committed >= LIES_FROM && only_liars_are_out(w));
	enough = w->console.committed + 5;
	/* Meanwhile one that is in may be moving to a stage that is down to one replica. */
	WORLD_UNTIL(w, w->console.committed >= enough && only_liars_are_out(w));
	said_of(w, one, a.why);
	if (b.lie)
		said_of(w, two, b.why);
}

static void play_two(struct world *w, struct part a, struct part b)
{
	int one = 0, two = 0;

	WORLD_UNTIL(w, world_all_ready(w));
	while (w->players[one].stage != a.stage)
		one++;
	while (w->players[two].stage != b.stage || two == one)
		two++;
	play_nodes(w, one, a, two, b);
}

static void play(struct world *w, enum lie lie, uint8_t stage, const char *why)
{
	play_two(w, (struct part){ lie, stage, why }, (struct part){ HONEST, stage, "" });
}

/* The iteration stands still for want of it; then it is taken out, and catches up. */
static void who_missed_a_commit_catches_up(void **state)
{
	struct world *w = *state;
	uint64_t enough;

	w->lies[4] = MISSES_A_COMMIT;
	WORLD_UNTIL(w, world_all_live(w) && strstr(w->console.journal, "n04 is heard again"));
	enough = w->console.committed + 5;
	WORLD_UNTIL(w, w->console.committed >= enough);
	assert_non_null(strstr(w->console.journal, "holds the weights of another iteration"));
	assert_true(w->players[4].committed >= enough - 1);
}

static void who_counts_twice(void **state)
{
	play(*state, COUNTS_TWICE, 1, "counted what it must not");
}

static void who_counts_what_others_do(void **state)
{
	play(*state, COUNTS_OTHERS, 2, "counted what it must not");
}

static void who_does_not_count(void **state)
{
	play(*state, COUNTS_NOT, 1, "left a gradient out");
}

static void a_data_node_that_is_home_early(void **state)
{
	play(*state, IS_HOME_EARLY, 0, "contradicts others about what was done");
}

static void who_hides_work(void **state)
{
	play(*state, HIDES_WORK, 2, "contradicts others about what was done");
}

static void who_tells_another_square(void **state)
{
	play(*state, OTHER_SQUARES, 2, "contradicts others about a sum");
}

static void who_tells_another_slice(void **state)
{
	play(*state, OTHER_SLICE, 0, "contradicts others about a sum");
}

static void who_sends_each_another_sum(void **state)
{
	play(*state, EQUIVOCATES, 2, "contradicts others about a sum");
}

static void who_sends_one_another_sum(void **state)
{
	play(*state, EQUIVOCATES_ONCE, 1, "contradicts others about a sum");
}

static void who_sums_among_others_than_told(void **state)
{
	play(*state, OTHER_LENGTH, 0, "has another sum than it was told to make");
}

static void who_holds_a_sum_up(void **state)
{
	play(*state, HOLDS_A_SUM_UP, 2, "holds a sum up");
}

static void who_holds_a_sum_up_and_blames_another(void **state)
{
	play(*state, HOLDS_AND_BLAMES, 1, "holds a sum up");
}

static void who_accuses_one_after_another(void **state)
{
	play(*state, ACCUSES, 1, "accused one after another");
}

/* All others say so, again and again: that must not use them up. And they know it no more. */
static void who_sends_all_what_no_computation_gives(void **state)
{
	struct world *w = *state;

	play(w, SENDS_ABSURD, 1, "sent what no computation gives");
	WORLD_UNTIL(w, w->console.committed >= LIES_FROM + 150 && only_liars_are_out(w));
	assert_null(strstr(w->console.journal, "shut out"));
	for (int liar = 0; liar < PLAYERS; liar++)
		for (int i = 0; w->lies[liar] == SENDS_ABSURD && i < PLAYERS; i++)
			assert_true(i == liar || !w->players[i].knows[liar]);
}

static void who_passes_nothing_on(void **state)
{
	play(*state, PASSES_NOTHING_ON, 1, "passes nothing on");
}

static void who_says_no_sum(void **state)
{
	play(*state, SAYS_NO_SUM, 1, "does not say its sum");
}

static void who_ends_nothing(void **state)
{
	play(*state, ENDS_NOTHING, 1, "does not end a task");
}

static void a_data_node_that_ends_nothing(void **state)
{
	play(*state, ENDS_NOTHING, 0, "does not end a task");
}

static void who_begins_a_task_and_denies_it(void **state)
{
	play(*state, ENDS_IN_SECRET, 2, "does not end a task");
}

static void who_starts_nothing(void **state)
{
	play(*state, STARTS_NOTHING, 2, "does not start a task");
}

static void a_data_node_that_does_nothing(void **state)
{
	play(*state, DOES_NOTHING, 0, "does not start a task");
}

static void who_does_nothing(void **state)
{
	play(*state, DOES_NOTHING, 1, "passes nothing on");
}

static void who_keeps_tensors(void **state)
{
	play(*state, KEEPS_TENSORS, 1, "does not get rid of a tensor");
}

static void who_says_that_it_ends_tasks(void **state)
{
	play(*state, COUNTS_TASKS, 1, "ends tasks that nobody gave it");
}

static void who_says_that_it_has_not_begun(void **state)
{
	play(*state, IS_ELSEWHERE, 1, "does not begin the iteration");
}

static void who_holds_other_weights(void **state)
{
	play(*state, OTHER_WEIGHTS, 1, "holds other weights again");
}

static void a_data_node_that_holds_other_weights(void **state)
{
	play(*state, OTHER_WEIGHTS, 0, "holds other weights again");
}

/* It fetches them, and is as before. */
static void a_bit_that_flips_once(void **state)
{
	struct world *w = *state;
	uint64_t enough;

	w->lies[4] = A_FLIPPED_BIT;
	WORLD_UNTIL(w, strstr(w->console.journal, "n04 S") && strstr(w->console.journal, "holds other weights than its stage"));
	WORLD_UNTIL(w, world_all_live(w));
	enough = w->console.committed + 5;
	WORLD_UNTIL(w, w->console.committed >= enough && world_all_live(w));
}

static void who_does_not_end_a_validation(void **state)
{
	play(*state, EVALUATES_NOT, 1, "does not end a task");
}

/* Nobody can say who. */
static void a_validation_that_does_not_come(void **state)
{
	struct world *w = *state;

	WORLD_UNTIL(w, world_all_ready(w));
	w->lies[0] = EVALUATES_IN_SECRET;
	WORLD_UNTIL(w, w->console.committed >= LIES_FROM + 9);
	assert_true(world_all_live(w));
	assert_non_null(strstr(w->console.journal, "no validation of it"));
}

/* The loss is the data nodes' to tell. */
static void who_answers_for_others_is_not_heard(void **state)
{
	struct world *w = *state;
	uint32_t seen = 0;

	WORLD_UNTIL(w, world_all_ready(w));
	for (int i = 0; i < PLAYERS; i++)
		if (w->players[i].stage == 1)
			w->lies[i] = ANSWERS_FOR_OTHERS;
	for (; seen < 4; seen++) {
		WORLD_UNTIL(w, w->validations > seen);
		assert_true(w->validated == 3.0f);
	}
}

/* ---- two at once ---- */

static void two_that_accuse_all(void **state)
{
	/* One may be left out on the other's word. */
	play_two(*state, (struct part){ ACCUSES_ALL, 0, "" }, (struct part){ ACCUSES_ALL, 2, "" });
}

static void two_that_tell_other_slices(void **state)
{
	play_two(*state, (struct part){ OTHER_SLICE, 1, "contradicts others about a sum" },
		 (struct part){ EQUIVOCATES, 2, "contradicts others about a sum" });
}

static void two_that_pass_nothing_on(void **state)
{
	play_two(*state, (struct part){ PASSES_NOTHING_ON, 1, "passes nothing on" },
		 (struct part){ PASSES_NOTHING_ON, 2, "passes nothing on" });
}

static void two_that_hold_sums_up(void **state)
{
	play_two(*state, (struct part){ HOLDS_A_SUM_UP, 0, "holds a sum up" },
		 (struct part){ HOLDS_AND_BLAMES, 2, "holds a sum up" });
}

/* Of three that contradict each other one is left alone, and has to sum by itself. */
static void two_of_a_stage_that_hold_sums_up(void **state)
{
	play_two(*state, (struct part){ HOLDS_AND_BLAMES, 1, "holds a sum up" },
		 (struct part){ HOLDS_AND_BLAMES, 1, "holds a sum up" });
}

static void two_of_a_stage_that_blame_the_first(void **state)
{
	const struct part part = { HOLDS_AND_BLAMES, 1, "" };
	struct world *w = *state;
	int one, two = PLAYERS - 1;

	WORLD_UNTIL(w, world_all_ready(w));
	while (w->players[two].stage != 1)
		two--;
	one = two - 1;
	while (w->players[one].stage != 1)
		one--;
	play_nodes(w, one, part, two, part);
}

static void two_of_a_stage_of_which_one_blames(void **state)
{
	play_two(*state, (struct part){ HOLDS_A_SUM_UP, 2, "" }, (struct part){ HOLDS_AND_BLAMES, 2, "" });
}

static void one_that_holds_other_weights_and_one_that_sends_other_sums(void **state)
{
	play_two(*state, (struct part){ OTHER_WEIGHTS, 1, "holds other weights again" },
		 (struct part){ OTHER_SLICE, 2, "contradicts others about a sum" });
}

static void two_that_count_what_they_must_not(void **state)
{
	play_two(*state, (struct part){ COUNTS_TWICE, 1, "counted what it must not" },
		 (struct part){ COUNTS_OTHERS, 1, "counted what it must not" });
}

static void two_that_end_nothing(void **state)
{
	play_two(*state, (struct part){ ENDS_NOTHING, 1, "does not end a task" },
		 (struct part){ STARTS_NOTHING, 2, "does not start a task" });
}

static void one_that_ends_nothing_and_one_with_another_sum(void **state)
{
	play_two(*state, (struct part){ ENDS_NOTHING, 0, "does not end a task" },
		 (struct part){ OTHER_SQUARES, 2, "contradicts others about a sum" });
}

static void one_that_hides_work_and_one_that_accuses(void **state)
{
	play_two(*state, (struct part){ HIDES_WORK, 2, "contradicts others about what was done" },
		 (struct part){ ACCUSES, 1, "accused one after another" });
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)
#define EVALUATING(name) cmocka_unit_test_setup_teardown(name, world_open_evaluating, world_close)

/* liar_test [PATTERN]: of the tests, those with such names. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(who_counts_twice),
		TEST(who_counts_what_others_do),
		TEST(who_does_not_count),
		TEST(a_data_node_that_is_home_early),
		TEST(who_hides_work),
		TEST(who_tells_another_square),
		TEST(who_tells_another_slice),
		TEST(who_sends_each_another_sum),
		TEST(who_sends_one_another_sum),
		TEST(who_sums_among_others_than_told),
		TEST(who_accuses_one_after_another),
		TEST(who_sends_all_what_no_computation_gives),
		TEST(who_passes_nothing_on),
		TEST(who_holds_a_sum_up),
		TEST(who_holds_a_sum_up_and_blames_another),
		TEST(who_missed_a_commit_catches_up),
		TEST(who_says_no_sum),
		TEST(who_ends_nothing),
		TEST(a_data_node_that_ends_nothing),
		TEST(who_begins_a_task_and_denies_it),
		TEST(who_starts_nothing),
		TEST(a_data_node_that_does_nothing),
		TEST(who_does_nothing),
		TEST(who_keeps_tensors),
		TEST(who_says_that_it_ends_tasks),
		TEST(who_says_that_it_has_not_begun),
		TEST(who_holds_other_weights),
		TEST(a_data_node_that_holds_other_weights),
		TEST(a_bit_that_flips_once),
		EVALUATING(who_does_not_end_a_validation),
		EVALUATING(a_validation_that_does_not_come),
		EVALUATING(who_answers_for_others_is_not_heard),
		TEST(two_that_accuse_all),
		TEST(two_that_tell_other_slices),
		TEST(two_that_pass_nothing_on),
		TEST(two_that_hold_sums_up),
		TEST(two_of_a_stage_that_hold_sums_up),
		TEST(two_of_a_stage_that_blame_the_first),
		TEST(two_of_a_stage_of_which_one_blames),
		TEST(one_that_holds_other_weights_and_one_that_sends_other_sums),
		TEST(two_that_count_what_they_must_not),
		TEST(two_that_end_nothing),
		TEST(one_that_ends_nothing_and_one_with_another_sum),
		TEST(one_that_hides_work_and_one_that_accuses),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
