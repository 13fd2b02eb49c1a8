/* skip_phases.h - follows the run's skip schedule. */
#ifndef CONTROLLER_PLANNING_SKIP_PHASES_H
#define CONTROLLER_PLANNING_SKIP_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct planning;
struct run;

/* Reads the schedule's text, and sets the path length of a new run. -EINVAL: the text is no
 * schedule for this cluster and length of run. */
int skip_phases_begin(struct run *run, struct error *err);
/* Called when an iteration has begun. In the last iteration of a phase it requests the plan of the
 * next phase, which is then ready when the next iteration begins. */
void skip_phases_turn(struct planning *planning);
/* Returns true if the next iteration is the first of a phase whose plan has been requested and has
 * not arrived. */
bool skip_phases_wait(const struct planning *planning);
/* Returns the path length of the phase after this one; 0: there is none. */
uint32_t skip_phases_next_length(const struct run *run);

#endif
