/* chain.h - the computation of one microbatch, step by step.
 *
 * A chain is a forward pass through the microbatch's hops, the loss, and a backward pass through
 * the hops in reverse. The chain keeps the input of every hop. A stage has one slot for saved
 * activations and serves all chains, so a hop's forward pass is repeated right before its backward
 * pass.
 *
 * One thread at a time works on a chain, and one on a stage. A step computes without a lock. The
 * caller then records the step's end under its own lock (chain_end_forward and the like).
 */
#ifndef VERIFY_CHAIN_H
#define VERIFY_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/codec/codec.h"
#include "store/store.h"
#include "verify/executor.h"
#include "verify/task_pool.h"

/* The parts that all chains of a run share. */
struct chain_setup {
	struct executor *executor;
	size_t activation; /* number of floats in an activation: B * T * C */
	/* How activations and their gradients travel between stages. */
	struct codec activation_codec, gradient_codec;
	/* (TASK_POOL_MAX, activation) for each worker: memory for the gradient that its backward
	 * pass writes */
	float *spare[TASK_POOL_MAX];
};

struct chain {
	const struct route *route;
	int32_t *tokens, *targets; /* (B, T) each */
	float *inputs;    /* (n_hops + 1, activation) [h] is the input of hop h; [0] is unused,
			   * because hop 0 reads tokens; [n_hops] is the input of the loss */
	/* (activation) gradient with respect to the input of the last finished step */
	float *gradient;
	uint32_t forward_done;  /* number of hops whose forward pass is finished */
	uint32_t backward_left; /* number of hops whose backward pass is not finished */
	bool loss_done;
	float loss;
	float *output_gradients; /* (n_hops, activation) [h] is the gradient of hop h's output;
				  * NULL until chain_precompute */
};

/* Allocates the arrays; the caller fills in tokens and targets, each with `tokens` elements.
 * -ENOMEM; call chain_fini in this case too. */
int chain_init(struct chain *m, const struct route *route, size_t tokens, size_t activation);
void chain_fini(struct chain *m);

/* Returns true if the chain is ready for the given step: the loss ('L') or the backward pass in a
 * stage ('B'). */
bool chain_ready(const struct chain *m, char kind, uint8_t stage);

/* Compute one step each, and return 0 or an error of stage.h. chain_loss and chain_backward add to
 * the sum of the node that counted the contribution. */
int chain_forward(struct chain *m, const struct chain_setup *t);
int chain_loss(struct chain *m, const struct chain_setup *t, uint32_t sum, unsigned worker);
int chain_backward(struct chain *m, const struct chain_setup *t, uint32_t sum, uint8_t stage,
		   unsigned worker);

/* Record that a step has ended. */
void chain_end_forward(struct chain *m);
void chain_end_loss(struct chain *m);
void chain_end_backward(struct chain *m, struct chain_setup *t, unsigned worker);

/* Computes the gradients of all outputs that are still missing, without adding to any sum. From
 * then on the backward passes may be counted in any order. Every forward pass must be finished, and
 * no other thread may compute. Returns 0, -ENOMEM or an error of stage.h. */
int chain_precompute(struct chain *m, const struct chain_setup *t);

#endif
