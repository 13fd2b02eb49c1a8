/* shape.h - the numbers of a model by which a fleet is chosen (base/model_shape.h). */
#ifndef MODEL_SHAPE_H
#define MODEL_SHAPE_H

#include "base/model_shape.h"
#include "model/config.h"

/* Computes work and memory from the model and the configured microbatch. The caller has checked c
 * and r. */
void model_shape_of(const struct model_config *c, const struct hyperparameters *r,
		    struct model_shape *out);
/* Computes work and memory for an agent that computes in fp32 and has one memory for everything.
 * The needs then include the arrays for a sum under way and a standby copy of another stage. */
void model_shape_in_fp32(const struct model_config *c, const struct hyperparameters *r,
			 struct model_shape *out);

#endif
