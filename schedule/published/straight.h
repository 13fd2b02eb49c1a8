/* straight.h - the two baselines that ignore collisions: DT-FM's straight pipelines through all
 * stages, and random legal skips. Internal to schedule/.
 */
#ifndef SCHEDULE_STRAIGHT_H
#define SCHEDULE_STRAIGHT_H

#include "base/rng.h"
#include "schedule/problem/problem.h"

/* Builds as many pipelines as the smallest stage has nodes. A bottleneck matching connects the
 * nodes of each two successive stages. Each data node sends all its microbatches down one pipeline,
 * and each pipeline serves its share of data nodes. p->length must be the number of stages.
 * PLAN_INFEASIBLE: links are missing. */
int straight_paths(struct solution *s, const struct problem *p, struct error *err);

/* Draws legal paths at random: exposure is exact, and the visits of a stage are spread evenly over
 * its nodes. PLAN_INFEASIBLE: many tries have found no such paths. */
int random_paths(struct solution *s, const struct problem *p, struct rng *rng,
		 struct error *err);

#endif
