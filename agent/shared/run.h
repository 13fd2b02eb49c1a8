/* run.h - what the WELCOME of the controller says of a run. join.c writes it, others read it. */
#ifndef AGENT_RUN_H
#define AGENT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/shared/route.h"
#include "base/tensor_format.h"
#include "model/codec/codec.h"
#include "model/config.h"
#include "wire/msg.h"

/* Times of tensors to each node, as in msg_welcome. */
struct emulated_times {
	float *delay_s, *bytes_s, *sync_s; /* (n_nodes) */
};

struct run {
	/* false: the agent is in no run. State of the run before may stay until the worker is
	 * idle. */
	bool welcomed;
	struct msg_welcome welcome; /* its arrays are in `times`; no corpus */
	struct emulated_times times;
	struct route_limits limits;
	struct model_config config;
	struct sum_codec *sum_codecs; /* (n_stages) in fp32; REDUCE names the format */
};

/* Returns the emulated time, s, of an activation that travels in this format, before the scale and
 * without faults; 0: not emulated. */
double run_delay_s(const struct run *r, enum tensor_format wire, uint16_t to);

#endif
