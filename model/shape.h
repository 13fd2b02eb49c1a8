/* shape.h - the numbers of a model by which a fleet is chosen (base/model_shape.h). */
#ifndef MODEL_SHAPE_H
#define MODEL_SHAPE_H

#include "base/model_shape.h"
#include "model/config.h"

/* Counts work and memory from the model's dimensions and the configured microbatch. The caller has
 * checked both. */
void model_shape_of(const struct model_config *c, const struct hyperparameters *r,
		    struct model_shape *out);
/* Does the same for an agent that computes in fp32 and has one memory for everything. A sum under
 * way, and a standby copy of another stage, are part of its needs. */
void model_shape_in_fp32(const struct model_config *c, const struct hyperparameters *r,
			 struct model_shape *out);

#endif
