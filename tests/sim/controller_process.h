/* controller_process.h - the controller as a process of the simulation. The functions do the same
 * as the controller's main program, except that they never wait. */
#ifndef TESTS_SIM_CONTROLLER_PROCESS_H
#define TESTS_SIM_CONTROLLER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/names.h"

struct controller;

/* Starts a controller, and writes it to *out. controller_process_end frees it. argv: the arguments
 * of the program, borrowed until then. */
int controller_process_start(struct controller **out, int argc, char **argv, struct error *err);
void controller_process_turn(struct controller *c);
/* Gives the controller a command: FAIL, RECOVER, SKIP, PAUSE, RESUME, WIRE or SUM_WIRE. Returns
 * false if the controller refuses it. */
bool controller_process_obeys(struct controller *c, enum command_verb verb, int node,
			      int64_t value);
/* Gives the controller the command CUT with these numbers of layers. Returns false if the
 * controller refuses it. */
bool controller_process_cuts(struct controller *c, const char *layers);
/* Returns the time, on the controller's own clock, at which the controller next has something to
 * do. */
int64_t controller_process_deadline_us(const struct controller *c);
/* Returns true if the controller has ended. *status is then its exit status. */
bool controller_process_over(const struct controller *c, int *status);
/* Ends the controller as if it had been killed: it sends no message. NULL is allowed. */
void controller_process_end(struct controller *c);

#endif
