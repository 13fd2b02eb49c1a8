/* Compares the GPU's kernels with plain loops in double, without a GPU, and tests how much shared
 * memory attention gets. The device is emulated as in cuda_test.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "model/config.h"
#include "model/cuda/stage_cuda.h"
#include "model/tests/emulated_device.h"
#include "model/tests/kernel_check.h"

static void fail_above(const char *kernel, bool bf16, double error, double most)
{
	if (!(error <= most))
		fail_msg("%s%s: relative error %.3g", kernel, bf16 ? " in bf16" : "", error);
}

TEST(kernels_agree)
{
	/* Sizes with full tiles, partial tiles and tiles of one row, and with more rows, columns
	 * and heads than threads. */
	static const struct kernel_sizes sizes[] = {
		{ 5, 40, 1, 70, 2, 1, 32, 0 },
		{ 37, 129, 2, 65, 3, 3, 16, 0 },
		{ 2, 257, 1, 1, 4, 2, 48, 0 },
		{ 3, 31, 1, 128, 1, 1, 80, 0 },
		{ 4, 33, 3, 2, 6, 2, 6, 0 },
		{ 1027, 9, 1, 20, 2, 1, 16, 0 },
		/* In these cases, shared memory suffices for only one buffer of tiles. */
		{ 4, 33, 1, 137, 2, 1, 64, 41 << 10 >> 2 },
		{ 4, 33, 1, 137, 2, 1, 112, 69 << 10 >> 2 },
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int bf16 = 0; bf16 < (sizes[i].head_size % 16 ? 1 : 2); bf16++)
			assert_int_equal(kernel_check(&sizes[i], bf16, fail_above, NULL), 0);
}

/* If cuDNN is tried, its attention is compared too. */
TEST(cudnn_is_compared)
{
	const struct kernel_sizes sizes = { 3, 16, 2, 9, 4, 2, 16, 0 };

	for (int tried = 0; tried < 2; tried++) {
		if (tried)
			setenv("SKIPPIPE_GPU_TRY", "attention", 1);
		for (int bf16 = 0; bf16 < 2; bf16++) {
			fake.executions = 0;
			assert_int_equal(kernel_check(&sizes, bf16, fail_above, NULL), 0);
			assert_int_equal(fake.executions, tried && bf16 ? 4 : 0);
		}
	}
	unsetenv("SKIPPIPE_GPU_TRY");
}

enum { KIB_99 = 99 << 10 >> 2, KIB_163 = 163 << 10 >> 2 /* floats of shared memory in 99 and in 163
	 * KiB */ };

/* Attention with the heads of every preset fits into 99 KiB of shared memory. A block has this much
 * on an RTX 3090 to 5090, an A6000, an L4 or an L40S. */
TEST(heads_of_all_presets_fit_99_kib)
{
	bool seen[HEAD_MOST + 1] = { false };

	for (size_t i = 0; model_preset_name(i); i++) {
		struct model_config c;
		struct kernel_sizes sizes = { 2, 16, 1, 75, 2, 1, 0, KIB_99 };

		assert_int_equal(model_preset(model_preset_name(i), &c, NULL, NULL), 0);
		sizes.head_size = model_head_size(&c);
		if (seen[sizes.head_size])
			continue;
		seen[sizes.head_size] = true;
		for (int bf16 = 0; bf16 < 2; bf16++) {
			memset(launches, 0, sizeof(launches));
			assert_int_equal(kernel_check(&sizes, bf16, fail_above, NULL), 0);
			for (int k = 0; k < 3; k++) {
				bool wide = bf16 && sizes.head_size > 64;

				assert_int_equal(launches[KERNEL_ATTENTION_WIDE + k] > 0, wide);
				assert_int_equal(launches[KERNEL_ATTENTION + k] > 0, !wide);
			}
		}
	}
}

static struct attention_launch launch_on(struct device *d, enum device_kernel kernel, size_t most,
					 size_t multiprocessor, unsigned head)
{
	struct attention_launch l;

	d->shared_most = most;
	multiprocessor_shared = multiprocessor;
	assert_true(attention_launch_of(&l, d, kernel, true, head));
	multiprocessor_shared = SHARED_MOST;
	return l;
}

enum { TURNED_ROWS = 70 };

/* Computes dqkv (TURNED_ROWS, 4 size) of two query heads that share keys. turned: the attention
 * kernel itself rotates the gradients back when it stores them; otherwise another kernel does. */
static uint16_t *gradients(struct device *d, unsigned size, bool turned)
{
	enum { ROWS = TURNED_ROWS };
	unsigned half = size / 2, stride = 4 * size;
	uint16_t *reals = NULL, *qkv, *dout, *dqkv;
	float *floats = NULL, *lse, *dot, *cosines;
	struct attention_args a;
	struct rotate_args rotate;
	struct rng r;

	assert_int_equal(
		device_allocate(d, ROWS * 10 * size * sizeof(*reals), 0, (void **)&reals, NULL), 0);
	assert_int_equal(device_allocate(d, ROWS * (4 + 2 * half) * sizeof(*floats), 0,
					 (void **)&floats, NULL),
			 0);
	qkv = reals;
	dout = qkv + ROWS * stride;
	dqkv = dout + ROWS * 2 * size;
	lse = floats;
	dot = lse + 2 * ROWS;
	cosines = dot + 2 * ROWS;
	rng_init(&r, 3);
	for (unsigned i = 0; i < ROWS * 6 * size; i++)
		reals[i] = to_bf16((float)rng_normal(&r));
	for (unsigned i = 0; i < ROWS * (4 + 2 * half); i++)
		floats[i] = i < 2 * ROWS ? 5 : (float)rng_normal(&r);
	a = (struct attention_args){ .qkv = qkv,
				     .lse = lse,
				     .dout = dout,
				     .dot = dot,
				     .dqkv = dqkv,
				     .length = ROWS,
				     .heads = 2,
				     .kv_heads = 1,
				     .size = size,
				     .stride = stride,
				     .scale = 0.1f,
				     .cosines = turned ? cosines : NULL,
				     .sines = cosines + ROWS * half };
	rotate = (struct rotate_args){ dqkv, cosines, cosines + ROWS * half, stride, 3, half,
				       ROWS, -1 };
	attention_start(d, KERNEL_ATTENTION_DQ, true, 1, &a);
	attention_start(d, KERNEL_ATTENTION_DKV, true, 1, &a);
	if (!turned)
		device_launch(d, KERNEL_ROTATE, true, ROWS, 1, ROW_THREADS, ROW_THREADS, &rotate);
	assert_int_equal(device_status(d), 0);
	return dqkv;
}

TEST(gradients_are_rotated_where_they_are_stored)
{
	for (unsigned size = 64; size <= 128; size += 64) {
		struct device *d = NULL;

		assert_int_equal(device_open(&d, 0, true, NULL), 0);
		assert_memory_equal(gradients(d, size, true), gradients(d, size, false),
				    TURNED_ROWS * 4 * size * sizeof(uint16_t));
		device_close(d);
	}
}

/* Heads form groups. The keys and values of a group's heads fit into a quarter of the cache
 * together. A group runs before the next group begins. */
TEST(heads_form_groups_by_cache)
{
	struct attention_args a = { .length = 4096, .heads = 16, .kv_heads = 16, .size = 128 };
	struct device *d = NULL;

	assert_int_equal(device_open(&d, 0, true, NULL), 0);
	cache_bytes = 50 << 20;
	/* A quarter of the cache is 12.5 MiB, and a head needs 2 MiB. The size of a group must also
	 * divide the number of heads. */
	assert_int_equal(attention_group(d, KERNEL_ATTENTION, 64, 64, &a), 4);
	assert_int_equal(attention_group(d, KERNEL_ATTENTION_DKV, 64, 64, &a), 4);
	assert_int_equal(attention_group(d, KERNEL_ATTENTION, 21, 64, &a), 3);
	assert_int_equal(attention_group(d, KERNEL_ATTENTION, 4, 64, &a), 4);
	/* Four heads share keys and values. A block of keys reads the queries of all four. */
	a.kv_heads = 4;
	assert_int_equal(attention_group(d, KERNEL_ATTENTION, 64, 64, &a), 16);
	assert_int_equal(attention_group(d, KERNEL_ATTENTION_DKV, 16, 64, &a), 1);
	cache_bytes = 8 << 20; /* not even one head fits */
	assert_int_equal(attention_group(d, KERNEL_ATTENTION_DKV, 16, 64, &a), 16);
	/* A grid has at most 65,535 rows of blocks. */
	a.length = 64;
	cache_bytes = 4 * 4 * 2 * 64 * 128 * 2;
	assert_int_equal(attention_group(d, KERNEL_ATTENTION_DKV, 65535, 1, &a), 1);
	assert_int_equal(attention_group(d, KERNEL_ATTENTION_DKV, 65536, 1, &a), 65536);
	cache_bytes = 80 << 10;
	device_close(d);
}

/* Two buffers hide the time of loading tiles. Twice as many blocks with one buffer each hide more
 * of this time. */
TEST(buffers_are_chosen_by_blocks)
{
	/* Floats of shared memory. Two buffers for the widest heads need less. */
	enum { BYTES = 103 << 10 >> 2 };
	enum device_kernel dkv = KERNEL_ATTENTION_DKV;
	struct attention_launch l;
	struct device *d = NULL;
	size_t two;

	assert_int_equal(device_open(&d, 0, true, NULL), 0);
	/* On an H200, two blocks with two buffers each fit on a multiprocessor. On an A100 one such
	 * block fits, or two blocks with one buffer each. */
	assert_int_equal(launch_on(d, dkv, SHARED_MOST, SHARED_MOST, 128).buffers, 2);
	assert_int_equal(launch_on(d, dkv, KIB_163, KIB_163, 128).buffers, 1);
	/* A 4090 has room for one block with two buffers, or for two blocks with one buffer each,
	 * if heads have 64 numbers. */
	assert_int_equal(launch_on(d, dkv, KIB_99, KIB_99, 64).buffers, 1);
	assert_int_equal(launch_on(d, KERNEL_ATTENTION, KIB_99, KIB_99, 64).buffers, 2);
	/* If a multiprocessor holds only one block, whether with one buffer or two, a block gets
	 * two buffers if these fit. */
	two = launch_on(d, dkv, SHARED_MOST, SHARED_MOST, 128).shared;
	assert_true(two <= BYTES);
	assert_int_equal(launch_on(d, dkv, two, BYTES, 128).buffers, 2);
	assert_int_equal(launch_on(d, dkv, two - 1, BYTES, 128).buffers, 1);
	d->shared_most = 48 << 10 >> 2;
	assert_false(attention_launch_of(&l, d, dkv, true, 128));
	device_close(d);
}
