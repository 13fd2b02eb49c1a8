/* Measures the speed of the formats in which tensors travel, with every instruction set of this
 * machine.
 *
 *   build/bench/codec [MEGABYTES [ROUNDS]]      default: 64 7
 *
 * Uses one thread. A line gives gigabytes of floats per second of processor time. It also gives
 * this speed as a share of memcpy's speed with the same floats. The operations and memcpy take
 * turns, and the best of the rounds counts, because other programs disturb a busy machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "base/tensor_format.h"
#include "model/vector/vector.h"

enum { CHANNELS = 2048 };

struct bench {
	const struct vector_ops *ops;
	struct quantiser q;
	size_t n;
	float *x, *y;
	unsigned char *bytes, *means;
};

static void copy(const struct bench *b)
{
	memcpy(b->y, b->x, b->n * sizeof(*b->x));
}

static void encode(const struct bench *b)
{
	if (b->q.means)
		b->ops->channel_means(b->means, b->x, b->n / CHANNELS, CHANNELS);
	b->ops->quantise(b->bytes, b->x, b->n, &b->q);
}

static void decode(const struct bench *b)
{
	b->ops->dequantise(b->y, b->bytes, b->n, &b->q);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void keep_best(double *best, void (*run)(const struct bench *), const struct bench *b)
{
	double at = cpu_seconds(), speed;

	run(b);
	speed = (double)(b->n * sizeof(float)) / (cpu_seconds() - at) / 1e9;
	*best = speed > *best ? speed : *best;
}

static void measure(struct bench *b, const char *what, int rounds)
{
	double copied = 0, encoded = 0, decoded = 0;

	for (int i = 0; i < rounds; i++) {
		keep_best(&copied, copy, b);
		keep_best(&encoded, encode, b);
		keep_best(&decoded, decode, b);
	}
	printf("%-6s %-20s  encode %6.2f GB/s %4.0f%%  decode %6.2f GB/s %4.0f%%  memcpy %6.2f "
	       "GB/s\n",
	       b->ops->name, what, encoded, 100 * encoded / copied, decoded, 100 * decoded / copied,
	       copied);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *what;
		unsigned bits;
		size_t group;
		bool means;
	} forms[] = { { "q8 activation", 8, FORMAT_ACTIVATION_GROUP, true },
		      { "q6 activation", 6, FORMAT_ACTIVATION_GROUP, true },
		      { "q6 gradient", 6, FORMAT_ACTIVATION_GROUP, false },
		      { "q8 sum", 8, FORMAT_SUM_GROUP, false },
		      { "q6 sum", 6, FORMAT_SUM_GROUP, false },
		      { "q4 sum", 4, FORMAT_SUM_GROUP, false } };
	size_t megabytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
	int rounds = argc > 2 ? atoi(argv[2]) : 7;
	struct bench b = { .n = megabytes * 1000000 / sizeof(float) / CHANNELS * CHANNELS };
	struct rng r;

	b.x = malloc(b.n * sizeof(*b.x));
	b.y = malloc(b.n * sizeof(*b.y));
	b.bytes = malloc(2 * b.n);
	b.means = malloc(FORMAT_SCALE_BYTES * CHANNELS);
	if (b.n == 0 || rounds < 1 || !b.x || !b.y || !b.bytes || !b.means)
		return 1;
	rng_init(&r, 1);
	for (size_t i = 0; i < b.n; i++)
		b.x[i] = (float)rng_normal(&r);
	memset(b.y, 0, b.n * sizeof(*b.y));
	for (size_t set = 0; vector_ops_at(set); set++)
		for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
			b.ops = vector_ops_at(set);
			b.q = (struct quantiser){ forms[i].bits, forms[i].group,
						  forms[i].means ? b.means : NULL, CHANNELS };
			measure(&b, forms[i].what, rounds);
		}
	free(b.x);
	free(b.y);
	free(b.bytes);
	free(b.means);
	return 0;
}
