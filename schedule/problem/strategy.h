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

/* Limits that size arrays. Those of the bounds apply to one data node: its slots, its microbatches,
 * and for the coverage bound the microbatches times the slots squared. SETS are the sets of stages
 * that a path can visit. */
#define SINGLE_MACHINE_MOST_SLOTS 8
#define SINGLE_MACHINE_MOST_MB 256
#define COVERAGE_BOUND_MOST_SETS 5000
#define COVERAGE_BOUND_MOST_SIZE 600
#define PRICING_MOST_SLOTS 8

/* With this many microbatches of each data node or more, groups of them share a path at first. */
#define GROUPED_FROM 6

enum regime {
	REGIME_FEASIBLE,     /* complete search for legal paths if the construction fails */
	REGIME_FRESH_TOO,    /* comparison of a repaired first plan with a fresh one */
	REGIME_NODE_CLASSES, /* treats similar nodes as one in first plans and bounds */
	REGIME_RESTARTS,     /* random placements are tried for quick sums */
	REGIME_POPULATION,   /* uses dtfm's full population; else it shrinks with more nodes */
	/* Anneals several starts, in rounds that cool down, in always four chains; else at a
	 * constant temperature with one chain for each thread. */
	REGIME_SHORT_ROUNDS,
	REGIME_ESTIMATES,     /* rejects proposals by estimates */
	REGIME_LANES,         /* lanes are planned in place of all other moves */
	REGIME_LANES_SKETCH,  /* a short sketch is tried if lanes are planned */
	REGIME_GENTLE_REPAIR, /* repairs are annealed at half the temperature, in short rounds */
	REGIME_STEEP_NORM,    /* uses finish times in the 32-norm; else in the 8-norm */
	REGIME_LOOK_OFTEN,    /* reads the clock before each evaluation */
	REGIMES,
};

/* Returns true if a regime holds for a cluster of this size. */
bool strategy_holds(enum regime r, int n_microbatches, int n_nodes);
/* All regimes that hold: bit r is set for regime r. */
uint32_t strategy_regimes(int n_microbatches, int n_nodes);

/* The cooling of the annealing, for 30 microbatches or fewer. With more microbatches one of them
 * changes the cost less, so the temperature is divided by (microbatches / 30) ^ power. */
struct cooling {
	double round;      /* number of proposals in the first round */
	double warm, cold; /* first and last temperature of a round, as a share of the makespan */
	double power;
};

/* regimes: those of the problem; repairs: a plan to start from is repaired; plans_lanes: moves are
 * lanes.
 */
const struct cooling *strategy_cooling(uint32_t regimes, bool repairs, bool plans_lanes);

#endif
