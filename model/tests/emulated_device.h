/* emulated_device.h - emulates model/cuda/device.h on the CPU. A test includes it once. The warps
 * of a block run one after another from barrier to barrier. Products are plain loops. Queued work
 * is done when the caller waits for it, and recorded work when it is replayed. Between barriers
 * warps and their threads run in ascending or descending order, chosen at random: if a barrier is
 * missing, one of the two orders reads wrong data. An operation of a whole warp waits only for the
 * warp's threads, and is no barrier. All threads must pass the same barriers.
 *
 * The stream of computations does its work as late as possible. The streams of copies work as late
 * as possible too, or with copies_run_early as early as possible. If an order of two streams or a
 * wait is missing, wrong data is read in one of these two modes.
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/process/turn.h"
#include "base/tests/test.h"
#include "model/cuda/device.h"
#include "model/cuda/failure.h"
#include "model/cuda/kernel_args.h"
#include "model/cuda/library.h"
#include "model/cuda/own_memory.h"
#include "model/tests/emulated_cudnn.h"

/* Limits of a block. Blocks run one at a time. */
enum { THREADS_MOST = 1024, STACK = 64 << 10, SHARED_MOST = 227 << 10 >> 2 /* SHARED_MOST: limit of
	 * an H200 */ };

enum { LANES = 32, COPIES_MOST = 128 };

/* The 32-bit words that a thread contributes to an operation of its warp. */
struct lane_words {
	int op;
	uint32_t words[6];
};

static struct {
	unsigned thread, threads, block_x, block_y, blocks_x, warps_left;
	/* Counters of run_to_barrier: the present turn among the block's warps, and among the
	 * threads of a warp. */
	unsigned warp, lane;
	uint32_t order; /* random bits, which choose the direction in which threads run */
	_Alignas(128) float shared[SHARED_MOST + 64];
	size_t shared_size;
	/* makecontext gives a thread its stack. Later switches use _setjmp and _longjmp, because
	 * swapcontext makes a system call. */
	ucontext_t begin;
	jmp_buf scheduler, fiber[THREADS_MOST];
	bool has_begun[THREADS_MOST];
	enum stop { AT_BARRIER, IN_WARP, DONE } stopped[THREADS_MOST];
	struct lane_words said[2]
			      /* Two arrays, used alternately. Two suffice, because no thread is two
			       * operations ahead of another. */
			      [THREADS_MOST];
	unsigned char turn[THREADS_MOST];
	struct { void *to; const void *from; } copies[THREADS_MOST][COPIES_MOST];
	unsigned n_copies[THREADS_MOST];
	_Alignas(16) char stacks[THREADS_MOST][STACK];
	void (*entry)(const void *args);
	const void *args;
} block;

/* The C library's _longjmp. ASan's _longjmp makes a system call. */
static void (*jump)(jmp_buf to, int value);

/* Excludes a function from TSan's stack of calls, because it may be left by a jump. */
#define UNLISTED __attribute__((no_sanitize("thread")))

UNLISTED static void stop(enum stop how)
{
	block.stopped[block.thread] = how;
	if (_setjmp(block.fiber[block.thread]) == 0)
		jump(block.scheduler, 1);
}

static void barrier(void)
{
	stop(AT_BARRIER);
}

UNLISTED static void fiber_main(void)
{
	block.entry(block.args);
	assert_int_equal(block.n_copies[block.thread], 0);
	stop(DONE);
}

/* Lets the thread block.thread run until it stops. */
UNLISTED static void run_thread(void)
{
	if (_setjmp(block.scheduler) != 0)
		return;
	if (block.has_begun[block.thread])
		jump(block.fiber[block.thread], 1);
	block.has_begun[block.thread] = true;
	block.begin.uc_stack.ss_sp = block.stacks[block.thread];
	block.begin.uc_stack.ss_size = STACK;
	makecontext(&block.begin, fiber_main, 0);
	setcontext(&block.begin);
}

enum { FENCE = 64 }; /* floats after the shared memory, which no thread may overwrite */

static bool coin(void)
{
	block.order = block.order * 1664525 + 1013904223;
	return block.order >> 31;
}

/* Runs each warp's threads in turn until all are at a barrier or have ended. The counts are not
 * local variables, because a switch of context may lose values in registers. */
static void run_to_barrier(void)
{
	unsigned warps = block.threads / LANES, first;
	bool back = coin();

	assert_true(block.threads % LANES == 0);
	for (block.warp = 0; block.warp < warps; block.warp++) {
		do {
			bool turned = coin();

			first = (back ? warps - 1 - block.warp : block.warp) * LANES;
			for (block.lane = 0; block.lane < LANES; block.lane++) {
				block.thread = first + (turned ? LANES - 1 - block.lane
							       : block.lane);
				run_thread();
			}
			for (unsigned i = 1; i < LANES; i++)
				assert_int_equal(block.stopped[first + i], block.stopped[first]);
		} while (block.stopped[first] == IN_WARP);
	}
	for (unsigned i = 1; i < block.threads; i++)
		assert_int_equal(block.stopped[i], block.stopped[0]);
}

static void run_block(void)
{
	/* Fills shared memory with garbage, because a block must not rely on an earlier block's
	 * data. */
	for (size_t i = 0; i < block.shared_size + FENCE; i++)
		block.shared[i] = NAN;
	if (!jump)
		*(void **)&jump = dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "_longjmp");
	getcontext(&block.begin);
	for (unsigned i = 0; i < block.threads; i++) {
		block.has_begun[i] = false;
		block.turn[i] = 0;
		block.n_copies[i] = 0;
	}
	do
		run_to_barrier();
	while (block.stopped[0] != DONE);
	for (size_t i = block.shared_size; i < block.shared_size + FENCE; i++)
		assert_true(isnan(block.shared[i]));
}

static uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static float float_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* ---- operations of a whole warp, as PTX defines them ---- */

enum { OP_LOAD, OP_TURNED, OP_TENSOR, OP_ACROSS };

/* Contributes this thread's words to an operation of its warp, and returns the words of all threads
 * of the warp. */
static const struct lane_words *with_warp(int op, const void *own, size_t size)
{
	unsigned turn = block.turn[block.thread]++ % 2;
	struct lane_words *to = &block.said[turn][block.thread];

	to->op = op;
	memcpy(to->words, own, size);
	stop(IN_WARP);
	to = &block.said[turn][block.thread / LANES * LANES];
	for (unsigned i = 0; i < LANES; i++)
		assert_int_equal(to[i].op, op);
	return to;
}

static uint32_t pair_at(const uint16_t *low, const uint16_t *high)
{
	return *low | (uint32_t)*high << 16;
}

static bool is_shared(const void *p, size_t size)
{
	const char *begin = (const char *)block.shared;

	return (const char *)p >= begin &&
	       (const char *)p + size <= begin + block.shared_size * sizeof(float);
}

static void load_matrices(uint32_t r[4], const uint16_t *at, bool turned)
{
	const struct lane_words *all = with_warp(turned ? OP_TURNED : OP_LOAD, &at, sizeof(at));
	unsigned lane = block.thread % LANES;

	for (unsigned m = 0; m < 4; m++) {
		const uint16_t *rows[8];

		for (unsigned i = 0; i < 8; i++) {
			memcpy(&rows[i], all[8 * m + i].words, sizeof(rows[i]));
			assert_true((uintptr_t)rows[i] % 16 == 0 && is_shared(rows[i], 16));
		}
		r[m] = turned ? pair_at(&rows[lane % 4 * 2][lane / 4],
					&rows[lane % 4 * 2 + 1][lane / 4])
			      : pair_at(&rows[lane / 4][lane % 4 * 2],
					&rows[lane / 4][lane % 4 * 2 + 1]);
	}
}

static float half_of_pair(uint32_t pair, unsigned which)
{
	return float_of(which ? pair & 0xffff0000 : pair << 16);
}

static void tensor_product(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
	uint32_t own[6] = { a[0], a[1], a[2], a[3], b0, b1 };
	const struct lane_words *all = with_warp(OP_TENSOR, own, sizeof(own));
	unsigned lane = block.thread % LANES;

	for (unsigned e = 0; e < 4; e++) {
		unsigned row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;

		for (unsigned k = 0; k < 16; k++) {
			unsigned at = k % 8 / 2;

			c[e] += half_of_pair(all[row % 8 * 4 + at].words[row / 8 + k / 8 * 2],
					     k % 2) *
				half_of_pair(all[column * 4 + at].words[4 + k / 8], k % 2);
		}
	}
}

static float across(float x, unsigned mask)
{
	const struct lane_words *all = with_warp(OP_ACROSS, &x, sizeof(x));

	memcpy(&x, all[block.thread % LANES ^ mask].words, sizeof(x));
	return x;
}

static const _Alignas(16) uint16_t zeros[8];

static void copy_eight(uint16_t *to, const uint16_t *from)
{
	assert_true((uintptr_t)to % 16 == 0 && (uintptr_t)from % 16 == 0);
	memcpy(to, from, 8 * sizeof(*to));
}

static void copy_sixteen(void *to, const void *from)
{
	assert_true((uintptr_t)to % 4 == 0 && (uintptr_t)from % 4 == 0);
	memcpy(to, from, 16);
}

static void load_sixteen(uint32_t words[4], const void *from)
{
	assert_true((uintptr_t)from % 16 == 0);
	copy_sixteen(words, from);
}

static void store_sixteen(void *to, const uint32_t words[4])
{
	assert_true((uintptr_t)to % 16 == 0);
	copy_sixteen(to, words);
}

/* Records a copy that is made later. Until then the contents of the destination are undefined. */
static void copy_later(uint16_t *to, const uint16_t *from)
{
	unsigned *n = &block.n_copies[block.thread];

	assert_true(*n < COPIES_MOST && is_shared(to, 16));
	block.copies[block.thread][*n].to = to;
	block.copies[block.thread][(*n)++].from = from;
	memset(to, 0xff, 16);
}

static void copies_done(void)
{
	for (unsigned i = 0; i < block.n_copies[block.thread]; i++)
		copy_eight(block.copies[block.thread][i].to, block.copies[block.thread][i].from);
	block.n_copies[block.thread] = 0;
}

static uint32_t pair_of(float low, float high);

static void put_pair(uint16_t *to, uint32_t pair)
{
	assert_true((uintptr_t)to % sizeof(pair) == 0);
	memcpy(to, &pair, sizeof(pair));
}

#define DEVICE static
#define THREAD block.thread
#define THREADS block.threads
#define BLOCK_X block.block_x
#define BLOCK_Y block.block_y
#define BLOCKS_X block.blocks_x
#define INLINE_ static
#define MUL(a, b) ((a) * (b))
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define DIV(a, b) ((a) / (b))
#define SQRT(a) sqrtf(a)
#define NOT_A_NUMBER float_of(0x7fc00000)
#define BARRIER() barrier()
#define SHARED block.shared
#define BITS(x) bits_of(x)
#define FROM_BITS(x) float_of(x)
#define CLEAR_EIGHT(to) copy_eight(to, zeros)
#define LOAD_SIXTEEN load_sixteen
#define STORE_SIXTEEN store_sixteen
#define COPY_LATER copy_later
#define COPIES_DONE copies_done
#define LOAD_MATRICES(r, at) load_matrices(r, at, false)
#define LOAD_TURNED(r, at) load_matrices(r, at, true)
#define TENSOR_PRODUCT tensor_product
#define ACROSS across
#define PAIR pair_of
#define PUT_PAIR put_pair
#define POWER_OF_TWO exp2f
#define UNROLL
#define FLASH_KERNEL(name, blocks) KERNEL(name, attention_args)
#define KERNEL(name, arguments) KERNEL_(name, arguments)
#define KERNEL_(name, arguments) \
	static void name##_kernel(struct arguments a); \
	static void name##_entry(const void *args) \
	{ \
		name##_kernel(*(const struct arguments *)args); \
	} \
	static void name##_kernel(struct arguments a)

#include "model/cuda/kernels.h"

static uint32_t pair_of(float low, float high)
{
	return to_bf16(low) | (uint32_t)to_bf16(high) << 16;
}

#define BOTH(name, of_float, of_bf16, arguments) \
	[name] = { { of_float##_entry, of_bf16##_entry }, sizeof(struct arguments) }
#define TWICE(name, kernel, arguments) BOTH(name, kernel##_float, kernel##_bf16, arguments)
#define ONCE(name, kernel, arguments) BOTH(name, kernel, kernel, arguments)

static const struct {
	void (*entry[2])(const void *); /* the kernel for float, and for bf16 */
	size_t size;                    /* bytes of the kernel's arguments */
} kernels[KERNEL_COUNT] = {
	TWICE(KERNEL_NORM, norm, norm_args),
	TWICE(KERNEL_NORM_BACKWARD, norm_backward, norm_backward_args),
	TWICE(KERNEL_ROTATE, rotate, rotate_args),
	TWICE(KERNEL_SWIGLU, swiglu, swiglu_args),
	TWICE(KERNEL_SWIGLU_BACKWARD, swiglu_backward, swiglu_backward_args),
	TWICE(KERNEL_CROSS_ENTROPY, cross_entropy, cross_entropy_args),
	TWICE(KERNEL_ATTENTION_DOT, attention_dot, attention_dot_args),
	TWICE(KERNEL_CAST, cast, cast_args),
	BOTH(KERNEL_ATTENTION, attention, flash_forward_64, attention_args),
	BOTH(KERNEL_ATTENTION_DQ, attention_dq, flash_dq_64, attention_args),
	BOTH(KERNEL_ATTENTION_DKV, attention_dkv, flash_dkv_64, attention_args),
	ONCE(KERNEL_ATTENTION_WIDE, flash_forward_128, attention_args),
	ONCE(KERNEL_ATTENTION_DQ_WIDE, flash_dq_128, attention_args),
	ONCE(KERNEL_ATTENTION_DKV_WIDE, flash_dkv_128, attention_args),
	ONCE(KERNEL_NORM_SUM, norm_sum, norm_sum_args),
	ONCE(KERNEL_EMBED, embed, embed_args),
	ONCE(KERNEL_EMBED_BACKWARD, embed_backward, embed_backward_args),
	ONCE(KERNEL_ADAMW, adamw, adamw_args),
	ONCE(KERNEL_HASH, hash, hash_args),
	ONCE(KERNEL_SQUARES, squares, squares_args),
	ONCE(KERNEL_ADD, add, add_args),
	ONCE(KERNEL_CHANNEL_MEANS, channel_means, channel_means_args),
	ONCE(KERNEL_QUANTISE, quantise, codec_args),
	ONCE(KERNEL_DEQUANTISE, dequantise, codec_args),
	ONCE(KERNEL_BF16_ENCODE, bf16_encode, codec_args),
	ONCE(KERNEL_BF16_DECODE, bf16_decode, codec_args),
};

/* ---- the device ---- */

struct op {
	enum { OP_COPY, OP_CLEAR, OP_PRODUCT, OP_LAUNCH, OP_ORDER, OP_CUDNN } kind;
	/* For OP_ORDER: before this operation, the stream `earlier` must do its first `size`
	 * operations. */
	enum device_stream earlier;
	void *to;
	const void *from;
	void *own; /* the bytes at `from`, if they were copied when the op was queued */
	size_t size;
	struct device_product product;
	enum cudnn_pass pass;
	struct cudnn_arrays arrays;
	enum device_kernel kernel;
	bool bf16;
	size_t blocks_x, blocks_y, shared;
	unsigned threads;
	_Alignas(16) char args[256];
};

struct device_graph {
	struct op *ops;
	size_t n;
};

struct device {
	bool products; /* was opened for products */
	struct cudnn *cudnn;
	bool fails; /* true: the next allocation and all later ones fail */
	struct failure failure;
	size_t shared_most;
	struct device_graph *open;   /* the graph that is being recorded; NULL: none */
	struct stream {
		struct device_graph g; /* queued operations that are not done yet, oldest first */
		size_t done;           /* total number of operations done so far */
	} streams[STREAM_COUNT];
	/* For each mark: its stream, and the number of the stream's operations before the mark. */
	struct {
		enum device_stream stream;
		size_t n;
	} marks[DEVICE_MARKS];
};

enum { MEMORIES_MOST = 128 };

/* Allocations of all devices in one table, because a pointer may belong to any device. */
static struct memory {
	struct device *device; /* NULL: the entry is free */
	char *at;
	size_t size;
	bool pinned; /* the memory is pinned host memory */
} memories[MEMORIES_MOST];

static bool is_within(const struct memory *m, const void *p)
{
	return m->device && (const char *)p >= m->at && (const char *)p < m->at + m->size;
}

static bool fail_next, cannot_record;
static bool cudnn_is_missing; /* imitates a machine without cuDNN */
static bool compiles; /* imitates a card for which the driver must compile the program's code */
static bool whole_rows; /* fails a product in bf16 whose rows are not aligned to 16 bytes */
static bool in_turn; /* fails the test if a stage allocates without the turn (turn.h) */
/* Imitates a driver that hangs: a wait does not end while this is true. */
static atomic_bool hang_at_wait;
static bool fail_at_wait; /* imitates a card that dies: queued work is lost from the next wait on */
/* Products that are refused, as by cuBLAS: none, those of a recording, or all. */
static enum { NO_PRODUCT, RECORDED_PRODUCTS, EVERY_PRODUCT } refused;
/* Imitates a fault that only occurs now and then: product N is wrong if N is a multiple of
 * flaky_products. 0: no product is wrong. */
static long flaky_products;
/* Imitates a faulty card: products are wrong, and no failure is reported. */
static bool wrong_products;
/* Imitates a faulty kernel: launches of this kernel do nothing. KERNEL_COUNT: there is none. */
static enum device_kernel omitted_kernel = KERNEL_COUNT;
/* Library in which cuBLAS is looked up; NULL: products are plain loops. */
static const char *cublas_file;
static const char *emulated_name = "emulated", *emulated_versions = "";
static size_t shared_most = SHARED_MOST;
/* Shared memory of all blocks on a multiprocessor. */
static size_t multiprocessor_shared = SHARED_MOST;
static size_t cache_bytes = 80 << 10; /* so small that attention's blocks form groups */
static uint64_t device_free_bytes = UINT64_MAX;
static atomic_long replays;
static long puts_after_replay, launches[KERNEL_COUNT];
static size_t launched_blocks[KERNEL_COUNT];
/* Numbers of calls of device_status, and of copies of pageable memory, which block the caller. */
static atomic_long waits, pageable;
static atomic_bool fail_at_await; /* imitates a card that dies: waits for marks fail */
/* True: copies on the streams of copies run as soon as possible. False: they run only when they are
 * waited for. */
static bool copies_run_early;
/* k > 0: skips the k-th call of device_order, or of device_await, counted from now on, as if the
 * program lacked this call. 0: skips none. */
static unsigned orders_to_omit, awaits_to_omit;
/* Number of inputs that were copied while computations waited, and number of computations that ran
 * while an output waited to be copied. */
static long puts_beside, computed_before_get;
/* Bytes that were copied between the machine's memory and devices. */
static atomic_size_t bytes_put, bytes_got;

/* Devices of several threads share the emulated multiprocessor and the table of memory. */
static pthread_mutex_t emulation = PTHREAD_MUTEX_INITIALIZER;

static bool memory_of(const void *p, struct memory *out)
{
	bool found = false;

	pthread_mutex_lock(&emulation);
	for (int i = 0; i < MEMORIES_MOST && !found; i++)
		if ((found = is_within(&memories[i], p)))
			*out = memories[i];
	pthread_mutex_unlock(&emulation);
	return found;
}

uint32_t device_count(void)
{
	return 1;
}

static int look_for_cublas(uint32_t number, struct error *err)
{
	static const char *const names[] = { "cublasLtCreate" };
	const struct nvidia_library cublas = {
		cublas_file, "cuBLAS", "cublas",
		"install the CUDA toolkit's libcublas, version 13", names, 1
	};
	void *functions[1];

	if (!cublas_file || nvidia_library_open(&cublas, functions, err) == 0)
		return 0;
	return error_prefix(err, -19, "device cuda:%u", number);
}

int device_look(uint32_t number, char *text, size_t size, uint64_t *free_bytes,
		struct error *err)
{
	if (number != 0)
		return error_set(err, -22, "there is 1");
	snprintf(text, size, "sm_00 %.*s%s", (int)DEVICE_CARD_MOST, emulated_name,
		 emulated_versions);
	*free_bytes = device_free_bytes;
	return look_for_cublas(number, err);
}

bool device_compiles(uint32_t number)
{
	return compiles && number == 0;
}

void device_bus_id(uint32_t number, char *out, size_t size)
{
	snprintf(out, size, "0000:65:%02x.0", number);
}

int device_open(struct device **out, uint32_t number, bool products, struct error *err)
{
	if (number != 0)
		return error_set(err, -19, "no device %u", number);
	if (look_for_cublas(number, err))
		return -19;
	*out = calloc(1, sizeof(**out));
	(*out)->fails = fail_next;
	(*out)->products = products;
	(*out)->shared_most = shared_most;
	return 0;
}

static void do_op(const struct device *d, const struct op *o);

/* Returns the number of operations that were ever queued on the stream. */
static size_t queued(const struct device *d, enum device_stream stream)
{
	return d->streams[stream].done + d->streams[stream].g.n;
}

/* Does the stream's operations up to number n, and first all operations of other streams that
 * device_order requires. Does nothing else on other streams: if a call of device_order is missing
 * in the program, the work reads old data. early: stops before an OP_ORDER whose required
 * operations are not done. */
static void advance(struct device *d, enum device_stream stream, size_t n, bool early)
{
	struct stream *q = &d->streams[stream];
	size_t i = 0;

	for (; q->done < n; i++, q->done++) {
		struct op *o = &q->g.ops[i];

		if (o->kind == OP_ORDER && early && d->streams[o->earlier].done < o->size)
			break;
		if (o->kind == OP_ORDER)
			advance(d, o->earlier, o->size, early);
		else
			do_op(d, o);
		free(o->own);
		if (stream == STREAM_PUT && o->kind == OP_COPY && d->streams[STREAM_COMPUTE].g.n)
			puts_beside++;
		if (stream == STREAM_COMPUTE && o->kind != OP_ORDER && d->streams[STREAM_GET].g.n)
			computed_before_get++;
	}
	q->g.n -= i;
	if (q->g.n > 0)
		memmove(q->g.ops, q->g.ops + i, q->g.n * sizeof(*q->g.ops));
}

static void flush(struct device *d)
{
	assert_null(d->open);
	pthread_mutex_lock(&emulation);
	advance(d, STREAM_COMPUTE, queued(d, STREAM_COMPUTE), false);
	pthread_mutex_unlock(&emulation);
}

static void drop(struct device *d)
{
	pthread_mutex_lock(&emulation);
	for (int i = 0; i < STREAM_COUNT; i++) {
		struct stream *q = &d->streams[i];

		for (size_t k = 0; k < q->g.n; k++)
			free(q->g.ops[k].own);
		q->done += q->g.n;
		q->g.n = 0;
	}
	pthread_mutex_unlock(&emulation);
}

void device_close(struct device *d)
{
	if (!d)
		return;
	flush(d);
	cudnn_close(d->cudnn);
	pthread_mutex_lock(&emulation);
	for (int i = 0; i < STREAM_COUNT; i++) {
		advance(d, (enum device_stream)i, queued(d, (enum device_stream)i), false);
		free(d->streams[i].g.ops);
	}
	for (int i = 0; i < MEMORIES_MOST; i++)
		if (memories[i].device == d) {
			free(memories[i].at);
			memories[i] = (struct memory){ .device = NULL };
		}
	pthread_mutex_unlock(&emulation);
	free(d);
}

int device_status(struct device *d)
{
	waits++;
	while (atomic_load(&hang_at_wait))
		sched_yield();
	if (fail_at_wait && !d->failure.failed) {
		failure_note(&d->failure, "on the device", "injected");
		drop(d);
	}
	flush(d);
	return d->failure.failed ? -5 : 0;
}

void device_fail(struct device *d, const char *what, const char *why)
{
	assert_true(what[0] && why[0]);
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
	(void)d;
	return cache_bytes;
}

void device_limit_shared(struct device *d, size_t floats)
{
	if (floats < d->shared_most)
		d->shared_most = floats;
}

static int allocate_either(struct device *d, size_t size, bool pinned, void **out,
			   struct error *err)
{
	int i = 0;

	if (in_turn) { /* turn_begin must fail, because the stage has the turn */
		int turn = turn_begin(0);

		turn_end(turn);
		assert_int_equal(turn, -1);
	}
	if (d->fails)
		return error_set(err, -12, "0.0 MiB free");
	*out = aligned_alloc(256, (size + 255) / 256 * 256);
	/* Fills new memory with garbage, because a GPU does not clear memory either. */
	memset(*out, 0xff, size);
	pthread_mutex_lock(&emulation);
	while (memories[i].device)
		assert_true(++i < MEMORIES_MOST);
	memories[i] = (struct memory){ d, *out, size, pinned };
	pthread_mutex_unlock(&emulation);
	return 0;
}

int device_allocate(struct device *d, size_t size, size_t spare, void **out, struct error *err)
{
	if (size + spare > device_free_bytes)
		return error_set(err, -12, "not with %zu spared", spare);
	return allocate_either(d, size, false, out, err);
}

int device_allocate_host(struct device *d, size_t size, void **out, struct error *err)
{
	return allocate_either(d, size, true, out, err);
}

bool device_holds(struct device *d, const void *p)
{
	struct memory m;

	(void)d;
	return memory_of(p, &m) && !m.pinned;
}

static float number_at(const void *array, bool bf16, size_t i)
{
	return bf16 ? float_of((uint32_t)((const uint16_t *)array)[i] << 16)
		    : ((const float *)array)[i];
}

static void do_product(const struct device_product *p)
{
	static long done;
	bool wrong = wrong_products || (flaky_products && ++done % flaky_products == 0);
	bool tn = p->kind == PRODUCT_TN, nt = p->kind == PRODUCT_NT;
	float *c = p->c;

	assert_false(p->added && p->c_bf16);
	for (size_t i = 0; i < p->m; i++)
		for (size_t j = 0; j < p->n; j++) {
			size_t at = i * p->ldc + j;
			double sum = p->added ? (double)((const float *)p->added)[at] : 0;

			for (size_t l = 0; l < p->k; l++)
				sum += (double)number_at(p->a, p->bf16,
							 tn ? l * p->lda + i : i * p->lda + l) *
				       (double)number_at(p->b, p->bf16,
							 nt ? j * p->ldb + l : l * p->ldb + j);
			if (wrong && at % 64 == 5)
				sum *= 1.5;
			if (p->c_bf16)
				((uint16_t *)p->c)[at] = to_bf16((float)sum);
			else
				c[at] = (float)sum;
		}
}

static void do_op(const struct device *d, const struct op *o)
{
	struct error err;

	if (o->kind == OP_CUDNN)
		assert_int_equal(cudnn_run(d->cudnn, o->pass, &o->arrays, &err), 0);
	if (o->kind == OP_COPY)
		memcpy(o->to, o->from, o->size);
	if (o->kind == OP_CLEAR)
		memset(o->to, 0, o->size);
	if (o->kind == OP_PRODUCT)
		do_product(&o->product);
	if (o->kind != OP_LAUNCH || o->kernel == omitted_kernel)
		return;
	assert_true(o->threads <= THREADS_MOST && o->shared <= d->shared_most);
	assert_true(o->blocks_x <= INT32_MAX && o->blocks_y <= UINT16_MAX); /* limits of a grid */
	launches[o->kernel]++;
	launched_blocks[o->kernel] += o->blocks_x * o->blocks_y;
	block.threads = o->threads;
	block.blocks_x = (unsigned)o->blocks_x;
	block.shared_size = o->shared;
	block.entry = kernels[o->kernel].entry[o->bf16];
	block.args = o->args;
	for (block.block_y = 0; block.block_y < o->blocks_y; block.block_y++)
		for (block.block_x = 0; block.block_x < o->blocks_x; block.block_x++)
			run_block();
}

static void append(struct device_graph *g, const struct op *o)
{
	g->ops = realloc(g->ops, (g->n + 1) * sizeof(*o));
	g->ops[g->n++] = *o;
}

/* Queues work on a stream. If copies_run_early is true, copies on the streams of copies run as soon
 * as they can. Otherwise they run only when another stream or the program waits for them. */
static void queue_on(struct device *d, enum device_stream stream, const struct op *o)
{
	pthread_mutex_lock(&emulation);
	append(&d->streams[stream].g, o);
	if (copies_run_early && stream != STREAM_COMPUTE)
		advance(d, stream, queued(d, stream), true);
	pthread_mutex_unlock(&emulation);
}

static void queue(struct device *d, const struct op *o)
{
	if (d->open)
		append(d->open, o);
	else
		queue_on(d, STREAM_COMPUTE, o);
}

static bool is_pinned(const void *p)
{
	struct memory m;

	return memory_of(p, &m) && m.pinned;
}

void device_put_beside(struct device *d, void *to, const void *from_host, size_t size)
{
	struct op o = { .kind = OP_COPY, .to = to, .from = from_host, .size = size };

	assert_null(d->open);
	assert_true(device_holds(d, to) && is_pinned(from_host));
	bytes_put += size;
	queue_on(d, STREAM_PUT, &o);
}

void device_get_beside(struct device *d, void *to_host, const void *from, size_t size)
{
	struct op o = { .kind = OP_COPY, .to = to_host, .from = from, .size = size };

	assert_null(d->open);
	assert_true(device_holds(d, from) && is_pinned(to_host));
	bytes_got += size;
	queue_on(d, STREAM_GET, &o);
}

void device_order(struct device *d, enum device_stream earlier, enum device_stream later)
{
	struct op o = { .kind = OP_ORDER, .earlier = earlier };

	assert_null(d->open);
	if (orders_to_omit > 0 && --orders_to_omit == 0)
		return;
	pthread_mutex_lock(&emulation);
	o.size = queued(d, earlier);
	pthread_mutex_unlock(&emulation);
	queue_on(d, later, &o);
}

void device_mark(struct device *d, enum device_stream stream, unsigned mark)
{
	assert_true(mark < DEVICE_MARKS);
	pthread_mutex_lock(&emulation);
	d->marks[mark].stream = stream;
	d->marks[mark].n = queued(d, stream);
	pthread_mutex_unlock(&emulation);
}

int device_await(struct device *d, unsigned mark, struct error *err)
{
	int rc = 0;

	pthread_mutex_lock(&emulation);
	if (awaits_to_omit > 0 && --awaits_to_omit == 0)
		rc = 0;
	else if (fail_at_await)
		rc = error_set(err, -5, "injected");
	else
		advance(d, d->marks[mark].stream, d->marks[mark].n, false);
	pthread_mutex_unlock(&emulation);
	return rc;
}

/* Must not be called during a recording, because a replay would not copy the host's memory. */
void device_put(struct device *d, void *to, const void *from_host, size_t size)
{
	struct op o = { .kind = OP_COPY, .to = to, .from = from_host, .size = size };
	struct memory m;

	assert_null(d->open);
	assert_true(size == 0 || device_holds(d, to));
	bytes_put += device_holds(d, from_host) ? 0 : size;
	if (!memory_of(from_host, &m)) {
		pageable++;
		o.from = o.own = memcpy(malloc(size + 1), from_host, size);
	}
	queue_on(d, STREAM_COMPUTE, &o);
	puts_after_replay++;
}

void device_get(struct device *d, void *to_host, const void *from, size_t size)
{
	struct memory m;

	assert_null(d->open);
	assert_true(size == 0 || device_holds(d, from));
	bytes_got += device_holds(d, to_host) ? 0 : size;
	queue_on(d, STREAM_COMPUTE,
		 &(struct op){ .kind = OP_COPY, .to = to_host, .from = from, .size = size });
	if (memory_of(to_host, &m))
		return;
	pageable++;
	flush(d);
}

void device_clear(struct device *d, void *to, size_t size)
{
	queue(d, &(struct op){ .kind = OP_CLEAR, .to = to, .size = size });
}

void device_copy(struct device *d, void *to, const void *from, size_t size)
{
	queue(d, &(struct op){ .kind = OP_COPY, .to = to, .from = from, .size = size });
}

void device_product(struct device *d, const struct device_product *p)
{
	assert_true(d->products);
	/* Tensor cores take rows at multiples of 16 bytes. */
	assert_false(whole_rows && p->bf16 &&
		     (p->lda % 8 || p->ldb % 8 || p->ldc % (p->c_bf16 ? 8 : 4)));
	if (refused == EVERY_PRODUCT || (refused == RECORDED_PRODUCTS && d->open))
		failure_note(&d->failure, "product", "refused");
	else
		queue(d, &(struct op){ .kind = OP_PRODUCT, .product = *p });
}

/* Only shared memory limits the number of blocks here. */
unsigned device_resident(struct device *d, enum device_kernel kernel, bool bf16, unsigned threads,
			 size_t shared)
{
	(void)kernel;
	(void)bf16;
	(void)threads;
	return shared > d->shared_most ? 0 : (unsigned)(multiprocessor_shared / shared);
}

void device_launch(struct device *d, enum device_kernel kernel, bool bf16, size_t blocks_x,
		   size_t blocks_y, unsigned threads, size_t shared, const void *args)
{
	struct op o = { .kind = OP_LAUNCH,
			.kernel = kernel,
			.bf16 = bf16,
			.blocks_x = blocks_x,
			.blocks_y = blocks_y,
			.threads = threads,
			.shared = shared };

	assert_true(kernels[kernel].size <= sizeof(o.args));
	memcpy(o.args, args, kernels[kernel].size);
	queue(d, &o);
}

int cudnn_library(struct cudnn_functions *out, struct error *err)
{
	if (cudnn_is_missing)
		return error_set(err, -19, "cuDNN cannot be loaded");
	*out = fake_functions;
	return 0;
}

int device_plan_attention(struct device *d, const struct cudnn_shape *shape, size_t *bytes,
			  struct error *err)
{
	struct cudnn_functions f;
	int rc = cudnn_library(&f, err);

	if (rc == 0 && !d->cudnn)
		rc = cudnn_open(&d->cudnn, &f, d, err);
	if (rc == 0)
		rc = cudnn_plan(d->cudnn, shape, err);
	if (rc == 0)
		*bytes = cudnn_workspace(d->cudnn);
	return rc;
}

void device_attention(struct device *d, enum cudnn_pass pass, const struct cudnn_arrays *a)
{
	queue(d, &(struct op){ .kind = OP_CUDNN, .pass = pass, .arrays = *a });
}

void device_record(struct device *d)
{
	assert_null(d->open);
	failure_recording_begins(&d->failure);
	d->open = calloc(1, sizeof(*d->open));
}

struct device_graph *device_recorded(struct device *d)
{
	struct device_graph *g = d->open;

	d->open = NULL;
	if (failure_recording_ended(&d->failure, !cannot_record))
		return g;
	device_graph_free(g);
	return NULL;
}

void device_replay(struct device *d, struct device_graph *g)
{
	assert_null(d->open);
	for (size_t i = 0; i < g->n; i++)
		queue_on(d, STREAM_COMPUTE, &g->ops[i]);
	replays++;
	puts_after_replay = 0;
}

void device_graph_free(struct device_graph *g)
{
	if (g)
		free(g->ops);
	free(g);
}
