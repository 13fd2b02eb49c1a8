/* stage_cuda.h - a stage on a GPU: its arrays and the buffers of its layers.
 *
 * The same passes in the same order as the CPU's (model/cpu/layer.c). In bf16 the factors of
 * products are bf16 (`real` below), and so is what only products, attention and SwiGLU read;
 * the residual stream, its gradient, norms' sums, the gradients of weights and the optimizer
 * stay float. The weights are float, and a bf16 copy of them is made after each change. R = B *
 * T rows. All device memory is one allocation.
 */
#ifndef MODEL_CUDA_STAGE_CUDA_H
#define MODEL_CUDA_STAGE_CUDA_H

#include "model/backend.h"
#include "model/cuda/device.h"
#include "model/cuda/kernel_args.h"
#include "model/slots.h"

struct cuda_scratch {
	real *xn, *h, *dgu, *dh, *dqkv, *datt, *dxn;
	float *dx;       /* (R, C) gradient of a layer; in a forward pass, the last output */
	real *dx_real;   /* dx as a factor of products; in float it is dx itself */
	float *dot;      /* (B, H, T) */
	float *parts;    /* (NORM_PARTS, C) */
	double *squares; /* (SQUARES_BLOCKS) */
	uint32_t *leaves; /* (hash_leaves(4 P), HASH_DIGEST / 4) */
	/* stage 0 */
	float *in;        /* (R, C) input of the loss */
	float *logits;    /* (chunk, vocab_stride) */
	real *dlogits;    /* (chunk, vocab_stride); in float logits itself */
	float *losses;    /* (R) */
	float *rstd;      /* (R) */
	int32_t *targets; /* (R) */
};

/* A pass: NEW, it has not run; RUN, it has run once and is recorded at the next call; REMEMBERED,
 * each call is one launch of the recording; PLAIN, it could not be recorded and runs in full. */
struct pass {
	struct device_graph *graph;
	enum { PASS_NEW, PASS_RUN, PASS_REMEMBERED, PASS_PLAIN } state;
};

/* Two buffers of pinned memory, used in turns, through which numbers of arrays pass on their way to
 * or from the caller's memory. */
struct pieces {
	float *at[2]; /* (size) */
	int next;
	size_t size;
};

struct cuda_stage {
	const struct stage_layout *l;
	struct device *d;
	size_t rows, kv, packed, chunk;
	size_t width; /* bytes of a real */
	/* Numbers between two rows of logits: the vocabulary, rounded up so that rows of bf16 begin
	 * at multiples of 16 bytes. Tensor cores need this. */
	size_t vocab_stride;
	float scale;  /* factor of attention scores */

	float *array[ARRAY_COUNT]; /* (P) */
	uint16_t *rounded;         /* (P) the weights as bf16; NULL in float */
	float *cosines, *sines;    /* (T, D / 2) factors of the rotary positions */
	struct saved_layer *saved; /* (slots, n_layers) saved layers, then one set for evaluation */
	int32_t *tokens;           /* (slots, R), stage 0, then one more */
	int32_t *order;            /* (slots, R) rows in order of their tokens, in stage 0 only */
	struct cuda_scratch t;
	struct pass *forward; /* (slots + 1) forward passes; the last is that of evaluation */
	/* (slots) backward passes: those that only pass the gradient on; those that count */
	struct pass *backward[2];
	size_t bytes, host_bytes; /* bytes of device memory; bytes of pinned memory at first */

	/* Arrays in pinned host memory. */
	float *host[ARRAY_COUNT]; /* (P) for stage_weights and the like; NULL until asked for */
	bool lent[ARRAY_COUNT];   /* host[] equals the device's array, or is newer */
	struct pieces pieces;
	float *host_in, *host_out; /* (R, C) copies of the caller's activations */
	float *host_losses;        /* (R), or (SQUARES_BLOCKS) doubles */
	unsigned char *host_leaves; /* (hash_leaves(4 P), HASH_DIGEST) */
	int32_t *host_tokens;      /* (R) tokens or targets on their way, stage 0 */
	int32_t *host_order; /* (R) order on its way in, (vocab + 1) where a token's begin */
};

/* passes.c. A layer's input lies in its x. t.dx holds the last output, and backward the gradient
 * that comes in and the one that goes out. */
void cuda_layers_forward(struct cuda_stage *s, uint32_t slot, bool keep);
void cuda_layers_backward(struct cuda_stage *s, uint32_t slot, bool count);
/* Rows [first, first + n) of t.in: their logits. */
void cuda_head(struct cuda_stage *s, size_t first, size_t n);
/* Adds to those rows of t.dx from t.dlogits; count: also to the gradients of the weights. */
void cuda_head_backward(struct cuda_stage *s, size_t first, size_t n, bool count);
/* How an attention kernel (KERNEL_ATTENTION, _DQ or _DKV) is started on a device for heads of
 * that size. In bf16 a block has two buffers for tiles, unless they do not fit, or with one
 * buffer a multiprocessor holds twice the blocks. false: one buffer does not fit either; *l has
 * one then. */
struct attention_launch {
	enum device_kernel kernel;
	unsigned tile, threads, buffers;
	size_t shared; /* floats */
};
bool attention_launch_of(struct attention_launch *l, struct device *d, enum device_kernel kernel,
			 bool bf16, unsigned size);
/* Public for tests, which compare each kernel with plain loops. */
void attention_start(struct device *d, enum device_kernel kernel, bool bf16, size_t batch,
		     const struct attention_args *a);
/* Launches one block of ROW_THREADS for each row. */
void cuda_rows(struct cuda_stage *s, enum device_kernel kernel, size_t rows, const void *args);
/* Launches one thread for each of n numbers. */
void cuda_each(struct cuda_stage *s, enum device_kernel kernel, size_t n, const void *args);

#endif
