/* vector.h - operations other than matrix products: norms, rotation, softmax, activation, AdamW.
 *
 * One source (vector_body.h) is compiled for several instruction sets; vector_ops() returns the
 * operations for the best set of this machine. Each operation works on whole rows, in one thread,
 * in a fixed order. All arrays are row-major, and must not overlap unless stated.
 */
#ifndef MODEL_CPU_VECTOR_H
#define MODEL_CPU_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#include "model/vector/exact.h"

/* A block of attention scores: rows are queries, columns keys. Row i sees columns < seen + i.
 */
struct score_tile {
	float *scores; /* (rows, cols) scores, without gaps between rows */
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
	/* dx += the gradient of x; dw (n) += the gradient of w; dw may be NULL. */
	void (*norm_backward)(float *dx, float *dw, const float *dy, const float *x,
			      const float *w, const float *rstd, size_t rows, size_t n);

	/* Rotates pair (i, i + half) of each head of each row by the angle of the row's position,
	 * (first + row) % period. cosines, sines: (period, half). sign -1 rotates back. Rows are
	 * `stride` floats apart. */
	void (*rotate)(float *x, size_t stride, size_t rows, size_t heads, size_t half,
		       const float *cosines, const float *sines, size_t first, size_t period,
		       float sign);

	/* h (rows, f) = silu(gate) * up; gu (rows, 2f) holds gate then up in each row. */
	void (*swiglu)(float *h, const float *gu, size_t rows, size_t f);
	/* Computes dgu (rows, 2f) from dh. If h is not NULL, also computes the output h of swiglu
	 * again, with the same bits, because the gradient of the next matrix needs h. dgu may be
	 * the same array as gu. */
	void (*swiglu_backward)(float *dgu, float *h, const float *dh, const float *gu,
				size_t rows, size_t f);

	/* Running softmax over tiles of keys. most (rows): largest scaled score so far
	 * (-INFINITY at first); sum (rows): sum of exp(score - most). Scores become exp(score -
	 * most). shrink (rows): factor by which earlier sums and outputs shrink. This function
	 * multiplies the sums by shrink, and the caller multiplies the outputs. */
	void (*softmax_tile)(const struct score_tile *t, float *most, float *sum,
			     float *shrink);
	/* Scores become probabilities exp(score - lse), and dp (rows, cols), the gradient of
	 * the probabilities, becomes the gradient of the unscaled scores; dot (rows) = sum(dout *
	 * out).
	 */
	void (*softmax_tile_backward)(const struct score_tile *t, float *dp, const float *lse,
				      const float *dot);

	/* Multiplies each row of x (rows, n; stride) by its factor in `by` (rows). */
	void (*scale_rows)(float *x, size_t stride, size_t rows, size_t n, const float *by);
	/* dot (rows) = sum over n of a * b. */
	void (*row_dots)(float *dot, const float *a, const float *b, size_t stride, size_t rows,
			 size_t n);

	/* Returns -log softmax(logits)[target], or 0 for target -1. grad_scale != 0: replaces the
	 * logits (n) by (softmax - onehot) * grad_scale, or by 0 for target -1. */
	float (*cross_entropy)(float *logits, size_t n, int32_t target, float grad_scale);

	/* The following functions give the same bits with every instruction set (exact.h). */

	/* Rounds x (rows, n; stride) to the nearest bf16 in `to` (rows, n; no gaps), ties to even;
	 * NaN becomes 0x7fc0. */
	void (*to_bf16)(uint16_t *to, const float *x, size_t stride, size_t rows, size_t n);
	/* Converts n bf16 numbers at x, which may be at any address, to floats in `to` (n). */
	void (*from_bf16)(float *to, const void *x, size_t n);

	void (*add)(float *to, const float *from, size_t n);
	void (*adamw)(float *w, float *m, float *v, const float *g, size_t n,
		      const struct adamw_factors *f);

	/* Computes the digests (hash_leaves(bytes), HASH_DIGEST) of data's leaves, as hash.h
	 * defines them. */
	void (*leaves)(unsigned char *digests, const unsigned char *data, size_t bytes);

	/* Encode x (n) as groups, decode groups to numbers, and compute the means (n) of the
	 * columns of x (rows, n). Groups and means are bytes as codec.h defines. */
	void (*quantise)(unsigned char *to, const float *x, size_t n, const struct quantiser *q);
	void (*dequantise)(float *to, const unsigned char *from, size_t n,
			   const struct quantiser *q);
	void (*channel_means)(unsigned char *to, const float *x, size_t rows, size_t n);
};

/* Returns the functions of the best instruction set of this machine. */
const struct vector_ops *vector_ops(void);
/* Returns the functions of a set by its name; NULL: this machine lacks the set. */
const struct vector_ops *vector_ops_named(const char *name);
/* Returns the functions of the i-th instruction set that this machine has; NULL after the last. For
 * tests. */
const struct vector_ops *vector_ops_at(size_t i);

#endif
