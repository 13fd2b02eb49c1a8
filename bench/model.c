/* Measures the training speed of a preset on the CPU, and PyTorch's speed with the same shapes,
 * threads and machine. The two are measured in turn.
 *
 *   build/bench/model [PRESET [THREADS [SECONDS [ROUNDS]]]]      default: 30m 2 15 2
 *
 * A step is one microbatch: forward pass, backward pass and AdamW. In each iteration a node also
 * hashes its weights and the sum of gradients. The program prints the time of this hashing as a
 * share of a step; the share is smaller if an iteration has several microbatches. If PyTorch cannot
 * be imported, the program says so and skips it. SKIPPIPE_PYTHON names the interpreter. Tokens per
 * second of wall time mean little on a busy machine. Therefore tokens per second of CPU time are
 * printed, too. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/rng.h"
#include "model/vector/vector.h"
#include "model/hash.h"
#include "model/trainer.h"

struct speed {
	double wall, cpu; /* tokens per second */
};

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

struct session {
	struct trainer *trainer, *bf16; /* bf16 is NULL if the CPU has no bf16 */
	struct model_config config;
	struct hyperparameters hyper;
	int32_t *tokens, *targets; /* (B, T) */
	uint64_t iteration;
};

static int step(struct session *s, struct trainer *t)
{
	size_t n = (size_t)s->hyper.batch * s->hyper.sequence;
	uint32_t path[1024];
	struct rng rng;
	double norm;
	float loss;
	int rc;

	rng_init(&rng, ++s->iteration);
	for (size_t i = 0; i < n; i++) {
		s->tokens[i] = (int32_t)rng_below(&rng, s->config.vocab);
		s->targets[i] = (int32_t)rng_below(&rng, s->config.vocab);
	}
	for (uint32_t i = 1; i < s->config.n_stages; i++)
		path[i - 1] = i;
	rc = trainer_microbatch(t, path, s->config.n_stages - 1, s->tokens, s->targets, &loss);
	return rc ? rc : trainer_step(t, s->iteration, GRAD_NORM_MICROBATCHES, &norm);
}

static int measure(struct session *s, struct trainer *t, double seconds, struct speed *out)
{
	size_t n = (size_t)s->hyper.batch * s->hyper.sequence, steps = 0;
	int64_t begin = clock_monotonic_us();
	double cpu = cpu_seconds(), took;

	do {
		if (step(s, t))
			return -1;
		steps++;
		took = (double)(clock_monotonic_us() - begin) / 1e6;
	} while (took < seconds);
	out->wall = (double)(n * steps) / took;
	out->cpu = (double)(n * steps) / (cpu_seconds() - cpu);
	return 0;
}

/* Runs bench/model_torch.py with the session's shapes. type: "float32" or "bfloat16". */
static int measure_torch(const struct session *s, unsigned threads, double seconds,
			 const char *type, struct speed *out)
{
	const struct model_config *c = &s->config;
	const char *python = getenv("SKIPPIPE_PYTHON");
	char command[512];
	FILE *p;
	int got;

	snprintf(command, sizeof(command),
		 "%s bench/model_torch.py %u %u %u %u %u %u %u %d %u %u %u %.0f %s 2>/dev/null",
		 python ? python : "python3", c->vocab, c->dim, c->n_layers, c->n_heads,
		 c->n_kv_heads, c->ffn_dim, c->context, (int)c->tied, s->hyper.batch,
		 s->hyper.sequence, threads, seconds, type);
	p = popen(command, "r");
	if (!p)
		return -1;
	got = fscanf(p, "%lf %lf", &out->wall, &out->cpu);
	pclose(p);
	return got == 2 ? 0 : -1;
}

/* Measures how many CPU seconds one thread needs to hash. Other programs can only make hashing
 * slower, so the shortest of ten measurements is the result. */
static void measure_hashes(const struct session *s, double step_cpu)
{
	struct stage *const *stages = trainer_stages(s->trainer);
	double bytes = 4.0 * (double)trainer_parameters(s->trainer);
	unsigned char *digests = malloc((size_t)bytes / HASH_LEAF * HASH_DIGEST + HASH_DIGEST);

	for (size_t set = 0; digests && vector_ops_at(set); set++) {
		double least = 0;

		for (int i = 0; i < 10; i++) {
			double begin = cpu_seconds(), took;

			for (uint32_t k = 0; k < s->config.n_stages; k++) {
				size_t n = stage_parameters(stages[k]) * sizeof(float);

				vector_ops_at(set)->leaves(
					digests, (const void *)stage_weights(stages[k]), n);
				(void)hash_root(digests, n);
			}
			took = cpu_seconds() - begin;
			least = i == 0 || took < least ? took : least;
		}
		printf("hash, %-12s %9.2f GB/s, twice %.2f%% of a step's CPU seconds\n",
		       vector_ops_at(set)->name, bytes / least / 1e9, 200 * least / step_cpu);
	}
	free(digests);
}

static void show(const char *name, const struct speed *s)
{
	printf("%-18s %9.0f tokens/s   %9.0f tokens per CPU second\n", name, s->wall, s->cpu);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct session s = { .iteration = 0 };
	struct stage_options o = { .seed = 1 };
	double seconds = argc > 3 ? atof(argv[3]) : 15;
	int rounds = argc > 4 ? atoi(argv[4]) : 2;
	struct error err = { "" };
	struct speed speed;

	if (model_preset(argc > 1 ? argv[1] : "30m", &s.config, &s.hyper, &err)) {
		fprintf(stderr, "bench/model: %s\n", err.text);
		return 2;
	}
	o.threads = argc > 2 ? (uint32_t)atoi(argv[2]) : 2;
	o.batch = s.hyper.batch;
	o.sequence = s.hyper.sequence;
	s.tokens = calloc((size_t)o.batch * o.sequence, sizeof(*s.tokens));
	s.targets = calloc((size_t)o.batch * o.sequence, sizeof(*s.targets));
	if (!s.tokens || !s.targets || trainer_new(&s.trainer, &s.config, &s.hyper, &o, &err)) {
		fprintf(stderr, "bench/model: %s\n", err.text);
		return 1;
	}
	o.device = "cpu:bf16";
	if (trainer_new(&s.bf16, &s.config, &s.hyper, &o, &err))
		printf("no bfloat16: %s\n", err.text);
	printf("%zu parameters, microbatches of %u x %u tokens, %u threads\n",
	       trainer_parameters(s.trainer), o.batch, o.sequence, o.threads);
	if (step(&s, s.trainer) || (s.bf16 && step(&s, s.bf16))) /* warm up */
		return 1;
	for (int i = 0; i < rounds; i++) {
		if (measure(&s, s.trainer, seconds, &speed))
			return 1;
		show("skippipe float32", &speed);
		measure_hashes(&s, (double)o.batch * o.sequence / speed.cpu);
		if (s.bf16 && measure(&s, s.bf16, seconds, &speed))
			return 1;
		if (s.bf16)
			show("skippipe bfloat16", &speed);
		if (measure_torch(&s, o.threads, seconds, "float32", &speed)) {
			printf("PyTorch cannot be imported: skipped (SKIPPIPE_PYTHON names an "
			       "interpreter)\n");
			continue;
		}
		show("PyTorch float32", &speed);
		if (measure_torch(&s, o.threads, seconds, "bfloat16", &speed) == 0)
			show("PyTorch bfloat16", &speed);
	}
	trainer_free(s.bf16);
	trainer_free(s.trainer);
	free(s.tokens);
	free(s.targets);
	return 0;
}
