/* slots.h - the places of a stage's activations within its single allocation.
 *
 * For backends. Before a backend includes this file, it defines `real` as float or void. `real` is
 * the type of the arrays that can be bf16 on a GPU. Sizes are of one microbatch: R = B * T rows.
 */
#ifndef MODEL_SLOTS_H
#define MODEL_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/backend.h"

/* The arrays of a layer's forward pass that its backward pass needs. The level of recomputation
 * decides which of these arrays each slot has for itself. RECOMPUTE_NONE: all arrays.
 * RECOMPUTE_NORMS: all except xn1, xn2 and h, which are in scratch memory. RECOMPUTE_BLOCK: only x;
 * all slots share one set of the other arrays. */
struct saved_layer {
	float *x;     /* (R, C) input of the layer */
	real *xn1;    /* (R, C) output of the first norm */
	float *rstd1; /* (R) reciprocal root mean squares of the first norm */
	real *qkv;    /* (R, C + 2 kv) q, k and v, after the rotation */
	real *att;    /* (R, C) output of attention, before o */
	float *lse;   /* (B, H, T) log-sum-exp of the scores */
	float *mid;   /* (R, C) residual stream after attention */
	float *rstd2; /* (R) reciprocal root mean squares of the second norm */
	real *xn2;    /* (R, C) output of the second norm */
	real *gu;     /* (R, 2F) gate and up */
	real *h;      /* (R, F) output of the activation function */
};

/* Divides an allocation into pieces. A first walk with base NULL adds up their sizes (all pieces
 * are NULL), and a second walk places the pieces. */
struct carver {
	char *base;
	size_t align, used; /* alignment of the pieces, and bytes used so far */
};

static inline void *carve_array(struct carver *c, size_t n, size_t width)
{
	void *at = c->base ? c->base + c->used : NULL;

	c->used += (n * width + c->align - 1) / c->align * c->align;
	return at;
}

static inline float *carve_floats(struct carver *c, size_t n)
{
	return carve_array(c, n, sizeof(float));
}

/* Places the arrays of one layer. xn, h: scratch arrays, for a slot without such arrays of its own.
 * all: the slot has its own xn1, xn2 and h. width: bytes of a `real`. */
static inline struct saved_layer carve_layer(struct carver *c, const struct stage_layout *l,
					     size_t width, real *xn, real *h, bool all)
{
	const struct model_config *m = &l->config;
	size_t r = (size_t)l->batch * l->sequence;
	size_t packed = m->dim + 2 * (size_t)m->n_kv_heads * model_head_size(m);

	return (struct saved_layer){
		.x = carve_floats(c, r * m->dim),
		.rstd1 = carve_floats(c, r),
		.qkv = carve_array(c, r * packed, width),
		.att = carve_array(c, r * m->dim, width),
		.lse = carve_floats(c, r * m->n_heads),
		.mid = carve_floats(c, r * m->dim),
		.rstd2 = carve_floats(c, r),
		.gu = carve_array(c, r * 2 * m->ffn_dim, width),
		.xn1 = all ? carve_array(c, r * m->dim, width) : xn,
		.xn2 = all ? carve_array(c, r * m->dim, width) : xn,
		.h = all ? carve_array(c, r * m->ffn_dim, width) : h,
	};
}

/* Places the activations of every slot and layer in `saved` (slots, n_layers). One more entry at
 * the end is for passes that keep nothing, such as validation. With RECOMPUTE_BLOCK, only the input
 * x has memory for each slot and layer. All other arrays are those of this last entry. */
static inline void carve_slots(struct carver *c, const struct stage_layout *l, size_t width,
			       real *xn, real *h, struct saved_layer *saved)
{
	size_t n = (size_t)l->slots * l->n_layers;

	saved[n] = carve_layer(c, l, width, xn, h, false);
	for (size_t i = 0; i < n; i++) {
		if (l->recompute != RECOMPUTE_BLOCK) {
			saved[i] =
				carve_layer(c, l, width, xn, h, l->recompute == RECOMPUTE_NONE);
		} else {
			saved[i] = saved[n];
			saved[i].x =
				carve_floats(c, (size_t)l->batch * l->sequence * l->config.dim);
		}
	}
}

#endif
