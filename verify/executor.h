/* executor.h - the model's stages on the device that recomputes the run, with the nodes' sums.
 *
 * Every node adds its gradients of a stage to a sum of its own. The caller numbers these sums,
 * and the executor keeps them. A stage adds only to its gradient buffer, which holds one sum at a
 * time. The executor saves the stage's other sums in memory.
 *
 * Several threads may call these functions, but at any time at most one thread for each stage.
 * Every function returns 0 or an error of stage.h. -ENOMEM means that there is no memory for
 * another sum.
 */
#ifndef VERIFY_EXECUTOR_H
#define VERIFY_EXECUTOR_H

#include <stdint.h>

#include "base/error.h"
#include "model/config.h"
#include "model/stage.h"

struct executor; /* opaque */

struct executor_setup {
	struct model_config config;
	uint32_t batch, sequence, threads;
	uint64_t seed;
	const char *device; /* device that computes (model/device_name.h) */
};

/* If a pass gets this number as its sum, it returns a gradient and adds to no sum. */
#define EXECUTOR_NO_SUM UINT32_MAX

/* Makes an executor; the caller frees *out with executor_free. Errors are those of stage_new. */
int executor_new(struct executor **out, const struct executor_setup *setup, struct error *err);
void executor_free(struct executor *e); /* NULL is allowed */

/* Returns the n_stages stages, borrowed until executor_free. */
struct stage *const *executor_stages(const struct executor *e);

/* Drops all sums and starts n new sums with the numbers 0 to n - 1. */
void executor_begin(struct executor *e, uint32_t n);
/* Computes a stage's output. The arguments are those of stage_forward in stage.h. */
int executor_forward(struct executor *e, uint32_t stage, const int32_t *tokens, const float *in,
		     float *out);
/* Computes the loss in stage 0 and adds the gradient of the loss layer to the sum with the number
 * `sum`. */
int executor_loss(struct executor *e, uint32_t sum, const float *in, const int32_t *targets,
		  float *loss, float *grad);
/* Repeats a stage's forward pass, runs its backward pass and adds the gradient to the sum. */
int executor_backward(struct executor *e, uint32_t stage, uint32_t sum, const int32_t *tokens,
		      const float *in, const float *grad_out, float *grad_in);
/* Copies the sum to `to`, which has an element for each parameter of the stage. A sum to which
 * nothing was added is all zeros. */
void executor_sum(struct executor *e, uint32_t stage, uint32_t sum, float *to);

#endif
