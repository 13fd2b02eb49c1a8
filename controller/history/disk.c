/* disk.c - pauses the run while its disk is full, and continues it once there is room.
 *
 * The store holds a reserve on the disk (store_reserve). While the disk is full, the controller
 * writes into the reserve: it commits the iteration under way and records messages and notes. The
 * next iteration starts only when there is room for a new reserve. If other programs fill the
 * reserve too, the commit is retried until it can be written. This is safe because the commit has
 * not been announced: the agents keep their sums until it is. Without this module a full disk
 * would end the run. */
#include "controller/history/disk.h"

#include <errno.h>

#include "controller/run.h"
#include "controller/history/record.h"
#include "controller/operator/journal.h"

enum { CHECK_INTERVAL_US = 1000000, REPORT_INTERVAL_US = 60000000 };

bool disk_full(const struct run *run)
{
	return run->disk.full;
}

static void report_full(struct run *run)
{
	run->disk.next_report_us = run->now_us + REPORT_INTERVAL_US;
	note(run, NOTE_ALERT, -1, 0, "the disk is full: the run waits for %d MiB in %.110s",
	     STORE_RESERVE >> 20, run->options.run_dir);
	record_disk(run);
}

static void set_full(struct run *run)
{
	if (run->disk.full)
		return;
	run->disk.full = true;
	run->disk.since_us = run->now_us;
	report_full(run);
}

void disk_refused(struct run *run)
{
	run->disk.has_unwritten_commit = true;
	set_full(run);
}

void disk_turn(struct run *run)
{
	struct error err = { "" };
	int rc;

	run->disk.has_room = false;
	if ((store_reserved(run->history.store) && !run->disk.full) ||
	    run->now_us < run->disk.next_check_us)
		return;
	run->disk.next_check_us = run->now_us + CHECK_INTERVAL_US;
	rc = store_reserve(run->history.store, &err);
	if (rc == -ENOSPC) {
		set_full(run);
		if (run->now_us >= run->disk.next_report_us)
			report_full(run);
	} else if (rc != 0 && !run->disk.warned) { /* the run continues without a reserve */
		run->disk.warned = true;
		note(run, NOTE_WARNING, -1, 0, "%.180s", err.text);
	}
	run->disk.has_room = rc != -ENOSPC;
	run->requests.look_at_sums = run->requests.look_at_sums || run->disk.has_unwritten_commit;
	run->disk.has_unwritten_commit = false;
}

void disk_continue(struct run *run)
{
	if (!run->disk.full || !run->disk.has_room || run->disk.has_unwritten_commit)
		return;
	run->disk.full = false;
	note(run, NOTE_EVENT, -1, 0,
	     "there is room on the disk again: the run continues after %.0f s",
	     (double)(run->now_us - run->disk.since_us) * 1e-6);
	record_disk(run);
}
