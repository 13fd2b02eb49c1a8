/* exclude.h - takes a node out of the run for what it sent, until the operator recovers it. */
#ifndef CONTROLLER_TRUST_EXCLUDE_H
#define CONTROLLER_TRUST_EXCLUDE_H

#include <stdint.h>

struct members;
struct member;

/* The node that was last excluded for impossible numbers, and the iteration in which that happened.
 */
struct bad_numbers {
	uint64_t iteration; /* iteration in which the node was excluded; 0: none yet */
	struct member *excluded;
};

/* Marks the node failed, requests new sums, and has the other agents forget the node's key.
 */
void exclude_member(struct members *members, struct member *m, const char *why);
/* Excludes a replica that sent a number that no computation yields. Its work is repeated by another
 * replica. If a second replica sends such a number in the same iteration, or if no other replica
 * holds the stage, no node is at fault: the training has diverged, which ends the run. */
void exclude_for_number(struct members *members, struct member *m, const char *why);
/* Ends the run because the numbers of this iteration are not finite or absurdly large. what: the
 * numbers in question. The excluded node of this iteration is no longer marked failed. */
void training_diverged(struct members *members, const char *what);

#endif
