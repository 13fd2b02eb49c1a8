#include "model/tests/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double *weights_of(const struct reference *r, enum tensor_role role,
				uint32_t layer)
{
	for (size_t i = 0; i < r->table->n; i++)
		if (r->table->tensors[i].role == role && r->table->tensors[i].layer == layer)
			return r->weights[i];
	abort();
}

/* Computes y (rows) = w (rows, cols) x. */
static void apply(double *y, const double *w, const double *x, size_t rows, size_t cols)
{
	for (size_t i = 0; i < rows; i++) {
		y[i] = 0;
		for (size_t j = 0; j < cols; j++)
			y[i] += w[i * cols + j] * x[j];
	}
}

static void rms(double *y, const double *w, const double *x, size_t n, double eps)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] * x[i];
	for (size_t i = 0; i < n; i++)
		y[i] = x[i] / sqrt(sum / (double)n + eps) * w[i];
}

/* Scales a frequency of RoPE according to its wavelength in positions. The transformers library
 * describes this scaling. */
static double scaled(const struct model_config *c, double frequency)
{
	double wavelength = 2 * acos(-1) / frequency, context = c->rope_original_context;
	double low = (double)c->rope_low_freq_factor, high = (double)c->rope_high_freq_factor;
	double divided = frequency / (double)c->rope_factor, smooth;

	if (context == 0 || wavelength > context / low)
		return divided;
	if (wavelength < context / high)
		return frequency;
	smooth = (context / wavelength - low) / (high - low);
	return (1 - smooth) * divided + smooth * frequency;
}

static void rotate(const struct model_config *c, double *x, size_t heads, double position)
{
	size_t d = c->dim / c->n_heads;

	for (size_t h = 0; h < heads; h++)
		for (size_t i = 0; i < d / 2; i++) {
			double frequency = pow((double)c->rope_theta, -2.0 * (double)i / (double)d);
			double angle = position *
				       (c->rope_factor > 0 ? scaled(c, frequency) : frequency);
			double *a = &x[h * d + i], *b = &x[h * d + i + d / 2];
			double p = *a, q = *b;

			*a = p * cos(angle) - q * sin(angle);
			*b = q * cos(angle) + p * sin(angle);
		}
}

static void attend(const struct reference *r, double *out, const double *q, const double *k,
		   const double *v)
{
	const struct model_config *c = r->config;
	size_t d = c->dim / c->n_heads, kv = d * c->n_kv_heads,
	       group = c->n_heads / c->n_kv_heads;
	double *p = calloc(r->sequence, sizeof(*p));

	for (size_t t = 0; t < r->sequence; t++)
		for (size_t h = 0; h < c->n_heads; h++) {
			size_t g = h / group;
			double sum = 0;

			for (size_t u = 0; u <= t; u++) {
				double s = 0;

				for (size_t i = 0; i < d; i++)
					s += q[t * c->dim + h * d + i] * k[u * kv + g * d + i];
				p[u] = exp(s / sqrt((double)d));
				sum += p[u];
			}
			for (size_t i = 0; i < d; i++) {
				out[t * c->dim + h * d + i] = 0;
				for (size_t u = 0; u <= t; u++)
					out[t * c->dim + h * d + i] +=
						p[u] / sum * v[u * kv + g * d + i];
			}
		}
	free(p);
}

/* Computes one layer for one sequence x (T, C), in place. */
static void layer(const struct reference *r, uint32_t n, double *x)
{
	const struct model_config *c = r->config;
	size_t dim = c->dim, f = c->ffn_dim, d = dim / c->n_heads, kv = d * c->n_kv_heads;
	size_t length = r->sequence;
	double eps = (double)c->norm_eps;
	double *q = calloc(length * dim, sizeof(*q)), *k = calloc(length * kv, sizeof(*k));
	double *v = calloc(length * kv, sizeof(*v)), *a = calloc(length * dim, sizeof(*a));
	double *y = calloc(dim, sizeof(*y)), *gate = calloc(f, sizeof(*gate));
	double *up = calloc(f, sizeof(*up));

	for (size_t t = 0; t < length; t++) {
		rms(y, weights_of(r, TENSOR_NORM1, n), x + t * dim, dim, eps);
		apply(q + t * dim, weights_of(r, TENSOR_Q, n), y, dim, dim);
		apply(k + t * kv, weights_of(r, TENSOR_K, n), y, kv, dim);
		apply(v + t * kv, weights_of(r, TENSOR_V, n), y, kv, dim);
		rotate(c, q + t * dim, c->n_heads, (double)t);
		rotate(c, k + t * kv, c->n_kv_heads, (double)t);
	}
	attend(r, a, q, k, v);
	for (size_t t = 0; t < length; t++) {
		double *at = x + t * dim;

		apply(y, weights_of(r, TENSOR_O, n), a + t * dim, dim, dim);
		for (size_t i = 0; i < dim; i++)
			at[i] += y[i];
		rms(y, weights_of(r, TENSOR_NORM2, n), at, dim, eps);
		apply(gate, weights_of(r, TENSOR_GATE, n), y, f, dim);
		apply(up, weights_of(r, TENSOR_UP, n), y, f, dim);
		for (size_t i = 0; i < f; i++)
			up[i] *= gate[i] / (1 + exp(-gate[i]));
		apply(y, weights_of(r, TENSOR_DOWN, n), up, dim, f);
		for (size_t i = 0; i < dim; i++)
			at[i] += y[i];
	}
	free(q);
	free(k);
	free(v);
	free(a);
	free(y);
	free(gate);
	free(up);
}

static void stage(const struct reference *r, uint32_t s, double *x)
{
	for (uint32_t i = 0; i < model_layer_count(r->config, s); i++)
		layer(r, model_first_layer(r->config, s) + i, x);
}

/* Returns the sum of the cross entropy over one sequence x (T, C). */
static double sequence_loss(const struct reference *r, const double *x, const int32_t *targets,
			    size_t *counted)
{
	const struct model_config *c = r->config;
	const double *head = weights_of(r, c->tied ? TENSOR_EMBED : TENSOR_HEAD, 0);
	double *y = calloc(c->dim, sizeof(*y)), *logits = calloc(c->vocab, sizeof(*logits));
	double loss = 0;

	for (size_t t = 0; t < r->sequence; t++) {
		double sum = 0;

		if (targets[t] < 0)
			continue;
		rms(y, weights_of(r, TENSOR_LAST_NORM, 0), x + t * c->dim, c->dim,
		    (double)c->norm_eps);
		apply(logits, head, y, c->vocab, c->dim);
		for (size_t i = 0; i < c->vocab; i++)
			sum += exp(logits[i]);
		loss += log(sum) - logits[targets[t]];
		++*counted;
	}
	free(y);
	free(logits);
	return loss;
}

double reference_loss(const struct reference *r, const uint32_t *path, size_t n,
		      const int32_t *tokens, const int32_t *targets, double *hidden)
{
	const struct model_config *c = r->config;
	const double *embed = weights_of(r, TENSOR_EMBED, 0);
	size_t per = (size_t)r->sequence * c->dim, counted = 0;
	double *x = calloc(per, sizeof(*x)), loss = 0;

	for (size_t b = 0; b < r->batch; b++) {
		for (size_t t = 0; t < r->sequence; t++)
			memcpy(x + t * c->dim,
			       embed + (size_t)tokens[b * r->sequence + t] * c->dim,
			       c->dim * sizeof(*x));
		stage(r, 0, x);
		for (size_t i = 0; i < n; i++)
			stage(r, path[i], x);
		if (hidden)
			memcpy(hidden + b * per, x, per * sizeof(*x));
		loss += sequence_loss(r, x, targets + b * r->sequence, &counted);
	}
	free(x);
	return loss / (double)counted;
}
