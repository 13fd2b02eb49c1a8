/* Measures how many seconds each kind of work takes on the device. Pairs of events are kept until
 * there are many, and then read together, because reading an event waits for the device.
 */
#include "model/cuda/times.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 2048, KINDS = 128, NAME = 64 };

struct kind {
	char name[NAME];
	/* Seconds of all runs except the first, and floating-point operations of one run. */
	double seconds, flops;
	long count;
};

struct times {
	struct kind kinds[KINDS];
	int n_kinds;
	struct {
		cudaEvent_t begin, end;
		int kind;
	} pairs[PAIRS];
	int n_pairs;
};

struct times *times_new(void)
{
	struct times *t = getenv("SKIPPIPE_GPU_TIMES") ? (struct times *)calloc(1, sizeof(*t))
						       : NULL;

	for (int i = 0; t && i < PAIRS; i++) {
		cudaEventCreate(&t->pairs[i].begin);
		cudaEventCreate(&t->pairs[i].end);
	}
	return t;
}

static int kind_of(struct times *t, const char *what)
{
	int i = 0;

	while (i < t->n_kinds && strcmp(t->kinds[i].name, what) != 0)
		i++;
	if (i == KINDS) { /* further kinds of work share one name */
		i = KINDS - 1;
		snprintf(t->kinds[i].name, NAME, "others");
	}
	if (i == t->n_kinds)
		snprintf(t->kinds[t->n_kinds++].name, NAME, "%s", what);
	return i;
}

static void collect(struct times *t)
{
	for (int i = 0; i < t->n_pairs; i++) {
		struct kind *k = &t->kinds[t->pairs[i].kind];
		float ms = 0;

		cudaEventSynchronize(t->pairs[i].end);
		cudaEventElapsedTime(&ms, t->pairs[i].begin, t->pairs[i].end);
		/* The first run does not count, because it includes loading the code. */
		if (k->count++ > 0)
			k->seconds += 1e-3 * (double)ms;
	}
	t->n_pairs = 0;
}

void times_begin(struct times *t, cudaStream_t stream, const char *what, double flops)
{
	int kind;

	if (!t)
		return;
	if (t->n_pairs == PAIRS)
		collect(t);
	kind = kind_of(t, what);
	t->kinds[kind].flops = flops;
	t->pairs[t->n_pairs].kind = kind;
	cudaEventRecord(t->pairs[t->n_pairs].begin, stream);
}

void times_end(struct times *t, cudaStream_t stream)
{
	if (t)
		cudaEventRecord(t->pairs[t->n_pairs++].end, stream);
}

static int longer(const void *a, const void *b)
{
	double x = ((const struct kind *)a)->seconds, y = ((const struct kind *)b)->seconds;

	return x < y ? 1 : x > y ? -1 : 0;
}

void times_free(struct times *t)
{
	double all = 0;

	if (!t)
		return;
	collect(t);
	for (int i = 0; i < PAIRS; i++) {
		cudaEventDestroy(t->pairs[i].begin);
		cudaEventDestroy(t->pairs[i].end);
	}
	for (int i = 0; i < t->n_kinds; i++)
		all += t->kinds[i].seconds;
	qsort(t->kinds, (size_t)t->n_kinds, sizeof(t->kinds[0]), longer);
	for (int i = 0; i < t->n_kinds; i++) {
		const struct kind *k = &t->kinds[i];

		double each = k->count > 1 ? k->seconds / (double)(k->count - 1) : 0;

		fprintf(stderr, "  %5.1f%% %9.2f ms %7ld x %8.1f us",
			all > 0 ? 100 * k->seconds / all : 0, 1e3 * k->seconds, k->count - 1,
			1e6 * each);
		if (k->flops > 0 && each > 0)
			fprintf(stderr, " %6.0f TFLOP/s", 1e-12 * k->flops / each);
		else
			fprintf(stderr, "               ");
		fprintf(stderr, "  %s\n", k->name);
	}
	free(t);
}
