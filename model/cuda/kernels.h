/* kernels.h - the GPU's kernels, in what C and CUDA C++ have in common.
 *
 * device.cu compiles them for the GPU. A test compiles them as C and runs each block's threads
 * in turn between barriers, so that their arithmetic is checked on machines without a GPU too.
 * A kernel has one argument, a struct by value; every sum has a fixed order, so results are the
 * same from run to run. All arrays are row-major floats in device memory.
 *
 * Whoever includes this defines KERNEL(name, struct of arguments), DEVICE, THREAD, BLOCK_X,
 * BLOCK_Y, THREADS, BARRIER() and SHARED (floats of the block's shared memory).
 */

#include "model/cuda/kernel_args.h"

/* Sum of one value a thread over the block; SHARED holds THREADS floats, free again on return.
 */
DEVICE float block_sum(float v)
{
	float sum;

	SHARED[THREAD] = v;
	BARRIER();
	for (unsigned half = THREADS / 2; half > 0; half /= 2) {
		if (THREAD < half)
			SHARED[THREAD] += SHARED[THREAD + half];
		BARRIER();
	}
	sum = SHARED[0];
	BARRIER();
	return sum;
}

DEVICE float block_most(float v)
{
	float most;

	SHARED[THREAD] = v;
	BARRIER();
	for (unsigned half = THREADS / 2; half > 0; half /= 2) {
		if (THREAD < half)
			SHARED[THREAD] = fmaxf(SHARED[THREAD], SHARED[THREAD + half]);
		BARRIER();
	}
	most = SHARED[0];
	BARRIER();
	return most;
}

KERNEL(embed, embed_args)
{
	const float *from = a.table + (size_t)a.tokens[BLOCK_X] * a.c;

	for (unsigned i = THREAD; i < a.c; i += THREADS)
		a.out[(size_t)BLOCK_X * a.c + i] = from[i];
}

KERNEL(embed_backward, embed_backward_args)
{
	for (unsigned r = 0; r < a.rows; r++) {
		if (a.tokens[r] != (int32_t)BLOCK_X)
			continue;
		for (unsigned i = THREAD; i < a.c; i += THREADS)
			a.gradient[(size_t)BLOCK_X * a.c + i] += a.dx[(size_t)r * a.c + i];
	}
}

KERNEL(norm, norm_args)
{
	const float *x = a.x + (size_t)BLOCK_X * a.n;
	float sum = 0, k;

	if (a.again) {
		k = a.rstd[BLOCK_X];
	} else {
		for (unsigned i = THREAD; i < a.n; i += THREADS)
			sum += x[i] * x[i];
		k = 1.0f / sqrtf(block_sum(sum) / (float)a.n + a.eps);
		if (THREAD == 0)
			a.rstd[BLOCK_X] = k;
	}
	for (unsigned i = THREAD; i < a.n; i += THREADS)
		a.y[(size_t)BLOCK_X * a.n + i] = x[i] * k * a.w[i];
}

KERNEL(norm_backward, norm_backward_args)
{
	size_t at = (size_t)BLOCK_X * a.n;
	float k = a.rstd[BLOCK_X], sum = 0, along;

	for (unsigned i = THREAD; i < a.n; i += THREADS)
		sum += a.dy[at + i] * a.w[i] * a.x[at + i];
	along = block_sum(sum) * k * k * k / (float)a.n;
	for (unsigned i = THREAD; i < a.n; i += THREADS)
		a.dx[at + i] += k * a.w[i] * a.dy[at + i] - along * a.x[at + i];
}

KERNEL(norm_weight, norm_weight_args)
{
	unsigned column = BLOCK_X * COLUMNS + THREAD % COLUMNS, group = THREAD / COLUMNS;
	float sum = 0;

	for (unsigned r = group; r < a.rows && column < a.n; r += GROUPS)
		sum += a.dy[(size_t)r * a.n + column] * a.x[(size_t)r * a.n + column] *
		       a.rstd[r];
	SHARED[THREAD] = sum;
	BARRIER();
	if (group == 0 && column < a.n) {
		for (unsigned g = 1; g < GROUPS; g++)
			sum += SHARED[g * COLUMNS + THREAD];
		a.dw[column] += sum;
	}
}

KERNEL(rotate, rotate_args)
{
	unsigned position = BLOCK_X % a.period;

	for (unsigned i = THREAD; i < a.heads * a.half; i += THREADS) {
		float *p =
			a.x + (size_t)BLOCK_X * a.stride + i / a.half * 2 * a.half + i % a.half;
		float c = a.cosines[position * a.half + i % a.half];
		float s = a.sign * a.sines[position * a.half + i % a.half];
		float low = p[0], high = p[a.half];

		p[0] = low * c - high * s;
		p[a.half] = high * c + low * s;
	}
}

KERNEL(swiglu, swiglu_args)
{
	const float *gate = a.gu + (size_t)BLOCK_X * 2 * a.f;

	for (unsigned i = THREAD; i < a.f; i += THREADS) {
		float sigma = 1 / (1 + expf(-gate[i]));

		a.h[(size_t)BLOCK_X * a.f + i] = gate[i] * sigma * gate[a.f + i];
	}
}

KERNEL(swiglu_backward, swiglu_backward_args)
{
	size_t at = (size_t)BLOCK_X * 2 * a.f;

	for (unsigned i = THREAD; i < a.f; i += THREADS) {
		float g = a.gu[at + i], u = a.gu[at + a.f + i];
		float d = a.dh[(size_t)BLOCK_X * a.f + i];
		float sigma = 1 / (1 + expf(-g)), silu = g * sigma;

		if (a.h)
			a.h[(size_t)BLOCK_X * a.f + i] = silu * u;
		a.dgu[at + i] = d * u * (sigma + silu * (1 - sigma));
		a.dgu[at + a.f + i] = d * silu;
	}
}

KERNEL(cross_entropy, cross_entropy_args)
{
	float *x = a.logits + (size_t)BLOCK_X * a.vocab, most = -INFINITY, sum = 0;
	int32_t target = a.targets[BLOCK_X];

	for (unsigned i = THREAD; i < a.vocab; i += THREADS)
		most = fmaxf(most, x[i]);
	most = block_most(most);
	for (unsigned i = THREAD; i < a.vocab; i += THREADS)
		sum += expf(x[i] - most);
	sum = block_sum(sum);
	if (THREAD == 0)
		a.losses[BLOCK_X] = target < 0 ? 0 : logf(sum) - (x[target] - most);
	BARRIER(); /* the target's logit has been read */
	if (a.scale == 0)
		return;
	for (unsigned i = THREAD; i < a.vocab; i += THREADS) {
		float p = expf(x[i] - most) / sum - ((int32_t)i == target ? 1.0f : 0.0f);

		x[i] = target < 0 ? 0 : p * a.scale;
	}
}

/* Copies rows [first, first + TILE) of one head into a tile (TILE, size); rows past the end are
 * 0. */
DEVICE void load_tile(float *tile, const float *from, unsigned stride, unsigned first,
		      unsigned length, unsigned size)
{
	for (unsigned i = THREAD; i < TILE * size; i += THREADS) {
		unsigned r = i / size;

		tile[i] =
			first + r < length ? from[(size_t)(first + r) * stride + i % size] : 0;
	}
}

DEVICE float tile_dot(const float *x, const float *y, unsigned size)
{
	float sum = 0;

	for (unsigned i = 0; i < size; i++)
		sum += x[i] * y[i];
	return sum;
}

/* Block (tile of queries, sequence and head); TILE_SHARE threads a query: each has some keys of
 * a tile, and some of the output's columns. */
KERNEL(attention, attention_args)
{
	unsigned d = a.size, q0 = BLOCK_X * TILE, b = BLOCK_Y / a.heads, h = BLOCK_Y % a.heads;
	unsigned r = THREAD / TILE_SHARE, share = THREAD % TILE_SHARE, row = q0 + r;
	const float *q = a.qkv + (size_t)b * a.length * a.stride + (size_t)h * d;
	const float *k = a.qkv + (size_t)b * a.length * a.stride +
			 (size_t)(a.heads + h / (a.heads / a.kv_heads)) * d;
	const float *v = k + (size_t)a.kv_heads * d;
	float *queries = SHARED, *keys = queries + TILE * d, *values = keys + TILE * d;
	float *scores = values + TILE * d; /* (TILE, TILE) */
	float out[HEAD_MOST / TILE_SHARE], most = -INFINITY, sum = 0;

	for (unsigned i = 0; i < HEAD_MOST / TILE_SHARE; i++)
		out[i] = 0;
	load_tile(queries, q, a.stride, q0, a.length, d);
	for (unsigned k0 = 0; k0 <= q0; k0 += TILE) {
		float top = most, shrink;

		load_tile(keys, k, a.stride, k0, a.length, d);
		load_tile(values, v, a.stride, k0, a.length, d);
		BARRIER();
		for (unsigned j = share; j < TILE; j += TILE_SHARE)
			scores[r * TILE + j] =
				k0 + j <= row
					? a.scale * tile_dot(queries + r * d, keys + j * d, d)
					: -INFINITY;
		BARRIER();
		for (unsigned j = 0; j < TILE; j++)
			top = fmaxf(top, scores[r * TILE + j]);
		shrink = most == top ? 1 : expf(most - top);
		sum *= shrink;
		for (unsigned i = 0; i < HEAD_MOST / TILE_SHARE; i++)
			out[i] *= shrink;
		for (unsigned j = 0; j < TILE; j++) {
			float p = expf(scores[r * TILE + j] - top);

			sum += p;
			for (unsigned i = 0; share + i * TILE_SHARE < d; i++)
				out[i] += p * values[j * d + share + i * TILE_SHARE];
		}
		most = top;
		BARRIER();
	}
	if (row >= a.length)
		return;
	for (unsigned i = 0; share + i * TILE_SHARE < d; i++)
		a.out[((size_t)b * a.length + row) * a.heads * d + (size_t)h * d + share +
		      i * TILE_SHARE] = out[i] / sum;
	if (share == 0)
		a.lse[((size_t)b * a.heads + h) * a.length + row] = most + logf(sum);
}

KERNEL(attention_dot, attention_dot_args)
{
	unsigned b = BLOCK_X / a.length, t = BLOCK_X % a.length;

	for (unsigned h = THREAD; h < a.heads; h += THREADS) {
		size_t at = ((size_t)BLOCK_X * a.heads + h) * a.size;

		a.dot[((size_t)b * a.heads + h) * a.length + t] =
			tile_dot(a.out + at, a.dout + at, a.size);
	}
}

/* Gradient of the queries: like attention, with scores computed again from lse. */
KERNEL(attention_dq, attention_args)
{
	unsigned d = a.size, q0 = BLOCK_X * TILE, b = BLOCK_Y / a.heads, h = BLOCK_Y % a.heads;
	unsigned r = THREAD / TILE_SHARE, share = THREAD % TILE_SHARE, row = q0 + r;
	size_t begin = (size_t)b * a.length * a.stride, small;
	const float *k = a.qkv + begin + (size_t)(a.heads + h / (a.heads / a.kv_heads)) * d;
	const float *v = k + (size_t)a.kv_heads * d;
	float *queries = SHARED, *douts = queries + TILE * d, *keys = douts + TILE * d;
	float *values = keys + TILE * d, *ds = values + TILE * d; /* ds (TILE, TILE) */
	float dq[HEAD_MOST / TILE_SHARE], lse, dot;

	for (unsigned i = 0; i < HEAD_MOST / TILE_SHARE; i++)
		dq[i] = 0;
	small = ((size_t)b * a.heads + h) * a.length + (row < a.length ? row : 0);
	lse = a.lse[small];
	dot = a.dot[small];
	load_tile(queries, a.qkv + begin + (size_t)h * d, a.stride, q0, a.length, d);
	load_tile(douts, a.dout + (size_t)b * a.length * a.heads * d + (size_t)h * d,
		  a.heads * d, q0, a.length, d);
	for (unsigned k0 = 0; k0 <= q0; k0 += TILE) {
		load_tile(keys, k, a.stride, k0, a.length, d);
		load_tile(values, v, a.stride, k0, a.length, d);
		BARRIER();
		for (unsigned j = share; j < TILE; j += TILE_SHARE) {
			float s = a.scale * tile_dot(queries + r * d, keys + j * d, d);
			float dp = tile_dot(douts + r * d, values + j * d, d);

			ds[r * TILE + j] =
				k0 + j <= row ? expf(s - lse) * (dp - dot) * a.scale : 0;
		}
		BARRIER();
		for (unsigned j = 0; j < TILE; j++)
			for (unsigned i = 0; share + i * TILE_SHARE < d; i++)
				dq[i] +=
					ds[r * TILE + j] * keys[j * d + share + i * TILE_SHARE];
		BARRIER();
	}
	if (row >= a.length)
		return;
	for (unsigned i = 0; share + i * TILE_SHARE < d; i++)
		a.dqkv[begin + (size_t)row * a.stride + (size_t)h * d + share +
		       i * TILE_SHARE] = dq[i];
}

/* Gradients of keys and values. Block (tile of keys, sequence and key/value head); TILE_SHARE
 * threads a key, which goes through the queries of all heads of its group. */
KERNEL(attention_dkv, attention_args)
{
	unsigned d = a.size, k0 = BLOCK_X * TILE, b = BLOCK_Y / a.kv_heads;
	unsigned kv = BLOCK_Y % a.kv_heads, group = a.heads / a.kv_heads;
	unsigned j = THREAD / TILE_SHARE, share = THREAD % TILE_SHARE, key = k0 + j;
	size_t begin = (size_t)b * a.length * a.stride, to;
	float *keys = SHARED, *values = keys + TILE * d, *queries = values + TILE * d;
	float *douts = queries + TILE * d, *p = douts + TILE * d, *ds = p + TILE * TILE;
	float dk[HEAD_MOST / TILE_SHARE], dv[HEAD_MOST / TILE_SHARE];

	for (unsigned i = 0; i < HEAD_MOST / TILE_SHARE; i++)
		dk[i] = dv[i] = 0;
	load_tile(keys, a.qkv + begin + (size_t)(a.heads + kv) * d, a.stride, k0, a.length, d);
	load_tile(values, a.qkv + begin + (size_t)(a.heads + a.kv_heads + kv) * d, a.stride, k0,
		  a.length, d);
	for (unsigned h = kv * group; h < (kv + 1) * group; h++) {
		const float *lse = a.lse + ((size_t)b * a.heads + h) * a.length;
		const float *dot = a.dot + ((size_t)b * a.heads + h) * a.length;

		for (unsigned q0 = k0; q0 < a.length; q0 += TILE) {
			load_tile(queries, a.qkv + begin + (size_t)h * d, a.stride, q0,
				  a.length, d);
			load_tile(douts,
				  a.dout + (size_t)b * a.length * a.heads * d + (size_t)h * d,
				  a.heads * d, q0, a.length, d);
			BARRIER();
			for (unsigned r = share; r < TILE; r += TILE_SHARE) {
				unsigned row = q0 + r;
				bool seen = row < a.length && key <= row;
				float s = a.scale * tile_dot(queries + r * d, keys + j * d, d);
				float dp = tile_dot(douts + r * d, values + j * d, d);

				p[r * TILE + j] = seen ? expf(s - lse[row]) : 0;
				ds[r * TILE + j] =
					seen ? p[r * TILE + j] * (dp - dot[row]) * a.scale : 0;
			}
			/* A thread reads only columns j that its own key's threads wrote. */
			BARRIER();
			for (unsigned r = 0; r < TILE; r++)
				for (unsigned i = 0; share + i * TILE_SHARE < d; i++) {
					unsigned c = share + i * TILE_SHARE;

					dv[i] += p[r * TILE + j] * douts[r * d + c];
					dk[i] += ds[r * TILE + j] * queries[r * d + c];
				}
			BARRIER();
		}
	}
	if (key >= a.length)
		return;
	to = begin + (size_t)key * a.stride + (size_t)(a.heads + kv) * d;
	for (unsigned i = 0; share + i * TILE_SHARE < d; i++) {
		a.dqkv[to + share + i * TILE_SHARE] = dk[i];
		a.dqkv[to + (size_t)a.kv_heads * d + share + i * TILE_SHARE] = dv[i];
	}
}

KERNEL(adamw, adamw_args)
{
	size_t i = (size_t)BLOCK_X * THREADS + THREAD;
	float g, m, v;

	if (i >= a.n)
		return;
	g = a.g[i] * a.scale;
	m = a.beta1 * a.m[i] + (1 - a.beta1) * g;
	v = a.beta2 * a.v[i] + (1 - a.beta2) * g * g;
	a.m[i] = m;
	a.v[i] = v;
	a.w[i] = a.w[i] * a.keep - a.lr * (m * a.unbias1) / (sqrtf(v * a.unbias2) + a.eps);
}
