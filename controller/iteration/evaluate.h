/* evaluate.h - validates the model between iterations: every stage, forward only, on the agents of
 * the run. Emulated delays do not apply. */
#ifndef CONTROLLER_ITERATION_EVALUATE_H
#define CONTROLLER_ITERATION_EVALUATE_H

#include <stdbool.h>
#include <stdint.h>

struct iteration;
struct microbatch;
struct member;
struct msg_evaluated;

struct evaluation {
	bool wanted, final;
	uint64_t iteration;
	uint32_t n, done;
	double loss;
	struct microbatch *microbatches;
	bool *answered;
	int64_t started_us;
	uint32_t attempt;
};

void evaluation_begin(struct iteration *it);
/* Returns true if a validation microbatch that has no answer yet uses the link between a and
 * b. */
bool evaluation_needs(const struct iteration *it, uint16_t a, uint16_t b);
void evaluation_turn(struct iteration *it);
void iteration_evaluated(struct iteration *it, struct member *m, const struct msg_evaluated *e);
void evaluation_fini(struct iteration *it);

#endif
