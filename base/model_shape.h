/* model_shape.h - the numbers of a model that decide how its layers are divided into stages: the
 * work and the memory of a layer, and of the layers that only stage 0 has. model/shape.h fills in
 * the struct for schedule/fleet, because schedule/ does not include model/. Work is in
 * floating-point operations, as docs/gpu.md counts them: 6 for each weight and token, and 12 *
 * width * sequence for each token in the attention of a layer. A third of these operations is the
 * forward pass. Memory is that of a GPU that computes in bf16.
 */
#ifndef BASE_MODEL_SHAPE_H
#define BASE_MODEL_SHAPE_H

/* The outputs of a layer that the backward pass computes again, so that they need no memory.
 * SHAPE_NORMS: outputs of norms and activation functions. SHAPE_BLOCK: all outputs. Only the
 * layer's input is then kept. */
enum shape_recompute { SHAPE_NORMS, SHAPE_BLOCK, SHAPE_RECOMPUTE_LEVELS };

struct model_shape {
	int n_layers;
	int width;            /* width of the residual stream */
	int batch;            /* number of sequences in a microbatch, as configured */
	double tokens;        /* number of tokens in a sequence */
	double layer_weights; /* number of weights of a layer */
	double end_weights;   /* number of weights of embedding, last norm and head, in stage 0 */
	/* Bytes for each weight: the weight, its gradient, its two moments, its bf16 copy, and the
	 * sum of gradients over replicas. */
	double weight_bytes;
	/* Operations of a forward pass for one sequence: in one layer, and in the head. */
	double layer_flop, head_flop;
	/* Bytes of an fp32 activation between two stages, for one sequence. */
	double activation_bytes;
	/* Bytes that a layer keeps for one sequence from its forward to its backward pass, at each
	 * level of enum shape_recompute. */
	double kept_bytes[SHAPE_RECOMPUTE_LEVELS];
	/* Scratch memory of a forward or backward pass, in bytes for each sequence of a
	 * microbatch. */
	double scratch_bytes;
	double end_scratch_bytes; /* scratch memory of the loss in stage 0, without its logits */
	/* Bytes of the logits of one sequence, and the largest number of bytes that the logits of
	 * a microbatch occupy at a time. */
	double logits_bytes, most_logits_bytes;
	/* Bytes that stage 0 keeps for one sequence of a microbatch in progress: its tokens and
	 * their order. */
	double slot_bytes;
	double fixed_bytes; /* bytes reserved for code and for the workspace of matrix products */
};

#endif
