/* disk.c - a disk that others have filled: the run waits, and goes on by itself.
 *
 * The store holds some of the disk back (store_reserve). What must be written while there is no
 * room goes there: an iteration under way is committed, what agents, operators and the journal say
 * is kept. The next iteration does not begin before there is room for the reserve again. Where
 * others have taken that room too a commit waits, and is tried again until it can be written:
 * nothing was announced, and agents wait for it with their sums.
 */
#include "controller/history/disk.h"

#include <errno.h>

#include "controller/run.h"
#include "controller/history/record.h"
#include "controller/operator/journal.h"

enum { LOOK_EVERY_US = 1000000, SAY_EVERY_US = 60000000 };

bool disk_full(const struct run *run)
{
	return run->disk.full;
}

static void say_full(struct run *run)
{
	run->disk.next_said_us = run->now_us + SAY_EVERY_US;
	note(run, NOTE_ALERT, -1, 0, "the disk is full: the run waits for %d MiB in %.110s",
	     STORE_RESERVE >> 20, run->options.run_dir);
	record_disk(run);
}

static void now_full(struct run *run)
{
	if (run->disk.full)
		return;
	run->disk.full = true;
	run->disk.since_us = run->now_us;
	say_full(run);
}

void disk_refused(struct run *run)
{
	run->disk.commit_waits = true;
	now_full(run);
}

void disk_turn(struct run *run)
{
	struct error err = { "" };
	int rc;

	run->disk.room = false;
	if ((store_reserved(run->history.store) && !run->disk.full) ||
	    run->now_us < run->disk.next_look_us)
		return;
	run->disk.next_look_us = run->now_us + LOOK_EVERY_US;
	rc = store_reserve(run->history.store, &err);
	if (rc == -ENOSPC) {
		now_full(run);
		if (run->now_us >= run->disk.next_said_us)
			say_full(run);
	} else if (rc != 0 && !run->disk.warned) { /* it is done without */
		run->disk.warned = true;
		note(run, NOTE_WARNING, -1, 0, "%.180s", err.text);
	}
	run->disk.room = rc != -ENOSPC;
	run->requests.look_at_sums = run->requests.look_at_sums || run->disk.commit_waits;
	run->disk.commit_waits = false;
}

void disk_go_on(struct run *run)
{
	if (!run->disk.full || !run->disk.room || run->disk.commit_waits)
		return;
	run->disk.full = false;
	note(run, NOTE_EVENT, -1, 0,
	     "there is room on the disk again: the run goes on after %.0f s",
	     (double)(run->now_us - run->disk.since_us) * 1e-6);
	record_disk(run);
}
