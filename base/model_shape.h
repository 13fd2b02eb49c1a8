/* model_shape.h - the numbers of a model that decide how its layers are divided into stages: the
 * work and the memory of a layer, and of what stage 0 holds in addition.
 *
 * model/shape.h fills the struct in. schedule/fleet reads it, because schedule knows no model.
 * Work is in floating-point operations, as docs/gpu.md counts them: 6 for each weight and token,
 * and 12 * width * sequence for the attention of a layer and token; a third of them is the forward
 * pass. Memory is that of a GPU that computes in bf16.
 */
#ifndef BASE_MODEL_SHAPE_H
#define BASE_MODEL_SHAPE_H

/* The part of a layer's forward pass that its backward pass computes again: the outputs of norms
 * and activations, or all but the layer's input. */
enum shape_recompute { SHAPE_NORMS, SHAPE_BLOCK, SHAPE_RECOMPUTE_LEVELS };

struct model_shape {
	int n_layers;
	int width;            /* of the residual stream */
	int batch;            /* number of sequences in a configured microbatch */
	double tokens;        /* of a sequence */
	double layer_weights; /* number of weights of a layer */
	double end_weights;   /* number of weights of embedding, last norm and head, in stage 0 */
	double weight_bytes;  /* a weight, its gradient, its two moments and its bf16 copy */
	/* Work of a forward pass, for one sequence: of a layer; of the head */
	double layer_flop, head_flop;
	double activation_bytes; /* fp32 activation between two stages, one sequence */
	/* Bytes that a layer keeps of one sequence from its forward to its backward pass */
	double kept_bytes[SHAPE_RECOMPUTE_LEVELS];
	double scratch_bytes;     /* used by any pass, for each sequence of a microbatch */
	double end_scratch_bytes; /* of the loss in stage 0, without its logits */
	double logits_bytes, most_logits_bytes; /* for each sequence; limit for a microbatch */
	double slot_bytes;  /* tokens and their order in stage 0, for each sequence and slot */
	double fixed_bytes; /* reserved for code and for the workspace of products */
};

#endif
