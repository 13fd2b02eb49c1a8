/* route.h - the nodes and stages that one microbatch visits in an iteration.
 *
 * Plain data, copied by value. wire/chain.h describes the tasks along a route.
 */
#ifndef BASE_ROUTE_H
#define BASE_ROUTE_H

#include <stdint.h>

enum { ROUTE_HOPS = 64 }; /* largest number of hops, and therefore of stages in a model */

struct route {
	uint32_t microbatch;
	/* Number of the attempt. In an iteration every new attempt has a higher number than all
	 * earlier attempts, also after a restart of the controller. */
	uint32_t attempt;
	/* The attempt in which the microbatch last started from the beginning. Later attempts
	 * only replaced dead nodes, so the results of all remaining nodes stay valid. */
	uint32_t since;
	/* The data shard of the microbatch: the rank that its data node had when the run began. */
	uint32_t shard;
	uint32_t wave;    /* index among the shard's microbatches of the iteration, or of the
			   * validation batch */
	uint32_t n_hops;
	uint16_t nodes[ROUTE_HOPS]; /* node ids, the data node first */
	uint8_t stages[ROUTE_HOPS]; /* the stage visited at each hop */
};

/* Number of microbatches of an iteration that visited each stage. */
struct stage_visits {
	/* Number of stages in `of`. Each stage divides its gradient by the number of its own
	 * visits. 0: every stage divides its gradient by the number of all microbatches. */
	uint32_t n;
	uint16_t of[ROUTE_HOPS]; /* array of n: number of microbatches that visited each stage */
};

#endif
