/* huggingface.h - whole models as the transformers library keeps them: config.json and
 * model.safetensors (or several files and an index), LLaMA architecture. */
#ifndef MODEL_HUGGINGFACE_H
#define MODEL_HUGGINGFACE_H

#include "base/error.h"
#include "model/config.h"
#include "model/stage.h"

/* Writes folder/config.json and folder/model.safetensors, F32, of all stages (n_stages). */
int huggingface_export(const char *folder, struct stage *const *stages, struct error *err);

/* Reads folder/config.json; n_stages is set to 1. -EINVAL names the key that is missing, or
 * asks for what this model does not do (other architectures, scaled positions, biases). */
int huggingface_read_config(const char *folder, struct model_config *c, struct error *err);
/* Reads the weights into stages of a model of that config, however cut. Everything is checked
 * before anything is overwritten; -EINVAL names file and tensor. */
int huggingface_read_weights(const char *folder, struct stage *const *stages,
			     struct error *err);

#endif
