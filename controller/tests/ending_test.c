/* ending_test.c - runs a whole controller with simulated agents until the run ends. However the run
 * ends, the agents' disks must then hold the last commit. The controller must not wait forever for
 * an agent that does not write. */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/tests/test.h"
#include "controller/tests/player.h"

static int world_open(void **state)
{
	const char *options[] = {
		"--eval-every", "0", "--checkpoint-every", "50", "--overdue-s", "1", NULL
	};

	*state = world_new(options);
	return 0;
}

static int world_open_short(void **state)
{
	const char *options[] = {
		"--eval-every", "3", "--checkpoint-every", "5", "--iterations", "7", NULL
	};

	*state = world_new(options);
	return 0;
}

static int world_open_patient(void **state)
{
	const char *options[] = {
		"--eval-every", "0", "--checkpoint-every", "5", "--iterations", "7", "--overdue-s",
		"60",           NULL
	};

	*state = world_new(options);
	return 0;
}

static int world_open_unsaved(void **state)
{
	const char *options[] = { "--eval-every", "0", "--checkpoint-every", "0", NULL };

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

/* Waits for the end of the run, and checks its reason. The controller may exit right after it
 * reports the end, and WORLD_UNTIL would fail then. */
static void run_ends(struct world *w, const char *why)
{
	char words[64];
	int64_t give_up = clock_monotonic_us() + TEST_PATIENCE_US;

	snprintf(words, sizeof(words), "the run ends: %s", why);
	while (!journal_has(w, words) && clock_monotonic_us() < give_up)
		world_turn(w);
	if (!journal_has(w, words))
		fail_msg("it does not end, up to iteration %d:\n%s", (int)w->console.committed,
			 w->console.journal);
}

/* Checks that the agents saved the last commit before the end. */
static void saved_at_the_end(const struct world *w)
{
	char words[48];
	const char *saved;

	snprintf(words, sizeof(words), "checkpoint of it%d:", (int)w->console.committed);
	saved = strstr(w->console.journal, words);
	assert_non_null(saved);
	assert_non_null(strstr(saved, "the run ends"));
}

TEST_WITH(a_checkpoint_follows_the_last_iteration, world_open_short, world_close)
{
	struct world *w = *state;

	run_ends(w, "done");
	assert_int_equal(w->console.committed, 7);
	saved_at_the_end(w);
}

/* Returns true if the controller's own log has these words. The log is read because the controller
 * may exit before a console has connected. */
static bool logged(const struct world *w, const char *words)
{
	char path[96], line[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", w->door->folder);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found = found || strstr(line, words);
	fclose(f);
	return found;
}

/* The controller is killed when all iterations are committed, but one stage is not yet on disk. */
TEST_WITH(a_new_controller_writes_the_last_checkpoint, world_open_patient, world_close)
{
	const char *options[] = { NULL };
	struct world *w = *state;

	WORLD_UNTIL(w, world_all_ready(w) && w->console.committed >= 5);
	for (int i = 0; i < PLAYERS; i++)
		w->faults[i] = w->players[i].stage == 1 ? SAVES_NOT : HEALTHY;
	WORLD_UNTIL(w, w->console.committed == 7);
	assert_false(journal_has(w, "the run ends"));
	for (int i = 0; i < PLAYERS; i++)
		w->faults[i] = HEALTHY;
	door_restart(w->door, options);
	for (int64_t give_up = clock_monotonic_us() + TEST_PATIENCE_US;
	     !logged(w, "the run ends: done") && clock_monotonic_us() < give_up;)
		world_turn(w);
	assert_true(logged(w, "the run ends: done"));
	assert_true(logged(w, "checkpoint of it7:"));
}

#define FIXTURE_TEST(name) TEST_WITH(name, world_open, world_close)

FIXTURE_TEST(an_operator_ends_the_run_with_a_checkpoint)
{
	struct world *w = *state;
	struct msg arm = {
		.type = MSG_COMMAND,
		.u.command = { .id = 1, .verb = COMMAND_ARM, .node = -1, .peer = -1, .value = 60 }
	};
	struct msg stop = { .type = MSG_COMMAND,
			    .u.command = {
				    .id = 2, .verb = COMMAND_STOP, .node = -1, .peer = -1 } };

	WORLD_UNTIL(w, world_all_ready(w) && w->console.committed > 1);
	visitor_send(&w->console, &arm, POST_RELIABLE);
	visitor_send(&w->console, &stop, POST_RELIABLE);
	run_ends(w, "stopped by the operator");
	saved_at_the_end(w);
}

/* Waits until all nodes are in an iteration that does not end. */
static void wait_in_an_iteration(struct world *w)
{
	WORLD_UNTIL(w, world_all_ready(w) && w->console.committed > 1);
	w->waits = w->console.committed + 10;
	for (int i = 0; i < PLAYERS; i++)
		WORLD_UNTIL(w, w->players[i].iteration == w->waits);
}

FIXTURE_TEST(a_signal_ends_the_run_with_a_checkpoint)
{
	struct world *w = *state;

	wait_in_an_iteration(w);
	kill(w->door->pid, SIGTERM);
	run_ends(w, "stopped by a signal");
	assert_int_equal(w->console.committed, w->waits - 1);
	saved_at_the_end(w);
}

static void silence_a_stage(struct world *w)
{
	wait_in_an_iteration(w);
	for (int i = 0; i < PLAYERS; i++)
		w->faults[i] = w->players[i].stage == 1 ? SAVES_NOT : HEALTHY;
	kill(w->door->pid, SIGTERM);
}

FIXTURE_TEST(a_node_that_does_not_write_is_not_awaited)
{
	struct world *w = *state;

	silence_a_stage(w);
	run_ends(w, "stopped by a signal");
	assert_true(journal_has(w, "is incomplete: 2 of 3 stages"));
}

FIXTURE_TEST(the_second_signal_ends_the_run_at_once)
{
	struct world *w = *state;

	silence_a_stage(w);
	WORLD_UNTIL(w, w->phase == PHASE_PAUSED);
	kill(w->door->pid, SIGTERM);
	run_ends(w, "stopped by a signal");
	assert_false(journal_has(w, "is incomplete"));
}

TEST_WITH(without_checkpoints_the_run_ends_at_once, world_open_unsaved, world_close)
{
	struct world *w = *state;

	wait_in_an_iteration(w);
	kill(w->door->pid, SIGTERM);
	run_ends(w, "stopped by a signal");
	assert_false(journal_has(w, "checkpoint of it"));
}
