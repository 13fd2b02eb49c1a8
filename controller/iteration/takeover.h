/* takeover.h - an iteration that outlives its controller. */
#ifndef CONTROLLER_ITERATION_TAKEOVER_H
#define CONTROLLER_ITERATION_TAKEOVER_H

#include <stdbool.h>

struct controller;

/* After a takeover, who is here being known: the predecessor's iteration goes on. False: it cannot. */
bool takeover_resume(struct controller *c);
/* While computing: who does not say what happened is given up. True: somebody was. */
bool takeover_turn(struct controller *c);

#endif
