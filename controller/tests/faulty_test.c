/* faulty_test.c - a whole controller with simulated agents, one of which is faulty.
 *
 * The run continues in every case. The controller excludes a node that breaks the protocol. A node
 * that hangs counts as dead and returns. At the end all other nodes take part. */

#include <stdio.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/tests/player.h"

static int open_skipping(void **state, const char *every, const char *skips)
{
	const char *options[] = { "--eval-every", every, "--skip-bad-steps", skips, NULL };

	*state = world_new(options);
	return 0;
}

static int world_open(void **state)
{
	return open_skipping(state, "0", "0");
}

static int world_open_evaluating(void **state)
{
	return open_skipping(state, "3", "0");
}

static int world_open_skipping(void **state)
{
	return open_skipping(state, "0", "3");
}

static int world_close(void **state)
{
	return world_free(*state);
}

static bool only_faulty_are_out(const struct world *w)
{
	for (int i = 0; i < PLAYERS; i++)
		if (w->states[i] != (w->faults[i] == HEALTHY ? NODE_LIVE : NODE_FAILED))
			return false;
	return true;
}

/* Returns true if a journal line about the node contains the words. In such a line, a name and a
 * location follow the node's number. */
static bool line_has(const struct world *w, int node, const char *words)
{
	char number[16];

	snprintf(number, sizeof(number), "n%02d (", node);
	for (const char *at = w->console.journal; (at = strstr(at, number)); at++) {
		const char *end = strchr(at, '\n'), *found = strstr(at, words);

		if (found && (!end || found < end))
			return true;
	}
	return false;
}

static bool journal_has(const struct world *w, int node, const char *why)
{
	char words[128];

	snprintf(words, sizeof(words), ") S%d %s", w->players[node].stage, why);
	return line_has(w, node, words);
}

static int first_of(struct world *w, uint8_t stage)
{
	int node = 0;

	WORLD_UNTIL(w, world_all_ready(w));
	while (w->players[node].stage != stage)
		node++;
	return node;
}

/* Gives all nodes of the stage a fault. */
static void give_stage_fault(struct world *w, uint8_t stage, enum player_fault fault)
{
	WORLD_UNTIL(w, world_all_ready(w));
	for (int i = 0; i < PLAYERS; i++)
		if (w->players[i].stage == stage)
			w->faults[i] = fault;
}

/* Gives the first node of the stage a fault. Checks that this node is excluded, that all other
 * nodes stay, and that five more iterations are committed. */
static void is_excluded(struct world *w, enum player_fault fault, uint8_t stage, const char *why)
{
	int node = first_of(w, stage);
	uint64_t enough;

	w->faults[node] = fault;
	WORLD_UNTIL(w, w->console.committed >= FAULTS_FROM && only_faulty_are_out(w));
	enough = w->console.committed + 5;
	WORLD_UNTIL(w, w->console.committed >= enough && only_faulty_are_out(w));
	if (!journal_has(w, node, why))
		fail_msg("no \"%s\" in the journal:\n%s", why, w->console.journal);
}

/* The first node of the stage hangs until the controller takes it for dead. Then the node works
 * again, and rejoins. */
static void is_dropped(struct world *w, enum player_fault fault, uint8_t stage, const char *why)
{
	int node = first_of(w, stage);
	uint64_t enough;

	w->faults[node] = fault;
	WORLD_UNTIL(w, journal_has(w, node, why));
	w->faults[node] = HEALTHY;
	WORLD_UNTIL(w, world_all_live(w));
	enough = w->console.committed + 5;
	WORLD_UNTIL(w, w->console.committed >= enough && world_all_live(w));
}

#define FIXTURE_TEST(name) TEST_WITH(name, world_open, world_close)
#define EXCLUDED(name, fault, stage, why) \
	FIXTURE_TEST(name) \
	{ \
		is_excluded(*state, fault, stage, why); \
	}
#define DROPPED(name, fault, stage, why) \
	FIXTURE_TEST(name) \
	{ \
		is_dropped(*state, fault, stage, why); \
	}

/* The iteration stalls because one node missed the commit. The controller drops this node, which
 * then fetches the weights. */
FIXTURE_TEST(a_node_that_missed_a_commit_catches_up)
{
	struct world *w = *state;
	uint64_t enough;

	w->faults[4] = MISSES_A_COMMIT;
	WORLD_UNTIL(w, world_all_live(w) && line_has(w, 4, ") is heard again"));
	enough = w->console.committed + 5;
	WORLD_UNTIL(w, w->console.committed >= enough);
	assert_non_null(strstr(w->console.journal, "holds the weights of another iteration"));
	assert_true(w->players[4].committed >= enough - 1);
}

EXCLUDED(a_node_counts_twice, COUNTS_TWICE, 1, "counted a gradient that it must not count")
EXCLUDED(a_node_counts_gradients_of_others, COUNTS_OTHERS, 2,
	 "counted a gradient that it must not count")
EXCLUDED(a_node_does_not_count, COUNTS_NOT, 1, "reported a sum that lacks a gradient")
EXCLUDED(a_node_reports_another_sum_of_squares, OTHER_SQUARES, 2, "has another sum than its stage")
EXCLUDED(a_node_reports_another_slice, OTHER_SLICE, 0, "has another sum than its stage")
EXCLUDED(a_node_sums_among_other_nodes, OTHER_LENGTH, 0,
	 "summed over another number of replicas than ordered")

/* All other nodes report the faulty node, and the limits on reports must allow this. The
 * controller then makes the other nodes forget the faulty node's key. */
FIXTURE_TEST(a_node_sends_impossible_numbers_to_all)
{
	struct world *w = *state;

	is_excluded(w, SENDS_ABSURD, 1, "sent numbers that no computation gives");
	WORLD_UNTIL(w, w->console.committed >= FAULTS_FROM + 150 && only_faulty_are_out(w));
	assert_null(strstr(w->console.journal, "shut out"));
	for (int faulty = 0; faulty < PLAYERS; faulty++)
		for (int i = 0; w->faults[faulty] == SENDS_ABSURD && i < PLAYERS; i++)
			assert_true(i == faulty || !w->players[i].knows[faulty].key);
}

EXCLUDED(one_data_node_with_impossible_losses_is_excluded, LOSS_IS_NAN, 0,
	 "computed an impossible loss")

/* Two nodes compute impossible losses from the same weights. Neither node is at fault: the training
 * has diverged, and the run ends. */
FIXTURE_TEST(impossible_losses_of_two_data_nodes_end_the_run)
{
	struct world *w = *state;

	give_stage_fault(w, 0, LOSS_IS_NAN);
	WORLD_UNTIL(w, w->phase == PHASE_FINISHED);
	assert_non_null(strstr(w->console.journal,
			       "the run ends: the training has diverged in iteration 4: n0"));
	assert_int_equal(w->console.committed, FAULTS_FROM - 1);
	for (int i = 0; i < PLAYERS; i++)
		assert_int_not_equal(w->states[i], NODE_FAILED);
}

#define SKIPPING_TEST(name) TEST_WITH(name, world_open_skipping, world_close)

/* The losses of two iterations' data are not finite. The iteration is repeated with the next data,
 * no node is blamed, and all later iterations use later data. */
SKIPPING_TEST(bad_data_is_skipped)
{
	struct world *w = *state;
	uint64_t newest = 0;

	give_stage_fault(w, 0, DATA_IS_BAD);
	WORLD_UNTIL(w, w->console.committed >= FAULTS_FROM + 5);
	assert_non_null(strstr(w->console.journal, "its data is skipped (2 of 3 times)"));
	assert_null(strstr(w->console.journal, "diverged"));
	assert_true(world_all_live(w));
	for (int i = 0; i < PLAYERS; i++)
		newest = w->players[i].iteration > newest ? w->players[i].iteration : newest;
	assert_int_equal(w->data, newest - 1 + BAD_DATA);
}

SKIPPING_TEST(a_run_without_good_data_ends)
{
	struct world *w = *state;

	give_stage_fault(w, 0, LOSS_IS_NAN);
	WORLD_UNTIL(w, w->phase == PHASE_FINISHED);
	assert_non_null(strstr(w->console.journal, "its data is skipped (3 of 3 times)"));
	assert_non_null(strstr(w->console.journal,
			       "the run ends: the training has diverged in iteration 4: n0"));
	for (int i = 0; i < PLAYERS; i++)
		assert_int_not_equal(w->states[i], NODE_FAILED);
}

/* All other nodes report the faulty node in each attempt, and some reports arrive after the
 * attempt's end. Each attempt still counts as one skip. After the last skip the controller excludes
 * the node, as in a run without skips. */
SKIPPING_TEST(a_node_that_sends_impossible_numbers_is_excluded_after_the_skips)
{
	struct world *w = *state;

	is_excluded(w, SENDS_ABSURD, 1, "sent numbers that no computation gives");
	assert_non_null(strstr(w->console.journal, "its data is skipped (1 of 3 times)"));
	assert_non_null(strstr(w->console.journal, "its data is skipped (3 of 3 times)"));
	WORLD_UNTIL(w, w->console.committed >= FAULTS_FROM + 20 && only_faulty_are_out(w));
}

DROPPED(a_node_ends_no_task, ENDS_NOTHING, 1, "does not end a task")
DROPPED(a_data_node_ends_no_task, ENDS_NOTHING, 0, "does not end a task")
DROPPED(a_node_starts_no_task, STARTS_NOTHING, 2, "does not start a task")
DROPPED(a_node_keeps_tensors, KEEPS_TENSORS, 1, "does not send a tensor")
DROPPED(a_node_delays_a_sum, HOLDS_A_SUM_UP, 2, "does not report its sum")
DROPPED(a_node_reports_no_sum, REPORTS_NO_SUM, 1, "does not report its sum")

FIXTURE_TEST(two_nodes_hang)
{
	struct world *w = *state;
	int one = first_of(w, 1), two = first_of(w, 2);

	w->faults[one] = ENDS_NOTHING;
	w->faults[two] = STARTS_NOTHING;
	WORLD_UNTIL(w, journal_has(w, one, "does not end a task") &&
			       journal_has(w, two, "does not start a task"));
	w->faults[one] = w->faults[two] = HEALTHY;
	WORLD_UNTIL(w, world_all_live(w));
}

/* The faulty node reports that it is at rest, as all others do. The iteration restarts until this
 * node works. */
FIXTURE_TEST(the_iteration_restarts_until_an_idle_node_works)
{
	struct world *w = *state;
	int node = first_of(w, 1);
	uint64_t enough;

	w->faults[node] = DOES_NOTHING;
	WORLD_UNTIL(w, strstr(w->console.journal, "has stalled: it restarts"));
	w->faults[node] = HEALTHY;
	enough = w->console.committed + 5;
	WORLD_UNTIL(w, w->console.committed >= enough && world_all_live(w));
}

EXCLUDED(a_node_holds_other_weights, OTHER_WEIGHTS, 1, "holds other weights again")
EXCLUDED(a_data_node_holds_other_weights, OTHER_WEIGHTS, 0, "holds other weights again")

/* A bit of the node's weights has flipped. The node fetches the right weights and rejoins. */
FIXTURE_TEST(a_bit_flips_once)
{
	struct world *w = *state;
	uint64_t enough;

	w->faults[4] = A_FLIPPED_BIT;
	WORLD_UNTIL(w, line_has(w, 4, "holds other weights than its stage"));
	WORLD_UNTIL(w, world_all_live(w));
	enough = w->console.committed + 5;
	WORLD_UNTIL(w, w->console.committed >= enough && world_all_live(w));
}

#define EVALUATING(name) TEST_WITH(name, world_open_evaluating, world_close)

EVALUATING(a_node_does_not_end_a_validation)
{
	is_dropped(*state, EVALUATES_NOT, 1, "does not end a task");
}

/* The answers to a validation do not arrive. The controller cannot tell which node of the route is
 * at fault, so it abandons the validation, drops no node, and continues the run. */
EVALUATING(a_validation_does_not_arrive)
{
	struct world *w = *state;

	WORLD_UNTIL(w, world_all_ready(w));
	w->faults[0] = EVALUATES_IN_SECRET;
	WORLD_UNTIL(w, w->console.committed >= FAULTS_FROM + 9);
	assert_true(world_all_live(w));
	assert_non_null(strstr(w->console.journal, "validation of it"));
}

/* The nodes of stage 1 answer a validation in place of the data nodes, and report a loss of 1. The
 * controller accepts losses from data nodes only, so the result is their loss, 3. */
EVALUATING(an_answer_for_another_node_is_ignored)
{
	struct world *w = *state;
	uint32_t seen = 0;

	give_stage_fault(w, 1, ANSWERS_FOR_OTHERS);
	for (; seen < 4; seen++) {
		WORLD_UNTIL(w, w->validations > seen);
		assert_true(w->validated == 3.0f);
	}
}

/* When an operator returns the lease, the failures that the operator injected are healed. */
FIXTURE_TEST(a_returned_lease_heals_the_injected_failures)
{
	struct world *w = *state;
	struct msg commands[] = {
		{ .u.command = { .verb = COMMAND_ARM, .value = 60 } },
		{ .u.command = { .verb = COMMAND_INJECT, .fault = FAULT_SLOW_NODE, .factor = 2 } },
		{ .u.command = { .verb = COMMAND_ARM, .value = 0 } },
	};

	WORLD_UNTIL(w, world_all_ready(w));
	for (int i = 0; i < 3; i++) {
		commands[i].type = MSG_COMMAND;
		commands[i].u.command.id = (uint64_t)i + 1;
		commands[i].u.command.peer = -1;
		visitor_send(&w->console, &commands[i], POST_RELIABLE);
	}
	WORLD_UNTIL(w, strstr(w->console.journal, "healed: the lease was returned"));
}
