/* exclude.h - takes a node out of the run for what it sent, until the operator recovers it. */
#ifndef CONTROLLER_TRUST_EXCLUDE_H
#define CONTROLLER_TRUST_EXCLUDE_H

#include <stdint.h>

struct members;
struct member;

/* Replicas excluded for impossible numbers, counted in the last iteration that had one. */
struct bad_numbers {
	uint64_t iteration;
	uint32_t n;
};

/* Marks the node failed, voids the sums under way, and has the other agents forget the node's key.
 */
void exclude_member(struct members *members, struct member *m, const char *why);
/* Excludes a replica that sent a number that no computation yields. More than three such replicas
 * in one iteration end the run, because the training has diverged. */
void exclude_for_number(struct members *members, struct member *m, const char *why);

#endif
