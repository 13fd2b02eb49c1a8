/* chain.h - the computation of one microbatch, step by step.
 *
 * A chain runs the forward pass of each hop, the loss, and the backward passes in reverse order
 * of hops. All chains use the same stages, but a stage can save the activations of only one
 * microbatch. Therefore a chain keeps the input of every hop, and repeats a hop's forward pass
 * immediately before the hop's backward pass.
 *
 * At any time, at most one thread works on a chain, and at most one thread works on a stage. A
 * step computes without a lock. The caller then records the step's end under its own lock
 * (chain_end_forward and the like).
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
	/* Codecs of the activations, and of their gradients, in transfers between stages. */
	struct codec activation_codec, gradient_codec;
	/* For each worker, a buffer of `activation` floats for the gradient that the worker's
	 * step computes. */
	float *spare[TASK_POOL_MAX];
};

struct chain {
	const struct route *route;
	int32_t *tokens, *targets; /* shape (B, T) each */
	/* Shape (n_hops + 1, activation). Row h is the input of hop h, and row n_hops is the
	 * input of the loss. Row 0 is unused, because hop 0 reads tokens. */
	float *inputs;
	/* `activation` floats: the gradient with respect to the input of the last finished
	 * step. */
	float *gradient;
	uint32_t forward_done;  /* number of hops whose forward pass is finished */
	uint32_t backward_left; /* number of hops whose backward pass is not finished */
	bool loss_done;
	float loss;
	/* Shape (n_hops, activation). Row h is the gradient with respect to the output of hop h.
	 * NULL until chain_precompute. */
	float *output_gradients;
};

/* Allocates the arrays. The caller then fills in tokens and targets, each with `tokens` elements.
 * Returns 0 or -ENOMEM. The caller calls chain_fini after an error too. */
int chain_init(struct chain *m, const struct route *route, size_t tokens, size_t activation);
void chain_fini(struct chain *m);

/* Returns true if the chain's earlier steps allow this step now: the loss ('L'), or the backward
 * pass in `stage` ('B'). */
bool chain_ready(const struct chain *m, char kind, uint8_t stage);

/* Each of these functions computes one step and returns 0 or an error of stage.h. chain_loss and
 * chain_backward also add their gradient to the sum with the number `sum`, which belongs to the
 * node that counted the gradient. */
int chain_forward(struct chain *m, const struct chain_setup *t);
int chain_loss(struct chain *m, const struct chain_setup *t, uint32_t sum, unsigned worker);
int chain_backward(struct chain *m, const struct chain_setup *t, uint32_t sum, uint8_t stage,
		   unsigned worker);

/* Each of these functions records that a step has ended. */
void chain_end_forward(struct chain *m);
void chain_end_loss(struct chain *m);
void chain_end_backward(struct chain *m, struct chain_setup *t, unsigned worker);

/* Computes the output gradients of all hops whose backward pass is not finished, without adding
 * to any sum. The backward passes may then be counted in any order. Call this function when every
 * forward pass of the chain is finished and no other thread computes. Returns 0, -ENOMEM or an
 * error of stage.h. */
int chain_precompute(struct chain *m, const struct chain_setup *t);

#endif
