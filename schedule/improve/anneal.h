/* anneal.h - improves a solution by simulated annealing in rounds over the moves of moves.h.
 *
 * Cost: makespan * (1 + q), q a mean of the finish times over the makespan, of a high norm; the
 * makespan alone is too flat to climb. With a free assignment the seconds of the gradients' sum
 * are added. Each round starts from the best solution so far, warm enough to leave it, and cools
 * down; rounds grow. With many microbatches there is not the time for that: one temperature, and rounds
 * of seconds. What happens depends on the seed and the
 * number of evaluations only.
 *
 * Most proposals are seen to be bad by what the timetable says of them, without a run; only
 * runs count as evaluations. A proposal is accepted when its cost stays below a threshold drawn
 * beforehand (Metropolis, the other way round), so a run can be cut as soon as it must miss the
 * threshold.
 *
 * Internal to schedule/.
 */
#ifndef SCHEDULE_ANNEAL_H
#define SCHEDULE_ANNEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/execution/fast_simulate.h"
#include "schedule/improve/moves.h"
#include "schedule/problem/problem.h"
#include "schedule/improve/timetable.h"

struct anneal {
	const struct problem *p;
	struct fast_simulate simulation;
	struct solution current, best;
	struct moves moves;
	struct timetable table;         /* of current; empty where lanes are planned */
	struct lanes lanes;             /* of current, where they are planned */
	bool plans_lanes;
	double cost, sync_s, current_s; /* of current; current_s: its makespan */
	double warm, cold; /* temperature at a round's start and end, of the makespan */
	double best_s; /* objective of best: iteration_s, + sync_s where it counts */
	double best_iteration_s;
	int64_t round_left, round_size;
};

/* Whether lanes may be planned: few nodes are so crowded that nothing goes as promised, and of W, which give the
 * slots back, lanes know nothing. */
bool anneal_knows_lanes(const struct problem *p);

/* From a solution that runs to its end (copied). -ENOMEM; -EDEADLK: it stands still. */
int anneal_init(struct anneal *a, const struct problem *p, const struct solution *from,
		uint64_t seed, uint64_t stream);
void anneal_fini(struct anneal *a);

/* Takes over the best of another, as its own; its next step begins a round from there. */
void anneal_adopt(struct anneal *a, const struct anneal *from);

/* The next steps are a round of so many, from the best so far. */
void anneal_begin_round(struct anneal *a, int64_t steps);

/* One proposal. True when best improved. */
bool anneal_step(struct anneal *a);

#endif
