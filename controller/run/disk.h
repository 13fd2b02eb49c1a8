/* disk.h - pauses the run while its record cannot be written, because the disk is full or another
 * program has locked run.db. The run continues once it can. */
#ifndef CONTROLLER_RUN_DISK_H
#define CONTROLLER_RUN_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct run;

enum disk_state {
	DISK_READY,
	DISK_FULL,  /* the run waits for room on the disk since since_us */
	DISK_LOCKED /* the run waits for another program since since_us */
};

struct disk {
	enum disk_state state;
	bool is_ready; /* this turn's check found the cause of the wait gone */
	/* The commit is retried until it can be written */
	bool has_unwritten_commit;
	bool warned;               /* the journal has reported a reserve that cannot be made */
	int64_t since_us, next_check_us, next_report_us;
};

/* Returns true if the record cannot be written now. The caller starts no iteration then. */
bool disk_waits(const struct run *run);
/* Returns true if another program has locked the record. To be asked before a write that must not
 * fail; the caller then tries again in a later turn. */
bool disk_is_locked(struct run *run);
/* Marks the disk as full (-ENOSPC) or locked (-EBUSY) because a commit could not be written.
 * disk_turn requests the retry. */
void disk_refused(struct run *run, int rc);
/* Checks the disk once a second, and requests the retry of a commit that could not be written. */
void disk_turn(struct run *run);
/* Continues the run if disk_turn found the cause gone and no commit is waiting to be written. */
void disk_continue(struct run *run);

#endif
