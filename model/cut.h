/* cut.h - how the layers of a model are divided into stages.
 *
 * A model is cut equally, or into stages of given numbers of layers. Stage 0 also holds the
 * embedding, the last norm and the head, so it may have no layers. Every other stage has one layer
 * or more, because a stage without layers would do nothing.
 */
#ifndef MODEL_CUT_H
#define MODEL_CUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/route.h"

enum { STAGE_LAYERS_TEXT = 6 * ROUTE_HOPS }; /* number of bytes that hold any cut as text */

struct model_config;

struct stage_layers {
	/* Number of stages; 0: the numbers of layers are as equal as possible. */
	uint32_t n;
	uint16_t of[ROUTE_HOPS]; /* number of layers of each of the n stages */
};

/* Reads "0,5,3". -EINVAL: the text is no list of numbers; the message begins with `option`. */
int stage_layers_parse(struct stage_layers *out, const char *option, const char *text,
		       struct error *err);

/* Cuts the model into stages with these numbers of layers, and sets n_stages. An equal cut is
 * always stored as n_stages alone, so that equal models have equal configs and documents. cut->n ==
 * 0: leaves the model as it is. -EINVAL: the numbers do not add up to the model's layers; the
 * message begins with `option`, and c is unchanged. */
int model_cut(struct model_config *c, const struct stage_layers *cut, const char *option,
	      struct error *err);
/* Cuts the model into n_stages stages, as equally as possible. A model that already has n_stages
 * stages keeps its cut. */
void model_cut_equally(struct model_config *c, uint32_t n_stages);
/* Checks c->stage_layers against the other fields. -EINVAL: the fields contradict each other. */
int model_cut_check(const struct model_config *c, struct error *err);

/* Checks that new stages can start as copies of trained ones (--stack, --recipe). -EINVAL: the cut
 * is unequal, and stage 0 has no layers to copy. An equal cut is accepted even if stage 0 has no
 * layers. Stages that would copy stage 0 then keep their initial weights. */
int model_cut_check_stack(const struct model_config *c, struct error *err);

/* Return the first layer of a stage, and its number of layers. */
uint32_t model_first_layer(const struct model_config *c, uint32_t stage);
uint32_t model_layer_count(const struct model_config *c, uint32_t stage);
/* Returns the time of a forward or a backward pass in this stage, divided by the time in a stage
 * with the mean number of layers. For an equal cut, the result is 1. The loss is not counted. */
double model_stage_work(const struct model_config *c, uint32_t stage);
/* Writes the numbers of layers of all stages as "0,5,3" (STAGE_LAYERS_TEXT). For a model of more
 * than ROUTE_HOPS stages, writes "". */
void model_cut_format(const struct model_config *c, char *out);
/* If the stages are unequal, appends ", layers 0,5,3" to the text. Appends nothing if the buffer of
 * `room` bytes is too small. */
void model_cut_append(const struct model_config *c, char *text, size_t room);

#endif
