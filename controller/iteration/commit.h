/* commit.h - decides and announces the commit of an iteration. The commit is written durably before
 * it is announced. */
#ifndef CONTROLLER_ITERATION_COMMIT_H
#define CONTROLLER_ITERATION_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

struct iteration;
struct members;
struct member;
struct msg_committed;
struct msg_reduced;

struct prediction_record {
	/* Relative errors of predicted iteration times, |measured - predicted| / measured; the
	 * newest error overwrites the oldest */
	float errors[64];
	uint32_t n, next;
};

/* The iteration time that the planner predicts for a new plan. The controller compares this time
 * with the measured time of the first iteration in which no microbatch ran again. */
struct promise {
	bool due;
	char what[96];
	/* Predicted iteration times of the previous plan and of the new plan, in plan seconds */
	double before_s, predicted_s;
};

void commit_when_reduced(struct iteration *it);
/* Returns true if at least two nodes reported the stage's sum in this attempt, so that a wrong sum
 * would be noticed. Reports of standby copies count, and so do reports of nodes that have left. */
bool commit_can_compare(const struct iteration *it, int stage);
void iteration_reduced(struct iteration *it, struct member *m, const struct msg_reduced *r);
void iteration_committed(struct members *members, struct member *m, const struct msg_committed *r);

#endif
