/* stage.h - one stage of a model: forward, loss, backward, step.
 *
 * A stage adds to the residual stream, so stages may be skipped or exchanged: the caller
 * decides which stages a microbatch visits. Stage 0 starts the stream (tokens in) and ends it (the
 * loss).
 *
 *     stage 0          stages on the path            stage 0
 *     forward(tokens) -> forward(in) -> forward(in) -> loss(in, targets)
 *                        backward    <- backward    <- its grad
 *     backward
 *
 * Activations and their gradients are (B, T, C) floats in the caller's memory; in and out must not
 * overlap. Passes compute the gradient of the mean cross entropy over the microbatch's B * T
 * tokens, and add it to the stage's gradient. stage_step scales the sum over microbatches and
 * replicas.
 *
 * Everything is deterministic: the same calls with the same inputs, number of threads and kind of
 * machine give the same bits. Only one thread at a time may use a stage; different stages are
 * independent.
 *
 * In bf16 (cpu:bf16, cuda:bf16) the factors of products are rounded to bf16 and summed in fp32;
 * the weights, their gradients and the optimizer stay fp32. On the CPU, activations stay fp32 too;
 * on a GPU, all activations except the residual stream are bf16.
 */
#ifndef MODEL_STAGE_H
#define MODEL_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/task_kind.h"
#include "model/adamw.h"
#include "model/codec/codec.h"
#include "model/config.h"
#include "model/device_name.h"
#include "model/tensor.h"

enum { STAGE_DEVICE_SIZE = 128, STAGE_BUS_SIZE = 32 };

struct stage; /* opaque */

/* The part of a layer's forward pass that the backward pass computes again, because its results
 * were not kept. On the CPU, all levels give the same bits. */
enum recompute {
	/* Computes the outputs of norms and of the activation function again, which takes little
	 * time, and keeps all other arrays. */
	RECOMPUTE_NORMS,
	RECOMPUTE_NONE,
	/* Keeps only the layer's input, and computes everything else again. This is a third more
	 * work than with RECOMPUTE_NONE. */
	RECOMPUTE_BLOCK,
	/* For trainer_new only: the first of none, norms and block for which the memory suffices.
	 */
	RECOMPUTE_AUTO
};

struct stage_options {
	uint32_t slots;     /* number of microbatches whose activations the stage can keep */
	uint32_t batch;     /* number of sequences in a microbatch, B */
	uint32_t sequence;  /* number of tokens in a sequence, T <= context */
	uint32_t threads;   /* number of threads; 0 and 1: only the caller's thread */
	uint64_t seed;      /* seed of the initial weights */
	const char *device; /* name of the device (device_name.h); NULL: "cpu" */
	enum recompute recompute;
	/* The stage is a standby copy: it computes no microbatch. The caller steps the stage with
	 * gradients from elsewhere, hashes and copies it. The stage has no gradient and no memory
	 * for passes. Passes, stage_zero_gradient and stage_gradient_squares therefore return
	 * -EINVAL, and stage_gradient must not be called. With `sums`, the stage can decode and
	 * check the replicas' sum, but it cannot add the parts of a sum. */
	bool only_steps;
	bool without_weights; /* the weights stay 0, because the caller sets a saved state */
	/* All inputs and outputs lie in memory from stage_room. A stage on a GPU then needs no
	 * buffers for copies over the PCI bus. */
	bool activations_stay;
	/* The caller sums the gradient over replicas, so a GPU's stage allocates device memory for
	 * the sum (stage_sums_on_device). */
	bool sums;
	/* Limit of the stage's memory on the machine, bytes; 0: the free memory. Memory on a GPU
	 * has no other limit than the GPU's free memory. */
	size_t memory_bytes;
};

/* A device of this machine. `text` is its whole name, a blank, and a description of the hardware
 * and libraries: "cpu:v4 oneDNN 2.6.3", "cuda:1:bf16 sm_90 H200 132 SMs nvcc 13.0.88 cuBLAS
 * 130100". As far as is known, equal descriptions mean that the same calls with the same number of
 * threads give the same bits. */
struct stage_device {
	char name[DEVICE_NAME_SIZE];
	char text[STAGE_DEVICE_SIZE];
	char bus_id[STAGE_BUS_SIZE]; /* a GPU's place on the PCI bus, "0000:65:00.0"; else "" */
	/* Free memory at present, bytes: of the device or of the machine, whichever is less;
	 * UINT64_MAX: unknown. */
	uint64_t free_bytes;
	uint64_t machine_bytes; /* free memory of the machine; UINT64_MAX: unknown */
	uint64_t device_bytes;  /* free memory of the device alone; UINT64_MAX: unknown */
};

/* Describes a device. -EINVAL: no such name or number. -ENODEV: there is no GPU, driver or
 * cuBLASLt, or this program was built without CUDA; the CPU may compute instead. -ENOTSUP: the CPU
 * or GPU is too old for this device name. -EIO: the GPU or its driver cannot be used. */
int stage_device(struct stage_device *out, const char *device, struct error *err);
/* Returns true if the driver compiles this program's code for the GPU at its first use, which takes
 * tens of seconds. The call itself is quick. */
bool stage_device_compiles(const char *device);
uint32_t stage_gpus(void); /* returns the number of GPUs */

/* Makes stage `index` of the model. Its initial weights depend on the seed and the tensors' names
 * alone; with without_weights they are 0. Allocates and touches all memory for weights and the
 * optimizer. Unless only_steps is set, does the same for gradients and the activations of all
 * slots. Gives *out to the caller (stage_free). Errors are those of stage_device, -EINVAL, and
 * -ENOMEM: the message says how much memory is needed and how much is missing. On error *out is
 * unchanged. */
int stage_new(struct stage **out, const struct model_config *c, uint32_t index,
	      const struct stage_options *o, struct error *err);
void stage_free(struct stage *s); /* NULL is allowed */

/* Runs the forward pass. Stage 0 takes tokens (B, T) and `in` is NULL; other stages take in (B, T,
 * C) and `tokens` is NULL. out: (B, T, C). keep: replaces the slot's contents by what the backward
 * pass needs; otherwise (evaluation) the slot stays unchanged. -EINVAL: slot out of range, a token
 * >= vocab. */
int stage_forward(struct stage *s, uint32_t slot, const int32_t *tokens, const float *in,
		  float *out, bool keep);

/* Stage 0: computes the final norm, the head, and in *loss the mean cross entropy of targets (B,
 * T). grad (B, T, C) receives the gradient of in; NULL: evaluation. count: also adds the gradients
 * of the final norm and head to the stage's gradient. A target of -1 does not count in the mean.
 * -EINVAL: not stage 0, a target >= vocab. */
int stage_loss(struct stage *s, uint32_t slot, const float *in, const int32_t *targets,
	       float *loss, float *grad, bool count);

/* Stage 0: applies the final norm and the head to in (B, T, C), which gives logits (B, T, vocab).
 * -EINVAL: not stage 0.
 */
int stage_logits(struct stage *s, const float *in, float *logits);

/* Runs the backward pass for the forward pass in the slot. The slot stays filled, so backward may
 * run again. grad_in NULL for stage 0. count = false: only computes grad_in, and the stage's own
 * gradient stays unchanged. -EINVAL: slot out of range or empty. */
int stage_backward(struct stage *s, uint32_t slot, const float *grad_out, float *grad_in,
		   bool count);

/* A task of a microbatch: one of the three passes above. Input and output are encoded, as they
 * travel between nodes. */
struct stage_task {
	enum task_kind kind; /* TASK_FORWARD, TASK_LOSS or TASK_BACKWARD */
	uint32_t slot;
	bool keep, count;
	const int32_t *tokens; /* (B, T) tokens of TASK_FORWARD, or targets of TASK_LOSS */
	/* Encoded input and output (codec_bytes each); NULL where the pass allows NULL. In fp32
	 * they may lie in memory from stage_room. */
	const void *in;
	void *out;
	struct codec in_codec, out_codec;
	float loss; /* output of TASK_LOSS */
	/* ---- copies that run during the computation, if stage_takes_encoded ---- */
	/* in_number identifies this task's input, and next_number identifies the input that the
	 * next task will probably have. No two inputs of the process have the same number. 0: none.
	 * The input `next` is copied to the device while this task computes. If the next task has a
	 * different input after all, this copy is not used. */
	uint64_t in_number, next_number;
	const void *next;
	struct codec next_codec;
	/* True: the caller gets the output as `output` and not in `out`, and the output leaves the
	 * device while the next task computes. */
	bool leaves;
	struct stage_output *output; /* set by the task if `leaves` */
};

/* An output on its way from the device. Any thread may collect it or drop it, once, even after
 * stage_free. A stage has room for two outputs; a third output first completes the oldest. */
struct stage_output; /* opaque */
/* Waits for the output, writes its bytes (codec_bytes) to `to`, and frees the output. -EIO: the
 * device has failed. -ENOMEM: the stage needed the output's buffer or was freed, and there was no
 * memory to keep the bytes. */
int stage_output_collect(struct stage_output *o, void *to, struct error *err);
void stage_output_drop(struct stage_output *o); /* NULL is allowed */

/* Returns true if the stage decodes and encodes on its device, so that only encoded bytes are
 * copied to and from the device. Other stages accept only fp32. The results have the same bits as
 * those of codec_decode and codec_encode. */
bool stage_takes_encoded(const struct stage *s);
/* Runs a task. Errors are those of the task's pass; -EINVAL also if the stage accepts only fp32.
 * The numbers are not checked: bytes from outside need codec_is_plausible first. */
int stage_run(struct stage *s, struct stage_task *t);

/* Frees a slot: a backward pass there is refused until the next forward pass. */
void stage_release(struct stage *s, uint32_t slot);

/* Allocates memory for one activation that stays in this process. The memory is where the stage's
 * passes reach it fastest, which on a GPU is device memory. It is meant for activations that go
 * from stage to stage and that the caller does not read. The memory is not cleared. NULL if memory
 * runs out. The caller frees the memory before the stage. */
float *stage_room(struct stage *s, struct error *err);
void stage_room_free(struct stage *s, float *room); /* NULL is allowed */
/* Rounds the activation in memory from stage_room to the numbers that a receiver would decode.
 * -ENOMEM. */
int stage_room_round(struct stage *s, float *room, const struct codec *codec);

/* Returns the device's first failure in words; "" if nothing has failed, and always on the CPU.
 * After a failure, functions return -EIO. Functions that return no code (the arrays, stage_changed,
 * stage_get_state, stage_put_state, stage_hash) then give outdated numbers, so check for a failure
 * before using these numbers. */
const char *stage_failure(const struct stage *s);

/* Zeroes the stage's gradient. Call it before the first microbatch of an iteration. */
int stage_zero_gradient(struct stage *s);

/* Parses "none", "norms", "block" or "auto". -EINVAL: something else. */
int recompute_parse(const char *name, enum recompute *out);
const char *recompute_name(enum recompute level);

/* Returns the stage's number in the model, from 0. */
uint32_t stage_index(const struct stage *s);
size_t stage_memory_bytes(const struct stage *s); /* returns the bytes of device memory in use */
/* Returns the bytes of host memory in use; on a CPU the same as stage_memory_bytes. */
size_t stage_host_bytes(const struct stage *s);
/* Returns the config of the whole model, borrowed. */
const struct model_config *stage_config(const struct stage *s);
size_t stage_parameters(const struct stage *s); /* returns the number of parameters P */
/* Returns the number of floats of one activation, B * T * C. */
size_t stage_activation(const struct stage *s);

/* Returns this stage's part of the table of tensors (n), borrowed. */
const struct tensor *stage_tensors(const struct stage *s, size_t *n);

/* The flat arrays (P), in the order of tensor.h: for sums between replicas, transfers and
 * checkpoints. On a device the call copies the array to host memory first. The numbers are valid
 * until the stage's next backward, loss or step, or until its state is replaced (stage_put_state,
 * stage_copy_state, stage_stack). A caller that has written to an array must call stage_changed,
 * which copies all requested arrays back to the device. On the CPU stage_changed does nothing. */
float *stage_weights(struct stage *s);
float *stage_gradient(struct stage *s);
float *stage_moment1(struct stage *s);
float *stage_moment2(struct stage *s);
void stage_changed(struct stage *s);

/* Adds `from` to `to`, element by element, in order. */
void stage_add(float *to, const float *from, size_t n);

/* ---- the sum over replicas, on the stage's device ----
 * The device encodes, decodes, adds, hashes and squares. Only encoded numbers are copied to and
 * from the device. The device has a separate array for the sum, so the gradient stays unchanged.
 * All results have the same bits as on a CPU. A slice is the elements [from, from + n), encoded by
 * c (struct sum_codec). The functions return 0, or -EIO if the device has failed. */

/* Returns true if the stage was made with `sums` on a device for which the following functions
 * exist. Otherwise the caller computes with stage_gradient. */
bool stage_sums_on_device(const struct stage *s);
/* Encodes a slice of the gradient. to: (sum_codec_bytes). */
int stage_encode_gradient(struct stage *s, const struct sum_codec *c, size_t from, size_t n,
			  void *to);
/* Sets the slice of the sum to the sum of all replicas' parts, added in the order of `parts`.
 * Encodes this slice to `to`, and stores the decoded slice in the sum. parts (n_parts): encoded
 * parts (sum_codec_bytes each); a part NULL is this stage's own. */
int stage_add_parts(struct stage *s, const struct sum_codec *c, size_t from, size_t n,
		    const void *const *parts, uint32_t n_parts, void *to);
/* Decodes a slice that another replica has added up, and stores it in the sum. */
int stage_put_sum(struct stage *s, const struct sum_codec *c, size_t from, size_t n,
		  const void *encoded);
/* Computes the hash of each slice of the sum (hash_floats; bounds of sum_codec_slice), and the
 * sum's squares (squares_sum). hashes: (slices). */
int stage_check_sum(struct stage *s, uint32_t slices, uint64_t *hashes, double *squares);
/* Returns the sum, which only stage_step of the same stage may read. */
const float *stage_summed(const struct stage *s);

/* Computes the sum of squares of the stage's gradient on the device, as squares_sum does. */
int stage_gradient_squares(struct stage *s, double *sum);
/* Makes step number t (from 1) of AdamW with gradient * scale. gradient: (P) in host memory, or
 * stage_summed; NULL: the stage's own gradient on its device, which stays unchanged. If a gradient
 * is given, the stage's own is undefined afterwards, because a GPU copies the given gradient over
 * it. -EINVAL: t is 0, or a stage with only_steps is given no gradient. */
int stage_step(struct stage *s, const float *gradient, float scale, const struct adamw *h,
	       uint64_t t);

/* Copies elements [at, at + n) of the weights and of both moments to the caller's arrays (n each;
 * NULL: none). Unlike stage_weights and the like, the call does not keep memory for a copy. */
void stage_get_state(struct stage *s, size_t at, size_t n, float *const state[3]);
/* Replaces elements [at, at + n) of the weights and of both moments by the given arrays (n each;
 * NULL: unchanged). */
void stage_put_state(struct stage *s, size_t at, size_t n, const float *const state[3]);
/* Copies the weights and moments from a stage with the same index. */
void stage_copy_state(struct stage *to, struct stage *from);
/* Copies the weights and moments of the layers of another stage of the model (stacking). If the
 * numbers of layers differ, each layer comes from the layer at the same share of the depth: layer i
 * of n layers is a copy of layer i * m / n (rounded down) of the source's m layers. Embedding,
 * final norm and head stay as they are. If `from` has no layers, nothing changes. */
void stage_stack(struct stage *to, struct stage *from);

/* Returns the hash of the weights (hash.h), computed on the stage's device. */
uint64_t stage_hash(struct stage *s);

#endif
