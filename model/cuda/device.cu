/* Implements device.h on a GPU, with CUDA's runtime and its streams, and compiles the kernels of
 * kernels.h. A call that fails records the error, and device_status reports it, so that callers can
 * queue work without checking each call.
 */
extern "C" {
#include "base/error.h" /* these headers are C, and are not written for C++ */
#include "base/process/cgroup.h"
#include "base/process/numa.h"
}

#include "model/cuda/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

extern "C" {
#include "model/cuda/driver_fault.h"
#include "model/cuda/failure.h"
#include "model/cuda/own_memory.h"
}
#include "model/cuda/kernel_args.h"
#include "model/cuda/product.cuh"
#include "model/cuda/times.cuh"

#define DEVICE static __device__ __forceinline__
#define KERNEL(name, args) KERNEL_(name, args)
#define KERNEL_(name, args) __global__ void name##_kernel(struct args a)
#define FLASH_KERNEL(name, blocks) \
	__global__ void __launch_bounds__(FLASH_THREADS, blocks) \
		name##_kernel(struct attention_args a)
#define THREAD threadIdx.x
#define THREADS blockDim.x
#define BLOCK_X blockIdx.x
#define BLOCK_Y blockIdx.y
#define BLOCKS_X gridDim.x
#define INLINE_ DEVICE
#define MUL(a, b) __fmul_rn(a, b)
#define ADD(a, b) __fadd_rn(a, b)
#define SUB(a, b) __fsub_rn(a, b)
#define DIV(a, b) __fdiv_rn(a, b)
#define SQRT(a) __fsqrt_rn(a)
#define NOT_A_NUMBER __uint_as_float(0x7fc00000)
#define BARRIER() __syncthreads()
#define SHARED block_shared
#define BITS(x) __float_as_uint(x)
#define FROM_BITS(x) __uint_as_float(x)
#define CLEAR_EIGHT(to) (*(uint4 *)(to) = make_uint4(0, 0, 0, 0))
#define LOAD_SIXTEEN(words, from) load_sixteen(words, from)
#define STORE_SIXTEEN(to, words) store_sixteen(to, words)
#define COPY_LATER(to, from) copy_later(to, from)
#define COPIES_DONE() asm volatile("cp.async.wait_all;" ::: "memory")
#define LOAD_MATRICES(r, at) load_matrices(r, at)
#define LOAD_TURNED(r, at) load_turned(r, at)
#define TENSOR_PRODUCT(c, a, b0, b1) tensor_product(c, a, b0, b1)
#define ACROSS(x, mask) __shfl_xor_sync(0xffffffff, x, mask)
#define PAIR(low, high) pair_of(low, high)
#define PUT_PAIR(to, pair) (*(uint32_t *)(to) = (pair))
#define POWER_OF_TWO(x) power_of_two(x)
#define UNROLL _Pragma("unroll")

extern __shared__ __align__(128) float block_shared[];

/* ---- the operations that kernels.h and kernels_flash.h require, one instruction each ----
 * The instructions are volatile because a warp's threads must stay together. */

DEVICE void load_sixteen(uint32_t words[4], const void *from)
{
	uint4 v = *(const uint4 *)from;

	words[0] = v.x;
	words[1] = v.y;
	words[2] = v.z;
	words[3] = v.w;
}

DEVICE void store_sixteen(void *to, const uint32_t words[4])
{
	*(uint4 *)to = make_uint4(words[0], words[1], words[2], words[3]);
}

DEVICE uint32_t shared_address(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

DEVICE void copy_later(uint16_t *to, const uint16_t *from)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)),
		     "l"(__cvta_generic_to_global(from))
		     : "memory");
}

DEVICE void load_matrices(uint32_t r[4], const uint16_t *at)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(shared_address(at))
		     : "memory");
}

DEVICE void load_turned(uint32_t r[4], const uint16_t *at)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"(shared_address(at))
		     : "memory");
}

DEVICE void tensor_product(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
		     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* The instruction's first operand becomes the upper half. */
DEVICE uint32_t pair_of(float low, float high)
{
	uint32_t pair;

	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
	return pair;
}

DEVICE float power_of_two(float x)
{
	float y;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

#include "model/cuda/kernels.h"

struct device {
	int number;
	cudaStream_t stream;               /* STREAM_COMPUTE */
	cudaStream_t beside[STREAM_COUNT]; /* the streams of copies; [STREAM_COMPUTE]: unused */
	cudaEvent_t behind[STREAM_COUNT];  /* for device_order: the end of the queued work */
	cudaEvent_t marks[DEVICE_MARKS];
	struct products *products;
	struct cudnn *cudnn; /* NULL: attention was not planned */
	struct times *times; /* seconds by kind of work; NULL: not measured */
	struct own_memory own;
	void *host[OWN_MEMORY_MOST];
	int n_host;
	size_t shared_most; /* floats of shared memory that a block may have */
	size_t cache;       /* bytes of the card's cache */
	bool deaf;          /* recording could not begin; work is dropped until device_recorded */
	struct failure failure;
};

struct device_graph {
	cudaGraphExec_t exec;
};

static void note(struct device *d, cudaError_t e, const char *what)
{
	if (e != cudaSuccess)
		failure_note(&d->failure, what, cudaGetErrorString(e));
}

enum { FEW_CORES = 8, BUS_ID = 32, CARD_NAME = 320 };

static void find_bus_id(int number, char bus_id[BUS_ID])
{
	if (cudaDeviceGetPCIBusId(bus_id, BUS_ID, number) == cudaSuccess)
		return;
	cudaGetLastError();
	bus_id[0] = '\0';
}

/* Returns this GPU's share of the processors, because each GPU has its own agent. The share is the
 * number of usable processors of the GPU's socket, divided by the number of the socket's GPUs. */
static unsigned share_of_cores(int number)
{
	unsigned cores = cores_usable(), near, gpus = 0;
	char bus_id[BUS_ID], other[BUS_ID];
	int n = 0;

	find_bus_id(number, bus_id);
	near = numa_cores("", bus_id);
	cores = near > 0 && near < cores ? near : cores;
	cudaGetDeviceCount(&n);
	for (int i = 0; i < n; i++) {
		find_bus_id(i, other);
		gpus += numa_node("", other) == numa_node("", bus_id);
	}
	return gpus > 1 ? cores / gpus : cores;
}

/* Makes threads that wait for the GPU sleep if the GPU's share of the cores is small, because the
 * network and other agents then need the cores more. By default, a waiting thread keeps a core
 * busy, and notices the end of the work sooner. If the program already uses the GPU, the runtime
 * refuses the change, and waiting threads keep their cores busy. */
static void choose_waiting(int number)
{
	if (share_of_cores(number) < FEW_CORES &&
	    cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) != cudaSuccess)
		cudaGetLastError();
}

/* Makes d the current device of this thread, because CUDA has a current device for each thread. */
static void use(struct device *d)
{
	note(d, cudaSetDevice(d->number), "choosing the device");
}

/* The functions of each kernel for float and for bf16. Both are the same function if a kernel has
 * only one precision. */
static const struct {
	const char *name;
	const void *of_float, *of_bf16;
} kernels[KERNEL_COUNT] = {
#define EITHER(name, of_float, of_bf16) \
	{ name, (const void *)of_float##_kernel, (const void *)of_bf16##_kernel }
#define BOTH(name) EITHER(#name, name##_float, name##_bf16)
#define ONCE(name) EITHER(#name, name, name)
	/* The kernels, in the order of enum device_kernel. */
	BOTH(norm),
	BOTH(norm_backward),
	BOTH(rotate),
	BOTH(swiglu),
	BOTH(swiglu_backward),
	BOTH(cross_entropy),
	BOTH(attention_dot),
	BOTH(cast),
	EITHER("attention", attention, flash_forward_64),
	EITHER("attention_dq", attention_dq, flash_dq_64),
	EITHER("attention_dkv", attention_dkv, flash_dkv_64),
	ONCE(flash_forward_128),
	ONCE(flash_dq_128),
	ONCE(flash_dkv_128),
	ONCE(norm_sum),
	ONCE(embed),
	ONCE(embed_backward),
	ONCE(adamw),
	ONCE(hash),
	ONCE(squares),
	ONCE(add),
	ONCE(channel_means),
	ONCE(quantise),
	ONCE(dequantise),
	ONCE(bf16_encode),
	ONCE(bf16_decode),
#undef ONCE
#undef BOTH
#undef EITHER
};

static const void *kernel_code(enum device_kernel kernel, bool bf16)
{
	return bf16 ? kernels[kernel].of_bf16 : kernels[kernel].of_float;
}

/* Allows a kernel this much shared memory, because CUDA requires this call above 48 KiB. */
static cudaError_t allow_shared(const void *code, size_t bytes)
{
	if (bytes <= 48 << 10)
		return cudaSuccess;
	return cudaFuncSetAttribute(code, cudaFuncAttributeMaxDynamicSharedMemorySize,
				    (int)bytes);
}

/* Oldest supported architecture: Ampere, the first that multiplies matrices in bf16. */
enum { OLDEST_MAJOR = 8 };

static_assert((int)cudaErrorInitializationError == (int)DRIVER_CANNOT_START &&
		      (int)cudaErrorStubLibrary == (int)DRIVER_STUB &&
		      (int)cudaErrorInsufficientDriver == (int)DRIVER_TOO_OLD &&
		      (int)cudaErrorDevicesUnavailable == (int)DRIVER_DEVICE_BUSY &&
		      (int)cudaErrorNoDevice == (int)DRIVER_NO_DEVICE &&
		      (int)cudaErrorSystemNotReady == (int)DRIVER_NOT_READY &&
		      (int)cudaErrorSystemDriverMismatch == (int)DRIVER_MISMATCH &&
		      (int)cudaErrorCompatNotSupportedOnDevice == (int)DRIVER_NO_COMPATIBILITY &&
		      (int)cudaErrorUnknown == (int)DRIVER_UNKNOWN,
	      "driver_fault.h has the runtime's codes");

static int first_fault(cudaError_t e, uint32_t number, struct error *err)
{
	int driver = 0, runtime = 0;

	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	return driver_fault((int)e, cudaGetErrorString(e), driver, runtime, number, err);
}

static int count(uint32_t number, int *n, struct error *err)
{
	cudaError_t e = cudaGetDeviceCount(n);

	return e == cudaSuccess && *n > 0 ? 0 : first_fault(e, number, err);
}

/* Finds a GPU that this program supports. */
static int find(uint32_t number, struct cudaDeviceProp *p, struct error *err)
{
	int n = 0, rc = count(number, &n, err);
	cudaError_t e;

	if (rc)
		return rc;
	if (number >= (uint32_t)n)
		return error_set(err, -EINVAL, "device cuda:%u: there are %d, from cuda:0 on",
				 number, n);
	e = cudaGetDeviceProperties(p, (int)number);
	if (e != cudaSuccess)
		return first_fault(e, number, err);
	if (p->major < OLDEST_MAJOR)
		return error_set(err, -ENOTSUP,
				 "device cuda:%u (%s) has compute capability %d.%d: %d.0 (Ampere) "
				 "or later is needed",
				 number, p->name, p->major, p->minor, (int)OLDEST_MAJOR);
	return products_look(number, err);
}

/* Makes the streams of copies, and the events. A thread that waits for a copy sleeps, because the
 * thread that computes needs the core more. */
static void prepare_copies(struct device *d)
{
	for (int i = STREAM_PUT; i < STREAM_COUNT; i++)
		note(d, cudaStreamCreateWithFlags(&d->beside[i], cudaStreamNonBlocking),
		     "a stream of copies");
	for (int i = 0; i < STREAM_COUNT; i++)
		note(d, cudaEventCreateWithFlags(&d->behind[i], cudaEventDisableTiming),
		     "an event");
	for (int i = 0; i < DEVICE_MARKS; i++)
		note(d,
		     cudaEventCreateWithFlags(&d->marks[i],
					      cudaEventDisableTiming | cudaEventBlockingSync),
		     "an event");
}

static void free_copies(struct device *d)
{
	for (int i = STREAM_PUT; i < STREAM_COUNT; i++)
		if (d->beside[i]) {
			cudaStreamSynchronize(d->beside[i]);
			cudaStreamDestroy(d->beside[i]);
		}
	for (int i = 0; i < STREAM_COUNT; i++)
		if (d->behind[i])
			cudaEventDestroy(d->behind[i]);
	for (int i = 0; i < DEVICE_MARKS; i++)
		if (d->marks[i])
			cudaEventDestroy(d->marks[i]);
}

static cudaStream_t stream_of(const struct device *d, enum device_stream stream)
{
	return stream == STREAM_COMPUTE ? d->stream : d->beside[stream];
}

/* Names the card and the version of cuBLASLt. `between` is put between the two; it is "" for the
 * names in tables of algorithms (product_table.h). */
static void name_card(char *out, size_t size, const struct cudaDeviceProp *p, const char *between)
{
	const char *name = p->name;

	if (strncmp(name, "NVIDIA ", 7) == 0)
		name += 7;
	snprintf(out, size, "sm_%d%d %.*s %d SMs%s cuBLAS %zu", p->major, p->minor,
		 (int)DEVICE_CARD_MOST, name, p->multiProcessorCount, between, products_version());
}

/* Prepares the device for use. card: name_card's text; NULL: the caller makes no products. On a
 * failure d->failure has the cause. */
static void prepare(struct device *d, const char *card)
{
	struct cudaFuncAttributes code;
	int shared = 0, cache = 0;

	use(d);
	choose_waiting(d->number);
	note(d, cudaFuncGetAttributes(&code, embed_kernel), "this program's code for it");
	note(d,
	     cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin,
				    d->number),
	     "its shared memory");
	note(d, cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, d->number), "its cache");
	d->shared_most = (size_t)shared / sizeof(float);
	d->cache = (size_t)cache;
	d->times = times_new();
	note(d, cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking), "a stream");
	prepare_copies(d);
	if (!card)
		return;
	if (!d->failure.failed)
		d->products = products_new(card);
	if (!d->failure.failed && !d->products)
		failure_note(&d->failure, "cuBLASLt",
			     "cannot be started, or has no memory to work in");
}

/* Returns true if this program contains machine code for the card. Otherwise the driver generates
 * the code from PTX at the first use. This takes tens of seconds, and the results' bits then also
 * depend on the driver. */
static bool has_code(const struct cudaDeviceProp *p)
{
	static const int built[] = { __CUDA_ARCH_LIST__ };

	for (size_t i = 0; i < sizeof(built) / sizeof(built[0]); i++)
		if (built[i] / 100 == p->major && built[i] % 100 / 10 <= p->minor)
			return true;
	return false;
}

extern "C" {

uint32_t device_count(void)
{
	int n = 0;

	return cudaGetDeviceCount(&n) == cudaSuccess ? (uint32_t)n : 0;
}

int device_look(uint32_t number, char *text, size_t size, uint64_t *free_bytes,
		struct error *err)
{
	struct cudaDeviceProp p;
	size_t left = 0, all = 0;
	int rc = find(number, &p, err), driver = 0;
	char compiled[40] = "", compiler[80], card[CARD_NAME];
	cudaError_t e;

	if (rc)
		return rc;
	e = cudaSetDevice((int)number);
	if (e == cudaSuccess)
		e = cudaMemGetInfo(&left, &all);
	if (e != cudaSuccess)
		return first_fault(e, number, err);
	if (!has_code(&p) && cudaDriverGetVersion(&driver) == cudaSuccess)
		snprintf(compiled, sizeof(compiled), " PTX %d.%d", driver / 1000,
			 driver % 1000 / 10);
	snprintf(compiler, sizeof(compiler), " nvcc %d.%d.%d%s", __CUDACC_VER_MAJOR__,
		 __CUDACC_VER_MINOR__, __CUDACC_VER_BUILD__, compiled);
	name_card(text, size, &p, compiler);
	name_card(card, sizeof(card), &p, "");
	products_describe(card, text, size);
	*free_bytes = left;
	return 0;
}

bool device_compiles(uint32_t number)
{
	struct cudaDeviceProp p;

	if (cudaGetDeviceProperties(&p, (int)number) == cudaSuccess)
		return p.major >= OLDEST_MAJOR && !has_code(&p);
	cudaGetLastError();
	return false;
}

void device_bus_id(uint32_t number, char *out, size_t size)
{
	char bus_id[BUS_ID];

	find_bus_id((int)number, bus_id);
	snprintf(out, size, "%s", bus_id);
}

int device_open(struct device **out, uint32_t number, bool products, struct error *err)
{
	struct cudaDeviceProp p;
	struct device *d;
	char card[CARD_NAME];
	int rc = find(number, &p, err);

	if (rc)
		return rc;
	name_card(card, sizeof(card), &p, "");
	d = (struct device *)calloc(1, sizeof(*d));
	if (!d)
		return error_set(err, -ENOMEM, "no memory for a device");
	d->number = (int)number;
	prepare(d, products ? card : NULL);
	if (d->failure.failed) {
		rc = error_set(err, -EIO, "device cuda:%u (%s) cannot be used: %s", number, p.name,
			       d->failure.text);
		device_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

void device_close(struct device *d)
{
	if (!d)
		return;
	use(d);
	free_copies(d);
	for (int i = 0; i < d->own.n; i++)
		cudaFree(d->own.at[i]);
	for (int i = 0; i < d->n_host; i++)
		cudaFreeHost(d->host[i]);
	products_free(d->products);
	cudnn_close(d->cudnn);
	times_free(d->times);
	if (d->stream)
		cudaStreamDestroy(d->stream);
	free(d);
}

int device_status(struct device *d)
{
	use(d);
	note(d, cudaStreamSynchronize(d->stream), "on the device");
	return d->failure.failed ? -EIO : 0;
}

void device_fail(struct device *d, const char *what, const char *why)
{
	failure_note(&d->failure, what, why);
}

const char *device_failure(const struct device *d)
{
	return d->failure.text;
}

size_t device_shared_most(const struct device *d)
{
	return d->shared_most;
}

size_t device_cache(const struct device *d)
{
	return d->cache;
}

void device_limit_shared(struct device *d, size_t floats)
{
	if (floats < d->shared_most)
		d->shared_most = floats;
}

int device_allocate(struct device *d, size_t size, size_t spare, void **out, struct error *err)
{
	size_t left = 0, all = 0;
	void *memory = NULL;

	use(d);
	note(d, cudaMemGetInfo(&left, &all), "free memory");
	left = left > spare ? left - spare : 0;
	if (d->own.n == OWN_MEMORY_MOST || size > left ||
	    cudaMalloc(&memory, size) != cudaSuccess) {
		cudaGetLastError();
		return error_set(err, -ENOMEM,
				 "needs %.1f MiB, the device has %.1f of %.1f free: %.1f are "
				 "missing",
				 (double)size / 0x1p20, (double)left / 0x1p20,
				 (double)all / 0x1p20,
				 size > left ? (double)(size - left) / 0x1p20 : 0);
	}
	own_memory_add(&d->own, memory, size);
	*out = memory;
	return 0;
}

int device_allocate_host(struct device *d, size_t size, void **out, struct error *err)
{
	void *memory = NULL;

	use(d);
	if (d->n_host == OWN_MEMORY_MOST || cudaMallocHost(&memory, size) != cudaSuccess) {
		cudaGetLastError();
		return error_set(err, -ENOMEM, "no %.1f MiB of pinned host memory",
				 (double)size / 0x1p20);
	}
	d->host[d->n_host++] = *out = memory;
	return 0;
}

/* CUDA derives the direction of the copy from the two addresses (cudaMemcpyDefault). */
void device_put(struct device *d, void *to, const void *from_host, size_t size)
{
	use(d);
	note(d, cudaMemcpyAsync(to, from_host, size, cudaMemcpyDefault, d->stream),
	     "a copy to the device");
}

void device_get(struct device *d, void *to_host, const void *from, size_t size)
{
	use(d);
	note(d, cudaMemcpyAsync(to_host, from, size, cudaMemcpyDefault, d->stream),
	     "a copy from the device");
}

void device_put_beside(struct device *d, void *to, const void *from_host, size_t size)
{
	use(d);
	note(d, cudaMemcpyAsync(to, from_host, size, cudaMemcpyHostToDevice, d->beside[STREAM_PUT]),
	     "a copy to the device");
}

void device_get_beside(struct device *d, void *to_host, const void *from, size_t size)
{
	use(d);
	note(d, cudaMemcpyAsync(to_host, from, size, cudaMemcpyDeviceToHost, d->beside[STREAM_GET]),
	     "a copy from the device");
}

/* The event can be used again at once, because a stream that already waits keeps waiting for the
 * earlier record. */
void device_order(struct device *d, enum device_stream earlier, enum device_stream later)
{
	use(d);
	note(d, cudaEventRecord(d->behind[earlier], stream_of(d, earlier)), "an event");
	note(d, cudaStreamWaitEvent(stream_of(d, later), d->behind[earlier], 0),
	     "the order of two streams");
}

void device_mark(struct device *d, enum device_stream stream, unsigned mark)
{
	use(d);
	note(d, cudaEventRecord(d->marks[mark], stream_of(d, stream)), "an event");
}

/* Returns a failure but does not note it in d, because another thread may be noting another failure
 * in d. */
int device_await(struct device *d, unsigned mark, struct error *err)
{
	cudaError_t e = cudaSetDevice(d->number);

	if (e == cudaSuccess)
		e = cudaEventSynchronize(d->marks[mark]);
	return e == cudaSuccess ? 0
				: error_set(err, -EIO, "a copy beside the computation: %s",
					    cudaGetErrorString(e));
}

/* Asks the driver about a pointer. Runtimes before CUDA 11 report a pointer to host memory as an
 * invalid value. */
static enum pointer_kind look_up(void *device, const void *p)
{
	struct device *d = (struct device *)device;
	struct cudaPointerAttributes a;
	cudaError_t e;

	use(d);
	e = cudaPointerGetAttributes(&a, p);
	if (e == cudaSuccess)
		return a.type == cudaMemoryTypeDevice ? POINTER_DEVICE : POINTER_HOST;
	cudaGetLastError();
	if (e == cudaErrorInvalidValue)
		return POINTER_HOST;
	note(d, e, "looking up a pointer");
	return POINTER_UNKNOWN;
}

bool device_holds(struct device *d, const void *p)
{
	return own_memory_holds(&d->own, p, look_up, d);
}

void device_copy(struct device *d, void *to, const void *from, size_t size)
{
	if (d->deaf)
		return;
	use(d);
	times_begin(d->times, d->stream, "a copy on the device", 0);
	note(d, cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, d->stream),
	     "a copy on the device");
	times_end(d->times, d->stream);
}

void device_clear(struct device *d, void *to, size_t size)
{
	if (d->deaf)
		return;
	use(d);
	times_begin(d->times, d->stream, "clearing memory", 0);
	note(d, cudaMemsetAsync(to, 0, size, d->stream), "clearing memory");
	times_end(d->times, d->stream);
}

void device_product(struct device *d, const struct device_product *p)
{
	static const char *const kinds[] = { "nt", "nn", "tn" };
	char what[96];

	use(d);
	if (d->deaf)
		return;
	snprintf(what, sizeof(what), "product %s %zu x %zu x %zu in %s%s", kinds[p->kind], p->m,
		 p->n, p->k, p->bf16 ? "bf16" : "fp32", p->c_bf16 ? " to bf16" : "");
	times_begin(d->times, d->stream, what,
		    2.0 * (double)p->m * (double)p->n * (double)p->k);
	if (!products_run(d->products, p, d->stream))
		failure_note(&d->failure, what,
			     "cuBLASLt has no algorithm, refuses the table's, or failed");
	times_end(d->times, d->stream);
}

unsigned device_resident(struct device *d, enum device_kernel kernel, bool bf16, unsigned threads,
			 size_t shared)
{
	const void *code = kernel_code(kernel, bf16);
	size_t bytes = shared * sizeof(float);
	int blocks = 0;

	use(d);
	if (shared > d->shared_most || allow_shared(code, bytes) != cudaSuccess ||
	    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, code, (int)threads, bytes) !=
		    cudaSuccess) {
		cudaGetLastError();
		return 0;
	}
	return (unsigned)blocks;
}

void device_launch(struct device *d, enum device_kernel kernel, bool bf16, size_t blocks_x,
		   size_t blocks_y, unsigned threads, size_t shared, const void *args)
{
	dim3 blocks((unsigned)blocks_x, (unsigned)blocks_y);
	const void *code = kernel_code(kernel, bf16);
	size_t bytes = shared * sizeof(float);
	void *parameters[] = { (void *)args }; /* the only parameter of a kernel: its struct */

	use(d);
	if (d->deaf)
		return;
	note(d, allow_shared(code, bytes), kernels[kernel].name);
	times_begin(d->times, d->stream, kernels[kernel].name, 0);
	note(d, cudaLaunchKernel(code, blocks, dim3(threads), parameters, bytes, d->stream),
	     kernels[kernel].name);
	times_end(d->times, d->stream);
}

int device_plan_attention(struct device *d, const struct cudnn_shape *shape, size_t *bytes,
			  struct error *err)
{
	struct cudnn_functions f;
	int rc = 0;

	use(d);
	if (!d->cudnn && (rc = cudnn_library(&f, err)) == 0)
		rc = cudnn_open(&d->cudnn, &f, d->stream, err);
	if (rc == 0)
		rc = cudnn_plan(d->cudnn, shape, err);
	if (rc == 0)
		*bytes = cudnn_workspace(d->cudnn);
	return rc;
}

void device_attention(struct device *d, enum cudnn_pass pass, const struct cudnn_arrays *a)
{
	static const char *const names[] = { "cuDNN's attention, forward",
					     "cuDNN's attention, backward" };
	struct error err;

	use(d);
	if (d->deaf)
		return;
	times_begin(d->times, d->stream, names[pass], 0);
	if (cudnn_run(d->cudnn, pass, a, &err) != 0)
		failure_note(&d->failure, names[pass], err.text);
	times_end(d->times, d->stream);
}

void device_record(struct device *d)
{
	use(d);
	failure_recording_begins(&d->failure);
	d->deaf = d->times || cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeThreadLocal) !=
		  cudaSuccess;
}

struct device_graph *device_recorded(struct device *d)
{
	struct device_graph *g = (struct device_graph *)calloc(1, sizeof(*g));
	cudaGraph_t graph = NULL;
	bool ended = !d->deaf && cudaStreamEndCapture(d->stream, &graph) == cudaSuccess && g;

	if (failure_recording_ended(&d->failure, ended) &&
	    cudaGraphInstantiateWithFlags(&g->exec, graph, 0) == cudaSuccess) {
		cudaGraphDestroy(graph);
		return g;
	}
	/* Clears CUDA's last error, because the caller then runs the pass without a recording. */
	cudaGetLastError();
	d->deaf = false;
	if (graph)
		cudaGraphDestroy(graph);
	free(g);
	return NULL;
}

void device_replay(struct device *d, struct device_graph *g)
{
	use(d);
	note(d, cudaGraphLaunch(g->exec, d->stream), "a recorded pass");
}

void device_graph_free(struct device_graph *g)
{
	if (g)
		cudaGraphExecDestroy(g->exec);
	free(g);
}

} /* end of extern "C" */
