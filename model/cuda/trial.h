/* trial.h - options of the GPU's code that are off until they have been measured on a card. */
#ifndef MODEL_CUDA_TRIAL_H
#define MODEL_CUDA_TRIAL_H

#include "base/error.h"

enum trial {
	TRIAL_LOGITS = 1 << 0,    /* "logits": logits are bf16, so the bits of a loss change */
	TRIAL_ATTENTION = 1 << 1, /* "attention": cuDNN computes attention in bf16 (cudnn.h) */
};

/* Reads a set of enum trial from the names in SKIPPIPE_GPU_TRY, which have commas between them.
 * -EINVAL: a name is unknown. */
int trial_read(unsigned *out, struct error *err);

#endif
