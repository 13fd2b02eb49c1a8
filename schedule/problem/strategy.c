/* The table of all limits that depend on the size of a cluster, and the temperatures of the
 * annealing. */
#include "schedule/problem/strategy.h"

/* A range that includes both ends. `to` 0: there is no upper limit. */
struct range {
	int from, to;
};

/* The row of each regime. The limits were found by measurements. */
static const struct {
	struct range microbatches, nodes;
} table[REGIMES] = {
	/* The limit exists because feasible.c recurses once for each microbatch. */
	[REGIME_FEASIBLE] = { .microbatches = { 0, 10000 } },
	/* In larger clusters a new plan takes long to build, and one lost node changes little. */
	[REGIME_FRESH_TOO] = { .nodes = { 0, 200 } },
	[REGIME_NODE_CLASSES] = { .nodes = { 64, 0 } },
	[REGIME_RESTARTS] = { .nodes = { 0, 64 } },
	[REGIME_POPULATION] = { .nodes = { 0, 100 } },
	[REGIME_SHORT_ROUNDS] = { .microbatches = { 0, 60 } },
	[REGIME_ESTIMATES] = { .microbatches = { 60, 0 } },
	[REGIME_LANES] = { .microbatches = { 41, 0 }, .nodes = { 40, 0 } },
	[REGIME_LANES_SKETCH] = { .microbatches = { 61, 150 } },
	[REGIME_GENTLE_REPAIR] = { .microbatches = { 41, 0 } },
	[REGIME_STEEP_NORM] = { .microbatches = { 300, 0 } },
	[REGIME_LOOK_OFTEN] = { .microbatches = { 501, 0 } },
};

static bool is_within(const struct range *r, int n)
{
	return n >= r->from && (r->to == 0 || n <= r->to);
}

bool strategy_holds(enum regime r, int n_microbatches, int n_nodes)
{
	return is_within(&table[r].microbatches, n_microbatches) &&
	       is_within(&table[r].nodes, n_nodes);
}

uint32_t strategy_regimes(int n_microbatches, int n_nodes)
{
	uint32_t regimes = 0;

	for (int r = 0; r < REGIMES; r++)
		regimes |= (uint32_t)strategy_holds((enum regime)r, n_microbatches, n_nodes) << r;
	return regimes;
}

const struct cooling *strategy_cooling(uint32_t regimes, bool repairs, bool plans_lanes)
{
	static const struct cooling small = { 2000, 0.006, 0.001, 1.5 };
	/* Moves of lanes change the cost much, so only a higher temperature accepts some of
	 * them. */
	static const struct cooling large_lanes = { 40000, 0.004, 0.004, 1.2 };
	static const struct cooling large = { 40000, 0.0012, 0.0012, 1.2 };
	/* For repairs of a plan, which are needed soon. With few microbatches, the rounds of
	 * `small` are quick enough. */
	static const struct cooling repair = { 500, 0.003, 0.0005, 1.5 };

	if (repairs && regimes >> REGIME_GENTLE_REPAIR & 1)
		return &repair;
	if (regimes >> REGIME_SHORT_ROUNDS & 1)
		return &small;
	return plans_lanes ? &large_lanes : &large;
}
