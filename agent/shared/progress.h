/* progress.h - the numbers of the present iteration, which iteration.c writes and other modules
 * read. */
#ifndef AGENT_PROGRESS_H
#define AGENT_PROGRESS_H

#include <stdint.h>

#include "base/tensor_format.h"

struct progress {
	/* Number of the present iteration, which follows the newest committed iteration; 0:
	 * none. */
	uint64_t iteration;
	uint64_t epoch;     /* epoch of the plan that the iteration follows */
	uint32_t per_shard; /* microbatches of each data shard in the iteration */
	uint64_t position;  /* position of the iteration's first microbatch in every data shard */
	enum tensor_format wire; /* format of activations and their gradients in this iteration */
	enum tensor_format evaluation_wire; /* format of activations in the newest evaluation */
};

#endif
