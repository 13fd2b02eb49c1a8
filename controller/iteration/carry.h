/* carry.h - an iteration that outlives its controller. */
#ifndef CONTROLLER_ITERATION_CARRY_H
#define CONTROLLER_ITERATION_CARRY_H

#include <stdbool.h>

struct controller;

/* After a takeover, who is here being known: the predecessor's iteration goes on. False: it cannot. */
bool carry_on(struct controller *c);
/* While computing: who does not say what happened is given up. True: somebody was. */
bool carry_turn(struct controller *c);

#endif
