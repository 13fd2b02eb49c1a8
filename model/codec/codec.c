/* Encodes and decodes tensors with the kernels of the instruction set in use; all sets give the
 * same bits. */
#include "model/codec/codec.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/tensor.h"
#include "model/vector/vector.h"

/* Numbers of a real training are smaller than this. A tensor from outside with a larger number is
 * refused. */
static const float absurd = 1e9f;

enum { CHECKED = 1024 }; /* number of floats that are checked together */

struct codec codec_of_activation(enum tensor_format format, uint32_t channels)
{
	return (struct codec){ format, FORMAT_ACTIVATION_GROUP,
			       tensor_format_bits(format) ? channels : 0 };
}

struct codec codec_of_gradient(enum tensor_format format)
{
	return (struct codec){ format, FORMAT_ACTIVATION_GROUP, 0 };
}

/* Returns the size in bytes of the means, which precede the groups. */
static size_t means_bytes(const struct codec *c)
{
	return (size_t)c->channels * FORMAT_SCALE_BYTES;
}

size_t codec_bytes(const struct codec *c, size_t n)
{
	return means_bytes(c) + tensor_format_bytes(c->format, n, c->group);
}

static struct quantiser quantiser_of(const struct codec *c, const void *encoded)
{
	return (struct quantiser){ .bits = tensor_format_bits(c->format),
				   .group = c->group,
				   .means = c->channels ? encoded : NULL,
				   .channels = c->channels };
}

void codec_encode(const struct codec *c, void *to, const float *x, size_t n)
{
	const struct vector_ops *ops = vector_ops();
	struct quantiser q = quantiser_of(c, to);

	if (c->format == FORMAT_FP32) {
		memcpy(to, x, n * sizeof(*x));
		return;
	}
	if (c->format == FORMAT_BF16) {
		ops->to_bf16(to, x, n, 1, n);
		return;
	}
	if (c->channels)
		ops->channel_means(to, x, n / c->channels, c->channels);
	ops->quantise((unsigned char *)to + means_bytes(c), x, n, &q);
}

void codec_decode(const struct codec *c, float *to, const void *from, size_t n)
{
	struct quantiser q = quantiser_of(c, from);

	if (c->format == FORMAT_FP32)
		memcpy(to, from, n * sizeof(*to));
	else if (c->format == FORMAT_BF16)
		vector_ops()->from_bf16(to, from, n);
	else
		vector_ops()->dequantise(to, (const unsigned char *)from + means_bytes(c), n, &q);
}

/* ---- bytes from outside ---- */

static bool floats_are_plausible(const unsigned char *from, size_t n)
{
	float x[CHECKED]; /* a block of fixed size, so that the compiler uses vectors */
	int absurd_ones;

	for (; n >= CHECKED; n -= CHECKED, from += sizeof(x)) {
		memcpy(x, from, sizeof(x));
		absurd_ones = 0;
		for (size_t i = 0; i < CHECKED; i++)
			absurd_ones |= !(fabsf(x[i]) < absurd);
		if (absurd_ones)
			return false;
	}
	memcpy(x, from, n * sizeof(*x));
	for (size_t i = 0; i < n; i++)
		if (!(fabsf(x[i]) < absurd))
			return false;
	return true;
}

/* Returns true if n bf16 numbers, `stride` bytes apart, are all smaller than `most` in magnitude.
 * If may_be_negative is false, a negative number makes the result false, too. */
static bool halves_are_plausible(const unsigned char *from, size_t stride, size_t n, float most,
				 bool may_be_negative)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t half;
		uint32_t bits;
		float x;

		memcpy(&half, from + i * stride, sizeof(half));
		bits = (uint32_t)half << 16;
		memcpy(&x, &bits, sizeof(x));
		if (!(fabsf(x) < most) || (signbit(x) && !may_be_negative))
			return false;
	}
	return true;
}

bool codec_is_plausible(const struct codec *c, const void *from, size_t n)
{
	unsigned bits = tensor_format_bits(c->format);
	size_t means = means_bytes(c);

	if (c->format == FORMAT_FP32)
		return floats_are_plausible(from, n);
	if (c->format == FORMAT_BF16)
		return halves_are_plausible(from, sizeof(uint16_t), n, absurd, true);
	/* A code is at most 2^(bits - 1), so a limit on the scales also limits the decoded
	 * numbers. */
	return halves_are_plausible(from, FORMAT_SCALE_BYTES, c->channels, absurd, true) &&
	       halves_are_plausible((const unsigned char *)from + means,
				    tensor_format_bytes(c->format, c->group, c->group),
				    (n + c->group - 1) / c->group,
				    absurd / (float)(1 << (bits - 1)), false);
}

/* ---- rounding to the numbers that a receiver decodes ---- */

int codec_round(const struct codec *c, float *x, size_t n)
{
	void *bytes;

	if (c->format == FORMAT_FP32)
		return 0;
	bytes = malloc(codec_bytes(c, n) + 1);
	if (!bytes)
		return -ENOMEM;
	codec_encode(c, bytes, x, n);
	codec_decode(c, x, bytes, n);
	free(bytes);
	return 0;
}

double codec_snr_db(const struct codec *c, const void *encoded, const float *x, size_t n)
{
	float *y = malloc(n * sizeof(*y));
	double signal = 0, noise = 0;

	if (!y)
		return 0;
	codec_decode(c, y, encoded, n);
	for (size_t i = 0; i < n; i++) {
		double error = (double)y[i] - (double)x[i];

		signal += (double)x[i] * (double)x[i];
		noise += error * error;
	}
	free(y);
	return signal > 0 && noise > 0 && isfinite(signal) && isfinite(noise)
		       ? 10 * log10(signal / noise)
		       : 0;
}

/* ---- sums ---- */

/* The numbers of one tensor that lie within a given range of the stage's parameters. */
struct part {
	size_t from, n;
};

struct codec codec_of_sum(const struct sum_codec *c)
{
	return (struct codec){ c->format, FORMAT_SUM_GROUP, 0 };
}

/* Returns the part from `from` to the end of its tensor, or to `end` if that comes first. */
static struct part part_at(const struct sum_codec *c, size_t from, size_t end)
{
	size_t low = 0, high = c->n;

	while (high - low > 1) { /* the loop keeps starts[low] <= from < starts[high] */
		size_t middle = low + (high - low) / 2;

		if (c->starts[middle] <= from)
			low = middle;
		else
			high = middle;
	}
	if (high < c->n && c->starts[high] < end)
		end = c->starts[high];
	return (struct part){ from, end - from };
}

size_t sum_codec_cut(const struct sum_codec *c, size_t from, size_t n, size_t most,
		     struct sum_block **out)
{
	struct codec one = codec_of_sum(c);
	size_t at = 0, count = 0, room = n / most + 2 * c->n + 2;
	struct sum_block *blocks = alloc_array(room, sizeof(*blocks));

	for (struct part p = { from, 0 }; p.from < from + n; p.from += p.n) {
		p = part_at(c, p.from, from + n);
		if (p.n > most)
			p.n = most;
		assert(count < room);
		blocks[count++] = (struct sum_block){ p.from, p.n, at };
		at += codec_bytes(&one, p.n);
	}
	*out = blocks;
	return count;
}

size_t sum_codec_bytes(const struct sum_codec *c, size_t from, size_t n)
{
	struct codec one = codec_of_sum(c);
	size_t bytes = 0;

	for (struct part p = { from, 0 }; p.from < from + n; p.from += p.n) {
		p = part_at(c, p.from, from + n);
		bytes += codec_bytes(&one, p.n);
	}
	return bytes;
}

void sum_codec_encode(const struct sum_codec *c, void *to, const float *x, size_t from, size_t n)
{
	struct codec one = codec_of_sum(c);
	unsigned char *at = to;

	for (struct part p = { from, 0 }; p.from < from + n; p.from += p.n) {
		p = part_at(c, p.from, from + n);
		codec_encode(&one, at, x + (p.from - from), p.n);
		at += codec_bytes(&one, p.n);
	}
}

void sum_codec_decode(const struct sum_codec *c, float *to, const void *encoded, size_t from,
		      size_t n)
{
	struct codec one = codec_of_sum(c);
	const unsigned char *at = encoded;

	for (struct part p = { from, 0 }; p.from < from + n; p.from += p.n) {
		p = part_at(c, p.from, from + n);
		codec_decode(&one, to + (p.from - from), at, p.n);
		at += codec_bytes(&one, p.n);
	}
}

bool sum_codec_is_plausible(const struct sum_codec *c, const void *encoded, size_t from, size_t n)
{
	struct codec one = codec_of_sum(c);
	const unsigned char *at = encoded;

	for (struct part p = { from, 0 }; p.from < from + n; p.from += p.n) {
		p = part_at(c, p.from, from + n);
		if (!codec_is_plausible(&one, at, p.n))
			return false;
		at += codec_bytes(&one, p.n);
	}
	return true;
}

void sum_codec_slice(size_t floats, uint32_t slices, uint32_t j, size_t *from, size_t *n)
{
	*from = floats * j / slices;
	*n = floats * (j + 1) / slices - *from;
}

int sum_codec_round(const struct sum_codec *c, float *x, size_t floats, uint32_t slices)
{
	struct codec one = codec_of_sum(c);
	int rc = 0;

	for (uint32_t j = 0; c->format != FORMAT_FP32 && j < slices; j++) {
		size_t from, n;

		sum_codec_slice(floats, slices, j, &from, &n);
		for (struct part p = { from, 0 }; rc == 0 && p.from < from + n; p.from += p.n) {
			p = part_at(c, p.from, from + n);
			rc = codec_round(&one, x + p.from, p.n);
		}
	}
	return rc;
}

int sum_codecs_new(struct sum_codec **out, const struct model_config *model,
		   enum tensor_format format, struct error *err)
{
	struct sum_codec *codecs;
	struct tensor_table table;
	size_t *starts;
	int rc = tensor_table_new(&table, model, err);

	if (rc)
		return rc;
	codecs = alloc_array(model->n_stages, sizeof(codecs[0]));
	/* codecs[0] owns this array, which the codecs of all stages share. */
	starts = alloc_array(table.n, sizeof(starts[0]));
	for (uint32_t s = 0; s < model->n_stages; s++)
		codecs[s] = (struct sum_codec){ .format = format, .starts = starts };
	for (size_t i = 0; i < table.n; i++) {
		struct sum_codec *c = &codecs[table.tensors[i].stage];

		if (c->n++ == 0)
			c->starts = starts + i;
		starts[i] = table.tensors[i].offset;
	}
	tensor_table_free(&table);
	*out = codecs;
	return 0;
}

void sum_codecs_free(struct sum_codec *codecs)
{
	if (codecs)
		free((void *)(uintptr_t)codecs[0].starts);
	free(codecs);
}
