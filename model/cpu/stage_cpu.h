/* stage_cpu.h - a stage in the machine's own memory: its arrays and the buffers of its layers.
 *
 * R = B * T rows. All arrays are in one allocation.
 */
#ifndef MODEL_CPU_STAGE_CPU_H
#define MODEL_CPU_STAGE_CPU_H

#include "model/backend.h"
#include "model/cpu/attention.h"
#include "model/cpu/pool.h"
#include "model/cpu/product.h"
#include "model/vector/vector.h"

typedef float real;

#include "model/slots.h"

struct scratch {
	float *xn;        /* (R, C) output of a norm */
	float *h;         /* (R, F) output of the activation function */
	float *dgu;       /* (R, 2F) gradient of gate and up */
	float *dh;        /* (R, F) gradient of h */
	float *dqkv;      /* (R, C + 2 kv) gradient of q, k and v */
	float *datt;      /* (R, C) gradient of attention's output */
	float *dxn;       /* (R, C) gradient of a norm's output */
	float *dx;        /* (R, C) gradient that passes from the last layer to the first */
	float *logits;    /* (chunk, vocab) logits, in stage 0 only */
	float *losses;    /* (R) losses, in stage 0 only */
	float *rstd;      /* (R) reciprocal root mean squares of the last norm, in stage 0 only */
	float *norm_sums; /* (threads, C) each thread's part of a norm's gradient */
	float *tile;      /* (threads, attention_scratch) scratch memory of attention */
};

struct cpu_stage {
	const struct stage_layout *l;
	const struct vector_ops *v;
	struct attention_shape shape;
	struct pool *pool;
	/* One entry for each thread: its memory for products in bf16. NULL in fp32. */
	struct product_thread **products;
	size_t rows;                      /* number of rows R */
	size_t kv;                        /* width of the keys of all heads together */
	size_t packed;                    /* width of q, k and v together: C + 2 kv */
	size_t chunk;                     /* number of rows of logits computed at a time */

	float *array[ARRAY_COUNT]; /* (P) weights, gradient and moments, each an array */
	float *cosines, *sines;    /* (T, D / 2) factors of the rotary positions */
	/* (slots, n_layers) saved layers, then one more set for evaluation */
	struct saved_layer *saved;
	int32_t *tokens; /* (slots, R) tokens, in stage 0 only */
	struct scratch scratch;
	void *arena;
	size_t arena_bytes;
};

/* Implemented in layer.c. On entry, saved->x is the layer's input. out (R, C) must not be one of
 * the saved layer's arrays. If out is NULL, only what the backward pass needs is computed. */
void layer_forward(struct cpu_stage *s, uint32_t layer, struct saved_layer *saved, float *out);
/* dx (R, C): on entry the gradient of the layer's output, on return the gradient of its input. */
void layer_backward(struct cpu_stage *s, uint32_t layer, struct saved_layer *saved, float *dx,
		    bool count);

/* ---- head.c ---- */
int head_loss(struct cpu_stage *s, const float *in, const int32_t *targets, float *loss,
	      float *grad, bool count);
void head_logits(struct cpu_stage *s, const float *in, float *logits);

/* Each thread sums a norm's gradient over its own rows, in scratch.norm_sums. */
void norm_sums_clear(struct cpu_stage *s);
void norm_sums_add(struct cpu_stage *s, float *gradient);

#endif
