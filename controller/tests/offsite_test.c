/* offsite_test.c - the controller never waits forever for a store of checkpoints. At the end of the
 * run it abandons a checkpoint whose files the record cannot name, and a store that fails. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/tests/test.h"
#include "controller/tests/under_way.h"
#include "controller/weights/offsite.h"
#include "model/files/checkpoint.h"
#include "store/store.h"

enum { NEWEST = 5 };

/* Completes a checkpoint. This machine has only the file of stage 0. */
static int begin(void **state)
{
	struct controller *c = *state = under_way_of(NODES, EACH, 2);
	char path[256];

	c->backups.offsite = offsite_new();
	c->backups.saving.last = NEWEST;
	c->run.options.checkpoint_to = "true";
	assert_int_equal(
		checkpoint_stage_path(path, sizeof(path), c->run.options.run_dir, 0, NEWEST), 0);
	*strrchr(path, '/') = '\0';
	assert_int_equal(file_make_folder(path, NULL), 0);
	assert_int_equal(
		checkpoint_stage_path(path, sizeof(path), c->run.options.run_dir, 0, NEWEST), 0);
	assert_int_equal(file_write(path, "no weights", 10, FILE_PRIVATE, NULL), 0);
	return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, begin, under_way_end)

static bool journal_has(const struct controller *c, const char *words)
{
	for (uint32_t i = 0; i < c->run.journal.n_notes; i++)
		if (strstr(c->run.journal.notes[i].text, words))
			return true;
	return false;
}

/* Lets time pass, one second of the controller's time in each turn, until the condition holds. */
#define TURN_UNTIL(c, condition) \
	do { \
		int64_t give_up_ = clock_monotonic_us() + TEST_PATIENCE_US; \
		while (!(condition)) { \
			assert_true(clock_monotonic_us() < give_up_); \
			offsite_turn(&(c)->backups); \
			usleep(500); \
			(c)->run.now_us += SECOND; \
		} \
	} while (0)

FIXTURE_TEST(the_end_does_not_wait_for_files_that_the_record_does_not_name)
{
	struct controller *c = *state;

	offsite_turn(&c->backups);
	TURN_UNTIL(c, !offsite_awaited(&c->backups));
	assert_true(journal_has(c, "cannot be collected: the record has no hash"));
}

/* skippipe export waits for files that the controller cannot collect. The controller writes the
 * reason to the file collect.failed, so the export does not wait forever. */
FIXTURE_TEST(an_export_gets_the_reason)
{
	struct controller *c = *state;
	char path[256], *why;
	size_t size;

	c->run.options.checkpoint_to = NULL;
	snprintf(path, sizeof(path), "%s/collect", c->run.options.run_dir);
	assert_int_equal(file_write(path, "5\n", 2, FILE_PRIVATE, NULL), 0);
	snprintf(path, sizeof(path), "%s/collect.failed", c->run.options.run_dir);
	TURN_UNTIL(c, access(path, F_OK) == 0);
	assert_false(offsite_asked(&c->backups));
	assert_int_equal(file_read(path, 1000, &why, &size, NULL), 0);
	assert_true(size > 0);
	free(why);
}

/* The file on this machine is damaged, and the node that saved it does not send it again. After 60
 * s the controller abandons the checkpoint, so the end of the run does not wait for it. */
FIXTURE_TEST(a_node_that_sends_nothing_is_not_waited_for)
{
	struct controller *c = *state;
	struct store_shard k = { .iteration = NEWEST, .node = 1, .host = "machine1", .hash = 700 };

	assert_int_equal(store_shard(c->run.record.store, &k, NULL), 0);
	offsite_turn(&c->backups);
	TURN_UNTIL(c, !offsite_awaited(&c->backups));
	assert_true(journal_has(c, "no node sends S0: n01 has sent no part for 60 s"));
}

/* The journal says that the end of the run waits for the store, and for which checkpoint. */
FIXTURE_TEST(the_journal_says_that_the_end_waits_for_the_store)
{
	struct controller *c = *state;

	offsite_turn(&c->backups);
	/* The record has no hash of the checkpoint's file, so the controller abandons the
	 * checkpoint */
	assert_false(offsite_awaited(&c->backups));
	c->backups.saving.last = NEWEST + 1;
	assert_true(offsite_awaited(&c->backups));
	assert_true(journal_has(c, "the run ends once the checkpoint of it6 is in the store"));
}
