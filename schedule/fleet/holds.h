/* holds.h - decides whether a fleet can hold a model at all. Internal to schedule/fleet/ and its
 * callers. */
#ifndef SCHEDULE_HOLDS_H
#define SCHEDULE_HOLDS_H

#include "base/error.h"
#include "schedule/fleet/candidate.h"

/* Returns 0 if the fleet can hold the model. PLAN_INFEASIBLE: the fleet's cards together cannot
 * hold the model with microbatches of this many sequences. The message says how much is missing, on
 * which machines, and what would help. */
int holds_model(const struct candidate_frame *f, int sequences, int most_stages, struct error *err);

#endif
