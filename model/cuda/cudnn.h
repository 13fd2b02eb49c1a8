/* cudnn.h - causal attention by cuDNN, which is opened at run time. A trial (trial.h): the kernels
 * of kernels_flash.h compute attention unless an operator chooses cuDNN.
 *
 * cuDNN compiles a graph of operations to one kernel or a few. This module builds the graphs of the
 * forward and the backward pass, and takes only code that gives the same bits whenever it runs. The
 * graphs are those of FlashAttention-2 (Dao, 2023), in bf16 with sums in float.
 *
 * Plain C without NVIDIA's headers, so that programs build without them and tests reach the graphs
 * without a GPU. The numbers of cuDNN's names (cudnn_names.h) are part of its binary interface and
 * are the same in all versions 9.x. */
#ifndef MODEL_CUDA_CUDNN_H
#define MODEL_CUDA_CUDNN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of cuDNN's backend interface. A result of 0 is success. */
struct cudnn_functions {
	size_t (*version)(void); /* 90100 is version 9.1.0 */
	void (*last_error)(char *text, size_t size);
	int (*create)(void **handle);
	int (*destroy)(void *handle);
	int (*set_stream)(void *handle, void *stream);
	int (*describe)(int kind, void **descriptor);
	int (*forget)(void *descriptor);
	int (*set)(void *descriptor, int name, int type, int64_t n, const void *values);
	int (*get)(const void *descriptor, int name, int type, int64_t most, int64_t *n,
		   void *values);
	int (*finalize)(void *descriptor);
	int (*execute)(void *handle, void *plan, void *pack);
};

struct cudnn; /* cuDNN for one device; opaque */

/* Shape of attention: queries of `heads` heads, keys and values of kv_heads heads. `stride`:
 * numbers between two rows of qkv (B, T, stride). */
struct cudnn_shape {
	int64_t batch, length, heads, kv_heads, size, stride;
};

enum cudnn_pass { CUDNN_FORWARD, CUDNN_BACKWARD };

/* Arrays in device memory, as in struct attention_args (kernel_args.h). The forward pass reads qkv
 * and writes out and lse. The backward pass reads qkv, out, lse and dout. It writes dot and dqkv.
 * workspace: cudnn_workspace bytes. */
struct cudnn_arrays {
	const void *qkv, *dout;
	void *out, *lse, *dot, *dqkv, *workspace;
	float scale;
};

/* Finds cuDNN's library and its functions (cudnn_library.c). -ENODEV: no library of version 9 was
 * found. The library stays open until the process ends. Any thread may call. */
int cudnn_library(struct cudnn_functions *out, struct error *err);

/* Checks the library's version. -ENOTSUP: it is below 9.18.1. NVIDIA's release notes and bug
 * reports name defects of the backward pass in earlier versions: reads outside of arrays when a
 * recorded pass runs again (until 9.15.0), wrong starting values in the workspace on Hopper (until
 * 9.17), and no fixed bits on Blackwell (until 9.18.0). */
int cudnn_check(const struct cudnn_functions *f, struct error *err);

/* Opens cuDNN for the present device. cuDNN's work is queued on the CUDA stream `stream`. f is
 * copied. -EIO: cuDNN refused. -ENOTSUP: as for cudnn_check. */
int cudnn_open(struct cudnn **out, const struct cudnn_functions *f, void *stream,
	       struct error *err);
/* Opens cuDNN for a device that need not be there: plans can be made, but not run. device: cuDNN's
 * JSON text of the device. */
int cudnn_open_described(struct cudnn **out, const struct cudnn_functions *f, const char *device,
			 struct error *err);
void cudnn_close(struct cudnn *c); /* NULL is allowed */

/* Makes the plans of both passes for a shape. -ENOTSUP: cuDNN has no code for the shape that gives
 * the same bits in every run; *err has cuDNN's reason. */
int cudnn_plan(struct cudnn *c, const struct cudnn_shape *shape, struct error *err);
/* Returns the bytes of device memory that the planned passes work in. */
size_t cudnn_workspace(const struct cudnn *c);
/* Writes the version, and which code was chosen for each pass, as "cuDNN 92800:6:11". The bits of a
 * result depend on these three numbers. */
void cudnn_text(const struct cudnn *c, char *text, size_t size);
/* Queues a planned pass. -EIO: cuDNN refused; *err has its reason. */
int cudnn_run(struct cudnn *c, enum cudnn_pass pass, const struct cudnn_arrays *a,
	      struct error *err);

#ifdef __cplusplus
}
#endif

#endif
