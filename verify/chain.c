/* Computes one microbatch as its nodes did, including the rounding in transfers between stages.
 * The record says in which order each node counted its gradients. This module therefore offers
 * single steps, and the replay decides on the order of the steps. */
#include "verify/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rounds an output in the same way as its transfer between nodes rounded it. A path of one hop
 * has no transfer. In a longer path every output is transferred, because the next hop is always
 * in another stage. Returns 0 or -ENOMEM. */
static int round_output(const struct chain *m, const struct chain_setup *t,
			const struct codec *codec, float *output)
{
	return m->route->n_hops > 1 ? codec_round(codec, output, t->activation) : 0;
}

int chain_init(struct chain *m, const struct route *route, size_t tokens, size_t activation)
{
	*m = (struct chain){ .route = route, .backward_left = route->n_hops };
	m->tokens = malloc(2 * tokens * sizeof(*m->tokens));
	m->inputs = malloc((route->n_hops + 1) * activation * sizeof(float));
	m->gradient = malloc(activation * sizeof(float));
	if (!m->tokens || !m->inputs || !m->gradient)
		return -ENOMEM;
	m->targets = m->tokens + tokens;
	return 0;
}

void chain_fini(struct chain *m)
{
	free(m->tokens);
	free(m->inputs);
	free(m->gradient);
	free(m->output_gradients);
}

bool chain_ready(const struct chain *m, char kind, uint8_t stage)
{
	if (m->forward_done < m->route->n_hops)
		return false;
	if (kind == 'L')
		return !m->loss_done;
	if (m->output_gradients)
		return true;
	return m->loss_done && m->backward_left > 0 &&
	       m->route->stages[m->backward_left - 1] == stage;
}

/* Returns the tokens for hop 0, and NULL for every other hop, which reads an activation. */
static const int32_t *tokens_of(const struct chain *m, uint32_t hop)
{
	return hop == 0 ? m->tokens : NULL;
}

static const float *input_of(const struct chain *m, const struct chain_setup *t, uint32_t hop)
{
	return hop == 0 ? NULL : m->inputs + hop * t->activation;
}

static int run_backward(const struct chain *m, const struct chain_setup *t, uint32_t sum,
			uint32_t hop, const float *output_gradient, float *input_gradient)
{
	int rc = executor_backward(t->executor, m->route->stages[hop], sum, tokens_of(m, hop),
				   input_of(m, t, hop), output_gradient,
				   hop ? input_gradient : NULL);

	if (rc == 0 && hop)
		rc = round_output(m, t, &t->gradient_codec, input_gradient);
	return rc;
}

static int compute_loss(const struct chain *m, const struct chain_setup *t, uint32_t sum,
			float *loss, float *gradient)
{
	int rc = executor_loss(t->executor, sum, m->inputs + m->route->n_hops * t->activation,
			       m->targets, loss, gradient);

	if (rc == 0)
		rc = round_output(m, t, &t->gradient_codec, gradient);
	return rc;
}

int chain_forward(struct chain *m, const struct chain_setup *t)
{
	uint32_t hop = m->forward_done;
	float *out = m->inputs + (hop + 1) * t->activation;
	int rc = executor_forward(t->executor, m->route->stages[hop], tokens_of(m, hop),
				  input_of(m, t, hop), out);

	if (rc == 0)
		rc = round_output(m, t, &t->activation_codec, out);
	return rc;
}

int chain_loss(struct chain *m, const struct chain_setup *t, uint32_t sum, unsigned worker)
{
	return compute_loss(m, t, sum, &m->loss,
			    m->output_gradients ? t->spare[worker] : m->gradient);
}

int chain_backward(struct chain *m, const struct chain_setup *t, uint32_t sum, uint8_t stage,
		   unsigned worker)
{
	if (!m->output_gradients)
		return run_backward(m, t, sum, m->backward_left - 1, m->gradient,
				    t->spare[worker]);
	for (uint32_t hop = 0; hop < m->route->n_hops; hop++)
		if (m->route->stages[hop] == stage)
			return run_backward(m, t, sum, hop,
					    m->output_gradients + hop * t->activation,
					    t->spare[worker]);
	return -EPROTO;
}

void chain_end_forward(struct chain *m)
{
	m->forward_done++;
}

void chain_end_loss(struct chain *m)
{
	m->loss_done = true;
}

/* Swaps two buffers: the chain takes the gradient that the worker has computed, and the chain's
 * former gradient becomes the worker's spare buffer. */
void chain_end_backward(struct chain *m, struct chain_setup *t, unsigned worker)
{
	float *used = m->gradient;

	if (m->output_gradients)
		return;
	m->gradient = t->spare[worker];
	t->spare[worker] = used;
	m->backward_left--;
}

int chain_precompute(struct chain *m, const struct chain_setup *t)
{
	size_t bytes = t->activation * sizeof(float);
	float *gradients = malloc(m->route->n_hops * bytes);
	float unused;
	int rc = 0;

	if (!gradients)
		return -ENOMEM;
	if (!m->loss_done)
		rc = compute_loss(m, t, EXECUTOR_NO_SUM, &unused, m->gradient);
	if (m->backward_left > 0)
		memcpy(gradients + (m->backward_left - 1) * t->activation, m->gradient, bytes);
	for (uint32_t h = m->backward_left; rc == 0 && h-- > 1;)
		rc = run_backward(m, t, EXECUTOR_NO_SUM, h, gradients + h * t->activation,
				  gradients + (h - 1) * t->activation);
	if (rc != 0) {
		free(gradients);
		return rc;
	}
	m->output_gradients = gradients;
	return 0;
}
