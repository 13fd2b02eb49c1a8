/* anneal.h - improves a solution by simulated annealing, in rounds, over the moves of moves.h.
 *
 * The cost is makespan * (1 + q). q is the mean, in a high norm, of the microbatches' finish times
 * divided by the makespan. The makespan alone is no good cost, because most moves do not change it.
 * With a free assignment, the cost also has the seconds of the gradients' sums.
 *
 * Each round starts from the best solution so far at a high temperature, and cools down; rounds
 * grow longer. With many microbatches there is no time for cooling: the temperature is constant,
 * and a round lasts seconds. The result depends only on the seed and the number of evaluations.
 *
 * Estimates from the timetable reject most bad proposals without a simulation; only simulations
 * count as evaluations. A threshold is drawn before the cost of a proposal is known, and the
 * proposal is accepted if its cost is at most the threshold. This is equivalent to Metropolis'
 * rule, and a simulation can stop as soon as its cost is certain to exceed the threshold.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_ANNEAL_H
#define SCHEDULE_ANNEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/improve/fast_simulate.h"
#include "schedule/improve/moves.h"
#include "schedule/problem/problem.h"
#include "schedule/improve/timetable.h"

struct anneal {
	const struct problem *p;
	struct fast_simulate simulation;
	struct solution current, best;
	struct moves moves;
	struct timetable table; /* timetable of `current`; empty with plans_lanes */
	struct lanes lanes;     /* lanes of `current`; empty without plans_lanes */
	/* true: the annealing uses only moves that plan lanes (lanes.h). */
	bool plans_lanes;
	double cost, sync_s, current_s; /* cost, time of the sums, and makespan of `current` */
	double warm, cold; /* first and last temperature of a round, as a share of the makespan */
	/* Objective of `best`: iteration_s, plus sync_s if sums are part of the objective */
	double best_s;
	double best_iteration_s;
	int64_t round_left, round_size;
};

/* Returns true if lanes can be planned for this problem. In small clusters the nodes are so crowded
 * that the times predicted for a lane come out wrong. */
bool anneal_knows_lanes(const struct problem *p);

/* Starts at a solution, which is copied. -EDEADLK: the solution comes to a standstill. */
int anneal_init(struct anneal *a, const struct problem *p, const struct solution *from,
		uint64_t seed, uint64_t stream);
void anneal_fini(struct anneal *a);

/* Takes over the best solution of another annealing. The next step begins a round from it. */
void anneal_adopt(struct anneal *a, const struct anneal *from);

/* Begins a round of `steps` steps from the best solution so far. */
void anneal_begin_round(struct anneal *a, int64_t steps);

/* Tries one proposal. Returns true if `best` improved. */
bool anneal_step(struct anneal *a);

#endif
