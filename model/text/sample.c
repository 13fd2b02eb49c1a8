/* Draws a token from logits by temperature and top-p. */
#include "model/text/sample.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

struct candidate {
	double p;
	int32_t token;
};

struct sampler {
	size_t n;
	struct candidate *candidates; /* the n tokens to draw from */
};

struct sampler *sampler_new(size_t vocab)
{
	struct sampler *s = alloc_new(sizeof(*s));

	s->n = vocab;
	s->candidates = calloc(vocab, sizeof(*s->candidates));
	if (s->candidates)
		return s;
	free(s);
	return NULL;
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	free(s->candidates);
	free(s);
}

static int compare_likelihood(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->p != y->p)
		return x->p < y->p ? 1 : -1;
	return (x->token > y->token) - (x->token < y->token);
}

int32_t sampler_draw(struct sampler *s, const float *logits, float temperature, float top_p,
		     struct rng *r)
{
	struct candidate *c = s->candidates;
	size_t best = 0, n = 0;
	double sum = 0, kept = 0, at;

	for (size_t i = 0; i < s->n; i++) {
		if (!isfinite(logits[i]))
			return -1;
		if (logits[i] > logits[best])
			best = i;
	}
	if (temperature <= 0)
		return (int32_t)best;
	for (size_t i = 0; i < s->n; i++) {
		c[i].p = exp((double)(logits[i] - logits[best]) / (double)temperature);
		c[i].token = (int32_t)i;
		sum += c[i].p;
	}
	qsort(c, s->n, sizeof(*c), compare_likelihood);
	while (n < s->n && (n == 0 || kept < (double)top_p * sum))
		kept += c[n++].p;
	at = rng_uniform(r) * kept;
	for (size_t i = 0; i < n; i++) {
		at -= c[i].p;
		if (at < 0)
			return c[i].token;
	}
	return c[n - 1].token;
}
