/* stall_detector.h - an iteration in which nothing goes on any more, and who is at fault. */
#ifndef CONTROLLER_ITERATION_STALL_DETECTOR_H
#define CONTROLLER_ITERATION_STALL_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

struct controller;

struct stall_detector {
	int64_t look_us;    /* the next look */
	uint64_t tasks;     /* that agents said they had ended, at the last */
	uint32_t rounds;    /* looks since in which all were at rest */
	uint64_t steps;     /* controller.steps, at the last */
	uint32_t hung;      /* looks since there were more, or data moved, */
	int64_t hung_us;    /* and when that was */
	uint64_t iteration; /* the last that stood still */
};

void stall_turn(struct controller *c); /* while computing */
/* In other phases: whether it is time to look; then, whether nothing has brought the run on for so long,
 * or for much longer than so many tasks, one after another, take. */
bool stall_look(struct controller *c);
bool stall_for(struct controller *c, int64_t most_us);
bool stall_hung(struct controller *c, uint32_t tasks);
/* Then: who says that it is at work is taken out. False: nobody says so. */
bool stall_blame(struct controller *c);

#endif
