/* Builds cuDNN's graphs of attention, chooses code for them, and runs them.
 *
 * A graph is written below as two tables: its tensors, and its operations in order. A virtual
 * tensor exists only inside cuDNN's kernel, so scores (T, T) take no memory.
 *
 * cuDNN proposes code for a graph, the fastest first. The first proposal without the note
 * "nondeterministic" is taken: a stage whose replicas compute different bits would fail its checks.
 * On Hopper the backward pass with fixed bits keeps the gradients of the scores in the workspace,
 * 2 bytes for each score. */
#include "model/cuda/cudnn.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/cuda/cudnn_names.h"

enum {
	TENSORS_MOST = 40, /* limit of the tensors of a graph */
	OPERATIONS_MOST = 24,
	PROPOSALS_MOST = 16, /* proposals of code that are read */
	PASSES = 2,
	VERSION_LEAST = 91801,  /* see cudnn_check */
	SCORES_MOST = 512 << 20 /* limit of the score gradients of several sequences, in bytes */
};

/* ---- graphs ---- */

/* Dimensions and strides of a tensor. */
enum form {
	FORM_QUERIES,       /* (B, heads, T, size) in qkv */
	FORM_KEYS,          /* (B, kv_heads, T, size) in qkv; values have the same form */
	FORM_KEYS_TURNED,   /* FORM_KEYS with the last two dimensions exchanged */
	FORM_OUT,           /* (B, heads, T, size) in an array (B, T, heads * size) */
	FORM_ALL_HEADS,     /* (B, heads, T, size), contiguous */
	FORM_SCORES,        /* (B, heads, T, T) */
	FORM_SCORES_TURNED, /* FORM_SCORES with the last two dimensions exchanged */
	FORM_ROWS,          /* (B, heads, T, 1) */
	FORM_SCALAR         /* (1, 1, 1, 1) */
};

/* Where a tensor is: inside the kernel, in an array of struct cudnn_arrays, or a number that the
 * host passes. */
enum place {
	VIRTUAL,
	IN_QUERIES,
	IN_KEYS,
	IN_VALUES,
	IN_OUT,
	IN_LSE,
	IN_DOUT,
	IN_DOT,
	IN_DQUERIES,
	IN_DKEYS,
	IN_DVALUES,
	VALUE_SCALE,
	VALUE_ONE,
	VALUE_MINUS_INFINITY,
	PLACES
};

struct tensor {
	enum form form;
	int type;
	enum place place;
};

enum operation_kind { MATMUL = 1, POINTWISE, REDUCE, RESHAPE };

/* y is x combined with b; for CUDNN_SELECT, y is t ? x : b. Tensor number 0 means: none. */
struct operation {
	enum operation_kind kind;
	int mode;
	int x, b, t, y; /* tensors of the graph; b and t are 0 where the operation has fewer */
	int64_t axis;   /* CUDNN_INDEX */
};

struct graph {
	struct tensor tensors[TENSORS_MOST]; /* tensor 0 is not used */
	struct operation operations[OPERATIONS_MOST];
};

/* Names of tensors that both passes have; a graph's other tensors follow COMMON. */
enum { Q = 1, KT, OUT, LSE, SCALE, MINUS, S, SCALED, ROW, COLUMN, SEEN, COMMON };

#define COMMON_TENSORS \
	[Q] = { FORM_QUERIES, CUDNN_BF16, IN_QUERIES }, \
	[KT] = { FORM_KEYS_TURNED, CUDNN_BF16, IN_KEYS }, \
	[OUT] = { FORM_OUT, CUDNN_BF16, IN_OUT }, [LSE] = { FORM_ROWS, CUDNN_FLOAT, IN_LSE }, \
	[SCALE] = { FORM_SCALAR, CUDNN_FLOAT, VALUE_SCALE }, \
	[MINUS] = { FORM_SCALAR, CUDNN_FLOAT, VALUE_MINUS_INFINITY }, \
	[S] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL }, \
	[SCALED] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL }, \
	[ROW] = { FORM_SCORES, CUDNN_INT32, VIRTUAL }, \
	[COLUMN] = { FORM_SCORES, CUDNN_INT32, VIRTUAL }, \
	[SEEN] = { FORM_SCORES, CUDNN_BOOLEAN, VIRTUAL }

/* to = from where the key is not after the query, and minus infinity elsewhere. */
#define CAUSAL(from, to) \
	{ POINTWISE, CUDNN_INDEX, (from), 0, 0, ROW, 2 }, \
		{ POINTWISE, CUDNN_INDEX, (from), 0, 0, COLUMN, 3 }, \
		{ POINTWISE, CUDNN_AT_LEAST, ROW, COLUMN, 0, SEEN, 0 }, \
	{ \
		POINTWISE, CUDNN_SELECT, (from), MINUS, SEEN, (to), 0 \
	}

enum { V = COMMON, MASKED, MOST, SHIFTED, E, SUM, LOG, P };

static const struct graph forward = {
	.tensors = { COMMON_TENSORS, [V] = { FORM_KEYS, CUDNN_BF16, IN_VALUES },
		     [MASKED] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL },
		     [MOST] = { FORM_ROWS, CUDNN_FLOAT, VIRTUAL },
		     [SHIFTED] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL },
		     [E] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL },
		     [SUM] = { FORM_ROWS, CUDNN_FLOAT, VIRTUAL },
		     [LOG] = { FORM_ROWS, CUDNN_FLOAT, VIRTUAL },
		     [P] = { FORM_SCORES, CUDNN_BF16, VIRTUAL } },
	.operations = { { MATMUL, 0, Q, KT, 0, S, 0 },
			{ POINTWISE, CUDNN_MULTIPLY, S, SCALE, 0, SCALED, 0 },
			CAUSAL(SCALED, MASKED),
			{ REDUCE, CUDNN_REDUCE_MAX, MASKED, 0, 0, MOST, 0 },
			{ POINTWISE, CUDNN_SUBTRACT, MASKED, MOST, 0, SHIFTED, 0 },
			{ POINTWISE, CUDNN_EXP, SHIFTED, 0, 0, E, 0 },
			{ REDUCE, CUDNN_REDUCE_ADD, E, 0, 0, SUM, 0 },
			{ POINTWISE, CUDNN_LOG, SUM, 0, 0, LOG, 0 },
			{ POINTWISE, CUDNN_ADD, MOST, LOG, 0, LSE, 0 },
			{ POINTWISE, CUDNN_DIVIDE, E, SUM, 0, P, 0 },
			{ MATMUL, 0, P, V, 0, OUT, 0 } },
};

enum {
	VT = COMMON,
	DOUT,
	ONE,
	PRODUCTS,
	DOTS,
	DOT,
	LESS,
	SEEN_LESS,
	PROBABILITY,
	P_TURNED,
	DV_ALL,
	DV,
	DP,
	CENTRED,
	DS_UNSCALED,
	DS,
	DS_TURNED,
	DK_ALL,
	DK,
	K,
	DQ
};

static const struct graph backward = {
	.tensors = { COMMON_TENSORS,
		     [VT] = { FORM_KEYS_TURNED, CUDNN_BF16, IN_VALUES },
		     [DOUT] = { FORM_OUT, CUDNN_BF16, IN_DOUT },
		     [ONE] = { FORM_SCALAR, CUDNN_FLOAT, VALUE_ONE },
		     [PRODUCTS] = { FORM_OUT, CUDNN_FLOAT, VIRTUAL },
		     [DOTS] = { FORM_ROWS, CUDNN_FLOAT, VIRTUAL },
		     [DOT] = { FORM_ROWS, CUDNN_FLOAT, IN_DOT },
		     [LESS] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL },
		     [SEEN_LESS] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL },
		     [PROBABILITY] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL },
		     [P_TURNED] = { FORM_SCORES_TURNED, CUDNN_BF16, VIRTUAL },
		     [DV_ALL] = { FORM_ALL_HEADS, CUDNN_BF16, VIRTUAL },
		     [DV] = { FORM_KEYS, CUDNN_BF16, IN_DVALUES },
		     [DP] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL },
		     [CENTRED] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL },
		     [DS_UNSCALED] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL },
		     [DS] = { FORM_SCORES, CUDNN_FLOAT, VIRTUAL },
		     [DS_TURNED] = { FORM_SCORES_TURNED, CUDNN_BF16, VIRTUAL },
		     [DK_ALL] = { FORM_ALL_HEADS, CUDNN_BF16, VIRTUAL },
		     [DK] = { FORM_KEYS, CUDNN_BF16, IN_DKEYS },
		     [K] = { FORM_KEYS, CUDNN_BF16, VIRTUAL },
		     [DQ] = { FORM_QUERIES, CUDNN_BF16, IN_DQUERIES } },
	.operations = { { POINTWISE, CUDNN_MULTIPLY, DOUT, OUT, 0, PRODUCTS, 0 },
			{ REDUCE, CUDNN_REDUCE_ADD, PRODUCTS, 0, 0, DOTS, 0 },
			{ POINTWISE, CUDNN_MULTIPLY, DOTS, ONE, 0, DOT, 0 },
			{ MATMUL, 0, Q, KT, 0, S, 0 },
			{ POINTWISE, CUDNN_MULTIPLY, S, SCALE, 0, SCALED, 0 },
			{ POINTWISE, CUDNN_SUBTRACT, SCALED, LSE, 0, LESS, 0 },
			CAUSAL(LESS, SEEN_LESS),
			{ POINTWISE, CUDNN_EXP, SEEN_LESS, 0, 0, PROBABILITY, 0 },
			{ RESHAPE, 0, PROBABILITY, 0, 0, P_TURNED, 0 },
			{ MATMUL, 0, P_TURNED, DOUT, 0, DV_ALL, 0 },
			{ REDUCE, CUDNN_REDUCE_ADD, DV_ALL, 0, 0, DV, 0 },
			{ MATMUL, 0, DOUT, VT, 0, DP, 0 },
			{ POINTWISE, CUDNN_SUBTRACT, DP, DOT, 0, CENTRED, 0 },
			{ POINTWISE, CUDNN_MULTIPLY, CENTRED, PROBABILITY, 0, DS_UNSCALED, 0 },
			{ POINTWISE, CUDNN_MULTIPLY, DS_UNSCALED, SCALE, 0, DS, 0 },
			{ RESHAPE, 0, DS, 0, 0, DS_TURNED, 0 },
			{ MATMUL, 0, DS_TURNED, Q, 0, DK_ALL, 0 },
			{ REDUCE, CUDNN_REDUCE_ADD, DK_ALL, 0, 0, DK, 0 },
			{ RESHAPE, 0, KT, 0, 0, K, 0 },
			{ MATMUL, 0, DS, K, 0, DQ, 0 } },
};

/* Writes the graph of a pass. If there are as many heads of keys as of queries, leaves out the
 * operations that sum the gradients of a group's heads. */
static void graph_of(struct graph *g, enum cudnn_pass pass, const struct cudnn_shape *s)
{
	struct operation *to;

	*g = pass == CUDNN_FORWARD ? forward : backward;
	if (pass == CUDNN_FORWARD || s->heads != s->kv_heads)
		return;
	to = g->operations;
	for (const struct operation *o = g->operations; o->kind; o++) {
		if (o->y == DV || o->y == DK)
			continue;
		*to = *o;
		if (o->y == DV_ALL || o->y == DK_ALL)
			to->y++; /* DV follows DV_ALL, and DK follows DK_ALL */
		to++;
	}
	to->kind = 0;
}

/* ---- descriptors ---- */

enum { DESCRIPTORS_MOST = TENSORS_MOST + 2 * OPERATIONS_MOST + PROPOSALS_MOST + 2 };

/* Descriptors of a graph. After the first failure nothing more is called. */
struct builder {
	const struct cudnn_functions *f;
	bool failed;
	size_t n;
	void *descriptors[DESCRIPTORS_MOST];
};

static void *begin(struct builder *b, int kind)
{
	void *d = NULL;

	b->failed = b->failed || b->n == DESCRIPTORS_MOST || b->f->describe(kind, &d) != 0;
	if (!b->failed)
		b->descriptors[b->n++] = d;
	return b->failed ? NULL : d;
}

static void set(struct builder *b, void *d, int name, int type, int64_t n, const void *values)
{
	b->failed = b->failed || b->f->set(d, name, type, n, values) != 0;
}

static void set_word(struct builder *b, void *d, int name, int type, int value)
{
	set(b, d, name, type, 1, &value);
}

static void set_flag(struct builder *b, void *d, int name)
{
	const bool yes = true;

	set(b, d, name, CUDNN_OF_BOOLEAN, 1, &yes);
}

static void set_descriptor(struct builder *b, void *d, int name, void *value)
{
	set(b, d, name, CUDNN_OF_DESCRIPTOR, 1, &value);
}

static void finish(struct builder *b, void *d)
{
	b->failed = b->failed || b->f->finalize(d) != 0;
}

static void forget_all(struct builder *b)
{
	while (b->n > 0)
		b->f->forget(b->descriptors[--b->n]);
}

/* Writes the dimensions and strides of a form. */
static void measure(enum form form, const struct cudnn_shape *s, int64_t d[4], int64_t strides[4])
{
	const int64_t h = s->heads, t = s->length, size = s->size;
	const int64_t wide[][8] = {
		[FORM_QUERIES] = { s->batch, h, t, size, t * s->stride, size, s->stride, 1 },
		[FORM_KEYS] = { s->batch, s->kv_heads, t, size, t * s->stride, size, s->stride, 1 },
		[FORM_KEYS_TURNED] = { s->batch, s->kv_heads, size, t, t * s->stride, size, 1,
				       s->stride },
		[FORM_OUT] = { s->batch, h, t, size, t * h * size, size, h * size, 1 },
		[FORM_ALL_HEADS] = { s->batch, h, t, size, h * t * size, t * size, size, 1 },
		[FORM_SCORES] = { s->batch, h, t, t, h * t * t, t * t, t, 1 },
		[FORM_SCORES_TURNED] = { s->batch, h, t, t, h * t * t, t * t, 1, t },
		[FORM_ROWS] = { s->batch, h, t, 1, h * t, t, 1, 1 },
		[FORM_SCALAR] = { 1, 1, 1, 1, 1, 1, 1, 1 },
	};

	memcpy(d, wide[form], 4 * sizeof(int64_t));
	memcpy(strides, wide[form] + 4, 4 * sizeof(int64_t));
}

static void *describe_tensor(struct builder *b, const struct tensor *t, int64_t id,
			     const struct cudnn_shape *s)
{
	void *d = begin(b, CUDNN_TENSOR);
	int64_t dimensions[4], strides[4];
	int64_t alignment = t->type == CUDNN_BF16 ? 16 : 4;

	measure(t->form, s, dimensions, strides);
	set_word(b, d, CUDNN_TENSOR_TYPE, CUDNN_OF_DATA_TYPE, t->type);
	set(b, d, CUDNN_TENSOR_DIMENSIONS, CUDNN_OF_INT64, 4, dimensions);
	set(b, d, CUDNN_TENSOR_STRIDES, CUDNN_OF_INT64, 4, strides);
	set(b, d, CUDNN_TENSOR_ID, CUDNN_OF_INT64, 1, &id);
	set(b, d, CUDNN_TENSOR_ALIGNMENT, CUDNN_OF_INT64, 1, &alignment);
	if (t->place == VIRTUAL)
		set_flag(b, d, CUDNN_TENSOR_IS_VIRTUAL);
	if (t->place >= VALUE_SCALE)
		set_flag(b, d, CUDNN_TENSOR_IS_VALUE);
	finish(b, d);
	return d;
}

static void *describe_operation(struct builder *b, const struct operation *o, void *const *tensors)
{
	/* For each operation: cuDNN's numbers of the operation, of the descriptor of its mode, and
	 * of the attributes of both. -1: cuDNN has no such descriptor or attribute. */
	static const struct {
		int kind, mode_kind, mode, mode_type, precision, descriptor, x, b, t, y;
	} names[] = {
		[MATMUL] = { CUDNN_OPERATION_MATMUL, CUDNN_MATMUL, -1, -1, CUDNN_MATMUL_PRECISION,
			     CUDNN_MATMUL_OP_DESCRIPTOR, CUDNN_MATMUL_OP_A, CUDNN_MATMUL_OP_B, -1,
			     CUDNN_MATMUL_OP_C },
		[POINTWISE] = { CUDNN_OPERATION_POINTWISE, CUDNN_POINTWISE, CUDNN_POINTWISE_MODE,
				CUDNN_OF_POINTWISE_MODE, CUDNN_POINTWISE_PRECISION,
				CUDNN_POINTWISE_OP_DESCRIPTOR, CUDNN_POINTWISE_OP_X,
				CUDNN_POINTWISE_OP_B, CUDNN_POINTWISE_OP_T, CUDNN_POINTWISE_OP_Y },
		[REDUCE] = { CUDNN_OPERATION_REDUCTION, CUDNN_REDUCTION, CUDNN_REDUCTION_MODE,
			     CUDNN_OF_REDUCTION_MODE, CUDNN_REDUCTION_PRECISION,
			     CUDNN_REDUCTION_OP_DESCRIPTOR, CUDNN_REDUCTION_OP_X, -1, -1,
			     CUDNN_REDUCTION_OP_Y },
		[RESHAPE] = { CUDNN_OPERATION_RESHAPE, -1, -1, -1, -1, -1, CUDNN_RESHAPE_OP_X, -1,
			      -1, CUDNN_RESHAPE_OP_Y },
	};
	const int precision = o->mode == CUDNN_INDEX      ? CUDNN_INT32
			      : o->mode == CUDNN_AT_LEAST ? CUDNN_BOOLEAN
							  : CUDNN_FLOAT;
	void *mode = NULL, *d;

	if (names[o->kind].mode_kind >= 0) {
		mode = begin(b, names[o->kind].mode_kind);
		if (names[o->kind].mode >= 0)
			set_word(b, mode, names[o->kind].mode, names[o->kind].mode_type, o->mode);
		set_word(b, mode, names[o->kind].precision, CUDNN_OF_DATA_TYPE, precision);
		if (o->kind == POINTWISE && o->mode == CUDNN_INDEX)
			set(b, mode, CUDNN_POINTWISE_AXIS, CUDNN_OF_INT64, 1, &o->axis);
		finish(b, mode);
	}
	d = begin(b, names[o->kind].kind);
	if (mode)
		set_descriptor(b, d, names[o->kind].descriptor, mode);
	set_descriptor(b, d, names[o->kind].x, tensors[o->x]);
	if (o->b)
		set_descriptor(b, d, names[o->kind].b, tensors[o->b]);
	if (o->t)
		set_descriptor(b, d, names[o->kind].t, tensors[o->t]);
	set_descriptor(b, d, names[o->kind].y, tensors[o->y]);
	finish(b, d);
	return d;
}

/* ---- plans ---- */

struct plan {
	void *descriptor; /* NULL: not made */
	int64_t batch;    /* number of sequences that one execution computes */
	int64_t engine;   /* cuDNN's number of the code */
	int64_t workspace;
	size_t n; /* number of tensors that are not virtual */
	int64_t ids[PLACES];
	enum place places[PLACES];
};

struct cudnn {
	struct cudnn_functions f;
	void *handle; /* NULL: the device is only described */
	void *device; /* descriptor of the device, or NULL */
	struct cudnn_shape shape;
	struct plan plans[PASSES];
};

static int refused(const struct cudnn *c, int rc, struct error *err, const char *what)
{
	char text[256] = "";

	c->f.last_error(text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	return error_set(err, rc, "cuDNN refused %s%s%s", what, *text ? ": " : "", text);
}

/* Returns true if the code of a proposal has fixed bits. */
static bool has_fixed_bits(struct builder *b, void *config, int64_t *engine_index)
{
	void *engine = begin(b, CUDNN_ENGINE);
	int notes[CUDNN_NOTES];
	int64_t n = 0;

	if (!engine ||
	    b->f->get(config, CUDNN_CONFIG_ENGINE, CUDNN_OF_DESCRIPTOR, 1, &n, &engine) != 0 ||
	    b->f->get(engine, CUDNN_ENGINE_INDEX, CUDNN_OF_INT64, 1, &n, engine_index) != 0 ||
	    b->f->get(engine, CUDNN_ENGINE_NOTES, CUDNN_OF_NOTE, CUDNN_NOTES, &n, notes) != 0)
		return false;
	for (int64_t i = 0; i < n && i < CUDNN_NOTES; i++)
		if (notes[i] == CUDNN_NOTE_NONDETERMINISTIC)
			return false;
	return true;
}

/* Makes a plan of one proposal. Returns false if cuDNN cannot run it on this device. */
static bool take(struct cudnn *c, struct plan *p, void *config)
{
	struct builder b = { .f = &c->f };
	void *d = begin(&b, CUDNN_EXECUTION_PLAN);
	int64_t n = 0;

	if (c->handle)
		set(&b, d, CUDNN_PLAN_HANDLE, CUDNN_OF_HANDLE, 1, &c->handle);
	else
		set_descriptor(&b, d, CUDNN_PLAN_DEVICE, c->device);
	set_descriptor(&b, d, CUDNN_PLAN_CONFIG, config);
	finish(&b, d);
	if (b.failed || c->f.get(d, CUDNN_PLAN_WORKSPACE, CUDNN_OF_INT64, 1, &n, &p->workspace)) {
		forget_all(&b);
		return false;
	}
	p->descriptor = d;
	return true;
}

/* Chooses code for a graph. */
static int choose(struct cudnn *c, struct plan *p, struct builder *b, void *graph,
		  struct error *err)
{
	void *heuristic = begin(b, CUDNN_HEURISTIC), *proposals[PROPOSALS_MOST] = { NULL };
	int64_t n = 0, read = 0;

	set_descriptor(b, heuristic, CUDNN_HEURISTIC_GRAPH, graph);
	set_word(b, heuristic, CUDNN_HEURISTIC_MODE, CUDNN_OF_HEURISTIC_MODE, CUDNN_HEURISTIC_A);
	if (c->device)
		set_descriptor(b, heuristic, CUDNN_HEURISTIC_DEVICE, c->device);
	finish(b, heuristic);
	while (!b->failed && read < PROPOSALS_MOST)
		proposals[read++] = begin(b, CUDNN_ENGINE_CONFIG);
	if (b->failed || c->f.get(heuristic, CUDNN_HEURISTIC_RESULTS, CUDNN_OF_DESCRIPTOR, read, &n,
				  proposals) != 0)
		return refused(c, -ENOTSUP, err, "the graph of attention");
	for (int64_t i = 0; i < n && i < read; i++) {
		struct builder engine = { .f = b->f };
		bool fixed = has_fixed_bits(&engine, proposals[i], &p->engine);

		forget_all(&engine);
		if (fixed && take(c, p, proposals[i]))
			return 0;
	}
	return error_set(err, -ENOTSUP,
			 "cuDNN proposes %lld kinds of code for attention, and none of them is "
			 "both deterministic and for this device",
			 (long long)n);
}

/* Returns how many sequences an execution computes: all of them, or so few that the gradients of
 * their scores fit into SCORES_MOST bytes. The number divides the batch. */
static int64_t batch_of(const struct cudnn_shape *s, enum cudnn_pass pass)
{
	const int64_t rows = (s->length + 63) / 64 * 64; /* cuDNN pads to whole tiles */
	int64_t n = s->batch;

	while (pass == CUDNN_BACKWARD && n > 1 &&
	       (s->batch % n || n * s->heads * rows * rows * 2 > SCORES_MOST))
		n--;
	return n;
}

static int plan_pass(struct cudnn *c, enum cudnn_pass pass, struct error *err)
{
	struct plan *p = &c->plans[pass];
	struct cudnn_shape shape = c->shape;
	struct builder b = { .f = &c->f };
	void *tensors[TENSORS_MOST] = { NULL }, *operations[OPERATIONS_MOST], *graph;
	int64_t n = 0;
	struct graph g;
	int rc;

	shape.batch = p->batch = batch_of(&shape, pass);
	graph_of(&g, pass, &shape);
	for (const struct operation *o = g.operations; o->kind && !b.failed; o++) {
		const int used[] = { o->x, o->b, o->t, o->y };

		for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
			const struct tensor *t = &g.tensors[used[i]];

			if (used[i] == 0 || tensors[used[i]])
				continue;
			tensors[used[i]] = describe_tensor(&b, t, used[i], &shape);
			if (t->place != VIRTUAL) {
				p->ids[p->n] = used[i];
				p->places[p->n++] = t->place;
			}
		}
		operations[n++] = describe_operation(&b, o, tensors);
	}
	graph = begin(&b, CUDNN_GRAPH);
	set(&b, graph, CUDNN_GRAPH_OPERATIONS, CUDNN_OF_DESCRIPTOR, n, operations);
	if (c->handle)
		set(&b, graph, CUDNN_GRAPH_HANDLE, CUDNN_OF_HANDLE, 1, &c->handle);
	finish(&b, graph);
	rc = b.failed ? refused(c, -ENOTSUP, err, "an operation of attention")
		      : choose(c, p, &b, graph, err);
	forget_all(&b);
	return rc;
}

static void forget_plans(struct cudnn *c)
{
	for (int i = 0; i < PASSES; i++) {
		if (c->plans[i].descriptor)
			c->f.forget(c->plans[i].descriptor);
		c->plans[i] = (struct plan){ 0 };
	}
}

int cudnn_plan(struct cudnn *c, const struct cudnn_shape *shape, struct error *err)
{
	int rc = 0;

	forget_plans(c);
	c->shape = *shape;
	for (int i = 0; i < PASSES && rc == 0; i++)
		rc = plan_pass(c, (enum cudnn_pass)i, err);
	if (rc != 0)
		forget_plans(c);
	return rc;
}

/* ---- the library ---- */

static struct cudnn *new_cudnn(const struct cudnn_functions *f)
{
	struct cudnn *c = alloc_new(sizeof(*c));

	c->f = *f;
	return c;
}

int cudnn_check(const struct cudnn_functions *f, struct error *err)
{
	const size_t version = f->version();

	return version >= VERSION_LEAST
		       ? 0
		       : error_set(err, -ENOTSUP,
				   "cuDNN is version %zu.%zu.%zu: attention needs 9.18.1 or later",
				   version / 10000, version / 100 % 100, version % 100);
}

int cudnn_open(struct cudnn **out, const struct cudnn_functions *f, void *stream, struct error *err)
{
	struct cudnn *c;
	int rc = cudnn_check(f, err);

	if (rc != 0)
		return rc;
	c = new_cudnn(f);
	if (f->create(&c->handle) != 0 || f->set_stream(c->handle, stream) != 0) {
		rc = refused(c, -EIO, err, "the device");
		cudnn_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

int cudnn_open_described(struct cudnn **out, const struct cudnn_functions *f, const char *device,
			 struct error *err)
{
	struct cudnn *c = new_cudnn(f);
	struct builder b = { .f = &c->f };
	int rc;

	c->device = begin(&b, CUDNN_DEVICE);
	set(&b, c->device, CUDNN_DEVICE_JSON, CUDNN_OF_CHAR, (int64_t)strlen(device) + 1, device);
	finish(&b, c->device);
	if (b.failed) {
		rc = refused(c, -EIO, err, "the description of the device");
		cudnn_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

void cudnn_close(struct cudnn *c)
{
	if (!c)
		return;
	forget_plans(c);
	if (c->device)
		c->f.forget(c->device);
	if (c->handle)
		c->f.destroy(c->handle);
	free(c);
}

size_t cudnn_workspace(const struct cudnn *c)
{
	int64_t most = 0;

	for (int i = 0; i < PASSES; i++)
		if (c->plans[i].workspace > most)
			most = c->plans[i].workspace;
	return (size_t)most;
}

void cudnn_text(const struct cudnn *c, char *text, size_t size)
{
	snprintf(text, size, "cuDNN %zu:%lld:%lld", c->f.version(),
		 (long long)c->plans[CUDNN_FORWARD].engine,
		 (long long)c->plans[CUDNN_BACKWARD].engine);
}

/* ---- passes ---- */

/* Returns where a tensor is. first: the first sequence of the execution. value: room for a
 * number. */
static void *find(const struct cudnn *c, const struct cudnn_arrays *a, enum place place,
		  int64_t first, float *value)
{
	const struct cudnn_shape *s = &c->shape;
	const int64_t keys = s->heads * s->size, values = keys + s->kv_heads * s->size;
	/* Numbers before the first sequence, in each kind of array. */
	const int64_t rows = first * s->length, qkv = rows * s->stride;
	const int64_t small = rows * s->heads, out = small * s->size;

	switch (place) {
	case IN_QUERIES:
		return (uint16_t *)a->qkv + qkv;
	case IN_KEYS:
		return (uint16_t *)a->qkv + qkv + keys;
	case IN_VALUES:
		return (uint16_t *)a->qkv + qkv + values;
	case IN_DQUERIES:
		return (uint16_t *)a->dqkv + qkv;
	case IN_DKEYS:
		return (uint16_t *)a->dqkv + qkv + keys;
	case IN_DVALUES:
		return (uint16_t *)a->dqkv + qkv + values;
	case IN_OUT:
		return (uint16_t *)a->out + out;
	case IN_DOUT:
		return (uint16_t *)a->dout + out;
	case IN_LSE:
		return (float *)a->lse + small;
	case IN_DOT:
		return (float *)a->dot + small;
	case VALUE_SCALE:
		*value = a->scale;
		return value;
	case VALUE_ONE:
		*value = 1;
		return value;
	case VALUE_MINUS_INFINITY:
		*value = -INFINITY;
		return value;
	default:
		return NULL;
	}
}

/* Queues the execution for the sequences from `first` on. */
static bool execute(struct cudnn *c, struct plan *p, const struct cudnn_arrays *a, int64_t first)
{
	struct builder b = { .f = &c->f };
	void *pack = begin(&b, CUDNN_VARIANT_PACK), *pointers[PLACES];
	float values[PLACES];
	bool ok;

	for (size_t i = 0; i < p->n; i++)
		pointers[i] = find(c, a, p->places[i], first, &values[i]);
	set(&b, pack, CUDNN_PACK_IDS, CUDNN_OF_INT64, (int64_t)p->n, p->ids);
	set(&b, pack, CUDNN_PACK_POINTERS, CUDNN_OF_POINTER, (int64_t)p->n, pointers);
	set(&b, pack, CUDNN_PACK_WORKSPACE, CUDNN_OF_POINTER, 1, &a->workspace);
	finish(&b, pack);
	ok = !b.failed && c->f.execute(c->handle, p->descriptor, pack) == 0;
	forget_all(&b);
	return ok;
}

int cudnn_run(struct cudnn *c, enum cudnn_pass pass, const struct cudnn_arrays *a,
	      struct error *err)
{
	struct plan *p = &c->plans[pass];

	for (int64_t first = 0; first < c->shape.batch; first += p->batch)
		if (!execute(c, p, a, first))
			return refused(c, -EIO, err, "to compute attention");
	return 0;
}
