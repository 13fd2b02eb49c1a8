#include "model/tests/kernel_check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "model/codec/codec.h"
#include "model/cuda/stage_cuda.h"
#include "model/cuda/trial.h"
#include "model/vector/vector.h"

enum { ROOM = 64 << 20, ALIGN = 256, ARRAYS = 32 };

/* An array of a kernel, in host memory and on the device. */
struct array {
	size_t n;
	bool bf16;
	/* (n) contents of the array before the kernel runs, and expected contents afterwards. */
	double *is;
	char *at; /* on the device */
};

struct check {
	struct device *d;
	const struct kernel_sizes *s;
	bool bf16;
	kernel_report *report;
	struct rng rng;
	char *memory;
	size_t used;
	double *held[ARRAYS];
	int n_held;
};

static uint16_t half_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float float_of_half(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static void upload(struct check *c, const struct array *a)
{
	void *host = malloc(a->n * sizeof(float));

	for (size_t i = 0; i < a->n; i++)
		if (a->bf16)
			((uint16_t *)host)[i] = half_of((float)a->is[i]);
		else
			((float *)host)[i] = (float)a->is[i];
	device_put(c->d, a->at, host, a->n * (a->bf16 ? sizeof(uint16_t) : sizeof(float)));
	/* device_put reads the host's memory until device_status has returned. */
	device_status(c->d);
	free(host);
}

/* Makes an array of random numbers, rounded to the type that the device gets. spread 0: zeros. */
static struct array array_of(struct check *c, size_t n, bool bf16, double spread)
{
	struct array a = { .n = n, .bf16 = bf16, .at = c->memory + c->used };

	c->used += (n * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
	if (c->used > ROOM || c->n_held == ARRAYS)
		abort(); /* the check has too little memory: a mistake in this program */
	a.is = c->held[c->n_held++] = calloc(n, sizeof(*a.is));
	for (size_t i = 0; i < n; i++) {
		float x = (float)(spread * rng_normal(&c->rng));

		a.is[i] = (double)(bf16 ? float_of_half(half_of(x)) : x);
	}
	upload(c, &a);
	return a;
}

static float *floats(const struct array *a)
{
	return (float *)(void *)a->at;
}

static void compare(struct check *c, const char *kernel, const struct array *a)
{
	size_t size = a->n * (a->bf16 ? sizeof(uint16_t) : sizeof(float));
	double difference = 0, norm = 0, most = c->bf16 ? 1e-2 : 1e-5;
	void *host = malloc(size);

	device_get(c->d, host, a->at, size);
	device_status(c->d);
	for (size_t i = 0; i < a->n; i++) {
		double got = a->bf16 ? (double)float_of_half(((uint16_t *)host)[i])
				     : (double)((float *)host)[i];

		difference += (got - a->is[i]) * (got - a->is[i]);
		norm += a->is[i] * a->is[i];
	}
	free(host);
	c->report(kernel, c->bf16, sqrt(difference / (norm + 1e-300)), most);
}

/* Frees all arrays for the next check. */
static void again(struct check *c)
{
	while (c->n_held > 0)
		free(c->held[--c->n_held]);
	c->used = 0;
}

static void launch_rows(struct check *c, enum device_kernel kernel, const void *args)
{
	device_launch(c->d, kernel, c->bf16, c->s->rows, 1, ROW_THREADS, ROW_THREADS, args);
}

static void launch_each(struct check *c, enum device_kernel kernel, size_t n, const void *args)
{
	device_launch(c->d, kernel, c->bf16, (n + ROW_THREADS - 1) / ROW_THREADS, 1, ROW_THREADS,
		      ROW_THREADS, args);
}

/* ---- kernels by rows ---- */

static void check_norm(struct check *c)
{
	size_t rows = c->s->rows, n = c->s->width;
	struct array x = array_of(c, rows * n, false, 1), w = array_of(c, n, false, 1);
	struct array y = array_of(c, rows * n, c->bf16, 0), rstd = array_of(c, rows, false, 0);
	struct array dy = array_of(c, rows * n, c->bf16, 1);
	struct array dx = array_of(c, rows * n, false, 1), dw = array_of(c, n, false, 1);
	struct array rounded = array_of(c, rows * n, c->bf16, 0);
	struct array again_y = array_of(c, rows * n, c->bf16, 0);
	size_t blocks = rows < NORM_PARTS ? rows : NORM_PARTS;
	struct array parts = array_of(c, blocks * n, false, 1);
	struct norm_args a = { floats(&x), floats(&w), y.at, floats(&rstd), (unsigned)n, 1e-5f };
	struct norm_backward_args b = { dy.at,          floats(&x), floats(&w), floats(&rstd),
					floats(&dx),    rounded.at, again_y.at, floats(&parts),
					(unsigned)rows, (unsigned)n };
	struct norm_sum_args sum = { floats(&parts), floats(&dw), (unsigned)blocks, (unsigned)n };

	launch_rows(c, KERNEL_NORM, &a);
	device_launch(c->d, KERNEL_NORM_BACKWARD, c->bf16, blocks, 1, ROW_THREADS, ROW_THREADS + n,
		      &b);
	device_launch(c->d, KERNEL_NORM_SUM, c->bf16, (n + COLUMNS - 1) / COLUMNS, 1,
		      COLUMNS * GROUPS, COLUMNS * GROUPS, &sum);
	for (size_t r = 0; r < rows; r++) {
		double squares = 0, along = 0, k;

		for (size_t i = r * n; i < (r + 1) * n; i++) {
			squares += x.is[i] * x.is[i];
			along += dy.is[i] * w.is[i - r * n] * x.is[i];
		}
		k = rstd.is[r] = 1 / sqrt(squares / (double)n + 1e-5);
		for (size_t i = r * n; i < (r + 1) * n; i++) {
			y.is[i] = again_y.is[i] = x.is[i] * k * w.is[i - r * n];
			dx.is[i] += k * w.is[i - r * n] * dy.is[i] -
				    along * k * k * k / (double)n * x.is[i];
			rounded.is[i] = dx.is[i];
			dw.is[i - r * n] += dy.is[i] * x.is[i] * k;
		}
	}
	compare(c, "norm", &y);
	compare(c, "norm, 1 / deviation", &rstd);
	compare(c, "norm_backward", &dx);
	compare(c, "norm_backward, rounded", &rounded);
	compare(c, "norm_backward, y again", &again_y);
	compare(c, "norm_sum", &dw);
	again(c);
}

static void check_rotate(struct check *c)
{
	size_t rows = c->s->rows, half = c->s->head_size / 2, period = rows - 1;
	size_t heads = c->s->heads, stride = (heads + 1) * 2 * half;
	struct array x = array_of(c, rows * stride, c->bf16, 1);
	struct array cosines = array_of(c, period * half, false, 1);
	struct array sines = array_of(c, period * half, false, 1);
	struct rotate_args a = { x.at,
				 floats(&cosines),
				 floats(&sines),
				 (unsigned)stride,
				 (unsigned)heads,
				 (unsigned)half,
				 (unsigned)period,
				 -1 };

	launch_rows(c, KERNEL_ROTATE, &a);
	for (size_t r = 0; r < rows; r++)
		for (size_t i = 0; i < heads * half; i++) {
			double *p = x.is + r * stride + i / half * 2 * half + i % half;
			size_t at = r % period * half + i % half;
			double low = p[0], high = p[half];

			p[0] = low * cosines.is[at] + high * sines.is[at];
			p[half] = high * cosines.is[at] - low * sines.is[at];
		}
	compare(c, "rotate", &x);
	again(c);
}

static void check_swiglu(struct check *c)
{
	size_t rows = c->s->rows, f = c->s->width;
	struct array gu = array_of(c, rows * 2 * f, c->bf16, 1);
	struct array dh = array_of(c, rows * f, c->bf16, 1);
	struct array h = array_of(c, rows * f, c->bf16, 0), h2 = array_of(c, rows * f, c->bf16, 0);
	struct array dgu = array_of(c, rows * 2 * f, c->bf16, 0);
	struct swiglu_args a = { gu.at, h.at, (unsigned)f };
	struct swiglu_backward_args b = { gu.at, dh.at, dgu.at, h2.at, (unsigned)f };

	launch_rows(c, KERNEL_SWIGLU, &a);
	launch_rows(c, KERNEL_SWIGLU_BACKWARD, &b);
	for (size_t i = 0; i < rows * f; i++) {
		size_t gate = i / f * 2 * f + i % f, up = gate + f;
		double g = gu.is[gate], sigma = 1 / (1 + exp(-g));

		h.is[i] = h2.is[i] = g * sigma * gu.is[up];
		dgu.is[gate] = dh.is[i] * gu.is[up] * (sigma + g * sigma * (1 - sigma));
		dgu.is[up] = dh.is[i] * g * sigma;
	}
	compare(c, "swiglu", &h);
	compare(c, "swiglu_backward", &dgu);
	compare(c, "swiglu_backward, h again", &h2);
	again(c);
}

/* Checks the loss and the gradient of the logits. rounded: the logits have the type of their
 * gradient, which overwrites them. */
static void check_cross_entropy(struct check *c, bool rounded)
{
	size_t rows = c->s->rows, v = c->s->width;
	struct array logits = array_of(c, rows * v, rounded && c->bf16, 3);
	struct array g = array_of(c, rows * v, c->bf16, 0), losses = array_of(c, rows, false, 0);
	struct array room = array_of(c, rows, false, 0);
	int32_t *targets = calloc(rows, sizeof(*targets));
	struct array scale = array_of(c, 1, false, 0);
	struct cross_entropy_args a = { logits.at,       g.at,           (int32_t *)(void *)room.at,
					floats(&losses), floats(&scale), (unsigned)v,
					(unsigned)v,     rounded };

	scale.is[0] = 0.25;
	upload(c, &scale);
	if (rounded)
		a.gradient = g.at = logits.at;
	for (size_t r = 0; r < rows; r++) {
		double sum = 0;

		targets[r] = r == 1 ? -1 : (int32_t)rng_below(&c->rng, (uint32_t)v);
		for (size_t i = 0; i < v; i++)
			sum += exp(logits.is[r * v + i]);
		if (r == 1)
			continue;
		losses.is[r] = log(sum) - logits.is[r * v + (size_t)targets[r]];
		for (size_t i = 0; i < v; i++)
			g.is[r * v + i] = 0.25 * (exp(logits.is[r * v + i]) / sum -
						  (i == (size_t)targets[r]));
	}
	device_put(c->d, room.at, targets, rows * sizeof(*targets));
	device_launch(c->d, KERNEL_CROSS_ENTROPY, c->bf16, rows, 1, LOSS_THREADS, LOSS_THREADS, &a);
	compare(c, "cross_entropy", &losses);
	compare(c, "cross_entropy, gradient", &g);
	free(targets);
	again(c);
}

static void check_embed(struct check *c)
{
	size_t rows = c->s->rows, n = c->s->width, vocab = 7;
	struct array table = array_of(c, vocab * n, false, 1),
		     out = array_of(c, rows * n, false, 0);
	struct array dx = array_of(c, rows * n, false, 1), g = array_of(c, vocab * n, false, 1);
	struct array room = array_of(c, 2 * rows, false, 0);
	int32_t *tokens = calloc(2 * rows, sizeof(*tokens)), *at = (int32_t *)(void *)room.at;
	int32_t *order = tokens + rows;
	struct embed_args a = { at, floats(&table), floats(&out), (unsigned)n };
	struct embed_backward_args b = { at,         at + rows,      floats(&dx),
					 floats(&g), (unsigned)rows, (unsigned)n };

	for (size_t i = 0; i < rows * n; i++) {
		size_t token = i / n % vocab;

		tokens[i / n] = (int32_t)token;
		out.is[i] = table.is[token * n + i % n];
		g.is[token * n + i % n] += dx.is[i];
	}
	for (size_t token = 0, i = 0; token < vocab; token++)
		for (size_t r = token; r < rows; r += vocab)
			order[i++] = (int32_t)r;
	device_put(c->d, at, tokens, 2 * rows * sizeof(*tokens));
	launch_rows(c, KERNEL_EMBED, &a);
	device_launch(c->d, KERNEL_EMBED_BACKWARD, c->bf16, rows,
		      (n + ROW_THREADS - 1) / ROW_THREADS, ROW_THREADS, ROW_THREADS, &b);
	compare(c, "embed", &out);
	compare(c, "embed_backward", &g);
	free(tokens);
	again(c);
}

/* ---- kernels by element ---- */

static void check_adamw(struct check *c)
{
	size_t n = c->s->rows * c->s->width;
	struct array w = array_of(c, n, false, 1), m = array_of(c, n, false, 0.1);
	struct array v = array_of(c, n, false, 0.1), g = array_of(c, n, false, 1);
	struct adamw_args a = { .w = floats(&w),
				.m = floats(&m),
				.v = floats(&v),
				.g = floats(&g),
				.n = n,
				.f = { .scale = 0.5f,
				       .beta1 = 0.9f,
				       .beta2 = 0.95f,
				       .rest1 = 1 - 0.9f,
				       .rest2 = 1 - 0.95f,
				       .unbias1 = 1.1f,
				       .unbias2 = 1.2f,
				       .lr = 0.01f,
				       .eps = 1e-8f,
				       .keep = 0.999f } };

	for (size_t i = 0; i < n; i++) {
		double gi = g.is[i] * 0.5;

		v.is[i] = fabs(v.is[i]);
		m.is[i] = (double)0.9f * m.is[i] + (1 - (double)0.9f) * gi;
		g.is[i] = gi;
	}
	upload(c, &v);
	launch_each(c, KERNEL_ADAMW, n, &a);
	for (size_t i = 0; i < n; i++) {
		v.is[i] = (double)0.95f * v.is[i] + (1 - (double)0.95f) * g.is[i] * g.is[i];
		w.is[i] = w.is[i] * (double)0.999f - (double)0.01f * m.is[i] * (double)1.1f /
							     (sqrt(v.is[i] * (double)1.2f) + 1e-8);
	}
	compare(c, "adamw", &w);
	compare(c, "adamw, first moment", &m);
	compare(c, "adamw, second moment", &v);
	again(c);
}

/* The sums of blocks must have the same bits as on the CPU. */
static void check_squares(struct check *c)
{
	size_t n = c->s->rows * c->s->width, blocks = squares_blocks(n);
	struct array x = array_of(c, n, false, 1);
	struct array room = array_of(c, 2 * blocks, false, 0);
	struct squares_args a = { floats(&x), (double *)(void *)room.at, n };
	double *sums = calloc(2 * blocks, sizeof(*sums));
	float *same = calloc(n, sizeof(*same));
	size_t threads = blocks * SQUARES_LANES;

	device_launch(c->d, KERNEL_SQUARES, c->bf16, (threads + ROW_THREADS - 1) / ROW_THREADS, 1,
		      ROW_THREADS, 2 * ROW_THREADS, &a);
	device_get(c->d, sums, room.at, blocks * sizeof(*sums));
	device_status(c->d);
	for (size_t i = 0; i < n; i++)
		same[i] = (float)x.is[i];
	squares_of_blocks(sums + blocks, same, n);
	c->report("squares", c->bf16, memcmp(sums, sums + blocks, blocks * sizeof(*sums)) ? 1 : 0,
		  0);
	free(same);
	free(sums);
	again(c);
}

static void check_add(struct check *c)
{
	size_t n = c->s->rows * c->s->width;
	struct array to = array_of(c, n, false, 1), from = array_of(c, n, false, 1);
	struct add_args a = { floats(&to), floats(&from), n };

	launch_each(c, KERNEL_ADD, n, &a);
	for (size_t i = 0; i < n; i++)
		to.is[i] = (double)((float)to.is[i] + (float)from.is[i]);
	compare(c, "add", &to);
	again(c);
}

static void check_cast(struct check *c)
{
	size_t n = c->s->rows * c->s->width + 3;
	struct array x = array_of(c, n, false, 1), y = array_of(c, n, c->bf16, 0);
	struct cast_args a = { floats(&x), y.at, n };

	launch_each(c, KERNEL_CAST, (n + 7) / 8, &a);
	memcpy(y.is, x.is, n * sizeof(*y.is));
	compare(c, "cast", &y);
	again(c);
}

/* Compares encoded bytes and decoded numbers with those of the CPU's codec, for activations and for
 * sums. */
static void check_codec_form(struct check *c, unsigned bits, unsigned group, bool with_means)
{
	size_t rows = c->s->rows, width = c->s->width, n = rows * width;
	size_t means = with_means ? 2 * width : 0, bytes = means + 4 * n;
	struct array x = array_of(c, n, false, 1), room = array_of(c, (bytes + 3) / 4, false, 0);
	unsigned char *got = calloc(bytes, 1), *want = calloc(bytes, 1);
	uint16_t *at = (uint16_t *)(void *)room.at;
	struct quantiser q = { bits, group, with_means ? want : NULL, width };
	struct channel_means_args m = { floats(&x), at, rows, width };
	struct codec_args a = { floats(&x),
				(uint8_t *)(void *)room.at + means,
				with_means ? at : NULL,
				n,
				width,
				bits,
				group };
	float *y = calloc(n, sizeof(*y)), *z = calloc(n, sizeof(*z));
	size_t groups = (n + group - 1) / group, differing = 0;

	for (size_t i = 0; i < n; i++)
		y[i] = (float)x.is[i];
	if (with_means)
		vector_ops()->channel_means(want, y, rows, width);
	vector_ops()->quantise(want + means, y, n, &q);
	vector_ops()->dequantise(y, want + means, n, &q);
	device_clear(c->d, room.at, (bytes + 3) / 4 * 4);
	if (with_means)
		launch_each(c, KERNEL_CHANNEL_MEANS, width, &m);
	launch_each(c, KERNEL_QUANTISE, groups, &a);
	launch_each(c, KERNEL_DEQUANTISE, groups, &a);
	device_get(c->d, got, room.at, bytes);
	device_get(c->d, z, x.at, n * sizeof(*z));
	device_status(c->d);
	for (size_t i = 0; i < bytes; i++)
		differing += got[i] != want[i];
	for (size_t i = 0; i < n; i++)
		differing += memcmp(&y[i], &z[i], sizeof(*y)) != 0;
	c->report("codec, differing bytes and numbers", c->bf16, (double)differing, 0);
	free(got);
	free(want);
	free(y);
	free(z);
	again(c);
}

/* Compares the kernels that encode and decode bf16 with the CPU's codec, for numbers of all
 * kinds. */
static void check_bf16_codec(struct check *c)
{
	static const uint32_t bits[] = { 0x7f800000, 0xff800000, 0x7fc00000, 0xffa00001,
					 0x7f7fffff, 0xff7fffff, 0x00000001, 0x807fffff,
					 0x80000000, 0x3f808000, 0x3f818000, 0x3f808001 };
	size_t n = c->s->rows * c->s->width + 3, differing = 0;
	struct array x = array_of(c, n, false, 1), to = array_of(c, n, true, 0);
	struct codec codec = { .format = FORMAT_BF16 };
	struct codec_args a = { .x = floats(&x), .bytes = (uint8_t *)(void *)to.at, .n = n };
	uint16_t *got = calloc(n, sizeof(*got)), *want = calloc(n, sizeof(*want));
	float *y = calloc(n, sizeof(*y)), *z = calloc(n, sizeof(*z));

	for (size_t i = 0; i < n; i++)
		y[i] = (float)x.is[i];
	memcpy(y, bits, sizeof(bits));
	device_put(c->d, x.at, y, n * sizeof(*y));
	codec_encode(&codec, want, y, n);
	codec_decode(&codec, y, want, n);
	launch_each(c, KERNEL_BF16_ENCODE, n, &a);
	launch_each(c, KERNEL_BF16_DECODE, n, &a);
	device_get(c->d, got, to.at, n * sizeof(*got));
	device_get(c->d, z, x.at, n * sizeof(*z));
	device_status(c->d);
	for (size_t i = 0; i < n; i++)
		differing += got[i] != want[i] || memcmp(&y[i], &z[i], sizeof(*y)) != 0;
	c->report("codec in bf16, differing numbers", c->bf16, (double)differing, 0);
	free(got);
	free(want);
	free(y);
	free(z);
	again(c);
}

static void check_codec(struct check *c)
{
	check_bf16_codec(c);
	check_codec_form(c, 8, 32, true);
	check_codec_form(c, 6, 32, true);
	check_codec_form(c, 6, 32, false);
	check_codec_form(c, 8, 128, false);
	check_codec_form(c, 6, 128, false);
	check_codec_form(c, 4, 128, false);
}

/* ---- attention ---- */

struct heads {
	const struct kernel_sizes *s;
	size_t stride; /* numbers between two rows of qkv */
	const double *qkv;
	double scale;
};

static const double *row_of(const struct heads *h, size_t b, size_t t, size_t head)
{
	return h->qkv + (b * h->s->length + t) * h->stride + head * h->s->head_size;
}

static double dot(const double *a, const double *b, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Computes the probabilities of query t over keys 0 .. t. Returns the logarithm of the sum. */
static double attend(const struct heads *h, size_t b, size_t head, size_t t, double *p)
{
	size_t kv = h->s->heads + head / (h->s->heads / h->s->kv_heads);
	double sum = 0;

	for (size_t j = 0; j <= t; j++) {
		p[j] = exp(h->scale *
			   dot(row_of(h, b, t, head), row_of(h, b, j, kv), h->s->head_size));
		sum += p[j];
	}
	for (size_t j = 0; j <= t; j++)
		p[j] /= sum;
	return log(sum);
}

/* Computes one query's output, and from dout adds its part to dqkv. */
static void attention_row(const struct heads *h, size_t b, size_t head, size_t t, double *p,
			  double *out, const double *dout, double *dqkv)
{
	size_t d = h->s->head_size, key = h->s->heads + head / (h->s->heads / h->s->kv_heads);
	size_t value = key + h->s->kv_heads;
	double along;

	for (size_t j = 0; j <= t; j++)
		for (size_t i = 0; i < d; i++)
			out[i] += p[j] * row_of(h, b, j, value)[i];
	along = dot(out, dout, d);
	for (size_t j = 0; j <= t; j++) {
		double dp = dot(dout, row_of(h, b, j, value), d);
		double ds = p[j] * (dp - along) * h->scale;
		double *dq = dqkv + (row_of(h, b, t, head) - h->qkv);
		double *dk = dqkv + (row_of(h, b, j, key) - h->qkv);
		double *dv = dqkv + (row_of(h, b, j, value) - h->qkv);

		for (size_t i = 0; i < d; i++) {
			dq[i] += ds * row_of(h, b, j, key)[i];
			dk[i] += ds * row_of(h, b, t, head)[i];
			dv[i] += p[j] * dout[i];
		}
	}
}

/* Arrays of attention. */
struct attention {
	struct array qkv, dout, out, lse, dots, dqkv;
	struct heads h;
};

static struct attention attention_of(struct check *c)
{
	const struct kernel_sizes *s = c->s;
	size_t d = s->head_size, rows = (size_t)s->batch * s->length, small = rows * s->heads;
	size_t stride = (s->heads + 2 * s->kv_heads) * d;
	struct attention x = {
		.qkv = array_of(c, rows * stride, c->bf16, 1),
		.dout = array_of(c, small * d, c->bf16, 1),
		.out = array_of(c, small * d, c->bf16, 0),
		.lse = array_of(c, small, false, 0),
		.dots = array_of(c, small, false, 0),
		.dqkv = array_of(c, rows * stride, c->bf16, 0),
	};

	x.h = (struct heads){ s, stride, x.qkv.is, 1 / sqrt((double)d) };
	return x;
}

/* Runs both passes of the program's kernels. */
static void run_kernels(struct check *c, const struct attention *x)
{
	const struct kernel_sizes *s = c->s;
	struct attention_args a = { .qkv = x->qkv.at,
				    .out = x->out.at,
				    .lse = floats(&x->lse),
				    .dout = x->dout.at,
				    .dot = floats(&x->dots),
				    .dqkv = x->dqkv.at,
				    .length = s->length,
				    .heads = s->heads,
				    .kv_heads = s->kv_heads,
				    .size = s->head_size,
				    .stride = (unsigned)x->h.stride,
				    .scale = (float)x->h.scale,
				    .buffers = 1 };
	struct attention_dot_args dot = { x->out.at, x->dout.at, floats(&x->dots),
					  s->length, s->heads,   s->head_size };

	attention_start(c->d, KERNEL_ATTENTION, c->bf16, s->batch, &a);
	device_launch(c->d, KERNEL_ATTENTION_DOT, c->bf16, (size_t)s->batch * s->length, 1,
		      ROW_THREADS, ROW_THREADS, &dot);
	attention_start(c->d, KERNEL_ATTENTION_DQ, c->bf16, s->batch, &a);
	attention_start(c->d, KERNEL_ATTENTION_DKV, c->bf16, s->batch, &a);
}

/* Runs both passes of cuDNN's attention. -ENOTSUP: cuDNN has no code for the shape. */
static int run_cudnn(struct check *c, const struct attention *x, struct error *err)
{
	const struct kernel_sizes *s = c->s;
	const struct cudnn_shape shape = { s->batch,    s->length,    s->heads,
					   s->kv_heads, s->head_size, (int64_t)x->h.stride };
	struct cudnn_arrays a = { .qkv = x->qkv.at,
				  .dout = x->dout.at,
				  .out = x->out.at,
				  .lse = x->lse.at,
				  .dot = x->dots.at,
				  .dqkv = x->dqkv.at,
				  .scale = (float)x->h.scale };
	size_t bytes;
	int rc = device_plan_attention(c->d, &shape, &bytes, err);

	if (rc == 0)
		rc = device_allocate(c->d, bytes, 0, &a.workspace, err);
	if (rc != 0)
		return rc;
	device_attention(c->d, CUDNN_FORWARD, &a);
	device_attention(c->d, CUDNN_BACKWARD, &a);
	return 0;
}

/* Computes the expected results. */
static void expect_attention(struct check *c, struct attention *x)
{
	const struct kernel_sizes *s = c->s;
	double *p = calloc(s->length, sizeof(*p));

	for (size_t i = 0; i < x->lse.n; i++) {
		size_t b = i / s->length / s->heads, head = i / s->length % s->heads;
		size_t t = i % s->length;
		size_t at = ((b * s->length + t) * s->heads + head) * s->head_size;

		x->lse.is[i] = attend(&x->h, b, head, t, p);
		attention_row(&x->h, b, head, t, p, x->out.is + at, x->dout.is + at, x->dqkv.is);
		x->dots.is[i] = dot(x->out.is + at, x->dout.is + at, s->head_size);
	}
	free(p);
}

static void check_attention(struct check *c)
{
	struct attention x = attention_of(c);

	run_kernels(c, &x);
	expect_attention(c, &x);
	compare(c, "attention", &x.out);
	compare(c, "attention, log of sums", &x.lse);
	compare(c, "attention_dot", &x.dots);
	compare(c, "attention_dq and dkv", &x.dqkv);
	again(c);
}

/* Makes all scores about -120: less than the logarithm of the smallest float. According to bug
 * reports, cuDNN computed NaN from such scores, for keys beyond the last key. */
static void lower_scores(struct check *c, struct attention *x)
{
	const size_t d = c->s->head_size, queries = c->s->heads;
	const size_t keys = queries + c->s->kv_heads;
	const float low = -120 * sqrtf((float)d);

	for (size_t row = 0; row < x->qkv.n; row += x->h.stride)
		for (size_t head = 0; head < keys; head++)
			x->qkv.is[row + head * d] =
				head < queries ? 1 : (double)float_of_half(half_of(low));
	upload(c, &x->qkv);
}

/* Reports how many numbers are not finite. */
static void check_finite(struct check *c, const char *what, const struct array *a)
{
	uint16_t *host = malloc(a->n * sizeof(*host));
	double n = 0;

	device_get(c->d, host, a->at, a->n * sizeof(*host));
	device_status(c->d);
	for (size_t i = 0; i < a->n; i++)
		n += (host[i] & 0x7f80) == 0x7f80;
	free(host);
	c->report(what, c->bf16, n, 0.5);
}

/* Compares cuDNN's attention, if it was chosen (trial.h). A shape for which cuDNN has no code is
 * left out, as a stage with this shape does not start. */
static int check_cudnn(struct check *c, struct error *err)
{
	unsigned trials = 0;
	int rc = trial_read(&trials, err);
	struct attention x;

	if (rc != 0 || !c->bf16 || !(trials & TRIAL_ATTENTION))
		return rc;
	x = attention_of(c);
	rc = run_cudnn(c, &x, err);
	if (rc == 0) {
		expect_attention(c, &x);
		compare(c, "cuDNN's attention", &x.out);
		compare(c, "cuDNN's attention, log of sums", &x.lse);
		compare(c, "cuDNN's attention, gradient", &x.dqkv);
		again(c);
		x = attention_of(c);
		lower_scores(c, &x);
		rc = run_cudnn(c, &x, err);
	}
	if (rc == 0)
		check_finite(c, "cuDNN's attention, gradient for low scores", &x.dqkv);
	again(c);
	return rc == -ENOTSUP ? 0 : rc;
}

/* ---- products ---- */

enum addition { ADD_NOTHING, ADD_TO_ITSELF, ADD_ANOTHER };

static void check_product(struct check *c, enum device_product_kind kind, enum addition add)
{
	static const char *const names[] = { "product nt", "product nn", "product tn" };
	size_t m = c->s->rows, n = c->s->width, k = c->s->head_size;
	bool tn = kind == PRODUCT_TN, nt = kind == PRODUCT_NT;
	bool c_bf16 = c->bf16 && add == ADD_NOTHING;
	struct array a = array_of(c, m * k, c->bf16, 1), b = array_of(c, k * n, c->bf16, 1);
	struct array to = array_of(c, m * n, c_bf16, 1), other = array_of(c, m * n, false, 1);
	const struct array *added = add == ADD_ANOTHER ? &other : &to;
	struct device_product p = { kind,
				    m,
				    n,
				    k,
				    a.at,
				    b.at,
				    to.at,
				    tn ? m : k,
				    nt ? k : n,
				    n,
				    c->bf16,
				    c_bf16,
				    add == ADD_NOTHING ? NULL : added->at };

	device_product(c->d, &p);
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			double sum = add == ADD_NOTHING ? 0 : added->is[i * n + j];

			for (size_t l = 0; l < k; l++)
				sum += a.is[tn ? l * m + i : i * k + l] *
				       b.is[nt ? j * k + l : l * n + j];
			to.is[i * n + j] = sum;
		}
	compare(c, names[kind], &to);
	again(c);
}

static void check_kernels(struct check *c)
{
	check_norm(c);
	check_rotate(c);
	check_swiglu(c);
	check_cross_entropy(c, false);
	check_cross_entropy(c, true);
	check_embed(c);
	check_adamw(c);
	check_squares(c);
	check_add(c);
	check_cast(c);
	check_codec(c);
	check_attention(c);
	for (int kind = PRODUCT_NT; kind <= PRODUCT_TN; kind++)
		for (int add = ADD_NOTHING; add <= ADD_ANOTHER; add++)
			check_product(c, (enum device_product_kind)kind, (enum addition)add);
}

int kernel_check(const struct kernel_sizes *s, bool bf16, kernel_report *report, struct error *err)
{
	struct check c = { .s = s, .bf16 = bf16, .report = report };
	void *memory;
	int rc = device_open(&c.d, 0, true, err);

	if (rc)
		return rc;
	rng_init(&c.rng, 11);
	if (s->shared)
		device_limit_shared(c.d, s->shared);
	rc = device_allocate(c.d, ROOM, 0, &memory, err);
	if (!rc) {
		c.memory = memory;
		check_kernels(&c);
		rc = check_cudnn(&c, err);
	}
	if (!rc && (rc = device_status(c.d)) != 0)
		error_set(err, rc, "%s", device_failure(c.d));
	device_close(c.d);
	return rc;
}
