/* strategy.h - what depends on how large a cluster is, in one table: which searches are tried, with
 * which moves, how long and how warm. Everybody asks here; no other file compares a number of
 * nodes or microbatches with a limit of its own.
 *
 * A regime holds where the microbatches and nodes lie within its row of the table
 * (strategy.c). problem_init works all of them out once (problem.h: regimes).
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_STRATEGY_H
#define SCHEDULE_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

/* Limits that size arrays. The bounds' are of one data node: slots, microbatches, and for the
 * coverage bound microbatches by slots squared; and of the sets of stages that paths may visit. */
#define SINGLE_MACHINE_MOST_SLOTS 8
#define SINGLE_MACHINE_MOST_MB 256
#define COVERAGE_BOUND_MOST_SETS 5000
#define COVERAGE_BOUND_MOST_SIZE 600
#define PRICING_MOST_SLOTS 8

#define GROUPED_FROM 6 /* microbatches of each data node: then groups of them take one path at first */

enum regime {
	REGIME_FEASIBLE,        /* legal paths are looked for by exhaustion where construction fails */
	REGIME_FRESH_TOO,       /* a fresh first plan is made beside a mended one */
	REGIME_NODE_CLASSES,    /* nodes that are alike count as one: first plans, bounds */
	REGIME_RESTARTS,        /* random placements are tried for quick sums */
	REGIME_POPULATION,      /* dtfm's whole population; else one that shrinks with the nodes */
	REGIME_SHORT_ROUNDS,    /* starts side by side, rounds that cool down, always four chains; else
	                         * one temperature, and a chain a thread */
	REGIME_ESTIMATES,       /* proposals are turned away by estimate */
	REGIME_LANES,           /* lanes are planned in place of all other moves */
	REGIME_LANES_SKETCH,    /* a short sketch is tried where lanes are planned */
	REGIME_GENTLE_REPAIR,   /* repairs are annealed at half the temperature, in short rounds */
	REGIME_STEEP_NORM,      /* finish times weigh by the 32-norm; else the 8-norm */
	REGIME_LOOK_OFTEN,      /* the clock is looked at before each evaluation */
	REGIMES,
};

/* Whether a regime holds for a cluster of that size. */
bool strategy_holds(enum regime r, int n_microbatches, int n_nodes);
/* Bit by bit those that hold. */
uint32_t strategy_regimes(int n_microbatches, int n_nodes);

/* How annealing cools. Proposals of the first round and temperatures at a round's start and end, of
 * the makespan, for 30 microbatches or fewer. One of many moves the cost less, so the temperature
 * falls with their number, by a power. */
struct cooling {
	double round, warm, cold, power;
};

/* regimes: of the problem; repairs: a plan to start from is mended; plans_lanes: by moves of lanes. */
const struct cooling *strategy_cooling(uint32_t regimes, bool repairs, bool plans_lanes);

#endif
