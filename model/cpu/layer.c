/* A transformer layer's forward and backward pass on the CPU.
 *
 * A layer has a few phases. Within a phase each thread works on its own rows, and threads wait for
 * one another between phases. For the gradients of weights each thread has its own rows of the
 * weights. */
#include <string.h>

#include "model/cpu/product.h"
#include "model/cpu/stage_cpu.h"

struct layer_pass {
	struct cpu_stage *s;
	const struct layer_offsets *at;
	const float *w; /* all weights of the stage */
	/* Gradient of the stage, to which the pass adds; NULL: the pass only computes the gradient
	 * of its input. */
	float *g;
	struct saved_layer *k;
	float *out, *dx;
};

/* A thread's rows begin at a multiple of GRAIN. In attention, threads divide sequences and heads
 * instead of rows. */
enum { GRAIN = 8 };

static void slice_rows(const struct cpu_stage *s, uint32_t part, uint32_t parts, size_t *from,
		       size_t *n)
{
	size_t to;

	pool_slice(s->rows, GRAIN, part, parts, from, &to);
	*n = to - *from;
}

static float *tile_of(const struct cpu_stage *s, uint32_t part)
{
	return s->scratch.tile + part * attention_scratch(&s->shape);
}

static void rotate_rows(const struct cpu_stage *s, float *qkv, size_t from, size_t n,
			float sign)
{
	const struct model_config *c = &s->l->config;

	s->v->rotate(qkv + from * s->packed, s->packed, n, c->n_heads + c->n_kv_heads,
		     s->shape.head_size / 2, s->cosines, s->sines, from, s->l->sequence, sign);
}

/* x -> norm -> q, k, v -> rotation */
static void forward_qkv(void *arg, uint32_t part, uint32_t parts)
{
	const struct layer_pass *j = arg;
	struct cpu_stage *s = j->s;
	const struct saved_layer *k = j->k;
	size_t c = s->l->config.dim, from, n;

	slice_rows(s, part, parts, &from, &n);
	if (n == 0)
		return;
	s->v->norm(k->xn1 + from * c, k->rstd1 + from, k->x + from * c, j->w + j->at->norm1, n,
		   c, s->l->config.norm_eps);
	product_nt(s->products[part], n, s->packed, c, k->xn1 + from * c, c, j->w + j->at->qkv,
		   c, 0, k->qkv + from * s->packed, s->packed);
	rotate_rows(s, k->qkv, from, n, 1);
}

static void forward_attention(void *arg, uint32_t part, uint32_t parts)
{
	const struct layer_pass *j = arg;
	struct cpu_stage *s = j->s;
	size_t from, to;

	pool_slice(attention_items(&s->shape), 1, part, parts, &from, &to);
	attention_forward(s->v, &s->shape, j->k->qkv, j->k->att, j->k->lse, from, to,
			  tile_of(s, part));
}

/* mid = x + o(att); out = mid + down(swiglu(gate_up(norm(mid)))) */
static void forward_ffn(void *arg, uint32_t part, uint32_t parts)
{
	const struct layer_pass *j = arg;
	struct cpu_stage *s = j->s;
	const struct saved_layer *k = j->k;
	size_t c = s->l->config.dim, f = s->l->config.ffn_dim, from, n;
	float *mid, *xn, *h, *gu;

	slice_rows(s, part, parts, &from, &n);
	if (n == 0)
		return;
	mid = k->mid + from * c;
	xn = k->xn2 + from * c;
	h = k->h + from * f;
	gu = k->gu + from * 2 * f;
	memcpy(mid, k->x + from * c, n * c * sizeof(*mid));
	product_nt(s->products[part], n, c, c, k->att + from * c, c, j->w + j->at->o, c, 1, mid,
		   c);
	s->v->norm(xn, k->rstd2 + from, mid, j->w + j->at->norm2, n, c, s->l->config.norm_eps);
	product_nt(s->products[part], n, 2 * f, c, xn, c, j->w + j->at->gate_up, c, 0, gu, 2 * f);
	if (!j->out)
		return;
	s->v->swiglu(h, gu, n, f);
	memcpy(j->out + from * c, mid, n * c * sizeof(*mid));
	product_nt(s->products[part], n, c, f, h, f, j->w + j->at->down, f, 1,
		   j->out + from * c, c);
}

void layer_forward(struct cpu_stage *s, uint32_t layer, struct saved_layer *saved, float *out)
{
	struct layer_pass j = { .s = s,
			 .at = &s->l->layers[layer],
			 .w = s->array[ARRAY_WEIGHTS],
			 .k = saved,
			 .out = out };

	pool_run(s->pool, forward_qkv, &j);
	pool_run(s->pool, forward_attention, &j);
	pool_run(s->pool, forward_ffn, &j);
}

/* dx -> dh, dgate, dup -> gradient of norm2's output. A pass that also computes gradients of
 * weights needs h and norm2's output, and computes both again unless the forward pass kept them.
 * With RECOMPUTE_BLOCK, norm2's output is in xn2 already. */
static void backward_ffn(void *arg, uint32_t part, uint32_t parts)
{
	const struct layer_pass *j = arg;
	struct cpu_stage *s = j->s;
	const struct scratch *t = &s->scratch;
	size_t c = s->l->config.dim, f = s->l->config.ffn_dim, from, n;
	bool again = j->g && s->l->recompute != RECOMPUTE_NONE;

	slice_rows(s, part, parts, &from, &n);
	if (n == 0)
		return;
	product_nn(s->products[part], n, f, c, j->dx + from * c, c, j->w + j->at->down, f, 0,
		   t->dh + from * f, f);
	s->v->swiglu_backward(t->dgu + from * 2 * f, again ? j->k->h + from * f : NULL,
			      t->dh + from * f, j->k->gu + from * 2 * f, n, f);
	product_nn(s->products[part], n, c, 2 * f, t->dgu + from * 2 * f, 2 * f,
		   j->w + j->at->gate_up, c, 0, t->dxn + from * c, c);
	if (again && s->l->recompute != RECOMPUTE_BLOCK)
		s->v->norm_again(j->k->xn2 + from * c, j->k->rstd2 + from, j->k->mid + from * c,
				 j->w + j->at->norm2, n, c);
}

/* g (m, n) += a (R, m)^T b (R, n), for this thread's share of the m rows */
static void weight_gradient(const struct cpu_stage *s, float *g, const float *a, size_t m,
			    const float *b, size_t n, uint32_t part, uint32_t parts)
{
	size_t from, to;

	pool_slice(m, GRAIN, part, parts, &from, &to);
	if (to > from)
		product_tn(s->products[part], to - from, n, s->rows, a + from, m, b, n, 1,
			   g + from * n, n);
}

static void gradient_ffn(void *arg, uint32_t part, uint32_t parts)
{
	const struct layer_pass *j = arg;
	struct cpu_stage *s = j->s;
	const struct scratch *t = &s->scratch;
	size_t c = s->l->config.dim, f = s->l->config.ffn_dim;

	weight_gradient(s, j->g + j->at->down, j->dx, c, j->k->h, f, part, parts);
	weight_gradient(s, j->g + j->at->gate_up, t->dgu, 2 * f, j->k->xn2, c, part, parts);
}

/* dx becomes the gradient of mid. The gradient of attention's output is computed from dx and o. */
static void backward_o(void *arg, uint32_t part, uint32_t parts)
{
	const struct layer_pass *j = arg;
	struct cpu_stage *s = j->s;
	const struct scratch *t = &s->scratch;
	size_t c = s->l->config.dim, from, n;

	slice_rows(s, part, parts, &from, &n);
	if (n == 0)
		return;
	s->v->norm_backward(j->dx + from * c, j->g ? t->norm_sums + part * c : NULL,
			    t->dxn + from * c, j->k->mid + from * c, j->w + j->at->norm2,
			    j->k->rstd2 + from, n, c);
	product_nn(s->products[part], n, c, c, j->dx + from * c, c, j->w + j->at->o, c, 0,
		   t->datt + from * c, c);
}

static void backward_attention(void *arg, uint32_t part, uint32_t parts)
{
	const struct layer_pass *j = arg;
	struct cpu_stage *s = j->s;
	size_t c = s->l->config.dim, from, to;

	pool_slice(attention_items(&s->shape), 1, part, parts, &from, &to);
	attention_backward(s->v, &s->shape, j->k->qkv, j->k->att, j->k->lse, s->scratch.datt,
			   s->scratch.dqkv, from, to, tile_of(s, part));
	if (j->g)
		weight_gradient(s, j->g + j->at->o, j->dx, c, j->k->att, c, part, parts);
}

/* Computes gradients back through the rotation, q, k, v and norm1. dx becomes the gradient of the
 * layer's input. */
static void backward_qkv(void *arg, uint32_t part, uint32_t parts)
{
	const struct layer_pass *j = arg;
	struct cpu_stage *s = j->s;
	const struct scratch *t = &s->scratch;
	size_t c = s->l->config.dim, from, n;

	slice_rows(s, part, parts, &from, &n);
	if (n == 0)
		return;
	rotate_rows(s, t->dqkv, from, n, -1);
	product_nn(s->products[part], n, c, s->packed, t->dqkv + from * s->packed, s->packed,
		   j->w + j->at->qkv, c, 0, t->dxn + from * c, c);
	if (j->g && s->l->recompute != RECOMPUTE_NONE)
		s->v->norm_again(j->k->xn1 + from * c, j->k->rstd1 + from, j->k->x + from * c,
				 j->w + j->at->norm1, n, c);
	s->v->norm_backward(j->dx + from * c, j->g ? t->norm_sums + part * c : NULL,
			    t->dxn + from * c, j->k->x + from * c, j->w + j->at->norm1,
			    j->k->rstd1 + from, n, c);
}

static void gradient_qkv(void *arg, uint32_t part, uint32_t parts)
{
	const struct layer_pass *j = arg;
	struct cpu_stage *s = j->s;

	weight_gradient(s, j->g + j->at->qkv, s->scratch.dqkv, s->packed, j->k->xn1,
			s->l->config.dim, part, parts);
}

void layer_backward(struct cpu_stage *s, uint32_t layer, struct saved_layer *saved, float *dx,
		    bool count)
{
	struct layer_pass j = { .s = s,
			 .at = &s->l->layers[layer],
			 .w = s->array[ARRAY_WEIGHTS],
			 .g = count ? s->array[ARRAY_GRADIENT] : NULL,
			 .k = saved,
			 .dx = dx };

	pool_run(s->pool, backward_ffn, &j);
	if (count)
		pool_run(s->pool, gradient_ffn, &j);
	norm_sums_clear(s);
	pool_run(s->pool, backward_o, &j);
	if (count)
		norm_sums_add(s, j.g + j.at->norm2);
	pool_run(s->pool, backward_attention, &j);
	norm_sums_clear(s);
	pool_run(s->pool, backward_qkv, &j);
	if (count) {
		norm_sums_add(s, j.g + j.at->norm1);
		pool_run(s->pool, gradient_qkv, &j);
	}
}

/* Each thread sums a norm's gradient over its own rows. The threads' sums are added in the order of
 * the threads. */
void norm_sums_clear(struct cpu_stage *s)
{
	memset(s->scratch.norm_sums, 0,
	       (size_t)s->l->threads * s->l->config.dim * sizeof(*s->scratch.norm_sums));
}

void norm_sums_add(struct cpu_stage *s, float *gradient)
{
	size_t c = s->l->config.dim;

	for (uint32_t i = 0; i < s->l->threads; i++)
		s->v->add(gradient, s->scratch.norm_sums + i * c, c);
}
