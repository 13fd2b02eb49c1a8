/* device.h - the operations of a GPU that a stage uses: memory, copies, matrix products, kernels.
 *
 * Work is queued in order on one stream, except for copies that run at the same time on other
 * streams. Calls without a result record the first failure, and device_status reports it. Any
 * thread may call, but only one at a time. device.cu is for GPUs; tests have an emulated device
 * on the CPU.
 */
#ifndef MODEL_CUDA_DEVICE_H
#define MODEL_CUDA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/cuda/cudnn.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device; /* opaque */

/* Returns the number of GPUs. Returns 0 also if the driver cannot count them. */
uint32_t device_count(void);
/* Longest name of a card in its description; a longer name is cut. A description with the longest
 * versions, a table's hash and all options then still has room in STAGE_DEVICE_SIZE bytes. */
enum { DEVICE_CARD_MOST = 28 };
/* Describes a GPU by everything that the bits of its results depend on (architecture, name,
 * multiprocessors, compiler, cuBLASLt), and gives its free memory. Errors as for device_open,
 * except for errors that only occur when the GPU is used. */
int device_look(uint32_t number, char *text, size_t size, uint64_t *free_bytes,
		struct error *err);

/* Returns true if this program has no machine code for the GPU. The driver then compiles the
 * program's code at the first use, which takes tens of seconds. */
bool device_compiles(uint32_t number);
/* Writes a GPU's place on the PCI bus, as "0000:65:00.0"; "" if it is unknown. */
void device_bus_id(uint32_t number, char *out, size_t size);

/* Opens a GPU. products: the caller will call device_product, which needs device memory to work in.
 * -ENODEV: there is no GPU, no driver or no cuBLASLt, or this program was built without CUDA.
 * -EINVAL: no GPU has this number. -ENOTSUP: the GPU is too old. -EIO: the GPU or its driver cannot
 * be used. */
int device_open(struct device **out, uint32_t number, bool products, struct error *err);
void device_close(struct device *d); /* NULL is allowed */

/* Waits for the queued work. Returns 0, or -EIO after a failure; the device is then of no further
 * use.
 */
int device_status(struct device *d);
/* Marks the device as failed. */
void device_fail(struct device *d, const char *what, const char *why);
/* Returns the first failure in words, "" while there is none. Borrowed from the device. */
const char *device_failure(const struct device *d);
/* Returns the floats of shared memory that a block may have. */
size_t device_shared_most(const struct device *d);
/* Returns the bytes of the cache that all multiprocessors share. */
size_t device_cache(const struct device *d);
/* Lowers the limit of a block's shared memory to `floats`, as on a smaller card. For checks. */
void device_limit_shared(struct device *d, size_t floats);

/* Allocates device memory, which device_close frees. `spare` bytes of the device must stay free for
 * code and graphs that are loaded later. -ENOMEM: the message says how much is missing. */
int device_allocate(struct device *d, size_t size, size_t spare, void **out, struct error *err);
/* Allocates pinned host memory, which is copied at full speed. device_close frees it. */
int device_allocate_host(struct device *d, size_t size, void **out, struct error *err);

/* Copies to and from the device. The host pointer may also point to memory of another device, if
 * the caller has waited for that device (device_status). Pinned memory (device_allocate_host) is
 * copied in the background, and the caller must not change it until the next device_status. With
 * other host memory the call waits and is slower, and the caller may change the memory after the
 * call. A device_get is complete after the next device_status. */
void device_put(struct device *d, void *to, const void *from_host, size_t size);
void device_get(struct device *d, void *to_host, const void *from, size_t size);
/* ---- copies beside the computation ----
 * There is a stream for each direction. Streams run at the same time, unless device_order says
 * otherwise. */
enum device_stream { STREAM_COMPUTE, STREAM_PUT, STREAM_GET, STREAM_COUNT };
enum { DEVICE_MARKS = 2 };

/* Copy as device_put and device_get, on STREAM_PUT and STREAM_GET. The host memory must be
 * pinned. */
void device_put_beside(struct device *d, void *to, const void *from_host, size_t size);
void device_get_beside(struct device *d, void *to_host, const void *from, size_t size);
/* Makes work that is queued on `later` after this call wait for all work that is already queued on
 * `earlier`. */
void device_order(struct device *d, enum device_stream earlier, enum device_stream later);
/* Sets mark number `mark`, below DEVICE_MARKS, after the work that is already queued on the
 * stream. */
void device_mark(struct device *d, enum device_stream stream, unsigned mark);
/* Waits for the work before the mark. Returns at once if the mark was never set. Other threads may
 * use the device meanwhile. -EIO: the device has failed; *err has the cause. */
int device_await(struct device *d, unsigned mark, struct error *err);

/* Returns true if p is memory of a GPU, which the host must not read or write. If the device has
 * failed, the driver might not answer; the function then returns true. */
bool device_holds(struct device *d, const void *p);
void device_copy(struct device *d, void *to, const void *from, size_t size);
void device_clear(struct device *d, void *to, size_t size);

/* Kinds of products of row-major matrices, summed in float. nt: a (M, K) b (N, K)^T; nn: a (M, K) b
 * (K, N); tn: a (K, M)^T b (K, N). Both factors are floats, or both bf16. */
enum device_product_kind { PRODUCT_NT, PRODUCT_NN, PRODUCT_TN };

struct device_product {
	enum device_product_kind kind;
	size_t m, n, k;
	const void *a, *b;
	void *c;
	size_t lda, ldb, ldc; /* numbers between the beginnings of two rows of each matrix */
	bool bf16, c_bf16;    /* the factors are bf16; c is bf16 */
	/* Array of floats, laid out like c, to which the product is added; NULL: none. The array
	 * may be c itself. It is only allowed if c is an array of floats. */
	const void *added;
};

void device_product(struct device *d, const struct device_product *p);

/* The kernels of kernels.h. To start a kernel, `args` points to its struct of arguments; `shared`
 * is the shared memory of a block, in floats. */
enum device_kernel {
	/* these kernels work on reals: float or bf16 */
	KERNEL_NORM,
	KERNEL_NORM_BACKWARD,
	KERNEL_ROTATE,
	KERNEL_SWIGLU,
	KERNEL_SWIGLU_BACKWARD,
	KERNEL_CROSS_ENTROPY,
	KERNEL_ATTENTION_DOT,
	KERNEL_CAST,
	/* in bf16, the following three take heads of at most 64 numbers */
	KERNEL_ATTENTION,
	KERNEL_ATTENTION_DQ,
	KERNEL_ATTENTION_DKV,
	/* only in bf16, for heads of at most 128 numbers */
	KERNEL_ATTENTION_WIDE,
	KERNEL_ATTENTION_DQ_WIDE,
	KERNEL_ATTENTION_DKV_WIDE,
	/* the bf16 argument has no effect on these kernels */
	KERNEL_NORM_SUM,
	KERNEL_EMBED,
	KERNEL_EMBED_BACKWARD,
	KERNEL_ADAMW,
	KERNEL_HASH,
	KERNEL_SQUARES,
	KERNEL_ADD,
	KERNEL_CHANNEL_MEANS,
	KERNEL_QUANTISE,
	KERNEL_DEQUANTISE,
	KERNEL_BF16_ENCODE,
	KERNEL_BF16_DECODE,
	KERNEL_COUNT
};

void device_launch(struct device *d, enum device_kernel kernel, bool bf16, size_t blocks_x,
		   size_t blocks_y, unsigned threads, size_t shared, const void *args);

/* Returns how many blocks of a kernel a multiprocessor holds at once; 0: none, or unknown. */
unsigned device_resident(struct device *d, enum device_kernel kernel, bool bf16, unsigned threads,
			 size_t shared);

/* ---- attention by cuDNN, a trial ---- */

/* Plans attention in bf16 for the shape, which replaces the shape of an earlier call. *bytes:
 * size of the device memory that the passes work in. The caller allocates this memory. -ENODEV:
 * cuDNN is missing, and *err has the remedy. -EIO: cuDNN refused the device. -ENOTSUP: as for
 * cudnn_plan. */
int device_plan_attention(struct device *d, const struct cudnn_shape *shape, size_t *bytes,
			  struct error *err);
/* Queues a planned pass. */
void device_attention(struct device *d, enum cudnn_pass pass, const struct cudnn_arrays *a);

/* device_record begins a recording. Work that is queued from then on is recorded with its arguments
 * and not run: copies on the device, clearing of memory, products, kernels and cuDNN's attention.
 * device_recorded ends the recording and returns it. device_replay runs a recording at the cost of
 * one launch. NULL: the recording failed, and nothing has run. The caller frees the recording
 * before device_close. */
struct device_graph;
void device_record(struct device *d);
struct device_graph *device_recorded(struct device *d);
void device_replay(struct device *d, struct device_graph *g);
void device_graph_free(struct device_graph *g); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif
