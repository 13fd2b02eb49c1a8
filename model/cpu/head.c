/* The last norm, the head and the loss of stage 0 on the CPU.
 *
 * They are computed in chunks of rows, because the logits of all rows at once would be the largest
 * array of the stage. */
#include <string.h>

#include "model/cpu/product.h"
#include "model/cpu/stage_cpu.h"

struct head_pass {
	struct cpu_stage *s;
	const float *in;
	const int32_t *targets;
	float *logits; /* (chunk, vocab) logits of the present chunk */
	float *grad;   /* (R, C) gradient of the input, or NULL */
	float *g;      /* the stage's gradient, to which the pass adds; NULL: not wanted */
	float grad_scale;
	size_t first, count; /* the rows of the present chunk */
};

enum { GRAIN = 8 };

static void slice_rows(const struct head_pass *j, uint32_t part, uint32_t parts, size_t *from,
		       size_t *n)
{
	size_t to;

	pool_slice(j->count, GRAIN, part, parts, from, &to);
	*n = to - *from;
}

/* Computes one thread's rows of the chunk: norm, then logits. `from` is counted within the
 * chunk. */
static void logits_of(const struct head_pass *j, uint32_t part, size_t from, size_t n)
{
	struct cpu_stage *s = j->s;
	const float *w = s->array[ARRAY_WEIGHTS];
	size_t c = s->l->config.dim, v = s->l->config.vocab, row = j->first + from;

	s->v->norm(s->scratch.xn + row * c, s->scratch.rstd + row, j->in + row * c,
		   w + s->l->last_norm, n, c, s->l->config.norm_eps);
	product_nt(s->products[part], n, v, c, s->scratch.xn + row * c, c, w + s->l->head, c, 0,
		   j->logits + from * v, v);
}

static void forward_rows(void *arg, uint32_t part, uint32_t parts)
{
	const struct head_pass *j = arg;
	size_t from, n;

	slice_rows(j, part, parts, &from, &n);
	if (n > 0)
		logits_of(j, part, from, n);
}

static void loss_rows(void *arg, uint32_t part, uint32_t parts)
{
	const struct head_pass *j = arg;
	struct cpu_stage *s = j->s;
	const float *w = s->array[ARRAY_WEIGHTS];
	size_t c = s->l->config.dim, v = s->l->config.vocab, from, n, row;

	slice_rows(j, part, parts, &from, &n);
	if (n == 0)
		return;
	logits_of(j, part, from, n);
	row = j->first + from;
	for (size_t i = 0; i < n; i++)
		s->scratch.losses[row + i] = s->v->cross_entropy(
			j->logits + (from + i) * v, v, j->targets[row + i], j->grad_scale);
	if (!j->grad)
		return;
	product_nn(s->products[part], n, c, v, j->logits + from * v, v, w + s->l->head, c, 0,
		   s->scratch.dxn + row * c, c);
	memset(j->grad + row * c, 0, n * c * sizeof(*j->grad));
	s->v->norm_backward(j->grad + row * c, j->g ? s->scratch.norm_sums + part * c : NULL,
			    s->scratch.dxn + row * c, j->in + row * c, w + s->l->last_norm,
			    s->scratch.rstd + row, n, c);
}

static void gradient_rows(void *arg, uint32_t part, uint32_t parts)
{
	const struct head_pass *j = arg;
	struct cpu_stage *s = j->s;
	size_t c = s->l->config.dim, v = s->l->config.vocab, from, to;

	pool_slice(v, GRAIN, part, parts, &from, &to);
	if (to > from)
		product_tn(s->products[part], to - from, c, j->count, j->logits + from, v,
			   s->scratch.xn + j->first * c, c, 1, j->g + s->l->head + from * c, c);
}

/* Works in chunks of rows, so that only the logits of one chunk are in memory. */
int head_loss(struct cpu_stage *s, const float *in, const int32_t *targets, float *loss,
	      float *grad, bool count)
{
	struct head_pass j = { .s = s,
			 .in = in,
			 .targets = targets,
			 .grad = grad,
			 .logits = s->scratch.logits,
			 .g = grad && count ? s->array[ARRAY_GRADIENT] : NULL };
	size_t counted = 0;
	double sum = 0;

	for (size_t i = 0; i < s->rows; i++)
		counted += targets[i] >= 0;
	if (grad)
		j.grad_scale = counted ? 1.0f / (float)counted : 1.0f;
	norm_sums_clear(s);
	for (j.first = 0; j.first < s->rows; j.first += j.count) {
		j.count = s->rows - j.first < s->chunk ? s->rows - j.first : s->chunk;
		pool_run(s->pool, loss_rows, &j);
		if (j.g)
			pool_run(s->pool, gradient_rows, &j);
	}
	if (j.g)
		norm_sums_add(s, j.g + s->l->last_norm);
	for (size_t i = 0; i < s->rows; i++)
		sum += (double)s->scratch.losses[i];
	*loss = counted ? (float)(sum / (double)counted) : 0;
	return 0;
}

void head_logits(struct cpu_stage *s, const float *in, float *logits)
{
	struct head_pass j = { .s = s, .in = in, .logits = logits, .count = s->rows };

	pool_run(s->pool, forward_rows, &j);
}
