/* disk.h - a disk that others have filled: the run waits, and goes on by itself. */
#ifndef CONTROLLER_HISTORY_DISK_H
#define CONTROLLER_HISTORY_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct controller;

struct disk {
	bool full;         /* the run waits, since then */
	bool room;         /* by this turn's look, there is some */
	bool commit_waits; /* even what was held back is taken: no commit can be written */
	bool warned;
	int64_t since_us, next_look_us, next_said_us;
};

/* The disk of the run's folder is full, by the store's word: nothing new begins. */
bool disk_full(const struct controller *c);
void disk_refused(struct controller *c); /* a commit found no room: it is tried again */
void disk_turn(struct controller *c); /* looks now and then; a commit that found no room is tried again */
void disk_go_on(struct controller *c); /* after that: where there is room again, and the commit was written */

#endif
