/* kernels_flash.h - causal attention with grouped heads on tensor cores, in bf16 with sums in float
 * (FlashAttention-2, Dao, 2023; here a separate kernel computes the queries' gradient, so that
 * every sum has a fixed order). Part of kernels.h.
 *
 * A block has FLASH_TILE rows, 16 of them for each warp. The rows are queries, and the block goes
 * through the keys in tiles of FLASH_TILE. For the gradients of keys and values, the rows are keys,
 * and the block goes through the queries. The sums of a warp (scores, outputs and gradients) stay
 * in its threads' registers from product to product. Only the other factors are in shared memory,
 * as tiles (FLASH_TILE, wide + 8) of bf16: wide is 64 or 128, a constant in each kernel, and
 * columns past the head's size are 0. Rows are wide + 8 apart so that eight of them lie in
 * different banks. If two buffers fit (attention_args), the next tile is loaded while the present
 * one is used.
 *
 * Parts of matrices as a warp's threads hold them (PTX, mma.m16n8k16), lane l of 32:
 *
 *     c (16, 8) floats: c[0], c[1] row l / 4, columns 2 (l % 4) and the next;
 *                       c[2], c[3] row l / 4 + 8
 *     a (16, 16) pairs of bf16: a[0] as c[0], c[1]; a[1] as c[2], c[3]; a[2], a[3] 8 columns on
 *     b (16, 8) pairs: b[0] rows 2 (l % 4) and the next of column l / 4; b[1] 8 rows on
 *
 * Two matrices c side by side therefore become a matrix a, and no number leaves its thread. The
 * including file defines these macros. All threads of a warp use the first four together:
 *
 *     TENSOR_PRODUCT(c, a, b0, b1)  c += a b
 *     LOAD_MATRICES(r, at)          loads four matrices (8, 8) of bf16. In lane l, `at` is the
 *                                   beginning of row l % 8 of matrix l / 8, at a multiple of 16
 *                                   bytes; r[i] becomes row l / 4, columns 2 (l % 4) and the next
 *                                   of matrix i
 *     LOAD_TURNED(r, at)            like LOAD_MATRICES, but transposes the matrices
 *     ACROSS(x, mask)               the x of lane l ^ mask
 *     PAIR(low, high)               two floats rounded to bf16, as a pair
 *     PUT_PAIR(to, pair)            stores a pair
 *     COPY_LATER(to, from)          begins to copy eight uint16_t
 *     COPIES_DONE()                 waits for this thread's copies
 *     POWER_OF_TWO(x)               2 to the power x
 *     UNROLL                        unrolls the loop that follows
 *     FLASH_KERNEL(name, blocks)    KERNEL with attention_args, of FLASH_THREADS threads
 */

enum {
	FLASH_EIGHTS = FLASH_TILE / 8,
	FLASH_EIGHTS_MOST = HEAD_MOST / 8,
};

/* Return the first of this thread's two rows in its block's tile, and the first of this thread's
 * two columns in each group of eight columns. */
DEVICE unsigned flash_row(void)
{
	return THREAD / 32 * 16 + THREAD % 32 / 4;
}

DEVICE unsigned flash_column(void)
{
	return THREAD % 4 * 2;
}

/* Return the number of this block's head, counted over all sequences, and the number of its tile.
 * Blocks of a group's heads are side by side (BLOCK_X), and blocks start in the order of BLOCK_Y
 * (attention_start). */
DEVICE unsigned flash_head(const struct attention_args *a)
{
	return BLOCK_Y / ((a->length + FLASH_TILE - 1) / FLASH_TILE) * BLOCKS_X + BLOCK_X;
}

DEVICE unsigned flash_place(const struct attention_args *a)
{
	return BLOCK_Y % ((a->length + FLASH_TILE - 1) / FLASH_TILE);
}

/* Returns the size of a tile in bf16 numbers. */
DEVICE unsigned flash_room(unsigned wide)
{
	return FLASH_TILE * (wide + 8);
}

/* Copies rows [first, first + FLASH_TILE) of one head; rows beyond the last are 0. */
DEVICE void flash_load(uint16_t *to, const uint16_t *from, unsigned stride, unsigned first,
		       unsigned length, unsigned size, unsigned wide)
{
	unsigned eights = wide / 8;

	UNROLL
	for (unsigned i = THREAD; i < FLASH_TILE * eights; i += FLASH_THREADS) {
		unsigned r = i / eights, c = i % eights * 8;
		uint16_t *at = to + r * (wide + 8) + c;

		if (first + r < length && c < size)
			COPY_LATER(at, from + (size_t)(first + r) * stride + c);
		else
			CLEAR_EIGHT(at);
	}
}

/* Computes c (16, n) = mine (16, wide) times the transpose of tile (n, wide). mine: this warp's
 * rows. */
DEVICE void flash_scores(float c[][4], unsigned n, const uint16_t *mine, const uint16_t *tile,
			 unsigned wide)
{
	unsigned lane = THREAD % 32;
	const uint16_t *left = mine + lane % 16 * (wide + 8) + lane / 16 * 8;
	const uint16_t *right =
		tile + (lane / 16 * 8 + lane % 8) * (wide + 8) + lane / 8 % 2 * 8;
	uint32_t a[4], b[4];

	UNROLL
	for (unsigned j = 0; j < n / 8; j++)
		c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
	UNROLL
	for (unsigned l = 0; l < wide; l += 16) {
		LOAD_MATRICES(a, left + l);
		UNROLL
		for (unsigned j = 0; j < n; j += 16) {
			LOAD_MATRICES(b, right + j * (wide + 8) + l);
			TENSOR_PRODUCT(c[j / 8], a, b[0], b[1]);
			TENSOR_PRODUCT(c[j / 8 + 1], a, b[2], b[3]);
		}
	}
}

/* Rounds w (16, n) to bf16, and adds w times tile (n, wide) to sums (16, wide). */
DEVICE void flash_add(float sums[][4], unsigned wide, float w[][4], unsigned n,
		      const uint16_t *tile)
{
	unsigned lane = THREAD % 32;
	const uint16_t *right = tile + lane % 16 * (wide + 8) + lane / 16 * 8;
	uint32_t a[4], b[4];

	UNROLL
	for (unsigned l = 0; l < n; l += 16) {
		float *near = w[l / 8], *far = w[l / 8 + 1];

		a[0] = PAIR(near[0], near[1]);
		a[1] = PAIR(near[2], near[3]);
		a[2] = PAIR(far[0], far[1]);
		a[3] = PAIR(far[2], far[3]);
		UNROLL
		for (unsigned j = 0; j < wide; j += 16) {
			LOAD_TURNED(b, right + l * (wide + 8) + j);
			TENSOR_PRODUCT(sums[j / 8], a, b[0], b[1]);
			TENSOR_PRODUCT(sums[j / 8 + 1], a, b[2], b[3]);
		}
	}
}

DEVICE void flash_clear(float sums[][4], unsigned wide)
{
	UNROLL
	for (unsigned j = 0; j < wide / 8; j++)
		sums[j][0] = sums[j][1] = sums[j][2] = sums[j][3] = 0;
}

/* Writes a block's sums to a head's rows in memory. */
DEVICE void flash_store(uint16_t *to, float sums[][4], unsigned wide, unsigned stride,
			unsigned first, unsigned length, unsigned size)
{
	unsigned column = flash_column();

	UNROLL
	for (unsigned i = 0; i < 2; i++) {
		unsigned row = first + flash_row() + 8 * i;

		UNROLL
		for (unsigned j = 0; j < wide / 8; j++)
			if (row < length && j * 8 + column < size)
				PUT_PAIR(to + (size_t)row * stride + j * 8 + column,
					 PAIR(sums[j][2 * i], sums[j][2 * i + 1]));
	}
}

/* Rotates a block's sums back by the positions of their rows. The sums are rounded first, so that
 * the bits are the same as with a separate kernel, which reads them from memory. */
DEVICE void flash_turn_back(const struct attention_args *a, float sums[][4], unsigned wide,
			    unsigned first)
{
	UNROLL
	for (unsigned i = 0; i < 2; i++) {
		unsigned row = first + flash_row() + 8 * i;
		size_t at = (size_t)(row < a->length ? row : 0) * (wide / 2) + flash_column();

		UNROLL
		for (unsigned j = 0; j < wide / 16; j++)
			UNROLL
		for (unsigned e = 0; e < 2; e++) {
			float c = a->cosines[at + j * 8 + e];
			float s = -a->sines[at + j * 8 + e];
			float low = from_bf16(to_bf16(sums[j][2 * i + e]));
			float high = from_bf16(to_bf16(sums[j + wide / 16][2 * i + e]));

			sums[j][2 * i + e] = low * c - high * s;
			sums[j + wide / 16][2 * i + e] = high * c + low * s;
		}
	}
}

/* Sets each score whose key follows its query to `value`. Only for a tile on the diagonal, in which
 * queries and keys have the same positions. */
DEVICE void flash_hide(float s[FLASH_EIGHTS][4], float value)
{
	unsigned row = flash_row(), column = flash_column();

	UNROLL
	for (unsigned j = 0; j < FLASH_EIGHTS; j++)
		UNROLL
		for (unsigned e = 0; e < 4; e++)
			if (j * 8 + column + e % 2 > row + e / 2 * 8)
				s[j][e] = value;
}

/* The two arrays whose tiles a block loads alternately: keys and values, or queries and dout. */
struct flash_side {
	const uint16_t *x, *y;
	unsigned x_stride, y_stride;
};

DEVICE void flash_load_side(const struct attention_args *a, uint16_t *to,
			    const struct flash_side *s, unsigned first, unsigned wide)
{
	flash_load(to, s->x, s->x_stride, first, a->length, a->size, wide);
	flash_load(to + flash_room(wide), s->y, s->y_stride, first, a->length, a->size, wide);
}

static const float flash_log2_e = 1.44269504f, flash_ln_2 = 0.69314718f;

/* Converts scores to weights of the running softmax, as powers of two. Earlier sums are scaled to
 * the new maximum. */
DEVICE void flash_soften(float s[FLASH_EIGHTS][4], float out[][4], float most[2], float sum[2],
			 float scale, unsigned wide)
{
	float shrink[2];

	UNROLL
	for (unsigned i = 0; i < 2; i++) {
		float top = most[i];

		UNROLL
		for (unsigned j = 0; j < FLASH_EIGHTS; j++) {
			s[j][2 * i] *= scale;
			s[j][2 * i + 1] *= scale;
			top = fmaxf(top, fmaxf(s[j][2 * i], s[j][2 * i + 1]));
		}
		top = fmaxf(top, ACROSS(top, 1));
		top = fmaxf(top, ACROSS(top, 2));
		shrink[i] = POWER_OF_TWO(most[i] - top);
		most[i] = top;
		sum[i] *= shrink[i];
		UNROLL
		for (unsigned j = 0; j < FLASH_EIGHTS; j++)
			UNROLL
			for (unsigned e = 2 * i; e < 2 * i + 2; e++) {
				s[j][e] = POWER_OF_TWO(s[j][e] - top);
				sum[i] += s[j][e];
			}
	}
	UNROLL
	for (unsigned j = 0; j < wide / 8; j++)
		UNROLL
		for (unsigned e = 0; e < 4; e++)
			out[j][e] *= shrink[e / 2];
}

/* One block for each head of a sequence and each tile of queries. The last tile comes first,
 * because it has the most keys. */
DEVICE void flash_forward(const struct attention_args *a, unsigned wide)
{
	unsigned d = a->size, head = flash_head(a), turn = 0;
	unsigned b = head / a->heads, h = head % a->heads;
	unsigned q0 = ((a->length - 1) / FLASH_TILE - flash_place(a)) * FLASH_TILE;
	unsigned row = q0 + flash_row(), room = flash_room(wide);
	const uint16_t *q = (const uint16_t *)a->qkv + (size_t)b * a->length * a->stride;
	const uint16_t *k = q + (size_t)(a->heads + h / (a->heads / a->kv_heads)) * d;
	struct flash_side side = { k, k + (size_t)a->kv_heads * d, a->stride, a->stride };
	uint16_t *queries = (uint16_t *)(void *)SHARED, *others = queries + room;
	float out[FLASH_EIGHTS_MOST][4], s[FLASH_EIGHTS][4];
	float most[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 };

	flash_load(queries, q + (size_t)h * d, a->stride, q0, a->length, d, wide);
	flash_load_side(a, others, &side, 0, wide);
	flash_clear(out, wide);
	for (unsigned k0 = 0; k0 <= q0; k0 += FLASH_TILE) {
		const uint16_t *keys = others + turn * 2 * room;

		COPIES_DONE();
		BARRIER();
		turn = a->buffers > 1 ? 1 - turn : 0;
		if (a->buffers > 1 && k0 < q0)
			flash_load_side(a, others + turn * 2 * room, &side, k0 + FLASH_TILE, wide);
		flash_scores(s, FLASH_TILE, queries + THREAD / 32 * 16 * (wide + 8), keys, wide);
		/* Keys of earlier tiles precede all these queries, so no key is hidden. */
		if (k0 == q0)
			flash_hide(s, -INFINITY);
		flash_soften(s, out, most, sum, a->scale * flash_log2_e, wide);
		flash_add(out, wide, s, FLASH_TILE, keys + room);
		if (a->buffers == 1 && k0 < q0) {
			BARRIER();
			flash_load_side(a, others, &side, k0 + FLASH_TILE, wide);
		}
	}
	UNROLL
	for (unsigned i = 0; i < 2; i++) {
		sum[i] += ACROSS(sum[i], 1);
		sum[i] += ACROSS(sum[i], 2);
		if (THREAD % 4 == 0 && row + 8 * i < a->length)
			a->lse[((size_t)b * a->heads + h) * a->length + row + 8 * i] =
				most[i] * flash_ln_2 + logf(sum[i]);
	}
	UNROLL
	for (unsigned j = 0; j < wide / 8; j++)
		UNROLL
		for (unsigned e = 0; e < 4; e++)
			out[j][e] /= sum[e / 2];
	flash_store((uint16_t *)a->out + ((size_t)b * a->length * a->heads + h) * d, out, wide,
		    a->heads * d, q0, a->length, d);
}

/* Computes the gradient of the queries, with probabilities computed again from lse. Blocks are as
 * in the forward pass. */
DEVICE void flash_dq(const struct attention_args *a, unsigned wide)
{
	unsigned d = a->size, head = flash_head(a), turn = 0;
	unsigned b = head / a->heads, h = head % a->heads;
	unsigned q0 = ((a->length - 1) / FLASH_TILE - flash_place(a)) * FLASH_TILE;
	unsigned row = q0 + flash_row(), room = flash_room(wide);
	const uint16_t *q = (const uint16_t *)a->qkv + (size_t)b * a->length * a->stride;
	const uint16_t *k = q + (size_t)(a->heads + h / (a->heads / a->kv_heads)) * d;
	struct flash_side side = { k, k + (size_t)a->kv_heads * d, a->stride, a->stride };
	struct flash_side own = { q + (size_t)h * d,
				  (const uint16_t *)a->dout +
					  ((size_t)b * a->length * a->heads + h) * d,
				  a->stride, a->heads * d };
	uint16_t *queries = (uint16_t *)(void *)SHARED, *others = queries + 2 * room;
	const uint16_t *mine = queries + THREAD / 32 * 16 * (wide + 8);
	float dq[FLASH_EIGHTS_MOST][4], s[FLASH_EIGHTS][4], ds[FLASH_EIGHTS][4];
	float scale = a->scale * flash_log2_e, lse[2], dot[2];

	flash_load_side(a, queries, &own, q0, wide);
	flash_load_side(a, others, &side, 0, wide);
	flash_clear(dq, wide);
	UNROLL
	for (unsigned i = 0; i < 2; i++) {
		unsigned r = row + 8 * i < a->length ? row + 8 * i : a->length - 1;
		size_t at = ((size_t)b * a->heads + h) * a->length + r;

		lse[i] = a->lse[at] * flash_log2_e;
		dot[i] = a->dot[at];
	}
	for (unsigned k0 = 0; k0 <= q0; k0 += FLASH_TILE) {
		const uint16_t *keys = others + turn * 2 * room;

		COPIES_DONE();
		BARRIER();
		turn = a->buffers > 1 ? 1 - turn : 0;
		if (a->buffers > 1 && k0 < q0)
			flash_load_side(a, others + turn * 2 * room, &side, k0 + FLASH_TILE, wide);
		flash_scores(s, FLASH_TILE, mine, keys, wide);
		flash_scores(ds, FLASH_TILE, mine + room, keys + room, wide);
		UNROLL
		for (unsigned j = 0; j < FLASH_EIGHTS; j++)
			UNROLL
			for (unsigned e = 0; e < 4; e++) {
				float p = POWER_OF_TWO(scale * s[j][e] - lse[e / 2]);

				ds[j][e] = p * (ds[j][e] - dot[e / 2]) * a->scale;
			}
		if (k0 == q0)
			flash_hide(ds, 0);
		flash_add(dq, wide, ds, FLASH_TILE, keys);
		if (a->buffers == 1 && k0 < q0) {
			BARRIER();
			flash_load_side(a, others, &side, k0 + FLASH_TILE, wide);
		}
	}
	if (a->cosines)
		flash_turn_back(a, dq, wide, q0);
	flash_store((uint16_t *)a->dqkv + (size_t)b * a->length * a->stride + (size_t)h * d, dq,
		    wide, a->stride, q0, a->length, d);
}

/* Loads two small arrays for a tile of queries: lse, scaled for powers of two, and dot. The kernel
 * of the gradients of keys and values needs them. */
DEVICE void flash_load_small(const struct attention_args *a, float *to, unsigned b, unsigned h,
			     unsigned first)
{
	size_t at = ((size_t)b * a->heads + h) * a->length;

	for (unsigned i = THREAD; i < FLASH_TILE; i += FLASH_THREADS) {
		bool there = first + i < a->length;

		to[i] = there ? a->lse[at + first + i] * flash_log2_e : 0;
		to[FLASH_TILE + i] = there ? a->dot[at + first + i] : 0;
	}
}

/* Loads the queries of one head to a tile, and the queries' values of lse and dot. */
DEVICE void flash_load_queries(const struct attention_args *a, uint16_t *to, float *small,
			       unsigned b, unsigned h, unsigned q0, unsigned wide)
{
	struct flash_side side = {
		(const uint16_t *)a->qkv + (size_t)b * a->length * a->stride + (size_t)h * a->size,
		(const uint16_t *)a->dout + ((size_t)b * a->length * a->heads + h) * a->size,
		a->stride, a->heads * a->size
	};

	flash_load_side(a, to, &side, q0, wide);
	flash_load_small(a, small, b, h, q0);
}

/* Adds what a tile of queries at q0 contributes to the gradients of keys and values. The registers
 * limit the number of queries that are taken at a time. mine: this warp's keys. key: number of this
 * thread's first key. hidden: some queries of the tile come before some keys, or lie beyond the end
 * of the sequence. */
DEVICE void flash_dkv_tile(const struct attention_args *a, float dk[][4], float dv[][4],
			   const uint16_t *mine, const uint16_t *queries, const float *small,
			   unsigned q0, unsigned key, bool hidden, unsigned wide)
{
	unsigned part = wide > 64 ? FLASH_TILE / 2 : FLASH_TILE, room = flash_room(wide);
	unsigned column = flash_column();
	float p[FLASH_EIGHTS][4], ds[FLASH_EIGHTS][4], scale = a->scale * flash_log2_e;

	UNROLL
	for (unsigned from = 0; from < FLASH_TILE; from += part) {
		const uint16_t *at = queries + from * (wide + 8);

		flash_scores(p, part, mine, at, wide);
		UNROLL
		for (unsigned j = 0; j < part / 8; j++)
			UNROLL
			for (unsigned e = 0; e < 4; e++)
				p[j][e] = POWER_OF_TWO(scale * p[j][e] -
						       small[from + j * 8 + column + e % 2]);
		if (hidden) {
			UNROLL
			for (unsigned j = 0; j < part / 8; j++)
				UNROLL
				for (unsigned e = 0; e < 4; e++) {
					unsigned r = q0 + from + j * 8 + column + e % 2;

					if (r >= a->length || key + e / 2 * 8 > r)
						p[j][e] = 0;
				}
		}
		flash_add(dv, wide, p, part, at + room);
		flash_scores(ds, part, mine + room, at + room, wide);
		UNROLL
		for (unsigned j = 0; j < part / 8; j++)
			UNROLL
			for (unsigned e = 0; e < 4; e++)
				ds[j][e] = p[j][e] * a->scale *
					   (ds[j][e] - small[FLASH_TILE + from + j * 8 + column +
							     e % 2]);
		flash_add(dk, wide, ds, part, at);
	}
}

/* Computes the gradients of keys and values. One block for each key/value head of a sequence and
 * each tile of keys. A block goes through the queries of all heads in the group. */
DEVICE void flash_dkv(const struct attention_args *a, unsigned wide)
{
	unsigned d = a->size, k0 = flash_place(a) * FLASH_TILE, head = flash_head(a), turn = 0;
	unsigned b = head / a->kv_heads, kv = head % a->kv_heads, group = a->heads / a->kv_heads;
	unsigned room = flash_room(wide);
	unsigned n = group * ((a->length - k0 + FLASH_TILE - 1) / FLASH_TILE);
	size_t begin = (size_t)b * a->length * a->stride, at = (size_t)(a->heads + kv) * d;
	const uint16_t *k = (const uint16_t *)a->qkv + begin + at;
	struct flash_side own = { k, k + (size_t)a->kv_heads * d, a->stride, a->stride };
	uint16_t *keys = (uint16_t *)(void *)SHARED, *others = keys + 2 * room;
	float *smalls = SHARED + (1 + a->buffers) * room;
	float dk[FLASH_EIGHTS_MOST][4], dv[FLASH_EIGHTS_MOST][4];

	flash_load_side(a, keys, &own, k0, wide);
	flash_load_queries(a, others, smalls, b, kv * group, k0, wide);
	flash_clear(dk, wide);
	flash_clear(dv, wide);
	for (unsigned i = 0; i < n; i++) {
		const uint16_t *queries = others + turn * 2 * room;
		const float *small = smalls + turn * 2 * FLASH_TILE;
		unsigned next = kv * group + (i + 1) % group;
		unsigned q1 = k0 + (i + 1) / group * FLASH_TILE;
		unsigned q0 = k0 + i / group * FLASH_TILE;

		COPIES_DONE();
		BARRIER();
		turn = a->buffers > 1 ? 1 - turn : 0;
		if (a->buffers > 1 && i + 1 < n)
			flash_load_queries(a, others + turn * 2 * room,
					   smalls + turn * 2 * FLASH_TILE, b, next, q1, wide);
		flash_dkv_tile(a, dk, dv, keys + THREAD / 32 * 16 * (wide + 8), queries, small,
			       q0, k0 + flash_row(), q0 == k0 || q0 + FLASH_TILE > a->length, wide);
		if (a->buffers == 1 && i + 1 < n) {
			BARRIER();
			flash_load_queries(a, others, smalls, b, next, q1, wide);
		}
	}
	if (a->cosines)
		flash_turn_back(a, dk, wide, k0);
	flash_store((uint16_t *)a->dqkv + begin + at, dk, wide, a->stride, k0, a->length, d);
	flash_store((uint16_t *)a->dqkv + begin + at + (size_t)a->kv_heads * d, dv, wide,
		    a->stride, k0, a->length, d);
}

/* The second argument is the number of blocks that should fit on a multiprocessor. The compiler
 * limits the registers of each thread accordingly. With one more block, a thread's sums would no
 * longer fit into registers. */
FLASH_KERNEL(flash_forward_64, 4)
{
	flash_forward(&a, 64);
}

FLASH_KERNEL(flash_forward_128, 3)
{
	flash_forward(&a, 128);
}

FLASH_KERNEL(flash_dq_64, 4)
{
	flash_dq(&a, 64);
}

FLASH_KERNEL(flash_dq_128, 3)
{
	flash_dq(&a, 128);
}

FLASH_KERNEL(flash_dkv_64, 3)
{
	flash_dkv(&a, 64);
}

FLASH_KERNEL(flash_dkv_128, 2)
{
	flash_dkv(&a, 128);
}
