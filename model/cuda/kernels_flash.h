/* kernels_flash.h - causal attention with grouped heads on tensor cores, in bf16 with sums in
 * float (FlashAttention, Dao et al., 2022). Part of kernels.h.
 *
 * A block works on `tile` queries (or keys) at a time, all in shared memory; a head's size is a
 * multiple of 16, at most HEAD_MOST. The tile is FLASH_LARGE, or FLASH_SMALL where a card has
 * too little shared memory for that (passes.c, attention_launch_of); each function is compiled
 * for both, with the tile a constant. Products of tiles are
 *
 *     TILE_PRODUCT(a_turned, b_turned, tile, c, ldc, n, k, a, lda, b, ldb, add)
 *     c (tile, n) = a (tile, k) b (k, n) [+ c]
 *
 * of bf16 factors into floats, n and k multiples of 16, n at most HEAD_MOST; turned: the factor
 * is stored transposed. Each warp makes a part of c: what it reads must have passed a barrier
 * before, and what it wrote must pass one before it is read.
 *
 * Rows of a tile are size + 8 bf16 apart, of weights tile + 8, of sums size + 4 floats, of
 * scores tile + 4: so that they begin in different banks.
 *
 * Simple rather than fastest: scores and sums pass through shared memory, not from register to
 * register.
 */

/* Columns of a row that are one thread's, at most. */
enum { FLASH_COLUMNS = FLASH_LARGE / (FLASH_THREADS / FLASH_LARGE) };

/* Rows [first, first + tile) of one head to a tile (tile, size + 8); rows past the end are 0.
 */
DEVICE void flash_load(unsigned tile, uint16_t *to, const uint16_t *from, unsigned stride,
		       unsigned first, unsigned length, unsigned size)
{
	unsigned eights = size / 8;

	for (unsigned i = THREAD; i < tile * eights; i += THREADS) {
		unsigned r = i / eights, c = i % eights * 8;
		uint16_t *at = to + r * (size + 8) + c;

		if (first + r < length)
			COPY_EIGHT(at, from + (size_t)(first + r) * stride + c);
		else
			CLEAR_EIGHT(at);
	}
}

DEVICE void flash_clear(float *sums, unsigned n)
{
	for (unsigned i = THREAD; i < n; i += THREADS)
		sums[i] = 0;
}

/* Rows of a tile of sums (tile, size + 4) to a head's rows in memory. */
DEVICE void flash_store(unsigned tile, uint16_t *to, const float *sums, unsigned stride,
			unsigned first, unsigned length, unsigned size)
{
	for (unsigned i = THREAD; i < tile * size; i += THREADS) {
		unsigned r = i / size, c = i % size;

		if (first + r < length)
			to[(size_t)(first + r) * stride + c] =
				to_bf16(sums[r * (size + 4) + c]);
	}
}

/* Tiles one after another in shared memory: n numbers from *used, which is in floats. */
DEVICE uint16_t *flash_reals(unsigned *used, unsigned n)
{
	uint16_t *at = (uint16_t *)(void *)(SHARED + *used);

	*used += n / 2;
	return at;
}

DEVICE float *flash_sums(unsigned *used, unsigned n)
{
	float *at = SHARED + *used;

	*used += n;
	return at;
}

/* Block (tile of queries, sequence and head); FLASH_THREADS / tile threads a query, each some
 * columns. For each tile of keys: scores, the running softmax's weights, the outputs. */
DEVICE void flash_forward(const struct attention_args *a, unsigned tile)
{
	unsigned d = a->size, q0 = BLOCK_X * tile, b = BLOCK_Y / a->heads;
	unsigned h = BLOCK_Y % a->heads, shares = FLASH_THREADS / tile, used = 0;
	unsigned r = THREAD / shares, share = THREAD % shares, row = q0 + r;
	const uint16_t *q = (const uint16_t *)a->qkv + (size_t)b * a->length * a->stride;
	const uint16_t *k = q + (size_t)(a->heads + h / (a->heads / a->kv_heads)) * d;
	const uint16_t *v = k + (size_t)a->kv_heads * d;
	uint16_t *queries = flash_reals(&used, tile * (d + 8));
	uint16_t *keys = flash_reals(&used, tile * (d + 8));
	uint16_t *values = flash_reals(&used, tile * (d + 8));
	uint16_t *weights = flash_reals(&used, tile * (tile + 8));
	float *scores = flash_sums(&used, tile * (tile + 4));
	float *out = flash_sums(&used, tile * (d + 4));
	float *partial = flash_sums(&used, FLASH_THREADS);
	float most = -INFINITY, sum = 0;

	flash_load(tile, queries, q + (size_t)h * d, a->stride, q0, a->length, d);
	flash_clear(out, tile * (d + 4));
	for (unsigned k0 = 0; k0 <= q0; k0 += tile) {
		float top = most, shrink;

		flash_load(tile, keys, k, a->stride, k0, a->length, d);
		flash_load(tile, values, v, a->stride, k0, a->length, d);
		BARRIER();
		TILE_PRODUCT(false, true, tile, scores, tile + 4, tile, d, queries, d + 8, keys,
			     d + 8, false);
		BARRIER();
		for (unsigned j = share; j < tile && k0 + j <= row; j += shares)
			top = fmaxf(top, a->scale * scores[r * (tile + 4) + j]);
		partial[THREAD] = top;
		BARRIER();
		for (unsigned i = 0; i < shares; i++)
			top = fmaxf(top, partial[r * shares + i]);
		shrink = expf(most - top);
		sum *= shrink;
		for (unsigned j = share; j < tile; j += shares) {
			float s = a->scale * scores[r * (tile + 4) + j];
			float p = k0 + j <= row ? expf(s - top) : 0;

			sum += p;
			weights[r * (tile + 8) + j] = to_bf16(p);
		}
		for (unsigned i = share; i < d; i += shares)
			out[r * (d + 4) + i] *= shrink;
		most = top;
		BARRIER();
		TILE_PRODUCT(false, false, tile, out, d + 4, d, tile, weights, tile + 8, values,
			     d + 8, true);
		BARRIER();
	}
	partial[THREAD] = sum;
	BARRIER();
	sum = 0;
	for (unsigned i = 0; i < shares; i++)
		sum += partial[r * shares + i];
	for (unsigned i = share; i < d; i += shares)
		out[r * (d + 4) + i] /= sum;
	BARRIER();
	flash_store(tile, (uint16_t *)a->out + ((size_t)b * a->length * a->heads + h) * d, out,
		    a->heads * d, q0, a->length, d);
	if (share == 0 && row < a->length)
		a->lse[((size_t)b * a->heads + h) * a->length + row] = most + logf(sum);
}

/* What both backward kernels hold in shared memory, besides their sums. */
struct flash_tiles {
	uint16_t *queries, *douts, *keys, *values; /* (tile, size + 8) */
	uint16_t *weights; /* (tile, tile + 8) probabilities, then the gradients of the scores */
	float *scores; /* (tile, tile + 4), then the gradients of the probabilities */
};

DEVICE struct flash_tiles flash_tiles(unsigned tile, unsigned *used, unsigned size)
{
	struct flash_tiles t;

	t.queries = flash_reals(used, tile * (size + 8));
	t.douts = flash_reals(used, tile * (size + 8));
	t.keys = flash_reals(used, tile * (size + 8));
	t.values = flash_reals(used, tile * (size + 8));
	t.weights = flash_reals(used, tile * (tile + 8));
	t.scores = flash_sums(used, tile * (tile + 4));
	return t;
}

/* The four tiles have been loaded, for queries of head h from q0 and keys from k0: this
 * thread's probabilities, computed again. Passes a barrier before, none after. */
DEVICE void flash_weights(const struct attention_args *a, const struct flash_tiles *t,
			  unsigned tile, unsigned b, unsigned h, unsigned q0, unsigned k0,
			  float w[FLASH_COLUMNS])
{
	unsigned d = a->size, shares = FLASH_THREADS / tile, r = THREAD / shares;
	unsigned share = THREAD % shares, row = q0 + r;
	size_t at = ((size_t)b * a->heads + h) * a->length + (row < a->length ? row : 0);
	float lse = a->lse[at];

	BARRIER();
	TILE_PRODUCT(false, true, tile, t->scores, tile + 4, tile, d, t->queries, d + 8,
		     t->keys, d + 8, false);
	BARRIER();
	for (unsigned i = 0; i < tile / shares; i++) {
		unsigned j = share + i * shares;
		bool seen = row < a->length && k0 + j <= row;

		w[i] = seen ? expf(a->scale * t->scores[r * (tile + 4) + j] - lse) : 0;
	}
}

/* The gradients of the scores, in place of the probabilities. Passes a barrier before it writes
 * them (all have read the probabilities by then, and the scores before the call) and one after. */
DEVICE void flash_gradients(const struct attention_args *a, const struct flash_tiles *t,
			    unsigned tile, unsigned b, unsigned h, unsigned q0,
			    const float w[FLASH_COLUMNS])
{
	unsigned d = a->size, shares = FLASH_THREADS / tile, r = THREAD / shares;
	unsigned share = THREAD % shares, row = q0 + r;
	size_t at = ((size_t)b * a->heads + h) * a->length + (row < a->length ? row : 0);
	float dot = a->dot[at];

	TILE_PRODUCT(false, true, tile, t->scores, tile + 4, tile, d, t->douts, d + 8,
		     t->values, d + 8, false);
	BARRIER();
	for (unsigned i = 0; i < tile / shares; i++) {
		unsigned j = share + i * shares;
		float dp = t->scores[r * (tile + 4) + j];

		t->weights[r * (tile + 8) + j] = to_bf16(w[i] * (dp - dot) * a->scale);
	}
	BARRIER();
}

/* Block (tile of queries, sequence and head). */
DEVICE void flash_dq(const struct attention_args *a, unsigned tile)
{
	unsigned d = a->size, q0 = BLOCK_X * tile, b = BLOCK_Y / a->heads;
	unsigned h = BLOCK_Y % a->heads, used = 0;
	const uint16_t *q = (const uint16_t *)a->qkv + (size_t)b * a->length * a->stride;
	const uint16_t *k = q + (size_t)(a->heads + h / (a->heads / a->kv_heads)) * d;
	const uint16_t *v = k + (size_t)a->kv_heads * d;
	size_t at = (size_t)b * a->length * a->heads * d + (size_t)h * d;
	struct flash_tiles t = flash_tiles(tile, &used, d);
	float *dq = flash_sums(&used, tile * (d + 4)), w[FLASH_COLUMNS];

	flash_load(tile, t.queries, q + (size_t)h * d, a->stride, q0, a->length, d);
	flash_load(tile, t.douts, (const uint16_t *)a->dout + at, a->heads * d, q0, a->length,
		   d);
	flash_clear(dq, tile * (d + 4));
	for (unsigned k0 = 0; k0 <= q0; k0 += tile) {
		flash_load(tile, t.keys, k, a->stride, k0, a->length, d);
		flash_load(tile, t.values, v, a->stride, k0, a->length, d);
		flash_weights(a, &t, tile, b, h, q0, k0, w);
		BARRIER();
		flash_gradients(a, &t, tile, b, h, q0, w);
		TILE_PRODUCT(false, false, tile, dq, d + 4, d, tile, t.weights, tile + 8,
			     t.keys, d + 8, true);
		BARRIER();
	}
	flash_store(tile,
		    (uint16_t *)a->dqkv + (size_t)b * a->length * a->stride + (size_t)h * d, dq,
		    a->stride, q0, a->length, d);
}

/* Block (tile of keys, sequence and key/value head), which goes through the queries of all
 * heads of its group. */
DEVICE void flash_dkv(const struct attention_args *a, unsigned tile)
{
	unsigned d = a->size, k0 = BLOCK_X * tile, b = BLOCK_Y / a->kv_heads;
	unsigned kv = BLOCK_Y % a->kv_heads, group = a->heads / a->kv_heads, used = 0;
	unsigned shares = FLASH_THREADS / tile, r = THREAD / shares, share = THREAD % shares;
	const uint16_t *q = (const uint16_t *)a->qkv + (size_t)b * a->length * a->stride;
	const uint16_t *dout = (const uint16_t *)a->dout + (size_t)b * a->length * a->heads * d;
	size_t at = (size_t)(a->heads + kv) * d, value = (size_t)a->kv_heads * d;
	uint16_t *to = (uint16_t *)a->dqkv + (size_t)b * a->length * a->stride + at;
	struct flash_tiles t = flash_tiles(tile, &used, d);
	float *dk = flash_sums(&used, tile * (d + 4)), *dv = flash_sums(&used, tile * (d + 4));
	float w[FLASH_COLUMNS];

	flash_load(tile, t.keys, q + at, a->stride, k0, a->length, d);
	flash_load(tile, t.values, q + at + value, a->stride, k0, a->length, d);
	flash_clear(dk, tile * (d + 4));
	flash_clear(dv, tile * (d + 4));
	for (unsigned i = 0; i < group * ((a->length - k0 + tile - 1) / tile); i++) {
		unsigned h = kv * group + i % group, q0 = k0 + i / group * tile;

		flash_load(tile, t.queries, q + (size_t)h * d, a->stride, q0, a->length, d);
		flash_load(tile, t.douts, dout + (size_t)h * d, a->heads * d, q0, a->length, d);
		flash_weights(a, &t, tile, b, h, q0, k0, w);
		for (unsigned c = 0; c < tile / shares; c++)
			t.weights[r * (tile + 8) + share + c * shares] = to_bf16(w[c]);
		BARRIER();
		TILE_PRODUCT(true, false, tile, dv, d + 4, d, tile, t.weights, tile + 8,
			     t.douts, d + 8, true);
		flash_gradients(a, &t, tile, b, h, q0, w);
		TILE_PRODUCT(true, false, tile, dk, d + 4, d, tile, t.weights, tile + 8,
			     t.queries, d + 8, true);
		BARRIER();
	}
	flash_store(tile, to, dk, a->stride, k0, a->length, d);
	flash_store(tile, to + value, dv, a->stride, k0, a->length, d);
}

KERNEL(flash_forward_large, attention_args)
{
	flash_forward(&a, FLASH_LARGE);
}

KERNEL(flash_forward_small, attention_args)
{
	flash_forward(&a, FLASH_SMALL);
}

KERNEL(flash_dq_large, attention_args)
{
	flash_dq(&a, FLASH_LARGE);
}

KERNEL(flash_dq_small, attention_args)
{
	flash_dq(&a, FLASH_SMALL);
}

KERNEL(flash_dkv_large, attention_args)
{
	flash_dkv(&a, FLASH_LARGE);
}

KERNEL(flash_dkv_small, attention_args)
{
	flash_dkv(&a, FLASH_SMALL);
}
