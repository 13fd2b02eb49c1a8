/* Causal attention on the CPU. One thread alone computes a key/value head of a sequence, together
 * with this head's queries. Threads therefore share nothing, and no sum depends on the number of
 * threads. */
#include "model/cpu/attention.h"

#include <math.h>
#include <string.h>

#include "model/cpu/product.h"

enum { TILE = 64 };

static size_t smaller_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t attention_scratch(const struct attention_shape *s)
{
	(void)s;
	return 2 * TILE * TILE + 4 * TILE;
}

size_t attention_items(const struct attention_shape *s)
{
	return (size_t)s->batch * s->kv_heads;
}

/* One head of one sequence: the addresses of its rows and the distance between rows. */
struct head {
	const struct vector_ops *v;
	size_t size, length; /* head size D, sequence length T */
	size_t stride;       /* floats between two rows of q, k and v, and of their gradients */
	size_t out_stride;   /* floats between two rows of `out`, and of dout */
	float scale;
	const float *q, *k, *values;
	/* (TILE, TILE) scores, and the gradient of the probabilities. */
	float *scores, *dp;
	/* (TILE) a value for each query: most, sum and shrink of softmax_tile, and dot of
	 * softmax_tile_backward. */
	float *most, *sum, *shrink, *dot;
};

static struct head head_at(const struct vector_ops *v, const struct attention_shape *s,
			   const float *qkv, size_t item, size_t member, float *scratch)
{
	size_t group = s->heads / s->kv_heads, b = item / s->kv_heads, kv = item % s->kv_heads;
	size_t d = s->head_size, stride = ((size_t)s->heads + 2 * s->kv_heads) * d;
	const float *row = qkv + b * s->sequence * stride;
	float *small = scratch + 2 * TILE * TILE;

	return (struct head){
		.v = v,
		.size = d,
		.length = s->sequence,
		.stride = stride,
		.out_stride = s->heads * d,
		.scale = 1.0f / sqrtf((float)d),
		.q = row + (kv * group + member) * d,
		.k = row + (s->heads + kv) * d,
		.values = row + (s->heads + s->kv_heads + kv) * d,
		.scores = scratch,
		.dp = scratch + TILE * TILE,
		.most = small,
		.sum = small + TILE,
		.shrink = small + 2 * TILE,
		.dot = small + 3 * TILE,
	};
}

/* Computes the scores of the queries from q0 and the keys from k0. */
static struct score_tile tile_at(const struct head *h, size_t q0, size_t k0)
{
	struct score_tile t = {
		.scores = h->scores,
		.rows = smaller_size(TILE, h->length - q0),
		.cols = smaller_size(TILE, h->length - k0),
		.seen = q0 - k0 + 1,
		.scale = h->scale,
	};

	product_nt(NULL, t.rows, t.cols, h->size, h->q + q0 * h->stride, h->stride,
		   h->k + k0 * h->stride, h->stride, 0, t.scores, t.cols);
	return t;
}

static void forward_rows(const struct head *h, size_t q0, float *out, float *lse)
{
	size_t rows = smaller_size(TILE, h->length - q0);
	float *to = out + q0 * h->out_stride;

	for (size_t r = 0; r < rows; r++) {
		h->most[r] = -INFINITY;
		h->sum[r] = 0;
	}
	for (size_t k0 = 0; k0 <= q0; k0 += TILE) {
		struct score_tile t = tile_at(h, q0, k0);

		h->v->softmax_tile(&t, h->most, h->sum, h->shrink);
		if (k0 > 0)
			h->v->scale_rows(to, h->out_stride, rows, h->size, h->shrink);
		product_nn(NULL, rows, h->size, t.cols, t.scores, t.cols,
			   h->values + k0 * h->stride, h->stride, k0 > 0 ? 1 : 0, to,
			   h->out_stride);
	}
	for (size_t r = 0; r < rows; r++) {
		lse[q0 + r] = h->most[r] + logf(h->sum[r]);
		h->shrink[r] = 1 / h->sum[r];
	}
	h->v->scale_rows(to, h->out_stride, rows, h->size, h->shrink);
}

void attention_forward(const struct vector_ops *v, const struct attention_shape *s,
		       const float *qkv, float *out, float *lse, size_t from, size_t to,
		       float *scratch)
{
	size_t group = s->heads / s->kv_heads, d = s->head_size;

	for (size_t item = from; item < to; item++) {
		size_t b = item / s->kv_heads, first = item % s->kv_heads * group;

		for (size_t member = 0; member < group; member++) {
			struct head h = head_at(v, s, qkv, item, member, scratch);
			float *o = out + b * s->sequence * h.out_stride + (first + member) * d;
			float *l = lse + (b * s->heads + first + member) * s->sequence;

			for (size_t q0 = 0; q0 < s->sequence; q0 += TILE)
				forward_rows(&h, q0, o, l);
		}
	}
}

/* The gradients of one head. The gradients of keys and values are shared by the group of heads, and
 * each head adds to them. */
struct head_gradient {
	const float *out, *dout, *lse;
	float *dq, *dk, *dv;
};

static void backward_rows(const struct head *h, const struct head_gradient *g, size_t q0)
{
	size_t rows = smaller_size(TILE, h->length - q0), d = h->size;
	const float *dout = g->dout + q0 * h->out_stride;

	h->v->row_dots(h->dot, dout, g->out + q0 * h->out_stride, h->out_stride, rows, d);
	for (size_t k0 = 0; k0 <= q0; k0 += TILE) {
		struct score_tile t = tile_at(h, q0, k0);

		product_nt(NULL, rows, t.cols, d, dout, h->out_stride,
			   h->values + k0 * h->stride, h->stride, 0, h->dp, t.cols);
		h->v->softmax_tile_backward(&t, h->dp, g->lse + q0, h->dot);
		product_tn(NULL, t.cols, d, rows, t.scores, t.cols, dout, h->out_stride, 1,
			   g->dv + k0 * h->stride, h->stride);
		product_nn(NULL, rows, d, t.cols, h->dp, t.cols, h->k + k0 * h->stride,
			   h->stride, 1, g->dq + q0 * h->stride, h->stride);
		product_tn(NULL, t.cols, d, rows, h->dp, t.cols, h->q + q0 * h->stride,
			   h->stride, 1, g->dk + k0 * h->stride, h->stride);
	}
}

static void clear_rows(float *x, size_t stride, size_t rows, size_t n)
{
	for (size_t r = 0; r < rows; r++)
		memset(x + r * stride, 0, n * sizeof(*x));
}

/* The heads of a group share keys and values. The first head clears the gradients of keys and
 * values, and every head adds to them. One thread therefore computes all heads of a group. */
void attention_backward(const struct vector_ops *v, const struct attention_shape *s,
			const float *qkv, const float *out, const float *lse, const float *dout,
			float *dqkv, size_t from, size_t to, float *scratch)
{
	size_t group = s->heads / s->kv_heads, d = s->head_size;

	for (size_t item = from; item < to; item++) {
		size_t b = item / s->kv_heads, first = item % s->kv_heads * group;

		for (size_t member = 0; member < group; member++) {
			struct head h = head_at(v, s, qkv, item, member, scratch);
			size_t at = b * s->sequence * h.out_stride + (first + member) * d;
			struct head_gradient g = {
				.out = out + at,
				.dout = dout + at,
				.lse = lse + (b * s->heads + first + member) * s->sequence,
				.dq = dqkv + (h.q - qkv),
				.dk = dqkv + (h.k - qkv),
				.dv = dqkv + (h.values - qkv),
			};

			clear_rows(g.dq, h.stride, s->sequence, d);
			if (member == 0) {
				clear_rows(g.dk, h.stride, s->sequence, d);
				clear_rows(g.dv, h.stride, s->sequence, d);
			}
			for (size_t q0 = 0; q0 < s->sequence; q0 += TILE)
				backward_rows(&h, &g, q0);
		}
	}
}
