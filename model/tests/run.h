/* run.h - a whole model of stages in one process, for tests. */
#ifndef MODEL_TESTS_RUN_H
#define MODEL_TESTS_RUN_H

#include "model/stage.h"

struct run {
	struct model_config config;
	struct stage *stages[16];
	uint32_t batch, sequence;
	float *x[16], *grad[2];
	int32_t *tokens, *targets; /* (B, T), random numbers from the seed; one target is -1 */
};

void run_init(struct run *r, const struct model_config *c, uint32_t batch, uint32_t sequence,
	      uint32_t threads, uint64_t seed);
void run_fini(struct run *r);
/* Runs one microbatch through stage 0 and then path (n). Returns its loss. train: runs the backward
 * passes too. */
float run_microbatch(struct run *r, const uint32_t *path, size_t n, bool train, bool count);

#endif
