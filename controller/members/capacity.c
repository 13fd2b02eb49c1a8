/* capacity.c - estimates the memory and time that a stage needs, for the first plan (capacity.h).
 *
 * If the model's layers or the optimizer's state change, this file has to be changed, too. */
#include "controller/members/capacity.h"

/* Returns the number of layers of the stage with the most layers. */
static double most_layers(const struct model_config *m)
{
	uint32_t most = 0;

	for (uint32_t s = 0; s < m->n_stages; s++)
		most = model_layer_count(m, s) > most ? model_layer_count(m, s) : most;
	return most;
}

double capacity_unit_layers(const struct model_config *m)
{
	return m->stage_layers.n > 0 ? (double)m->n_layers / m->n_stages : most_layers(m);
}

double capacity_slot_bytes(const struct model_config *m, const struct hyperparameters *r)
{
	double rows = (double)r->batch * r->sequence, dim = m->dim;
	double packed = dim + 2.0 * m->n_kv_heads * (dim / m->n_heads);
	/* Count of the numbers that a layer keeps: its input; the packed q, k and v; the output of
	 * attention; the residual stream after attention; gate and up; the normaliser of attention;
	 * and the factors of two norms. */
	double layer = rows * (3 * dim + packed + 2.0 * m->ffn_dim + m->n_heads + 2);

	return sizeof(float) * (most_layers(m) * layer + 4 * rows * dim);
}

double capacity_stage_bytes(uint64_t parameters)
{
	return sizeof(float) * (double)parameters * (4 + 2 + 4);
}

int capacity_slots(const struct model_config *m, const struct hyperparameters *r,
		   uint64_t parameters, double bytes, int most)
{
	double left = bytes - capacity_stage_bytes(parameters),
	       n = left / capacity_slot_bytes(m, r);

	return n < 1 ? 1 : n < most ? (int)n : most;
}

double capacity_loss_ratio(const struct model_config *m, const struct hyperparameters *r)
{
	double dim = m->dim, kv = (double)m->n_kv_heads * (dim / m->n_heads);
	double layer = 2 * (dim * (dim + 2 * kv) + dim * dim + 3 * dim * m->ffn_dim) +
		       2.0 * r->sequence * dim;

	return 3 * 2 * dim * m->vocab / (capacity_unit_layers(m) * layer);
}
