/* Queues the products and kernels of a stage's passes on a GPU. The operations have the same order
 * as in model/cpu/layer.c, so that both backends compute the same.
 */
#include "model/cuda/stage_cuda.h"
#include "model/cuda/trial.h"

/* ---- kernels and products by name ---- */

void cuda_rows(struct cuda_stage *s, enum device_kernel kernel, size_t rows, const void *args)
{
	device_launch(s->d, kernel, s->l->bf16, rows, 1, ROW_THREADS, ROW_THREADS, args);
}

void cuda_each(struct cuda_stage *s, enum device_kernel kernel, size_t n, const void *args)
{
	device_launch(s->d, kernel, s->l->bf16, (n + ROW_THREADS - 1) / ROW_THREADS, 1,
		      ROW_THREADS, ROW_THREADS, args);
}

/* A block sums each of its columns in shared memory. */
size_t cuda_norm_shared(const struct cuda_stage *s)
{
	return ROW_THREADS + s->l->config.dim;
}

/* Returns the weights at this offset in the type that products read. */
static const real *factor_at(const struct cuda_stage *s, size_t offset)
{
	return s->rounded ? (const real *)(s->rounded + offset)
			  : s->array[ARRAY_WEIGHTS] + offset;
}

static void norm_forward(struct cuda_stage *s, real *y, float *rstd, const float *x, size_t weight,
			 size_t rows)
{
	struct norm_args a = { .x = x,
			       .w = s->array[ARRAY_WEIGHTS] + weight,
			       .y = y,
			       .rstd = rstd,
			       .n = s->l->config.dim,
			       .eps = s->l->config.norm_eps };

	cuda_rows(s, KERNEL_NORM, rows, &a);
}

/* dx += the gradient of x. The caller sets dy, x, rstd, dx and the outputs that it wants. count:
 * also adds the gradient of the weight to the stage's gradient. */
static void norm_backward(struct cuda_stage *s, struct norm_backward_args a, size_t weight,
			  size_t rows, bool count)
{
	size_t blocks = rows < NORM_PARTS ? rows : NORM_PARTS, n = s->l->config.dim;
	struct norm_sum_args sum = { .parts = s->t.parts,
				     .dw = s->array[ARRAY_GRADIENT] + weight,
				     .count = (unsigned)blocks,
				     .n = (unsigned)n };

	a.w = s->array[ARRAY_WEIGHTS] + weight;
	a.parts = count ? s->t.parts : NULL;
	a.rows = (unsigned)rows;
	a.n = (unsigned)n;
	device_launch(s->d, KERNEL_NORM_BACKWARD, s->l->bf16, blocks, 1, ROW_THREADS,
		      cuda_norm_shared(s), &a);
	if (count)
		device_launch(s->d, KERNEL_NORM_SUM, s->l->bf16, (n + COLUMNS - 1) / COLUMNS, 1,
			      COLUMNS * GROUPS, COLUMNS * GROUPS, &sum);
}

/* Describes the product x (rows, k) w (n, k)^T. The caller sets the output (rows, n). */
static struct device_product forward_product(struct cuda_stage *s, const real *x, size_t weight,
					     size_t rows, size_t n, size_t k)
{
	return (struct device_product){ .kind = PRODUCT_NT,
					.m = rows,
					.n = n,
					.k = k,
					.a = x,
					.lda = k,
					.b = factor_at(s, weight),
					.ldb = k,
					.ldc = n,
					.bf16 = s->l->bf16 };
}

static void apply_weight(struct cuda_stage *s, real *y, const real *x, size_t weight,
			 size_t rows, size_t n, size_t k)
{
	struct device_product p = forward_product(s, x, weight, rows, n, k);

	p.c = y;
	p.c_bf16 = s->l->bf16;
	device_product(s->d, &p);
}

/* As apply_weight, but y is floats: y = the product + added. added may be NULL. */
static void apply_float(struct cuda_stage *s, float *y, const real *x, size_t weight,
			size_t rows, size_t n, size_t k, const float *added)
{
	struct device_product p = forward_product(s, x, weight, rows, n, k);

	p.c = y;
	p.added = added;
	device_product(s->d, &p);
}

/* dx (rows, k) = dy (rows, n) w (n, k), with `stride` numbers between two rows of dy */
static void apply_back(struct cuda_stage *s, real *dx, const real *dy, size_t stride,
		       size_t weight, size_t rows, size_t n, size_t k)
{
	struct device_product p = { .kind = PRODUCT_NN,
				    .m = rows,
				    .n = k,
				    .k = n,
				    .a = dy,
				    .lda = stride,
				    .b = factor_at(s, weight),
				    .ldb = k,
				    .c = dx,
				    .ldc = k,
				    .bf16 = s->l->bf16,
				    .c_bf16 = s->l->bf16 };

	device_product(s->d, &p);
}

/* The weight's gradient (n, k) += dy (rows, n)^T x (rows, k), with `stride` numbers between two
 * rows of dy */
static void weight_gradient(struct cuda_stage *s, size_t weight, const real *dy, size_t stride,
			    const real *x, size_t rows, size_t n, size_t k)
{
	struct device_product p = { .kind = PRODUCT_TN,
				    .m = n,
				    .n = k,
				    .k = rows,
				    .a = dy,
				    .lda = stride,
				    .b = x,
				    .ldb = k,
				    .c = s->array[ARRAY_GRADIENT] + weight,
				    .ldc = k,
				    .bf16 = s->l->bf16,
				    .added = s->array[ARRAY_GRADIENT] + weight };

	device_product(s->d, &p);
}

static void rotate_heads(struct cuda_stage *s, real *qkv, float sign)
{
	const struct model_config *c = &s->l->config;
	struct rotate_args a = { .x = qkv,
				 .cosines = s->cosines,
				 .sines = s->sines,
				 .stride = (unsigned)s->packed,
				 .heads = c->n_heads + c->n_kv_heads,
				 .half = model_head_size(c) / 2,
				 .period = s->l->sequence,
				 .sign = sign };

	cuda_rows(s, KERNEL_ROTATE, s->rows, &a);
}

/* ---- attention ----
 * Each launch needs shared memory for tiles of queries, keys and values, for scores and for sums.
 * Sizes of shared memory are in floats. */

static struct attention_args attention_of(const struct cuda_stage *s,
					  const struct saved_layer *k)
{
	const struct model_config *c = &s->l->config;

	return (struct attention_args){
		.qkv = k->qkv,
		.out = k->att,
		.lse = k->lse,
		.dout = s->t.datt,
		.dot = s->t.dot,
		.dqkv = s->t.dqkv,
		.length = s->l->sequence,
		.heads = c->n_heads,
		.kv_heads = c->n_kv_heads,
		.size = model_head_size(c),
		.stride = (unsigned)s->packed,
		.scale = s->scale,
	};
}

/* Returns the floats of shared memory that a kernel uses. */
static size_t attention_shared(enum device_kernel kernel, const struct attention_launch *l,
			       bool bf16, size_t size)
{
	/* Number of tiles of the block's own rows. */
	size_t own = kernel == KERNEL_ATTENTION ? 1 : 2;
	size_t sums = kernel == KERNEL_ATTENTION_DKV ? 2 : 1;
	size_t small = kernel == KERNEL_ATTENTION_DKV ? 2 * l->tile * l->buffers : 0;

	if (!bf16)
		return (own + 2) * l->tile * size + sums * l->tile * l->tile;
	return (own + 2 * l->buffers) * l->tile * (size + 8) / 2 + small;
}

bool attention_launch_of(struct attention_launch *l, struct device *d, enum device_kernel kernel,
			 bool bf16, unsigned size)
{
	unsigned wide = size > 64 ? 128 : 64, blocks;
	struct attention_launch one;

	*l = (struct attention_launch){ .kernel = kernel,
					.tile = bf16 ? FLASH_TILE : TILE,
					.threads = bf16 ? FLASH_THREADS : TILE_THREADS,
					.buffers = 1 };
	if (bf16 && wide > 64)
		l->kernel = kernel - KERNEL_ATTENTION + KERNEL_ATTENTION_WIDE;
	l->shared = attention_shared(kernel, l, bf16, bf16 ? wide : size);
	if (!bf16 || l->shared > device_shared_most(d))
		return l->shared <= device_shared_most(d);
	one = *l;
	l->buffers = 2;
	l->shared = attention_shared(kernel, l, bf16, wide);
	blocks = l->shared > device_shared_most(d)
			 ? 0
			 : device_resident(d, l->kernel, bf16, l->threads, l->shared);
	if (device_resident(d, l->kernel, bf16, l->threads, one.shared) >= 2 * blocks)
		*l = one;
	return true;
}

size_t attention_group(const struct device *d, enum device_kernel kernel, size_t heads,
		       size_t tiles, const struct attention_args *a)
{
	enum { BLOCKS_Y_MOST = 65535 };
	size_t side = 2 * (size_t)a->length * a->size * sizeof(uint16_t);
	size_t share = a->heads / a->kv_heads;
	size_t bytes = kernel == KERNEL_ATTENTION_DKV ? side * share : side / share;

	for (size_t n = heads; n > 0; n--)
		if (heads % n == 0 && n * bytes <= device_cache(d) / 4 &&
		    heads / n * tiles <= BLOCKS_Y_MOST)
			return n;
	return heads;
}

void attention_start(struct device *d, enum device_kernel kernel, bool bf16, size_t batch,
		     const struct attention_args *a)
{
	size_t heads = batch * (kernel == KERNEL_ATTENTION_DKV ? a->kv_heads : a->heads), tiles;
	struct attention_args args = *a;
	struct attention_launch l;
	size_t group;

	attention_launch_of(&l, d, kernel, bf16, a->size);
	args.buffers = l.buffers;
	tiles = (a->length + l.tile - 1) / l.tile;
	group = bf16 ? attention_group(d, kernel, heads, tiles, a) : heads;
	device_launch(d, l.kernel, bf16, group, heads / group * tiles, l.threads, l.shared, &args);
}

static void launch_attention(struct cuda_stage *s, enum device_kernel kernel,
			     const struct attention_args *a)
{
	attention_start(s->d, kernel, s->l->bf16, s->l->batch, a);
}

static void run_cudnn(struct cuda_stage *s, enum cudnn_pass pass, const struct attention_args *a)
{
	const struct cudnn_arrays arrays = { .qkv = a->qkv,
					     .out = a->out,
					     .lse = a->lse,
					     .dout = a->dout,
					     .dot = s->t.dot,
					     .dqkv = a->dqkv,
					     .workspace = s->t.attention,
					     .scale = a->scale };

	device_attention(s->d, pass, &arrays);
}

static void attention_forward(struct cuda_stage *s, const struct saved_layer *k)
{
	struct attention_args a = attention_of(s, k);

	if (s->trials & TRIAL_ATTENTION)
		run_cudnn(s, CUDNN_FORWARD, &a);
	else
		launch_attention(s, KERNEL_ATTENTION, &a);
}

static void attention_backward(struct cuda_stage *s, const struct saved_layer *k)
{
	struct attention_args a = attention_of(s, k);
	struct attention_dot_args dot = { .out = k->att,
					  .dout = s->t.datt,
					  .dot = s->t.dot,
					  .length = a.length,
					  .heads = a.heads,
					  .size = a.size };

	bool turned = s->l->bf16 && (a.size == HEAD_MOST / 2 || a.size == HEAD_MOST);

	if (s->trials & TRIAL_ATTENTION) {
		run_cudnn(s, CUDNN_BACKWARD, &a);
		rotate_heads(s, s->t.dqkv, -1);
		return;
	}
	a.cosines = turned ? s->cosines : NULL;
	a.sines = s->sines;
	cuda_rows(s, KERNEL_ATTENTION_DOT, s->rows, &dot);
	launch_attention(s, KERNEL_ATTENTION_DQ, &a);
	launch_attention(s, KERNEL_ATTENTION_DKV, &a);
	if (!turned)
		rotate_heads(s, s->t.dqkv, -1);
}

/* ---- passes ---- If `out` is NULL, layer_forward computes only arrays that the backward pass
 * reads and cannot compute itself. */

static void layer_forward(struct cuda_stage *s, uint32_t layer, const struct saved_layer *k,
			  float *out)
{
	const struct layer_offsets *at = &s->l->layers[layer];
	size_t c = s->l->config.dim, f = s->l->config.ffn_dim, r = s->rows;
	struct swiglu_args swiglu = { .gu = k->gu, .h = k->h, .f = (unsigned)f };

	norm_forward(s, k->xn1, k->rstd1, k->x, at->norm1, r);
	apply_weight(s, k->qkv, k->xn1, at->qkv, r, s->packed, c);
	rotate_heads(s, k->qkv, 1);
	attention_forward(s, k);
	apply_float(s, k->mid, k->att, at->o, r, c, c, k->x);
	norm_forward(s, k->xn2, k->rstd2, k->mid, at->norm2, r);
	apply_weight(s, k->gu, k->xn2, at->gate_up, r, 2 * f, c);
	if (!out)
		return;
	cuda_rows(s, KERNEL_SWIGLU, r, &swiglu);
	apply_float(s, out, k->h, at->down, r, c, f, k->mid);
}

/* t.dx: on entry the gradient of the layer's output, on return the gradient of the layer's input.
 * t.dx_real: the same numbers in the type that products read. */
static void layer_backward(struct cuda_stage *s, uint32_t layer, const struct saved_layer *k,
			   bool count)
{
	const struct layer_offsets *at = &s->l->layers[layer];
	const struct cuda_scratch *t = &s->t;
	size_t c = s->l->config.dim, f = s->l->config.ffn_dim, r = s->rows;
	bool again = count && s->l->recompute != RECOMPUTE_NONE;
	/* With RECOMPUTE_BLOCK, xn2 has the output of the second norm. */
	bool second = again && s->l->recompute != RECOMPUTE_BLOCK;
	real *rounded = s->l->bf16 ? t->dx_real : NULL;
	struct swiglu_backward_args swiglu = { .gu = k->gu,
					       .dh = t->dh,
					       .dgu = t->dgu,
					       .h = again ? k->h : NULL,
					       .f = (unsigned)f };
	struct norm_backward_args norm2 = { .dy = t->dxn,
					    .x = k->mid,
					    .rstd = k->rstd2,
					    .dx = t->dx,
					    .rounded = rounded,
					    .y = second ? k->xn2 : NULL };
	struct norm_backward_args norm1 = { .dy = t->dxn,
					    .x = k->x,
					    .rstd = k->rstd1,
					    .dx = t->dx,
					    .rounded = layer > 0 ? rounded : NULL,
					    .y = again ? k->xn1 : NULL };

	apply_back(s, t->dh, t->dx_real, c, at->down, r, c, f);
	cuda_rows(s, KERNEL_SWIGLU_BACKWARD, r, &swiglu);
	apply_back(s, t->dxn, t->dgu, 2 * f, at->gate_up, r, 2 * f, c);
	if (count)
		weight_gradient(s, at->down, t->dx_real, c, k->h, r, c, f);
	norm_backward(s, norm2, at->norm2, r, count);
	if (count)
		weight_gradient(s, at->gate_up, t->dgu, 2 * f, k->xn2, r, 2 * f, c);
	apply_back(s, t->datt, t->dx_real, c, at->o, r, c, c);
	if (count)
		weight_gradient(s, at->o, t->dx_real, c, k->att, r, c, c);
	attention_backward(s, k);
	apply_back(s, t->dxn, t->dqkv, s->packed, at->qkv, r, s->packed, c);
	norm_backward(s, norm1, at->norm1, r, count);
	if (count)
		weight_gradient(s, at->qkv, t->dqkv, s->packed, k->xn1, r, s->packed, c);
}

void cuda_layers_forward(struct cuda_stage *s, uint32_t slot, bool keep)
{
	size_t layers = s->l->n_layers, size = s->rows * s->l->config.dim * sizeof(float);
	const struct saved_layer *kept = s->saved + slot * layers;
	const struct saved_layer *passing = s->saved + s->l->slots * layers;

	for (uint32_t i = 0; i < layers; i++) {
		const struct saved_layer *k = keep ? &kept[i] : passing;
		bool last = i + 1 == layers;

		layer_forward(s, i, k, keep && !last ? kept[i + 1].x : s->t.dx);
		if (!keep && !last)
			device_copy(s->d, passing->x, s->t.dx, size);
	}
}

void cuda_layers_backward(struct cuda_stage *s, uint32_t slot, bool count)
{
	size_t layers = s->l->n_layers, n = s->rows * s->l->config.dim;
	struct cast_args cast = { .x = s->t.dx, .y = s->t.dx_real, .n = n };

	if (s->l->bf16)
		cuda_each(s, KERNEL_CAST, (n + 7) / 8, &cast);
	for (uint32_t i = (uint32_t)layers; i-- > 0;) {
		const struct saved_layer *k = &s->saved[slot * layers + i];

		if (s->l->recompute == RECOMPUTE_BLOCK)
			layer_forward(s, i, k, NULL);
		layer_backward(s, i, k, count);
	}
}

void cuda_head(struct cuda_stage *s, size_t first, size_t n, bool rounded)
{
	size_t c = s->l->config.dim;
	char *xn = (char *)s->t.xn + first * c * s->width;
	struct device_product p;

	norm_forward(s, xn, s->t.rstd + first, s->t.in + first * c, s->l->last_norm, n);
	p = forward_product(s, xn, s->l->head, n, s->l->config.vocab, c);
	p.c = rounded ? s->t.dlogits : s->t.logits;
	p.c_bf16 = rounded;
	p.ldc = s->vocab_stride;
	device_product(s->d, &p);
}

void cuda_head_backward(struct cuda_stage *s, size_t first, size_t n, bool count)
{
	size_t c = s->l->config.dim, v = s->l->config.vocab, at = first * c * s->width;
	char *dxn = (char *)s->t.dxn + at, *xn = (char *)s->t.xn + at;
	struct norm_backward_args norm = { .dy = dxn,
					   .x = s->t.in + first * c,
					   .rstd = s->t.rstd + first,
					   .dx = s->t.dx + first * c };

	apply_back(s, dxn, s->t.dlogits, s->vocab_stride, s->l->head, n, v, c);
	if (count)
		weight_gradient(s, s->l->head, s->t.dlogits, s->vocab_stride, xn, n, v, c);
	norm_backward(s, norm, s->l->last_norm, n, count);
}
