/* silent_test.c - runs a whole controller with simulated agents. Some agents live and work, but
 * ignore one kind of message: orders to restore a stage, or questions about the gradients that they
 * counted. The run must not wait for these agents forever. */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/tests/test.h"
#include "controller/tests/player.h"

static int world_open(void **state)
{
	const char *options[] = { "--eval-every", "0", "--checkpoint-every", "5", NULL };

	*state = world_new(options);
	return 0;
}

static int world_open_unsaved(void **state)
{
	const char *options[] = { "--eval-every", "0", "--checkpoint-every", "0", "--overdue-s",
				  "60",           NULL };

	*state = world_new(options);
	return 0;
}

static int world_close(void **state)
{
	return world_free(*state);
}

static bool journal_has(const struct world *w, const char *words)
{
	return strstr(w->console.journal, words) != NULL;
}

static bool all_awake_live(const struct world *w)
{
	for (int i = 0; i < PLAYERS; i++)
		if (!w->players[i].asleep && w->states[i] != NODE_LIVE)
			return false;
	return true;
}

static void run_continues(struct world *w)
{
	uint64_t enough = w->console.committed + 5;

	WORLD_UNTIL(w, all_awake_live(w) && w->console.committed >= enough);
}

/* Replaces the processes of stage S2 once a checkpoint exists. No node then holds the stage's
 * weights. */
static void lose_a_stage(struct world *w)
{
	WORLD_UNTIL(w, journal_has(w, "checkpoint of it5"));
	/* If the checkpoint were of the last commit, the run would not go back. */
	WORLD_UNTIL(w, w->console.committed > 5);
	for (int i = 0; i < PLAYERS; i++)
		if (w->players[i].stage == 2)
			player_replace(&w->players[i]);
	WORLD_UNTIL(w, journal_has(w, "the run goes back"));
}

#define FIXTURE_TEST(name) TEST_WITH(name, world_open, world_close)

FIXTURE_TEST(another_node_reads_the_checkpoint)
{
	struct world *w = *state;
	int silent = 0;

	WORLD_UNTIL(w, world_all_ready(w));
	while (w->players[silent].stage != 2)
		silent++;
	w->faults[silent] = RESTORES_NOT;
	lose_a_stage(w);
	WORLD_UNTIL(w, journal_has(w, "does not answer the order to restore S2"));
	WORLD_UNTIL(w, journal_has(w, "are repeated"));
	run_continues(w);
}

static bool anyone_failed(const struct world *w)
{
	for (int i = 0; i < PLAYERS; i++)
		if (w->states[i] == NODE_FAILED)
			return true;
	return false;
}

/* Stage S2 is lost and can only be read from the checkpoint. Soon every other stage has only one
 * node left, so only the nodes of S2 can be asked to read it. */
FIXTURE_TEST(all_nodes_are_asked_again)
{
	struct world *w = *state;

	WORLD_UNTIL(w, world_all_ready(w));
	for (int i = 0; i < PLAYERS; i++)
		w->faults[i] = RESTORES_NOT;
	lose_a_stage(w);
	for (int i = 0; i < 6; i++) {
		w->console.journal[0] = 0;
		WORLD_UNTIL(w, journal_has(w, "does not answer the order to restore S2"));
		assert_false(anyone_failed(w));
	}
	for (int i = 0; i < PLAYERS; i++)
		w->faults[i] = HEALTHY;
	WORLD_UNTIL(w, journal_has(w, "are repeated"));
	run_continues(w);
}

/* Waits for the middle of the second iteration after a checkpoint. Nodes that are not lost then
 * have newer weights than the checkpoint. */
static void between_checkpoints(struct world *w)
{
	w->waits = w->console.committed / 5 * 5 + 13;
	for (int i = 0; i < PLAYERS; i++)
		WORLD_UNTIL(w, w->players[i].asleep || w->players[i].iteration == w->waits);
	w->waits = 0;
}

/* No node can read the file of stage S0, and its neighbours cannot rebuild the stage. The run waits
 * for a new process that can read the file. */
FIXTURE_TEST(a_new_process_may_have_the_file)
{
	struct world *w = *state;

	WORLD_UNTIL(w, world_all_ready(w));
	between_checkpoints(w);
	for (int i = 0; i < PLAYERS; i++) {
		w->faults[i] = CANNOT_READ;
		if (w->players[i].stage == 0)
			player_replace(&w->players[i]);
	}
	WORLD_UNTIL(w,
		    journal_has(w, "the last copy of S1") && journal_has(w, "the last copy of S2"));
	for (int i = 0; i < 200; i++)
		world_turn(w);
	assert_false(journal_has(w, "are repeated"));
	assert_false(journal_has(w, "no copy, no checkpoint"));
	for (int i = 0; i < PLAYERS; i++)
		w->faults[i] = HEALTHY;
	w->console.journal[0] = 0;
	for (int i = 0; i < PLAYERS; i++)
		if (w->states[i] != NODE_LIVE)
			player_replace(&w->players[i]);
	WORLD_UNTIL(w, journal_has(w, "are repeated"));
	run_continues(w);
}

/* Puts all but one node of each stage to sleep. */
static void sleep_all_but_one_of_each_stage(struct world *w)
{
	bool one[3] = { false };

	for (int i = 0; i < PLAYERS; i++) {
		struct player *p = &w->players[i];

		p->asleep = one[p->stage];
		one[p->stage] = true;
	}
	for (int i = 0; i < PLAYERS; i++)
		WORLD_UNTIL(w, !w->players[i].asleep || w->states[i] == NODE_DEAD);
}

static int awake_node_of(const struct world *w, int stage)
{
	int who = 0;

	while (w->players[who].asleep || w->players[who].stage != stage)
		who++;
	return who;
}

/* The last node of a stage reads its file only when the files of the other stages can be read.
 * Stage S1 is rebuilt from its neighbours, which still hold their weights. */
FIXTURE_TEST(the_last_node_of_a_stage_reads_last)
{
	struct world *w = *state;
	int last;

	w->slow_copies = true;
	WORLD_UNTIL(w, world_all_ready(w));
	sleep_all_but_one_of_each_stage(w);
	between_checkpoints(w);
	last = awake_node_of(w, 1);
	w->faults[last] = CANNOT_READ;
	player_replace(&w->players[last]);
	WORLD_UNTIL(w, journal_has(w, "S1 is lost: no copy, no checkpoint"));
	assert_true(journal_has(w, "the run goes back"));
	run_continues(w);
	assert_false(journal_has(w, "are repeated"));
}

#define UNSAVED(name) TEST_WITH(name, world_open_unsaved, world_close)

/* No copy and no checkpoint exist, so the stage would be rebuilt from its neighbours. Before that,
 * its suspended nodes return. */
UNSAVED(a_stage_whose_nodes_slept_is_not_rebuilt)
{
	struct world *w = *state;

	WORLD_UNTIL(w, world_all_ready(w) && w->console.committed > 1);
	for (int i = 0; i < PLAYERS; i++) {
		w->players[i].asleep = w->players[i].stage == 1;
		w->faults[i] = RESTORES_NOT;
	}
	WORLD_UNTIL(w, journal_has(w, "S1 is lost: no copy, no checkpoint"));
	for (int i = 0; i < PLAYERS; i++)
		w->players[i].asleep = false;
	WORLD_UNTIL(w, journal_has(w, "is back with the last copy of S1"));
	run_continues(w);
	assert_false(journal_has(w, "averaged from its neighbours after"));
}

/* The last node of S2 is replaced by a new process, which restores the stage from a copy. This
 * process has done no work in the present iteration, so the iteration restarts. */
UNSAVED(a_stage_restored_by_a_new_process_restarts_the_iteration)
{
	struct world *w = *state;
	int last;

	WORLD_UNTIL(w, world_all_ready(w) && w->console.committed > 1);
	sleep_all_but_one_of_each_stage(w);
	WORLD_UNTIL(w, journal_has(w, "holds a copy of S2"));
	between_checkpoints(w);
	last = awake_node_of(w, 2);
	w->faults[last] = BEATS_FIRST;
	player_replace(&w->players[last]);
	WORLD_UNTIL(w, journal_has(w, "S2 has lost its last replica"));
	run_continues(w);
	assert_false(journal_has(w, "does not begin the iteration"));
}

/* The controller pauses before it repeats the order, so that orders and refusals do not flood the
 * network. */
UNSAVED(a_node_that_cannot_make_a_stage_is_asked_again)
{
	struct world *w = *state;
	int asked = 0;

	WORLD_UNTIL(w, world_all_ready(w) && w->console.committed > 1);
	for (int i = 0; i < PLAYERS; i++) {
		w->players[i].asleep = w->players[i].stage == 1;
		w->faults[i] = CANNOT_MAKE;
	}
	WORLD_UNTIL(w, journal_has(w, "it is not there"));
	w->console.journal[0] = 0;
	for (int64_t end_us = clock_monotonic_us() + 2000000; clock_monotonic_us() < end_us;)
		world_turn(w);
	for (const char *at = w->console.journal; (at = strstr(at, "it is not there")); at++)
		asked++;
	assert_in_range(asked, 1, 3);
	for (int i = 0; i < PLAYERS; i++)
		w->faults[i] = HEALTHY;
	WORLD_UNTIL(w, journal_has(w, "averaged from its neighbours after"));
	run_continues(w);
}

/* Excludes one node of stage S1, because another node reports that it rejects this node's tensors.
 * Makes the other nodes of S1 sleep in the same iteration. Returns the excluded node. */
static int leave_one(struct world *w)
{
	struct msg report = { .type = MSG_TROUBLE };
	int left = 0;

	WORLD_UNTIL(w, world_all_ready(w));
	while (w->players[left].stage != 1)
		left++;
	w->waits = w->console.committed + 10;
	for (int i = 0; i < PLAYERS; i++)
		WORLD_UNTIL(w, w->players[i].iteration == w->waits);
	report.u.trouble.refused_node = left;
	visitor_send(&w->players[left == 0].v, &report, POST_RELIABLE);
	WORLD_UNTIL(w, w->states[left] == NODE_FAILED);
	for (int i = 0; i < PLAYERS; i++)
		w->players[i].asleep = w->players[i].stage == 1 && i != left;
	WORLD_UNTIL(w, journal_has(w, "S1 has lost its last replica"));
	w->waits = 0;
	return left;
}

UNSAVED(weights_of_an_excluded_node_are_used)
{
	struct world *w = *state;
	char words[64];
	int left = leave_one(w);

	snprintf(words, sizeof(words), "from the copy of it9 at n%02d", left);
	WORLD_UNTIL(w, journal_has(w, words));
	WORLD_UNTIL(w, w->console.committed >= 15);
	assert_false(journal_has(w, "averaged"));
}

/* The weights that are fetched from the excluded node have another hash than the node reported.
 * Therefore they are not used, and the stage is rebuilt from its neighbours. */
UNSAVED(other_weights_of_an_excluded_node_are_not_used)
{
	struct world *w = *state;

	w->forged = 1;
	leave_one(w);
	WORLD_UNTIL(w, journal_has(w, "which is excluded, does not send S1"));
	w->forged = 0;
	WORLD_UNTIL(w, journal_has(w, "averaged from its neighbours after it9"));
}

/* All nodes of stage S1 sleep while a new controller starts, and for longer than this controller
 * waits for nodes. Only these nodes have the last commit of their stage, so the run must wait
 * until they are back. */
UNSAVED(a_node_that_slept_through_a_takeover_is_awaited)
{
	const char *options[] = { "--silence-ms", "3000", "--overdue-s", "60",
				  "--gather-s",   "2",    NULL };
	struct world *w = *state;
	uint64_t at;

	w->slow_copies = true;
	WORLD_UNTIL(w, world_all_ready(w));
	w->waits = at = w->console.committed + 10;
	for (int i = 0; i < PLAYERS; i++)
		WORLD_UNTIL(w, w->players[i].iteration == at);
	for (int i = 0; i < PLAYERS; i++)
		w->players[i].asleep = w->players[i].stage == 1;
	door_restart(w->door, options);
	WORLD_UNTIL(w, journal_has(w, "not every stage has an agent"));
	w->waits = 0;
	w->slow_copies = false;
	for (int i = 0; i < PLAYERS; i++)
		w->players[i].asleep = false;
	run_continues(w);
	assert_true(w->console.committed >= at);
	assert_false(journal_has(w, "no copy, no checkpoint"));
	assert_false(journal_has(w, "goes back"));
}

/* The stage's sum contains this node's gradients, but the controller does not know yet which
 * gradients these are. The controller must know them before it commits. */
FIXTURE_TEST(a_sum_waits_for_the_counts_of_a_silent_node)
{
	struct world *w = *state;

	WORLD_UNTIL(w, world_all_ready(w) && w->console.committed > 1);
	w->waits = w->console.committed + 10;
	for (int i = 0; i < PLAYERS; i++)
		WORLD_UNTIL(w, w->players[i].iteration == w->waits);
	w->players[4].asleep = true;
	world_work(w);
	WORLD_UNTIL(w, journal_has(w, "run again without n04"));
	run_continues(w);
}
