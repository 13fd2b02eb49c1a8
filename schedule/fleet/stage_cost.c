/* Memory and time of a stage on a card. */
#include "schedule/fleet/stage_cost.h"

#include <math.h>

enum {
	BF16_BYTES = 2,     /* bytes of a weight that a pass reads */
	GRADIENT_BYTES = 8, /* bytes of a weight's gradient in fp32, which is read and written */
	BACKWARD = 2,       /* work of a backward pass, in multiples of a forward pass */
	LOSS = 3,           /* work of the loss, in multiples of a forward pass through the head */
};

double stage_cost_weights(const struct model_shape *m, int layers, bool has_ends)
{
	return layers * m->layer_weights + (has_ends ? m->end_weights : 0);
}

double stage_cost_bytes(const struct model_shape *m, int layers, bool has_ends, int batch,
			enum shape_recompute level, int slots)
{
	double sequences = batch;
	double bytes = m->fixed_bytes + m->weight_bytes * stage_cost_weights(m, layers, has_ends) +
		       sequences * m->scratch_bytes +
		       slots * layers * sequences * m->kept_bytes[level];

	if (has_ends)
		bytes += sequences * (m->end_scratch_bytes + slots * m->slot_bytes) +
			 fmin(sequences * m->logits_bytes, m->most_logits_bytes);
	return bytes;
}

struct stage_times stage_cost_times(const struct model_shape *m, const struct fleet_machines *e,
				    double layers, int batch, enum shape_recompute level)
{
	double weights = layers * m->layer_weights;
	double work_s = layers * batch * m->layer_flop / e->flop_per_s;
	double read_s = BF16_BYTES * weights / e->bytes_per_s;
	double backward = BACKWARD + (level == SHAPE_BLOCK);

	return (struct stage_times){
		.forward_s = fmax(work_s, read_s),
		.backward_s =
			fmax(backward * work_s, read_s + GRADIENT_BYTES * weights / e->bytes_per_s),
		.loss_s = LOSS * batch * m->head_flop / e->flop_per_s,
	};
}

struct stage_fit stage_cost_fit(const struct model_shape *m, const struct fleet_machines *e,
				int layers, bool has_ends, int batch, int wanted)
{
	double most = e->most_slots > 0 ? fmin(e->most_slots, STAGE_MOST_SLOTS) : STAGE_MOST_SLOTS;
	struct stage_fit fit = { 0 };

	for (enum shape_recompute level = SHAPE_NORMS; level <= SHAPE_BLOCK; level++) {
		double one = stage_cost_bytes(m, layers, has_ends, batch, level, 1);
		double slot = stage_cost_bytes(m, layers, has_ends, batch, level, 2) - one;
		double left = e->memory_bytes - one;
		int slots = left < 0 ? 0 : (int)fmin(most, 1 + left / fmax(slot, 1e-9));

		if (level > SHAPE_NORMS && slots <= fit.slots)
			break;
		fit = (struct stage_fit){ .slots = slots,
					  .level = level,
					  .missing_bytes = fmax(0, -left) };
		if (slots >= wanted)
			break;
	}
	return fit;
}
