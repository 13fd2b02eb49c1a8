/* commit.h - the decision: when every replica has its stage's sum, the commit is written durably,
 * and only then announced.
 */
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
	float errors[64]; /* |measured - predicted| / measured, newest overwrites oldest */
	uint32_t n, next;
};

/* What a new plan promised, until an undisturbed iteration has shown what it keeps. */
struct promise {
	bool due;
	char what[96];
	double before_s, predicted_s; /* plan seconds */
};

void commit_when_reduced(struct iteration *it);
/* Two have told the stage's sum in this attempt, whether they are gone since or keep a copy: a
 * wrong one shows. */
bool commit_can_compare(const struct iteration *it, int stage);
void iteration_reduced(struct iteration *it, struct member *m, const struct msg_reduced *r);
void iteration_committed(struct members *members, struct member *m, const struct msg_committed *r);

#endif
