/* executor.h - the model's stages as one device computes with them, in this process or in one of
 * its own.
 *
 * A process computes with one instruction set (model/stage.h), and the nodes of a run may have
 * had several: each kind gets an executor. All are given the same weights. A node's sum of a
 * stage is kept where its contributions are computed, under a number of the caller's; the stage's
 * own gradient holds one of them at a time.
 *
 * Any thread may call, for one stage one at a time. Results are stage.h's, and -EIO where another
 * process has ended.
 */
#ifndef VERIFY_EXECUTOR_H
#define VERIFY_EXECUTOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/config.h"
#include "model/stage.h"

struct executor; /* opaque */

struct executor_setup {
	struct model_config config;
	uint32_t batch, sequence, threads;
	uint64_t seed;
};

#define EXECUTOR_NO_SUM UINT32_MAX /* the gradient is only passed on */

/* Gives *out (executor_free). Errors are stage_new's. */
int executor_new(struct executor **out, const struct executor_setup *setup, const char *device,
		 struct error *err);
/* In a process of its own: to be called before this one has computed anything, or has threads. */
int executor_new_process(struct executor **out, const struct executor_setup *setup,
			 const char *device, struct error *err);
void executor_free(struct executor *e); /* NULL is allowed */

const char *executor_text(const struct executor *e); /* what computes, as stage_device tells */
struct stage *const *executor_stages(const struct executor *e); /* NULL: in another process */

/* Forgets all sums; the next are numbered below n. -ENOMEM. */
int executor_begin(struct executor *e, uint32_t n);
/* In and out as stage.h's stage_forward has them. */
int executor_forward(struct executor *e, uint32_t stage, const int32_t *tokens, const float *in,
		     float *out);
/* Of stage 0, whose gradient goes into the sum. */
int executor_loss(struct executor *e, uint32_t sum, const float *in, const int32_t *targets,
		  float *loss, float *grad);
/* The forward again, and its backward. */
int executor_backward(struct executor *e, uint32_t stage, uint32_t sum, const int32_t *tokens,
		      const float *in, const float *grad_out, float *grad_in);
/* A sum into to (P); zeros where nothing was counted. */
int executor_sum(struct executor *e, uint32_t stage, uint32_t sum, float *to);
int executor_set_weights(struct executor *e, uint32_t stage, const float *weights); /* (P) */

#endif
