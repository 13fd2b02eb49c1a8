/* kernel_args.h - the arguments of the kernels of kernels.h, and their sizes of blocks. */
#ifndef MODEL_CUDA_KERNEL_ARGS_H
#define MODEL_CUDA_KERNEL_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ROW_THREADS = 128,  /* a power of two: kernels of one block a row */
	TILE = 32,          /* queries or keys of an attention tile */
	TILE_THREADS = 128, /* four threads a row of a tile */
	TILE_SHARE = TILE_THREADS / TILE,
	HEAD_MOST = 128, /* head size */
	COLUMNS = 32,
	GROUPS = 8, /* norm_weight: columns a block, rows at a time */
};

/* One block a row: out (rows, c) = table[tokens]. */
struct embed_args {
	const int32_t *tokens;
	const float *table;
	float *out;
	unsigned c;
};

/* One block a token of the vocabulary, which looks for its rows in order: no atomics. */
struct embed_backward_args {
	const int32_t *tokens;
	const float *dx; /* (rows, c) */
	float *gradient; /* (vocab, c) += */
	unsigned rows, c;
};

/* One block a row. again: rstd is known. */
struct norm_args {
	const float *x, *w;
	float *y, *rstd;
	unsigned n;
	float eps;
	bool again;
};

/* One block a row: dx += the gradient of x. */
struct norm_backward_args {
	const float *dy, *x, *w, *rstd;
	float *dx;
	unsigned n;
};

/* COLUMNS columns a block: dw += the sum over rows of dy x rstd. */
struct norm_weight_args {
	const float *dy, *x, *rstd;
	float *dw;
	unsigned rows, n;
};

/* One block a row: rotates the heads of q and k by the row's position. */
struct rotate_args {
	float *x;                     /* (rows, stride) */
	const float *cosines, *sines; /* (period, half) */
	unsigned stride, heads, half, period;
	float sign;
};

/* One block a row of gu (rows, 2f), gate then up. */
struct swiglu_args {
	const float *gu;
	float *h; /* (rows, f) */
	unsigned f;
};

struct swiglu_backward_args {
	const float *gu, *dh;
	float *dgu, *h; /* h again, unless NULL */
	unsigned f;
};

/* One block a row of logits (rows, vocab), which become their gradient where scale is not 0. */
struct cross_entropy_args {
	float *logits;
	const int32_t *targets;
	float *losses; /* (rows) */
	unsigned vocab;
	float scale;
};

/* Causal attention with grouped heads, in tiles (FlashAttention, Dao et al., 2022). qkv
 * (B, T, stride): queries of `heads`, keys of `kv_heads`, values; out (B, T, heads * size). */
struct attention_args {
	const float *qkv;
	float *out;
	float *lse;              /* (B, heads, T) */
	const float *dout, *dot; /* backward: like out; (B, heads, T) sums of dout * out */
	float *dqkv;             /* backward: like qkv */
	unsigned length, heads, kv_heads, size, stride;
	float scale;
};

/* One block a row (b, t), a thread a head. */
struct attention_dot_args {
	const float *out, *dout; /* (B, T, heads * size) */
	float *dot;              /* (B, heads, T) */
	unsigned length, heads, size;
};

/* AdamW over n weights, THREADS a block. */
struct adamw_args {
	float *w, *m, *v;
	const float *g;
	size_t n;
	float scale, lr, beta1, beta2, eps, keep, unbias1, unbias2;
};

#endif
