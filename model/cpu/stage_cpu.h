/* stage_cpu.h - a stage in the machine's own memory: its arrays and the buffers of its layers.
 *
 * R = B * T rows. Everything is one allocation, carved once.
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
	float *h;         /* (R, F) output of the activation */
	float *dgu;       /* (R, 2F) */
	float *dh;        /* (R, F) */
	float *dqkv;      /* (R, C + 2 kv) */
	float *datt;      /* (R, C) */
	float *dxn;       /* (R, C) */
	float *dx;        /* (R, C) gradient on its way from the last layer to the first */
	float *logits;    /* (chunk, vocab) logits, in stage 0 only */
	float *losses;    /* (R) losses, in stage 0 only */
	float *rstd;      /* (R) rstd of the last norm, in stage 0 only */
	float *norm_sums; /* (threads, C) each thread's part of a norm's gradient */
	float *tile;      /* (threads, attention_scratch) */
};

struct cpu_stage {
	const struct stage_layout *l;
	const struct vector_ops *v;
	struct attention_shape shape;
	struct pool *pool;
	/* (threads) memory of each thread for products; NULL unless in bf16 */
	struct product_thread **products;
	size_t rows;                      /* R */
	size_t kv;                        /* width of the keys of all heads together */
	size_t packed;                    /* width of q, k and v together: C + 2 kv */
	size_t chunk;                     /* number of rows of logits computed at a time */

	float *array[ARRAY_COUNT]; /* (P) each */
	float *cosines, *sines;    /* (T, D / 2) factors of the rotary positions */
	/* (slots, n_layers) saved layers, then one more set for evaluation */
	struct saved_layer *saved;
	int32_t *tokens; /* (slots, R) tokens, in stage 0 only */
	struct scratch scratch;
	void *arena;
	size_t arena_bytes;
};

/* layer.c: x of the saved layer holds the input; out (R, C) may not be any of its buffers. If
 * out is NULL, only what the backward pass needs is computed. */
void layer_forward(struct cpu_stage *s, uint32_t layer, struct saved_layer *saved, float *out);
/* dx (R, C): the gradient of the output comes in, that of the input goes out. */
void layer_backward(struct cpu_stage *s, uint32_t layer, struct saved_layer *saved, float *dx,
		    bool count);

/* head.c */
int head_loss(struct cpu_stage *s, const float *in, const int32_t *targets, float *loss,
	      float *grad, bool count);
void head_logits(struct cpu_stage *s, const float *in, float *logits);

/* A norm's gradient is summed in scratch.norm_sums, by each thread over its rows. */
void norm_sums_clear(struct cpu_stage *s);
void norm_sums_add(struct cpu_stage *s, float *gradient);

#endif
