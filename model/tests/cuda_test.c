/* The GPU's stage and kernels without a GPU: the threads of a block are run in turn from
 * barrier to barrier, products are plain loops, and all must agree with the CPU's stage. What
 * this cannot show (that a GPU does the same, and how fast) gpu_test.c shows where there is
 * one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <cmocka.h>

#include "base/rng.h"
#include "model/backend.h"
#include "model/cuda/device.h"
#include "model/stage.h"

/* One block at a time. */
enum { THREADS_MOST = 256, STACK = 64 << 10, SHARED_MOST = 64 << 10 };

static struct {
	unsigned thread, threads, block_x, block_y, running;
	float shared[SHARED_MOST];
	size_t shared_size;
	ucontext_t scheduler, fiber[THREADS_MOST];
	bool done[THREADS_MOST];
	char *stacks;
	void (*entry)(const void *args);
	const void *args;
} block;

static void barrier(void)
{
	swapcontext(&block.fiber[block.thread], &block.scheduler);
}

static void fiber_main(void)
{
	block.entry(block.args);
	block.done[block.thread] = true;
}

static void run_block(void)
{
	/* Whatever an earlier block left must not be relied upon. */
	for (size_t i = 0; i < block.shared_size; i++)
		block.shared[i] = NAN;
	for (block.thread = 0; block.thread < block.threads; block.thread++) {
		ucontext_t *c = &block.fiber[block.thread];

		getcontext(c);
		c->uc_stack.ss_sp = block.stacks + (size_t)block.thread * STACK;
		c->uc_stack.ss_size = STACK;
		c->uc_link = &block.scheduler;
		makecontext(c, fiber_main, 0);
		block.done[block.thread] = false;
	}
	/* The turn is kept outside: a switch of context may lose what is in registers. */
	block.running = block.threads;
	while (block.running > 0)
		for (block.thread = 0; block.thread < block.threads; block.thread++) {
			if (block.done[block.thread])
				continue;
			swapcontext(&block.scheduler, &block.fiber[block.thread]);
			block.running -= block.done[block.thread];
		}
}

#define DEVICE static
#define THREAD block.thread
#define THREADS block.threads
#define BLOCK_X block.block_x
#define BLOCK_Y block.block_y
#define BARRIER() barrier()
#define SHARED block.shared
#define KERNEL(name, arguments) \
	static void name##_kernel(struct arguments a); \
	static void name##_entry(const void *args) \
	{ \
		name##_kernel(*(const struct arguments *)args); \
	} \
	static void name##_kernel(struct arguments a)

#include "model/cuda/kernels.h"

static void (*const entries[KERNEL_COUNT])(const void *) = {
	[KERNEL_EMBED] = embed_entry,
	[KERNEL_EMBED_BACKWARD] = embed_backward_entry,
	[KERNEL_NORM] = norm_entry,
	[KERNEL_NORM_BACKWARD] = norm_backward_entry,
	[KERNEL_NORM_WEIGHT] = norm_weight_entry,
	[KERNEL_ROTATE] = rotate_entry,
	[KERNEL_SWIGLU] = swiglu_entry,
	[KERNEL_SWIGLU_BACKWARD] = swiglu_backward_entry,
	[KERNEL_CROSS_ENTROPY] = cross_entropy_entry,
	[KERNEL_ATTENTION] = attention_entry,
	[KERNEL_ATTENTION_DOT] = attention_dot_entry,
	[KERNEL_ATTENTION_DQ] = attention_dq_entry,
	[KERNEL_ATTENTION_DKV] = attention_dkv_entry,
	[KERNEL_ADAMW] = adamw_entry,
};

/* The device. */

struct device {
	void *memory[16];
	int n;
	bool fails; /* from the next allocation on */
};

static bool fail_next;

int device_open(struct device **out, uint32_t number, struct error *err)
{
	if (number != 0)
		return error_set(err, -19, "no device %u", number);
	*out = calloc(1, sizeof(**out));
	(*out)->fails = fail_next;
	return 0;
}

void device_close(struct device *d)
{
	if (!d)
		return;
	for (int i = 0; i < d->n; i++)
		free(d->memory[i]);
	free(d);
}

int device_status(struct device *d)
{
	(void)d;
	return 0;
}

int device_allocate(struct device *d, size_t size, void **out, struct error *err)
{
	unsigned char *bytes;

	if (d->fails)
		return error_set(err, -12, "0.0 MiB free");
	bytes = malloc(size);
	/* A GPU does not clear memory either. */
	memset(bytes, 0xff, size);
	d->memory[d->n++] = *out = bytes;
	return 0;
}

int device_allocate_host(struct device *d, size_t size, void **out, struct error *err)
{
	return device_allocate(d, size, out, err);
}

void device_put(struct device *d, void *to, const void *from_host, size_t size)
{
	(void)d;
	memcpy(to, from_host, size);
}

void device_get(struct device *d, void *to_host, const void *from, size_t size)
{
	(void)d;
	memcpy(to_host, from, size);
}

void device_copy(struct device *d, void *to, const void *from, size_t size)
{
	(void)d;
	memcpy(to, from, size);
}

void device_clear(struct device *d, void *to, size_t size)
{
	(void)d;
	memset(to, 0, size);
}

void device_product(struct device *d, enum device_product kind, size_t m, size_t n, size_t k,
		    const float *a, size_t lda, const float *b, size_t ldb, float beta,
		    float *c, size_t ldc)
{
	(void)d;
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			double sum = 0;

			for (size_t l = 0; l < k; l++) {
				float x = kind == PRODUCT_TN ? a[l * lda + i] : a[i * lda + l];
				float y = kind == PRODUCT_NT ? b[j * ldb + l] : b[l * ldb + j];

				sum += (double)x * (double)y;
			}
			c[i * ldc + j] = (beta == 0 ? 0 : beta * c[i * ldc + j]) + (float)sum;
		}
}

void device_launch(struct device *d, enum device_kernel kernel, size_t blocks_x,
		   size_t blocks_y, unsigned threads, size_t shared, const void *args)
{
	(void)d;
	assert_true(threads <= THREADS_MOST && shared <= SHARED_MOST);
	block.threads = threads;
	block.shared_size = shared;
	block.entry = entries[kernel];
	block.args = args;
	for (block.block_y = 0; block.block_y < blocks_y; block.block_y++)
		for (block.block_x = 0; block.block_x < blocks_x; block.block_x++)
			run_block();
}

/* The same stage twice. */

struct pair {
	struct stage *cpu;
	const struct stage_layout *l;
	void *gpu;
	size_t activation, rows;
	int32_t *tokens, *targets;
	float *in, *grad, *out[2], *grad_in[2];
};

static enum recompute level; /* of both */

static void pair_init(struct pair *p, const struct model_config *c, uint32_t index,
		      uint32_t batch, uint32_t sequence)
{
	struct stage_options o = {
		.slots = 2, .batch = batch, .sequence = sequence, .seed = 5, .recompute = level
	};
	struct error err = { "" };
	struct rng r;
	float *w, *to;

	*p = (struct pair){ .rows = (size_t)batch * sequence };
	assert_int_equal(stage_new(&p->cpu, c, index, &o, &err), 0);
	p->l = stage_layout(p->cpu);
	assert_int_equal(backend_cuda.make(&p->gpu, p->l, 0, &err), 0);
	rng_init(&r, 8);
	w = stage_weights(p->cpu);
	for (size_t i = 0; i < stage_parameters(p->cpu); i++)
		w[i] += (float)(0.1 * rng_normal(&r));
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
	if (!(sqrt(difference) <= 1e-5 * sqrt(size)))
		fail_msg("%s: relative error %.3g", what, sqrt(difference / size));
}

static void same_array(struct pair *p, enum stage_array which, const float *cpu)
{
	const float *gpu = backend_cuda.array(p->gpu, which);

	for (size_t i = 0; i < p->l->n_tensors; i++)
		same(p->l->tensors[i].name, gpu + p->l->tensors[i].offset,
		     cpu + p->l->tensors[i].offset, p->l->tensors[i].count);
}

static void forward_and_backward(struct pair *p, bool count)
{
	bool first = p->l->index == 0;
	const int32_t *tokens = first ? p->tokens : NULL;
	const float *in = first ? NULL : p->in;
	float *up[2] = { first ? NULL : p->grad_in[0], first ? NULL : p->grad_in[1] };

	for (int keep = 0; keep < 2; keep++) {
		assert_int_equal(stage_forward(p->cpu, 1, tokens, in, p->out[0], keep), 0);
		assert_int_equal(backend_cuda.forward(p->gpu, 1, tokens, in, p->out[1], keep),
				 0);
		same("forward", p->out[1], p->out[0], p->activation);
	}
	assert_int_equal(stage_backward(p->cpu, 1, p->grad, up[0], count), 0);
	assert_int_equal(backend_cuda.backward(p->gpu, 1, p->grad, up[1], count), 0);
	if (!first)
		same("gradient of the input", up[1], up[0], p->activation);
}

static void check(const struct model_config *c, uint32_t index, uint32_t batch,
		  uint32_t sequence)
{
	struct adamw h = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f };
	struct pair p;
	float *g;

	pair_init(&p, c, index, batch, sequence);
	forward_and_backward(&p, true);
	if (index == 0) {
		float loss[2];

		for (int train = 0; train < 2; train++) {
			assert_int_equal(stage_loss(p.cpu, 0, p.in, p.targets, &loss[0],
						    train ? p.grad_in[0] : NULL, true),
					 0);
			assert_int_equal(backend_cuda.loss(p.gpu, p.in, p.targets, &loss[1],
							   train ? p.grad_in[1] : NULL, true),
					 0);
			assert_true(fabsf(loss[0] - loss[1]) <= 2e-6f * loss[0]);
		}
		same("gradient of the loss", p.grad_in[1], p.grad_in[0], p.activation);
	}
	same_array(&p, ARRAY_GRADIENT, stage_gradient(p.cpu));
	forward_and_backward(&p, false);
	same_array(&p, ARRAY_GRADIENT, stage_gradient(p.cpu));
	g = stage_gradient(p.cpu);
	for (uint64_t t = 1; t < 3; t++) {
		assert_int_equal(stage_step(p.cpu, g, 0.5f, &h, t), 0);
		assert_int_equal(backend_cuda.step(p.gpu, g, 0.5f, &h, t), 0);
	}
	same_array(&p, ARRAY_WEIGHTS, stage_weights(p.cpu));
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

static void stages_agree(void **state)
{
	(void)state;
	check(&config, 0, 2, 7);
	check(&config, 1, 2, 7);
}

static void stages_agree_at_other_levels_of_recomputation(void **state)
{
	(void)state;
	for (level = RECOMPUTE_NONE; level <= RECOMPUTE_BLOCK; level++)
		check(&config, 1, 2, 7);
	level = RECOMPUTE_NORMS;
}

static void stages_agree_over_tiles(void **state)
{
	struct model_config c = config;

	(void)state;
	c.n_layers = 2;
	c.n_kv_heads = 1;
	check(&c, 1, 1, 71);
	c.n_kv_heads = 4;
	check(&c, 1, 2, 33);
}

static void stages_agree_at_full_head_size(void **state)
{
	struct model_config c = config;

	(void)state;
	c.n_layers = 2;
	c.dim = 256;
	c.n_heads = c.n_kv_heads = 2;
	check(&c, 1, 1, 34);
}

static void stages_agree_when_tied(void **state)
{
	struct model_config c = config;

	(void)state;
	c.tied = true;
	check(&c, 0, 1, 9);
}

static void logits_agree(void **state)
{
	struct pair p;
	float *logits[2];

	(void)state;
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

static void failures_are_reported(void **state)
{
	struct model_config c = config;
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 4 };
	struct error err = { "" };
	struct stage *s;
	void *gpu = NULL;

	(void)state;
	assert_int_equal(stage_new(&s, &c, 0, &o, &err), 0);
	assert_int_equal(backend_cuda.make(&gpu, stage_layout(s), 3, &err), -19);
	fail_next = true;
	assert_int_equal(backend_cuda.make(&gpu, stage_layout(s), 0, &err), -12);
	fail_next = false;
	assert_non_null(
		strstr(err.text, "stage 0 with 1 slots, recompute norms: 0.0 MiB free"));
	stage_free(s);
	c.dim = 320;
	c.n_heads = c.n_kv_heads = 2;
	assert_int_equal(stage_new(&s, &c, 0, &o, &err), 0);
	assert_int_equal(backend_cuda.make(&gpu, stage_layout(s), 0, &err), -22);
	assert_non_null(strstr(err.text, "head size 160"));
	assert_null(gpu);
	stage_free(s);
}

static int setup(void **state)
{
	(void)state;
	block.stacks = malloc((size_t)THREADS_MOST * STACK);
	return block.stacks ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(block.stacks);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_agree),
		cmocka_unit_test(stages_agree_at_other_levels_of_recomputation),
		cmocka_unit_test(stages_agree_over_tiles),
		cmocka_unit_test(stages_agree_at_full_head_size),
		cmocka_unit_test(stages_agree_when_tied),
		cmocka_unit_test(logits_agree),
		cmocka_unit_test(failures_are_reported),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
