/* skip_phases.h - follows the run's skip schedule. */
#ifndef CONTROLLER_PLANNING_SKIP_PHASES_H
#define CONTROLLER_PLANNING_SKIP_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct planning;
struct run;

/* Reads the schedule's text, and sets the skip ratio of a new run. -EINVAL: the schedule is not
 * possible with this cluster, algorithm and length of the run, or does not fit --stack. */
int skip_phases_begin(struct run *run, struct error *err);
/* Called when an iteration has begun. In the last iteration of a phase, requests the plan of the
 * next phase, so that the plan is ready when the next iteration begins. can_stack: the stages that
 * start from trained stages can start with this iteration's commit. If not, a phase that visits
 * these stages begins later. */
void skip_phases_turn(struct planning *planning, bool can_stack);
/* Postpones the phase whose stages could not start from trained stages. Returns false if there is
 * no such phase. */
bool skip_phases_postpone(struct planning *planning);
/* Determines the phase again after the run has gone back to a checkpoint. */
void skip_phases_go_back(struct planning *planning);
/* Returns true if microbatches would visit stages that have not started from trained stages.
 * share: percent of the microbatches that skip stages; 0: all. */
bool skip_phases_forbid(const struct run *run, uint32_t path_length, uint32_t share);
/* Returns true if the plan in force, which must exist, has the skip ratio and share that the
 * operator wants. */
bool skip_phases_planned(const struct run *run);
/* Returns the first iteration in which microbatches visit stages that start from trained stages; 0:
 * the schedule has no such iteration. */
uint64_t skip_phases_stacks_at(const struct run *run);
/* Returns true if the next iteration begins a phase whose plan has been requested but has not
 * arrived. */
bool skip_phases_wait(const struct planning *planning);
/* Returns the path length of the next phase, and sets *share to its percentage of microbatches that
 * skip stages. 0: there is no next phase. */
uint32_t skip_phases_next_length(const struct run *run, uint32_t *share);

#endif
