#include "verify/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int chain_make(struct chain *m, const struct store_route *route, size_t tokens, size_t activation)
{
	*m = (struct chain){ .route = route, .left = route->n_hops };
	m->tokens = malloc(2 * tokens * sizeof(*m->tokens));
	m->inputs = malloc((route->n_hops + 1) * activation * sizeof(float));
	m->gradient = malloc(activation * sizeof(float));
	if (!m->tokens || !m->inputs || !m->gradient)
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

static int forward(const struct chain *m, const struct chain_means *t, uint32_t hop, float *out)
{
	return stage_forward(t->stages[m->route->stages[hop]], 0, hop == 0 ? m->tokens : NULL,
			     hop == 0 ? NULL : m->inputs + hop * t->activation, out, true);
}

static int backward(const struct chain *m, const struct chain_means *t, uint32_t hop, const float *in,
		    float *out, unsigned worker, bool count)
{
	int rc = forward(m, t, hop, t->scratch[worker]);

	return rc ? rc : stage_backward(t->stages[m->route->stages[hop]], 0, in, hop ? out : NULL, count);
}

int chain_forward(struct chain *m, const struct chain_means *t)
{
	return forward(m, t, m->forwarded, m->inputs + (m->forwarded + 1) * t->activation);
}

int chain_loss(struct chain *m, const struct chain_means *t, unsigned worker)
{
	return stage_loss(t->stages[0], 0, m->inputs + m->route->n_hops * t->activation, m->targets,
			  &m->loss, m->entering ? t->spare[worker] : m->gradient, true);
}

int chain_backward(struct chain *m, const struct chain_means *t, uint8_t stage, unsigned worker)
{
	uint32_t hop = m->left - 1;

	if (!m->entering)
		return backward(m, t, hop, m->gradient, t->spare[worker], worker, true);
	for (hop = 0; hop < m->route->n_hops; hop++)
		if (m->route->stages[hop] == stage)
			return backward(m, t, hop, m->entering + hop * t->activation,
					t->spare[worker], worker, true);
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
		rc = stage_loss(t->stages[0], 0, m->inputs + m->route->n_hops * t->activation,
				m->targets, &unused, m->gradient, false);
	if (m->left > 0)
		memcpy(entering + (m->left - 1) * t->activation, m->gradient, bytes);
	for (uint32_t h = m->left; rc == 0 && h-- > 1;)
		rc = backward(m, t, h, entering + h * t->activation,
			      entering + (h - 1) * t->activation, 0, false);
	if (rc != 0) {
		free(entering);
		return rc;
	}
	m->entering = entering;
	return 0;
}
