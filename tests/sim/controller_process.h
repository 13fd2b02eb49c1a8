/* controller_process.h - the controller as a process of the simulation: what its main does, but for waiting. */
#ifndef TESTS_SIM_CONTROLLER_PROCESS_H
#define TESTS_SIM_CONTROLLER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/names.h"

struct controller;

/* argv as the program has it, borrowed until controller_process_end. Gives *out. */
int controller_process_start(struct controller **out, int argc, char **argv, struct error *err);
void controller_process_turn(struct controller *c);
/* The operator does that: FAIL, RECOVER, SKIP, PAUSE or RESUME. False: it is refused. */
bool controller_process_obeys(struct controller *c, enum command_verb verb, int node, int64_t value);
int64_t controller_process_deadline_us(const struct controller *c); /* by its own clock */
bool controller_process_over(const struct controller *c, int *status);
void controller_process_end(struct controller *c); /* as if killed: nothing is said; NULL is allowed */

#endif
