/* vector_body.h - the operations of vector.h, included once by each vector_*.c.
 *
 * Reductions add into 16 lanes with every instruction set, so that all sets add in the same order.
 * Vectors have the width of the instruction set's registers. GCC 12 passes wider vectors through
 * memory, and compares them lane by lane. With vectors of 16 lanes, training a model of width 64
 * took twice the processor time on AVX2.
 */
#include <math.h>
#include <string.h>

/* This warning is about vectors in calls, but here vectors pass only between inlined functions. */
#pragma GCC diagnostic ignored "-Wpsabi"

#if defined(__AVX512F__)
enum { WIDTH = 16 };
#elif defined(__AVX2__)
enum { WIDTH = 8 };
#else
enum { WIDTH = 4 };
#endif

enum { LANES = 16, PARTS = LANES / WIDTH };

typedef float floats __attribute__((vector_size(4 * WIDTH)));
typedef int32_t ints __attribute__((vector_size(4 * WIDTH)));

/* The lanes of a reduction. Element i of a row belongs to lane i % LANES. */
struct lanes {
	floats parts[PARTS];
};

#define INLINE static inline __attribute__((always_inline))

INLINE floats splat(float x)
{
	return x - (floats){ 0 };
}

INLINE struct lanes splat_lanes(float x)
{
	struct lanes l;

	for (size_t p = 0; p < PARTS; p++)
		l.parts[p] = splat(x);
	return l;
}

/* Loads the WIDTH floats from row[i] on. Floats beyond the row's n are 0. */
INLINE floats load(const float *row, size_t i, size_t n)
{
	floats v = { 0 };

	if (i + WIDTH <= n)
		memcpy(&v, row + i, sizeof(v));
	else if (i < n)
		memcpy(&v, row + i, (n - i) * sizeof(float));
	return v;
}

/* Stores v from row[i] on, but nothing beyond the row's n numbers. */
INLINE void store(float *row, size_t i, size_t n, floats v)
{
	if (i + WIDTH <= n)
		memcpy(row + i, &v, sizeof(v));
	else if (i < n)
		memcpy(row + i, &v, (n - i) * sizeof(float));
}

INLINE floats select(ints mask, floats yes, floats no)
{
	return (floats)((mask & (ints)yes) | (~mask & (ints)no));
}

INLINE floats larger(floats a, floats b)
{
	return select(a > b, a, b);
}

INLINE float total(struct lanes l)
{
	float v[LANES];

	memcpy(v, &l, sizeof(v));
	for (int width = LANES / 2; width > 0; width /= 2)
		for (int i = 0; i < width; i++)
			v[i] += v[i + width];
	return v[0];
}

INLINE float largest(struct lanes l)
{
	float v[LANES];

	memcpy(v, &l, sizeof(v));
	for (int width = LANES / 2; width > 0; width /= 2)
		for (int i = 0; i < width; i++)
			v[i] = v[i] > v[i + width] ? v[i] : v[i + width];
	return v[0];
}

/* e^x to about 2 units in the last place: x = n ln 2 + r with |r| <= ln 2 / 2, and e^r by its
 * Taylor polynomial of degree 7. Arguments are clamped to [-87, 88], so there is neither
 * overflow nor a denormal result. */
INLINE floats exponential(floats x)
{
	/* 1.5 * 2^23: adding it rounds to a whole number */
	const floats magic = splat(12582912.0f);
	floats n, r, p;

	x = select(x < splat(-87.0f), splat(-87.0f), x);
	x = select(x > splat(88.0f), splat(88.0f), x);
	n = x * splat(1.44269504f) + magic;
	ints whole = (ints)n - (ints)magic;
	n -= magic;
	r = x - n * splat(0.693359375f); /* ln 2 in two parts, the first exact */
	r -= n * splat(-2.12194440e-4f);
	p = splat(1.0f / 5040) * r + splat(1.0f / 720);
	p = p * r + splat(1.0f / 120);
	p = p * r + splat(1.0f / 24);
	p = p * r + splat(1.0f / 6);
	p = p * r + splat(0.5f);
	p = p * r + splat(1.0f);
	p = p * r + splat(1.0f);
	return (floats)((ints)p + (whole << 23));
}

static void norm_again(float *y, const float *rstd, const float *x, const float *w, size_t rows,
		       size_t n)
{
	for (size_t r = 0; r < rows; r++) {
		const float *xr = x + r * n;
		float *yr = y + r * n, k = rstd[r];

		for (size_t i = 0; i < n; i++)
			yr[i] = xr[i] * k * w[i];
	}
}

static void norm(float *y, float *rstd, const float *x, const float *w, size_t rows, size_t n,
		 float eps)
{
	for (size_t r = 0; r < rows; r++) {
		struct lanes sum = { 0 };

		for (size_t i = 0; i < n; i += LANES)
			for (size_t p = 0; p < PARTS; p++) {
				floats v = load(x + r * n, i + p * WIDTH, n);

				sum.parts[p] += v * v;
			}
		rstd[r] = 1.0f / sqrtf(total(sum) / (float)n + eps);
	}
	norm_again(y, rstd, x, w, rows, n);
}

/* Adds the gradients of a norm. With y = x k w and k = rstd: dx = k (w dy) - x k^3 mean(w dy x). */
static void norm_backward(float *dx, float *dw, const float *dy, const float *x, const float *w,
			  const float *rstd, size_t rows, size_t n)
{
	for (size_t r = 0; r < rows; r++) {
		const float *xr = x + r * n, *dyr = dy + r * n;
		float *dxr = dx + r * n, k = rstd[r], along;
		struct lanes sum = { 0 };

		for (size_t i = 0; i < n; i += LANES)
			for (size_t p = 0; p < PARTS; p++) {
				size_t at = i + p * WIDTH;

				sum.parts[p] += load(xr, at, n) * load(dyr, at, n) * load(w, at, n);
			}
		along = total(sum) * k * k * k / (float)n;
		for (size_t i = 0; i < n; i++)
			dxr[i] += k * w[i] * dyr[i] - along * xr[i];
		if (dw)
			for (size_t i = 0; i < n; i++)
				dw[i] += dyr[i] * xr[i] * k;
	}
}

static void rotate(float *x, size_t stride, size_t rows, size_t heads, size_t half,
		   const float *cosines, const float *sines, size_t first, size_t period,
		   float sign)
{
	for (size_t r = 0; r < rows; r++) {
		size_t position = (first + r) % period;
		const float *restrict c = cosines + position * half;
		const float *restrict s = sines + position * half;

		for (size_t h = 0; h < heads; h++) {
			float *restrict a = x + r * stride + h * 2 * half;
			float *restrict b = a + half;

			for (size_t i = 0; i < half; i++) {
				float p = a[i], q = b[i], si = sign * s[i];

				a[i] = p * c[i] - q * si;
				b[i] = q * c[i] + p * si;
			}
		}
	}
}

static void swiglu(float *h, const float *gu, size_t rows, size_t f)
{
	for (size_t r = 0; r < rows; r++) {
		const float *gate = gu + r * 2 * f, *up = gate + f;

		for (size_t i = 0; i < f; i += WIDTH) {
			floats g = load(gate, i, f), u = load(up, i, f);
			floats sigma = splat(1) / (splat(1) + exponential(-g));

			store(h + r * f, i, f, g * sigma * u);
		}
	}
}

static void swiglu_backward(float *dgu, float *h, const float *dh, const float *gu, size_t rows,
			    size_t f)
{
	for (size_t r = 0; r < rows; r++) {
		const float *gate = gu + r * 2 * f, *up = gate + f;
		float *dgate = dgu + r * 2 * f, *dup = dgate + f;

		for (size_t i = 0; i < f; i += WIDTH) {
			floats g = load(gate, i, f), u = load(up, i, f);
			floats d = load(dh + r * f, i, f);
			floats sigma = splat(1) / (splat(1) + exponential(-g));
			floats silu = g * sigma;

			if (h)
				store(h + r * f, i, f, silu * u);
			store(dgate, i, f, d * u * (sigma + silu * (splat(1) - sigma)));
			store(dup, i, f, d * silu);
		}
	}
}

/* Returns a mask of the lanes, which are columns from i on: true for columns before column
 * `seen`. */
INLINE ints visible(size_t i, size_t seen)
{
	static const int32_t numbers[LANES] = {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	};
	ints lane, limit = (ints){ 0 } + (seen > i ? (int32_t)(seen - i) : 0);

	memcpy(&lane, numbers, sizeof(lane));
	return lane < limit;
}

INLINE size_t row_sees(const struct score_tile *t, size_t r)
{
	size_t seen = t->seen + r;

	return seen < t->cols ? seen : t->cols;
}

static void softmax_tile(const struct score_tile *t, float *most, float *sum, float *shrink)
{
	for (size_t r = 0; r < t->rows; r++) {
		float *s = t->scores + r * t->cols, top;
		size_t seen = row_sees(t, r);
		struct lanes high = splat_lanes(-INFINITY), add = { 0 };

		for (size_t i = 0; i < seen; i += LANES)
			for (size_t p = 0; p < PARTS; p++) {
				size_t at = i + p * WIDTH;
				floats v = load(s, at, t->cols) * splat(t->scale);

				v = select(visible(at, seen), v, splat(-INFINITY));
				high.parts[p] = larger(high.parts[p], v);
			}
		top = largest(high);
		top = top > most[r] ? top : most[r];
		for (size_t i = 0; i < t->cols; i += LANES)
			for (size_t p = 0; p < PARTS; p++) {
				size_t at = i + p * WIDTH;
				floats v = load(s, at, t->cols) * splat(t->scale);

				v = select(visible(at, seen), exponential(v - splat(top)),
					   splat(0));
				add.parts[p] += v;
				store(s, at, t->cols, v);
			}
		shrink[r] = most[r] == top ? 1 : expf(most[r] - top);
		sum[r] = sum[r] * shrink[r] + total(add);
		most[r] = top;
	}
}

static void softmax_tile_backward(const struct score_tile *t, float *dp, const float *lse,
				  const float *dot)
{
	for (size_t r = 0; r < t->rows; r++) {
		float *s = t->scores + r * t->cols, *d = dp + r * t->cols;
		size_t seen = row_sees(t, r);

		for (size_t i = 0; i < t->cols; i += WIDTH) {
			floats v = load(s, i, t->cols) * splat(t->scale);
			floats p =
				select(visible(i, seen), exponential(v - splat(lse[r])), splat(0));
			floats dv = load(d, i, t->cols) - splat(dot[r]);

			store(s, i, t->cols, p);
			store(d, i, t->cols, p * dv * splat(t->scale));
		}
	}
}

static void scale_rows(float *x, size_t stride, size_t rows, size_t n, const float *by)
{
	for (size_t r = 0; r < rows; r++)
		for (size_t i = 0; i < n; i++)
			x[r * stride + i] *= by[r];
}

static void row_dots(float *dot, const float *a, const float *b, size_t stride, size_t rows,
		     size_t n)
{
	for (size_t r = 0; r < rows; r++) {
		struct lanes sum = { 0 };

		for (size_t i = 0; i < n; i += LANES)
			for (size_t p = 0; p < PARTS; p++) {
				size_t at = i + p * WIDTH;

				sum.parts[p] +=
					load(a + r * stride, at, n) * load(b + r * stride, at, n);
			}
		dot[r] = total(sum);
	}
}

static float cross_entropy(float *logits, size_t n, int32_t target, float grad_scale)
{
	struct lanes high = splat_lanes(-INFINITY), sum = { 0 };
	float top, all, loss;

	if (target < 0) {
		if (grad_scale != 0)
			memset(logits, 0, n * sizeof(*logits));
		return 0;
	}
	for (size_t i = 0; i < n; i += LANES)
		for (size_t p = 0; p < PARTS; p++) {
			size_t at = i + p * WIDTH;
			floats v = select(visible(at, n), load(logits, at, n), splat(-INFINITY));

			high.parts[p] = larger(high.parts[p], v);
		}
	top = largest(high);
	for (size_t i = 0; i < n; i += LANES)
		for (size_t p = 0; p < PARTS; p++) {
			size_t at = i + p * WIDTH;
			floats v = exponential(load(logits, at, n) - splat(top));

			sum.parts[p] += select(visible(at, n), v, splat(0));
		}
	all = total(sum);
	loss = logf(all) - (logits[target] - top);
	if (grad_scale == 0)
		return loss;
	for (size_t i = 0; i < n; i += WIDTH) {
		floats v = exponential(load(logits, i, n) - splat(top));

		store(logits, i, n, v * splat(grad_scale / all));
	}
	logits[target] -= grad_scale;
	return loss;
}

static void from_bf16(float *to, const void *x, size_t n)
{
	const unsigned char *from = x;

	for (size_t i = 0; i < n; i++) {
		uint16_t high;
		uint32_t bits;

		memcpy(&high, from + i * sizeof(high), sizeof(high));
		bits = (uint32_t)high << 16;
		memcpy(&to[i], &bits, sizeof(bits));
	}
}

const struct vector_ops VECTOR_SET = {
	.name = VECTOR_SET_NAME,
	.norm = norm,
	.norm_again = norm_again,
	.norm_backward = norm_backward,
	.rotate = rotate,
	.swiglu = swiglu,
	.swiglu_backward = swiglu_backward,
	.softmax_tile = softmax_tile,
	.softmax_tile_backward = softmax_tile_backward,
	.scale_rows = scale_rows,
	.row_dots = row_dots,
	.cross_entropy = cross_entropy,
	.to_bf16 = EXACT(to_bf16),
	.from_bf16 = from_bf16,
	.add = EXACT(add),
	.adamw = EXACT(adamw),
	.leaves = EXACT(leaves),
	.quantise = EXACT(quantise),
	.dequantise = EXACT(dequantise),
	.channel_means = EXACT(channel_means),
};
