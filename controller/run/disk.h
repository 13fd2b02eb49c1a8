/* disk.h - pauses the run while its record cannot be written, because the disk is full or another
 * program has locked run.db. The run continues once the record can be written again. */
#ifndef CONTROLLER_RUN_DISK_H
#define CONTROLLER_RUN_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct run;

enum disk_state {
	DISK_READY,
	DISK_FULL,  /* the run has waited for room on the disk since the time since_us */
	DISK_LOCKED /* the run has waited for the locked record since the time since_us */
};

struct disk {
	enum disk_state state;
	bool is_ready; /* the check in this turn found that the run need not wait any more */
	/* A commit could not be written, and is retried */
	bool has_unwritten_commit;
	bool warned; /* the journal has reported that the reserve cannot be made */
	int64_t since_us, next_check_us, next_report_us;
};

/* Returns true if the record cannot be written now. In that case the caller starts no
 * iteration. */
bool disk_waits(const struct run *run);
/* Returns true if another program has locked the record. Call it before a write that must not fail.
 * If it returns true, try again in a later turn. */
bool disk_is_locked(struct run *run);
/* Records that a commit could not be written because the disk is full (-ENOSPC) or the record is
 * locked (-EBUSY). disk_turn then requests the retry. */
void disk_refused(struct run *run, int rc);
/* Checks the disk once a second, and requests the retry of a commit that could not be written. */
void disk_turn(struct run *run);
/* Continues the run if two conditions hold: disk_turn found that the record can be written again,
 * and no commit is still unwritten. */
void disk_continue(struct run *run);

#endif
