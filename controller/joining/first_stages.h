/* first_stages.h - chooses the stages of a new run that was started without --stages. */
#ifndef CONTROLLER_JOINING_FIRST_STAGES_H
#define CONTROLLER_JOINING_FIRST_STAGES_H

#include <stdbool.h>

#include "base/error.h"

struct iteration;
struct run;

/* Writes to the record of a new run that its stages are not chosen yet. */
int first_stages_record(struct run *run, struct error *err);
/* Checks that a resumed run has stages. -EINVAL: the recorded run ended before its stages were
 * chosen, so it cannot be resumed. */
int first_stages_check_resumed(const struct run *run, struct error *err);

/* Starts the choice, once links and compute have been measured. */
void first_stages_begin(struct iteration *it);
/* Returns true once the run has its stages. If the agents cannot hold the model, ends the run and
 * reports the reason. */
bool first_stages_turn(struct iteration *it);

#endif
