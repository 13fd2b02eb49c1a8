#include "model/tests/run.h"

#include <stdlib.h>

#include "base/rng.h"
#include "base/tests/test.h"

void run_init(struct run *r, const struct model_config *c, uint32_t batch, uint32_t sequence,
	      uint32_t threads, uint64_t seed)
{
	struct stage_options o = { .slots = 2,
				   .batch = batch,
				   .sequence = sequence,
				   .threads = threads,
				   .seed = seed };
	size_t rows = (size_t)batch * sequence;
	struct error err;
	struct rng rng;

	*r = (struct run){ .config = *c, .batch = batch, .sequence = sequence };
	for (uint32_t i = 0; i < c->n_stages; i++)
		assert_int_equal(stage_new(&r->stages[i], c, i, &o, &err), 0);
	for (uint32_t i = 0; i <= c->n_stages; i++)
		r->x[i] = calloc(rows * c->dim, sizeof(float));
	for (int i = 0; i < 2; i++)
		r->grad[i] = calloc(rows * c->dim, sizeof(float));
	r->tokens = calloc(rows, sizeof(*r->tokens));
	r->targets = calloc(rows, sizeof(*r->targets));
	rng_init(&rng, seed + 1);
	for (size_t i = 0; i < rows; i++) {
		r->tokens[i] = (int32_t)rng_below(&rng, c->vocab);
		r->targets[i] = (int32_t)rng_below(&rng, c->vocab);
	}
	r->targets[rows / 2] = -1;
}

void run_fini(struct run *r)
{
	for (uint32_t i = 0; i < r->config.n_stages; i++)
		stage_free(r->stages[i]);
	for (uint32_t i = 0; i <= r->config.n_stages; i++)
		free(r->x[i]);
	free(r->grad[0]);
	free(r->grad[1]);
	free(r->tokens);
	free(r->targets);
}

float run_microbatch(struct run *r, const uint32_t *path, size_t n, bool train, bool count)
{
	float loss = 0, *down = r->grad[0], *spare = r->grad[1];

	assert_int_equal(stage_forward(r->stages[0], 1, r->tokens, NULL, r->x[0], train), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(
			stage_forward(r->stages[path[i]], 1, NULL, r->x[i], r->x[i + 1], train),
			0);
	assert_int_equal(stage_loss(r->stages[0], 1, r->x[n], r->targets, &loss,
				    train ? down : NULL, count),
			 0);
	if (!train)
		return loss;
	for (size_t i = n; i-- > 0;) {
		float *up = spare;

		assert_int_equal(stage_backward(r->stages[path[i]], 1, down, up, count), 0);
		spare = down;
		down = up;
	}
	assert_int_equal(stage_backward(r->stages[0], 1, down, NULL, count), 0);
	return loss;
}
