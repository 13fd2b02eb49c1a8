/* phase_moves.h - moves nodes to the stages that they have in a phase of the skip schedule
 * (--phase-moves). */
#ifndef CONTROLLER_WEIGHTS_PHASE_MOVES_H
#define CONTROLLER_WEIGHTS_PHASE_MOVES_H

#include <stdbool.h>

struct backups;

/* Drops an exchange that a death has made impossible, and marks the copies that moves need. Must be
 * called before standbys_turn, which releases copies that are not needed. */
void phase_moves_turn(struct backups *backups);
/* Orders nodes to fetch the stages to which they will move. Must be called when an iteration
 * begins, before its sums are ordered, because a copy that misses a sum has to be fetched again. */
void phase_moves_fetch(struct backups *backups);
/* Called when an iteration has begun. Prepares the exchange of stages that precedes the next
 * iteration. */
void phase_moves_prepare(struct backups *backups);
/* Called between two iterations. Exchanges the stages once the plan for the new stages has arrived.
 * Returns true if the next iteration has to wait. restarts: an iteration is repeated, so no stages
 * are exchanged before it. */
bool phase_moves_awaited(struct backups *backups, bool restarts);
/* Returns true if nodes still have to move to their stages of this phase. */
bool phase_moves_pending(const struct backups *backups);

#endif
