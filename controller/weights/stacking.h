/* stacking.h - stages that are visited for the first time start from a trained stage (--stack). */
#ifndef CONTROLLER_WEIGHTS_STACKING_H
#define CONTROLLER_WEIGHTS_STACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/stage_set.h"

struct member;
struct run;
struct backups;

/* Orders nodes to fetch standby copies some iterations before the phase that needs them. Must be
 * called when an iteration begins, before its sums are ordered, because a copy that misses a sum
 * has to be fetched again. */
void stacking_turn(struct backups *backups);
/* Returns true if the stages can start from trained stages with the commit of the iteration that
 * begins. Each of these stages needs one replica with a complete copy. For three more iterations
 * the phase also waits for other replicas that can keep a copy. */
bool stacking_ready(const struct backups *backups);
/* Returns the stages from which other stages start with the commit that is being decided; 0:
 * none. */
stage_set stacking_due(const struct backups *backups);
/* Called when the commit is durable, before it is announced. Makes all standby copies of the newly
 * started stages void. */
void stacking_begin(struct backups *backups, stage_set from);
/* Returns true if m lacks the copy from which its stage starts with this commit. m then fetches its
 * stage as a joiner does. */
bool stacking_lacks(const struct run *run, const struct member *m, stage_set from);
/* Returns true if stages will start from trained stages so soon that nodes fetch the copies now. */
bool stacking_is_near(const struct backups *backups);
/* Returns true if m's copy must not be released yet. Either m's stage will start from the copy, or
 * m has not yet reported that it took the copy's layers with the last commit. */
bool stacking_needs(const struct run *run, const struct member *m);

#endif
