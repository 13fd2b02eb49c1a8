/* Compares a real GPU with the CPU, and measures its speed. Needs only nvcc, cuBLASLt and the C
 * library:
 *
 *     build/gpu check [TIMES]
 *     build/gpu bench [OPTIONS] [SECONDS [PRESET...]]
 *     build/gpu times [OPTIONS] [PRESET...]
 *     build/gpu tune [OPTIONS] FILE [PRESET...]
 *
 * OPTIONS: --sequence N, --batch N, --recompute norms|none|block|auto
 *
 * check: compares every kernel with plain loops, and every gradient of a model with the CPU's.
 * Compares the bits of two equal runs, and compares the optimizer's steps and the sums over
 * replicas with the CPU's bits. Compares the bits of TIMES equal passes (default: 20) of a layer of
 * each preset at the bench's sizes.
 * bench: prints tokens per second and MFU of each preset (default: 5 s each of 30m 124m 500m 1.5b),
 * and PyTorch's if PyTorch can be imported (SKIPPIPE_PYTHON names the interpreter).
 * times: prints where a step's time goes, by kernel and product, without graphs (default: 124m).
 * tune: times the algorithms of the products of presets (default: 124m), and appends the quickest
 * to a table (model/cuda/product_table.h).
 *
 * Exit status 0, 1 when something differs or fails, 77 where there is no GPU.
 *
 * MFU: the share of the card's peak (dense bf16, by its datasheet) that a step reaches, at
 * (6 N + 12 layers dim T) FLOP a token. N counts all weights, except for an embedding that is only
 * looked up. By default a microbatch has as many whole sequences as make TOKENS tokens, and a
 * sequence is as long as the model's context. A step is MICROBATCHES microbatches, forward and
 * backward, and AdamW. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/cgroup.h"
#include "base/rng.h"
#include "model/device_check.h"
#include "model/tests/kernel_check.h"
#include "model/tests/repeat_check.h"
#include "model/tests/sums_check.h"
#include "model/trainer.h"

enum { KIB_99 = 99 << 10 >> 2 /* floats of shared memory in 99 KiB */ };
enum { B = 2, T = 96, ROWS = B * T, TOKENS = 16384, MICROBATCHES = 8, NO_GPU = 77 };

/* TFLOP/s of cards by their datasheets, in dense bf16 with sums in float. The first name that is a
 * part of the device's text counts, so longer names come first. */
static const struct {
	const char *name;
	double peak;
} cards[] = {
	{ "GB300", 2500 },
	{ "GB200", 2500 },
	{ "B300", 2250 },
	{ "B200", 2250 },
	{ "GH200", 989 },
	{ "H200 NVL", 835 },
	{ "H200", 989 },
	{ "H100 NVL", 835 },
	{ "H100 PCIe", 756 },
	{ "H100", 989 },
	{ "H800", 989 },
	{ "H20", 148 },
	{ "A100", 312 },
	{ "A800", 312 },
	{ " A30 ", 165 },
	{ " A40 ", 150 },
	{ "A10G", 70 },
	{ " A10 ", 125 },
	{ "L40S", 362 },
	{ "L40", 181 },
	{ " L4 ", 121 },
	{ "RTX PRO 6000", 504 },
	{ "RTX 6000 Ada", 364 },
	{ "RTX A6000", 155 },
	{ "RTX 5090", 210 },
	{ "RTX 5080", 113 },
	{ "RTX 4090", 165 },
	{ "RTX 4080", 97 },
	{ "RTX 3090", 71 },
	{ "RTX 3080", 60 },
};

static const struct model_config configs[] = {
	{ 300, 192, 4, 3, 1, 160, 128, 2, 10000, 1e-5f, 0.02f, .tied = false },
	{ 500, 256, 2, 2, 2, 320, 128, 2, 10000, 1e-5f, 0.02f, .tied = true },
};

static int failures;

static void report_check(const char *what, bool bf16, double error, double most)
{
	bool ok = error <= most;

	failures += !ok;
	printf("%-4s %-32s %s  error %.2e of %.0e\n", ok ? "ok" : "FAIL", what,
	       bf16 ? "bf16" : "fp32", error, most);
	fflush(stdout);
}

static void fill_tokens(const struct model_config *c, uint64_t seed, size_t n, int32_t *tokens,
			int32_t *targets)
{
	struct rng r;

	rng_init(&r, seed);
	for (size_t i = 0; i < n; i++) {
		tokens[i] = (int32_t)rng_below(&r, c->vocab);
		targets[i] = (int32_t)rng_below(&r, c->vocab);
	}
}

static struct trainer *trainer_on(const char *device, const struct model_config *c,
				  enum recompute level)
{
	struct hyperparameters hyper = { .adamw = { 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f }, .clip = 1 };
	struct stage_options o = { .batch = B,
				   .sequence = T,
				   .threads = 2,
				   .seed = 3,
				   .device = device,
				   .recompute = level };
	struct trainer *t = NULL;
	struct error err = { "" };
	int rc = trainer_new(&t, c, &hyper, &o, &err);

	if (rc)
		printf("%s: %s\n", device, err.text);
	if (rc == -ENODEV)
		exit(NO_GPU);
	failures += rc != 0;
	return t;
}

/* Trains on three microbatches, so that each pass is run, then recorded, then replayed. Returns the
 * sum of the losses. */
static double train_briefly(struct trainer *t, const struct model_config *c)
{
	static int32_t tokens[ROWS], targets[ROWS];
	uint32_t path[] = { 1 };
	double sum = 0;

	for (uint64_t i = 0; i < 3; i++) {
		float loss = NAN;

		fill_tokens(c, i, ROWS, tokens, targets);
		targets[5] = -1;
		failures += trainer_microbatch(t, path, 1, tokens, targets, &loss) != 0;
		sum += (double)loss;
	}
	return sum;
}

/* Runs microbatches on the GPU and the CPU. The results must agree as closely as the type allows.
 * Then runs the microbatches on the GPU again, and the results must have the same bits. */
static void check_model(const struct model_config *c, bool bf16, enum recompute level)
{
	struct trainer *gpu = trainer_on(bf16 ? "cuda:bf16" : "cuda", c, level);
	struct trainer *again = trainer_on(bf16 ? "cuda:bf16" : "cuda", c, level);
	struct trainer *cpu = trainer_on("cpu", c, level);
	double most = bf16 ? DEVICE_CHECK_BF16 : DEVICE_CHECK_FP32, loss[2], norm, differing = 0;

	if (!gpu || !again || !cpu)
		return;
	loss[0] = train_briefly(gpu, c);
	loss[1] = train_briefly(cpu, c);
	report_check("model, loss", bf16, fabs(loss[0] - loss[1]) / loss[1], most / 10);
	report_check("model, gradients", bf16,
		     device_check_furthest(gpu, cpu, c->n_stages, stage_gradient), most);
	failures += trainer_step(gpu, 1, GRAD_NORM_MICROBATCHES, &norm) != 0;
	failures += trainer_step(cpu, 1, GRAD_NORM_MICROBATCHES, &norm) != 0;
	report_check("model, first moments", bf16,
		     device_check_furthest(gpu, cpu, c->n_stages, stage_moment1), most);
	train_briefly(again, c);
	failures += trainer_step(again, 1, GRAD_NORM_MICROBATCHES, &norm) != 0;
	for (uint32_t s = 0; s < c->n_stages; s++)
		differing += stage_hash(trainer_stages(gpu)[s]) !=
			     stage_hash(trainer_stages(again)[s]);
	report_check("model, stages that differ twice", bf16, differing, 0);
	if (trainer_failure(gpu)[0])
		printf("the GPU failed: %s\n", trainer_failure(gpu));
	trainer_free(gpu);
	trainer_free(again);
	trainer_free(cpu);
}

/* Checks that replicas on a CPU and a GPU keep the same bits when they step with the same sum. */
static void check_step(const struct model_config *c, bool bf16)
{
	struct stage_options o = { .batch = 1, .sequence = 8, .seed = 3 };
	struct adamw h = { 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f };
	struct stage *gpu = NULL, *cpu = NULL;
	struct error err = { "" };
	float *sum = NULL;
	struct rng r;
	double differing = 0;
	size_t n;

	if (stage_new(&cpu, c, 0, &o, &err) == 0) {
		o.device = bf16 ? "cuda:bf16" : "cuda";
		stage_new(&gpu, c, 0, &o, &err);
		sum = calloc(stage_parameters(cpu), sizeof(*sum));
	}
	if (!gpu || !sum) {
		printf("%s\n", err.text);
		failures++;
	}
	rng_init(&r, 5);
	n = gpu && sum ? stage_parameters(cpu) : 0;
	for (uint64_t t = 1; t <= 3 && n > 0; t++) {
		for (size_t i = 0; i < n; i++)
			sum[i] = (float)rng_normal(&r);
		failures += stage_step(cpu, sum, 0.03f, &h, t) != 0;
		failures += stage_step(gpu, sum, 0.03f, &h, t) != 0;
		differing += stage_hash(cpu) != stage_hash(gpu);
		differing += memcmp(stage_weights(cpu), stage_weights(gpu), n * sizeof(*sum)) != 0;
		differing += memcmp(stage_moment2(cpu), stage_moment2(gpu), n * sizeof(*sum)) != 0;
	}
	report_check("step, arrays that differ from a CPU's", bf16, differing, 0);
	stage_free(gpu);
	stage_free(cpu);
	free(sum);
}

/* Checks sums of a model whose tensors end within groups and slices. Then checks sums of a tensor
 * that is longer than a piece of pinned memory. */
static void check_sums(void)
{
	struct model_config c = { 41, 24, 2, 4, 2, 20, 8, 2, 10000, 1e-5f, 0.1f, .tied = false };

	for (int i = 0; i < 2 * FORMAT_COUNT; i++) {
		enum tensor_format format = (enum tensor_format)(i % FORMAT_COUNT);
		unsigned differing = 1;
		struct error err = { "" };
		char what[64];

		if (i == FORMAT_COUNT)
			c.vocab = 100003;
		if (sums_check(&c, "cuda", format, &differing, &err) != 0)
			printf("%s\n", err.text);
		snprintf(what, sizeof(what), "sums in %s that differ", tensor_format_name(format));
		report_check(what, false, differing, 0);
	}
}

static const char *const presets[] = { "30m", "124m", "500m", "1.5b" };
enum { PRESETS = sizeof(presets) / sizeof(presets[0]), REPEATS = 20 };

/* Sets the sizes of a microbatch of TOKENS tokens. sequence: 0 for the model's context. */
static void choose_sizes(struct stage_options *o, const struct model_config *c, uint32_t sequence)
{
	o->sequence = sequence > 0 && sequence < c->context ? sequence : c->context;
	o->batch = o->sequence < TOKENS ? TOKENS / o->sequence : 1;
}

/* Checks that repeated passes give the same bits. To load the card during this check, run two of
 * these programs at once. */
static void check_repeats(unsigned times)
{
	for (size_t i = 0; i < PRESETS && times > 0; i++) {
		struct stage_options o = { .device = "cuda:bf16", .threads = cores_usable() };
		struct error err = { "" };
		struct model_config c;
		unsigned differing = times;

		if (model_preset(presets[i], &c, NULL, &err) == 0) {
			choose_sizes(&o, &c, 0);
			repeat_check(&c, &o, times, &differing, &err);
		}
		if (err.text[0])
			printf("%s: %s\n", presets[i], err.text);
		report_check("a layer's passes that differ", true, differing, 0);
	}
}

static int run_checks(unsigned times)
{
	static const struct kernel_sizes sizes[] = {
		{ 37, 200, 2, 200, 4, 2, 64, 0 },    { 64, 129, 1, 129, 2, 1, 128, 0 },
		{ 33, 64, 1, 65, 3, 3, 16, 0 },      { 2, 1030, 1, 1, 6, 2, 80, 0 },
		{ 2048, 768, 4, 512, 12, 4, 64, 0 }, { 2, 16, 1, 192, 2, 2, 64, 0 },
		/* as on a card whose blocks have at most 99 KiB of shared memory */
		{ 2, 16, 2, 200, 4, 2, 64, KIB_99 }, { 2, 16, 1, 129, 2, 1, 128, KIB_99 },
	};
	struct error err = { "" };
	int rc;

	for (int bf16 = 0; bf16 < 2; bf16++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			if ((rc = kernel_check(&sizes[i], bf16, report_check, &err)) != 0) {
				printf("%s\n", err.text);
				return rc == -ENODEV ? NO_GPU : 1;
			}
		for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++)
			for (enum recompute l = RECOMPUTE_NORMS; l <= RECOMPUTE_BLOCK; l++)
				check_model(&configs[i], bf16, l);
		check_step(&configs[0], bf16);
	}
	check_sums();
	check_repeats(times);
	printf("%d failures\n", failures);
	return failures ? 1 : 0;
}

/* ---- speed ---- */

static double flops_a_token(const struct model_config *c, size_t parameters, uint32_t sequence)
{
	double looked_up = c->tied ? 0 : (double)c->vocab * c->dim;

	return 6 * ((double)parameters - looked_up) + 12.0 * c->n_layers * c->dim * sequence;
}

/* Returns the card's peak in FLOP/s; 0: the card is not in the table. */
static double peak_of(const char *card)
{
	for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++)
		if (strstr(card, cards[i].name))
			return cards[i].peak * 1e12;
	return 0;
}

/* Prints the next check before it runs, so that an interrupted run shows where it was. */
static void announce(const char *preset, const char *what)
{
	printf("%-5s %s ...\n", preset, what);
	fflush(stdout);
}

/* Makes one step. tokens, targets: (MICROBATCHES, n), drawn before the timing begins, so that the
 * card does not wait for them. */
static int time_step(struct trainer *t, const struct model_config *c, size_t n,
		     const int32_t *tokens, const int32_t *targets, uint64_t number)
{
	uint32_t path[1024];
	double norm;
	float loss;

	for (uint32_t i = 1; i < c->n_stages; i++)
		path[i - 1] = i;
	for (size_t m = 0; m < MICROBATCHES; m++)
		if (trainer_microbatch(t, path, c->n_stages - 1, tokens + m * n, targets + m * n,
				       &loss))
			return -1;
	return trainer_step(t, number, GRAD_NORM_MICROBATCHES, &norm);
}

static void torch_beside(const struct model_config *c, const struct hyperparameters *r,
			 double seconds)
{
	const char *python = getenv("SKIPPIPE_PYTHON");
	char command[512];

	snprintf(
		command, sizeof(command),
		"%s bench/model_torch.py %u %u %u %u %u %u %u %d %u %u 1 %.0f bfloat16 cuda %d",
		python ? python : "python3", c->vocab, c->dim, c->n_layers, c->n_heads,
		c->n_kv_heads, c->ffn_dim, c->context, (int)c->tied, r->batch, r->sequence,
		seconds, (int)MICROBATCHES);
	announce("", "PyTorch");
	printf("  PyTorch, tokens per second of wall time and of CPU time: ");
	fflush(stdout);
	if (system(command) != 0)
		printf("not to be had\n");
}

static void report_rate(const char *name, const struct trainer *t, const struct model_config *c,
			const struct stage_options *o, double rate)
{
	struct stage_device d = { .text = "" };
	double peak;

	stage_device(&d, o->device, NULL);
	peak = peak_of(d.text);
	printf("%-5s %11zu weights, %u x %u tokens, recompute %s: %9.0f tokens/s", name,
	       trainer_parameters(t), o->batch, o->sequence, recompute_name(trainer_recompute(t)),
	       rate);
	if (peak > 0)
		printf(", MFU %.1f%% of %.0f TFLOP/s\n",
		       100 * rate * flops_a_token(c, trainer_parameters(t), o->sequence) / peak,
		       peak / 1e12);
	else
		printf(", MFU unknown: no peak in the table for this card\n");
}

struct choice {
	uint32_t sequence; /* tokens of a sequence; 0: the model's context */
	uint32_t batch;    /* sequences of a microbatch; 0: as many as make TOKENS tokens */
	enum recompute recompute;
	double seconds;
};

/* Measures one preset. If choice->seconds is 0, runs two steps and does not run PyTorch. */
static int bench_preset(const char *name, const struct choice *choice)
{
	struct stage_options o = { .seed = 1,
				   .device = "cuda:bf16",
				   .recompute = choice->recompute };
	double seconds = choice->seconds;
	struct model_config c;
	struct hyperparameters r;
	struct error err = { "" };
	struct trainer *t;
	int32_t *tokens, *targets;
	int64_t begin;
	uint64_t done = 0;
	double took;
	size_t n;
	int rc = model_preset(name, &c, &r, &err);

	/* The whole model is one stage, so activations stay on the GPU between layers. */
	c.n_stages = 1;
	choose_sizes(&o, &c, choice->sequence);
	o.batch = choice->batch > 0 ? choice->batch : o.batch;
	r.batch = o.batch;
	r.sequence = o.sequence;
	o.threads = cores_usable(); /* threads that draw the first weights */
	n = (size_t)o.batch * o.sequence;
	announce(name, "drawing weights and taking memory");
	if (!rc)
		rc = trainer_new(&t, &c, &r, &o, &err);
	if (rc) {
		printf("%s: %s\n", name, err.text);
		return rc == -ENODEV ? NO_GPU : 1;
	}
	tokens = calloc(MICROBATCHES * n, sizeof(*tokens));
	targets = calloc(MICROBATCHES * n, sizeof(*targets));
	fill_tokens(&c, 1, MICROBATCHES * n, tokens, targets);
	announce(name, "two steps to warm up");
	/* The first two steps load kernels and record passes, so they are not timed. */
	for (uint64_t i = 1; i <= 2 && !rc; i++)
		rc = time_step(t, &c, n, tokens, targets, i);
	announce(name, "timing");
	begin = clock_monotonic_us();
	do {
		rc = rc ? rc : time_step(t, &c, n, tokens, targets, 3 + done++);
		took = (double)(clock_monotonic_us() - begin) / 1e6;
	} while (!rc && took < seconds);
	report_rate(name, t, &c, &o, (double)(n * MICROBATCHES * done) / took);
	if (rc)
		printf("FAILED: %s\n", trainer_failure(t));
	fflush(stdout);
	trainer_free(t);
	free(tokens);
	free(targets);
	if (!rc && seconds > 0)
		torch_beside(&c, &r, seconds);
	return rc ? 1 : 0;
}

/* Prints the share of each kind of work when the device is closed (model/cuda/times.cuh). */
static int run_times(int n, char **names, const struct choice *choice)
{
	int worst = 0;

	setenv("SKIPPIPE_GPU_TIMES", "1", 1);
	for (int i = 0; i < (n > 0 ? n : 1) && worst != NO_GPU; i++) {
		int rc = bench_preset(n > 0 ? names[i] : "124m", choice);

		worst = rc > worst ? rc : worst;
	}
	return worst;
}

/* Products must not be recorded while they are timed, so the graphs are off, as in run_times. */
static int run_tune(const char *file, int n, char **names, const struct choice *choice)
{
	FILE *to = fopen(file, "a");

	if (!to || fclose(to) != 0) {
		printf("%s: %s\n", file, strerror(errno));
		return 1;
	}
	setenv("SKIPPIPE_GPU_TUNE", file, 1);
	setenv("SKIPPIPE_GPU_TABLE", file, 1); /* products in this table are not timed again */
	return run_times(n, names, choice);
}

static int run_bench(int n, char **names, const struct choice *choice)
{
	int worst = 0;

	printf("MFU: (6 N + 12 layers dim T) FLOP a token over the card's peak; a step is %d "
	       "microbatches and AdamW\n",
	       (int)MICROBATCHES);
	for (int i = 0; i < (n > 0 ? n : PRESETS) && worst != NO_GPU; i++) {
		int rc = bench_preset(n > 0 ? names[i] : presets[i], choice);

		worst = rc > worst ? rc : worst;
	}
	return worst;
}

/* Takes the options, which come before the other arguments. Returns the number of words that belong
 * to options, or -1. */
static int take_options(int argc, char **argv, struct choice *choice)
{
	int i = 0;

	for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
		if (strcmp(argv[i], "--sequence") == 0)
			choice->sequence = (uint32_t)strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--batch") == 0)
			choice->batch = (uint32_t)strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--recompute") != 0 ||
			 recompute_parse(argv[i + 1], &choice->recompute) != 0)
			return -1;
	}
	return i < argc && strncmp(argv[i], "--", 2) == 0 ? -1 : i;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	struct choice choice = { .recompute = RECOMPUTE_NORMS };
	int taken = argc > 1 ? take_options(argc - 2, argv + 2, &choice) : -1;

	argc -= 2 + taken;
	argv += 2 + taken;
	if (taken == 0 && argc <= 1 && strcmp(verb, "check") == 0)
		return run_checks(argc > 0 ? (unsigned)strtoul(argv[0], NULL, 10) : REPEATS);
	if (taken >= 0 && strcmp(verb, "bench") == 0) {
		choice.seconds = argc > 0 ? atof(argv[0]) : 5;
		return run_bench(argc > 1 ? argc - 1 : 0, argv + 1, &choice);
	}
	if (taken >= 0 && strcmp(verb, "times") == 0)
		return run_times(argc, argv, &choice);
	if (taken >= 0 && argc > 0 && strcmp(verb, "tune") == 0)
		return run_tune(argv[0], argc - 1, argv + 1, &choice);
	fprintf(stderr, "usage: gpu check [TIMES] | gpu bench [OPTIONS] [SECONDS [PRESET...]] | "
			"gpu times [OPTIONS] [PRESET...] | gpu tune [OPTIONS] FILE [PRESET...]\n"
			"options: --sequence N, --batch N, --recompute norms|none|block|auto\n");
	return 2;
}
