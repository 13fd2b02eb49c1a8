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

/* Limits that determine the sizes of arrays. Those of the bounds apply to one data node: to its
 * slots, to its microbatches and, for the coverage bound, to the microbatches times the slots
 * squared. SETS limits the number of sets of stages that a path can visit. */
#define SINGLE_MACHINE_MOST_SLOTS 8
#define SINGLE_MACHINE_MOST_MB 256
#define COVERAGE_BOUND_MOST_SETS 5000
#define COVERAGE_BOUND_MOST_SIZE 600
#define PRICING_MOST_SLOTS 8

/* With this many microbatches of each data node or more, groups of them share a path at first. */
#define GROUPED_FROM 6

enum regime {
	/* If the construction fails, a complete search for legal paths follows */
	REGIME_FEASIBLE,
	REGIME_FRESH_TOO,    /* a repaired first plan is compared with a fresh one */
	REGIME_NODE_CLASSES, /* similar nodes are treated as one in first plans and bounds */
	REGIME_RESTARTS,     /* random placements are tried for quick sums */
	/* Dtfm uses its full population; otherwise the population shrinks with more nodes */
	REGIME_POPULATION,
	/* Several starts are annealed in rounds that cool down, always in four chains. Otherwise
	 * the temperature is constant, with one chain for each thread. */
	REGIME_SHORT_ROUNDS,
	REGIME_ESTIMATES,     /* proposals are rejected by estimates */
	REGIME_LANES,         /* lanes are planned in place of all other moves */
	REGIME_LANES_SKETCH,  /* if lanes are planned, a short sketch is tried first */
	REGIME_GENTLE_REPAIR, /* repairs are annealed at half the temperature, in short rounds */
	/* Finish times are combined in the 32-norm; otherwise in the 8-norm */
	REGIME_STEEP_NORM,
	REGIME_LOOK_OFTEN, /* the clock is read before each evaluation */
	REGIMES,
};

/* Returns true if a regime holds for a cluster of this size. */
bool strategy_holds(enum regime r, int n_microbatches, int n_nodes);
/* Returns all regimes that hold: bit r is set for regime r. */
uint32_t strategy_regimes(int n_microbatches, int n_nodes);

/* The cooling of the annealing, for 30 microbatches or fewer. With more microbatches, each one
 * changes the cost less, so the temperature is divided by (microbatches / 30) ^ power. */
struct cooling {
	double round;      /* number of proposals in the first round */
	double warm, cold; /* first and last temperature of a round, as a share of the makespan */
	double power;
};

/* Returns the cooling. regimes: those of the problem; repairs: a plan to start from is repaired;
 * plans_lanes: lanes are planned in place of other moves. */
const struct cooling *strategy_cooling(uint32_t regimes, bool repairs, bool plans_lanes);

#endif
