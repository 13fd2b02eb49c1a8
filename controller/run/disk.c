/* disk.c - pauses the run while its disk is full or its record is locked, and continues the run
 * afterwards.
 *
 * The store holds a reserve on the disk (store_reserve). While the disk is full, the controller
 * writes into the reserve: it commits the iteration under way and records messages and notes. The
 * next iteration starts only when there is room for a new reserve. If other programs fill the
 * reserve too, the controller retries the commit until it can be written. This is safe because
 * agents keep their sums until the commit is announced. Without this module a full disk would end
 * the run.
 *
 * Another program may have locked run.db, such as a backup, or a database shell with an open
 * transaction. Rows that need not be durable then wait in the store's memory (store_is_locked). The
 * controller retries the commit in this case, too. */
#include "controller/run/disk.h"

#include <errno.h>

#include "controller/run/journal.h"
#include "controller/run/record.h"
#include "controller/run/run.h"

enum { CHECK_INTERVAL_US = 1000000, REPORT_INTERVAL_US = 60000000 };

bool disk_waits(const struct run *run)
{
	return run->disk.state != DISK_READY;
}

static void report(struct run *run)
{
	run->disk.next_report_us = run->now_us + REPORT_INTERVAL_US;
	if (run->disk.state == DISK_FULL)
		note(run, NOTE_ALERT, -1, 0, "the disk is full: the run waits for %d MiB in %.110s",
		     STORE_RESERVE >> 20, run->options.run_dir);
	else
		note(run, NOTE_ALERT, -1, 0,
		     "another program has locked %.110s/run.db: the run waits until it is unlocked",
		     run->options.run_dir);
	record_disk(run);
}

static void begin_to_wait(struct run *run, enum disk_state state)
{
	if (run->disk.state == state)
		return;
	if (run->disk.state == DISK_READY)
		run->disk.since_us = run->now_us;
	run->disk.state = state;
	report(run);
}

void disk_refused(struct run *run, int rc)
{
	run->disk.has_unwritten_commit = true;
	begin_to_wait(run, rc == -EBUSY ? DISK_LOCKED : DISK_FULL);
}

bool disk_is_locked(struct run *run)
{
	struct error err = { "" };

	if (store_unlocked(run->record.store, &err) != -EBUSY)
		return false;
	begin_to_wait(run, DISK_LOCKED);
	return true;
}

/* Makes the reserve if it does not exist. Returns false if the disk has no room for it. */
static bool has_room(struct run *run)
{
	struct error err = { "" };
	int rc = store_reserve(run->record.store, &err);

	/* the run continues even without a reserve */
	if (rc != 0 && rc != -ENOSPC && !run->disk.warned) {
		run->disk.warned = true;
		note(run, NOTE_WARNING, -1, 0, "%.180s", err.text);
	}
	return rc != -ENOSPC;
}

void disk_turn(struct run *run)
{
	struct store *store = run->record.store;

	run->disk.is_ready = false;
	if ((store_reserved(store) && !disk_waits(run) && !store_is_locked(store)) ||
	    run->now_us < run->disk.next_check_us)
		return;
	run->disk.next_check_us = run->now_us + CHECK_INTERVAL_US;
	if (store_is_locked(store) && disk_is_locked(run))
		run->disk.is_ready = false;
	else if (!has_room(run))
		begin_to_wait(run, DISK_FULL);
	else
		run->disk.is_ready = true;
	if (disk_waits(run) && !run->disk.is_ready && run->now_us >= run->disk.next_report_us)
		report(run);
	if (run->disk.state == DISK_LOCKED && !run->disk.is_ready)
		return;
	run->requests.look_at_sums = run->requests.look_at_sums || run->disk.has_unwritten_commit;
	run->disk.has_unwritten_commit = false;
}

void disk_continue(struct run *run)
{
	if (!disk_waits(run) || !run->disk.is_ready || run->disk.has_unwritten_commit)
		return;
	note(run, NOTE_EVENT, -1, 0, "%s: the run continues after %.0f s",
	     run->disk.state == DISK_FULL ? "there is room on the disk again"
					  : "run.db is unlocked again",
	     (double)(run->now_us - run->disk.since_us) * 1e-6);
	run->disk.state = DISK_READY;
	record_disk(run);
}
