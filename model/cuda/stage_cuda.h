/* stage_cuda.h - a stage on a GPU: its arrays and the buffers of its layers.
 *
 * The passes make the same operations as on the CPU, in the same order (model/cpu/layer.c). In
 * bf16, factors of products are bf16 (`real` below), and so are arrays that only products,
 * attention and SwiGLU read. The residual stream, its gradient, norms' sums, the gradients of
 * weights and the optimizer stay float. The weights are float, and a bf16 copy of the weights is
 * made after each change. R = B * T rows. All device memory is one allocation.
 */
#ifndef MODEL_CUDA_STAGE_CUDA_H
#define MODEL_CUDA_STAGE_CUDA_H

#include "model/backend.h"
#include "model/cuda/device.h"
#include "model/cuda/kernel_args.h"
#include "model/slots.h"

struct cuda_scratch {
	real *xn, *h, *dgu, *dh, *dqkv, *datt, *dxn;
	/* (R, C) gradient of a layer's output; in a forward pass, the last layer's output. */
	float *dx;
	real *dx_real;   /* dx in the type that products read; in float it is dx itself */
	float *dot;      /* (B, H, T) sums of dout * out in attention */
	float *parts;    /* (min(R, NORM_PARTS), C) parts of a norm's gradient */
	void *attention; /* memory that cuDNN's attention works in */
	size_t attention_bytes;
	/* (hash_leaves(4 P), HASH_DIGEST / 4) digests of a hash's leaves, or sums of squares. */
	uint32_t *leaves;
	/* In stage 0 only: */
	float *in;        /* (R, C) input of the loss */
	float *logits;    /* (chunk, vocab_stride) logits */
	/* (chunk, vocab_stride) gradient of the logits; in float the same array as logits. */
	real *dlogits;
	float *losses;    /* (R) losses */
	float *rstd;      /* (R) reciprocal root mean squares of the last norm */
	int32_t *targets; /* (R + 1) target tokens, then the factor of the gradient, a float */
};

/* A pass and its recording. NEW: the pass has not run. RUN: the pass has run once, and its next
 * call records it. REMEMBERED: each call is one launch of the recording. PLAIN: the pass could not
 * be recorded, so its operations are queued one by one. */
struct pass {
	struct device_graph *graph;
	enum { PASS_NEW, PASS_RUN, PASS_REMEMBERED, PASS_PLAIN } state;
};

struct passes {
	struct pass *forward; /* (slots + 1) forward passes; the last is for evaluation */
	/* (slots) backward passes: [0] passes that leave the stage's gradient unchanged, [1] passes
	 * that add to the stage's gradient */
	struct pass *backward[2];
	/* (LOSS_PASSES) passes of the loss: [0] the loss alone, [1] also the gradient of the input,
	 * [2] also the gradients of the weights */
	struct pass *loss;
};

/* Two buffers of pinned memory, used in turns. The elements of arrays pass through these buffers
 * on their way to or from the caller's memory. */
struct pieces {
	float *at[2]; /* (size) */
	int next;
	size_t size;
};

/* Memory for the sum of the gradient over replicas; NULL if the stage takes part in no sum. */
struct cuda_sums {
	float *array;         /* (P) the sum */
	/* (pieces.size) numbers of a replica's part; none if the stage has only_steps. */
	float *part;
	unsigned char *bytes; /* (pieces.size, 4) encoded numbers, as they cross the bus */
};

enum { CROSSINGS = 2 };

/* Memory through which the encoded inputs and outputs of passes cross the bus while the device
 * computes. There are two buffers for each direction. Each buffer has room for an activation in any
 * format. */
struct crossing {
	struct arrival {
		unsigned char *device, *pinned;
		/* Number of the input that was copied here before its task began; 0: none. */
		uint64_t number;
	} in[CROSSINGS];
	unsigned char *out[CROSSINGS]; /* on the device */
	int last_in;                   /* the buffer of the present task's input */
	int next_out;
	struct downloads *downloads;
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
	unsigned trials; /* set of values of enum trial */

	float *array[ARRAY_COUNT]; /* (P) weights, gradient and moments, each an array */
	uint16_t *rounded;         /* (P) copy of the weights in bf16; NULL in float */
	float *cosines, *sines;    /* (T, D / 2) factors of the rotary positions */
	struct saved_layer *saved; /* (slots, n_layers) saved layers, then one set for evaluation */
	/* (slots + 1, R) tokens, in stage 0 only; the last row is for evaluation. */
	int32_t *tokens;
	int32_t *order;            /* (slots, R) rows sorted by token, in stage 0 only */
	struct cuda_scratch t;
	struct cuda_sums sums;
	struct passes passes;
	/* Bytes of device memory, and bytes of pinned memory that are taken at the start. */
	size_t bytes, host_bytes;

	/* Arrays in pinned host memory. */
	/* (P) copies for stage_weights and the like; NULL until they are requested. */
	float *host[ARRAY_COUNT];
	bool lent[ARRAY_COUNT];   /* the host's copy equals the device's array, or is newer */
	struct pieces pieces;
	struct crossing crossing;
	float *host_losses;         /* (R) copy of the losses */
	unsigned char *host_leaves; /* (hash_leaves(4 P), HASH_DIGEST) copy of t.leaves */
	/* (R + 1) tokens, or t.targets, before they are copied to the device, in stage 0 only. */
	int32_t *host_tokens;
	/* (R) the sorted rows before they are copied to the device, then (vocab + 1) the index at
	 * which the sort puts the next row of each token. */
	int32_t *host_order;
};

/* ---- activations.c ---- */

/* Encode x (n) to codec_bytes bytes at `to`, or decode such bytes. All arrays are in device memory.
 * If the codec has channels, n must be the size of an activation. */
void cuda_encode(struct cuda_stage *s, const struct codec *c, void *to, float *x, size_t n);
void cuda_decode(struct cuda_stage *s, const struct codec *c, float *to, void *from, size_t n);
/* Copies a task's input to `to` (R, C) in device memory. The input may be in device memory
 * (cuda_room, of this or another stage); otherwise it passes through pinned memory. A pass
 * therefore waits for the device only once, at its end. */
void cuda_put_input(struct cuda_stage *s, float *to, const struct stage_task *t);
/* Copies `from` (R, C) to the task's output, if it has one. */
void cuda_get_output(struct cuda_stage *s, struct stage_task *t, float *from);
/* Begins to copy the input of the next task, and waits for the pass. An output in t->out is then
 * complete. After a failure there is no output, and t->out stays as it was. */
int cuda_finish_pass(struct cuda_stage *s, struct stage_task *t);

/* ---- sums.c ---- */

/* The functions of struct backend with these names. They need the memory of cuda_sums. */
int cuda_encode_gradient(void *self, const struct sum_codec *c, size_t from, size_t n, void *to);
int cuda_add_parts(void *self, const struct sum_codec *c, size_t from, size_t n,
		   const void *const *parts, uint32_t n_parts, void *to);
int cuda_put_sum(void *self, const struct sum_codec *c, size_t from, size_t n,
		 const void *encoded);
int cuda_check_sum(void *self, uint32_t slices, uint64_t *hashes, double *squares);
const float *cuda_summed(const void *self);
/* Compute the hash, and the sum of squares, of x (n <= P) in device memory. */
int cuda_hash_array(struct cuda_stage *s, const float *x, size_t n, uint64_t *hash);
int cuda_square_array(struct cuda_stage *s, const float *x, size_t n, double *sum);

/* ---- downloads.c: outputs that leave the device while it computes ---- */

/* Makes downloads with pinned memory for each buffer, borrowed until downloads_close. */
struct downloads *downloads_new(struct device *d, unsigned char *const pinned[CROSSINGS]);
/* Completes the outputs that are still in buffers, because these buffers end with the stage. NULL
 * is allowed. */
void downloads_close(struct downloads *o);
/* If the buffer still has an output, completes the output. The buffer can then be used again. */
void downloads_clear(struct downloads *o, int buffer);
unsigned char *downloads_pinned(const struct downloads *o, int buffer);
/* Makes the output of a buffer. Before the call, the caller must queue the copy to the buffer's
 * pinned memory, and then set the device's mark with the buffer's number. */
struct stage_output *downloads_give(struct downloads *o, int buffer, size_t bytes);

/* ---- passes.c ---- Each saved layer's x has the layer's input. After a forward pass, t.dx has the
 * last layer's output. A backward pass gets the gradient of this output in t.dx, and replaces it by
 * the gradient of the first layer's input. */
void cuda_layers_forward(struct cuda_stage *s, uint32_t slot, bool keep);
void cuda_layers_backward(struct cuda_stage *s, uint32_t slot, bool count);
/* Computes the logits of rows [first, first + n) of t.in in t.logits, or rounded to bf16 in
 * t.dlogits. */
void cuda_head(struct cuda_stage *s, size_t first, size_t n, bool rounded);
/* Adds the gradient of rows [first, first + n), from t.dlogits, to t.dx. count: also adds to the
 * gradients of the weights. */
void cuda_head_backward(struct cuda_stage *s, size_t first, size_t n, bool count);
/* Describes the launch of an attention kernel (KERNEL_ATTENTION, _DQ or _DKV) for heads of one
 * size. In bf16 a block has two buffers for tiles. It has only one buffer if two do not fit, or
 * if a multiprocessor holds twice as many blocks with one buffer. Returns false if even one
 * buffer does not fit; *l then describes the launch with one buffer. */
struct attention_launch {
	enum device_kernel kernel;
	unsigned tile, threads, buffers;
	size_t shared; /* floats of shared memory */
};
bool attention_launch_of(struct attention_launch *l, struct device *d, enum device_kernel kernel,
			 bool bf16, unsigned size);
/* Returns how many heads form a group. The blocks of a group run before the blocks of the next
 * group. The tiles that a group loads fit together into a quarter of the card's cache. It is a
 * quarter because the blocks of two groups may run at a time, and an H200's cache holds some data
 * twice. If not even one head fits, returns the number of all heads of all sequences. */
size_t attention_group(const struct device *d, enum device_kernel kernel, size_t heads,
		       size_t tiles, const struct attention_args *a);
/* Starts an attention kernel. Public for tests, which compare each kernel with plain loops. */
void attention_start(struct device *d, enum device_kernel kernel, bool bf16, size_t batch,
		     const struct attention_args *a);
/* Returns the floats of shared memory of a block of a norm's backward pass. */
size_t cuda_norm_shared(const struct cuda_stage *s);
/* Launches one block of ROW_THREADS for each row. */
void cuda_rows(struct cuda_stage *s, enum device_kernel kernel, size_t rows, const void *args);
/* Launches one thread for each of n numbers. */
void cuda_each(struct cuda_stage *s, enum device_kernel kernel, size_t n, const void *args);

#endif
