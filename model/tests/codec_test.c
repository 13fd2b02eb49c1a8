/* Tests that every instruction set and the GPU's kernels encode a tensor to the same bytes, and
 * decode these bytes to the same numbers. An independent codec, which computes number by number,
 * gives the expected bytes and numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "model/codec/codec.h"
#include "model/tests/codec_reference.h"
#include "model/vector/vector.h"

#include "base/tests/test.h"
#include "model/tests/emulated_device.h"

enum { MOST = 3000, BYTES_MOST = 4 * MOST };

static const unsigned widths[] = { 8, 6, 4 };
enum { WIDTHS = sizeof(widths) / sizeof(widths[0]) };

/* Returns a random number, about as large as `size`. Among the results are numbers halfway between
 * two codes, denormals, zeros and, rarely, numbers that are infinite, NaN or close to the limit. */
static float draw(struct rng *r, double size)
{
	static const float specials[] = { INFINITY,  -INFINITY,       NAN,    0x1p126f,
					  -0x1p126f, 0x1.fffffep125f, -3e38f, 0x1p127f };

	switch (rng_below(r, 16)) {
	case 0:
		return rng_below(r, 40) ? 0 : specials[rng_below(r, 8)];
	case 1:
		return -0.0f;
	case 2:
		return (float)(size * ((double)rng_below(r, 255) - 127) / 2);
	case 3:
		return float_of(rng_below(r, 2) << 31 | rng_below(r, 1 << 23));
	case 4:
		return rng_below(r, 60) ? (float)size : float_of((uint32_t)rng_next(r));
	default:
		return (float)(size * rng_normal(r));
	}
}

static void draw_all(struct rng *r, float *x, size_t n)
{
	double size = 1;

	for (size_t i = 0; i < n; i++) {
		if (rng_below(r, 50) == 0)
			size = ldexp(1 + rng_uniform(r), (int)rng_below(r, 240) - 130);
		x[i] = draw(r, size);
	}
}

static void same_bytes(const char *set, const unsigned char *got, const unsigned char *want,
		       size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (got[i] != want[i])
			fail_msg("%s: byte %zu of %zu is %02x, expected %02x", set, i, bytes,
				 got[i], want[i]);
}

static void same_numbers(const char *set, const float *got, const float *want, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bits_of(got[i]) != bits_of(want[i]))
			fail_msg("%s: number %zu of %zu is %a, expected %a", set, i, n,
				 (double)got[i], (double)want[i]);
}

/* ---- the GPU's kernels, run one thread at a time, because they have no barriers ---- */

static void run_kernel(enum device_kernel kernel, size_t threads, const void *args)
{
	block.threads = ROW_THREADS;
	for (block.block_x = 0; block.block_x * ROW_THREADS < threads; block.block_x++)
		for (block.thread = 0; block.thread < ROW_THREADS; block.thread++)
			kernels[kernel].entry[0](args);
}

static void gpu_channel_means(unsigned char *to, const float *x, size_t rows, size_t n)
{
	static uint16_t means[MOST];
	struct channel_means_args a = { x, means, rows, n };

	run_kernel(KERNEL_CHANNEL_MEANS, n, &a);
	memcpy(to, means, n * sizeof(means[0]));
}

static void run_codec(enum device_kernel kernel, unsigned char *bytes, float *x, size_t n,
		      const struct quantiser *q)
{
	static uint16_t means[MOST];
	struct codec_args a = { x, bytes, NULL, n, q->channels, q->bits, (unsigned)q->group };

	if (q->means) {
		memcpy(means, q->means, q->channels * sizeof(means[0]));
		a.means = means;
	}
	run_kernel(kernel, (n + q->group - 1) / q->group, &a);
}

static void gpu_quantise(unsigned char *to, const float *x, size_t n, const struct quantiser *q)
{
	static float copy[MOST];

	memcpy(copy, x, n * sizeof(*x));
	run_codec(KERNEL_QUANTISE, to, copy, n, q);
}

static void gpu_dequantise(float *to, const unsigned char *from, size_t n,
			   const struct quantiser *q)
{
	static unsigned char copy[BYTES_MOST];

	memcpy(copy, from, tensor_format_bytes(q->bits == 8   ? FORMAT_Q8
					       : q->bits == 6 ? FORMAT_Q6
							      : FORMAT_Q4,
					       n, q->group));
	run_codec(KERNEL_DEQUANTISE, copy, to, n, q);
}

static const struct vector_ops gpu = { .name = "the GPU's kernels",
				       .channel_means = gpu_channel_means,
				       .quantise = gpu_quantise,
				       .dequantise = gpu_dequantise };

/* Returns the operations of instruction set i of this machine; after the last set the GPU's
 * kernels, then NULL. */
static const struct vector_ops *set_at(size_t i)
{
	if (i > 0 && !vector_ops_at(i - 1))
		return NULL;
	return vector_ops_at(i) ? vector_ops_at(i) : &gpu;
}

/* Checks the encoding of numbers, the decoding of the encoded bytes, and the decoding of random
 * bytes. */
static void check_set(const struct vector_ops *ops, struct rng *r, const float *x, size_t n,
		      unsigned bits, size_t group, size_t channels)
{
	static unsigned char got[BYTES_MOST + 1], want[BYTES_MOST];
	static float y[MOST], should[MOST];
	size_t bytes = reference_encode(want, x, n, bits, group, channels);
	unsigned char *odd = got + 1;
	struct quantiser q = { bits, group, channels ? odd : NULL, channels };

	memset(got, 0xee, sizeof(got));
	if (channels)
		ops->channel_means(odd, x, n / channels, channels);
	ops->quantise(odd + 2 * channels, x, n, &q);
	same_bytes(ops->name, odd, want, bytes);
	assert_int_equal(odd[bytes], 0xee);
	for (int any = 0; any < 2; any++) {
		for (size_t i = 0; any && i < bytes; i++)
			odd[i] = want[i] = (unsigned char)rng_next(r);
		assert_int_equal(reference_decode(should, want, n, bits, group, channels), bytes);
		ops->dequantise(y, odd + 2 * channels, n, &q);
		same_numbers(ops->name, y, should, n);
	}
}

TEST(every_set_agrees_with_the_definition)
{
	static const size_t all_channels[] = { 0, 8, 32, 48, 257 };
	static float x[MOST];
	struct rng r;

	rng_init(&r, 1);
	for (int round = 0; round < 300; round++)
		for (int w = 0; w < WIDTHS; w++) {
			size_t channels = all_channels[rng_below(&r, 5)], group = 128;
			size_t n = 1 + rng_below(&r, MOST - 300);

			if (widths[w] != 4 && (channels || rng_below(&r, 2)))
				group = 32;
			if (widths[w] == 4)
				channels = 0;
			if (channels)
				n = (n / channels + 1) * channels;
			draw_all(&r, x, n);
			for (size_t set = 0; set_at(set); set++)
				check_set(set_at(set), &r, x, n, widths[w], group, channels);
		}
}

/* Tests every scale that a group can have, with numbers halfway between two codes. */
TEST(every_scale_rounds_as_defined)
{
	static float x[32];
	struct rng r;

	rng_init(&r, 2);
	for (uint32_t half = 0; half < 0x7f80; half++)
		for (int w = 0; w < 2; w++) {
			float scale = float_of(half << 16);

			for (int i = 0; i < 32; i++)
				x[i] = scale * ((float)rng_below(&r, 61) - 30) / 2;
			x[0] = scale * (float)((1 << (widths[w] - 1)) - 1);
			x[1] = float_of(bits_of(x[0]) - rng_below(&r, 1 << 17));
			for (size_t set = 0; set_at(set); set++)
				check_set(set_at(set), &r, x, 32, widths[w], 32, 0);
		}
}

/* ---- codec.h ---- */

static struct codec any_codec(struct rng *r, size_t *n)
{
	static const enum tensor_format formats[] = { FORMAT_FP32, FORMAT_BF16, FORMAT_Q8,
						      FORMAT_Q6 };
	enum tensor_format format = formats[rng_below(r, 4)];
	uint32_t channels = 1 + rng_below(r, 100);

	*n = channels * (1 + rng_below(r, 29));
	return rng_below(r, 2) ? codec_of_activation(format, channels) : codec_of_gradient(format);
}

TEST(codecs_have_the_sizes_that_are_planned_with)
{
	struct codec c = codec_of_activation(FORMAT_Q6, 64);

	assert_int_equal(codec_bytes(&c, 640), 2 * 64 + 20 * (2 + 24));
	assert_int_equal(codec_bytes(&c, 640), tensor_format_activation_bytes(FORMAT_Q6, 640, 64));
	c = codec_of_gradient(FORMAT_Q8);
	assert_int_equal(codec_bytes(&c, 33), 2 + 32 + 2 + 1);
	assert_int_equal(tensor_format_gradient_bytes(FORMAT_Q8, 33), 37);
	assert_int_equal(tensor_format_sum_bytes(FORMAT_Q4, 130), 2 + 64 + 2 + 1);
	assert_int_equal(tensor_format_sum_bytes(FORMAT_Q6, 129), 2 + 96 + 2 + 1);
	assert_int_equal(tensor_format_sum_bytes(FORMAT_FP32, 10), 40);
	assert_true(tensor_format_sum_share(FORMAT_FP32) == 1);
	assert_true(tensor_format_sum_share(FORMAT_Q6) == 98.0 / 512);
	assert_true(tensor_format_activation_share(FORMAT_BF16) == 0.5);
	assert_true(tensor_format_activation_share(FORMAT_Q6) == 26.0 / 128);
	assert_int_equal(tensor_format_activation_bytes(FORMAT_BF16, 10, 5), 20);
}

/* A sender that rounds its numbers in place has the numbers that the receiver decodes, and rounding
 * again changes nothing. Sums rely on this, because a stage with one replica encodes its sum
 * twice. */
TEST(rounding_gives_the_receivers_numbers)
{
	static float x[MOST], y[MOST];
	static unsigned char bytes[BYTES_MOST];
	struct rng r;

	rng_init(&r, 3);
	for (int round = 0; round < 200; round++) {
		size_t n;
		struct codec c = any_codec(&r, &n);

		draw_all(&r, x, n);
		codec_encode(&c, bytes, x, n);
		codec_decode(&c, y, bytes, n);
		assert_int_equal(codec_round(&c, x, n), 0);
		same_numbers("codec_round", x, y, n);
		if (c.channels)
			continue;
		assert_int_equal(codec_round(&c, x, n), 0);
		same_numbers("codec_round again", x, y, n);
	}
}

/* The error of a number is at most half a step of its group. With 6 bits, a step is 1/31 of the
 * group's largest number. */
TEST(errors_are_half_a_step_at_most)
{
	static float x[MOST], y[MOST];
	struct codec c = codec_of_gradient(FORMAT_Q6);
	static unsigned char bytes[BYTES_MOST];
	double signal = 0, noise = 0;
	struct rng r;

	rng_init(&r, 4);
	for (size_t i = 0; i < MOST; i++)
		x[i] = y[i] = (float)rng_normal(&r);
	assert_int_equal(codec_round(&c, y, MOST), 0);
	for (size_t i = 0; i < MOST; i++) {
		double largest = 0;

		for (size_t k = i / 32 * 32; k < i / 32 * 32 + 32 && k < MOST; k++)
			largest = fabs((double)x[k]) > largest ? fabs((double)x[k]) : largest;
		assert_true(fabs((double)y[i] - (double)x[i]) <= largest / 31 * 0.5 * 1.004);
		signal += (double)x[i] * (double)x[i];
		noise += ((double)y[i] - (double)x[i]) * ((double)y[i] - (double)x[i]);
	}
	assert_true(10 * log10(signal / noise) > 30 && 10 * log10(signal / noise) < 36);
	codec_encode(&c, bytes, x, MOST);
	assert_true(fabs(codec_snr_db(&c, bytes, x, MOST) - 10 * log10(signal / noise)) < 1e-9);
	/* The ratio is 0 for a signal of zeros, and for numbers with a NaN. */
	codec_encode(&c, bytes, y, MOST);
	assert_true(codec_snr_db(&c, bytes, y, MOST) == 0);
	x[7] = NAN;
	assert_true(codec_snr_db(&c, bytes, x, MOST) == 0);
}

/* Bytes with a number that is too large or not finite, at any place, are refused; other bytes are
 * accepted. */
TEST(implausible_bytes_are_refused)
{
	static float x[MOST], y[MOST];
	static unsigned char bytes[BYTES_MOST];
	static const float bad[] = { NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 0x1p127f };
	struct rng r;

	rng_init(&r, 5);
	for (int round = 0; round < 2000; round++) {
		size_t n;
		struct codec c = any_codec(&r, &n);

		for (size_t i = 0; i < n; i++)
			x[i] = (float)rng_normal(&r) * 1e6f;
		codec_encode(&c, bytes, x, n);
		assert_true(codec_is_plausible(&c, bytes, n));
		x[rng_below(&r, (uint32_t)n)] = bad[rng_below(&r, 6)];
		codec_encode(&c, bytes, x, n);
		assert_false(codec_is_plausible(&c, bytes, n));
		for (size_t i = 0; i < codec_bytes(&c, n); i++)
			bytes[i] = (unsigned char)rng_next(&r);
		if (!codec_is_plausible(&c, bytes, n))
			continue;
		codec_decode(&c, y, bytes, n);
		for (size_t i = 0; i < n; i++)
			assert_true(fabsf(y[i]) < 2e9f);
	}
	/* A negative scale is refused. */
	memset(bytes, 0, sizeof(bytes));
	bytes[1] = 0x80;
	assert_false(codec_is_plausible(&(struct codec){ FORMAT_Q8, 32, 0 }, bytes, 32));
}

/* ---- sums ---- */

/* A slice has parts of several tensors. Each part is encoded by itself, and the bytes of the slice
 * are these encodings one after the other. */
TEST(no_group_crosses_a_tensor_or_a_slice)
{
	static const size_t starts[] = { 0, 5, 300, 301, 1000 };
	static float x[MOST], y[MOST], z[MOST];
	static unsigned char bytes[BYTES_MOST];
	struct rng r;

	rng_init(&r, 6);
	for (int round = 0; round < 300; round++) {
		static const enum tensor_format formats[] = { FORMAT_FP32, FORMAT_Q8, FORMAT_Q6,
							      FORMAT_Q4 };
		struct sum_codec c = { formats[round % 4], starts, 5 };
		size_t from = rng_below(&r, 1400), n = rng_below(&r, 1400), at = 0;

		for (size_t i = 0; i < n; i++)
			x[i] = (float)rng_normal(&r);
		sum_codec_encode(&c, bytes, x, from, n);
		for (size_t begin = 0, end; begin < n; begin = end) {
			struct codec one = { c.format, 128, 0 };

			for (end = begin + 1; end < n; end++)
				if (from + end == 5 || from + end == 300 || from + end == 301 ||
				    from + end == 1000)
					break;
			memcpy(y + begin, x + begin, (end - begin) * sizeof(*x));
			assert_int_equal(codec_round(&one, y + begin, end - begin), 0);
			at += codec_bytes(&one, end - begin);
		}
		assert_int_equal(sum_codec_bytes(&c, from, n), at);
		assert_true(sum_codec_is_plausible(&c, bytes, from, n));
		sum_codec_decode(&c, z, bytes, from, n);
		same_numbers("sum_codec_decode", z, y, n);
		if (n == 0)
			continue;
		x[rng_below(&r, (uint32_t)n)] = NAN;
		sum_codec_encode(&c, bytes, x, from, n);
		assert_false(sum_codec_is_plausible(&c, bytes, from, n));
	}
}

/* Every slice has its own groups, so rounding a gradient must treat slices separately. */
TEST(slices_are_rounded_as_the_receiver_decodes_them)
{
	static const size_t starts[] = { 0, 5, 300, 301, 1000 };
	static float x[MOST], y[MOST];
	static unsigned char bytes[BYTES_MOST];
	struct rng r;

	rng_init(&r, 7);
	for (uint32_t slices = 1; slices < 8; slices++) {
		struct sum_codec c = { FORMAT_Q6, starts, 5 };
		size_t floats = 1000 + rng_below(&r, 1000), end = 0;

		for (size_t i = 0; i < floats; i++)
			x[i] = (float)rng_normal(&r);
		for (uint32_t j = 0; j < slices; j++) {
			size_t from, n;

			sum_codec_slice(floats, slices, j, &from, &n);
			assert_int_equal(from, end);
			end += n;
			sum_codec_encode(&c, bytes, x + from, from, n);
			sum_codec_decode(&c, y + from, bytes, from, n);
		}
		assert_int_equal(end, floats);
		assert_int_equal(sum_codec_round(&c, x, floats, slices), 0);
		same_numbers("sum_codec_round", x, y, floats);
	}
}
