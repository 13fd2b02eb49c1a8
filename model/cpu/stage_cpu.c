/* One stage on the CPU. All its memory is one allocation: a first walk over the arrays adds up
 * their sizes, a second walk places the arrays. Layers run in order. Each operation is divided
 * among the pool's threads in such a way that results do not depend on the number of threads. */
#include "model/cpu/stage_cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/cgroup.h"
#include "model/cpu/stage_memory.h"
#include "model/hash.h"
#include "model/squares.h"

enum { LOGITS_MOST = 8 << 20 /* limit of the logits in memory, in floats */ };

static void carve_scratch(struct cpu_stage *s, struct carver *c)
{
	const struct model_config *m = &s->l->config;
	size_t r = s->rows, threads = s->l->threads;
	bool first = s->l->index == 0;

	s->scratch = (struct scratch){
		.xn = carve_floats(c, r * m->dim),
		.h = carve_floats(c, r * m->ffn_dim),
		.dgu = carve_floats(c, r * 2 * m->ffn_dim),
		.dh = carve_floats(c, r * m->ffn_dim),
		.dqkv = carve_floats(c, r * s->packed),
		.datt = carve_floats(c, r * m->dim),
		.dxn = carve_floats(c, r * m->dim),
		.dx = carve_floats(c, r * m->dim),
		.norm_sums = carve_floats(c, threads * m->dim),
		.tile = carve_floats(c, threads * attention_scratch(&s->shape)),
		.logits = first ? carve_floats(c, s->chunk * m->vocab) : NULL,
		.losses = first ? carve_floats(c, r) : NULL,
		.rstd = first ? carve_floats(c, r) : NULL,
	};
}

static size_t carve_stage(struct cpu_stage *s, char *base)
{
	struct carver c = { .base = base, .align = STAGE_ALIGN };
	size_t half = s->shape.head_size / 2;

	for (int i = 0; i < ARRAY_COUNT; i++)
		if (i != ARRAY_GRADIENT || !s->l->only_steps)
			s->array[i] = carve_floats(&c, s->l->parameters);
	if (s->l->only_steps)
		return c.used;
	s->cosines = carve_floats(&c, s->l->sequence * half);
	s->sines = carve_floats(&c, s->l->sequence * half);
	carve_scratch(s, &c);
	carve_slots(&c, s->l, sizeof(real), s->scratch.xn, s->scratch.h, s->saved);
	if (s->l->index == 0)
		s->tokens = carve_array(&c, s->l->slots * s->rows, sizeof(*s->tokens));
	return c.used;
}

/* Returns the operations other than products for an instruction set. amx differs from v4 only in
 * products, so this function returns the operations of v4 for amx. NULL: this CPU lacks the
 * set. */
static const struct vector_ops *ops_of(const char *set)
{
	return vector_ops_named(strcmp(set, "amx") == 0 ? "v4" : set);
}

static int cpu_look(struct device_name *name, struct stage_device *out, struct error *err)
{
	int rc;

	if (!name->set[0]) {
		const char *best = product_set(name->bf16);

		snprintf(name->set, sizeof(name->set), "%s",
			 ops_of(best) ? best : vector_ops()->name);
	}
	if (!ops_of(name->set))
		return error_set(err, -ENOTSUP, "this CPU lacks the instructions of %s",
				 name->set);
	rc = product_limit(name->set, name->bf16, err);
	if (rc)
		return rc;
	if (name->bf16 && !product_has_bf16())
		return error_set(err, -ENOTSUP, "no bf16 products with %s on this CPU",
				 name->set);
	rc = product_check(err);
	if (rc)
		return rc;
	product_describe(name->bf16, out->text, sizeof(out->text));
	out->free_bytes = memory_usable();
	if (out->free_bytes == SIZE_MAX)
		out->free_bytes = UINT64_MAX;
	out->machine_bytes = out->free_bytes;
	return 0;
}

static void measure_stage(struct cpu_stage *s, const struct stage_layout *l)
{
	const struct model_config *c = &l->config;

	s->l = l;
	s->v = ops_of(l->device.set);
	s->rows = (size_t)l->batch * l->sequence;
	s->kv = (size_t)c->n_kv_heads * model_head_size(c);
	s->packed = c->dim + 2 * s->kv;
	s->chunk = LOGITS_MOST / c->vocab;
	if (s->chunk < 64)
		s->chunk = 64;
	if (s->chunk > s->rows)
		s->chunk = s->rows;
	s->shape = (struct attention_shape){ l->batch, l->sequence, c->n_heads, c->n_kv_heads,
					     model_head_size(c) };
}

static void cpu_free(void *self)
{
	struct cpu_stage *s = self;

	pool_free(s->pool);
	for (uint32_t i = 0; s->products && i < s->l->threads; i++)
		product_thread_free(s->products[i]);
	free(s->products);
	stage_memory_free(s->arena);
	free(s->saved);
	free(s);
}

static size_t larger_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

static int make_products(struct cpu_stage *s, struct error *err)
{
	const struct model_config *m = &s->l->config;
	size_t wide = larger_size(larger_size(2 * m->ffn_dim, s->packed), m->dim);
	size_t vocab = s->l->index == 0 ? m->vocab : 0;

	if (s->l->only_steps)
		return 0;
	s->products = alloc_array(s->l->threads, sizeof(struct product_thread *));
	for (uint32_t i = 0; s->l->bf16 && i < s->l->threads; i++) {
		/* Room for the largest factor a and the largest factor b of all products. A factor
		 * is an array of activations or of weights. */
		s->products[i] = product_thread_new(
			larger_size(s->rows * wide, s->chunk * vocab),
			larger_size(m->dim * larger_size(wide, vocab), s->rows * wide));
		if (!s->products[i])
			return error_set(err, -ENOMEM, "no memory for products in bf16");
	}
	return 0;
}

/* Returns the bytes that the stage needs at the level of recomputation with the smallest need. */
static size_t least_bytes(const struct cpu_stage *s)
{
	struct stage_layout l = *s->l;
	struct cpu_stage other = *s;

	l.recompute = RECOMPUTE_BLOCK;
	other.l = &l;
	return carve_stage(&other, NULL);
}

static int take_arena(struct cpu_stage *s, struct error *err)
{
	const struct stage_layout *l = s->l;
	size_t least = least_bytes(s);
	int rc;

	/* least_bytes has written the layout of another level to s->saved. This call writes the
	 * layout of the level in use. */
	s->arena_bytes = carve_stage(s, NULL);
	rc = stage_memory_new(&s->arena, s->arena_bytes, l->memory_bytes, err);
	if (rc)
		return error_prefix(
			err, rc,
			"stage %u, %u slots of %u x %u tokens, recompute %s (block "
			"needs %.1f MiB)",
			l->index, l->slots, l->batch, l->sequence, recompute_name(l->recompute),
			(double)least / 0x1p20);
	carve_stage(s, s->arena);
	return 0;
}

static int cpu_make(void **self, const struct stage_layout *l, struct error *err)
{
	struct cpu_stage *s = alloc_new(sizeof(*s));
	int rc;

	measure_stage(s, l);
	s->saved = calloc((size_t)l->slots * l->n_layers + 1, sizeof(*s->saved));
	if (!s->saved) {
		free(s);
		return error_set(err, -ENOMEM, "no memory for the slots of a stage");
	}
	rc = take_arena(s, err);
	if (!rc)
		rc = pool_new(&s->pool, l->threads, err);
	if (!rc)
		rc = make_products(s, err);
	if (rc) {
		cpu_free(s);
		return rc;
	}
	if (!l->only_steps)
		model_angles(&l->config, l->sequence, s->cosines, s->sines);
	*self = s;
	return 0;
}

static size_t cpu_memory(const void *self)
{
	const struct cpu_stage *s = self;

	return s->arena_bytes;
}

static void embed_tokens(const struct cpu_stage *s, const int32_t *tokens, float *out)
{
	const float *table = s->array[ARRAY_WEIGHTS] + s->l->embed;
	size_t c = s->l->config.dim;

	for (size_t r = 0; r < s->rows; r++)
		memcpy(out + r * c, table + (size_t)tokens[r] * c, c * sizeof(*out));
}

static void embed_backward(struct cpu_stage *s, const int32_t *tokens, const float *dx)
{
	float *table = s->array[ARRAY_GRADIENT] + s->l->embed;
	size_t c = s->l->config.dim;

	for (size_t r = 0; r < s->rows; r++)
		s->v->add(table + (size_t)tokens[r] * c, dx + r * c, c);
}

static int cpu_forward(void *self, uint32_t slot, const int32_t *tokens, const float *in,
		       float *out, bool keep)
{
	struct cpu_stage *s = self;
	size_t layers = s->l->n_layers, size = s->rows * s->l->config.dim * sizeof(*out);
	struct saved_layer *kept = s->saved + slot * layers;
	struct saved_layer *passing = s->saved + s->l->slots * layers;
	float *x = layers == 0 ? out : keep ? kept->x : passing->x;

	if (tokens)
		embed_tokens(s, tokens, x);
	else
		memcpy(x, in, size);
	if (tokens && keep)
		memcpy(s->tokens + slot * s->rows, tokens, s->rows * sizeof(*tokens));
	for (uint32_t i = 0; i < layers; i++) {
		bool last = i + 1 == layers;

		if (keep) {
			layer_forward(s, i, &kept[i], last ? out : kept[i + 1].x);
		} else {
			layer_forward(s, i, passing, out);
			if (!last)
				memcpy(passing->x, out, size);
		}
	}
	return 0;
}

static int cpu_backward(void *self, uint32_t slot, const float *grad_out, float *grad_in,
			bool count)
{
	struct cpu_stage *s = self;
	size_t layers = s->l->n_layers, size = s->rows * s->l->config.dim * sizeof(*grad_out);
	float *dx = grad_in ? grad_in : s->scratch.dx;

	memcpy(dx, grad_out, size);
	for (uint32_t i = (uint32_t)layers; i-- > 0;) {
		struct saved_layer *kept = &s->saved[slot * layers + i];

		if (s->l->recompute == RECOMPUTE_BLOCK)
			layer_forward(s, i, kept, NULL);
		layer_backward(s, i, kept, dx, count);
	}
	if (s->l->index == 0 && count)
		embed_backward(s, s->tokens + slot * s->rows, dx);
	return 0;
}

static int cpu_loss(void *self, const float *in, const int32_t *targets, float *loss,
		    float *grad, bool count)
{
	return head_loss(self, in, targets, loss, grad, count);
}

static int cpu_logits(void *self, const float *in, float *logits)
{
	head_logits(self, in, logits);
	return 0;
}

static int cpu_zero_gradient(void *self)
{
	struct cpu_stage *s = self;

	memset(s->array[ARRAY_GRADIENT], 0, s->l->parameters * sizeof(float));
	return 0;
}

static float *cpu_array(void *self, enum stage_array which)
{
	struct cpu_stage *s = self;

	return s->array[which];
}

static void cpu_changed(void *self)
{
	(void)self; /* the stage's arrays are host memory, so callers write to them directly */
}

static void cpu_put_state(void *self, size_t at, size_t n, const float *const state[3])
{
	static const enum stage_array arrays[] = { ARRAY_WEIGHTS, ARRAY_MOMENT1, ARRAY_MOMENT2 };
	struct cpu_stage *s = self;

	for (int k = 0; k < 3; k++)
		if (state[k])
			memcpy(s->array[arrays[k]] + at, state[k], n * sizeof(float));
}

static uint64_t cpu_hash(void *self)
{
	struct cpu_stage *s = self;

	return hash_floats(s->array[ARRAY_WEIGHTS], s->l->parameters);
}

struct step {
	struct cpu_stage *s;
	const float *gradient;
	float scale;
	const struct adamw *h;
	uint64_t t;
};

static void step_part(void *arg, uint32_t part, uint32_t parts)
{
	const struct step *j = arg;
	struct cpu_stage *s = j->s;

	for (size_t i = 0; i < s->l->n_tensors; i++) {
		const struct tensor *t = &s->l->tensors[i];
		struct adamw_factors f = adamw_factors(
			j->h, j->scale, t->dims > 1 ? j->h->weight_decay : 0, j->t);
		size_t from, to;

		pool_slice(t->count, 1024, part, parts, &from, &to);
		from += t->offset;
		to += t->offset;
		s->v->adamw(s->array[ARRAY_WEIGHTS] + from, s->array[ARRAY_MOMENT1] + from,
			    s->array[ARRAY_MOMENT2] + from, j->gradient + from, to - from,
			    &f);
	}
}

static int cpu_squares(void *self, double *sum)
{
	struct cpu_stage *s = self;

	*sum = squares_sum(s->array[ARRAY_GRADIENT], s->l->parameters);
	return 0;
}

static int cpu_step(void *self, const float *gradient, float scale, const struct adamw *h,
		    uint64_t t)
{
	struct step j = { self, gradient, scale, h, t };

	if (!gradient)
		j.gradient = j.s->array[ARRAY_GRADIENT];
	pool_run(j.s->pool, step_part, &j);
	return 0;
}

const struct backend backend_cpu = {
	.name = "cpu",
	.look = cpu_look,
	.make = cpu_make,
	.free = cpu_free,
	.forward = cpu_forward,
	.loss = cpu_loss,
	.logits = cpu_logits,
	.backward = cpu_backward,
	.zero_gradient = cpu_zero_gradient,
	.memory = cpu_memory,
	.host_memory = cpu_memory,
	.array = cpu_array,
	.own = cpu_array,
	.changed = cpu_changed,
	.put_state = cpu_put_state,
	.hash = cpu_hash,
	.squares = cpu_squares,
	.step = cpu_step,
};
