/* backend.h - the functions that each kind of device provides for stage.c, and the layout of a
 * stage's tensors.
 *
 * stage.c checks arguments and knows which slots are in use; a backend only computes. Private to
 * model/.
 */
#ifndef MODEL_BACKEND_H
#define MODEL_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/adamw.h"
#include "model/config.h"
#include "model/device_name.h"
#include "model/stage.h"
#include "model/tensor.h"

/* For each tensor of a layer: its offset in the stage's array. qkv: q, k and v as one matrix
 * (C + 2 kv, C). gate_up: gate and up as one matrix (2F, C). */
struct layer_offsets {
	size_t norm1, qkv, o, norm2, gate_up, down;
};

struct stage_layout {
	struct model_config config;
	uint32_t index;
	uint32_t slots, batch, sequence, threads;
	/* name of the device; a CPU's name includes its instruction set */
	struct device_name device;
	bool bf16;                 /* the device computes in bf16 (device.bf16) */
	enum recompute recompute;
	bool only_steps;               /* the stage has no gradient and runs no passes */
	bool sums;                     /* the gradient is summed over replicas */
	bool activations_stay;         /* inputs and outputs lie in memory from stage_room */
	/* Limit of the host memory that the stage may use, bytes; 0: the free memory is the
	 * limit. */
	size_t memory_bytes;
	uint32_t n_layers;             /* number of layers of this stage */
	struct layer_offsets *layers;  /* for each layer, the offsets of its tensors */
	size_t embed, last_norm, head; /* offsets in stage 0; head == embed if the model is tied */
	size_t parameters;             /* number of parameters P of the stage */
	const struct tensor *tensors;  /* n_tensors tensors of this stage, in order */
	size_t n_tensors;
};

enum stage_array { ARRAY_WEIGHTS, ARRAY_GRADIENT, ARRAY_MOMENT1, ARRAY_MOMENT2, ARRAY_COUNT };

/* The functions of a backend. Each does what stage.h says of the function of the same name. stage.c
 * has checked the arguments. Functions return 0, or a negative code if the device has failed. self:
 * the object that `make` has returned. */
struct backend {
	const char *name;
	/* Adds a CPU's instruction set to *name, and sets all fields of *out except the name. The
	 * errors are those of stage_device. */
	int (*look)(struct device_name *name, struct stage_device *out, struct error *err);
	/* Makes the backend's object, *self. The layout must outlive this object. */
	int (*make)(void **self, const struct stage_layout *l, struct error *err);
	void (*free)(void *self);
	/* Returns the first failure in words, or "" if there was none. The function pointer
	 * itself is NULL if the device is the host. */
	const char *(*failure)(const void *self);
	/* Allocates device memory for one activation, which is freed together with self; NULL if
	 * memory runs out. The function pointer itself is NULL if the device is the host. */
	float *(*room)(void *self, struct error *err);
	/* Rounds an activation in device memory. The function pointer is NULL if the device is
	 * the host. */
	int (*round)(void *self, float *room, const struct codec *codec);
	int (*forward)(void *self, uint32_t slot, const int32_t *tokens, const float *in,
		       float *out, bool keep);
	int (*loss)(void *self, const float *in, const int32_t *targets, float *loss,
		    float *grad, bool count);
	/* Runs a task with inputs and outputs in any codec. The function pointer is NULL if the
	 * device is the host, and stage.c then calls forward, loss or backward. */
	int (*run)(void *self, struct stage_task *t);
	int (*logits)(void *self, const float *in, float *logits);
	/* If grad_in is NULL, the gradient of the input is not computed. */
	int (*backward)(void *self, uint32_t slot, const float *grad_out, float *grad_in,
			bool count);
	int (*zero_gradient)(void *self);
	size_t (*memory)(const void *self); /* returns the bytes of device memory in use */
	/* Returns the bytes of the machine's memory in use. */
	size_t (*host_memory)(const void *self);
	float *(*array)(void *self, enum stage_array which);
	/* Returns an array in the memory that the device computes in. For a GPU, `array` returns a
	 * copy in host memory. */
	float *(*own)(void *self, enum stage_array which);
	void (*changed)(void *self);
	/* Replaces elements [at, at + n) of the weights and both moments by the three arrays in
	 * `state`, which are in host memory or belong to another stage. If an array is NULL, the
	 * elements that it would replace stay unchanged. */
	void (*put_state)(void *self, size_t at, size_t n, const float *const state[3]);
	/* Copies elements [at, at + n) of the weights and both moments to host memory. The
	 * function pointer is NULL if the device is the host. */
	void (*get_state)(void *self, size_t at, size_t n, float *const state[3]);
	uint64_t (*hash)(void *self);            /* hashes the weights */
	int (*squares)(void *self, double *sum);
	/* The sum over replicas on the device. The function pointers are NULL if the device is
	 * the host. */
	int (*encode_gradient)(void *self, const struct sum_codec *c, size_t from, size_t n,
			       void *to);
	int (*add_parts)(void *self, const struct sum_codec *c, size_t from, size_t n,
			 const void *const *parts, uint32_t n_parts, void *to);
	int (*put_sum)(void *self, const struct sum_codec *c, size_t from, size_t n,
		       const void *encoded);
	int (*check_sum)(void *self, uint32_t slices, uint64_t *hashes, double *squares);
	const float *(*summed)(const void *self);
	/* If gradient is NULL, uses the stage's own gradient. */
	int (*step)(void *self, const float *gradient, float scale, const struct adamw *h,
		    uint64_t t);
};

/* Returns the layout of a stage, for other parts of model/ that read the stage's weights
 * directly. */
struct stage;
const struct stage_layout *stage_layout(const struct stage *s);

extern const struct backend backend_cpu;
extern const struct backend backend_cuda; /* `make` returns -ENODEV in programs without CUDA */
extern const struct backend backend_pretend; /* computes nothing: for rehearsals */

#endif
