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
	uint32_t attempt; /* rises with each rerun in an iteration, and with each controller */
	uint32_t since;   /* the attempt in which the microbatch last began. Later attempts only
			   * replaced nodes that died; the other nodes' results stay valid */
	/* The shard of the microbatch's data: rank of its data node when the run began. */
	uint32_t shard;
	uint32_t wave;    /* index among the shard's microbatches of the iteration, or of the
			   * validation batch */
	uint32_t n_hops;
	uint16_t nodes[ROUTE_HOPS]; /* node ids, the data node first */
	uint8_t stages[ROUTE_HOPS]; /* the stage visited at each hop */
};

/* Number of microbatches of an iteration that visited each stage. */
struct stage_visits {
	uint32_t n; /* number of stages; 0: gradients are divided by all microbatches */
	uint16_t of[ROUTE_HOPS]; /* (n) */
};

#endif
