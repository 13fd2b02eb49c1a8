/* emulated_cudnn.h - imitates cuDNN's backend interface on the CPU. A test includes it once.
 *
 * Descriptors keep the attributes that are set. A plan keeps a copy of its graph, and executing the
 * plan computes the graph's operations one after another with plain loops, in double precision.
 * Each result is rounded to its tensor's type. The test thus learns which numbers a graph defines,
 * independently of the code under test. Unknown descriptors, attributes and operations fail the
 * test.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tests/test.h"
#include "model/cuda/cudnn.h"
#include "model/cuda/cudnn_names.h"

enum { FAKE_ATTRIBUTES = 12, FAKE_VALUES = 40, FAKE_TENSORS = 48 };

struct fake {
	int kind;
	bool finished;
	size_t n;
	struct fake_attribute {
		int name, type;
		int64_t n;
		union {
			void *pointers[FAKE_VALUES];
			int64_t numbers[FAKE_VALUES];
			int words[FAKE_VALUES];
			bool flags[FAKE_VALUES];
		} values;
	} attributes[FAKE_ATTRIBUTES];
	/* For engine configurations and engines: index of the proposal. */
	int64_t proposal;
	struct fake_tensor *tensors; /* for plans: the graph */
	struct fake_step *steps;
	size_t n_steps;
};

struct fake_tensor {
	int64_t id, d[4], strides[4], alignment;
	int type;
	bool is_virtual, is_value;
	float *own;     /* for virtual tensors: the numbers, by offset */
	const void *at; /* for other tensors: where the test has the numbers */
};

struct fake_step {
	int kind, mode, precision;
	int64_t axis;
	struct fake_tensor *x, *b, *t, *y;
};

/* Settings of the emulation, and a record of the calls. */
static struct {
	size_t version;
	int64_t deterministic; /* the first proposal without the note "nondeterministic" */
	int64_t proposals;     /* number of proposals for a graph */
	int fail_at;           /* the call with this number fails; 0: none */
	int calls;
	int alive; /* descriptors that exist */
	bool idle; /* plans do not compute, and their first pointers are kept */
	int executions;
	/* For each execution: where the first tensor of the first operation was. */
	const void *first[8];
	int64_t batch;          /* number of sequences in the latest execution */
	void *stream;
} fake = { .version = 92800, .proposals = 1 };

static bool refuses(void)
{
	return ++fake.calls == fake.fail_at;
}

static const struct fake_attribute *attribute(const struct fake *d, int name)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->attributes[i].name == name)
			return &d->attributes[i];
	return NULL;
}

static int64_t number(const struct fake *d, int name)
{
	const struct fake_attribute *a = attribute(d, name);

	assert_non_null(a);
	return a->type == CUDNN_OF_INT64     ? a->values.numbers[0]
	       : a->type == CUDNN_OF_BOOLEAN ? a->values.flags[0]
					     : a->values.words[0];
}

static struct fake *descriptor(const struct fake *d, int name)
{
	const struct fake_attribute *a = attribute(d, name);

	return a ? a->values.pointers[0] : NULL;
}

static size_t fake_version(void)
{
	return fake.version;
}

static void fake_last_error(char *text, size_t size)
{
	snprintf(text, size, "%s", "because of the test\nsecond line");
}

static int fake_create(void **handle)
{
	*handle = &fake;
	return refuses();
}

static int fake_destroy(void *handle)
{
	assert_ptr_equal(handle, &fake);
	return 0;
}

static int fake_set_stream(void *handle, void *stream)
{
	assert_ptr_equal(handle, &fake);
	fake.stream = stream;
	return refuses();
}

static int fake_describe(int kind, void **out)
{
	struct fake *d = calloc(1, sizeof(*d));

	if (refuses()) {
		free(d);
		return 1;
	}
	d->kind = kind;
	fake.alive++;
	*out = d;
	return 0;
}

static int fake_forget(void *descriptor)
{
	struct fake *d = descriptor;

	for (size_t i = 0; d->tensors && i < FAKE_TENSORS; i++)
		free(d->tensors[i].own);
	free(d->tensors);
	free(d->steps);
	free(d);
	fake.alive--;
	return 0;
}

static size_t size_of_type(int type)
{
	switch (type) {
	case CUDNN_OF_BOOLEAN:
		return sizeof(bool);
	case CUDNN_OF_CHAR:
		return 1;
	case CUDNN_OF_HANDLE:
	case CUDNN_OF_POINTER:
	case CUDNN_OF_DESCRIPTOR:
		return sizeof(void *);
	case CUDNN_OF_INT64:
		return sizeof(int64_t);
	default:
		return sizeof(int);
	}
}

static int fake_set(void *descriptor, int name, int type, int64_t n, const void *values)
{
	struct fake *d = descriptor;
	struct fake_attribute *a = &d->attributes[d->n];

	assert_true(d->n < FAKE_ATTRIBUTES);
	assert_true((size_t)n * size_of_type(type) <= sizeof(a->values));
	assert_false(d->finished);
	assert_null(attribute(d, name));
	d->n++;
	a->name = name;
	a->type = type;
	a->n = n;
	memcpy(&a->values, values, (size_t)n * size_of_type(type));
	return refuses();
}

static int fake_get(const void *descriptor, int name, int type, int64_t most, int64_t *n,
		    void *values)
{
	const struct fake *d = descriptor;
	struct fake *const *results = values;
	int note = d->proposal < fake.deterministic ? CUDNN_NOTE_NONDETERMINISTIC : 0;

	assert_true(type >= 0 && most > 0);
	*n = 1;
	if (name == CUDNN_HEURISTIC_RESULTS) {
		*n = fake.proposals;
		for (int64_t i = 0; i < *n && i < most; i++) {
			results[i]->proposal = i;
			results[i]->attributes[0].values.pointers[0] = (void *)d;
		}
	} else if (name == CUDNN_CONFIG_ENGINE) {
		results[0]->proposal = d->proposal;
	} else if (name == CUDNN_ENGINE_INDEX) {
		*(int64_t *)values = 100 + d->proposal;
	} else if (name == CUDNN_ENGINE_NOTES) {
		*(int *)values = note;
	} else {
		assert_int_equal(name, CUDNN_PLAN_WORKSPACE);
		*(int64_t *)values = 256 + d->proposal;
	}
	return refuses();
}

static struct fake_tensor *tensor_of(struct fake *plan, const struct fake *d)
{
	struct fake_tensor *t = plan->tensors;
	int64_t size = 1;

	assert_int_equal(d->kind, CUDNN_TENSOR);
	assert_true(d->finished);
	while (t->id && t->id != number(d, CUDNN_TENSOR_ID))
		t++;
	if (t->id)
		return t;
	assert_true(t < plan->tensors + FAKE_TENSORS - 1);
	t->id = number(d, CUDNN_TENSOR_ID);
	t->type = (int)number(d, CUDNN_TENSOR_TYPE);
	t->alignment = number(d, CUDNN_TENSOR_ALIGNMENT);
	t->is_virtual = attribute(d, CUDNN_TENSOR_IS_VIRTUAL) != NULL;
	t->is_value = attribute(d, CUDNN_TENSOR_IS_VALUE) != NULL;
	assert_int_equal(attribute(d, CUDNN_TENSOR_DIMENSIONS)->n, 4);
	assert_int_equal(attribute(d, CUDNN_TENSOR_STRIDES)->n, 4);
	for (int i = 0; i < 4; i++) {
		t->d[i] = attribute(d, CUDNN_TENSOR_DIMENSIONS)->values.numbers[i];
		t->strides[i] = attribute(d, CUDNN_TENSOR_STRIDES)->values.numbers[i];
		size += (t->d[i] - 1) * t->strides[i];
	}
	if (t->is_virtual && !fake.idle)
		t->own = calloc((size_t)size, sizeof(float));
	return t;
}

static struct fake_step step_of(struct fake *plan, const struct fake *o)
{
	/* for each kind of operation: its descriptor, mode and precision, then x, b, t and y */
	static const int names[][8] = {
		{ CUDNN_OPERATION_MATMUL, CUDNN_MATMUL_OP_DESCRIPTOR, -1, CUDNN_MATMUL_PRECISION,
		  CUDNN_MATMUL_OP_A, CUDNN_MATMUL_OP_B, -1, CUDNN_MATMUL_OP_C },
		{ CUDNN_OPERATION_POINTWISE, CUDNN_POINTWISE_OP_DESCRIPTOR, CUDNN_POINTWISE_MODE,
		  CUDNN_POINTWISE_PRECISION, CUDNN_POINTWISE_OP_X, CUDNN_POINTWISE_OP_B,
		  CUDNN_POINTWISE_OP_T, CUDNN_POINTWISE_OP_Y },
		{ CUDNN_OPERATION_REDUCTION, CUDNN_REDUCTION_OP_DESCRIPTOR, CUDNN_REDUCTION_MODE,
		  CUDNN_REDUCTION_PRECISION, CUDNN_REDUCTION_OP_X, -1, -1, CUDNN_REDUCTION_OP_Y },
		{ CUDNN_OPERATION_RESHAPE, -1, -1, -1, CUDNN_RESHAPE_OP_X, -1, -1,
		  CUDNN_RESHAPE_OP_Y },
	};
	struct fake_step s = { .kind = o->kind, .precision = CUDNN_FLOAT };
	const struct fake *tensor;
	size_t i = 0;

	while (i < 4 && names[i][0] != o->kind)
		i++;
	assert_true(i < 4 && o->finished);
	if (names[i][1] >= 0) {
		const struct fake *d = descriptor(o, names[i][1]);

		assert_true(d->finished);
		s.mode = names[i][2] < 0 ? 0 : (int)number(d, names[i][2]);
		s.precision = (int)number(d, names[i][3]);
		s.axis = attribute(d, CUDNN_POINTWISE_AXIS) ? number(d, CUDNN_POINTWISE_AXIS) : -1;
	}
	s.x = tensor_of(plan, descriptor(o, names[i][4]));
	if ((tensor = descriptor(o, names[i][5])))
		s.b = tensor_of(plan, tensor);
	if ((tensor = descriptor(o, names[i][6])))
		s.t = tensor_of(plan, tensor);
	s.y = tensor_of(plan, descriptor(o, names[i][7]));
	return s;
}

static int fake_finalize(void *descriptor_)
{
	struct fake *d = descriptor_;

	assert_false(d->finished);
	d->finished = true;
	if (d->kind == CUDNN_EXECUTION_PLAN) {
		const struct fake *config = descriptor(d, CUDNN_PLAN_CONFIG);
		const struct fake *heuristic = config->attributes[0].values.pointers[0];
		const struct fake *graph = descriptor(heuristic, CUDNN_HEURISTIC_GRAPH);
		const struct fake_attribute *all = attribute(graph, CUDNN_GRAPH_OPERATIONS);

		assert_true(graph->finished && heuristic->finished);
		d->proposal = config->proposal;
		d->tensors = calloc(FAKE_TENSORS, sizeof(*d->tensors));
		d->steps = calloc((size_t)all->n, sizeof(*d->steps));
		for (int64_t i = 0; i < all->n; i++)
			d->steps[d->n_steps++] = step_of(d, all->values.pointers[i]);
	}
	return refuses();
}

/* ---- numbers ---- */

static float bf16_to_float(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint16_t float_to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Returns a number at index i; dimensions of 1 are repeated. heads: number of heads that i[1]
 * counts. If the tensor has fewer heads, consecutive values of i[1] share a head. */
static double read_at(const struct fake_tensor *t, const int64_t i[4], int64_t heads)
{
	int64_t at = 0;

	for (int k = 0; k < 4; k++) {
		int64_t j = t->d[k] == 1 ? 0 : i[k];

		if (k == 1 && t->d[1] > 1 && t->d[1] < heads)
			j = i[1] / (heads / t->d[1]);
		at += j * t->strides[k];
	}
	if (t->is_virtual)
		return (double)t->own[at];
	return t->type == CUDNN_BF16 ? (double)bf16_to_float(((const uint16_t *)t->at)[at])
				     : (double)((const float *)t->at)[at];
}

static void write_at(struct fake_tensor *t, const int64_t i[4], double x)
{
	int64_t at = 0;

	for (int k = 0; k < 4; k++)
		at += i[k] * t->strides[k];
	if (t->is_virtual)
		t->own[at] =
			t->type == CUDNN_BF16 ? bf16_to_float(float_to_bf16((float)x)) : (float)x;
	else if (t->type == CUDNN_BF16)
		((uint16_t *)t->at)[at] = float_to_bf16((float)x);
	else
		((float *)t->at)[at] = (float)x;
}

static double product_at(const struct fake_step *s, const int64_t i[4])
{
	int64_t heads = s->y->d[1], x[4], b[4];
	double sum = 0;

	assert_int_equal(s->x->d[3], s->b->d[2]);
	assert_true(s->x->d[2] == s->y->d[2] && s->b->d[3] == s->y->d[3]);
	memcpy(x, i, sizeof(x));
	memcpy(b, i, sizeof(b));
	for (int64_t k = 0; k < s->x->d[3]; k++) {
		x[3] = b[2] = k;
		sum += read_at(s->x, x, heads) * read_at(s->b, b, heads);
	}
	return sum;
}

static double reduced_at(const struct fake_step *s, const int64_t i[4])
{
	double sum = s->mode == CUDNN_REDUCE_MAX ? -(double)INFINITY : 0;
	int64_t n[4], j[4];

	assert_true(s->mode == CUDNN_REDUCE_MAX || s->mode == CUDNN_REDUCE_ADD);
	for (int k = 0; k < 4; k++) {
		assert_int_equal(s->x->d[k] % s->y->d[k], 0);
		n[k] = s->x->d[k] / s->y->d[k];
	}
	for (int64_t r = 0; r < n[0] * n[1] * n[2] * n[3]; r++) {
		double x;

		for (int64_t k = 3, rest = r; k >= 0; rest /= n[k], k--)
			j[k] = i[k] * n[k] + rest % n[k];
		x = read_at(s->x, j, s->x->d[1]);
		sum = s->mode == CUDNN_REDUCE_ADD ? sum + x : fmax(sum, x);
	}
	return sum;
}

static double point_at(const struct fake_step *s, const int64_t i[4])
{
	int64_t heads = s->y->d[1];
	double x = s->mode == CUDNN_INDEX ? 0 : read_at(s->x, i, heads);
	double b = s->b ? read_at(s->b, i, heads) : 0;

	switch (s->mode) {
	case CUDNN_ADD:
		return x + b;
	case CUDNN_MULTIPLY:
		return x * b;
	case CUDNN_DIVIDE:
		return x / b;
	case CUDNN_SUBTRACT:
		return x - b;
	case CUDNN_EXP:
		return exp(x);
	case CUDNN_LOG:
		return log(x);
	case CUDNN_INDEX:
		assert_int_equal(s->precision, CUDNN_INT32);
		return (double)i[s->axis];
	case CUDNN_AT_LEAST:
		return x >= b;
	default:
		assert_int_equal(s->mode, CUDNN_SELECT);
		return read_at(s->t, i, heads) != 0 ? x : b;
	}
}

/* A reshaped tensor has the numbers of x in the order of memory, with its own strides. */
static double reshaped_at(const struct fake_step *s, const int64_t i[4])
{
	struct fake_tensor view = *s->y;

	view.is_virtual = s->x->is_virtual;
	view.own = s->x->own;
	view.at = s->x->at;
	return read_at(&view, i, view.d[1]);
}

static void compute(const struct fake_step *s)
{
	const int64_t *d = s->y->d;

	for (int64_t n = 0; n < d[0] * d[1] * d[2] * d[3]; n++) {
		const int64_t i[4] = { n / (d[1] * d[2] * d[3]), n / (d[2] * d[3]) % d[1],
				       n / d[3] % d[2], n % d[3] };

		write_at(s->y, i,
			 s->kind == CUDNN_OPERATION_MATMUL      ? product_at(s, i)
			 : s->kind == CUDNN_OPERATION_REDUCTION ? reduced_at(s, i)
			 : s->kind == CUDNN_OPERATION_RESHAPE   ? reshaped_at(s, i)
								: point_at(s, i));
	}
}

static int fake_execute(void *handle, void *plan, void *pack)
{
	struct fake *p = plan;
	const struct fake_attribute *ids = attribute(pack, CUDNN_PACK_IDS);
	const struct fake_attribute *pointers = attribute(pack, CUDNN_PACK_POINTERS);

	assert_ptr_equal(handle, &fake);
	assert_non_null(descriptor(pack, CUDNN_PACK_WORKSPACE));
	for (struct fake_tensor *t = p->tensors; t->id; t++)
		for (int64_t i = 0; !t->is_virtual && i < ids->n; i++)
			if (ids->values.numbers[i] == t->id) {
				t->at = pointers->values.pointers[i];
				assert_true(t->is_value ||
					    (uintptr_t)t->at % (uintptr_t)t->alignment == 0);
			}
	fake.batch = p->tensors[0].d[0];
	fake.first[fake.executions++ % 8] = p->steps[0].x->at;
	for (size_t i = 0; !fake.idle && i < p->n_steps; i++)
		compute(&p->steps[i]);
	return refuses();
}

static const struct cudnn_functions fake_functions = {
	.version = fake_version,
	.last_error = fake_last_error,
	.create = fake_create,
	.destroy = fake_destroy,
	.set_stream = fake_set_stream,
	.describe = fake_describe,
	.forget = fake_forget,
	.set = fake_set,
	.get = fake_get,
	.finalize = fake_finalize,
	.execute = fake_execute,
};
