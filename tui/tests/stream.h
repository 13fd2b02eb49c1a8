/* stream.h - the messages of an invented run, for tests and for trying the console.
 *
 * The messages are deterministic. Microbatches run on their paths under the execution model
 * (first come, first served, memory slots), once with planned times and once with jitter, so that
 * the plan and the measurement differ slightly.
 */
#ifndef TUI_TESTS_STREAM_H
#define TUI_TESTS_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

struct stream_options {
	uint32_t nodes, stages, path_length; /* defaults: 20, 6 and 4 */
	uint32_t waves;                      /* number of microbatches of each data node */
	/* Number of iterations that ended before the console attached */
	uint32_t past;
	uint32_t live; /* number of iterations whose tasks are sent */
	double time_scale;
	uint64_t seed;
	int dead;      /* node that dies in the second live iteration; -1: none */
	uint32_t gpus; /* number of nodes, from the first on, that send figures of a GPU */
};

/* Receives the messages in order. m and its arrays are borrowed. */
typedef void stream_sink(void *context, int64_t at_us, const struct msg *m);

void stream_defaults(struct stream_options *o);
/* Runs the stream. Returns the time of its end. */
int64_t stream_run(const struct stream_options *o, stream_sink *sink, void *context);

enum { STREAM_START_US = 1000000000 };
#define STREAM_WALL_US INT64_C(1763733600000000) /* 2025-11-21 14:00:00 UTC */

#endif
