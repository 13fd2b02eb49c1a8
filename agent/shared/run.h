/* run.h - what the agent knows of a run from the controller's WELCOME. join.c writes the struct,
 * other modules read it. */
#ifndef AGENT_RUN_H
#define AGENT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/shared/route.h"
#include "base/tensor_format.h"
#include "model/codec/codec.h"
#include "model/config.h"
#include "wire/msg.h"

/* Emulated transfer times of a tensor from this node to each node, as in msg_welcome. */
struct emulated_times {
	float *delay_s, *bytes_s, *sync_s; /* arrays of n_nodes */
};

struct run {
	/* False: the agent is in no run. The state of its previous run may remain until the worker
	 * is idle. */
	bool welcomed;
	/* The controller's WELCOME; its arrays are in `times`, and its corpus is not kept. */
	struct msg_welcome welcome;
	struct emulated_times times;
	struct route_limits limits;
	struct model_config config;
	/* For each of the n_stages stages, the codec for the sums of the stage's gradient. The
	 * field `format` is always fp32 here, because the order REDUCE names the format to use. */
	struct sum_codec *sum_codecs;
};

/* Returns the emulated time that an activation in this format takes to reach a node, in seconds.
 * The time scale and faults are not included. 0: times are not emulated. */
double run_delay_s(const struct run *r, enum tensor_format wire, uint16_t to);

#endif
