/* huggingface.h - reads and writes models in the format of the transformers library: config.json
 * and model.safetensors (or several files and an index), LLaMA architecture. */
#ifndef MODEL_HUGGINGFACE_H
#define MODEL_HUGGINGFACE_H

#include <jansson.h>

#include "base/error.h"
#include "model/config.h"
#include "model/stage.h"
#include "model/tensor.h"

/* Writes folder/config.json and folder/model.safetensors, in F32, of all stages (n_stages). tokens:
 * an object from generation_tokens, for config.json; NULL: none. */
int huggingface_export(const char *folder, struct stage *const *stages, const json_t *tokens,
		       struct error *err);

/* Reads folder/config.json; n_stages is set to 1. -EINVAL: a key is missing or unknown, or asks for
 * arithmetic that this model does not have; the message names the key. */
int huggingface_read_config(const char *folder, struct model_config *c, struct error *err);
/* Reads the weights into the stages of a model of that config, with any number of stages. Checks
 * everything before it overwrites anything; -EINVAL names file and tensor. Tensors that the model
 * lacks are skipped, unless they would change the arithmetic. Biases that are not zero, unknown
 * weights of a layer, a second head and an adapter are therefore refused. */
int huggingface_read_weights(const char *folder, struct stage *const *stages,
			     struct error *err);

/* These functions read one tensor at a time, for callers whose memory cannot hold the whole
 * model. */
struct huggingface; /* opaque */

/* Reads the tables of the files. -EINVAL: the folder contains something that would change the
 * arithmetic, as for huggingface_read_weights. */
int huggingface_open(struct huggingface **out, const char *folder, struct error *err);
void huggingface_close(struct huggingface *h); /* NULL is allowed */
/* Checks that the tensor exists, has the right shape, and has only finite values. An embedding or a
 * norm must not be zero everywhere. */
int huggingface_check_tensor(const struct huggingface *h, const struct tensor *t,
			     struct error *err);
/* Reads a tensor to `to` (count). */
int huggingface_read_tensor(const struct huggingface *h, const struct tensor *t, float *to,
			    struct error *err);

#endif
