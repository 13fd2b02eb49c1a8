/* vector_body.h - the operations of vector.h, included once by each vector_*.c.
 *
 * Reductions and exponentials are written in lanes of 16 floats with the compiler's vector
 * extension, so that their order does not depend on the instruction set; the rest are loops
 * that compilers vectorise.
 */
#include <math.h>
#include <string.h>

/* This warning is about vectors in calls, but here vectors pass only between inlined functions. */
#pragma GCC diagnostic ignored "-Wpsabi"

enum { LANES = 16 };

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));

#define INLINE static inline __attribute__((always_inline))

INLINE lanes splat(float x)
{
	return x - (lanes){ 0 };
}

/* Loads up to LANES of the `left` floats that remain; further lanes are 0. */
INLINE lanes load(const float *p, size_t left)
{
	lanes v = { 0 };

	if (left >= LANES)
		memcpy(&v, p, sizeof(v));
	else
		memcpy(&v, p, left * sizeof(float));
	return v;
}

INLINE void store(float *p, lanes v, size_t left)
{
	memcpy(p, &v, left >= LANES ? sizeof(v) : left * sizeof(float));
}

INLINE lanes select(ints mask, lanes yes, lanes no)
{
	return (lanes)((mask & (ints)yes) | (~mask & (ints)no));
}

INLINE lanes larger(lanes a, lanes b)
{
	return select(a > b, a, b);
}

INLINE float total(lanes v)
{
	for (int width = LANES / 2; width > 0; width /= 2)
		for (int i = 0; i < width; i++)
			v[i] += v[i + width];
	return v[0];
}

INLINE float largest(lanes v)
{
	for (int width = LANES / 2; width > 0; width /= 2)
		for (int i = 0; i < width; i++)
			v[i] = v[i] > v[i + width] ? v[i] : v[i + width];
	return v[0];
}

/* e^x to about 2 units in the last place: x = n ln 2 + r with |r| <= ln 2 / 2, and e^r by its
 * Taylor polynomial of degree 7. Arguments are clamped to [-87, 88], so there is neither
 * overflow nor a denormal result. */
INLINE lanes exponential(lanes x)
{
	const lanes magic = splat(12582912.0f); /* 1.5 * 2^23: adding it rounds to a whole number */
	lanes n, r, p;

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
	return (lanes)((ints)p + (whole << 23));
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
		lanes sum = { 0 };

		for (size_t i = 0; i < n; i += LANES) {
			lanes v = load(x + r * n + i, n - i);

			sum += v * v;
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
		lanes sum = { 0 };

		for (size_t i = 0; i < n; i += LANES)
			sum += load(xr + i, n - i) * load(dyr + i, n - i) * load(w + i, n - i);
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

		for (size_t i = 0; i < f; i += LANES) {
			lanes g = load(gate + i, f - i), u = load(up + i, f - i);
			lanes sigma = splat(1) / (splat(1) + exponential(-g));

			store(h + r * f + i, g * sigma * u, f - i);
		}
	}
}

static void swiglu_backward(float *dgu, float *h, const float *dh, const float *gu, size_t rows,
			    size_t f)
{
	for (size_t r = 0; r < rows; r++) {
		const float *gate = gu + r * 2 * f, *up = gate + f;
		float *dgate = dgu + r * 2 * f, *dup = dgate + f;

		for (size_t i = 0; i < f; i += LANES) {
			size_t left = f - i;
			lanes g = load(gate + i, left), u = load(up + i, left);
			lanes d = load(dh + r * f + i, left);
			lanes sigma = splat(1) / (splat(1) + exponential(-g));
			lanes silu = g * sigma;

			if (h)
				store(h + r * f + i, silu * u, left);
			store(dgate + i, d * u * (sigma + silu * (splat(1) - sigma)), left);
			store(dup + i, d * silu, left);
		}
	}
}

/* Returns a mask of the lanes, which are columns from i on, that a row with `seen` visible columns
 * sees. */
INLINE ints visible(size_t i, size_t seen)
{
	ints lane = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	ints limit = (ints){ 0 } + (seen > i ? (int32_t)(seen - i) : 0);

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
		lanes high = splat(-INFINITY), add = { 0 };

		for (size_t i = 0; i < seen; i += LANES) {
			lanes v = load(s + i, t->cols - i) * splat(t->scale);

			high = larger(high, select(visible(i, seen), v, splat(-INFINITY)));
		}
		top = largest(high);
		top = top > most[r] ? top : most[r];
		for (size_t i = 0; i < t->cols; i += LANES) {
			lanes v = load(s + i, t->cols - i) * splat(t->scale);

			v = select(visible(i, seen), exponential(v - splat(top)), splat(0));
			add += v;
			store(s + i, v, t->cols - i);
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

		for (size_t i = 0; i < t->cols; i += LANES) {
			size_t left = t->cols - i;
			lanes v = load(s + i, left) * splat(t->scale);
			lanes p = select(visible(i, seen), exponential(v - splat(lse[r])),
					 splat(0));

			store(s + i, p, left);
			store(d + i, p * (load(d + i, left) - splat(dot[r])) * splat(t->scale),
			      left);
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
		lanes sum = { 0 };

		for (size_t i = 0; i < n; i += LANES)
			sum += load(a + r * stride + i, n - i) *
			       load(b + r * stride + i, n - i);
		dot[r] = total(sum);
	}
}

static float cross_entropy(float *logits, size_t n, int32_t target, float grad_scale)
{
	lanes high = splat(-INFINITY), sum = { 0 };
	float top, all, loss;

	if (target < 0) {
		if (grad_scale != 0)
			memset(logits, 0, n * sizeof(*logits));
		return 0;
	}
	for (size_t i = 0; i < n; i += LANES)
		high = larger(high,
			      select(visible(i, n), load(logits + i, n - i), splat(-INFINITY)));
	top = largest(high);
	for (size_t i = 0; i < n; i += LANES)
		sum += select(visible(i, n), exponential(load(logits + i, n - i) - splat(top)),
			      splat(0));
	all = total(sum);
	loss = logf(all) - (logits[target] - top);
	if (grad_scale == 0)
		return loss;
	for (size_t i = 0; i < n; i += LANES)
		store(logits + i,
		      exponential(load(logits + i, n - i) - splat(top)) *
			      splat(grad_scale / all),
		      n - i);
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
