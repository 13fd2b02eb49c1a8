/* kernel_args.h - the arguments of the GPU's kernels, and their sizes of blocks.
 *
 * A `real` is a number of the precision that a launch says: float, or bf16 in 16 bits. Sums are
 * in float whichever it is, and so is all that is declared so.
 */
#ifndef MODEL_CUDA_KERNEL_ARGS_H
#define MODEL_CUDA_KERNEL_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/adamw.h"
#include "model/hash.h"

typedef void real;

enum {
	ROW_THREADS = 128,  /* a power of two: kernels of one block a row */
	LOSS_THREADS = 512, /* a power of two: threads of a block for a row of logits */
	DOT_SHARE = 8,      /* attention_dot: threads a head, a power of two within a warp */
	TILE = 32,          /* queries or keys of an attention tile */
	TILE_THREADS = 128, /* four threads a row of a tile */
	TILE_SHARE = TILE_THREADS / TILE,
	HEAD_MOST = 128, /* head size */
	COLUMNS = 32,
	GROUPS = 32,                          /* norm_weight: columns a block, rows at a time */
	NORM_PARTS = 32,                      /* blocks that share its rows */
	FLASH_TILE = 64,                      /* queries or keys of a tile on tensor cores */
	FLASH_THREADS = FLASH_TILE / 16 * 32, /* a warp for 16 of them */
	SQUARES_BLOCKS = 1024,
	LEAF_THREADS = 32,
};

/* One block a row: out (rows, c) = table[tokens]. */
struct embed_args {
	const int32_t *tokens;
	const float *table;
	float *out;
	unsigned c;
};

/* One block for each row in `order` and ROW_THREADS columns. The block of a token's first row adds
 * up all rows of the token in order, without atomics. */
struct embed_backward_args {
	const int32_t *tokens;
	const int32_t *order; /* (rows) by token, a token's ascending */
	const float *dx;      /* (rows, c) */
	float *gradient;      /* (vocab, c) += */
	unsigned rows, c;
};

/* One block a row. again: rstd is known. */
struct norm_args {
	const float *x, *w;
	real *y;
	float *rstd;
	unsigned n;
	float eps;
	bool again;
};

/* One block a row: dx += the gradient of x. */
struct norm_backward_args {
	const real *dy;
	const float *x, *w, *rstd;
	float *dx;
	unsigned n;
};

/* COLUMNS columns and every NORM_PARTS-th GROUPS rows a block: its sum of dy x rstd, which
 * norm_sum adds to dw. */
struct norm_weight_args {
	const real *dy;
	const float *x, *rstd;
	float *parts; /* (NORM_PARTS, n) */
	unsigned rows, n;
};

/* THREADS columns a block: dw (n) += the sum of parts, in order. */
struct norm_sum_args {
	const float *parts;
	float *dw;
	unsigned n;
};

/* One block a row: rotates the heads of q and k by the row's position. */
struct rotate_args {
	real *x;                      /* (rows, stride) */
	const float *cosines, *sines; /* (period, half) */
	unsigned stride, heads, half, period;
	float sign;
};

/* One block a row of gu (rows, 2f), gate then up. */
struct swiglu_args {
	const real *gu;
	real *h; /* (rows, f) */
	unsigned f;
};

struct swiglu_backward_args {
	const real *gu, *dh;
	real *dgu, *h; /* h again, unless NULL */
	unsigned f;
};

/* One block of LOSS_THREADS a row of logits (rows, vocab). gradient, which may be logits, is
 * written where scale is not 0. */
struct cross_entropy_args {
	const float *logits;
	real *gradient;
	const int32_t *targets;
	float *losses; /* (rows) */
	unsigned vocab;
	float scale;
};

/* Causal attention with grouped heads, in tiles (FlashAttention, Dao et al., 2022). qkv
 * (B, T, stride): queries of `heads`, keys of `kv_heads`, values; out (B, T, heads * size). */
struct attention_args {
	const real *qkv;
	real *out;
	float *lse;       /* (B, heads, T) */
	const real *dout; /* backward: like out */
	const float *dot; /* backward: (B, heads, T) sums of dout * out */
	real *dqkv;       /* backward: like qkv */
	unsigned length, heads, kv_heads, size, stride;
	float scale;
	unsigned buffers; /* 1 or 2, for tiles; in bf16 */
};

/* One block a row (b, t), DOT_SHARE threads a head. */
struct attention_dot_args {
	const real *out, *dout; /* (B, T, heads * size) */
	float *dot;             /* (B, heads, T) */
	unsigned length, heads, size;
};

/* AdamW over n weights, THREADS a block. */
struct adamw_args {
	float *w, *m, *v;
	const float *g;
	size_t n;
	struct adamw_factors f;
};

/* y (n) = x (n), eight a thread. */
struct cast_args {
	const float *x;
	real *y;
	size_t n;
};

/* A thread for each leaf of the n words' bytes: its digest. */
struct hash_args {
	const float *x;
	uint32_t *to; /* (hash_leaves(4 n), HASH_DIGEST / 4) */
	size_t n;
};

/* THREADS channels a block: the means, in bf16, of x (rows, n). */
struct channel_means_args {
	const float *x;
	uint16_t *means;
	size_t rows, n;
};

/* A thread for each group: x (n) to bytes, or bytes to x, as model/codec/codec.h defines them. */
struct codec_args {
	float *x;
	uint8_t *bytes;        /* the groups */
	const uint16_t *means; /* (channels); NULL: none */
	size_t n, channels;
	unsigned bits, group;
};

/* SQUARES_BLOCKS blocks, each the sum of its share: to (SQUARES_BLOCKS). */
struct squares_args {
	const float *x;
	double *to;
	size_t n;
};

#endif
