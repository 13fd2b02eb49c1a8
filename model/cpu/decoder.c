/* Computes one token at a time for generating text. A stage would compute all earlier tokens again
 * for each token; the decoder keeps the keys and values of earlier tokens. */
#include "model/cpu/decoder.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/backend.h"
#include "model/cpu/product.h"
#include "model/vector/vector.h"

struct decoder_layer {
	const struct layer_offsets *at;
	const float *weights; /* weights of the stage that has the layer */
	float *keys, *values; /* (length, kv) keys and values of the tokens taken so far */
};

struct decoder {
	const struct model_config *c;
	const struct vector_ops *v;
	const struct stage_layout *first;
	const float *first_weights;
	uint32_t length, taken;
	size_t n_layers, kv, packed;
	struct decoder_layer *layers;
	float *cosines, *sines; /* (length, D / 2) factors of the rotary positions */
	float *x, *xn, *qkv, *att, *gu, *h, *scores, *logits;
	float *arena;
};

static size_t count_layers(struct stage *const *stages, const uint32_t *path, size_t n)
{
	size_t sum = stage_layout(stages[0])->n_layers;

	for (size_t i = 0; i < n; i++)
		sum += stage_layout(stages[path[i]])->n_layers;
	return sum;
}

/* Gives each of the decoder's arrays its address, from `base` on. If base is NULL, only adds up the
 * sizes in floats. */
static size_t carve_decoder(struct decoder *d, float *base)
{
	const struct model_config *c = d->c;
	size_t half = model_head_size(c) / 2, used = 0;
	struct {
		float **to;
		size_t size;
	} parts[] = {
		{ &d->cosines, d->length * half },
		{ &d->sines, d->length * half },
		{ &d->x, c->dim },
		{ &d->xn, c->dim },
		{ &d->qkv, d->packed },
		{ &d->att, c->dim },
		{ &d->gu, 2 * (size_t)c->ffn_dim },
		{ &d->h, c->ffn_dim },
		{ &d->scores, d->length },
		{ &d->logits, c->vocab },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		*parts[i].to = base ? base + used : NULL;
		used += parts[i].size;
	}
	for (size_t i = 0; i < d->n_layers; i++) {
		d->layers[i].keys = base ? base + used : NULL;
		d->layers[i].values = base ? base + used + d->length * d->kv : NULL;
		used += 2 * d->length * d->kv;
	}
	return used;
}

static void add_stage(struct decoder *d, size_t *at, struct stage *s)
{
	const struct stage_layout *l = stage_layout(s);

	for (uint32_t i = 0; i < l->n_layers; i++)
		d->layers[(*at)++] = (struct decoder_layer){ .at = &l->layers[i],
							     .weights = stage_weights(s) };
}

/* Prepares the layers that the path visits, then places all arrays in one allocation. */
int decoder_new(struct decoder **out, struct stage *const *stages, const uint32_t *path,
		size_t n, uint32_t length, struct error *err)
{
	const struct model_config *c = stage_config(stages[0]);
	struct decoder *d;
	size_t at = 0;

	if (length == 0 || length > c->context)
		return error_set(err, -EINVAL, "%u tokens: expected 1 to the context of %u",
				 length, c->context);
	for (size_t i = 0; i < n; i++)
		if (path[i] == 0 || path[i] >= c->n_stages)
			return error_set(err, -EINVAL, "no stage %u to visit", path[i]);
	d = alloc_new(sizeof(*d));
	d->c = c;
	d->v = vector_ops();
	d->first = stage_layout(stages[0]);
	d->first_weights = stage_weights(stages[0]);
	d->length = length;
	d->n_layers = count_layers(stages, path, n);
	d->kv = (size_t)c->n_kv_heads * model_head_size(c);
	d->packed = c->dim + 2 * d->kv;
	d->layers = alloc_array(d->n_layers + 1, sizeof(*d->layers));
	add_stage(d, &at, stages[0]);
	for (size_t i = 0; i < n; i++)
		add_stage(d, &at, stages[path[i]]);
	d->arena = malloc(carve_decoder(d, NULL) * sizeof(*d->arena));
	if (!d->arena) {
		decoder_free(d);
		return error_set(err, -ENOMEM, "no memory for the keys and values of %u tokens",
				 length);
	}
	carve_decoder(d, d->arena);
	model_angles(d->c, d->length, d->cosines, d->sines);
	*out = d;
	return 0;
}

void decoder_free(struct decoder *d)
{
	if (!d)
		return;
	free(d->arena);
	free(d->layers);
	free(d);
}

/* Computes the attention of one head's query to the keys of all tokens so far. */
static void attend_head(struct decoder *d, const struct decoder_layer *l, uint32_t head)
{
	size_t size = model_head_size(d->c), t = (size_t)d->taken + 1;
	size_t kv = head / (d->c->n_heads / d->c->n_kv_heads) * size;
	struct score_tile tile = { d->scores, 1, t, t, 1.0f / sqrtf((float)size) };
	float most = -INFINITY, sum = 0, shrink;
	float *out = d->att + head * size;

	product_nt(NULL, 1, t, size, d->qkv + head * size, size, l->keys + kv, d->kv, 0,
		   d->scores, t);
	d->v->softmax_tile(&tile, &most, &sum, &shrink);
	product_nn(NULL, 1, size, t, d->scores, t, l->values + kv, d->kv, 0, out, size);
	sum = 1 / sum;
	d->v->scale_rows(out, size, 1, size, &sum);
}

static void run_layer(struct decoder *d, const struct decoder_layer *l)
{
	const struct model_config *c = d->c;
	size_t dim = c->dim, f = c->ffn_dim;
	float rstd;

	d->v->norm(d->xn, &rstd, d->x, l->weights + l->at->norm1, 1, dim, c->norm_eps);
	product_nt(NULL, 1, d->packed, dim, d->xn, dim, l->weights + l->at->qkv, dim, 0, d->qkv,
		   d->packed);
	d->v->rotate(d->qkv, d->packed, 1, c->n_heads + c->n_kv_heads, model_head_size(c) / 2,
		     d->cosines, d->sines, d->taken, d->length, 1);
	memcpy(l->keys + d->taken * d->kv, d->qkv + dim, d->kv * sizeof(float));
	memcpy(l->values + d->taken * d->kv, d->qkv + dim + d->kv, d->kv * sizeof(float));
	for (uint32_t h = 0; h < c->n_heads; h++)
		attend_head(d, l, h);
	product_nt(NULL, 1, dim, dim, d->att, dim, l->weights + l->at->o, dim, 1, d->x, dim);
	d->v->norm(d->xn, &rstd, d->x, l->weights + l->at->norm2, 1, dim, c->norm_eps);
	product_nt(NULL, 1, 2 * f, dim, d->xn, dim, l->weights + l->at->gate_up, dim, 0, d->gu,
		   2 * f);
	d->v->swiglu(d->h, d->gu, 1, f);
	product_nt(NULL, 1, dim, f, d->h, f, l->weights + l->at->down, f, 1, d->x, dim);
}

int decoder_next(struct decoder *d, int32_t token, const float **logits)
{
	const struct model_config *c = d->c;
	size_t dim = c->dim;
	float rstd;

	if (token < 0 || token >= (int32_t)c->vocab)
		return -EINVAL;
	if (d->taken == d->length)
		return -ENOSPC;
	memcpy(d->x, d->first_weights + d->first->embed + (size_t)token * dim,
	       dim * sizeof(float));
	for (size_t i = 0; i < d->n_layers; i++)
		run_layer(d, &d->layers[i]);
	d->taken++;
	d->v->norm(d->xn, &rstd, d->x, d->first_weights + d->first->last_norm, 1, dim,
		   c->norm_eps);
	product_nt(NULL, 1, c->vocab, dim, d->xn, dim, d->first_weights + d->first->head, dim,
		   0, d->logits, c->vocab);
	*logits = d->logits;
	return 0;
}

void decoder_rewind(struct decoder *d, uint32_t n)
{
	if (n < d->taken)
		d->taken = n;
}
