/* stream.h - the messages of an invented run, for tests and for trying the console.
 *
 * The same options always give the same messages. Each iteration is simulated twice: with planned
 * times, and with random deviations from them. Thus the measurements differ slightly from the plan.
 * In the simulation, a node runs tasks in order of arrival and has limited memory slots.
 */
#ifndef TUI_TESTS_STREAM_H
#define TUI_TESTS_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

struct stream_options {
	uint32_t nodes, stages, path_length; /* defaults: 20 nodes, 6 stages, paths of 4 stages */
	uint32_t waves;                      /* number of microbatches of each data node */
	/* Number of iterations that end before the console attaches. */
	uint32_t past;
	uint32_t live; /* number of iterations whose task events are sent */
	double time_scale;
	uint64_t seed;
	int dead;      /* node that dies in the second iteration with task events; -1: none */
	uint32_t gpus; /* number of nodes that report figures of a GPU, from node 0 on */
};

/* Receives a message; called in the order of sending. m and its arrays are borrowed during the
 * call. */
typedef void stream_sink(void *context, int64_t at_us, const struct msg *m);

void stream_defaults(struct stream_options *o);
/* Sends the messages of the whole run to `sink`. Returns the time of the run's end. */
int64_t stream_run(const struct stream_options *o, stream_sink *sink, void *context);

enum { STREAM_START_US = 1000000000 };
#define STREAM_WALL_US INT64_C(1763733600000000) /* 2025-11-21 14:00:00 UTC */

#endif
