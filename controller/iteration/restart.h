/* restart.h - restarts the iteration under way with a new attempt. */
#ifndef CONTROLLER_ITERATION_RESTART_H
#define CONTROLLER_ITERATION_RESTART_H

struct iteration;

/* Voids everything computed in this iteration, and requests a plan for the new attempt. If a
 * stage has no replica, the attempt begins when the stage has one. why: the reason that the
 * journal gives for the restart. */
void restart_iteration(struct iteration *it, const char *why);

#endif
