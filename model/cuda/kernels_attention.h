/* kernels_attention.h - attention in float, without tensor cores. Part of kernels.h. */

/* Copies rows [first, first + TILE) of one head into a tile (TILE, size); rows beyond the last are
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

/* One block for each head of a sequence and each tile of queries. TILE_SHARE threads share a query:
 * each has some of the tile's keys, and some columns of the output. */
KERNEL(attention, attention_args)
{
	unsigned d = a.size, q0 = BLOCK_Y * TILE, b = BLOCK_X / a.heads, h = BLOCK_X % a.heads;
	unsigned r = THREAD / TILE_SHARE, share = THREAD % TILE_SHARE, row = q0 + r;
	const float *qkv = (const float *)a.qkv;
	const float *q = qkv + (size_t)b * a.length * a.stride + (size_t)h * d;
	const float *k = qkv + (size_t)b * a.length * a.stride +
			 (size_t)(a.heads + h / (a.heads / a.kv_heads)) * d;
	const float *v = k + (size_t)a.kv_heads * d;
	float *queries = SHARED, *keys = queries + TILE * d, *values = keys + TILE * d;
	float *scores = values + TILE * d; /* (TILE, TILE) scores of the tile */
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
		((float *)a.out)[((size_t)b * a.length + row) * a.heads * d + (size_t)h * d +
				 share + i * TILE_SHARE] = out[i] / sum;
	if (share == 0)
		a.lse[((size_t)b * a.heads + h) * a.length + row] = most + logf(sum);
}

/* Computes the gradient of the queries. Blocks and threads are as in `attention`; the scores are
 * computed again from lse. */
KERNEL(attention_dq, attention_args)
{
	unsigned d = a.size, q0 = BLOCK_Y * TILE, b = BLOCK_X / a.heads, h = BLOCK_X % a.heads;
	unsigned r = THREAD / TILE_SHARE, share = THREAD % TILE_SHARE, row = q0 + r;
	size_t begin = (size_t)b * a.length * a.stride, small;
	const float *qkv = (const float *)a.qkv, *dout = (const float *)a.dout;
	const float *k = qkv + begin + (size_t)(a.heads + h / (a.heads / a.kv_heads)) * d;
	const float *v = k + (size_t)a.kv_heads * d;
	float *queries = SHARED, *douts = queries + TILE * d, *keys = douts + TILE * d;
	/* ds: (TILE, TILE) gradient of the scores. */
	float *values = keys + TILE * d, *ds = values + TILE * d;
	float dq[HEAD_MOST / TILE_SHARE], lse, dot;

	for (unsigned i = 0; i < HEAD_MOST / TILE_SHARE; i++)
		dq[i] = 0;
	small = ((size_t)b * a.heads + h) * a.length + (row < a.length ? row : 0);
	lse = a.lse[small];
	dot = a.dot[small];
	load_tile(queries, qkv + begin + (size_t)h * d, a.stride, q0, a.length, d);
	load_tile(douts, dout + (size_t)b * a.length * a.heads * d + (size_t)h * d, a.heads * d,
		  q0, a.length, d);
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
		((float *)a.dqkv)[begin + (size_t)row * a.stride + (size_t)h * d + share +
				  i * TILE_SHARE] = dq[i];
}

/* Computes the gradients of keys and values. One block for each key/value head of a sequence and
 * each tile of keys; TILE_SHARE threads share a key. A block goes through the queries of all heads
 * in the group. */
KERNEL(attention_dkv, attention_args)
{
	unsigned d = a.size, k0 = BLOCK_Y * TILE, b = BLOCK_X / a.kv_heads;
	unsigned kv = BLOCK_X % a.kv_heads, group = a.heads / a.kv_heads;
	unsigned j = THREAD / TILE_SHARE, share = THREAD % TILE_SHARE, key = k0 + j;
	size_t begin = (size_t)b * a.length * a.stride, to;
	float *keys = SHARED, *values = keys + TILE * d, *queries = values + TILE * d;
	const float *qkv = (const float *)a.qkv, *dout = (const float *)a.dout;
	float *douts = queries + TILE * d, *p = douts + TILE * d, *ds = p + TILE * TILE;
	float dk[HEAD_MOST / TILE_SHARE], dv[HEAD_MOST / TILE_SHARE];

	for (unsigned i = 0; i < HEAD_MOST / TILE_SHARE; i++)
		dk[i] = dv[i] = 0;
	load_tile(keys, qkv + begin + (size_t)(a.heads + kv) * d, a.stride, k0, a.length, d);
	load_tile(values, qkv + begin + (size_t)(a.heads + a.kv_heads + kv) * d, a.stride, k0,
		  a.length, d);
	for (unsigned h = kv * group; h < (kv + 1) * group; h++) {
		const float *lse = a.lse + ((size_t)b * a.heads + h) * a.length;
		const float *dot = a.dot + ((size_t)b * a.heads + h) * a.length;

		for (unsigned q0 = k0; q0 < a.length; q0 += TILE) {
			load_tile(queries, qkv + begin + (size_t)h * d, a.stride, q0, a.length,
				  d);
			load_tile(douts,
				  dout + (size_t)b * a.length * a.heads * d + (size_t)h * d,
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
			/* From here on a thread reads only columns j, which threads of the same key
			 * have written. */
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
		((float *)a.dqkv)[to + share + i * TILE_SHARE] = dk[i];
		((float *)a.dqkv)[to + (size_t)a.kv_heads * d + share + i * TILE_SHARE] = dv[i];
	}
}
