/* strategy.h - decides by the size of a cluster which searches are tried, with which moves, how
 * long and at which temperature. All of these decisions are in one table; no other file compares a
 * number of nodes or microbatches with a limit of its own.
 *
 * A regime holds if the microbatches and nodes lie within its row of the table (strategy.c).
 * problem_init computes all regimes once (problem.h: regimes).
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_STRATEGY_H
#define SCHEDULE_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

/* Limits that determine the sizes of arrays in the bounds. MOST_SLOTS limits the slots of one data
 * node, and MOST_MB its microbatches. MOST_SIZE limits the product of a data node's microbatches
 * and its squared slots, in the coverage bound. MOST_SETS limits the number of sets of stages that
 * a path can visit. */
#define SINGLE_MACHINE_MOST_SLOTS 8
#define SINGLE_MACHINE_MOST_MB 256
#define COVERAGE_BOUND_MOST_SETS 5000
#define COVERAGE_BOUND_MOST_SIZE 600
#define PRICING_MOST_SLOTS 8

/* If every data node sends at least this many microbatches, the search begins with groups of
 * microbatches that share a path. */
#define GROUPED_FROM 6

enum regime {
	/* If the quick construction fails, a complete search for legal paths follows. */
	REGIME_FEASIBLE,
	/* If the first plan is a repaired plan, a new plan is built too, and the better of the
	 * two is used. */
	REGIME_FRESH_TOO,
	REGIME_NODE_CLASSES, /* similar nodes are treated as one in first plans and bounds */
	/* If sums of gradients count, random placements of nodes are tried too. */
	REGIME_RESTARTS,
	/* The algorithm dtfm uses its full population; otherwise it uses a smaller one. */
	REGIME_POPULATION,
	/* Several starts are annealed in rounds that cool down, always in four chains. In larger
	 * problems, the temperature is constant, and there is one chain for each thread. */
	REGIME_SHORT_ROUNDS,
	/* Moves are estimated first, and bad ones are rejected without a simulation. */
	REGIME_ESTIMATES,
	REGIME_LANES, /* the annealing uses only moves that plan lanes */
	/* Before lanes are planned, a short sketch (sketch.h) is tried as a start. */
	REGIME_LANES_SKETCH,
	REGIME_GENTLE_REPAIR, /* repairs are annealed at half the temperature, in short rounds */
	/* The annealing combines finish times in the 32-norm; in smaller problems in the 8-norm. */
	REGIME_STEEP_NORM,
	REGIME_LOOK_OFTEN, /* the clock is read before each evaluation */
	REGIMES,
};

/* Returns true if a regime holds for a cluster of this size. */
bool strategy_holds(enum regime r, int n_microbatches, int n_nodes);
/* Returns all regimes that hold: bit r is set for regime r. */
uint32_t strategy_regimes(int n_microbatches, int n_nodes);

/* The cooling of the annealing, for 30 microbatches or fewer. With n > 30 microbatches, each one
 * changes the cost less, so the temperatures are divided by (n / 30) ^ power. */
struct cooling {
	double round;      /* number of proposals in the first round */
	double warm, cold; /* first and last temperature of a round, as a share of the makespan */
	double power;
};

/* Returns the cooling. regimes: the regimes of the problem. repairs: the search repairs a given
 * plan. plans_lanes: the annealing uses only moves that plan lanes. */
const struct cooling *strategy_cooling(uint32_t regimes, bool repairs, bool plans_lanes);

#endif
