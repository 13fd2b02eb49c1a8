/* controller_process.h - the controller as a process of the simulation. The functions do the work
 * of the controller's main program, except that they never wait. */
#ifndef TESTS_SIM_CONTROLLER_PROCESS_H
#define TESTS_SIM_CONTROLLER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/names.h"

struct controller;

/* Starts a controller. argv has the form of the program's arguments and is borrowed until
 * controller_process_end. Gives *out to the caller. */
int controller_process_start(struct controller **out, int argc, char **argv, struct error *err);
void controller_process_turn(struct controller *c);
/* Gives an operator's command: FAIL, RECOVER, SKIP, PAUSE, RESUME, WIRE or SUM_WIRE. Returns
 * false if the controller refuses it. */
bool controller_process_obeys(struct controller *c, enum command_verb verb, int node,
			      int64_t value);
/* Gives the operator's command CUT with these layers. Returns false if the controller refuses. */
bool controller_process_cuts(struct controller *c, const char *layers);
/* Returns when it next has something to do, by its own clock. */
int64_t controller_process_deadline_us(const struct controller *c);
/* Returns true if the controller has ended, and sets *status. */
bool controller_process_over(const struct controller *c, int *status);
/* Ends the controller as if it was killed, without a message to anyone. NULL is allowed. */
void controller_process_end(struct controller *c);

#endif
