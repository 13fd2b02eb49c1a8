#include "model/backend.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/cuda/device.h"
#include "model/cuda/kernel_args.h"

/* A stage on a GPU. The same passes in the same order as the CPU's (model/cpu/layer.c), with
 * all arrays in one allocation of device memory. R = B * T rows. */

enum { ALIGN = 256, LOGITS_MOST = 64 << 20 /* floats */ };

/* As model/cpu/stage_cpu.h's. */
struct saved_layer {
	float *x, *xn1, *rstd1, *qkv, *att, *lse, *mid, *rstd2, *xn2, *gu, *h;
};

struct cuda_stage {
	const struct stage_layout *l;
	struct device *d;
	size_t rows, kv, packed, chunk;
	float scale;               /* of attention scores */
	float *array[ARRAY_COUNT]; /* (P) */
	float *host[ARRAY_COUNT];  /* (P) pinned, for stage_weights and the like */
	bool lent[ARRAY_COUNT];    /* host[] is what the device has, or newer */
	float *gradient;           /* (P) what stage_step is given */
	float *cosines, *sines;    /* (T, D / 2) */
	struct saved_layer *saved; /* (slots, n_layers), then one for evaluation */
	int32_t *tokens;           /* (slots, R), stage 0, then one more */
	int32_t *targets;          /* (R) */
	float *xn, *h, *dgu, *dh, *dqkv, *datt, *dxn, *dx, *dot, *logits, *losses, *rstd;
	float *host_losses; /* (R) pinned */
	size_t bytes;       /* of device memory */
};

struct carver {
	char *base;
	size_t used;
};

static void *take(struct carver *c, size_t n)
{
	void *at = c->base ? c->base + c->used : NULL;

	c->used += (n * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
	return at;
}

static void carve_saved(const struct cuda_stage *s, struct carver *c, struct saved_layer *k,
			bool all)
{
	const struct model_config *m = &s->l->config;
	size_t r = s->rows;

	*k = (struct saved_layer){
		.x = take(c, r * m->dim),
		.rstd1 = take(c, r),
		.qkv = take(c, r * s->packed),
		.att = take(c, r * m->dim),
		.lse = take(c, r * m->n_heads),
		.mid = take(c, r * m->dim),
		.rstd2 = take(c, r),
		.gu = take(c, r * 2 * m->ffn_dim),
		.xn1 = all ? take(c, r * m->dim) : s->xn,
		.xn2 = all ? take(c, r * m->dim) : s->xn,
		.h = all ? take(c, r * m->ffn_dim) : s->h,
	};
}

/* Of the slots, and last the set that keeps nothing. */
static void carve_slots(struct cuda_stage *s, struct carver *c)
{
	size_t n = (size_t)s->l->slots * s->l->n_layers;

	carve_saved(s, c, &s->saved[n], false);
	for (size_t i = 0; i < n; i++) {
		if (s->l->recompute != RECOMPUTE_BLOCK) {
			carve_saved(s, c, &s->saved[i], s->l->recompute == RECOMPUTE_NONE);
		} else {
			s->saved[i] = s->saved[n];
			s->saved[i].x = take(c, s->rows * s->l->config.dim);
		}
	}
}

static size_t carve(struct cuda_stage *s, char *base)
{
	const struct model_config *m = &s->l->config;
	struct carver c = { .base = base };
	size_t r = s->rows, half = model_head_size(m) / 2, last = s->l->index == 0;

	for (int i = 0; i < ARRAY_COUNT; i++)
		s->array[i] = take(&c, s->l->parameters);
	s->gradient = take(&c, s->l->parameters);
	s->cosines = take(&c, s->l->sequence * half);
	s->sines = take(&c, s->l->sequence * half);
	s->xn = take(&c, r * m->dim);
	s->h = take(&c, r * m->ffn_dim);
	s->dgu = take(&c, r * 2 * m->ffn_dim);
	s->dh = take(&c, r * m->ffn_dim);
	s->dqkv = take(&c, r * s->packed);
	s->datt = take(&c, r * m->dim);
	s->dxn = take(&c, r * m->dim);
	s->dx = take(&c, r * m->dim);
	s->dot = take(&c, r * m->n_heads);
	carve_slots(s, &c);
	s->tokens = take(&c, last * (s->l->slots + 1) * r);
	s->targets = take(&c, last * r);
	s->logits = take(&c, last * s->chunk * m->vocab);
	s->losses = take(&c, last * r);
	s->rstd = take(&c, last * r);
	return c.used;
}

static void cuda_free(void *self)
{
	struct cuda_stage *s = self;

	device_close(s->d);
	free(s->saved);
	free(s);
}

static int fill_angles(struct cuda_stage *s, struct error *err)
{
	size_t half = model_head_size(&s->l->config) / 2, n = s->l->sequence * half;
	float *angles = malloc(2 * n * sizeof(*angles));
	double theta = (double)s->l->config.rope_theta;

	if (!angles)
		return error_set(err, -ENOMEM, "no memory for a table of angles");
	for (size_t i = 0; i < n; i++) {
		size_t position = i / half, pair = i % half;
		double angle = (double)position * pow(theta, -(double)pair / (double)half);

		angles[i] = (float)cos(angle);
		angles[n + i] = (float)sin(angle);
	}
	device_put(s->d, s->cosines, angles, n * sizeof(*angles));
	device_put(s->d, s->sines, angles + n, n * sizeof(*angles));
	if (device_status(s->d))
		return free(angles),
		       error_set(err, -EIO, "the device failed at its first copy");
	free(angles);
	return 0;
}

static int allocate(struct cuda_stage *s, struct error *err)
{
	void *memory;
	int rc;

	s->bytes = carve(s, NULL);
	if (s->l->memory_bytes && s->bytes > s->l->memory_bytes)
		rc = error_set(err, -ENOMEM, "needs %.1f MiB, may take %.1f",
			       (double)s->bytes / 0x1p20, (double)s->l->memory_bytes / 0x1p20);
	else
		rc = device_allocate(s->d, s->bytes, &memory, err);

	for (int i = 0; i < ARRAY_COUNT && !rc; i++) {
		void *host;

		rc = device_allocate_host(s->d, s->l->parameters * sizeof(float), &host, err);
		if (!rc)
			s->host[i] = host;
	}
	if (!rc) {
		void *losses;

		rc = device_allocate_host(s->d, s->rows * sizeof(float), &losses, err);
		if (!rc)
			s->host_losses = losses;
	}
	if (rc)
		return error_prefix(err, rc, "stage %u with %u slots, recompute %s",
				    s->l->index, s->l->slots, recompute_name(s->l->recompute));
	carve(s, memory);
	for (int i = 0; i < ARRAY_COUNT; i++)
		device_clear(s->d, s->array[i], s->l->parameters * sizeof(float));
	return fill_angles(s, err);
}

static int cuda_make(void **self, const struct stage_layout *l, uint32_t number,
		     struct error *err)
{
	const struct model_config *c = &l->config;
	struct cuda_stage *s;
	int rc;

	if (model_head_size(c) > HEAD_MOST)
		return error_set(err, -EINVAL, "head size %u: at most %d on the GPU",
				 model_head_size(c), HEAD_MOST);
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(err, -ENOMEM, "no memory for a stage");
	s->l = l;
	s->rows = (size_t)l->batch * l->sequence;
	s->kv = (size_t)c->n_kv_heads * model_head_size(c);
	s->packed = c->dim + 2 * s->kv;
	s->scale = 1.0f / sqrtf((float)model_head_size(c));
	s->chunk = LOGITS_MOST / c->vocab < s->rows ? LOGITS_MOST / c->vocab : s->rows;
	s->saved = calloc((size_t)l->slots * l->n_layers + 1, sizeof(*s->saved));
	rc = s->saved ? device_open(&s->d, number, err)
		      : error_set(err, -ENOMEM, "no memory for the slots of a stage");
	if (!rc)
		rc = allocate(s, err);
	if (rc)
		cuda_free(s);
	else
		*self = s;
	return rc;
}

/* The device's arrays move on: what the caller was lent is old from now on. */
static void take_back(struct cuda_stage *s)
{
	for (int i = 0; i < ARRAY_COUNT; i++)
		s->lent[i] = false;
}

/* Kernels and products by name. */

static void row_kernel(struct cuda_stage *s, enum device_kernel kernel, size_t rows,
		       const void *args)
{
	device_launch(s->d, kernel, rows, 1, ROW_THREADS, ROW_THREADS, args);
}

static void norm(struct cuda_stage *s, float *y, float *rstd, const float *x, const float *w,
		 size_t rows, bool again)
{
	struct norm_args a = { x, w, y, rstd, s->l->config.dim, s->l->config.norm_eps, again };

	row_kernel(s, KERNEL_NORM, rows, &a);
}

/* dx += the gradient of x; dw, unless NULL, += that of w. */
static void norm_backward(struct cuda_stage *s, float *dx, float *dw, const float *dy,
			  const float *x, const float *w, const float *rstd, size_t rows)
{
	unsigned n = s->l->config.dim;
	struct norm_backward_args a = { dy, x, w, rstd, dx, n };
	struct norm_weight_args b = { dy, x, rstd, dw, (unsigned)rows, n };

	row_kernel(s, KERNEL_NORM_BACKWARD, rows, &a);
	if (dw)
		device_launch(s->d, KERNEL_NORM_WEIGHT, (n + COLUMNS - 1) / COLUMNS, 1,
			      COLUMNS * GROUPS, COLUMNS * GROUPS, &b);
}

/* y (rows, n) = x (rows, k) w (n, k)^T + beta y */
static void apply(struct cuda_stage *s, float *y, const float *x, const float *w, size_t rows,
		  size_t n, size_t k, float beta)
{
	device_product(s->d, PRODUCT_NT, rows, n, k, x, k, w, k, beta, y, n);
}

/* dx (rows, k) = dy (rows, n) w (n, k) */
static void apply_back(struct cuda_stage *s, float *dx, const float *dy, const float *w,
		       size_t rows, size_t n, size_t k)
{
	device_product(s->d, PRODUCT_NN, rows, k, n, dy, n, w, k, 0, dx, k);
}

/* dw (n, k) += dy (rows, n)^T x (rows, k) */
static void weight_gradient(struct cuda_stage *s, float *dw, const float *dy, const float *x,
			    size_t rows, size_t n, size_t k)
{
	device_product(s->d, PRODUCT_TN, n, k, rows, dy, n, x, k, 1, dw, k);
}

static void rotate(struct cuda_stage *s, float *qkv, float sign)
{
	const struct model_config *c = &s->l->config;
	struct rotate_args a = { qkv,
				 s->cosines,
				 s->sines,
				 (unsigned)s->packed,
				 c->n_heads + c->n_kv_heads,
				 model_head_size(c) / 2,
				 s->l->sequence,
				 sign };

	row_kernel(s, KERNEL_ROTATE, s->rows, &a);
}

static struct attention_args attention_of(const struct cuda_stage *s,
					  const struct saved_layer *k)
{
	const struct model_config *c = &s->l->config;

	return (struct attention_args){
		.qkv = k->qkv,
		.out = k->att,
		.lse = k->lse,
		.dout = s->datt,
		.dot = s->dot,
		.dqkv = s->dqkv,
		.length = s->l->sequence,
		.heads = c->n_heads,
		.kv_heads = c->n_kv_heads,
		.size = model_head_size(c),
		.stride = (unsigned)s->packed,
		.scale = s->scale,
	};
}

static void attention_forward(struct cuda_stage *s, const struct saved_layer *k)
{
	struct attention_args a = attention_of(s, k);

	device_launch(s->d, KERNEL_ATTENTION, (a.length + TILE - 1) / TILE,
		      (size_t)s->l->batch * a.heads, TILE_THREADS,
		      3 * TILE * a.size + TILE * TILE, &a);
}

static void attention_backward(struct cuda_stage *s, const struct saved_layer *k)
{
	struct attention_args a = attention_of(s, k);
	struct attention_dot_args dot = { k->att, s->datt, s->dot, a.length, a.heads, a.size };
	size_t tiles = (a.length + TILE - 1) / TILE;

	row_kernel(s, KERNEL_ATTENTION_DOT, s->rows, &dot);
	device_launch(s->d, KERNEL_ATTENTION_DQ, tiles, (size_t)s->l->batch * a.heads,
		      TILE_THREADS, 4 * TILE * a.size + TILE * TILE, &a);
	device_launch(s->d, KERNEL_ATTENTION_DKV, tiles, (size_t)s->l->batch * a.kv_heads,
		      TILE_THREADS, 4 * TILE * a.size + 2 * TILE * TILE, &a);
}

/* Passes. Those of a layer are cpu/layer.c's; out NULL: all that the backward pass needs. */

static void layer_forward(struct cuda_stage *s, uint32_t layer, const struct saved_layer *k,
			  float *out)
{
	const struct layer_offsets *at = &s->l->layers[layer];
	const float *w = s->array[ARRAY_WEIGHTS];
	size_t c = s->l->config.dim, f = s->l->config.ffn_dim, r = s->rows;
	struct swiglu_args a = { k->gu, k->h, (unsigned)f };

	norm(s, k->xn1, k->rstd1, k->x, w + at->norm1, r, false);
	apply(s, k->qkv, k->xn1, w + at->qkv, r, s->packed, c, 0);
	rotate(s, k->qkv, 1);
	attention_forward(s, k);
	device_copy(s->d, k->mid, k->x, r * c * sizeof(float));
	apply(s, k->mid, k->att, w + at->o, r, c, c, 1);
	norm(s, k->xn2, k->rstd2, k->mid, w + at->norm2, r, false);
	apply(s, k->gu, k->xn2, w + at->gate_up, r, 2 * f, c, 0);
	row_kernel(s, KERNEL_SWIGLU, r, &a);
	if (!out)
		return;
	device_copy(s->d, out, k->mid, r * c * sizeof(float));
	apply(s, out, k->h, w + at->down, r, c, f, 1);
}

/* dx: the gradient of the output comes in, that of the input goes out. g NULL: only pass on. */
static void layer_backward(struct cuda_stage *s, uint32_t layer, const struct saved_layer *k,
			   float *dx, float *g)
{
	const struct layer_offsets *at = &s->l->layers[layer];
	const float *w = s->array[ARRAY_WEIGHTS];
	size_t c = s->l->config.dim, f = s->l->config.ffn_dim, r = s->rows;
	bool again = s->l->recompute != RECOMPUTE_NONE;
	struct swiglu_backward_args a = { k->gu, s->dh, s->dgu, again ? k->h : NULL,
					  (unsigned)f };

	apply_back(s, s->dh, dx, w + at->down, r, c, f);
	row_kernel(s, KERNEL_SWIGLU_BACKWARD, r, &a);
	apply_back(s, s->dxn, s->dgu, w + at->gate_up, r, 2 * f, c);
	if (g && again)
		norm(s, k->xn2, k->rstd2, k->mid, w + at->norm2, r, true);
	if (g) {
		weight_gradient(s, g + at->down, dx, k->h, r, c, f);
		weight_gradient(s, g + at->gate_up, s->dgu, k->xn2, r, 2 * f, c);
	}
	norm_backward(s, dx, g ? g + at->norm2 : NULL, s->dxn, k->mid, w + at->norm2, k->rstd2,
		      r);
	apply_back(s, s->datt, dx, w + at->o, r, c, c);
	if (g)
		weight_gradient(s, g + at->o, dx, k->att, r, c, c);
	attention_backward(s, k);
	rotate(s, s->dqkv, -1);
	apply_back(s, s->dxn, s->dqkv, w + at->qkv, r, s->packed, c);
	if (g && again)
		norm(s, k->xn1, k->rstd1, k->x, w + at->norm1, r, true);
	if (g)
		weight_gradient(s, g + at->qkv, s->dqkv, k->xn1, r, s->packed, c);
	norm_backward(s, dx, g ? g + at->norm1 : NULL, s->dxn, k->x, w + at->norm1, k->rstd1,
		      r);
}

static int cuda_forward(void *self, uint32_t slot, const int32_t *tokens, const float *in,
			float *out, bool keep)
{
	struct cuda_stage *s = self;
	size_t layers = s->l->n_layers, size = s->rows * s->l->config.dim * sizeof(*out);
	const struct saved_layer *kept = s->saved + slot * layers;
	const struct saved_layer *passing = s->saved + s->l->slots * layers;
	float *x = layers == 0 ? s->dx : keep ? kept->x : passing->x;

	if (tokens) {
		int32_t *to = s->tokens + (keep ? slot : s->l->slots) * s->rows;
		struct embed_args a = { to, s->array[ARRAY_WEIGHTS] + s->l->embed, x,
					s->l->config.dim };

		device_put(s->d, to, tokens, s->rows * sizeof(*tokens));
		row_kernel(s, KERNEL_EMBED, s->rows, &a);
	} else {
		device_put(s->d, x, in, size);
	}
	for (uint32_t i = 0; i < layers; i++) {
		const struct saved_layer *k = keep ? &kept[i] : passing;
		bool last = i + 1 == layers;

		layer_forward(s, i, k, keep && !last ? kept[i + 1].x : s->dx);
		if (!keep && !last)
			device_copy(s->d, passing->x, s->dx, size);
	}
	device_get(s->d, out, s->dx, size);
	return device_status(s->d);
}

static int cuda_backward(void *self, uint32_t slot, const float *grad_out, float *grad_in,
			 bool count)
{
	struct cuda_stage *s = self;
	size_t layers = s->l->n_layers, size = s->rows * s->l->config.dim * sizeof(*grad_out);
	float *g = count ? s->array[ARRAY_GRADIENT] : NULL;

	take_back(s);
	device_put(s->d, s->dx, grad_out, size);
	for (uint32_t i = (uint32_t)layers; i-- > 0;) {
		const struct saved_layer *k = &s->saved[slot * layers + i];

		if (s->l->recompute == RECOMPUTE_BLOCK)
			layer_forward(s, i, k, NULL);
		layer_backward(s, i, k, s->dx, g);
	}
	if (grad_in)
		device_get(s->d, grad_in, s->dx, size);
	if (s->l->index == 0 && count) {
		struct embed_backward_args a = { s->tokens + slot * s->rows, s->dx,
						 g + s->l->embed, (unsigned)s->rows,
						 s->l->config.dim };

		row_kernel(s, KERNEL_EMBED_BACKWARD, s->l->config.vocab, &a);
	}
	return device_status(s->d);
}

/* The last norm and the head of rows [first, first + n) of in (R, C): logits (n, vocab). */
static void head(struct cuda_stage *s, const float *in, size_t first, size_t n)
{
	const float *w = s->array[ARRAY_WEIGHTS];
	size_t c = s->l->config.dim;

	norm(s, s->xn + first * c, s->rstd + first, in + first * c, w + s->l->last_norm, n,
	     false);
	apply(s, s->logits, s->xn + first * c, w + s->l->head, n, s->l->config.vocab, c, 0);
}

static void head_backward(struct cuda_stage *s, const float *in, float *dx, float *g,
			  size_t first, size_t n)
{
	const float *w = s->array[ARRAY_WEIGHTS];
	size_t c = s->l->config.dim, v = s->l->config.vocab;

	apply_back(s, s->dxn + first * c, s->logits, w + s->l->head, n, v, c);
	if (g)
		weight_gradient(s, g + s->l->head, s->logits, s->xn + first * c, n, v, c);
	norm_backward(s, dx + first * c, g ? g + s->l->last_norm : NULL, s->dxn + first * c,
		      in + first * c, w + s->l->last_norm, s->rstd + first, n);
}

static int cuda_loss(void *self, const float *in, const int32_t *targets, float *loss,
		     float *grad, bool count)
{
	struct cuda_stage *s = self;
	size_t c = s->l->config.dim, v = s->l->config.vocab, size = s->rows * c * sizeof(*in);
	float *g = grad && count ? s->array[ARRAY_GRADIENT] : NULL, *x = s->datt;
	size_t counted = 0;
	double sum = 0;
	int rc;

	take_back(s);
	for (size_t i = 0; i < s->rows; i++)
		counted += targets[i] >= 0;
	device_put(s->d, x, in, size);
	device_put(s->d, s->targets, targets, s->rows * sizeof(*targets));
	device_clear(s->d, s->dx, size);
	for (size_t first = 0, n; first < s->rows; first += n) {
		struct cross_entropy_args a = { s->logits, s->targets + first,
						s->losses + first, (unsigned)v,
						grad ? 1.0f / (float)(counted ? counted : 1)
						     : 0 };

		n = s->rows - first < s->chunk ? s->rows - first : s->chunk;
		head(s, x, first, n);
		row_kernel(s, KERNEL_CROSS_ENTROPY, n, &a);
		if (grad)
			head_backward(s, x, s->dx, g, first, n);
	}
	if (grad)
		device_get(s->d, grad, s->dx, size);
	device_get(s->d, s->host_losses, s->losses, s->rows * sizeof(float));
	rc = device_status(s->d);
	for (size_t i = 0; i < s->rows; i++)
		sum += (double)s->host_losses[i];
	if (!rc)
		*loss = counted ? (float)(sum / (double)counted) : 0;
	return rc;
}

static int cuda_logits(void *self, const float *in, float *logits)
{
	struct cuda_stage *s = self;
	size_t v = s->l->config.vocab;

	device_put(s->d, s->datt, in, s->rows * s->l->config.dim * sizeof(*in));
	for (size_t first = 0, n; first < s->rows; first += n) {
		n = s->rows - first < s->chunk ? s->rows - first : s->chunk;
		head(s, s->datt, first, n);
		device_get(s->d, logits + first * v, s->logits, n * v * sizeof(*logits));
	}
	return device_status(s->d);
}

static int cuda_zero_gradient(void *self)
{
	struct cuda_stage *s = self;

	take_back(s);
	device_clear(s->d, s->array[ARRAY_GRADIENT], s->l->parameters * sizeof(float));
	return device_status(s->d);
}

static size_t cuda_memory(const void *self)
{
	const struct cuda_stage *s = self;

	return s->bytes;
}

static float *cuda_array(void *self, enum stage_array which)
{
	struct cuda_stage *s = self;

	device_get(s->d, s->host[which], s->array[which], s->l->parameters * sizeof(float));
	s->lent[which] = true;
	return s->host[which];
}

static void cuda_changed(void *self)
{
	struct cuda_stage *s = self;

	for (int i = 0; i < ARRAY_COUNT; i++)
		if (s->lent[i])
			device_put(s->d, s->array[i], s->host[i],
				   s->l->parameters * sizeof(float));
	device_status(s->d);
}

static int cuda_step(void *self, const float *gradient, float scale, const struct adamw *h,
		     uint64_t t)
{
	struct cuda_stage *s = self;
	float unbias1 = (float)(1 / (1 - pow((double)h->beta1, (double)t)));
	float unbias2 = (float)(1 / (1 - pow((double)h->beta2, (double)t)));

	take_back(s);
	device_put(s->d, s->gradient, gradient, s->l->parameters * sizeof(float));
	for (size_t i = 0; i < s->l->n_tensors; i++) {
		const struct tensor *x = &s->l->tensors[i];
		float decay = x->dims > 1 ? h->weight_decay : 0;
		struct adamw_args a = {
			.w = s->array[ARRAY_WEIGHTS] + x->offset,
			.m = s->array[ARRAY_MOMENT1] + x->offset,
			.v = s->array[ARRAY_MOMENT2] + x->offset,
			.g = s->gradient + x->offset,
			.n = x->count,
			.scale = scale,
			.lr = h->lr,
			.beta1 = h->beta1,
			.beta2 = h->beta2,
			.eps = h->eps,
			.keep = 1 - h->lr * decay,
			.unbias1 = unbias1,
			.unbias2 = unbias2,
		};

		row_kernel(s, KERNEL_ADAMW, (x->count + ROW_THREADS - 1) / ROW_THREADS, &a);
	}
	return device_status(s->d);
}

const struct backend backend_cuda = {
	.name = "cuda",
	.make = cuda_make,
	.free = cuda_free,
	.forward = cuda_forward,
	.loss = cuda_loss,
	.logits = cuda_logits,
	.backward = cuda_backward,
	.zero_gradient = cuda_zero_gradient,
	.memory = cuda_memory,
	.array = cuda_array,
	.changed = cuda_changed,
	.step = cuda_step,
};
