/* disk.h - a disk that others have filled: the run waits, and goes on by itself. */
#ifndef CONTROLLER_HISTORY_DISK_H
#define CONTROLLER_HISTORY_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct run;

struct disk {
	bool full;         /* the run waits, since then */
	bool room;         /* by this turn's look, there is some */
	bool commit_waits; /* even what was held back is taken: no commit can be written */
	bool warned;
	int64_t since_us, next_look_us, next_said_us;
};

/* The disk of the run's folder is full, by the store's word: nothing new begins. */
bool disk_full(const struct run *run);
void disk_refused(struct run *run); /* a commit found no room: it is tried again */
/* Looks now and then; a commit that found no room is tried again */
void disk_turn(struct run *run);
/* After that: where there is room again, and the commit was written */
void disk_go_on(struct run *run);

#endif
