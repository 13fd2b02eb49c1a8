/* The part of a stage that all backends share: options, the layout of its tensors, checks of
 * arguments, and which slots hold a forward pass that a backward pass may use. The backend does the
 * arithmetic (backend.h). */
#include "model/stage.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/turn.h"
#include "model/backend.h"
#include "model/cpu/pool.h"
#include "model/vector/vector.h"
#include "model/cuda/device.h"
#include "model/tensor.h"

enum {
	STATE_COUNT = 3, /* number of arrays of a state: weights and two moments */
	/* Time limit of waiting for another process that is making a stage. If that process's
	 * driver hangs, others wait no longer than this. To clear or pin 100 GB takes a fraction of
	 * this time. */
	TURN_WAIT_MS = 60000,
	/* For fewer weights than this, one thread draws them, because starting threads would take
	 * longer than they save. */
	DRAW_ALONE = 1 << 20,
};

struct stage {
	struct stage_layout layout;
	/* Table of all tensors of the model. layout.tensors points into it. */
	struct tensor_table table;
	const struct backend *backend;
	void *self;
	bool *kept; /* for each slot: the slot holds a forward pass */
};

/* ---- construction ---- */

/* Sets the offsets of the stage's tensors. K and V follow Q without a gap, and UP follows GATE, so
 * that each group is one matrix. */
static void set_offsets(struct stage_layout *l)
{
	uint32_t first = model_first_layer(&l->config, l->index);

	for (size_t i = 0; i < l->n_tensors; i++) {
		const struct tensor *t = &l->tensors[i];
		struct layer_offsets *at = &l->layers[t->layer > first ? t->layer - first : 0];

		switch (t->role) {
		case TENSOR_EMBED:
			l->embed = l->head = t->offset;
			break;
		case TENSOR_NORM1:
			at->norm1 = t->offset;
			break;
		case TENSOR_Q:
			at->qkv = t->offset;
			break;
		case TENSOR_O:
			at->o = t->offset;
			break;
		case TENSOR_NORM2:
			at->norm2 = t->offset;
			break;
		case TENSOR_GATE:
			at->gate_up = t->offset;
			break;
		case TENSOR_DOWN:
			at->down = t->offset;
			break;
		case TENSOR_LAST_NORM:
			l->last_norm = t->offset;
			break;
		case TENSOR_HEAD:
			l->head = t->offset;
			break;
		case TENSOR_K:
		case TENSOR_V:
		case TENSOR_UP:
			break;
		}
	}
}

static int lay_out(struct stage *s, const struct model_config *c, uint32_t index,
		   const struct stage_options *o, struct error *err)
{
	struct stage_layout *l = &s->layout;
	size_t begin = 0;
	int rc = tensor_table_new(&s->table, c, err);

	if (rc)
		return rc;
	*l = (struct stage_layout){
		.config = *c,
		.index = index,
		.slots = o->slots,
		.batch = o->batch,
		.sequence = o->sequence,
		.threads = o->threads ? o->threads : 1,
		.recompute = o->recompute,
		.only_steps = o->only_steps,
		.sums = o->sums,
		.activations_stay = o->activations_stay,
		.memory_bytes = o->memory_bytes,
		.n_layers = model_layer_count(c, index),
		.parameters = tensor_table_parameters(&s->table, index),
	};
	l->layers = alloc_array(l->n_layers + 1, sizeof(*l->layers));
	s->kept = calloc(l->slots ? l->slots : 1, sizeof(*s->kept));
	if (!s->kept)
		return error_set(err, -ENOMEM, "no memory for the layout of stage %" PRIu32,
				 index);
	while (s->table.tensors[begin].stage != index)
		begin++;
	l->tensors = s->table.tensors + begin;
	while (begin + l->n_tensors < s->table.n &&
	       s->table.tensors[begin + l->n_tensors].stage == index)
		l->n_tensors++;
	set_offsets(l);
	return 0;
}

static int check_options(const struct model_config *c, uint32_t index,
			 const struct stage_options *o, struct error *err)
{
	if (index >= c->n_stages)
		return error_set(err, -EINVAL,
				 "stage %" PRIu32 " of a model of %" PRIu32 " stages", index,
				 c->n_stages);
	if (o->batch == 0 || o->sequence == 0 || o->sequence > c->context)
		return error_set(
			err, -EINVAL,
			"microbatches of %" PRIu32 " x %" PRIu32
			" tokens: expected at least 1 x 1, and at most the context %" PRIu32
			" in a sequence",
			o->batch, o->sequence, c->context);
	if (o->threads > 1024)
		return error_set(err, -EINVAL, "%" PRIu32 " threads: expected at most 1024",
				 o->threads);
	return 0;
}

/* Refuses to train on a device that computes nothing, and to compute with a rehearsal's model. */
static int check_rehearsal(const struct model_config *c, const struct device_name *device,
			   struct error *err)
{
	if (device->pretend && !c->rehearsal)
		return error_set(err, -EINVAL,
				 "the device pretend computes nothing: it serves rehearsals only "
				 "(skippipe rehearse)");
	if (!device->pretend && c->rehearsal)
		return error_set(err, -EINVAL,
				 "a rehearsal's model, which is never trained: it needs --device "
				 "pretend");
	return 0;
}

static const struct backend *backend_of(const struct device_name *n)
{
	return n->pretend ? &backend_pretend : n->cuda ? &backend_cuda : &backend_cpu;
}

static int look_up_device(const char *device, struct device_name *name,
			  struct stage_device *out, struct error *err)
{
	int rc = device_name_parse(name, device, err);

	return rc ? rc : backend_of(name)->look(name, out, err);
}

int stage_device(struct stage_device *out, const char *device, struct error *err)
{
	struct stage_device found = { .free_bytes = UINT64_MAX,
				      .machine_bytes = UINT64_MAX,
				      .device_bytes = UINT64_MAX };
	char what[STAGE_DEVICE_SIZE];
	struct device_name name;
	int rc = look_up_device(device, &name, &found, err);

	if (rc)
		return rc;
	device_name_print(&name, found.name);
	if (found.device_bytes == UINT64_MAX) /* the device has no memory of its own */
		found.device_bytes = found.free_bytes;
	memcpy(what, found.text, sizeof(what));
	snprintf(found.text, sizeof(found.text), "%s %.*s", found.name,
		 (int)(sizeof(what) - strlen(found.name) - 2), what);
	*out = found;
	return 0;
}

bool stage_device_compiles(const char *device)
{
	struct device_name name;

	return device_name_parse(&name, device, NULL) == 0 && name.cuda &&
	       device_compiles(name.number);
}

uint32_t stage_gpus(void)
{
	return device_count();
}

/* State of the threads that draw the initial weights. A tensor's numbers depend only on its name
 * and the seed, not on the device, the number of stages or the thread. */
struct draw {
	const struct stage_layout *layout;
	uint64_t seed;
	float *to;
	atomic_size_t next; /* the next tensor that no thread has taken */
};

static void draw_tensors(void *arg, uint32_t part, uint32_t parts)
{
	struct draw *d = arg;
	size_t i;

	(void)part;
	(void)parts;
	while ((i = atomic_fetch_add(&d->next, 1)) < d->layout->n_tensors)
		tensor_initialise(&d->layout->tensors[i], d->layout->config.init_std, d->seed,
				  d->to + d->layout->tensors[i].offset);
}

static int draw_weights(const struct stage_layout *l, uint64_t seed, float *to, struct error *err)
{
	struct draw d = { .layout = l, .seed = seed, .to = to };
	struct pool *pool = NULL;
	int rc = 0;

	if (l->threads == 1 || l->parameters < DRAW_ALONE) {
		draw_tensors(&d, 0, 1);
		return 0;
	}
	rc = pool_new(&pool, l->threads, err);
	if (!rc)
		pool_run(pool, draw_tensors, &d);
	pool_free(pool);
	return rc;
}

/* Draws the weights in place on a CPU. For another device, draws them into temporary memory.
 */
static int set_initial_weights(struct stage *s, uint64_t seed, struct error *err)
{
	const struct stage_layout *l = &s->layout;
	bool on_host = !s->backend->room;
	float *weights = on_host ? s->backend->own(s->self, ARRAY_WEIGHTS)
				 : malloc(l->parameters * sizeof(*weights));
	const float *const state[STATE_COUNT] = { weights };
	int rc;

	if (!weights)
		return error_set(err, -ENOMEM, "no memory for the first weights of stage %" PRIu32,
				 l->index);
	rc = draw_weights(l, seed, weights, err);
	if (on_host)
		return rc;
	if (!rc)
		s->backend->put_state(s->self, 0, l->parameters, state);
	free(weights);
	return rc;
}

/* Lets the backend compare its need with the free memory and allocate it, in one process at a time.
 * Agents of a machine start together, and without turns each would count memory as free that
 * another agent is about to allocate. */
static int make_in_turn(struct stage *s, struct error *err)
{
	int turn = turn_begin(TURN_WAIT_MS);
	int rc = s->backend->make(&s->self, &s->layout, err);

	turn_end(turn);
	return rc;
}

/* Checks the options, lets the backend allocate its memory, then draws the weights. */
int stage_new(struct stage **out, const struct model_config *c, uint32_t index,
	      const struct stage_options *o, struct error *err)
{
	struct stage_device device;
	struct device_name name;
	struct stage *s;
	int rc = model_config_check(c, err);

	if (!rc)
		rc = check_options(c, index, o, err);
	if (!rc)
		rc = look_up_device(o->device, &name, &device, err);
	if (!rc)
		rc = check_rehearsal(c, &name, err);
	if (rc)
		return rc;
	s = alloc_new(sizeof(*s));
	s->backend = backend_of(&name);
	rc = lay_out(s, c, index, o, err);
	s->layout.device = name;
	s->layout.bf16 = name.bf16;
	if (!rc)
		rc = make_in_turn(s, err);
	if (!rc && !o->without_weights)
		rc = set_initial_weights(s, o->seed, err);
	if (!rc)
		s->backend->changed(s->self);
	if (!rc && stage_failure(s)[0])
		rc = error_set(err, -EIO, "stage %" PRIu32 ": the device failed (%s)", index,
			       stage_failure(s));
	if (rc)
		stage_free(s);
	else
		*out = s;
	return rc;
}

void stage_free(struct stage *s)
{
	if (!s)
		return;
	if (s->self)
		s->backend->free(s->self);
	free(s->layout.layers);
	free(s->kept);
	tensor_table_free(&s->table);
	free(s);
}

/* ---- passes and the optimizer step ---- */

static bool tokens_valid(const struct stage *s, const int32_t *tokens, int32_t least)
{
	size_t n = (size_t)s->layout.batch * s->layout.sequence;

	for (size_t i = 0; i < n; i++)
		if (tokens[i] < least || tokens[i] >= (int32_t)s->layout.config.vocab)
			return false;
	return true;
}

static bool task_is_valid(const struct stage *s, const struct stage_task *t)
{
	const struct stage_layout *l = &s->layout;
	bool first = l->index == 0;

	if (l->only_steps)
		return false;
	if (!stage_takes_encoded(s) &&
	    (t->in_codec.format != FORMAT_FP32 || t->out_codec.format != FORMAT_FP32 || t->leaves))
		return false;
	switch (t->kind) {
	case TASK_FORWARD:
		return !(t->keep && t->slot >= l->slots) && (t->out || t->leaves) &&
		       first == (t->tokens != NULL) && first == (t->in == NULL) &&
		       (!first || tokens_valid(s, t->tokens, 0));
	case TASK_LOSS:
		return first && tokens_valid(s, t->tokens, -1);
	case TASK_BACKWARD:
		return t->slot < l->slots && s->kept[t->slot] && first == !(t->out || t->leaves);
	case TASK_EVALUATE:
		break;
	}
	return false;
}

static int run_on_floats(struct stage *s, struct stage_task *t)
{
	const struct backend *b = s->backend;

	if (t->kind == TASK_FORWARD)
		return b->forward(s->self, t->slot, t->tokens, t->in, t->out, t->keep);
	if (t->kind == TASK_LOSS)
		return b->loss(s->self, t->in, t->tokens, &t->loss, t->out, t->count);
	return b->backward(s->self, t->slot, t->in, t->out, t->count);
}

bool stage_takes_encoded(const struct stage *s)
{
	return s->backend->run != NULL;
}

int stage_run(struct stage *s, struct stage_task *t)
{
	bool keeps = t->kind == TASK_FORWARD && t->keep;
	int rc;

	if (!task_is_valid(s, t))
		return -EINVAL;
	if (keeps)
		s->kept[t->slot] = false;
	rc = s->backend->run ? s->backend->run(s->self, t) : run_on_floats(s, t);
	if (!rc && keeps)
		s->kept[t->slot] = true;
	return rc;
}

int stage_forward(struct stage *s, uint32_t slot, const int32_t *tokens, const float *in,
		  float *out, bool keep)
{
	struct stage_task t = { .kind = TASK_FORWARD,
				.slot = slot,
				.tokens = tokens,
				.in = in,
				.out = out,
				.keep = keep };

	return stage_run(s, &t);
}

int stage_loss(struct stage *s, uint32_t slot, const float *in, const int32_t *targets, float *loss,
	       float *grad, bool count)
{
	struct stage_task t = { .kind = TASK_LOSS,
				.slot = slot,
				.tokens = targets,
				.in = in,
				.out = grad,
				.count = count };
	int rc = stage_run(s, &t);

	if (!rc)
		*loss = t.loss;
	return rc;
}

int stage_backward(struct stage *s, uint32_t slot, const float *grad_out, float *grad_in,
		   bool count)
{
	struct stage_task t = {
		.kind = TASK_BACKWARD, .slot = slot, .in = grad_out, .out = grad_in, .count = count
	};

	return stage_run(s, &t);
}

int stage_logits(struct stage *s, const float *in, float *logits)
{
	if (s->layout.only_steps || s->layout.index != 0)
		return -EINVAL;
	return s->backend->logits(s->self, in, logits);
}

void stage_release(struct stage *s, uint32_t slot)
{
	if (slot < s->layout.slots)
		s->kept[slot] = false;
}

float *stage_room(struct stage *s, struct error *err)
{
	float *room = s->backend->room ? s->backend->room(s->self, err)
				       : malloc(stage_activation(s) * sizeof(*room));

	if (!room && !s->backend->room)
		error_set(err, -ENOMEM, "no memory for an activation");
	return room;
}

void stage_room_free(struct stage *s, float *room)
{
	if (!s->backend->room)
		free(room);
}

int stage_room_round(struct stage *s, float *room, const struct codec *codec)
{
	if (codec->format == FORMAT_FP32)
		return 0;
	return s->backend->round ? s->backend->round(s->self, room, codec)
				 : codec_round(codec, room, stage_activation(s));
}

const char *stage_failure(const struct stage *s)
{
	return s->backend->failure ? s->backend->failure(s->self) : "";
}

int stage_zero_gradient(struct stage *s)
{
	if (s->layout.only_steps)
		return -EINVAL;
	return s->backend->zero_gradient(s->self);
}

int stage_gradient_squares(struct stage *s, double *sum)
{
	if (s->layout.only_steps)
		return -EINVAL;
	return s->backend->squares(s->self, sum);
}

bool stage_sums_on_device(const struct stage *s)
{
	return s->backend->summed && s->layout.sums;
}

int stage_encode_gradient(struct stage *s, const struct sum_codec *c, size_t from, size_t n,
			  void *to)
{
	return s->backend->encode_gradient(s->self, c, from, n, to);
}

int stage_add_parts(struct stage *s, const struct sum_codec *c, size_t from, size_t n,
		    const void *const *parts, uint32_t n_parts, void *to)
{
	return s->backend->add_parts(s->self, c, from, n, parts, n_parts, to);
}

int stage_put_sum(struct stage *s, const struct sum_codec *c, size_t from, size_t n,
		  const void *encoded)
{
	return s->backend->put_sum(s->self, c, from, n, encoded);
}

int stage_check_sum(struct stage *s, uint32_t slices, uint64_t *hashes, double *squares)
{
	return s->backend->check_sum(s->self, slices, hashes, squares);
}

const float *stage_summed(const struct stage *s)
{
	return s->backend->summed(s->self);
}

int stage_step(struct stage *s, const float *gradient, float scale, const struct adamw *h,
	       uint64_t t)
{
	if (t == 0 || (s->layout.only_steps && !gradient))
		return -EINVAL;
	return s->backend->step(s->self, gradient, scale, h, t);
}

/* ---- inspection ---- */

static const enum stage_array state_arrays[STATE_COUNT] = { ARRAY_WEIGHTS, ARRAY_MOMENT1,
							    ARRAY_MOMENT2 };

static const char *const recompute_names[] = { "norms", "none", "block", "auto" };

int recompute_parse(const char *name, enum recompute *out)
{
	for (size_t i = 0; i < sizeof(recompute_names) / sizeof(recompute_names[0]); i++)
		if (strcmp(name, recompute_names[i]) == 0) {
			*out = (enum recompute)i;
			return 0;
		}
	return -EINVAL;
}

const char *recompute_name(enum recompute level)
{
	return recompute_names[level];
}

size_t stage_memory_bytes(const struct stage *s)
{
	return s->backend->memory(s->self);
}

size_t stage_host_bytes(const struct stage *s)
{
	return s->backend->host_memory(s->self);
}

uint32_t stage_index(const struct stage *s)
{
	return s->layout.index;
}

const struct model_config *stage_config(const struct stage *s)
{
	return &s->layout.config;
}

size_t stage_parameters(const struct stage *s)
{
	return s->layout.parameters;
}

size_t stage_activation(const struct stage *s)
{
	return (size_t)s->layout.batch * s->layout.sequence * s->layout.config.dim;
}

const struct stage_layout *stage_layout(const struct stage *s)
{
	return &s->layout;
}

const struct tensor *stage_tensors(const struct stage *s, size_t *n)
{
	*n = s->layout.n_tensors;
	return s->layout.tensors;
}

float *stage_weights(struct stage *s)
{
	return s->backend->array(s->self, ARRAY_WEIGHTS);
}

float *stage_gradient(struct stage *s)
{
	assert(!s->layout.only_steps);
	return s->backend->array(s->self, ARRAY_GRADIENT);
}

float *stage_moment1(struct stage *s)
{
	return s->backend->array(s->self, ARRAY_MOMENT1);
}

float *stage_moment2(struct stage *s)
{
	return s->backend->array(s->self, ARRAY_MOMENT2);
}

void stage_changed(struct stage *s)
{
	s->backend->changed(s->self);
}

uint64_t stage_hash(struct stage *s)
{
	return s->backend->hash(s->self);
}

void stage_get_state(struct stage *s, size_t at, size_t n, float *const state[3])
{
	if (s->backend->get_state) {
		s->backend->get_state(s->self, at, n, state);
		return;
	}
	for (int k = 0; k < STATE_COUNT; k++)
		if (state[k])
			memcpy(state[k], s->backend->own(s->self, state_arrays[k]) + at,
			       n * sizeof(float));
}

void stage_put_state(struct stage *s, size_t at, size_t n, const float *const state[3])
{
	s->backend->put_state(s->self, at, n, state);
}

/* Gives the arrays of `from` in memory that `to` can read. If the two stages have the same backend,
 * gives the arrays on the device, so a copy between GPUs does not pass through host memory. */
static void lend_state(struct stage *to, struct stage *from, const float *state[STATE_COUNT])
{
	for (int k = 0; k < STATE_COUNT; k++)
		state[k] = from->backend == to->backend
				   ? from->backend->own(from->self, state_arrays[k])
				   : from->backend->array(from->self, state_arrays[k]);
}

void stage_copy_state(struct stage *to, struct stage *from)
{
	const float *state[STATE_COUNT];

	lend_state(to, from, state);
	to->backend->put_state(to->self, 0, to->layout.parameters, state);
}

/* Returns the number of floats of one layer, which are contiguous from its first norm to its down
 * matrix. All layers of a model have the same size. *first: offset of the stage's first layer. */
static size_t layer_size(const struct stage *s, size_t *first)
{
	size_t n, size = 0;
	const struct tensor *tensors = stage_tensors(s, &n);
	uint32_t layer = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		if (tensors[i].role < TENSOR_NORM1 || tensors[i].role > TENSOR_DOWN)
			continue;
		if (layer == UINT32_MAX) {
			layer = tensors[i].layer;
			*first = tensors[i].offset;
		}
		size += tensors[i].layer == layer ? tensors[i].count : 0;
	}
	return size;
}

void stage_stack(struct stage *to, struct stage *from)
{
	const struct model_config *c = stage_config(to);
	uint32_t n = model_layer_count(c, stage_index(to));
	uint32_t n_from = model_layer_count(c, stage_index(from));
	size_t at_to = 0, at_from = 0, size = layer_size(to, &at_to);
	const float *state[STATE_COUNT], *layer[STATE_COUNT];

	if (layer_size(from, &at_from) == 0)
		return;
	lend_state(to, from, state);
	for (uint32_t i = 0; i < n; i++) {
		for (int k = 0; k < STATE_COUNT; k++)
			layer[k] = state[k] + at_from + (size_t)(i * n_from / n) * size;
		stage_put_state(to, at_to + i * size, size, layer);
	}
}

void stage_add(float *to, const float *from, size_t n)
{
	vector_ops()->add(to, from, n);
}
