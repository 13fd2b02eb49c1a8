/* trainer.h - trains a whole model in one process, one microbatch at a time.
 *
 * The trainer runs the same stages in the same order as agents do, without the network. `skippipe
 * train` uses the trainer, and so does `skippipe verify`, which recomputes a recorded run.
 */
#ifndef MODEL_TRAINER_H
#define MODEL_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/tensor_format.h"
#include "model/config.h"
#include "model/stage.h"

struct trainer; /* opaque */

/* The number by which a stage's summed gradient is divided: all microbatches of the iteration, or
 * only those that visited the stage. */
enum grad_norm { GRAD_NORM_MICROBATCHES, GRAD_NORM_VISITS };

/* Makes a trainer. o->slots is ignored. o->memory_bytes limits each stage by itself, and also the
 * sum over all stages of weights, gradients and moments. Errors as for stage_new. */
int trainer_new(struct trainer **out, const struct model_config *c, const struct hyperparameters *r,
		const struct stage_options *o, struct error *err);
void trainer_free(struct trainer *t); /* NULL is allowed */

/* Returns the trainer's stages (n_stages). */
struct stage *const *trainer_stages(const struct trainer *t);
/* Makes the trainer round numbers to the formats in which nodes would send them. wire: format of
 * activations and of their gradients between stages. sum_wire: format of the sums of gradients.
 * Evaluations are not rounded. If this function is not called, both formats are fp32. -ENOMEM. */
int trainer_set_formats(struct trainer *t, enum tensor_format wire, enum tensor_format sum_wire,
			struct error *err);
/* Returns the number of parameters of the whole model. */
size_t trainer_parameters(const struct trainer *t);
/* Returns the bytes of memory of all stages. */
size_t trainer_memory_bytes(const struct trainer *t);
/* Returns the level of recomputation in use, which is never RECOMPUTE_AUTO. */
enum recompute trainer_recompute(const struct trainer *t);

/* Returns the device's first failure in words; "" if nothing has failed, and always on the CPU. */
const char *trainer_failure(const struct trainer *t);

/* Runs one microbatch, (B, T) tokens and targets, through stage 0 and then the stages of path (n):
 * forward, loss, backward. Adds the microbatch's gradients to the gradients of earlier
 * microbatches. -EINVAL: the path contains stage 0 or a stage that does not exist. */
int trainer_microbatch(struct trainer *t, const uint32_t *path, size_t n, const int32_t *tokens,
		       const int32_t *targets, float *loss);
/* Computes only the loss of a microbatch, without gradients. */
int trainer_evaluate(struct trainer *t, const uint32_t *path, size_t n, const int32_t *tokens,
		     const int32_t *targets, float *loss);
/* Computes the logits (B, T, vocab) of the model with the stages of path. */
int trainer_logits(struct trainer *t, const uint32_t *path, size_t n, const int32_t *tokens,
		   float *logits);

/* Makes AdamW step number `iteration` (from 1) with the gradients that were added up since the last
 * step, and then zeroes these gradients. *norm: global norm of the averaged gradient, before
 * clipping. -ERANGE: the norm is not finite; the weights and the gradient are unchanged. */
int trainer_step(struct trainer *t, uint64_t iteration, enum grad_norm by, double *norm);
/* Copies the layers of stage `from` to stage `to` (stage_stack). -EINVAL: a stage does not
 * exist. */
int trainer_stack(struct trainer *t, uint32_t to, uint32_t from);
/* Zeroes the gradients added up since the last step, without a step. */
int trainer_drop_gradient(struct trainer *t);

#endif
