/* backend.h - the functions that each kind of device has for stage.c, and the stage's layout.
 *
 * stage.c checks arguments and knows which slots are in use; a backend computes. Inside model/
 * only.
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

/* Where the tensors of one layer begin in the flat array. qkv is q, k and v as one matrix
 * (C + 2 kv, C); gate_up is gate and up as one (2F, C). */
struct layer_offsets {
	size_t norm1, qkv, o, norm2, gate_up, down;
};

struct stage_layout {
	struct model_config config;
	uint32_t index;
	uint32_t slots, batch, sequence, threads;
	struct device_name device; /* name of the device, with a CPU's instruction set */
	bool bf16;                 /* device.bf16 */
	enum recompute recompute;
	bool only_steps;               /* no gradient, no passes */
	bool sums_on_host;             /* the gradient's pinned memory is taken at once */
	size_t memory_bytes;           /* limit on the memory, bytes; 0: the free memory */
	uint32_t n_layers;             /* number of layers of this stage */
	struct layer_offsets *layers;  /* (n_layers) */
	size_t embed, last_norm, head; /* offsets in stage 0; head == embed when tied */
	size_t parameters;             /* P */
	const struct tensor *tensors;  /* (n_tensors) tensors of this stage, in order */
	size_t n_tensors;
};

enum stage_array { ARRAY_WEIGHTS, ARRAY_GRADIENT, ARRAY_MOMENT1, ARRAY_MOMENT2, ARRAY_COUNT };

/* Semantics are those of stage.h; arguments have been checked. Functions return 0 or a negative
 * code (a device that failed). self is the object that `make` returned. */
struct backend {
	const char *name;
	/* Completes the name (a CPU's instruction set), and fills in *out except for the name.
	 * Errors as stage_device's. */
	int (*look)(struct device_name *name, struct stage_device *out, struct error *err);
	/* The layout outlives the backend's stage. */
	int (*make)(void **self, const struct stage_layout *l, struct error *err);
	void (*free)(void *self);
	/* Returns the first failure in words, or "" if there was none. The pointer is NULL if the
	 * device is the host. */
	const char *(*failure)(const void *self);
	/* Allocates device memory for one activation, which is freed with self; NULL if memory runs
	 * out. The function pointer itself is NULL if the device is the host. */
	float *(*room)(void *self, struct error *err);
	/* Rounds an activation in device memory. The pointer is NULL if the device is the host. */
	int (*round)(void *self, float *room, const struct codec *codec);
	int (*forward)(void *self, uint32_t slot, const int32_t *tokens, const float *in,
		       float *out, bool keep);
	int (*loss)(void *self, const float *in, const int32_t *targets, float *loss,
		    float *grad, bool count);
	int (*logits)(void *self, const float *in, float *logits);
	/* If grad_in is NULL, the gradient of the input is not computed. */
	int (*backward)(void *self, uint32_t slot, const float *grad_out, float *grad_in,
			bool count);
	int (*zero_gradient)(void *self);
	size_t (*memory)(const void *self); /* returns the bytes of device memory in use */
	/* Returns the bytes of the machine's memory in use. */
	size_t (*host_memory)(const void *self);
	float *(*array)(void *self, enum stage_array which);
	/* Returns an array in the device's own memory. */
	float *(*own)(void *self, enum stage_array which);
	void (*changed)(void *self);
	/* Replaces the weights and both moments by arrays in host memory or of another stage. A
	 * NULL array stays unchanged. */
	void (*put_state)(void *self, size_t at, size_t n, const float *const state[3]);
	/* Copies numbers of the weights and both moments to host memory. The pointer is NULL if
	 * the device is the host. */
	void (*get_state)(void *self, size_t at, size_t n, float *const state[3]);
	uint64_t (*hash)(void *self);            /* returns the hash of the weights */
	int (*squares)(void *self, double *sum); /* if gradient is NULL, uses the stage's own */
	/* If gradient is NULL, uses the stage's own. */
	int (*step)(void *self, const float *gradient, float scale, const struct adamw *h,
		    uint64_t t);
};

/* Returns the layout of a stage, for parts of model/ that compute with its weights directly. */
struct stage;
const struct stage_layout *stage_layout(const struct stage *s);

extern const struct backend backend_cpu;
extern const struct backend backend_cuda; /* `make` returns -ENODEV in programs without CUDA */
extern const struct backend backend_pretend; /* for rehearsals */

#endif
