/* kernel_args.h - the arguments of the GPU's kernels, and the sizes of the kernels' blocks.
 *
 * A `real` is a number in the precision that the launch chooses: float, or bf16 in 16 bits. Sums
 * and all numbers that are declared as float are float in both cases. */
#ifndef MODEL_CUDA_KERNEL_ARGS_H
#define MODEL_CUDA_KERNEL_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/adamw.h"
#include "model/hash.h"
#include "model/squares.h"

typedef void real;

enum {
	ROW_THREADS = 128,  /* threads in a block that works on one row; a power of two */
	LOSS_THREADS = 512, /* threads in a block that works on a row of logits; a power of two */
	/* attention_dot: threads for each head, all in one warp; a power of two. */
	DOT_SHARE = 8,
	TILE = 32,          /* number of queries or keys in a tile of attention */
	TILE_THREADS = 128, /* four threads for each row of a tile */
	TILE_SHARE = TILE_THREADS / TILE,
	HEAD_MOST = 128, /* limit of the head size */
	/* norm_backward: limit of the number of blocks, among which rows are divided. */
	NORM_PARTS = 1024,
	COLUMNS = 32, /* norm_sum: columns that a block works on */
	GROUPS = 32,  /* norm_sum: groups of parts that a block adds side by side */
	/* Number of queries or keys in a tile on tensor cores. */
	FLASH_TILE = 64,
	FLASH_THREADS = FLASH_TILE / 16 * 32, /* a warp for each 16 rows of a tile */
	LEAF_THREADS = 32,
};

/* One block for each row: out (rows, c) = table[tokens]. */
struct embed_args {
	const int32_t *tokens;
	const float *table;
	float *out;
	unsigned c;
};

/* One block for each row in `order` and each group of ROW_THREADS columns. The block of a token's
 * first row adds up all rows of this token, in their order and without atomics. */
struct embed_backward_args {
	const int32_t *tokens;
	const int32_t *order; /* (rows) rows sorted by token, and ascending for each token */
	const float *dx;      /* (rows, c) gradient of the embedded rows */
	float *gradient;      /* (vocab, c) gradient, to which the kernel adds */
	unsigned rows, c;
};

/* One block for each row. */
struct norm_args {
	const float *x, *w;
	real *y;
	float *rstd;
	unsigned n;
	float eps;
};

/* dx += the gradient of x. There is one block for each row, but there are at most NORM_PARTS
 * blocks: block b has rows b, b + NORM_PARTS and so on. For norm_sum, each block adds up dy * x *
 * rstd over its rows. A block needs THREADS + n floats of shared memory. */
struct norm_backward_args {
	const real *dy;
	const float *x, *w, *rstd;
	float *dx;
	/* Outputs, or NULL. rounded: dx in the type that products read. y: the output of the
	 * forward pass, computed again. */
	real *rounded, *y;
	float *parts; /* (blocks, n) output: the sums of the blocks; NULL: not wanted */
	unsigned rows, n;
};

/* dw (n) += the sum of parts (count, n). Each block has COLUMNS columns and GROUPS groups of
 * consecutive parts. */
struct norm_sum_args {
	const float *parts;
	float *dw;
	unsigned count, n;
};

/* One block for each row: rotates the heads of q and k by the row's position. */
struct rotate_args {
	real *x;                      /* (rows, stride) q and k of each row */
	const float *cosines, *sines; /* (period, half) factors of the rotation */
	unsigned stride, heads, half, period;
	float sign;
};

/* One block for each row of gu (rows, 2f). A row holds f values of the gate, then f of up. */
struct swiglu_args {
	const real *gu;
	real *h; /* (rows, f) output */
	unsigned f;
};

struct swiglu_backward_args {
	const real *gu, *dh;
	real *dgu, *h; /* h: output, the forward pass's h computed again; NULL: not wanted */
	unsigned f;
};

/* One block of LOSS_THREADS for each row of logits (rows, vocab). If scale is not NULL, the kernel
 * writes `gradient`, which may be the same array as logits. */
struct cross_entropy_args {
	const void *logits; /* (rows, stride); the gradient has the same layout */
	real *gradient;
	const int32_t *targets;
	float *losses; /* (rows) loss of each row */
	const float *scale; /* the factor of the gradient, in device memory */
	unsigned vocab, stride;
	bool rounded; /* the logits are reals, not floats */
};

/* Causal attention with grouped heads, in tiles (FlashAttention, Dao et al., 2022). qkv (B, T,
 * stride): queries of `heads` heads, then keys and values of kv_heads heads. out (B, T, heads *
 * size). */
struct attention_args {
	const real *qkv;
	real *out;
	float *lse;       /* (B, heads, T) log-sum-exp of the scores */
	const real *dout; /* backward: gradient of out, with its shape */
	const float *dot; /* backward: (B, heads, T) sums of dout * out */
	real *dqkv;       /* backward: gradient of qkv, with its shape */
	unsigned length, heads, kv_heads, size, stride;
	float scale;
	unsigned buffers; /* number of buffers for tiles, 1 or 2; only in bf16 */
	/* backward, in bf16 only: (length, size / 2) factors by which the gradients of queries and
	 * keys are rotated back; NULL: they are not rotated. The head size must be 64 or 128. */
	const float *cosines, *sines;
};

/* One block for each row (b, t), with DOT_SHARE threads for each head. */
struct attention_dot_args {
	const real *out, *dout; /* (B, T, heads * size) output of attention, and its gradient */
	float *dot;             /* (B, heads, T) sums of dout * out */
	unsigned length, heads, size;
};

/* A step of AdamW of n weights, THREADS of them in each block. */
struct adamw_args {
	float *w, *m, *v;
	const float *g;
	size_t n;
	struct adamw_factors f;
};

/* Converts x (n) to y (n). Each thread converts eight numbers. */
struct cast_args {
	const float *x;
	real *y;
	size_t n;
};

/* Each thread computes the digest of one leaf of the n words. */
struct hash_args {
	const float *x;
	uint32_t *to; /* (hash_leaves(4 n), HASH_DIGEST / 4) digests of the leaves */
	size_t n;
};

/* Each block computes the means, in bf16, of THREADS channels of x (rows, n). */
struct channel_means_args {
	const float *x;
	uint16_t *means;
	size_t rows, n;
};

/* Each thread converts one group: x (n) to bytes, or bytes to x, as model/codec/codec.h defines
 * them. */
struct codec_args {
	float *x;
	uint8_t *bytes;        /* the encoded groups */
	const uint16_t *means; /* (channels) means; NULL: none */
	size_t n, channels;
	unsigned bits, group;
};

/* SQUARES_LANES threads add the squares of one block of x (n), and write the sum to `to`
 * (squares_blocks(n)). The shared memory is one double for each thread. */
struct squares_args {
	const float *x;
	double *to;
	size_t n;
};

/* Each thread adds one element of `from` (n) to the same element of `to`, as stage_add does. */
struct add_args {
	float *to;
	const float *from;
	size_t n;
};

#endif
