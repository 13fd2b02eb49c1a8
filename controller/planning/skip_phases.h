/* skip_phases.h - follows the run's skip schedule. */
#ifndef CONTROLLER_PLANNING_SKIP_PHASES_H
#define CONTROLLER_PLANNING_SKIP_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct planning;
struct run;

/* Reads the schedule's text, and sets the skip ratio of a new run. -EINVAL: the text is no
 * schedule for this cluster, length of run and algorithm, or --stack does not fit it. */
int skip_phases_begin(struct run *run, struct error *err);
/* Called when an iteration has begun. In the last iteration of a phase it requests the plan of the
 * next phase, which is then ready when the next iteration begins. can_stack: the stages that start
 * from trained stages can do so with this iteration's commit. Otherwise a phase that visits
 * these stages begins later. */
void skip_phases_turn(struct planning *planning, bool can_stack);
/* Puts off a phase that needs stages which could not start from trained stages. Returns false if
 * there is no such phase. */
bool skip_phases_postpone(struct planning *planning);
/* Finds the phase again after the run has gone back to a checkpoint. */
void skip_phases_go_back(struct planning *planning);
/* Returns true if microbatches would visit stages that have not started from trained stages.
 * share: percent of the microbatches that skip stages; 0: all. */
bool skip_phases_forbid(const struct run *run, uint32_t path_length, uint32_t share);
/* Returns true if the plan in force, which must exist, has the wanted skip ratio and share. */
bool skip_phases_planned(const struct run *run);
/* Returns the first iteration that visits the stages which start from trained stages; 0: the
 * schedule has none. */
uint64_t skip_phases_stacks_at(const struct run *run);
/* Returns true if the next iteration is the first of a phase whose plan has been requested and has
 * not arrived. */
bool skip_phases_wait(const struct planning *planning);
/* Returns the path length of the phase after this one, and writes its share of microbatches that
 * skip stages; 0: there is none. */
uint32_t skip_phases_next_length(const struct run *run, uint32_t *share);

#endif
