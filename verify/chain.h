/* chain.h - the computation of one microbatch, step by step.
 *
 * A chain runs the forward pass of each hop, the loss, and the backward passes in reverse order of
 * hops. A stage can save the activations of one microbatch only, but serves all chains. Therefore
 * the chain keeps the input of every hop, and repeats a hop's forward pass right before its
 * backward pass.
 *
 * At any time, at most one thread works on a chain, and at most one on a stage. A step computes
 * without a lock. The caller then records the step's end under its own lock (chain_end_forward and
 * the like).
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
	/* (TASK_POOL_MAX, activation) For each worker, the buffer for the gradient that its step
	 * computes. */
	float *spare[TASK_POOL_MAX];
};

struct chain {
	const struct route *route;
	int32_t *tokens, *targets; /* (B, T) each */
	/* (n_hops + 1, activation) [h] is the input of hop h, [n_hops] the input of the loss. [0]
	 * is unused, because hop 0 reads tokens. */
	float *inputs;
	/* (activation) Gradient with respect to the input of the last finished step. */
	float *gradient;
	uint32_t forward_done;  /* number of hops whose forward pass is finished */
	uint32_t backward_left; /* number of hops whose backward pass is not finished */
	bool loss_done;
	float loss;
	/* (n_hops, activation) [h] is the gradient with respect to the output of hop h; NULL until
	 * chain_precompute. */
	float *output_gradients;
};

/* Allocates the arrays. The caller then fills in tokens and targets, each with `tokens` elements.
 * -ENOMEM; the caller calls chain_fini after an error too. */
int chain_init(struct chain *m, const struct route *route, size_t tokens, size_t activation);
void chain_fini(struct chain *m);

/* Returns true if the chain's earlier steps allow this step now: the loss ('L'), or the backward
 * pass in `stage` ('B'). */
bool chain_ready(const struct chain *m, char kind, uint8_t stage);

/* Each of these functions computes one step and returns 0 or an error of stage.h. chain_loss and
 * chain_backward also add their gradient to the sum number `sum`: the sum of the node that counted
 * the gradient. */
int chain_forward(struct chain *m, const struct chain_setup *t);
int chain_loss(struct chain *m, const struct chain_setup *t, uint32_t sum, unsigned worker);
int chain_backward(struct chain *m, const struct chain_setup *t, uint32_t sum, uint8_t stage,
		   unsigned worker);

/* Each of these functions records that a step has ended. */
void chain_end_forward(struct chain *m);
void chain_end_loss(struct chain *m);
void chain_end_backward(struct chain *m, struct chain_setup *t, unsigned worker);

/* Computes the output gradients of all hops whose backward pass is not finished, without adding to
 * any sum. The backward passes may then be counted in any order. Call it when every forward pass of
 * the chain is finished and no other thread computes. Returns 0, -ENOMEM or an error of stage.h. */
int chain_precompute(struct chain *m, const struct chain_setup *t);

#endif
