/* disk.h - pauses the run while its disk is full, and continues it once there is room. */
#ifndef CONTROLLER_HISTORY_DISK_H
#define CONTROLLER_HISTORY_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct run;

struct disk {
	bool full;                 /* the run waits for room on the disk since since_us */
	bool has_room;             /* this turn's check found room for the reserve */
	/* The reserve is used up, so the commit is retried until it can be written */
	bool has_unwritten_commit;
	bool warned;               /* the journal has reported a reserve that cannot be made */
	int64_t since_us, next_check_us, next_report_us;
};

/* Returns true if the disk of the run's folder is full. The caller starts no iteration then. */
bool disk_full(const struct run *run);
/* Marks the disk as full because a commit could not be written. disk_turn requests the retry. */
void disk_refused(struct run *run);
/* Checks the disk once a second, and requests the retry of a commit that could not be written. */
void disk_turn(struct run *run);
/* Continues the run if disk_turn found room and no commit is waiting to be written. */
void disk_continue(struct run *run);

#endif
