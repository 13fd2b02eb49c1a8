/* Compares stages with the reference in double: the loss, and every gradient by finite differences.
 * Also tests what must not depend on the cut, on the order of stages or on the number of
 * threads. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "model/squares.h"
#include "model/tests/reference.h"
#include "model/tests/run.h"

static const struct model_config small = { .vocab = 37,
					   .dim = 24,
					   .n_layers = 3,
					   .n_heads = 4,
					   .n_kv_heads = 2,
					   .ffn_dim = 20,
					   .context = 80,
					   .n_stages = 3,
					   .rope_theta = 10000,
					   .norm_eps = 1e-5f,
					   .init_std = 0.02f };

/* Makes the weights larger than the initial ones, so that every part of the model has an effect on
 * the loss. */
static void enlarge(struct run *r)
{
	for (uint32_t s = 0; s < r->config.n_stages; s++) {
		float *w = stage_weights(r->stages[s]);

		for (size_t i = 0; i < stage_parameters(r->stages[s]); i++)
			w[i] *= w[i] == 1 ? 1 + 0.01f * (float)(i % 17) : 12;
		stage_changed(r->stages[s]);
	}
}

static struct reference reference_of(struct run *r, struct tensor_table *table)
{
	struct reference ref = { &r->config, table, NULL, r->batch, r->sequence };

	assert_int_equal(tensor_table_new(table, &r->config, NULL), 0);
	ref.weights = calloc(table->n, sizeof(*ref.weights));
	for (size_t i = 0; i < table->n; i++) {
		const struct tensor *t = &table->tensors[i];
		const float *w = stage_weights(r->stages[t->stage]) + t->offset;

		ref.weights[i] = calloc(t->count, sizeof(double));
		for (size_t k = 0; k < t->count; k++)
			ref.weights[i][k] = (double)w[k];
	}
	return ref;
}

static void reference_fini(struct reference *ref, struct tensor_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		free(ref->weights[i]);
	free(ref->weights);
	tensor_table_free(table);
}

/* Compares a gradient with the derivative along a random direction within one tensor, by central
 * differences in double. h^2 times the third derivative is far below the tolerance, and so is the
 * rounding error divided by h. */
static void check_tensor(struct run *r, const struct reference *ref, size_t which,
			 const uint32_t *path, size_t n, struct rng *rng)
{
	const struct tensor *t = &ref->table->tensors[which];
	const float *g = stage_gradient(r->stages[t->stage]) + t->offset;
	double *w = ref->weights[which], *direction = calloc(t->count, sizeof(*direction));
	double h = 1e-5, along = 0, norm = 0, high, low, measured;

	for (size_t i = 0; i < t->count; i++) {
		direction[i] = rng_normal(rng);
		along += direction[i] * (double)g[i];
		norm += (double)g[i] * (double)g[i];
		w[i] += h * direction[i];
	}
	high = reference_loss(ref, path, n, r->tokens, r->targets, NULL);
	for (size_t i = 0; i < t->count; i++)
		w[i] -= 2 * h * direction[i];
	low = reference_loss(ref, path, n, r->tokens, r->targets, NULL);
	for (size_t i = 0; i < t->count; i++)
		w[i] += h * direction[i];
	measured = (high - low) / (2 * h);
	if (!(fabs(measured - along) <= 2e-5 * sqrt(norm) + 1e-8))
		fail_msg("%s: gradient along a direction %.9g, by differences %.9g (norm %.3g)",
			 t->name, along, measured, sqrt(norm));
	assert_true(norm > 0);
	free(direction);
}

static void check_model(const struct model_config *c, uint32_t batch, uint32_t sequence,
			uint32_t threads, const uint32_t *path, size_t n)
{
	struct tensor_table table;
	struct reference ref;
	struct run r;
	struct rng rng;
	double expected;
	float loss;

	run_init(&r, c, batch, sequence, threads, 7);
	enlarge(&r);
	ref = reference_of(&r, &table);
	loss = run_microbatch(&r, path, n, true, true);
	expected = reference_loss(&ref, path, n, r.tokens, r.targets, NULL);
	assert_true(fabs((double)loss - expected) < 2e-6 * expected);
	assert_true(fabs((double)run_microbatch(&r, path, n, false, false) - expected) <
		    2e-6 * expected);
	rng_init(&rng, 3);
	for (size_t i = 0; i < table.n; i++) {
		bool visited = table.tensors[i].stage == 0;

		for (size_t k = 0; k < n; k++)
			visited |= path[k] == table.tensors[i].stage;
		for (int times = 0; visited && times < 3; times++)
			check_tensor(&r, &ref, i, path, n, &rng);
	}
	reference_fini(&ref, &table);
	run_fini(&r);
}

/* A standby copy has only weights and moments. Its steps give the same weights as the steps of the
 * stage that it copies. */
TEST(a_copy_only_steps)
{
	struct stage_options o = { .batch = 1, .sequence = 4, .seed = 5 };
	struct adamw h = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f };
	struct model_config c;
	struct stage *copy, *stage;
	struct error err;
	float *g;
	size_t n;

	assert_int_equal(model_preset("tiny", &c, NULL, &err), 0);
	assert_int_equal(stage_new(&stage, &c, 1, &o, &err), 0);
	o.only_steps = true;
	assert_int_equal(stage_new(&copy, &c, 1, &o, &err), 0);
	n = stage_parameters(stage);
	assert_true(stage_memory_bytes(copy) < 3 * n * sizeof(float) + 4096);
	g = calloc(n, sizeof(*g));
	for (size_t i = 0; i < n; i++)
		g[i] = (float)(i % 7) - 3;
	assert_int_equal(stage_step(stage, g, 0.03f, &h, 1), 0);
	assert_int_equal(stage_step(copy, g, 0.03f, &h, 1), 0);
	assert_true(stage_hash(copy) == stage_hash(stage));
	assert_int_equal(stage_forward(copy, 0, NULL, g, g, true), -EINVAL);
	assert_int_equal(stage_step(copy, NULL, 1, &h, 2), -EINVAL);
	free(g);
	stage_free(copy);
	stage_free(stage);
}

TEST(gradients_match_differences)
{
	check_model(&small, 2, 9, 1, (uint32_t[]){ 1, 2 }, 2);
}

TEST(gradients_match_when_swapped_or_skipped)
{
	check_model(&small, 2, 9, 1, (uint32_t[]){ 2, 1 }, 2);
	check_model(&small, 1, 7, 1, (uint32_t[]){ 2 }, 1);
	check_model(&small, 1, 7, 1, NULL, 0);
}

/* The model has one stage more than layers, so stage 0 has only the embedding and the head. */
TEST(gradients_match_without_layers_in_stage_0)
{
	struct model_config c = small;

	c.n_stages = 4;
	check_model(&c, 2, 7, 1, (uint32_t[]){ 1, 3 }, 2);
}

TEST(gradients_match_when_tied)
{
	struct model_config c = small;

	c.tied = true;
	c.n_kv_heads = 4;
	check_model(&c, 1, 8, 1, (uint32_t[]){ 1, 2 }, 2);
}

/* With these limits, one pair of numbers in a head keeps its frequency, another pair gets its
 * frequency divided, and a third pair gets an interpolated frequency. */
TEST(gradients_match_with_scaled_positions)
{
	struct model_config c = small;

	c.rope_factor = 8;
	check_model(&c, 1, 9, 1, (uint32_t[]){ 1, 2 }, 2);
	c.rope_low_freq_factor = 0.1f;
	c.rope_high_freq_factor = 4;
	c.rope_original_context = 40;
	check_model(&c, 1, 9, 1, (uint32_t[]){ 1, 2 }, 2);
}

/* The sequence is longer than a tile of attention. There are several threads, and one of them gets
 * no rows. */
TEST(gradients_match_over_tiles_and_threads)
{
	struct model_config c = small;

	c.n_layers = c.n_stages = 2;
	c.dim = 8;
	c.n_heads = 2;
	c.n_kv_heads = 1;
	check_model(&c, 1, 75, 3, (uint32_t[]){ 1 }, 1);
	check_model(&c, 1, 1 + 8, 3, (uint32_t[]){ 1 }, 1);
}

TEST(gradients_match_with_unequal_stages)
{
	struct model_config c = small;

	c.n_layers = 3;
	c.dim = 8;
	c.n_heads = 2;
	c.n_kv_heads = 1;
	assert_int_equal(model_cut(&c, &(struct stage_layers){ 3, { 0, 2, 1 } }, "cut", NULL), 0);
	check_model(&c, 1, 75, 3, (uint32_t[]){ 2, 1 }, 2);
}

TEST(cutting_changes_nothing)
{
	struct model_config c;
	struct run whole, cut;
	float a, b;

	assert_int_equal(model_preset("tiny", &c, NULL, NULL), 0);
	run_init(&cut, &c, 2, 16, 1, 5);
	c.n_stages = 1;
	run_init(&whole, &c, 2, 16, 1, 5);
	a = run_microbatch(&whole, NULL, 0, true, true);
	b = run_microbatch(&cut, (uint32_t[]){ 1, 2, 3, 4, 5 }, 5, true, true);
	assert_true(a == b);
	assert_true(stage_parameters(cut.stages[1]) > 0);
	/* The embedding comes first in both models, and its gradient depends on every layer. */
	assert_memory_equal(stage_gradient(whole.stages[0]), stage_gradient(cut.stages[0]),
			    sizeof(float) * c.vocab * c.dim);
	run_fini(&whole);
	run_fini(&cut);
}

TEST(not_counting_leaves_the_gradient)
{
	struct run r;
	float *before[3], *down;
	size_t rows;

	run_init(&r, &small, 2, 9, 1, 7);
	run_microbatch(&r, (uint32_t[]){ 1, 2 }, 2, true, true);
	rows = (size_t)r.batch * r.sequence * r.config.dim;
	down = calloc(rows, sizeof(*down));
	memcpy(down, r.grad[0], rows * sizeof(*down));
	for (int i = 0; i < 3; i++) {
		size_t size = stage_parameters(r.stages[i]) * sizeof(float);

		before[i] = malloc(size);
		memcpy(before[i], stage_gradient(r.stages[i]), size);
	}
	run_microbatch(&r, (uint32_t[]){ 1, 2 }, 2, true, false);
	assert_memory_equal(down, r.grad[0], rows * sizeof(*down));
	for (int i = 0; i < 3; i++) {
		assert_memory_equal(before[i], stage_gradient(r.stages[i]),
				    stage_parameters(r.stages[i]) * sizeof(float));
		free(before[i]);
	}
	free(down);
	run_fini(&r);
}

TEST(gradients_accumulate)
{
	struct run r;
	size_t n;
	float *once;

	run_init(&r, &small, 2, 9, 1, 7);
	n = stage_parameters(r.stages[1]);
	once = malloc(n * sizeof(*once));
	run_microbatch(&r, (uint32_t[]){ 1 }, 1, true, true);
	memcpy(once, stage_gradient(r.stages[1]), n * sizeof(*once));
	run_microbatch(&r, (uint32_t[]){ 1 }, 1, true, true);
	for (size_t i = 0; i < n; i++) {
		float g = stage_gradient(r.stages[1])[i];

		assert_true(fabsf(g - 2 * once[i]) <= 1e-6f * (fabsf(g) + 1e-3f));
	}
	assert_int_equal(stage_zero_gradient(r.stages[1]), 0);
	for (size_t i = 0; i < n; i++)
		assert_true(stage_gradient(r.stages[1])[i] == 0);
	free(once);
	run_fini(&r);
}

/* Two runs of a few steps, with microbatches interleaved over slots, give the same bits. */
TEST(the_same_again)
{
	struct model_config c;
	uint64_t hash[2];

	assert_int_equal(model_preset("tiny", &c, NULL, NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct adamw h = { 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f };
		struct run r;

		run_init(&r, &c, 2, 32, 2, 11);
		hash[i] = 0;
		for (uint64_t t = 1; t <= 3; t++) {
			run_microbatch(&r, (uint32_t[]){ 2, 1, 4, 5 }, 4, true, true);
			for (uint32_t s = 0; s < c.n_stages; s++) {
				assert_int_equal(stage_step(r.stages[s],
							    stage_gradient(r.stages[s]), 0.5f,
							    &h, t),
						 0);
				stage_zero_gradient(r.stages[s]);
				hash[i] = hash[i] * 31 + stage_hash(r.stages[s]);
			}
		}
		run_fini(&r);
	}
	assert_true(hash[0] == hash[1]);
}

TEST(slots_keep_apart)
{
	struct run r;
	size_t rows, n;
	float *out, *up, *first;

	run_init(&r, &small, 2, 9, 1, 7);
	rows = stage_activation(r.stages[1]);
	n = stage_parameters(r.stages[1]);
	out = calloc(rows, sizeof(*out));
	up = calloc(rows, sizeof(*up));
	first = malloc(n * sizeof(*first));
	for (size_t i = 0; i < rows; i++)
		r.x[0][i] = sinf((float)i), r.x[1][i] = cosf((float)i);
	assert_int_equal(stage_forward(r.stages[1], 0, NULL, r.x[0], out, true), 0);
	assert_int_equal(stage_backward(r.stages[1], 0, r.x[1], up, true), 0);
	memcpy(first, stage_gradient(r.stages[1]), n * sizeof(*first));
	stage_zero_gradient(r.stages[1]);
	assert_int_equal(stage_forward(r.stages[1], 1, NULL, r.x[1], out, true), 0);
	assert_int_equal(stage_forward(r.stages[1], 1, NULL, r.x[1], out, false), 0);
	assert_int_equal(stage_backward(r.stages[1], 0, r.x[1], up, true), 0);
	assert_memory_equal(first, stage_gradient(r.stages[1]), n * sizeof(*first));
	stage_release(r.stages[1], 0);
	assert_int_equal(stage_backward(r.stages[1], 0, r.x[1], up, true), -22);
	assert_int_equal(stage_backward(r.stages[1], 9, r.x[1], up, true), -22);
	free(out);
	free(up);
	free(first);
	run_fini(&r);
}

TEST(wrong_calls_are_refused)
{
	struct run r;
	float loss;

	run_init(&r, &small, 2, 9, 1, 7);
	assert_int_equal(stage_forward(r.stages[0], 2, r.tokens, NULL, r.x[0], true), -22);
	assert_int_equal(stage_forward(r.stages[1], 0, r.tokens, NULL, r.x[0], true), -22);
	assert_int_equal(stage_forward(r.stages[0], 0, NULL, r.x[1], r.x[0], true), -22);
	assert_int_equal(stage_backward(r.stages[1], 0, r.x[0], r.x[1], true), -22);
	r.tokens[3] = 37;
	assert_int_equal(stage_forward(r.stages[0], 0, r.tokens, NULL, r.x[0], true), -22);
	r.tokens[3] = -1;
	assert_int_equal(stage_forward(r.stages[0], 0, r.tokens, NULL, r.x[0], true), -22);
	assert_int_equal(stage_loss(r.stages[1], 0, r.x[0], r.targets, &loss, NULL, false),
			 -22);
	r.targets[3] = 37;
	assert_int_equal(stage_loss(r.stages[0], 0, r.x[0], r.targets, &loss, NULL, false),
			 -22);
	assert_int_equal(stage_step(r.stages[0], stage_gradient(r.stages[0]), 1,
				    &(struct adamw){ 0 }, 0),
			 -22);
	run_fini(&r);
}

TEST(bad_stages_are_refused)
{
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 8 };
	struct model_config c = small;
	struct error err;
	struct stage *s = NULL;

	assert_int_equal(stage_new(&s, &c, 3, &o, &err), -22);
	o.sequence = 81;
	assert_int_equal(stage_new(&s, &c, 0, &o, &err), -22);
	assert_non_null(strstr(err.text, "context"));
	o.sequence = 8;
	o.device = "tpu";
	assert_int_equal(stage_new(&s, &c, 0, &o, &err), -22);
	assert_non_null(strstr(err.text, "tpu"));
	o.device = "cpu";
	c.n_kv_heads = 3;
	assert_int_equal(stage_new(&s, &c, 0, &o, &err), -22);
	assert_non_null(strstr(err.text, "n_kv_heads"));
	assert_null(s);
}

TEST(adamw_matches_the_formula)
{
	struct adamw h = { 0.01f, 0.8f, 0.9f, 1e-6f, 0.3f };
	struct run r;
	struct tensor_table table;
	size_t n;
	double *w, *m, *v;
	float *g;

	run_init(&r, &small, 1, 4, 2, 7);
	tensor_table_new(&table, &small, NULL);
	n = stage_parameters(r.stages[0]);
	w = calloc(n, sizeof(*w));
	m = calloc(n, sizeof(*m));
	v = calloc(n, sizeof(*v));
	g = calloc(n, sizeof(*g));
	for (size_t i = 0; i < n; i++)
		w[i] = (double)stage_weights(r.stages[0])[i];
	for (int t = 1; t <= 4; t++) {
		for (size_t i = 0; i < n; i++)
			g[i] = sinf((float)(i * 7 + (size_t)t)) * 0.1f;
		assert_int_equal(stage_step(r.stages[0], g, 0.25f, &h, (uint64_t)t), 0);
		for (size_t k = 0; k < table.n && table.tensors[k].stage == 0; k++)
			for (size_t j = 0; j < table.tensors[k].count; j++) {
				size_t i = table.tensors[k].offset + j;
				double gi = (double)g[i] * 0.25;
				double decay = table.tensors[k].dims == 2 ? 0.3 : 0;

				m[i] = 0.8 * m[i] + 0.2 * gi;
				v[i] = 0.9 * v[i] + 0.1 * gi * gi;
				w[i] -= 0.01 * decay * w[i];
				w[i] -= 0.01 * (m[i] / (1 - pow(0.8, t))) /
					(sqrt(v[i] / (1 - pow(0.9, t))) + 1e-6);
			}
	}
	for (size_t i = 0; i < n; i++)
		assert_true(fabs(w[i] - (double)stage_weights(r.stages[0])[i]) < 1e-6);
	free(w);
	free(m);
	free(v);
	free(g);
	tensor_table_free(&table);
	run_fini(&r);
}

/* bf16 keeps 8 bits of each factor. Losses agree with fp32 to a few thousandths, gradients to a few
 * hundredths, and the bits are the same each time. */
TEST(bf16_stays_close)
{
	struct stage_options o = {
		.slots = 1, .batch = 2, .sequence = 48, .threads = 2, .seed = 6
	};
	struct model_config c;
	struct stage *s[3];
	int32_t tokens[96], targets[96];
	float *out, *grad, loss[3];
	struct error err;
	double difference = 0, size = 0;

	model_preset("tiny", &c, NULL, NULL);
	c.n_stages = 1;
	for (int i = 0; i < 96; i++) {
		tokens[i] = i * 37 % 256;
		targets[i] = i * 91 % 256;
	}
	out = calloc((size_t)96 * c.dim, sizeof(*out));
	grad = calloc((size_t)96 * c.dim, sizeof(*grad));
	for (int i = 0; i < 3; i++) {
		o.device = i > 0 ? "cpu:bf16" : "cpu";
		if (stage_new(&s[i], &c, 0, &o, &err) == -ENOTSUP) {
			stage_free(s[0]);
			free(out);
			free(grad);
			skip();
		}
		assert_int_equal(stage_forward(s[i], 0, tokens, NULL, out, true), 0);
		assert_int_equal(stage_loss(s[i], 0, out, targets, &loss[i], grad, true), 0);
		assert_int_equal(stage_backward(s[i], 0, grad, NULL, true), 0);
	}
	for (size_t i = 0; i < stage_parameters(s[0]); i++) {
		double want = (double)stage_gradient(s[0])[i];
		double d = (double)stage_gradient(s[1])[i] - want;

		difference += d * d;
		size += want * want;
	}
	assert_true(fabsf(loss[1] - loss[0]) < 5e-3f * loss[0]);
	assert_true(sqrt(difference / size) < 0.05);
	/* Without a difference, the stage would have computed in fp32. */
	assert_true(difference > 0);
	assert_true(loss[1] == loss[2]);
	assert_memory_equal(stage_gradient(s[1]), stage_gradient(s[2]),
			    stage_parameters(s[1]) * sizeof(float));
	for (int i = 0; i < 3; i++)
		stage_free(s[i]);
	free(out);
	free(grad);
}

/* Agents run a stage on one thread, so no library may start further threads, as oneDNN does by
 * default. */
TEST(one_thread_stays_one)
{
	struct model_config c;
	struct run r;
	size_t tasks = 0;
	DIR *d;

	model_preset("tiny", &c, NULL, NULL);
	run_init(&r, &c, 4, 64, 1, 1);
	run_microbatch(&r, (uint32_t[]){ 1 }, 1, true, true);
	d = opendir("/proc/self/task");
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		tasks += e->d_name[0] != '.';
	closedir(d);
	assert_int_equal(tasks, 1);
	run_fini(&r);
}

/* A tensor's initial numbers do not depend on the number of threads that draw them. */
TEST(weights_are_the_same_drawn_by_threads)
{
	struct model_config c = small;
	uint64_t hash = 0;

	c.vocab = 30011;
	for (uint32_t threads = 1; threads <= 3; threads++) {
		struct stage_options o = { .slots = 1, .batch = 1, .sequence = 1,
					   .threads = threads, .seed = 9 };
		struct stage *s;

		assert_int_equal(stage_new(&s, &c, 0, &o, NULL), 0);
		assert_true(stage_parameters(s) > 1 << 20);
		if (threads == 1)
			hash = stage_hash(s);
		assert_true(stage_hash(s) == hash);
		stage_free(s);
	}
}

/* The bits of a sum of squares are part of the record, so the order of additions is fixed. */
TEST(squares_are_added_in_blocks)
{
	enum { MOST = 3 * SQUARES_BLOCK + 13 };
	static const size_t lengths[] = { 0, 1, 19, SQUARES_BLOCK, SQUARES_BLOCK + 1, MOST };
	float x[MOST];

	for (int i = 0; i < MOST; i++)
		x[i] = (float)(i * 7919 % 1000) / 999 - 0.4f;
	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		double total = 0, s[SQUARES_LANES] = { 0 };

		for (size_t i = 0; i < lengths[k]; i++) {
			s[i % SQUARES_LANES] += (double)x[i] * (double)x[i];
			if ((i + 1) % SQUARES_BLOCK && i + 1 < lengths[k])
				continue;
			total += ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
			memset(s, 0, sizeof(s));
		}
		assert_true(squares_sum(x, lengths[k]) == total);
	}
}

TEST(floats_are_added)
{
	float x[19];

	for (int i = 0; i < 19; i++)
		x[i] = (float)i - 4.5f;
	stage_add(x, x, 19);
	assert_true(x[18] == 27);
}
