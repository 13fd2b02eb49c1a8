#include "verify/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/bf16.h"

/* Rounded as where it left its node. No path visits a stage twice, so every output goes to another
 * stage, unless the path has but one: then all of the chain is of that stage, and nothing leaves. */
static void round_output(const struct chain *m, const struct chain_means *t, float *output)
{
	if (t->bf16 && m->route->n_hops > 1)
		bf16_round(output, t->activation);
}

int chain_make(struct chain *m, const struct store_route *route, size_t tokens, size_t activation)
{
	*m = (struct chain){ .route = route, .left = route->n_hops };
	m->tokens = malloc(2 * tokens * sizeof(*m->tokens));
	m->inputs = malloc((route->n_hops + 1) * activation * sizeof(float));
	m->gradient = malloc(activation * sizeof(float));
	m->with = calloc(route->n_hops + 1, sizeof(struct executor *));
	if (!m->tokens || !m->inputs || !m->gradient || !m->with)
		return -ENOMEM;
	m->targets = m->tokens + tokens;
	return 0;
}

void chain_clear(struct chain *m)
{
	free(m->tokens);
	free(m->inputs);
	free(m->gradient);
	free(m->entering);
	free(m->with);
}

bool chain_ready(const struct chain *m, char kind, uint8_t stage)
{
	if (m->forwarded < m->route->n_hops)
		return false;
	if (kind == 'L')
		return !m->lost;
	if (m->entering)
		return true;
	return m->lost && m->left > 0 && m->route->stages[m->left - 1] == stage;
}

/* What enters a hop: tokens, or an activation. */
static const int32_t *tokens_of(const struct chain *m, uint32_t hop)
{
	return hop == 0 ? m->tokens : NULL;
}

static const float *input_of(const struct chain *m, const struct chain_means *t, uint32_t hop)
{
	return hop == 0 ? NULL : m->inputs + hop * t->activation;
}

static int run_backward(const struct chain *m, const struct chain_means *t, struct executor *e,
			uint32_t sum, uint32_t hop, const float *in, float *out)
{
	int rc = executor_backward(e, m->route->stages[hop], sum, tokens_of(m, hop),
				   input_of(m, t, hop), in, hop ? out : NULL);

	if (rc == 0 && hop)
		round_output(m, t, out);
	return rc;
}

static int compute_loss(const struct chain *m, const struct chain_means *t, struct executor *e,
			uint32_t sum, float *loss, float *gradient)
{
	int rc = executor_loss(e, sum, m->inputs + m->route->n_hops * t->activation, m->targets,
			       loss, gradient);

	if (rc == 0)
		round_output(m, t, gradient);
	return rc;
}

int chain_forward(struct chain *m, const struct chain_means *t)
{
	uint32_t hop = m->forwarded;
	float *out = m->inputs + (hop + 1) * t->activation;
	int rc = executor_forward(m->with[hop], m->route->stages[hop], tokens_of(m, hop),
				  input_of(m, t, hop), out);

	if (rc == 0)
		round_output(m, t, out);
	return rc;
}

int chain_loss(struct chain *m, const struct chain_means *t, struct executor *e, uint32_t sum,
	       unsigned worker)
{
	return compute_loss(m, t, e, sum, &m->loss,
			    m->entering ? t->spare[worker] : m->gradient);
}

int chain_backward(struct chain *m, const struct chain_means *t, struct executor *e, uint32_t sum,
		   uint8_t stage, unsigned worker)
{
	if (!m->entering)
		return run_backward(m, t, e, sum, m->left - 1, m->gradient, t->spare[worker]);
	for (uint32_t hop = 0; hop < m->route->n_hops; hop++)
		if (m->route->stages[hop] == stage)
			return run_backward(m, t, e, sum, hop,
					    m->entering + hop * t->activation,
					    t->spare[worker]);
	return -EPROTO;
}

void chain_forwarded(struct chain *m)
{
	m->forwarded++;
}

void chain_lost(struct chain *m)
{
	m->lost = true;
}

/* The gradient made becomes the chain's; the one used up is spare. */
void chain_went_back(struct chain *m, struct chain_means *t, unsigned worker)
{
	float *used = m->gradient;

	if (m->entering)
		return;
	m->gradient = t->spare[worker];
	t->spare[worker] = used;
	m->left--;
}

int chain_unwind(struct chain *m, const struct chain_means *t)
{
	size_t bytes = t->activation * sizeof(float);
	float *entering = malloc(m->route->n_hops * bytes);
	float unused;
	int rc = 0;

	if (!entering)
		return -ENOMEM;
	if (!m->lost)
		rc = compute_loss(m, t, m->with[0], EXECUTOR_NO_SUM, &unused, m->gradient);
	if (m->left > 0)
		memcpy(entering + (m->left - 1) * t->activation, m->gradient, bytes);
	for (uint32_t h = m->left; rc == 0 && h-- > 1;)
		rc = run_backward(m, t, m->with[h], EXECUTOR_NO_SUM, h,
				  entering + h * t->activation,
				  entering + (h - 1) * t->activation);
	if (rc != 0) {
		free(entering);
		return rc;
	}
	m->entering = entering;
	return 0;
}
