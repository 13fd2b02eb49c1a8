/* kernels_flash.h - causal attention with grouped heads on tensor cores, in bf16 with sums in
 * float (FlashAttention, Dao et al., 2022). Part of kernels.h.
 *
 * A block works on FLASH queries (or keys) at a time, all in shared memory; a head's size is a
 * multiple of 16, at most HEAD_MOST. Products of tiles there are
 *
 *     TILE_PRODUCT(a_turned, b_turned, c, ldc, n, k, a, lda, b, ldb, add)
 *     c (FLASH, n) = a (FLASH, k) b (k, n) [+ c]
 *
 * of bf16 factors into floats, n and k multiples of 16, n at most HEAD_MOST; turned: the factor
 * is stored transposed. Each warp makes a part of c: what it reads must have passed a barrier
 * before, and what it wrote must pass one before it is read.
 *
 * Simple rather than fastest: scores and sums pass through shared memory, not from register to
 * register.
 */

enum { SCORES = FLASH + 4, WEIGHTS = FLASH + 8, FLASH_SHARE = FLASH_THREADS / FLASH };

/* Rows [first, first + FLASH) of one head to a tile (FLASH, size + 8); rows past the end are 0.
 */
DEVICE void flash_load(uint16_t *tile, const uint16_t *from, unsigned stride, unsigned first,
		       unsigned length, unsigned size)
{
	unsigned eights = size / 8;

	for (unsigned i = THREAD; i < FLASH * eights; i += THREADS) {
		unsigned r = i / eights, c = i % eights * 8;
		uint16_t *to = tile + r * (size + 8) + c;

		if (first + r < length)
			COPY_EIGHT(to, from + (size_t)(first + r) * stride + c);
		else
			CLEAR_EIGHT(to);
	}
}

DEVICE void flash_clear(float *tile, unsigned n)
{
	for (unsigned i = THREAD; i < n; i += THREADS)
		tile[i] = 0;
}

/* Rows of a tile of sums (FLASH, size + 4), each times by, to a head's rows in memory. */
DEVICE void flash_store(uint16_t *to, const float *tile, unsigned stride, unsigned first,
			unsigned length, unsigned size)
{
	for (unsigned i = THREAD; i < FLASH * size; i += THREADS) {
		unsigned r = i / size, c = i % size;

		if (first + r < length)
			to[(size_t)(first + r) * stride + c] =
				to_bf16(tile[r * (size + 4) + c]);
	}
}

/* Tiles one after another in shared memory. */
DEVICE uint16_t *flash_reals(unsigned *used, unsigned columns)
{
	uint16_t *at = (uint16_t *)(void *)(SHARED + *used);

	*used += FLASH * columns / 2;
	return at;
}

DEVICE float *flash_sums(unsigned *used, unsigned columns)
{
	float *at = SHARED + *used;

	*used += FLASH * columns;
	return at;
}

/* Block (tile of queries, sequence and head); FLASH_SHARE threads a query, each some columns.
 */
KERNEL(flash_forward, attention_args)
{
	unsigned d = a.size, q0 = BLOCK_X * FLASH, b = BLOCK_Y / a.heads, h = BLOCK_Y % a.heads;
	unsigned r = THREAD / FLASH_SHARE, share = THREAD % FLASH_SHARE, row = q0 + r, used = 0;
	const uint16_t *q = (const uint16_t *)a.qkv + (size_t)b * a.length * a.stride;
	const uint16_t *k = q + (size_t)(a.heads + h / (a.heads / a.kv_heads)) * d;
	const uint16_t *v = k + (size_t)a.kv_heads * d;
	uint16_t *queries = flash_reals(&used, d + 8), *keys = flash_reals(&used, d + 8);
	uint16_t *values = flash_reals(&used, d + 8), *weights = flash_reals(&used, WEIGHTS);
	float *scores = flash_sums(&used, SCORES), *out = flash_sums(&used, d + 4);
	float *partial = flash_sums(&used, FLASH_SHARE);
	float most = -INFINITY, sum = 0;

	flash_load(queries, q + (size_t)h * d, a.stride, q0, a.length, d);
	flash_clear(out, FLASH * (d + 4));
	for (unsigned k0 = 0; k0 <= q0; k0 += FLASH) {
		float top = most, shrink;

		flash_load(keys, k, a.stride, k0, a.length, d);
		flash_load(values, v, a.stride, k0, a.length, d);
		BARRIER();
		TILE_PRODUCT(false, true, scores, SCORES, FLASH, d, queries, d + 8, keys, d + 8,
			     false);
		BARRIER();
		for (unsigned j = share; j < FLASH && k0 + j <= row; j += FLASH_SHARE)
			top = fmaxf(top, a.scale * scores[r * SCORES + j]);
		partial[THREAD] = top;
		BARRIER();
		for (unsigned i = 0; i < FLASH_SHARE; i++)
			top = fmaxf(top, partial[r * FLASH_SHARE + i]);
		shrink = expf(most - top);
		sum *= shrink;
		for (unsigned j = share; j < FLASH; j += FLASH_SHARE) {
			float p = k0 + j <= row ? expf(a.scale * scores[r * SCORES + j] - top)
						: 0;

			sum += p;
			weights[r * WEIGHTS + j] = to_bf16(p);
		}
		for (unsigned i = share; i < d; i += FLASH_SHARE)
			out[r * (d + 4) + i] *= shrink;
		most = top;
		BARRIER();
		TILE_PRODUCT(false, false, out, d + 4, d, FLASH, weights, WEIGHTS, values,
			     d + 8, true);
		BARRIER();
	}
	partial[THREAD] = sum;
	BARRIER();
	sum = 0;
	for (unsigned i = 0; i < FLASH_SHARE; i++)
		sum += partial[r * FLASH_SHARE + i];
	for (unsigned i = share; i < d; i += FLASH_SHARE)
		out[r * (d + 4) + i] /= sum;
	BARRIER();
	flash_store((uint16_t *)a.out + (size_t)b * a.length * a.heads * d + (size_t)h * d, out,
		    a.heads * d, q0, a.length, d);
	if (share == 0 && row < a.length)
		a.lse[((size_t)b * a.heads + h) * a.length + row] = most + logf(sum);
}

/* What both backward kernels hold in shared memory, besides their sums. */
struct flash_tiles {
	uint16_t *queries, *douts, *keys, *values; /* (FLASH, size + 8) */
	uint16_t *p, *ds;                          /* (FLASH, WEIGHTS) */
	float *scores; /* (FLASH, SCORES), then the gradients of the probabilities */
};

DEVICE struct flash_tiles flash_tiles(unsigned *used, unsigned size)
{
	struct flash_tiles t;

	t.queries = flash_reals(used, size + 8);
	t.douts = flash_reals(used, size + 8);
	t.keys = flash_reals(used, size + 8);
	t.values = flash_reals(used, size + 8);
	t.p = flash_reals(used, WEIGHTS);
	t.ds = flash_reals(used, WEIGHTS);
	t.scores = flash_sums(used, SCORES);
	return t;
}

/* The four tiles have been loaded, for queries of head h from q0 and keys from k0:
 * probabilities again, into p, and the gradients of the scores, into ds. Passes barriers before
 * and after. */
DEVICE void flash_gradients(const struct attention_args *a, const struct flash_tiles *t,
			    unsigned b, unsigned h, unsigned q0, unsigned k0)
{
	unsigned d = a->size, r = THREAD / FLASH_SHARE, share = THREAD % FLASH_SHARE;
	unsigned row = q0 + r;
	size_t at = ((size_t)b * a->heads + h) * a->length + (row < a->length ? row : 0);
	float lse = a->lse[at], dot = a->dot[at], w[FLASH / FLASH_SHARE];

	BARRIER();
	TILE_PRODUCT(false, true, t->scores, SCORES, FLASH, d, t->queries, d + 8, t->keys,
		     d + 8, false);
	BARRIER();
	for (unsigned i = 0; i < FLASH / FLASH_SHARE; i++) {
		unsigned j = share + i * FLASH_SHARE;
		bool seen = row < a->length && k0 + j <= row;

		w[i] = seen ? expf(a->scale * t->scores[r * SCORES + j] - lse) : 0;
		t->p[r * WEIGHTS + j] = to_bf16(w[i]);
	}
	BARRIER();
	TILE_PRODUCT(false, true, t->scores, SCORES, FLASH, d, t->douts, d + 8, t->values,
		     d + 8, false);
	BARRIER();
	for (unsigned i = 0; i < FLASH / FLASH_SHARE; i++) {
		unsigned j = share + i * FLASH_SHARE;

		t->ds[r * WEIGHTS + j] =
			to_bf16(w[i] * (t->scores[r * SCORES + j] - dot) * a->scale);
	}
	BARRIER();
}

KERNEL(flash_dq, attention_args)
{
	unsigned d = a.size, q0 = BLOCK_X * FLASH, b = BLOCK_Y / a.heads, h = BLOCK_Y % a.heads;
	unsigned used = 0;
	const uint16_t *q = (const uint16_t *)a.qkv + (size_t)b * a.length * a.stride;
	const uint16_t *k = q + (size_t)(a.heads + h / (a.heads / a.kv_heads)) * d;
	const uint16_t *v = k + (size_t)a.kv_heads * d;
	size_t at = (size_t)b * a.length * a.heads * d + (size_t)h * d;
	struct flash_tiles t = flash_tiles(&used, d);
	float *dq = flash_sums(&used, d + 4);

	flash_load(t.queries, q + (size_t)h * d, a.stride, q0, a.length, d);
	flash_load(t.douts, (const uint16_t *)a.dout + at, a.heads * d, q0, a.length, d);
	flash_clear(dq, FLASH * (d + 4));
	for (unsigned k0 = 0; k0 <= q0; k0 += FLASH) {
		flash_load(t.keys, k, a.stride, k0, a.length, d);
		flash_load(t.values, v, a.stride, k0, a.length, d);
		flash_gradients(&a, &t, b, h, q0, k0);
		TILE_PRODUCT(false, false, dq, d + 4, d, FLASH, t.ds, WEIGHTS, t.keys, d + 8,
			     true);
		BARRIER();
	}
	flash_store((uint16_t *)a.dqkv + (size_t)b * a.length * a.stride + (size_t)h * d, dq,
		    a.stride, q0, a.length, d);
}

/* Block (tile of keys, sequence and key/value head), which goes through the queries of all
 * heads of its group. */
KERNEL(flash_dkv, attention_args)
{
	unsigned d = a.size, k0 = BLOCK_X * FLASH, b = BLOCK_Y / a.kv_heads;
	unsigned kv = BLOCK_Y % a.kv_heads, group = a.heads / a.kv_heads, used = 0;
	const uint16_t *q = (const uint16_t *)a.qkv + (size_t)b * a.length * a.stride;
	const uint16_t *dout = (const uint16_t *)a.dout + (size_t)b * a.length * a.heads * d;
	size_t to = (size_t)b * a.length * a.stride + (size_t)(a.heads + kv) * d;
	size_t value = (size_t)a.kv_heads * d; /* from a key to its value */
	struct flash_tiles t = flash_tiles(&used, d);
	float *dk = flash_sums(&used, d + 4), *dv = flash_sums(&used, d + 4);

	flash_load(t.keys, q + (size_t)(a.heads + kv) * d, a.stride, k0, a.length, d);
	flash_load(t.values, q + (size_t)(a.heads + kv) * d + value, a.stride, k0, a.length, d);
	flash_clear(dk, FLASH * (d + 4));
	flash_clear(dv, FLASH * (d + 4));
	for (unsigned i = 0; i < group * ((a.length - k0 + FLASH - 1) / FLASH); i++) {
		unsigned h = kv * group + i % group, q0 = k0 + i / group * FLASH;

		flash_load(t.queries, q + (size_t)h * d, a.stride, q0, a.length, d);
		flash_load(t.douts, dout + (size_t)h * d, a.heads * d, q0, a.length, d);
		flash_gradients(&a, &t, b, h, q0, k0);
		TILE_PRODUCT(true, false, dv, d + 4, d, FLASH, t.p, WEIGHTS, t.douts, d + 8,
			     true);
		TILE_PRODUCT(true, false, dk, d + 4, d, FLASH, t.ds, WEIGHTS, t.queries, d + 8,
			     true);
		BARRIER();
	}
	flash_store((uint16_t *)a.dqkv + to, dk, a.stride, k0, a.length, d);
	flash_store((uint16_t *)a.dqkv + to + value, dv, a.stride, k0, a.length, d);
}
