/* exclude.h - takes a node out of the run because of data that it sent, until the operator recovers
 * the node. */
#ifndef CONTROLLER_TRUST_EXCLUDE_H
#define CONTROLLER_TRUST_EXCLUDE_H

#include <stdbool.h>
#include <stdint.h>

struct members;
struct member;

/* Marks the node failed, requests new sums, and lets the other agents forget the node's key. */
void exclude_member(struct members *members, struct member *m, const char *why);
/* Excludes a replica that sent a number that no computation yields. Another replica repeats the
 * work of the excluded replica.
 *
 * The run ends if a second replica sends such a number in the same iteration, or if no other
 * replica holds the stage. In these cases no node is at fault, and the training has diverged.
 * epoch: as in exclude_try_skipping, which this function calls first. */
void exclude_for_number(struct members *members, struct member *m, uint64_t epoch,
			const char *why);
/* Repeats the iteration with the next data, if --skip-bad-steps allows another repetition. epoch:
 * the epoch of the plan under which the numbers were computed. If the caller's reason is not a
 * number, epoch is 0, and the function does nothing and returns false. what: the numbers in
 * question.
 *
 * Returns true if the caller need not act on the numbers, because the iteration is repeated or
 * because the numbers belong to an abandoned attempt. */
bool exclude_try_skipping(struct members *members, uint64_t epoch, const char *what);
/* Ends the run because numbers of this iteration are not finite or are absurdly large. what: the
 * numbers in question. Also removes the failed mark of the node that was excluded for such a number
 * in this iteration, because the node is not at fault. */
void training_diverged(struct members *members, const char *what);

#endif
