/* Builds the table of tensors from a config: names, shapes, places and initial values. */
#include "model/tensor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static const struct {
	enum tensor_role role;
	const char *name;
} layer_tensors[] = {
	{ TENSOR_NORM1, "input_layernorm" }, { TENSOR_Q, "self_attn.q_proj" },
	{ TENSOR_K, "self_attn.k_proj" },    { TENSOR_V, "self_attn.v_proj" },
	{ TENSOR_O, "self_attn.o_proj" },    { TENSOR_NORM2, "post_attention_layernorm" },
	{ TENSOR_GATE, "mlp.gate_proj" },    { TENSOR_UP, "mlp.up_proj" },
	{ TENSOR_DOWN, "mlp.down_proj" },
};

enum { PER_LAYER = sizeof(layer_tensors) / sizeof(layer_tensors[0]) };

/* Sets rows and columns of a tensor by its kind, from the model's sizes. */
static void set_shape(struct tensor *t, const struct model_config *c)
{
	uint32_t kv = c->n_kv_heads * model_head_size(c);

	t->dims = 2;
	t->cols = c->dim;
	switch (t->role) {
	case TENSOR_EMBED:
	case TENSOR_HEAD:
		t->rows = c->vocab;
		break;
	case TENSOR_Q:
	case TENSOR_O:
		t->rows = c->dim;
		break;
	case TENSOR_K:
	case TENSOR_V:
		t->rows = kv;
		break;
	case TENSOR_GATE:
	case TENSOR_UP:
		t->rows = c->ffn_dim;
		break;
	case TENSOR_DOWN:
		t->rows = c->dim;
		t->cols = c->ffn_dim;
		break;
	case TENSOR_NORM1:
	case TENSOR_NORM2:
	case TENSOR_LAST_NORM:
		t->rows = c->dim;
		t->cols = 1;
		t->dims = 1;
		break;
	}
	t->count = (size_t)t->rows * t->cols;
}

struct builder {
	struct tensor_table *table;
	const struct model_config *config;
	uint32_t stage;
	size_t offset;
};

static struct tensor *append_tensor(struct builder *b, enum tensor_role role, const char *name)
{
	struct tensor *t = &b->table->tensors[b->table->n++];

	*t = (struct tensor){ .role = role, .stage = b->stage, .offset = b->offset };
	snprintf(t->name, sizeof(t->name), "%s", name);
	set_shape(t, b->config);
	b->offset += t->count;
	return t;
}

static void append_layer(struct builder *b, uint32_t layer)
{
	for (size_t i = 0; i < PER_LAYER; i++) {
		char name[64];

		snprintf(name, sizeof(name), "model.layers.%" PRIu32 ".%s.weight", layer,
			 layer_tensors[i].name);
		append_tensor(b, layer_tensors[i].role, name)->layer = layer;
	}
}

int tensor_table_new(struct tensor_table *t, const struct model_config *c, struct error *err)
{
	struct tensor_table made = { 0 };
	struct builder b = { .table = &made, .config = c };

	made.tensors = calloc((size_t)PER_LAYER * c->n_layers + 3, sizeof(*made.tensors));
	if (!made.tensors)
		return error_set(err, -ENOMEM, "no memory for the table of tensors");
	for (b.stage = 0; b.stage < c->n_stages; b.stage++) {
		uint32_t first = model_first_layer(c, b.stage);

		b.offset = 0;
		if (b.stage == 0)
			append_tensor(&b, TENSOR_EMBED, "model.embed_tokens.weight");
		for (uint32_t i = 0; i < model_layer_count(c, b.stage); i++)
			append_layer(&b, first + i);
		if (b.stage == 0) {
			append_tensor(&b, TENSOR_LAST_NORM, "model.norm.weight");
			if (!c->tied)
				append_tensor(&b, TENSOR_HEAD, "lm_head.weight");
		}
	}
	*t = made;
	return 0;
}

void tensor_table_free(struct tensor_table *t)
{
	free(t->tensors);
	*t = (struct tensor_table){ 0 };
}

size_t tensor_table_parameters(const struct tensor_table *t, uint32_t stage)
{
	size_t sum = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->tensors[i].stage == stage)
			sum += t->tensors[i].count;
	return sum;
}

/* Prints a shape such as "256 x 96". */
static void print_shape(char *to, size_t size, uint32_t dims, const uint64_t *shape)
{
	size_t at = 0;

	snprintf(to, size, "one number");
	for (uint32_t i = 0; i < dims && at < size; i++)
		at += (size_t)snprintf(to + at, size - at, "%s%" PRIu64, i ? " x " : "",
				       shape[i]);
}

int tensor_check_shape(const struct tensor *t, const char *path, const char *name,
		       uint32_t dims, const uint64_t *shape, struct error *err)
{
	uint64_t wanted[2] = { t->rows, t->cols };
	char is[96], should[96];

	if (dims == t->dims && memcmp(shape, wanted, dims * sizeof(*shape)) == 0)
		return 0;
	print_shape(is, sizeof(is), dims, shape);
	print_shape(should, sizeof(should), t->dims, wanted);
	return error_set(err, -EINVAL, "%s: tensor %s: its shape is %s, expected %s", path,
			 name, is, should);
}

void tensor_initialise(const struct tensor *t, float std, uint64_t seed, float *to)
{
	uint64_t stream = 0xcbf29ce484222325u; /* begins the FNV-1a hash of the name */
	struct rng r;

	for (const char *p = t->name; *p; p++)
		stream = (stream ^ (unsigned char)*p) * 0x100000001b3u;
	rng_init_stream(&r, seed, stream);
	for (size_t i = 0; i < t->count; i++)
		to[i] = t->dims == 1 ? 1.0f : (float)((double)std * rng_normal(&r));
}
