/* vector.h - operations other than matrix products: norms, rotation, softmax, activation, AdamW.
 *
 * One source (vector_body.h) is compiled for several instruction sets; vector_ops() gives the
 * best one this machine runs. Each works on whole rows, in one thread, in a fixed order.
 * All arrays are row-major; none may overlap unless said.
 */
#ifndef MODEL_CPU_VECTOR_H
#define MODEL_CPU_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#include "model/vector/exact.h"

/* A block of attention scores: rows are queries, columns keys. Row i sees columns < seen + i.
 */
struct score_tile {
	float *scores; /* (rows, cols), stride = cols */
	size_t rows, cols;
	size_t seen;
	float scale; /* factor of the scores, 1 / sqrt(head size) */
};

struct vector_ops {
	const char *name;

	/* y = x * rstd * w by rows (rows, n); rstd (rows) = 1 / sqrt(mean(x^2) + eps). */
	void (*norm)(float *y, float *rstd, const float *x, const float *w, size_t rows,
		     size_t n, float eps);
	/* As norm, but rstd is given. */
	void (*norm_again)(float *y, const float *rstd, const float *x, const float *w,
			   size_t rows, size_t n);
	/* dx += the gradient of x; dw (n) += that of w, unless NULL. */
	void (*norm_backward)(float *dx, float *dw, const float *dy, const float *x,
			      const float *w, const float *rstd, size_t rows, size_t n);

	/* Rotates pair (i, i + half) of each head of each row by the angle of the row's
	 * position, (first + row) % period; angles: cosines then sines, (period, half) each.
	 * sign -1 rotates back. Rows are `stride` floats apart. */
	void (*rotate)(float *x, size_t stride, size_t rows, size_t heads, size_t half,
		       const float *cosines, const float *sines, size_t first, size_t period,
		       float sign);

	/* h (rows, f) = silu(gate) * up; gu (rows, 2f) holds gate then up in each row. */
	void (*swiglu)(float *h, const float *gu, size_t rows, size_t f);
	/* dgu (rows, 2f) from dh; also, unless NULL, h again, to the bit, as the gradient of
	 * the next matrix needs it. dgu may be gu. */
	void (*swiglu_backward)(float *dgu, float *h, const float *dh, const float *gu,
				size_t rows, size_t f);

	/* Running softmax over tiles of keys. most (rows): largest scaled score so far
	 * (-INFINITY at first); sum (rows): of exp(score - most). Scores become
	 * exp(score - most). shrink (rows): the factor by which earlier sums and outputs
	 * shrink. This function multiplies sum by it, and the caller multiplies the
	 * outputs. */
	void (*softmax_tile)(const struct score_tile *t, float *most, float *sum,
			     float *shrink);
	/* Scores become probabilities exp(score - lse), and dp (rows, cols), the gradient of
	 * the probabilities, becomes that of the unscaled scores; dot (rows) = sum(dout * out).
	 */
	void (*softmax_tile_backward)(const struct score_tile *t, float *dp, const float *lse,
				      const float *dot);

	/* Multiplies each row of x (rows, n; stride) by its factor in `by` (rows). */
	void (*scale_rows)(float *x, size_t stride, size_t rows, size_t n, const float *by);
	/* dot (rows) = sum over n of a * b. */
	void (*row_dots)(float *dot, const float *a, const float *b, size_t stride, size_t rows,
			 size_t n);

	/* -log softmax(logits)[target] (0 for target -1). grad_scale != 0: logits (n) become
	 * (softmax - onehot) * grad_scale, or 0 for target -1. */
	float (*cross_entropy)(float *logits, size_t n, int32_t target, float grad_scale);

	/* The following functions give the same bits with every instruction set (exact.h). */

	/* to (rows, n; no gaps) = x (rows, n; stride) rounded to the nearest bf16, ties to even;
	 * NaN becomes 0x7fc0. */
	void (*to_bf16)(uint16_t *to, const float *x, size_t stride, size_t rows, size_t n);
	/* to (n) = x (n) of uint16_t, at any address. */
	void (*from_bf16)(float *to, const void *x, size_t n);

	void (*add)(float *to, const float *from, size_t n);
	void (*adamw)(float *w, float *m, float *v, const float *g, size_t n,
		      const struct adamw_factors *f);

	/* Computes the digests (hash_leaves(bytes), HASH_DIGEST) of data's leaves, as hash.h
	 * defines them. */
	void (*leaves)(unsigned char *digests, const unsigned char *data, size_t bytes);

	/* The groups of x (n), and back; the means (n) of x (rows, n): bytes after codec.h. */
	void (*quantise)(unsigned char *to, const float *x, size_t n, const struct quantiser *q);
	void (*dequantise)(float *to, const unsigned char *from, size_t n,
			   const struct quantiser *q);
	void (*channel_means)(unsigned char *to, const float *x, size_t rows, size_t n);
};

/* Returns the functions of the best instruction set of this machine. */
const struct vector_ops *vector_ops(void);
/* Returns the functions of a set by its name; NULL: this machine lacks the set. */
const struct vector_ops *vector_ops_named(const char *name);
/* Returns the functions of the set with this index among those that this machine has; NULL after
 * the last. For tests. */
const struct vector_ops *vector_ops_at(size_t i);

#endif
