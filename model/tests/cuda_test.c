/* Tests the GPU's stage on an emulated GPU. The threads of a block run in turn from barrier to
 * barrier, and products are plain loops. All results must agree with those of the CPU's stage.
 * model/cuda/check/gpu.c checks a real GPU and measures its speed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tests/test.h"
#include "model/backend.h"
#include "model/cuda/stage_cuda.h"
#include "model/stage.h"
#include "model/trainer.h"
#include "model/tests/emulated_device.h"
#include "model/tests/repeat_check.h"

/* ---- one stage on both devices ---- */

struct pair {
	struct stage *cpu;
	const struct stage_layout *l;
	struct stage_layout on_gpu;
	void *gpu;
	size_t activation, rows;
	int32_t *tokens, *targets;
	float *in, *grad, *out[2], *grad_in[2];
};

static enum recompute level;    /* level of recomputation of both stages */
static double tolerance = 1e-5; /* relative error that is allowed */

static void pair_init(struct pair *p, const struct model_config *c, uint32_t index,
		      uint32_t batch, uint32_t sequence)
{
	struct stage_options o = {
		.slots = 2, .batch = batch, .sequence = sequence, .seed = 5, .recompute = level
	};
	struct error err = { "" };
	/* Large weights would enlarge the rounding errors of bf16. */
	double noise = tolerance > 1e-4 ? 0.02 : 0.1;
	struct rng r;
	float *w, *to;

	*p = (struct pair){ .rows = (size_t)batch * sequence };
	assert_int_equal(stage_new(&p->cpu, c, index, &o, &err), 0);
	p->l = stage_layout(p->cpu);
	p->on_gpu = *p->l;
	p->on_gpu.bf16 = tolerance > 1e-4;
	assert_int_equal(backend_cuda.make(&p->gpu, &p->on_gpu, &err), 0);
	rng_init(&r, 8);
	w = stage_weights(p->cpu);
	for (size_t i = 0; i < stage_parameters(p->cpu); i++)
		w[i] += (float)(noise * rng_normal(&r));
	to = backend_cuda.array(p->gpu, ARRAY_WEIGHTS);
	memcpy(to, w, stage_parameters(p->cpu) * sizeof(*w));
	backend_cuda.changed(p->gpu);
	p->activation = stage_activation(p->cpu);
	p->tokens = calloc(p->rows, sizeof(*p->tokens));
	p->targets = calloc(p->rows, sizeof(*p->targets));
	for (size_t i = 0; i < p->rows; i++) {
		p->tokens[i] = (int32_t)rng_below(&r, c->vocab);
		p->targets[i] = (int32_t)rng_below(&r, c->vocab);
	}
	p->targets[1] = -1;
	p->in = calloc(p->activation, sizeof(float));
	p->grad = calloc(p->activation, sizeof(float));
	for (size_t i = 0; i < p->activation; i++) {
		p->in[i] = (float)rng_normal(&r);
		p->grad[i] = (float)rng_normal(&r);
	}
	for (int i = 0; i < 2; i++) {
		p->out[i] = calloc(p->activation, sizeof(float));
		p->grad_in[i] = calloc(p->activation, sizeof(float));
	}
}

static void pair_fini(struct pair *p)
{
	backend_cuda.free(p->gpu);
	stage_free(p->cpu);
	free(p->tokens);
	free(p->targets);
	free(p->in);
	free(p->grad);
	for (int i = 0; i < 2; i++) {
		free(p->out[i]);
		free(p->grad_in[i]);
	}
}

static void same(const char *what, const float *gpu, const float *cpu, size_t n)
{
	double difference = 0, size = 0;

	for (size_t i = 0; i < n; i++) {
		double d = (double)gpu[i] - (double)cpu[i];

		difference += d * d;
		size += (double)cpu[i] * (double)cpu[i];
	}
	if (!(sqrt(difference) <= tolerance * sqrt(size)))
		fail_msg("%s: relative error %.3g", what, sqrt(difference / size));
}

static void same_array(struct pair *p, enum stage_array which, const float *cpu)
{
	const float *gpu = backend_cuda.array(p->gpu, which);

	for (size_t i = 0; i < p->l->n_tensors; i++)
		same(p->l->tensors[i].name, gpu + p->l->tensors[i].offset,
		     cpu + p->l->tensors[i].offset, p->l->tensors[i].count);
}

/* The passes of stage.h on the GPU's stage alone, with activations in fp32. */
static int gpu_forward(void *gpu, uint32_t slot, const int32_t *tokens, const float *in, float *out,
		       bool keep)
{
	struct stage_task t = { .kind = TASK_FORWARD,
				.slot = slot,
				.tokens = tokens,
				.in = in,
				.out = out,
				.keep = keep };

	return backend_cuda.run(gpu, &t);
}

static int gpu_loss(void *gpu, const float *in, const int32_t *targets, float *loss, float *grad,
		    bool count)
{
	struct stage_task t = {
		.kind = TASK_LOSS, .tokens = targets, .in = in, .out = grad, .count = count
	};
	int rc = backend_cuda.run(gpu, &t);

	if (!rc)
		*loss = t.loss;
	return rc;
}

static int gpu_backward(void *gpu, uint32_t slot, const float *grad_out, float *grad_in, bool count)
{
	struct stage_task t = {
		.kind = TASK_BACKWARD, .slot = slot, .in = grad_out, .out = grad_in, .count = count
	};

	return backend_cuda.run(gpu, &t);
}

static void forward_and_backward(struct pair *p, bool count)
{
	bool first = p->l->index == 0;
	const int32_t *tokens = first ? p->tokens : NULL;
	const float *in = first ? NULL : p->in;
	float *up[2] = { first ? NULL : p->grad_in[0], first ? NULL : p->grad_in[1] };

	for (int keep = 0; keep < 2; keep++) {
		assert_int_equal(stage_forward(p->cpu, 1, tokens, in, p->out[0], keep), 0);
		assert_int_equal(gpu_forward(p->gpu, 1, tokens, in, p->out[1], keep), 0);
		same("forward", p->out[1], p->out[0], p->activation);
	}
	assert_int_equal(stage_backward(p->cpu, 1, p->grad, up[0], count), 0);
	assert_int_equal(gpu_backward(p->gpu, 1, p->grad, up[1], count), 0);
	if (!first)
		same("gradient of the input", up[1], up[0], p->activation);
}

static void check(const struct model_config *c, uint32_t index, uint32_t batch,
		  uint32_t sequence)
{
	struct adamw h = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f };
	int times = batch * sequence < 16 ? 3 : 1;
	double squares[2];
	struct pair p;
	float *g;

	pair_init(&p, c, index, batch, sequence);
	/* Each pass is first run directly, then recorded and replayed, then only replayed. */
	replays = 0;
	for (int i = 0; i < times; i++)
		forward_and_backward(&p, true);
	assert_int_equal(replays, cannot_record || refused || times == 1 ? 0 : 3 * 2);
	if (index == 0) {
		float loss[2];

		replays = 0;
		for (int i = 0; i < 2 * times; i++) {
			int train = i % 2;

			/* The loss is divided by the number of targets. A replay must use its own
			 * number, not that of the recorded pass. */
			p.targets[i] = -1;
			assert_int_equal(stage_loss(p.cpu, 0, p.in, p.targets, &loss[0],
						    train ? p.grad_in[0] : NULL, true),
					 0);
			assert_int_equal(gpu_loss(p.gpu, p.in, p.targets, &loss[1],
						  train ? p.grad_in[1] : NULL, true),
					 0);
			assert_true(fabs((double)(loss[0] - loss[1])) <=
				    0.2 * tolerance * (double)loss[0]);
		}
		assert_int_equal(replays, cannot_record || refused || times == 1 ? 0 : 2 * 2);
		same("gradient of the loss", p.grad_in[1], p.grad_in[0], p.activation);
	}
	same_array(&p, ARRAY_GRADIENT, stage_gradient(p.cpu));
	forward_and_backward(&p, false);
	same_array(&p, ARRAY_GRADIENT, stage_gradient(p.cpu));
	assert_int_equal(stage_gradient_squares(p.cpu, &squares[0]), 0);
	assert_int_equal(backend_cuda.squares(p.gpu, &squares[1]), 0);
	assert_true(fabs(squares[0] - squares[1]) <= tolerance * squares[0]);
	assert_true(squares[1] == squares_sum(backend_cuda.array(p.gpu, ARRAY_GRADIENT),
					      p.l->parameters));
	g = stage_gradient(p.cpu);
	for (uint64_t t = 1; t < 3; t++) {
		assert_int_equal(stage_step(p.cpu, NULL, 0.5f, &h, t), 0);
		assert_int_equal(backend_cuda.step(p.gpu, t == 1 ? g : NULL, 0.5f, &h, t), 0);
	}
	/* In bf16 the weights are not compared. Where a gradient is only rounding noise, its sign
	 * may differ, and AdamW then steps in another direction. */
	if (!p.on_gpu.bf16)
		same_array(&p, ARRAY_WEIGHTS, stage_weights(p.cpu));
	same_array(&p, ARRAY_MOMENT1, stage_moment1(p.cpu));
	same_array(&p, ARRAY_MOMENT2, stage_moment2(p.cpu));
	backend_cuda.zero_gradient(p.gpu);
	assert_true(backend_cuda.array(p.gpu, ARRAY_GRADIENT)[3] == 0);
	pair_fini(&p);
}

static const struct model_config config = { .vocab = 41,
					    .dim = 24,
					    .n_layers = 4,
					    .n_heads = 4,
					    .n_kv_heads = 2,
					    .ffn_dim = 20,
					    .context = 80,
					    .n_stages = 2,
					    .rope_theta = 10000,
					    .norm_eps = 1e-5f,
					    .init_std = 0.1f };

/* Replicas on a CPU and on a GPU that step with the same sum keep the same bits. */
TEST(steps_agree_by_bits)
{
	struct adamw h = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f };
	struct model_config c = config;
	struct pair p;
	struct rng r;
	float *sum;

	c.dim = 64; /* heads of 16 numbers */
	for (int bf16 = 0; bf16 < 2; bf16++) {
		size_t size;

		tolerance = bf16 ? 3e-2 : 1e-5;
		pair_init(&p, &c, 0, 1, 5);
		size = stage_parameters(p.cpu) * sizeof(*sum);
		sum = malloc(size);
		rng_init(&r, 4);
		for (uint64_t t = 1; t < 4; t++) {
			for (size_t i = 0; i < stage_parameters(p.cpu); i++)
				sum[i] = (float)rng_normal(&r);
			assert_int_equal(stage_step(p.cpu, sum, 0.03f, &h, t), 0);
			assert_int_equal(backend_cuda.step(p.gpu, sum, 0.03f, &h, t), 0);
			assert_memory_equal(backend_cuda.array(p.gpu, ARRAY_WEIGHTS),
					    stage_weights(p.cpu), size);
			assert_memory_equal(backend_cuda.array(p.gpu, ARRAY_MOMENT1),
					    stage_moment1(p.cpu), size);
			assert_memory_equal(backend_cuda.array(p.gpu, ARRAY_MOMENT2),
					    stage_moment2(p.cpu), size);
		}
		free(sum);
		pair_fini(&p);
	}
	tolerance = 1e-5;
}

TEST(stages_agree)
{
	check(&config, 0, 2, 7);
	check(&config, 1, 2, 7);
}

TEST(stages_agree_with_scaled_positions)
{
	struct model_config c = config;

	c.rope_factor = 8;
	check(&c, 1, 1, 7);
	c.rope_low_freq_factor = 0.1f;
	c.rope_high_freq_factor = 4;
	c.rope_original_context = 40;
	check(&c, 1, 1, 7);
}

TEST(stages_agree_at_other_levels_of_recomputation)
{
	for (level = RECOMPUTE_NONE; level <= RECOMPUTE_BLOCK; level++)
		check(&config, 1, 2, 7);
	level = RECOMPUTE_NORMS;
}

/* With RECOMPUTE_BLOCK a backward pass runs the kernels of norms only once more. It does not run
 * the activation's kernel, because the kernel of the activation's gradient also writes the
 * activation. */
TEST(a_block_is_computed_again_once)
{
	struct pair p;

	level = RECOMPUTE_BLOCK;
	pair_init(&p, &config, 1, 1, 5);
	assert_int_equal(gpu_forward(p.gpu, 1, NULL, p.in, p.out[1], true), 0);
	memset(launches, 0, sizeof(launches));
	assert_int_equal(gpu_backward(p.gpu, 1, p.grad, p.grad_in[1], true), 0);
	assert_int_equal(launches[KERNEL_NORM], 2 * p.l->n_layers);
	assert_int_equal(launches[KERNEL_SWIGLU], 0);
	assert_int_equal(launches[KERNEL_SWIGLU_BACKWARD], p.l->n_layers);
	pair_fini(&p);
	level = RECOMPUTE_NORMS;
}

TEST(stages_agree_over_tiles)
{
	struct model_config c = config;

	c.n_layers = 2;
	c.n_kv_heads = 1;
	check(&c, 1, 1, 71);
	c.n_kv_heads = 4;
	check(&c, 1, 2, 33);
}

TEST(stages_agree_at_full_head_size)
{
	struct model_config c = config;

	c.n_layers = 2;
	c.dim = 256;
	c.n_heads = c.n_kv_heads = 2;
	/* In such a wide model the scores are large, and their gradients are small differences of
	 * large numbers. */
	tolerance = 5e-5;
	check(&c, 1, 1, 34);
	tolerance = 1e-5;
}

TEST(stages_agree_when_nothing_can_be_recorded)
{
	cannot_record = true;
	check(&config, 1, 1, 5);
	cannot_record = false;
}

/* A recording that lacks its products would replay the numbers of the pass before. If products are
 * refused during the recording, each pass therefore runs without a recording, and the refusal is no
 * failure. */
TEST(stages_agree_when_recorded_products_are_refused)
{
	refused = RECORDED_PRODUCTS;
	check(&config, 1, 1, 5);
	refused = NO_PRODUCT;
}

/* Products are refused while the pass is recorded and afterwards. The pass fails, and the failure
 * names the product. */
TEST(a_refusal_that_lasts_is_a_failure)
{
	struct pair p;

	pair_init(&p, &config, 1, 1, 5);
	assert_int_equal(gpu_forward(p.gpu, 1, NULL, p.in, p.out[1], true), 0);
	refused = EVERY_PRODUCT;
	p.out[1][0] = 7;
	assert_int_equal(gpu_forward(p.gpu, 1, NULL, p.in, p.out[1], true), -5);
	refused = NO_PRODUCT;
	assert_true(p.out[1][0] == 7);
	assert_string_equal(backend_cuda.failure(p.gpu), "product: refused");
	assert_int_equal(gpu_forward(p.gpu, 1, NULL, p.in, p.out[1], true), -5);
	pair_fini(&p);
}

/* A fault that only occurs now and then is found by repeating the pass. */
TEST(repeated_passes_have_the_same_bits)
{
	struct stage_options o = { .batch = 1, .sequence = 5, .device = "cuda" };
	unsigned differing = 9;
	struct error err;

	assert_int_equal(repeat_check(&config, &o, 4, &differing, &err), 0);
	assert_int_equal(differing, 0);
	flaky_products = 30; /* wrong: product 30, in the third run of 14 products */
	assert_int_equal(repeat_check(&config, &o, 4, &differing, &err), 0);
	flaky_products = 0;
	assert_int_equal(differing, 1);
}

/* bf16 has 8 bits, so factors have relative errors of up to 1/256. The errors of a layer's results
 * are a few times as large. */
TEST(stages_agree_in_bf16)
{
	struct model_config c = config;

	tolerance = 3e-2;
	c.n_layers = 2;
	c.dim = 64;
	c.ffn_dim = 48;
	c.init_std = 0.02f;
	check(&c, 0, 2, 7);
	level = RECOMPUTE_BLOCK;
	check(&c, 1, 1, 70);
	level = RECOMPUTE_NONE;
	c.dim = 256;
	c.n_heads = c.n_kv_heads = 2;
	check(&c, 1, 1, 66);
	level = RECOMPUTE_NORMS;
	tolerance = 1e-5;
}

/* The results of one microbatch in a stage. */
struct results {
	size_t activation, parameters;
	float *out, *grad_in, *gradient, *loss_grad, loss;
};

static struct results results_of(const struct model_config *c, uint32_t index, uint32_t sequence)
{
	struct results r;
	struct pair p;

	tolerance = 3e-2;
	pair_init(&p, c, index, 2, sequence);
	r = (struct results){ .activation = p.activation, .parameters = stage_parameters(p.cpu) };
	forward_and_backward(&p, true);
	if (index == 0)
		assert_int_equal(gpu_loss(p.gpu, p.in, p.targets, &r.loss, p.grad_in[0], true), 0);
	r.gradient = malloc(r.parameters * sizeof(float));
	memcpy(r.gradient, backend_cuda.array(p.gpu, ARRAY_GRADIENT), r.parameters * sizeof(float));
	r.out = p.out[1];
	r.grad_in = p.grad_in[1];
	r.loss_grad = p.grad_in[0];
	p.out[1] = p.grad_in[1] = p.grad_in[0] = NULL;
	pair_fini(&p);
	tolerance = 1e-5;
	return r;
}

static void free_results(struct results *r)
{
	free(r->out);
	free(r->grad_in);
	free(r->gradient);
	free(r->loss_grad);
}

/* Compares the bits of two results, and frees both. */
static void same_bits(struct results a, struct results b)
{
	assert_memory_equal(a.out, b.out, a.activation * sizeof(float));
	assert_memory_equal(a.grad_in, b.grad_in, a.activation * sizeof(float));
	assert_memory_equal(a.gradient, b.gradient, a.parameters * sizeof(float));
	assert_memory_equal(a.loss_grad, b.loss_grad, a.activation * sizeof(float));
	assert_true(a.loss == b.loss);
	free_results(&a);
	free_results(&b);
}

static struct model_config bf16_config(void)
{
	struct model_config c = config;

	c.n_layers = 2;
	c.dim = 64;
	c.ffn_dim = 48;
	c.init_std = 0.02f;
	return c;
}

/* The order of attention's blocks changes no bit. */
TEST(groups_of_heads_have_the_same_bits)
{
	struct model_config c = bf16_config();
	struct results r[2];

	/* First, one head of 70 rows fits into a quarter of the cache, then all heads do. */
	for (int i = 0; i < 2; i++) {
		cache_bytes = i ? 50 << 20 : 32 << 10;
		r[i] = results_of(&c, 1, 70);
	}
	same_bits(r[0], r[1]);
	cache_bytes = 80 << 10;
}

/* With bf16 logits a loss differs by less than a thousandth, and its bits are the same each time.
 * The device's text names this option, because all replicas of a stage must use it alike. */
TEST(logits_may_be_rounded)
{
	struct model_config c = bf16_config();
	struct stage_device device;
	struct results r[3];
	struct error err;

	for (int i = 0; i < 3; i++) {
		if (i > 0)
			setenv("SKIPPIPE_GPU_TRY", "logits", 1);
		r[i] = results_of(&c, 0, 7);
	}
	assert_true(r[0].loss != r[1].loss);
	assert_true(fabs((double)(r[0].loss - r[1].loss)) < 1e-3 * (double)r[0].loss);
	tolerance = 1e-2;
	same("gradient of the loss", r[1].loss_grad, r[0].loss_grad, r[0].activation);
	same("gradient", r[1].gradient, r[0].gradient, r[0].parameters);
	tolerance = 1e-5;
	free_results(&r[0]);
	same_bits(r[1], r[2]);
	assert_int_equal(stage_device(&device, "cuda:bf16", &err), 0);
	assert_non_null(strstr(device.text, " logits"));
	setenv("SKIPPIPE_GPU_TRY", "logits,nothing", 1);
	assert_int_equal(stage_device(&device, "cuda:bf16", &err), -EINVAL);
	assert_non_null(strstr(err.text, "expected logits or attention, got \"nothing\""));
	unsetenv("SKIPPIPE_GPU_TRY");
	assert_int_equal(stage_device(&device, "cuda:bf16", &err), 0);
	assert_null(strstr(device.text, "logits"));
}

/* cuDNN's attention and the program's kernels agree within the precision of bf16. cuDNN's results
 * have the same bits each time, even if a pass is replayed from a recording. */
TEST(cudnn_may_compute_attention)
{
	struct model_config c = bf16_config();
	struct stage_device device;
	struct results r[3];
	struct error err;

	for (int i = 0; i < 3; i++) {
		if (i > 0)
			setenv("SKIPPIPE_GPU_TRY", "attention", 1);
		fake.executions = 0;
		r[i] = results_of(&c, 0, 7);
		assert_int_equal(fake.executions > 0, i > 0);
	}
	tolerance = 2e-2;
	same("gradient of the loss", r[1].loss_grad, r[0].loss_grad, r[0].activation);
	same("gradient", r[1].gradient, r[0].gradient, r[0].parameters);
	tolerance = 1e-5;
	free_results(&r[0]);
	same_bits(r[1], r[2]);
	assert_int_equal(stage_device(&device, "cuda:bf16", &err), 0);
	assert_non_null(strstr(device.text, " cuDNN 92800"));
	unsetenv("SKIPPIPE_GPU_TRY");
}

/* If cuDNN is chosen but missing, or has no deterministic code for a shape, the test expects an
 * error. Other code would have other bits than the device's text promises. */
TEST(a_chosen_cudnn_is_not_replaced)
{
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 4, .device = "cuda:bf16" };
	struct model_config c = bf16_config();
	struct stage_device device;
	struct stage *s = NULL;
	struct error err;

	setenv("SKIPPIPE_GPU_TRY", "attention", 1);
	cudnn_is_missing = true;
	assert_int_equal(stage_device(&device, "cuda:bf16", &err), -ENODEV);
	assert_non_null(strstr(err.text, "SKIPPIPE_GPU_TRY=attention: cuDNN cannot be loaded"));
	cudnn_is_missing = false;
	fake.version = 90100;
	assert_int_equal(stage_device(&device, "cuda:bf16", &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "SKIPPIPE_GPU_TRY=attention: cuDNN is version 9.1.0"));
	fake.version = 92800;
	fake.deterministic = fake.proposals;
	assert_int_equal(stage_new(&s, &c, 1, &o, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "SKIPPIPE_GPU_TRY=attention: cuDNN proposes"));
	fake.deterministic = 0;
	unsetenv("SKIPPIPE_GPU_TRY");
}

/* In a backward pass, the kernels of norms also write the rounded gradient and the norms' outputs,
 * and attention's kernels rotate the gradients. Separate kernels would read the arrays once
 * more. */
TEST(a_backward_pass_has_few_kernels)
{
	struct model_config c = bf16_config();
	struct pair p;

	c.dim = 128;
	c.n_heads = c.n_kv_heads = 2;
	tolerance = 3e-2;
	pair_init(&p, &c, 1, 1, 5);
	assert_int_equal(gpu_forward(p.gpu, 1, NULL, p.in, p.out[1], true), 0);
	memset(launches, 0, sizeof(launches));
	assert_int_equal(gpu_backward(p.gpu, 1, p.grad, p.grad_in[1], true), 0);
	assert_int_equal(launches[KERNEL_NORM], 0);
	assert_int_equal(launches[KERNEL_CAST], 1); /* rounds the caller's gradient */
	assert_int_equal(launches[KERNEL_ROTATE], 0);
	assert_int_equal(launches[KERNEL_NORM_SUM], 2 * p.l->n_layers);
	pair_fini(&p);
	tolerance = 1e-5;
}

/* Rows of logits are padded, so that tensor cores also work with a vocabulary such as 50,257. */
TEST(rows_of_logits_are_aligned)
{
	struct model_config c = config;

	tolerance = 3e-2;
	c.n_layers = 2;
	c.dim = 64;
	c.ffn_dim = 48;
	c.init_std = 0.02f;
	assert_true(c.vocab % 8);
	whole_rows = true;
	check(&c, 0, 2, 7);
	whole_rows = false;
	tolerance = 1e-5;
}

TEST(stages_agree_when_tied)
{
	struct model_config c = config;

	c.tied = true;
	check(&c, 0, 1, 9);
}

/* The loss is computed in chunks of rows, the last of which is shorter. The activations are in
 * device memory. */
TEST(losses_agree_in_pieces)
{
	struct error err;
	struct pair p;
	float *room[2], loss[2];
	size_t size;

	pair_init(&p, &config, 0, 2, 5);
	((struct cuda_stage *)p.gpu)->chunk = 4;
	for (int i = 0; i < 2; i++)
		room[i] = backend_cuda.room(p.gpu, &err);
	size = p.activation * sizeof(float);
	assert_int_equal(stage_loss(p.cpu, 0, p.in, p.targets, &loss[0], p.grad_in[0], true),
			 0);
	memcpy(room[0], p.in, size);
	assert_int_equal(gpu_loss(p.gpu, room[0], p.targets, &loss[1], room[1], true), 0);
	assert_true(fabs((double)(loss[0] - loss[1])) <= tolerance * (double)loss[0]);
	same("gradient of the loss", room[1], p.grad_in[0], p.activation);
	same_array(&p, ARRAY_GRADIENT, stage_gradient(p.cpu));
	pair_fini(&p);
}

/* The host sorts the rows by token while the device computes. Of all work, only the copy of the
 * sorted rows is queued after the pass's launch. */
TEST(rows_are_sorted_beside_the_pass)
{
	struct pair p;

	pair_init(&p, &config, 0, 1, 5);
	for (int i = 0; i < 3; i++)
		gpu_forward(p.gpu, 1, p.tokens, NULL, p.out[1], true);
	assert_int_equal(puts_after_replay, 1);
	pair_fini(&p);
}

/* ---- encoded activations ---- */

/* Runs a task with encoded bytes, and again with the floats that these bytes encode. The outputs
 * must have the same bytes. Only the encoded bytes and `others` further bytes may cross the bus. */
static void check_encoded(struct pair *p, struct stage_task t, const float *in, size_t others)
{
	size_t n = p->activation, n_in = in ? codec_bytes(&t.in_codec, n) : 0;
	size_t n_out = codec_bytes(&t.out_codec, n);
	unsigned char *bytes = malloc(n_in + 1), *want = malloc(n_out), *got = malloc(n_out);
	float *x = calloc(n, sizeof(*x)), *y = calloc(n, sizeof(*y));
	struct stage_task plain = t;

	if (in) {
		codec_encode(&t.in_codec, bytes, in, n);
		codec_decode(&t.in_codec, x, bytes, n);
	}
	plain.in_codec = plain.out_codec = (struct codec){ .format = FORMAT_FP32 };
	plain.in = in ? x : NULL;
	plain.out = y;
	assert_int_equal(backend_cuda.run(p->gpu, &plain), 0);
	codec_encode(&t.out_codec, want, y, n);
	t.in = in ? bytes : NULL;
	t.out = got;
	bytes_put = bytes_got = 0;
	assert_int_equal(backend_cuda.run(p->gpu, &t), 0);
	assert_memory_equal(got, want, n_out);
	assert_int_equal(bytes_put + bytes_got, n_in + n_out + others);
	assert_true(t.loss == plain.loss || (isnan(t.loss) && isnan(plain.loss)));
	free(bytes);
	free(want);
	free(got);
	free(x);
	free(y);
}

/* Runs the tasks of a stage in each format. The input may contain numbers that are not finite or
 * are too large. */
static void check_formats(struct pair *p)
{
	static const enum tensor_format formats[] = { FORMAT_FP32, FORMAT_BF16, FORMAT_Q8,
						      FORMAT_Q6 };
	bool first = p->l->index == 0;
	size_t numbers = p->rows * sizeof(int32_t);

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct codec ahead = codec_of_activation(formats[i], p->l->config.dim);
		struct codec back = codec_of_gradient(formats[i]);
		struct stage_task f = { .kind = TASK_FORWARD,
					.slot = 1,
					.keep = true,
					.tokens = first ? p->tokens : NULL,
					.in_codec = ahead,
					.out_codec = ahead };
		struct stage_task l = { .kind = TASK_LOSS,
					.tokens = p->targets,
					.in_codec = ahead,
					.out_codec = back };
		struct stage_task b = {
			.kind = TASK_BACKWARD, .slot = 1, .in_codec = back, .out_codec = back
		};

		check_encoded(p, f, first ? NULL : p->in, first ? 2 * numbers : 0);
		if (first)
			/* `others` are the targets, the losses and the factor of the gradient. */
			check_encoded(p, l, p->in, 2 * numbers + sizeof(float));
		else
			check_encoded(p, b, p->grad, 0);
	}
}

TEST(encoded_activations_give_the_same_bits)
{
	static const float strange[] = { INFINITY, NAN, -1e38f, 1e-42f };

	for (uint32_t index = 0; index < 2; index++) {
		struct pair p;

		pair_init(&p, &config, index, 1, 5);
		assert_int_not_equal(p.activation % FORMAT_ACTIVATION_GROUP, 0);
		check_formats(&p);
		for (size_t i = 0; i < 4; i++) {
			p.in[3 + 17 * i] = p.grad[2 + 19 * i] = strange[i];
			check_formats(&p);
		}
		pair_fini(&p);
	}
}

/* ---- copies while the device computes ---- */

enum { TASKS = 6, GUESSED_WRONG = 2, DROPPED = 3 };

/* The inputs of some forward passes in q6, and their outputs. want: outputs without concurrent
 * copies. got: outputs with concurrent copies. */
struct queued_passes {
	struct pair p;
	struct codec codec;
	size_t bytes;
	unsigned char *in[TASKS], *want[TASKS], *got[TASKS];
};

static struct stage_task pass_of(const struct queued_passes *x, size_t i)
{
	return (struct stage_task){ .kind = TASK_FORWARD,
				    .slot = i % 2,
				    .keep = true,
				    .in = x->in[i],
				    .in_codec = x->codec,
				    .out_codec = x->codec };
}

static void passes_init(struct queued_passes *x)
{
	pair_init(&x->p, &config, 1, 1, 5);
	x->codec = codec_of_activation(FORMAT_Q6, config.dim);
	x->bytes = codec_bytes(&x->codec, x->p.activation);
	for (size_t i = 0; i < TASKS; i++) {
		struct stage_task t;

		x->in[i] = malloc(x->bytes);
		x->want[i] = malloc(x->bytes);
		x->got[i] = calloc(x->bytes, 1);
		x->p.in[i] += 3;
		codec_encode(&x->codec, x->in[i], x->p.in, x->p.activation);
		t = pass_of(x, i);
		t.out = x->want[i];
		assert_int_equal(backend_cuda.run(x->p.gpu, &t), 0);
	}
}

static void passes_fini(struct queued_passes *x)
{
	for (size_t i = 0; i < TASKS; i++) {
		free(x->in[i]);
		free(x->want[i]);
		free(x->got[i]);
	}
	pair_fini(&x->p);
}

/* Runs the passes, with copies while they compute. Each pass names the input of the next pass,
 * but one pass names a wrong input. Each output is collected after the next pass has run; one
 * output is dropped. Returns the number of outputs with wrong bytes. */
static unsigned run_beside(struct queued_passes *x)
{
	struct stage_output *last = NULL;
	unsigned wrong = 0;
	struct error err;

	for (size_t i = 0; i <= TASKS; i++) {
		struct stage_task t = { .output = NULL };

		if (i < TASKS) {
			size_t next = i == GUESSED_WRONG ? 0 : (i + 1) % TASKS;

			t = pass_of(x, i);
			t.in_number = 100 + i;
			t.next = x->in[next];
			t.next_number = i == GUESSED_WRONG ? 99 : 101 + i;
			t.next_codec = x->codec;
			t.leaves = true;
			assert_int_equal(backend_cuda.run(x->p.gpu, &t), 0);
		}
		if (i > 0 && i - 1 == DROPPED) {
			stage_output_drop(last);
		} else if (i > 0) {
			assert_int_equal(stage_output_collect(last, x->got[i - 1], &err), 0);
			wrong += memcmp(x->got[i - 1], x->want[i - 1], x->bytes) != 0;
		}
		last = t.output;
	}
	return wrong;
}

/* The outputs have the same bits, however early or late the streams do their copies. A pass's input
 * arrives while the previous pass computes, and its output leaves while the next pass computes. */
TEST(copies_run_beside_passes)
{
	struct queued_passes x;

	passes_init(&x);
	for (int early = 0; early < 2; early++) {
		copies_run_early = early;
		puts_beside = computed_before_get = 0;
		bytes_put = 0;
		assert_int_equal(run_beside(&x), 0);
		assert_true(early ? puts_beside >= TASKS - 2 : computed_before_get > 0);
		/* Two inputs were copied in vain: the wrong input, and the input that the last
		 * pass named. */
		assert_int_equal(bytes_put, (TASKS + 2) * x.bytes);
	}
	copies_run_early = false;
	passes_fini(&x);
}

/* Runs the passes as if the program lacked one call of device_order or device_await, with early
 * and with late copies. Returns the number of outputs with wrong bytes. */
static unsigned run_without(struct queued_passes *x, unsigned *omitted, unsigned which)
{
	unsigned wrong = 0;

	for (int early = 0; early < 2; early++) {
		copies_run_early = early;
		*omitted = which;
		wrong += run_beside(x);
		assert_int_equal(*omitted, 0);
	}
	copies_run_early = false;
	return wrong;
}

/* The program needs every call of device_order and device_await: if one call is missing, an
 * output has wrong bytes. */
TEST(each_wait_between_streams_is_needed)
{
	struct queued_passes x;

	passes_init(&x);
	for (unsigned i = 1; i <= 2; i++)
		assert_int_not_equal(run_without(&x, &orders_to_omit, i), 0);
	assert_int_not_equal(run_without(&x, &awaits_to_omit, 1), 0);
	assert_int_equal(run_beside(&x), 0);
	passes_fini(&x);
}

/* An output that is not collected in time keeps its bytes if the stage needs the output's buffer,
 * and also after the stage was freed. */
TEST(outputs_outlive_their_buffers)
{
	struct stage_output *left[TASKS];
	struct error err = { "" };
	struct queued_passes x;

	passes_init(&x);
	for (size_t i = 0; i < TASKS; i++) {
		struct stage_task t = pass_of(&x, i);

		t.leaves = true;
		assert_int_equal(backend_cuda.run(x.p.gpu, &t), 0);
		left[i] = t.output;
	}
	backend_cuda.free(x.p.gpu);
	for (size_t i = 1; i < TASKS; i++) {
		assert_int_equal(stage_output_collect(left[i], x.got[i], &err), 0);
		assert_memory_equal(x.got[i], x.want[i], x.bytes);
	}
	stage_output_drop(left[0]);
	assert_int_equal(backend_cuda.make(&x.p.gpu, &x.p.on_gpu, &err), 0);
	passes_fini(&x);
}

TEST(an_output_of_a_failed_device_is_refused)
{
	struct error err = { "" };
	struct stage_task t;
	struct queued_passes x;

	passes_init(&x);
	t = pass_of(&x, 0);
	t.leaves = true;
	assert_int_equal(backend_cuda.run(x.p.gpu, &t), 0);
	fail_at_await = true;
	assert_int_equal(stage_output_collect(t.output, x.got[0], &err), -EIO);
	assert_non_null(strstr(err.text, "injected"));
	t = pass_of(&x, 0);
	t.out = x.got[0];
	assert_int_equal(backend_cuda.run(x.p.gpu, &t), -EIO);
	assert_non_null(strstr(backend_cuda.failure(x.p.gpu), "injected"));
	fail_at_await = false;
	passes_fini(&x);
}

/* A microbatch's pass waits for the device once. No copy makes it wait earlier, not even a copy
 * from the caller's own memory. */
TEST(a_pass_waits_once)
{
	float loss, *up = NULL;
	struct pair p;

	for (uint32_t index = 0; index < 2; index++) {
		const int32_t *tokens;
		const float *in;

		pair_init(&p, &config, index, 1, 5);
		tokens = index ? NULL : p.tokens;
		in = index ? p.in : NULL;
		up = index ? p.grad_in[1] : NULL;
		for (int i = 0; i < 3; i++) {
			waits = pageable = 0;
			gpu_forward(p.gpu, 1, tokens, in, p.out[1], true);
			assert_int_equal(waits, 1);
			gpu_backward(p.gpu, 1, p.grad, up, true);
			assert_int_equal(waits, 2);
			if (index == 0)
				gpu_loss(p.gpu, p.in, p.targets, &loss, p.grad_in[1], true);
			assert_int_equal(waits, index ? 2 : 3);
			assert_int_equal(pageable, 0);
		}
		pair_fini(&p);
	}
}

/* Copies a state from a CPU's stage to a GPU's, and from there to another GPU's, whole or in
 * pieces. */
TEST(states_and_their_hashes_agree)
{
	struct model_config several = config;
	struct pair p, q;
	const float *from[3];
	size_t n;
	uint64_t hash;

	several.vocab = 3001;
	pair_init(&p, &several, 0, 1, 5);
	pair_init(&q, &several, 0, 1, 5);
	n = stage_parameters(p.cpu);
	/* Several blocks of threads, of which the last is not full; the last leaf is shorter. */
	assert_true(n * sizeof(float) > 2 * LEAF_THREADS * HASH_LEAF && n % 16);
	hash = hash_floats(stage_weights(p.cpu), n);
	assert_true(stage_hash(p.cpu) == hash && backend_cuda.hash(p.gpu) == hash);
	for (size_t i = 0; i < n; i += n - 1) {
		stage_weights(p.cpu)[i] += 1;
		assert_true(stage_hash(p.cpu) != hash);
		stage_weights(p.cpu)[i] -= 1;
	}
	for (size_t i = 0; i < n; i++)
		stage_weights(p.cpu)[i] = (float)i;
	from[0] = stage_weights(p.cpu);
	from[1] = stage_moment1(p.cpu);
	from[2] = stage_moment2(p.cpu);
	for (size_t at = 0, part; at < n; at += part) {
		const float *piece[3] = { from[0] + at, from[1] + at, from[2] + at };

		part = n - at < 1000 ? n - at : 1000;
		backend_cuda.put_state(p.gpu, at, part, piece);
	}
	assert_true(backend_cuda.hash(p.gpu) == hash_floats(from[0], n));
	from[0] = backend_cuda.own(p.gpu, ARRAY_WEIGHTS);
	from[1] = backend_cuda.own(p.gpu, ARRAY_MOMENT1);
	from[2] = backend_cuda.own(p.gpu, ARRAY_MOMENT2);
	pageable = 0;
	backend_cuda.put_state(q.gpu, 0, n, from);
	assert_int_equal(pageable, 0);
	assert_true(backend_cuda.hash(q.gpu) == stage_hash(p.cpu));
	stage_copy_state(q.cpu, p.cpu);
	assert_true(stage_hash(q.cpu) == stage_hash(p.cpu));
	pair_fini(&p);
	pair_fini(&q);
}

/* A standby copy arrives in pieces. Each piece rounds only its own weights to bf16. A group of
 * eight numbers at the border of two pieces is rounded with both pieces. */
TEST(a_piece_of_a_state_rounds_its_own_weights)
{
	struct model_config c = config;
	struct cuda_stage *s;
	struct pair p;
	size_t n, pieces = 0;

	c.dim = 64; /* heads of 16 numbers */
	tolerance = 3e-2;
	pair_init(&p, &c, 1, 1, 5);
	s = p.gpu;
	n = stage_parameters(p.cpu);
	launched_blocks[KERNEL_CAST] = 0;
	for (size_t i = 0; i < n; i++)
		stage_weights(p.cpu)[i] = (float)i / 7;
	for (size_t at = 0, part; at < n; at += part, pieces++) {
		const float *piece[3] = { stage_weights(p.cpu) + at };

		part = n - at < 1001 ? n - at : 1001;
		backend_cuda.put_state(p.gpu, at, part, piece);
	}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(s->rounded[i], to_bf16(stage_weights(p.cpu)[i]));
	/* A block rounds eight numbers for each of its threads. */
	assert_true(launched_blocks[KERNEL_CAST] <= pieces * (1001 / (8 * ROW_THREADS) + 2));
	pair_fini(&p);
	tolerance = 1e-5;
}

/* States that are read or replaced, and the sum for a step, pass through two small buffers of
 * pinned memory. No pinned memory is allocated for whole arrays. */
TEST(states_pass_through_small_pieces)
{
	struct adamw h = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f };
	float *g, *whole[3], *again[3];
	struct cuda_stage *s;
	struct pair p;
	size_t n;

	pair_init(&p, &config, 0, 1, 5);
	s = p.gpu;
	for (int i = 0; i < ARRAY_COUNT; i++)
		s->host[i] = NULL; /* drops the copies that pair_init requested */
	n = stage_parameters(p.cpu);
	s->pieces.size = n / 3 + 1; /* the last piece is shorter */
	g = calloc(n, sizeof(*g));
	for (size_t i = 0; i < n; i++)
		g[i] = (float)(i % 13) - 6;
	assert_int_equal(stage_step(p.cpu, g, 0.03f, &h, 1), 0);
	pageable = 0;
	assert_int_equal(backend_cuda.step(p.gpu, g, 0.03f, &h, 1), 0);
	for (int k = 0; k < 3; k++) {
		whole[k] = calloc(n, sizeof(float));
		again[k] = calloc(n, sizeof(float));
	}
	stage_get_state(p.cpu, 0, n, whole);
	backend_cuda.get_state(p.gpu, 0, 5, again);
	for (int k = 0; k < 3; k++)
		again[k] += 5;
	backend_cuda.get_state(p.gpu, 5, n - 5, again);
	for (int k = 0; k < 3; k++) {
		again[k] -= 5;
		assert_memory_equal(again[k], whole[k], n * sizeof(float));
		for (size_t i = 0; i < n; i++)
			whole[k][i] = (float)i + (float)k;
	}
	backend_cuda.put_state(p.gpu, 0, n, (const float *const *)whole);
	assert_true(backend_cuda.hash(p.gpu) == hash_floats(whole[0], n));
	assert_int_equal(pageable, 0);
	for (int i = 0; i < ARRAY_COUNT; i++)
		assert_null(s->host[i]);
	for (int k = 0; k < 3; k++) {
		free(whole[k]);
		free(again[k]);
	}
	free(g);
	pair_fini(&p);
}

/* A standby copy keeps the bits of the stage that it copies. It has no memory except for weights,
 * moments and the sum: none for bf16 weights, or for products. */
TEST(a_copy_only_steps)
{
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 1, .device = "cuda:bf16",
				   .only_steps = true, .sums = true,
				   .without_weights = true };
	struct adamw h = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f };
	struct model_config c = config;
	struct stage *copy, *cpu;
	float *g, x[64];
	struct error err;
	size_t n;

	c.vocab = 20001;
	c.dim = 64;
	assert_int_equal(stage_new(&cpu, &c, 0, &(struct stage_options){ .batch = 1, .sequence = 1,
									 .seed = 5 }, &err), 0);
	n = stage_parameters(cpu);
	assert_true(n > 1 << 20); /* so gradients come in several pieces */
	launched_blocks[KERNEL_CAST] = 0;
	assert_int_equal(stage_new(&copy, &c, 0, &o, &err), 0);
	assert_true(stage_memory_bytes(copy) < (4 * n + (1 << 20)) * sizeof(float) + n / 8);
	stage_copy_state(copy, cpu);
	g = calloc(n, sizeof(*g));
	for (uint64_t t = 1; t < 3; t++) {
		for (size_t i = 0; i < n; i++)
			g[i] = (float)(i % 7 * t) - 3;
		assert_int_equal(stage_step(cpu, g, 0.03f, &h, t), 0);
		assert_int_equal(stage_step(copy, g, 0.03f, &h, t), 0);
		assert_true(stage_hash(copy) == stage_hash(cpu));
	}
	assert_memory_equal(stage_moment2(copy), stage_moment2(cpu), n * sizeof(*g));
	assert_int_equal(launched_blocks[KERNEL_CAST], 0);
	assert_int_equal(stage_forward(copy, 0, (int32_t[]){ 1 }, NULL, x, true), -EINVAL);
	assert_int_equal(stage_loss(copy, 0, x, (int32_t[]){ 1 }, x, NULL, true), -EINVAL);
	assert_int_equal(stage_zero_gradient(copy), -EINVAL);
	assert_int_equal(stage_step(copy, NULL, 1, &h, 3), -EINVAL);
	stage_free(copy);
	stage_free(cpu);
	free(g);
}

static int make_limited(const struct model_config *c, size_t limit)
{
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 4, .device = "cuda",
				   .memory_bytes = limit };
	struct error err;
	struct stage *s = NULL;
	int rc = stage_new(&s, c, 0, &o, &err);

	stage_free(s);
	return rc;
}

/* Eight agents that start together must not all see the same free memory. */
TEST(a_stage_takes_its_memory_in_turn)
{
	in_turn = true;
	assert_int_equal(make_limited(&config, 0), 0);
	in_turn = false;
}

/* A stage takes no pinned memory for arrays, so the machine may have less memory than the model. A
 * stage that takes part in sums has a further array on the device. */
TEST(a_stage_needs_little_memory_of_the_machine)
{
	struct hyperparameters hyper = { .adamw = { 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f } };
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 4, .device = "cuda" };
	struct model_config c = config;
	struct stage *s[2];
	struct trainer *t;
	struct error err;
	size_t small, array;

	c.vocab = 100001; /* so pieces are smaller than arrays */
	for (int sums = 0; sums < 2; sums++) {
		o.sums = sums;
		assert_int_equal(stage_new(&s[sums], &c, 0, &o, &err), 0);
	}
	array = stage_parameters(s[0]) * sizeof(float);
	small = stage_host_bytes(s[0]);
	assert_true(small < array);
	assert_int_equal(stage_host_bytes(s[1]), small);
	assert_true(stage_memory_bytes(s[1]) > stage_memory_bytes(s[0]) + array);
	assert_true(stage_memory_bytes(s[1]) < stage_memory_bytes(s[0]) + array + (9 << 20));
	assert_false(stage_sums_on_device(s[0]));
	stage_free(s[0]);
	stage_free(s[1]);
	assert_int_equal(make_limited(&c, small), 0);
	assert_int_equal(make_limited(&c, small - 1), -ENOMEM);
	o.sums = false;
	o.memory_bytes = small;
	assert_int_equal(trainer_new(&t, &c, &hyper, &o, &err), 0);
	trainer_free(t);
	device_free_bytes = 4 * array - 1;
	assert_int_equal(trainer_new(&t, &c, &hyper, &o, &err), -ENOMEM);
	device_free_bytes = UINT64_MAX;
}

/* A trainer keeps activations on the device. Its stages therefore lack the four buffers through
 * which an agent's activations cross the bus, both on the device and in pinned memory. */
TEST(a_trainer_has_no_buffers_for_copies)
{
	struct hyperparameters hyper = { .adamw = { 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f } };
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 64, .device = "cuda" };
	size_t buffers = 4 * 64 * config.dim * sizeof(float);
	struct stage *alone;
	const struct stage *of_trainer;
	struct trainer *t;
	struct error err;

	assert_int_equal(stage_new(&alone, &config, 1, &o, &err), 0);
	assert_int_equal(trainer_new(&t, &config, &hyper, &o, &err), 0);
	of_trainer = trainer_stages(t)[1];
	assert_true(stage_memory_bytes(of_trainer) + buffers <= stage_memory_bytes(alone));
	assert_true(stage_host_bytes(of_trainer) + buffers <= stage_host_bytes(alone));
	trainer_free(t);
	stage_free(alone);
}

/* Memory for activations (cuda_room) is refused if it would use up the reserve for code and graphs.
 * Rounding an activation needs no further memory. */
TEST(activations_leave_the_reserve)
{
	struct codec codec = codec_of_activation(FORMAT_Q8, config.dim);
	struct error err = { "" };
	struct pair p;
	float *room;

	pair_init(&p, &config, 1, 1, 5);
	room = backend_cuda.room(p.gpu, &err);
	assert_non_null(room);
	memcpy(room, p.in, p.activation * sizeof(float));
	device_free_bytes = (512 << 20) + p.activation * sizeof(float) - 1;
	assert_null(backend_cuda.room(p.gpu, &err));
	device_free_bytes = 0;
	assert_int_equal(backend_cuda.round(p.gpu, room, &codec), 0);
	device_free_bytes = UINT64_MAX;
	assert_int_equal(codec_round(&codec, p.in, p.activation), 0);
	assert_memory_equal(room, p.in, p.activation * sizeof(float));
	pair_fini(&p);
}

TEST(logits_agree)
{
	struct pair p;
	float *logits[2];

	pair_init(&p, &config, 0, 2, 5);
	for (int i = 0; i < 2; i++)
		logits[i] = calloc(p.rows * config.vocab, sizeof(float));
	assert_int_equal(stage_logits(p.cpu, p.in, logits[0]), 0);
	assert_int_equal(backend_cuda.logits(p.gpu, p.in, logits[1]), 0);
	same("logits", logits[1], logits[0], p.rows * config.vocab);
	free(logits[0]);
	free(logits[1]);
	pair_fini(&p);
}

TEST(failures_are_reported)
{
	struct model_config c = config;
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 4 };
	struct stage_layout other;
	struct error err = { "" };
	struct stage *s;
	void *gpu = NULL;

	assert_int_equal(stage_new(&s, &c, 0, &o, &err), 0);
	other = *stage_layout(s);
	other.device.number = 3;
	assert_int_equal(backend_cuda.make(&gpu, &other, &err), -19);
	fail_next = true;
	assert_int_equal(backend_cuda.make(&gpu, stage_layout(s), &err), -12);
	fail_next = false;
	/* These bytes suffice for the stage, but not for the stage and the reserve for code. */
	device_free_bytes = 400 << 20;
	assert_int_equal(backend_cuda.make(&gpu, stage_layout(s), &(struct error){ "" }), -12);
	device_free_bytes = UINT64_MAX;
	assert_non_null(strstr(
		err.text, "stage 0, 1 slots of 1 x 4 tokens, recompute norms: 0.0 MiB free"));
	stage_free(s);
	c.dim = 320;
	c.n_heads = c.n_kv_heads = 2;
	assert_int_equal(stage_new(&s, &c, 0, &o, &err), 0);
	assert_int_equal(backend_cuda.make(&gpu, stage_layout(s), &err), -22);
	assert_non_null(strstr(err.text, "head size 160"));
	assert_null(gpu);
	stage_free(s);
	assert_int_equal(stage_new(&s, &config, 0, &o, &err), 0);
	shared_most = 1000;
	assert_int_equal(backend_cuda.make(&gpu, stage_layout(s), &err), -22);
	assert_non_null(
		strstr(err.text, "a block needs 11 KiB of shared memory, this GPU has 3"));
	shared_most = ROW_THREADS + config.dim - 1; /* a column of a norm does not fit */
	assert_int_equal(backend_cuda.make(&gpu, stage_layout(s), &err), -22);
	assert_non_null(strstr(err.text, "dim 24: a block needs"));
	shared_most = SHARED_MOST;
	assert_int_equal(backend_cuda.make(&gpu, stage_layout(s), &err), 0);
	assert_string_equal(backend_cuda.failure(gpu), "");
	device_fail(((struct cuda_stage *)gpu)->d, "a kernel", "injected");
	assert_int_equal(backend_cuda.zero_gradient(gpu), -5);
	assert_string_equal(backend_cuda.failure(gpu), "a kernel: injected");
	backend_cuda.free(gpu);
	stage_free(s);
}

/* A failed pass leaves the caller's arrays as they were. */
TEST(a_failed_device_gives_no_result)
{
	float loss = 7;
	struct pair p;
	double sum;

	pair_init(&p, &config, 0, 1, 5);
	p.out[1][0] = p.grad_in[1][0] = 7;
	fail_at_wait = true;
	assert_int_equal(gpu_forward(p.gpu, 1, p.tokens, NULL, p.out[1], true), -5);
	assert_int_equal(gpu_loss(p.gpu, p.in, p.targets, &loss, p.grad_in[1], true), -5);
	fail_at_wait = false;
	assert_true(p.out[1][0] == 7 && p.grad_in[1][0] == 7 && loss == 7);
	assert_int_equal(backend_cuda.squares(p.gpu, &sum), -5);
	assert_string_equal(backend_cuda.failure(p.gpu), "on the device: injected");
	pair_fini(&p);
}

/* The memory that was free at the start is used up by other programs. The caller then gets an array
 * that can be read, and the stage has failed. */
TEST(a_failed_allocation_is_a_failure)
{
	struct pair p;

	pair_init(&p, &config, 1, 1, 5);
	((struct cuda_stage *)p.gpu)->d->fails = true;
	assert_true(backend_cuda.array(p.gpu, ARRAY_MOMENT1)[3] == 0);
	assert_string_equal(backend_cuda.failure(p.gpu),
			    "an array on the host: 0.0 MiB free");
	((struct cuda_stage *)p.gpu)->d->fails = false;
	pair_fini(&p);
}

/* A stage that will receive a saved state is all 0, including the copies that products read. */
TEST(a_stage_without_weights_is_zero)
{
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 4, .device = "cuda:bf16",
				   .without_weights = true };
	struct model_config c = config;
	struct error err;
	struct stage *s;

	c.dim = 64;
	assert_int_equal(stage_new(&s, &c, 1, &o, &err), 0);
	for (size_t i = 0; i < stage_parameters(s); i++)
		assert_true(stage_weights(s)[i] == 0);
	stage_free(s);
}

/* The text of a device distinguishes versions, tables and options, even if the card's name is very
 * long and all numbers have the most digits. */
TEST(a_devices_text_is_whole)
{
	struct stage_device d;
	struct error err;

	emulated_name = "RTX PRO 6000 Blackwell Max-Q Workstation Edition";
	emulated_versions = " 188 SMs nvcc 13.0.100 PTX 13.0 cuBLAS 130100 table 1a2b3c4d";
	setenv("SKIPPIPE_GPU_TRY", "logits,attention", 1);
	assert_int_equal(stage_device(&d, "cuda:bf16", &err), 0);
	assert_non_null(strstr(d.text, "cuda:0:bf16 sm_00 RTX PRO 6000"));
	assert_non_null(strstr(d.text, " cuBLAS 130100 table 1a2b3c4d logits cuDNN 92800"));
	/* cuda:15 and sm_120 have a digit more each. */
	assert_true(strlen(d.text) + 2 < sizeof(d.text));
	unsetenv("SKIPPIPE_GPU_TRY");
	emulated_name = "emulated";
	emulated_versions = "";
}

/* The machine has a driver but no toolkit, or a library of another version that lacks a
 * function. */
TEST(a_missing_cublas_has_a_remedy)
{
	static const char *const cases[][2] = {
		{ "libcublasLt.so.0",
		  "device cuda:0: cuBLAS cannot be loaded (libcublasLt.so.0: " },
		{ "libm.so.6", "undefined symbol: cublasLtCreate" },
	};
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 4, .device = "cuda" };
	struct stage_device d;
	struct stage *s = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err[2] = { { "" }, { "" } };

		cublas_file = cases[i][0];
		assert_int_equal(stage_device(&d, "cuda", &err[0]), -ENODEV);
		assert_int_equal(stage_new(&s, &config, 1, &o, &err[1]), -ENODEV);
		assert_null(s);
		for (int k = 0; k < 2; k++) {
			assert_non_null(strstr(err[k].text, cases[i][1]));
			assert_non_null(strstr(err[k].text, "install the CUDA toolkit's libcublas, "
							    "version 13, or name its folder in "
							    "LD_LIBRARY_PATH"));
		}
	}
	cublas_file = NULL;
}
