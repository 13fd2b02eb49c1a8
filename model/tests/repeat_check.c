/* Repeats passes at the sizes of real work. A race between blocks, or an algorithm that is chosen
 * by load, would show there. A check at small sizes fills only a part of a GPU. */
#include "model/tests/repeat_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

struct repeat {
	struct stage *stage;
	float *in, *grad;                      /* (B, T, C) the inputs */
	float *out, *grad_in;                  /* (B, T, C) the results of a run */
	float *first_out, *first_grad_in;      /* (B, T, C) the results of the first run */
	float *first_gradient;                 /* (P) the first run's gradient of the weights */
};

static int take_memory(struct repeat *r, struct error *err)
{
	float **const activations[] = { &r->in,      &r->grad,      &r->out,
					&r->grad_in, &r->first_out, &r->first_grad_in };
	size_t n = stage_activation(r->stage);
	int rc = 0;

	for (size_t i = 0; i < sizeof(activations) / sizeof(activations[0]); i++)
		if (!(*activations[i] = malloc(n * sizeof(float))))
			rc = -ENOMEM;
	r->first_gradient = malloc(stage_parameters(r->stage) * sizeof(float));
	if (rc || !r->first_gradient)
		return error_set(err, -ENOMEM, "no memory for the results of a layer");
	return 0;
}

static void fill_inputs(struct repeat *r)
{
	struct rng rng;

	rng_init(&rng, 7);
	for (size_t i = 0; i < stage_activation(r->stage); i++) {
		r->in[i] = (float)rng_normal(&rng);
		r->grad[i] = (float)rng_normal(&rng);
	}
}

static int run_once(struct repeat *r, struct error *err)
{
	int rc = stage_zero_gradient(r->stage);

	if (!rc)
		rc = stage_forward(r->stage, 0, NULL, r->in, r->out, true);
	if (!rc)
		rc = stage_backward(r->stage, 0, r->grad, r->grad_in, true);
	return rc ? error_set(err, rc, "a pass failed: %s", stage_failure(r->stage)) : 0;
}

/* Returns true if this run has the same results as the first run. */
static bool is_same(struct repeat *r, bool first)
{
	size_t size = stage_activation(r->stage) * sizeof(float);
	size_t all = stage_parameters(r->stage) * sizeof(float);
	const float *gradient = stage_gradient(r->stage);

	if (first) {
		memcpy(r->first_out, r->out, size);
		memcpy(r->first_grad_in, r->grad_in, size);
		memcpy(r->first_gradient, gradient, all);
	}
	return memcmp(r->first_out, r->out, size) == 0 &&
	       memcmp(r->first_grad_in, r->grad_in, size) == 0 &&
	       memcmp(r->first_gradient, gradient, all) == 0;
}

int repeat_check(const struct model_config *c, const struct stage_options *o, unsigned times,
		 unsigned *differing, struct error *err)
{
	struct model_config one = *c;
	struct stage_options options = *o;
	struct repeat r = { .stage = NULL };
	int rc;

	one.n_layers = one.n_stages = 2; /* stage 1 has one layer */
	memset(&one.stage_layers, 0, sizeof(one.stage_layers));
	options.slots = 1;
	*differing = 0;
	rc = stage_new(&r.stage, &one, 1, &options, err);
	if (!rc)
		rc = take_memory(&r, err);
	if (!rc)
		fill_inputs(&r);
	for (unsigned i = 0; i < times && !rc; i++) {
		rc = run_once(&r, err);
		*differing += !rc && !is_same(&r, i == 0);
	}
	free(r.in);
	free(r.grad);
	free(r.out);
	free(r.grad_in);
	free(r.first_out);
	free(r.first_grad_in);
	free(r.first_gradient);
	stage_free(r.stage);
	return rc;
}
