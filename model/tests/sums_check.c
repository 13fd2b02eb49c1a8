/* Makes the sum of a gradient on a device and on the CPU. Replicas on different devices must have
 * the same sum to the bit, because otherwise their weights drift apart. */
#include "model/tests/sums_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "model/hash.h"
#include "model/squares.h"
#include "model/stage.h"

enum { REPLICAS = 3 };

struct sums {
	struct stage *device, *cpu;
	struct sum_codec codec;
	size_t floats;
	float *gradients[REPLICAS]; /* (P) [0] is the gradient of the device's replica */
	float *sum;                 /* (P) the CPU's sum */
	float *decoded;             /* (P) a decoded part */
	/* (4 P) A slice that the CPU has encoded: each replica's part, and the sum. No format takes
	 * more bytes than fp32. */
	unsigned char *parts[REPLICAS], *encoded;
	unsigned char *made; /* (4 P) a slice that the device has encoded */
	unsigned differing;
};

static void fill(struct sums *x, bool finite)
{
	static const float odd[] = { NAN,   INFINITY, -INFINITY, 1e-40f,
				     -0.0f, 1e38f,    3e38f,     -1e-30f };
	struct rng rng;

	rng_init(&rng, 21);
	for (size_t i = 0; i < REPLICAS; i++)
		for (size_t k = 0; k < x->floats; k++) {
			bool is_odd = !finite && k % 101 == 5;

			x->gradients[i][k] =
				is_odd ? odd[(k / 101 + i) % 8] : (float)rng_normal(&rng);
		}
	memcpy(stage_gradient(x->device), x->gradients[0], x->floats * sizeof(float));
	stage_changed(x->device);
}

/* Returns a replica's gradient. Replica `rank`, which is on the device, has gradients[0]. */
static const float *gradient_of(const struct sums *x, uint32_t replica, uint32_t rank)
{
	return x->gradients[replica == rank ? 0 : replica < rank ? replica + 1 : replica];
}

/* Encodes and adds the replicas' parts of a slice on the CPU, and encodes and decodes the sum. */
static void add_on_cpu(struct sums *x, size_t from, size_t n, uint32_t replicas, uint32_t rank)
{
	float *sum = x->sum + from;

	for (uint32_t i = 0; i < replicas; i++) {
		sum_codec_encode(&x->codec, x->parts[i], gradient_of(x, i, rank) + from, from, n);
		sum_codec_decode(&x->codec, i == 0 ? sum : x->decoded, x->parts[i], from, n);
		if (i > 0)
			stage_add(sum, x->decoded, n);
	}
	sum_codec_encode(&x->codec, x->encoded, sum, from, n);
	sum_codec_decode(&x->codec, sum, x->encoded, from, n);
}

static void compare_slice(struct sums *x, const unsigned char *expected, size_t from, size_t n)
{
	x->differing += memcmp(x->made, expected, sum_codec_bytes(&x->codec, from, n)) != 0;
}

/* The device adds the parts of the slice that it owns. It encodes its part of another replica's
 * slice, and decodes that slice's sum. */
static int check_slice(struct sums *x, uint32_t slice, uint32_t replicas, uint32_t rank)
{
	const void *parts[REPLICAS];
	size_t from, n;
	int rc;

	sum_codec_slice(x->floats, replicas, slice, &from, &n);
	add_on_cpu(x, from, n, replicas, rank);
	if (slice != rank) {
		rc = stage_encode_gradient(x->device, &x->codec, from, n, x->made);
		compare_slice(x, x->parts[rank], from, n);
		return rc ? rc : stage_put_sum(x->device, &x->codec, from, n, x->encoded);
	}
	for (uint32_t i = 0; i < replicas; i++)
		parts[i] = i == rank ? NULL : x->parts[i];
	rc = stage_add_parts(x->device, &x->codec, from, n, parts, replicas, x->made);
	compare_slice(x, x->encoded, from, n);
	return rc;
}

static int check_sum(struct sums *x, uint32_t replicas, uint32_t rank)
{
	double squares = -1, expected;
	uint64_t hashes[REPLICAS];
	size_t from, n;
	int rc = 0;

	for (uint32_t j = 0; j < replicas && !rc; j++)
		rc = check_slice(x, j, replicas, rank);
	if (!rc)
		rc = stage_check_sum(x->device, replicas, hashes, &squares);
	for (uint32_t j = 0; j < replicas && !rc; j++) {
		sum_codec_slice(x->floats, replicas, j, &from, &n);
		x->differing += hashes[j] != hash_floats(x->sum + from, n);
	}
	expected = squares_sum(x->sum, x->floats);
	x->differing += squares != expected && !(isnan(squares) && isnan(expected));
	return rc;
}

/* Makes all sums of the present gradients. The device's gradient must stay as it was, so that a sum
 * can restart. */
static int check_sums(struct sums *x)
{
	int rc = 0;

	for (uint32_t n = 1; n <= REPLICAS; n++)
		for (uint32_t rank = 0; rank < n && !rc; rank++)
			rc = check_sum(x, n, rank);
	x->differing += memcmp(stage_gradient(x->device), x->gradients[0],
			       x->floats * sizeof(float)) != 0;
	return rc;
}

static int check_step(struct sums *x)
{
	const struct adamw h = { 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f };
	int rc = stage_step(x->device, stage_summed(x->device), 0.5f, &h, 1);

	stage_step(x->cpu, x->sum, 0.5f, &h, 1);
	x->differing += stage_hash(x->device) != stage_hash(x->cpu);
	return rc;
}

static int make_stages(struct sums *x, const struct model_config *c, const char *device,
		       struct error *err)
{
	struct stage_options o = { .slots = 1, .batch = 1, .sequence = 1, .seed = 3, .sums = true };
	int rc = stage_new(&x->cpu, c, 0, &o, err);

	o.device = device;
	return rc ? rc : stage_new(&x->device, c, 0, &o, err);
}

static void take_memory(struct sums *x)
{
	x->floats = stage_parameters(x->cpu);
	for (int i = 0; i < REPLICAS; i++) {
		x->gradients[i] = alloc_array(x->floats, sizeof(float));
		x->parts[i] = alloc_array(x->floats, sizeof(float));
	}
	x->sum = alloc_array(x->floats, sizeof(float));
	x->decoded = alloc_array(x->floats, sizeof(float));
	x->encoded = alloc_array(x->floats, sizeof(float));
	x->made = alloc_array(x->floats, sizeof(float));
}

static void free_all(struct sums *x)
{
	for (int i = 0; i < REPLICAS; i++) {
		free(x->gradients[i]);
		free(x->parts[i]);
	}
	free(x->sum);
	free(x->decoded);
	free(x->encoded);
	free(x->made);
	stage_free(x->cpu);
	stage_free(x->device);
}

int sums_check(const struct model_config *c, const char *device, enum tensor_format format,
	       unsigned *differing, struct error *err)
{
	struct sums x = { .differing = 0 };
	struct sum_codec *codecs = NULL;
	int rc = sum_codecs_new(&codecs, c, format, err);

	if (!rc)
		rc = make_stages(&x, c, device, err);
	if (!rc) {
		x.codec = codecs[0];
		take_memory(&x);
		for (int finite = 0; finite < 2 && !rc; finite++) {
			fill(&x, finite);
			rc = check_sums(&x);
		}
		rc = rc ? rc : check_step(&x);
		if (rc)
			error_set(err, rc, "a sum failed: %s", stage_failure(x.device));
	}
	if (!rc)
		*differing = x.differing;
	free_all(&x);
	sum_codecs_free(codecs);
	return rc;
}
