/* stacking.h - stages that begin to be visited start from a trained stage (--stack). */
#ifndef CONTROLLER_WEIGHTS_STACKING_H
#define CONTROLLER_WEIGHTS_STACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/stage_set.h"

struct member;
struct run;
struct backups;

/* Orders the standby copies some iterations before the phase that needs them. Call it when an
 * iteration begins, before its sums are ordered: a copy that misses a sum has to be fetched
 * again. */
void stacking_turn(struct backups *backups);
/* Returns true if the stages can start from trained stages with the commit of the iteration that
 * begins. Each of these stages needs one replica with a complete copy. For three more iterations
 * the phase also waits for the other replicas that can keep a copy. */
bool stacking_ready(const struct backups *backups);
/* Returns the stages from which other stages start with the commit that is being decided; 0:
 * none. */
stage_set stacking_due(const struct backups *backups);
/* Called when the commit is durable, before it is announced: makes standby copies of the stages
 * that start from others void. */
void stacking_begin(struct backups *backups, stage_set from);
/* Returns true if the commit takes m's stage from a copy that m does not have. m then fetches its
 * stage as a joiner does. */
bool stacking_lacks(const struct run *run, const struct member *m, stage_set from);
/* Returns true if stages start from trained stages so soon that nodes fetch the copies now. */
bool stacking_is_near(const struct backups *backups);
/* Returns true if m's copy may not be released yet: either m's stage will start from the copy, or m
 * has not reported yet that it took the copy's layers with the last commit. */
bool stacking_needs(const struct run *run, const struct member *m);

#endif
