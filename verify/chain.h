/* chain.h - one microbatch's computation, step by step, on stages that others use too.
 *
 * Forward through its hops, the loss, and backward through them again. Every hop's input is kept;
 * a stage has one slot, so a hop's forward is run again right before its backward.
 *
 * A chain is one thread's at a time, and so is a stage. What a step changes for later steps is
 * noted by the caller in between (chain_forwarded and so on), under whatever lock it has.
 */
#ifndef VERIFY_CHAIN_H
#define VERIFY_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"
#include "verify/task_pool.h"
#include "verify/executor.h"

/* What chains are computed with. */
struct chain_means {
	size_t activation;       /* floats: B * T * C */
	bool bf16;               /* what goes from stage to stage is rounded */
	float *spare[TASK_POOL_MOST]; /* of each worker (activation): the gradient a backward makes */
};

struct chain {
	const struct store_route *route;
	struct executor **with;    /* (n_hops) what each hop's node computed with */
	int32_t *tokens, *targets; /* (B, T) each */
	float *inputs;             /* (n_hops + 1, activation) [h] enters hop h; the last the loss.
	                            * [0] is not used */
	float *gradient;           /* (activation) of what the last done hop took in */
	uint32_t forwarded;        /* hops */
	uint32_t left;             /* hops whose backward is to come; n_hops before the loss too */
	bool lost;                 /* the loss is done */
	float loss;
	float *entering;           /* (n_hops, activation) once unwound: [h] the gradient that its
	                            * backward takes in; NULL before */
};

/* Takes memory for tokens and targets of B * T each, and for `with`; the caller fills them in.
 * -ENOMEM; then clear it all the same. */
int chain_make(struct chain *m, const struct store_route *route, size_t tokens, size_t activation);
/* Frees what chain_make and the steps took; also after a failed chain_make. */
void chain_clear(struct chain *m);

/* Whether it has come to where this may be counted: the loss ('L'), or the backward ('B') in a
 * stage. */
bool chain_ready(const struct chain *m, char kind, uint8_t stage);

/* The steps; what is counted goes into a sum of the executor of who counted it. Results are
 * stage.h's. */
int chain_forward(struct chain *m, const struct chain_means *t);
/* Once every hop was forwarded. */
int chain_loss(struct chain *m, const struct chain_means *t, struct executor *e, uint32_t sum,
	       unsigned worker);
/* One hop back, into the stage that is next. */
int chain_backward(struct chain *m, const struct chain_means *t, struct executor *e, uint32_t sum,
		   uint8_t stage, unsigned worker);

/* A step was done. */
void chain_forwarded(struct chain *m);
void chain_lost(struct chain *m);
void chain_went_back(struct chain *m, struct chain_means *t, unsigned worker);

/* Works out the rest of its gradients ahead, uncounted: from then on any of its hops may be counted
 * at any time. Every forward must be done and nobody else at work. */
int chain_unwind(struct chain *m, const struct chain_means *t);

#endif
